//! The audit log records every call and every change, in a chain of hashes that shows later edits.
//!
//! The log of an account is `$XDG_STATE_HOME/linux-sysadmin/audit.jsonl`. It holds one record per line, as canonical JSON
//! ([RFC 8785]). Each record has a number, a time, the hash of the record before it, and its own hash: SHA-256 over all
//! its other members. A line that was edited, removed, inserted or moved breaks the chain at that line. `audit.head` names
//! the last record, so a log whose end was cut off is noticed. The writer also sends heads to the system's journal, which
//! belongs to another account: they expose somebody who writes the whole log anew.
//!
//! A call is recorded when it has ended ([`Event::Call`]). A change is recorded before it touches its target
//! ([`Event::ChangeBegun`], [`Durability::Synced`]), with everything that it takes to put it back, and again at its end
//! ([`Event::ChangeEnded`]). A change without an end whose process is gone was left half-done; [`unfinished`] finds it.
//! **Where a record can't be written, the caller must not do what the record tells of.**
//!
//! Several servers write one chain. [`AuditLog::append`] takes a lock on `audit.lock`, reads the end of the file where
//! another process has added to it, writes the record in one write, and then writes the head. Where a write fails, it cuts
//! the file back. The next writer cuts off a line that a killed process left half-written, and records that
//! ([`Event::Mended`]). A full file is put aside as `audit-FIRST-LAST.jsonl`, and a new file continues the chain
//! ([`Event::Rotated`]). The writer keeps a limited number of full files, and records which ones it removed
//! ([`Event::Dropped`]).
//!
//! A reader ([`Snapshot`]) holds a shared lock while it opens the files, and reads what they held at that moment.
//!
//! The crate records what it is told, and decides nothing. It hides no secret: whoever records an event leaves secrets out.
//!
//! [RFC 8785]: https://www.rfc-editor.org/rfc/rfc8785
#![forbid(unsafe_code)]

mod canonical;
mod config;
mod event;
#[cfg(any(test, feature = "examples"))]
pub mod examples;
mod files;
mod head;
mod journal;
mod journal_heads;
mod lock;
mod process;
mod record;
mod size_limit;
mod snapshot;
mod tail;
#[cfg(test)]
mod tests;
mod unfinished;
mod verify;
mod writer;

pub use canonical::canonical;
pub use config::Config;
pub use event::{
    Call, CallStatus, ChangeBegun, ChangeEnded, ChangeRecovered, CommandUsed, DecidedBy, Decision, Dropped,
    Event, FileAttributes, FileChange, FileChangeKind, Mended, ModuleUsed, Outcome, Person, Rotated,
    TargetUsed,
};
pub use journal::SOCKET as JOURNAL;
pub use journal_heads::JournalHeads;
pub use process::{Liveness, Process};
pub use record::{Mismatch, Record};
pub use size_limit::{LONGEST_LINE, MaybeOmitted, Omitted};
pub use snapshot::{Records, Snapshot, UnreadableLine};
pub use unfinished::{Leftover, Unfinished, recent_leftovers};
pub use verify::{Damage, Note, Verified, VerifyError, unfinished, verify};
pub use writer::{AuditLog, ChainPosition, Durability, directory};

use std::io;
use std::path::{Path, PathBuf};

/// The limits on a log's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The size in bytes from which a file is full.
    pub rotate_bytes: u64,
    /// The number of full files that are kept.
    pub keep: usize,
}

/// The reason why a record can't be written, or why the log can't be read.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// An operation on a file or directory failed.
    #[error("the audit log: {} can't be {}: {source}", path.display(), participle(action))]
    Io {
        /// The operation that failed: `open`, `read`, `write`, …
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another account may have put the file or directory there, or may have written to it.
    #[error("the audit log: {} is not trusted: {reason}", path.display())]
    Untrusted {
        /// The file or directory.
        path: PathBuf,
        /// The reason why the file or directory isn't trusted.
        reason: &'static str,
    },
    /// Another process held the lock for longer than this one waits.
    #[error(
        "the audit log: another process holds the lock {} and doesn't release it; `fuser {}` names that process",
        path.display(), path.display()
    )]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The end of the log, which the next record would continue, isn't what was written.
    #[error(
        "the audit log is damaged: {place}: expected {expected}, found {found}. See `linux-sysadmin audit verify`; \
         to begin a new log, move all of audit*.jsonl and audit.head to another directory"
    )]
    Corrupt {
        /// The file and the line.
        place: String,
        /// The contents that should be there.
        expected: String,
        /// The contents that are there instead.
        found: String,
    },
    /// Records are missing from the end.
    #[error(
        "the audit log in {} was truncated: audit.head names record {named}, the last one is {last}. See `linux-sysadmin \
         audit verify`; to begin a new log, move all of audit*.jsonl and audit.head to another directory",
        directory.display()
    )]
    Truncated {
        /// The log's directory.
        directory: PathBuf,
        /// The number of the record that the head names.
        named: u64,
        /// The number of the last record in the log; 0 where there is none.
        last: u64,
    },
    /// The record is too long, even without the members that may be left out.
    #[error("the audit log: the record would be {bytes} bytes long, and {LONGEST_LINE} are the most")]
    TooLong {
        /// The length of the record's line.
        bytes: usize,
    },
    /// The event can't be written as JSON.
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
