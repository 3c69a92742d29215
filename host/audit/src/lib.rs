//! The audit log: every call and every change on record, in a chain that shows what was done to it.
//!
//! The log of an account is `$XDG_STATE_HOME/linux-sysadmin/audit.jsonl`: a record a line, canonical JSON ([RFC 8785]),
//! each with its number, its time, the hash of the record before it, and its own hash, SHA-256 over all its other
//! members. A line that was edited, removed, inserted or moved breaks the chain there; one that was cut off at the
//! end is missed by `audit.head`, which names the last record; and the journal, another account's log, is told of
//! heads as well, for who rewrites all of it.
//!
//! A call is on record once it has ended ([`Event::Call`]). A change is on record before it touches its target
//! ([`Event::ChangeBegun`], [`Durability::Synced`]) with all that it takes to put it back, and again at its end
//! ([`Event::ChangeEnded`]). A change that has no end, and whose process is gone, was left half-done: [`unfinished`]
//! finds it. **Where a record can't be written, what it tells of doesn't happen.**
//!
//! Several servers write one chain: [`Audit::append`] takes a lock on `audit.lock`, reads the end of the file where
//! another process has added to it, writes one line in one write, and then the head. What fails is cut back. A line
//! that a killed process left half-written is cut off by the next writer, which puts that on record
//! ([`Event::Mended`]). A file that is full is put aside as `audit-FIRST-LAST.jsonl`, and the new one continues the
//! chain ([`Event::Rotated`]); so many of them are kept, and which were removed is on record ([`Event::Dropped`]).
//!
//! Nothing here hides a secret: whoever records leaves it out. Reading ([`Snapshot`]) takes a shared lock for as long as
//! it takes to open the files, and reads what was there then.
//!
//! [RFC 8785]: https://www.rfc-editor.org/rfc/rfc8785
//!
//! The crate records what it is told, and decides nothing.
#![forbid(unsafe_code)]

mod bound;
mod canonical;
mod config;
mod event;
#[cfg(any(test, feature = "examples"))]
pub mod examples;
mod files;
mod head;
mod heads;
mod journal;
mod lock;
mod process;
mod record;
mod snapshot;
mod tail;
#[cfg(test)]
mod tests;
mod unfinished;
mod verify;
mod writer;

pub use bound::{Kept, LONGEST_LINE, Omitted};
pub use canonical::canonical;
pub use config::Config;
pub use event::{
    Call, CallStatus, ChangeBegun, ChangeEnded, ChangeRecovered, CommandUsed, DecidedBy, Decision, Dropped,
    Event, FileChange, FileChangeKind, Mended, ModuleUsed, Outcome, Person, Rotated, TargetUsed,
};
pub use heads::Heads;
pub use journal::SOCKET as JOURNAL;
pub use process::{Life, Process};
pub use record::{Fault, Record};
pub use snapshot::{Records, Snapshot, Unreadable};
pub use unfinished::{Left, Unfinished, left_lately};
pub use verify::{Broken, Note, Verified, VerifyError, unfinished, verify};
pub use writer::{Appended, Audit, Durability, directory};

use std::io;
use std::path::{Path, PathBuf};

/// How large a log gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes from which a file is full.
    pub rotate_bytes: u64,
    /// Full files that are kept.
    pub keep: usize,
}

/// Why there is no record, or why the log can't be read.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The system said no.
    #[error("the audit log: {} can't be {}: {source}", path.display(), participle(action))]
    Io {
        /// What was tried: `open`, `read`, `write`, …
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Somebody else may have put it there.
    #[error("the audit log: {} is not trusted: {reason}", path.display())]
    Untrusted {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Another process holds the log, and doesn't go on.
    #[error(
        "the audit log: another process holds {} and doesn't let go of it; `fuser {}` names it",
        path.display(), path.display()
    )]
    Locked {
        /// The lock.
        path: PathBuf,
    },
    /// What the chain would have to continue is not what was written.
    #[error(
        "the audit log is damaged: {place}: expected {expected}, found {found}. See `linux-sysadmin audit verify`; \
         to begin a new log, move all of audit*.jsonl and audit.head to another directory"
    )]
    Corrupt {
        /// File and line.
        place: String,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// Records are missing from the end.
    #[error(
        "the audit log in {} was truncated: audit.head names record {named}, the last one is {last}. See `linux-sysadmin \
         audit verify`; to begin a new log, move all of audit*.jsonl and audit.head to another directory",
        directory.display()
    )]
    Truncated {
        /// The log's.
        directory: PathBuf,
        /// The record that the head names.
        named: u64,
        /// The last record that is there; 0 where there is none.
        last: u64,
    },
    /// Not even without what may be left out is it short enough.
    #[error("the audit log: the record would be {bytes} bytes long, and {LONGEST_LINE} are the most")]
    TooLong {
        /// So long.
        bytes: usize,
    },
    /// It has no written form.
    #[error("the audit log: the event can't be written: {0}")]
    Unwritable(String),
}

impl AuditError {
    fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }
}

impl From<serde_json::Error> for AuditError {
    fn from(error: serde_json::Error) -> Self {
        Self::Unwritable(error.to_string())
    }
}

impl From<canonical::NotCanonical> for AuditError {
    fn from(error: canonical::NotCanonical) -> Self {
        Self::Unwritable(error.to_string())
    }
}

fn participle(action: &str) -> &str {
    match action {
        "open" => "opened",
        "read" => "read",
        "write" => "written",
        "create" => "created",
        "lock" => "locked",
        "rename" => "renamed",
        "mend" => "mended",
        other => other,
    }
}
