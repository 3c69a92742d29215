//! The steps of a connection, in the order in which it needs them: name, route, neighbour, firewall, port. The first one that
//! fails is the reason.

pub(crate) mod name;
pub(crate) mod port;
pub(crate) mod way;

use linux_sysadmin_sdk::prelude::*;

/// One step, with what was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Step {
    pub(crate) step: &'static str,
    pub(crate) ok: bool,
    pub(crate) found: String,
    /// What else was seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) evidence: Vec<String>,
    /// The call that helps further, or what to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl Step {
    pub(crate) fn ok(step: &'static str, found: impl Into<String>) -> Self {
        Self { step, ok: true, found: found.into(), evidence: Vec::new(), next: None }
    }

    pub(crate) fn fails(step: &'static str, found: impl Into<String>) -> Self {
        Self { step, ok: false, found: found.into(), evidence: Vec::new(), next: None }
    }

    pub(crate) fn with(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}
