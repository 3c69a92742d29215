//! The risk of a call.

use serde::{Deserialize, Serialize};

/// The harm that a call, or a plan that uses a grant, can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// The call changes nothing.
    ReadOnly,
    /// The change is easily put back.
    Low,
    /// An ordinary change.
    Moderate,
    /// Data or a service is lost if the change goes wrong.
    High,
    /// The machine or the access to it can be lost.
    Critical,
}
