//! The requests of a module: those of its description, and in `modules.lock` those that the operator accepted.

use serde::{Deserialize, Serialize};

use host_base::{Privilege, Risk};

/// The purpose for which a command may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Looking, without changing anything.
    Read,
    /// A program's own simulation of a change.
    DryRun,
    /// A step of a plan.
    Change,
}

/// The machine on which something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The machine under administration.
    Target,
    /// The machine that the server runs on.
    Controller,
}

/// A command line that a module asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandRequest {
    /// The pattern, such as `systemctl restart -- <unit>`.
    pub pattern: String,
    /// The purpose for which the command may be used.
    pub effect: Effect,
    /// The account whose rights the command may take at most.
    pub privilege: Privilege,
    /// The machine on which it runs.
    pub place: Place,
    /// The least risk of a plan that uses the command.
    pub risk: Risk,
    /// The reason in the module's words, for the operator.
    pub reason: String,
}

/// Files that a module asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathRequest {
    /// An absolute glob. `*` stays within a name, and `**` is any depth.
    pub glob: String,
    /// Whether plans may write there.
    pub write: bool,
    /// The account whose rights the access may take at most.
    pub privilege: Privilege,
    /// The machine that has the files.
    pub place: Place,
    /// The reason in the module's words, for the operator.
    pub reason: String,
}

/// Any program with any arguments that a module asks for. It amounts to full control of the account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnyProgramRequest {
    /// The account whose rights the programs may take at most.
    pub privilege: Privilege,
    /// The machine on which they run.
    pub place: Place,
    /// The reason in the module's words, for the operator.
    pub reason: String,
}

/// Signals to processes that a module asks for. They can end any process that the rights reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignalRequest {
    /// The account whose rights the signals may take at most.
    pub privilege: Privilege,
    /// The machine that has the processes.
    pub place: Place,
    /// The reason in the module's words, for the operator.
    pub reason: String,
}

/// A program that plans of the module put on the target. Where it runs, the operator has decided about its contents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnProgramRequest {
    /// The absolute path.
    pub path: String,
    /// The SHA-256 of the contents, in lower-case hexadecimal digits.
    pub sha256: String,
    /// The reason in the module's words, for the operator.
    pub reason: String,
}

/// All requests of a module, or those that the operator accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// The command lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandRequest>,
    /// The files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathRequest>,
    /// Any program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any_program: Vec<AnyProgramRequest>,
    /// Signals to processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<SignalRequest>,
    /// The module's own programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_programs: Vec<OwnProgramRequest>,
    /// The names of other modules' read-only tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}
