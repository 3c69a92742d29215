//! The section `safety` of the configuration: from which risk on a person is asked, and how.

use host_base::Risk;
use serde::{Deserialize, Serialize};

/// The configuration of confirmations.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Safety {
    /// The way by which a confirmation is asked for.
    pub confirmation: Confirmation,
    /// The lowest risk that needs a person's confirmation.
    #[serde(deserialize_with = "threshold")]
    pub confirmation_threshold: Risk,
    /// True where a dry run may show such a change without a confirmation.
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

/// The way by which a confirmation is asked for, whatever the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confirmation {
    /// The client asks its user where it can. Otherwise it confirms in a second call.
    #[default]
    Auto,
    /// A person confirms at a terminal, with `linux-sysadmin approve`.
    Terminal,
    /// The client confirms in a second call.
    TwoStep,
}

/// Refuses the risk `read-only`: a tool that only looks never asks.
fn threshold<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Risk, D::Error> {
    match Risk::deserialize(deserializer)? {
        Risk::ReadOnly => {
            Err(serde::de::Error::custom("expected low, moderate, high or critical, found read-only"))
        }
        risk => Ok(risk),
    }
}
