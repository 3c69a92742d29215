//! What is put on record.
//!
//! Whoever records leaves secrets out: what stands in an event stands in the file. A reader takes members that it
//! doesn't know for what a newer version wrote, and passes them over.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bound::Kept;
use super::process::Process;
use host_base::Privilege;
use host_base::Risk;

/// One thing that happened.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A tool was called, and this is how it ended.
    Call(Box<Call>),
    /// A change is about to touch its target.
    ChangeBegun(Box<ChangeBegun>),
    /// A change is over, one way or the other.
    ChangeEnded(ChangeEnded),
    /// What a process that died left half-done was put back.
    ChangeRecovered(ChangeRecovered),
    /// The first record of a file that continues another.
    Rotated(Rotated),
    /// The oldest files were removed.
    Dropped(Dropped),
    /// What a crash left was put right.
    Mended(Mended),
}

/// The module whose tool it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleUsed {
    /// Its own.
    pub name: String,
    /// Its own.
    pub version: String,
    /// Of the component's bytes, in hexadecimal digits.
    pub sha256: String,
}

/// The machine that the call was for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetUsed {
    /// As the caller names it: `localhost`, or a remote host's alias.
    pub name: String,
    /// The account that it is reached as.
    pub account: String,
    /// That account's, where it is known.
    pub uid: Option<u32>,
    /// `/etc/machine-id`, where it is known: two names may be one machine.
    pub machine_id: Option<String>,
    /// Its own name for itself, where it is known.
    pub hostname: Option<String>,
    /// Of the key that it has shown as an SSH server: `SHA256:…`. None of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_key: Option<String>,
}

/// What became of the question whether the call may do what it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It only looked; there was nothing to decide.
    Looked,
    /// It changes things, and was asked only what it would do.
    DryRun,
    /// It may.
    Allowed,
    /// It may not.
    Refused,
    /// Somebody was asked and hasn't answered.
    Asked,
    /// It ended before there was anything to decide.
    None,
    /// What a newer version calls otherwise.
    #[serde(untagged)]
    Other(String),
}

/// Who decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedBy {
    /// The policy: nobody needed to be asked.
    Policy,
    /// Whoever is at the client, which was asked to ask (MCP's elicitation).
    Elicitation,
    /// The client said in a second call that it is confirmed. A model can do that alone.
    ClientAsserted,
    /// Whoever is at a terminal, with this account.
    Terminal(Person),
    /// Whoever or whatever else it was.
    #[serde(untagged)]
    Other(String),
}

/// An account of the machine that the server runs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// Its number, as the kernel says.
    pub uid: u32,
    /// Its name, where it has one.
    pub account: String,
}

/// How a call ended, in the envelope's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// It has its answer.
    Success,
    /// It has none.
    Error,
    /// Somebody else held what it needed.
    Blocked,
    /// Somebody must say yes first.
    ConfirmationRequired,
}

/// A command line as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandUsed {
    /// Without secrets.
    pub command: String,
    /// Where it is known.
    pub exit_code: Option<i32>,
}

/// One call of a tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    /// The call's own.
    pub trace_id: String,
    /// As it names itself: `claude-code 2.1`.
    pub client: String,
    /// The version of MCP, or `cli`.
    pub protocol: String,
    /// The tool's own name; where there is no such tool, as the caller named it.
    pub tool: String,
    /// As the caller named it, where that is an alias of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_as: Option<String>,
    /// Where one was found for it.
    pub module: Option<ModuleUsed>,
    /// Where one was found for it.
    pub target: Option<TargetUsed>,
    /// Without secrets.
    pub arguments: Kept<Value>,
    /// Where the tool is known.
    pub risk: Option<Risk>,
    /// Whether it might.
    pub decision: Decision,
    /// Where anybody decided.
    pub decided_by: Option<DecidedBy>,
    /// SHA-256 of what somebody was asked: one question may have been about the same call on several hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The id of the change that it made.
    pub change: Option<String>,
    /// How it ended.
    pub status: CallStatus,
    /// Where it ended otherwise than well.
    pub error_code: Option<String>,
    /// Wall-clock milliseconds.
    pub duration_ms: u64,
    /// What ran.
    pub commands: Kept<Vec<CommandUsed>>,
}

/// What is done to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileChangeKind {
    /// It is written, all of it.
    Write,
    /// It is removed.
    Remove,
    /// It is made, as a directory.
    MakeDirectory,
}

/// A path that a change touches, with what it takes to put it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Absolute, on the target.
    pub path: String,
    /// The directory on the target that holds the copy.
    pub staging: String,
    /// Whose rights touch it.
    pub privilege: Privilege,
    /// Whether there was anything before.
    pub existed: bool,
    /// Of what was there, in hexadecimal digits.
    pub sha256_before: Option<String>,
    /// Of what is to be there, in hexadecimal digits.
    pub sha256_after: Option<String>,
    /// What is done.
    pub kind: FileChangeKind,
}

/// A change that is about to touch its target. On record before it does, with all that it takes to put it back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeBegun {
    /// The change's own.
    pub id: String,
    /// The call's.
    pub trace_id: String,
    /// As [`Call::client`].
    pub client: String,
    /// As [`Call::protocol`].
    pub protocol: String,
    /// The tool's name.
    pub tool: String,
    /// Whose tool it is.
    pub module: ModuleUsed,
    /// The machine.
    pub target: TargetUsed,
    /// Without secrets.
    pub arguments: Kept<Value>,
    /// The preview as it was shown, without secrets.
    pub plan: Kept<Value>,
    /// Of the whole plan, secrets and all, in hexadecimal digits.
    pub plan_sha256: String,
    /// After everything that raises it.
    pub risk: Risk,
    /// Names of the policy's rules that applied.
    pub rules: Kept<Vec<String>>,
    /// Whether it may.
    pub decision: Decision,
    /// Who said so.
    pub decided_by: Option<DecidedBy>,
    /// In the order of the steps. Never left out: a record that can't hold them is refused.
    pub files: Vec<FileChange>,
    /// Command lines that undo a step, for each step. Never left out.
    pub undo: Vec<Vec<String>>,
    /// Command lines that run after an undo. Never left out.
    pub after_undo: Vec<String>,
    /// Who makes the change. Filled in by whoever writes the record: what is here before is not looked at.
    #[serde(default)]
    pub process: Option<Process>,
}

/// How a change ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every step was done.
    Done,
    /// A step failed, and everything before it was put back.
    Undone,
    /// A step failed, and some of what was before it stays.
    PartlyUndone,
    /// The connection broke, and nobody knows. Nobody makes it any more, and it can be recovered.
    Uncertain,
}

/// The end of a change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeEnded {
    /// As in [`ChangeBegun::id`].
    pub id: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether a cancellation or the end of input came meanwhile.
    pub interrupted: bool,
    /// Counted from 0.
    pub failed_step: Option<u32>,
    /// Where it ended otherwise than well.
    pub error_code: Option<String>,
    /// Of the commands that ran, in order.
    pub exit_codes: Kept<Vec<i32>>,
    /// How many.
    pub steps_done: u32,
    /// What was put back.
    pub undone: Kept<Vec<String>>,
    /// What could not be put back.
    pub not_undone: Kept<Vec<String>>,
}

/// A change that its own process couldn't end was put back later.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeRecovered {
    /// As in [`ChangeBegun::id`].
    pub id: String,
    /// The account of whoever asked for it.
    pub by: String,
    /// What was put back.
    pub restored: Kept<Vec<String>>,
    /// What could not be put back.
    pub not_restored: Kept<Vec<String>>,
}

/// A new file continues the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotated {
    /// The name of the file before.
    pub from: String,
    /// The last record of that file.
    pub last_seq: u64,
}

/// Retention removed the oldest files. On record before it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Their names.
    pub files: Vec<String>,
    /// The last record of the last of them.
    pub up_to_seq: u64,
    /// That record's hash: what the oldest record that is left names as the one before it.
    pub last_hash: String,
}

/// What a crash left was put right.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mended {
    /// Of a last line without its end, which were cut off.
    pub bytes: u64,
    /// The last of the records that the head still names and that were lost: they had not been written through when
    /// the machine went down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_up_to_seq: Option<u64>,
}
