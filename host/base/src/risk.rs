//! How grave a call is.

use serde::{Deserialize, Serialize};

/// How much harm a call, or a plan that uses a grant, can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// Changes nothing.
    ReadOnly,
    /// Trivially put back.
    Low,
    /// An ordinary change.
    Moderate,
    /// Loses data or a service where it goes wrong.
    High,
    /// Can cost the machine or the way into it.
    Critical,
}
