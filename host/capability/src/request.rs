//! What a module asks for: in its description, and in `modules.lock` what of it the operator accepted.

use serde::{Deserialize, Serialize};

use host_base::{Privilege, Risk};

/// What a command may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Looking.
    Read,
    /// A program's own simulation of a change.
    DryRun,
    /// A step of a plan.
    Change,
}

/// On which machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The one under administration.
    Target,
    /// The one that the server runs on.
    Controller,
}

/// A command line that a module asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandRequest {
    /// As `systemctl restart -- <unit>`.
    pub pattern: String,
    /// What for.
    pub effect: Effect,
    /// At most whose rights.
    pub privilege: Privilege,
    /// Where.
    pub place: Place,
    /// The least risk of a plan that uses it.
    pub risk: Risk,
    /// In the module's own words, for the operator.
    pub reason: String,
}

/// Files that a module asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathRequest {
    /// Absolute; `*` within a name, `**` for any depth.
    pub glob: String,
    /// Whether plans may write there.
    pub write: bool,
    /// At most whose rights.
    pub privilege: Privilege,
    /// Where.
    pub place: Place,
    /// In the module's own words, for the operator.
    pub reason: String,
}

/// Everything that a module asks for, or everything of it that was accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// Command lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandRequest>,
    /// Files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathRequest>,
}
