//! The events that are recorded.
//!
//! Whoever records an event leaves secrets out of it: everything in an event is written to the file. A reader ignores
//! members that it doesn't know, because a newer version may have written them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::process::Process;
use super::size_limit::MaybeOmitted;
use host_base::Privilege;
use host_base::Risk;

/// One event of the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A call of a tool has ended.
    Call(Box<Call>),
    /// A change is about to touch its target.
    ChangeBegun(Box<ChangeBegun>),
    /// A change has ended.
    ChangeEnded(ChangeEnded),
    /// A change that a dead process left half-done was put back.
    ChangeRecovered(ChangeRecovered),
    /// A new file of the log continues another one. This is its first record.
    Rotated(Rotated),
    /// The oldest files of the log are removed.
    Dropped(Dropped),
    /// A writer repaired what a crash had left.
    Mended(Mended),
}

/// The module whose tool was called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleUsed {
    /// The module's name.
    pub name: String,
    /// The module's version.
    pub version: String,
    /// The SHA-256 of the component's bytes, in hexadecimal digits.
    pub sha256: String,
}

/// The machine that the call was for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetUsed {
    /// The name by which calls name the machine: `localhost`, or a remote host's alias.
    pub name: String,
    /// The account that the machine is reached as.
    pub account: String,
    /// The number of that account, where it is known.
    pub uid: Option<u32>,
    /// The content of `/etc/machine-id`, where it is known: two names may be one machine.
    pub machine_id: Option<String>,
    /// The machine's own hostname, where it is known.
    pub hostname: Option<String>,
    /// The fingerprint (`SHA256:…`) of the key that the machine has shown as an SSH server. None for the server's own machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_key: Option<String>,
}

/// The decision on what a call was to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// The call only looked, so there was nothing to decide.
    Looked,
    /// The call was a dry run.
    DryRun,
    /// The change was allowed.
    Allowed,
    /// The change was refused.
    Refused,
    /// A person was asked, and has not answered.
    Asked,
    /// The call ended before there was anything to decide.
    None,
    /// A decision of a newer version.
    #[serde(untagged)]
    Other(String),
}

/// The person or the program that made a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedBy {
    /// The policy decided: nobody had to be asked.
    Policy,
    /// The person who uses the client decided; the client asked (MCP's elicitation).
    Elicitation,
    /// The client said in a second call that the change is confirmed. A model can do that alone.
    ClientAsserted,
    /// A person at a terminal decided, logged in with this account.
    Terminal(Person),
    /// The decision came from a kind of person or program that only a newer version knows.
    #[serde(untagged)]
    Other(String),
}

/// An account of the machine that the server runs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// The account's number, as the kernel reports it.
    pub uid: u32,
    /// The account's name, where it has one.
    pub account: String,
}

/// The status of a call that has ended, as in its envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// The call succeeded.
    Success,
    /// The call failed.
    Error,
    /// Another program or call held what the call needed.
    Blocked,
    /// The call needs a confirmation first.
    ConfirmationRequired,
}

/// A command that ran in a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandUsed {
    /// The command line as it may be shown, without secrets.
    pub command: String,
    /// The exit code, where it is known.
    pub exit_code: Option<i32>,
}

/// One call of a tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    /// The id of the call. Calls that a module makes have the id of the call within which it makes them.
    pub trace_id: String,
    /// The name and version that the client gives itself: `claude-code 2.1`.
    pub client: String,
    /// The version of MCP, or `cli`.
    pub protocol: String,
    /// The tool's own name, or the caller's word where there is no such tool.
    pub tool: String,
    /// The alias by which the caller named the tool, where it used one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_as: Option<String>,
    /// The module that called the tool within a call of its own. None where the client called it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_by: Option<ModuleUsed>,
    /// The tool's module, where one was found.
    pub module: Option<ModuleUsed>,
    /// The target, where one was found.
    pub target: Option<TargetUsed>,
    /// The arguments, without secrets.
    pub arguments: MaybeOmitted<Value>,
    /// The risk of the call, where the tool is known.
    pub risk: Option<Risk>,
    /// The decision on the call.
    pub decision: Decision,
    /// The person or the program that decided, where there was a decision.
    pub decided_by: Option<DecidedBy>,
    /// The SHA-256 of the question that was asked: one question may be about the same call on several hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The id of the change that the call made.
    pub change: Option<String>,
    /// The status with which the call ended.
    pub status: CallStatus,
    /// The error code, where the call did not succeed.
    pub error_code: Option<String>,
    /// The duration in wall-clock milliseconds.
    pub duration_ms: u64,
    /// The commands that ran.
    pub commands: MaybeOmitted<Vec<CommandUsed>>,
}

/// The kind of change of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileChangeKind {
    /// The change writes the whole file.
    Write,
    /// The change removes the file.
    Remove,
    /// The change makes a directory.
    MakeDirectory,
    /// The change moves a file or a directory.
    Move,
    /// The change sets mode, owner or group.
    SetAttributes,
    /// The change removes an empty directory.
    RemoveDirectory,
}

/// The attributes by which a file or a directory is known again and put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileAttributes {
    /// Whether it is a directory. Otherwise it is a regular file.
    pub is_directory: bool,
    /// `st_dev` of its file system.
    pub device: u64,
    /// Its number on the file system.
    pub inode: u64,
    /// The permission bits.
    pub mode: u32,
    /// The owner's name, or the number where it has none.
    pub owner: String,
    /// The group's name, or the number where it has none.
    pub group: String,
}

/// A path that a change touches, with everything that it takes to put it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The absolute path on the target.
    pub path: String,
    /// The directory on the target that holds the copy of the former file.
    pub staging: String,
    /// The account whose rights the access takes.
    pub privilege: Privilege,
    /// Whether the path existed before the change.
    pub existed: bool,
    /// The SHA-256 of the former content, in hexadecimal digits.
    pub sha256_before: Option<String>,
    /// The SHA-256 of the new content, in hexadecimal digits.
    pub sha256_after: Option<String>,
    /// The kind of change of the path.
    pub kind: FileChangeKind,
    /// The path that a move leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The attributes before the change, of what is moved, gets other ones, or is removed as a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<FileAttributes>,
    /// The attributes that the change sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<FileAttributes>,
}

/// A change that is about to touch its target. It is recorded before it does, with everything that it takes to put it back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeBegun {
    /// The id of the change.
    pub id: String,
    /// The id of the call that makes the change.
    pub trace_id: String,
    /// The client, as in [`Call::client`].
    pub client: String,
    /// The protocol, as in [`Call::protocol`].
    pub protocol: String,
    /// The tool's name.
    pub tool: String,
    /// The tool's module.
    pub module: ModuleUsed,
    /// The machine that is changed.
    pub target: TargetUsed,
    /// The arguments of the call, without secrets.
    pub arguments: MaybeOmitted<Value>,
    /// The preview as it was shown, without secrets.
    pub plan: MaybeOmitted<Value>,
    /// The SHA-256 of the whole plan, secrets included, in hexadecimal digits.
    pub plan_sha256: String,
    /// The risk of the plan, after everything that raises it.
    pub risk: Risk,
    /// The names of the policy's rules that applied.
    pub rules: MaybeOmitted<Vec<String>>,
    /// The decision on the plan.
    pub decision: Decision,
    /// The person or the program that decided.
    pub decided_by: Option<DecidedBy>,
    /// The paths that the change touches, in the order of the steps. They are never left out: a record that can't hold
    /// them is refused.
    pub files: Vec<FileChange>,
    /// The command lines that undo each step, one list for each step. They are never left out.
    pub undo: Vec<Vec<String>>,
    /// The command lines that run after an undo. They are never left out.
    pub after_undo: Vec<String>,
    /// The process that makes the change. The writer of the record fills it in, whatever it held before.
    #[serde(default)]
    pub process: Option<Process>,
}

/// The outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every step was done.
    Done,
    /// A step failed, and every step before it was undone.
    Undone,
    /// A step failed, and some of the steps before it could not be undone.
    PartlyUndone,
    /// The connection broke, so the outcome is unknown. No process makes the change any more, and it can be recovered.
    Uncertain,
}

/// The end of a change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeEnded {
    /// The id of the change, as in [`ChangeBegun::id`].
    pub id: String,
    /// The outcome of the change.
    pub outcome: Outcome,
    /// Whether the call was cancelled, or the client's input ended, during the change.
    pub interrupted: bool,
    /// The number of the step that failed, counted from 0.
    pub failed_step: Option<u32>,
    /// The error code, where the change did not succeed.
    pub error_code: Option<String>,
    /// The exit codes of the commands that ran, in order.
    pub exit_codes: MaybeOmitted<Vec<i32>>,
    /// The number of steps that were done.
    pub steps_done: u32,
    /// The steps that were undone.
    pub undone: MaybeOmitted<Vec<String>>,
    /// The steps that could not be undone.
    pub not_undone: MaybeOmitted<Vec<String>>,
}

/// A change that its own process couldn't finish was put back later.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeRecovered {
    /// The id of the change, as in [`ChangeBegun::id`].
    pub id: String,
    /// The account of the person who asked for the recovery.
    pub by: String,
    /// The files and commands that were put back.
    pub restored: MaybeOmitted<Vec<String>>,
    /// The files and commands that could not be put back.
    pub not_restored: MaybeOmitted<Vec<String>>,
}

/// A new file continues the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotated {
    /// The name of the file before.
    pub from: String,
    /// The number of the last record of that file.
    pub last_seq: u64,
}

/// Retention removes the oldest files. This is recorded before it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// The names of the files.
    pub files: Vec<String>,
    /// The number of the last record in the last of the files.
    pub up_to_seq: u64,
    /// The hash of that record, which is the `prev_hash` of the oldest record that remains.
    pub last_hash: String,
}

/// A writer repaired what a crash had left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mended {
    /// The number of bytes that were cut off: those of a last line without its newline.
    pub bytes: u64,
    /// The number of the last lost record, where records are lost: the head names it, but it wasn't on the disk when the
    /// machine went down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_up_to_seq: Option<u64>,
}
