//! The section `safety` of the configuration: who is asked, and from which risk on.

use host_base::Risk;
use serde::{Deserialize, Serialize};

/// What is asked before it is done.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Safety {
    /// Who is asked, and how.
    pub confirmation: Confirmation,
    /// From this risk on, a person has to confirm.
    #[serde(deserialize_with = "threshold")]
    pub confirmation_threshold: Risk,
    /// Whether a dry run may show such a change without asking.
    pub dry_run_bypass_confirmation: bool,
}

impl Default for Safety {
    fn default() -> Self {
        Self {
            confirmation: Confirmation::Auto,
            confirmation_threshold: Risk::High,
            dry_run_bypass_confirmation: true,
        }
    }
}

/// How a confirmation is had, from every client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confirmation {
    /// As the client can: it asks its user, or else in two steps.
    #[default]
    Auto,
    /// A person elsewhere, with `linux-sysadmin approve`.
    Terminal,
    /// The client says so in a second call.
    TwoStep,
}

/// What only looks is never asked about.
fn threshold<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Risk, D::Error> {
    match Risk::deserialize(deserializer)? {
        Risk::ReadOnly => {
            Err(serde::de::Error::custom("expected low, moderate, high or critical, found read-only"))
        }
        risk => Ok(risk),
    }
}
