//! Why something couldn't be done: what the envelope of an error is made of.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::privilege::Privilege;

/// The code where another account's rights can't be had.
pub const PRIVILEGE_REQUIRED: &str = "PRIVILEGE_REQUIRED";

/// Of a change that was on its way when the connection went.
const CHANGE_UNCERTAIN: &str = "CHANGE_UNCERTAIN";

/// The categories of the envelope, with what they mean for a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Permission denied, no sudo.
    Privilege,
    /// No such package, unit, user, file, tool.
    NotFound,
    /// Unmet dependencies, conflicts.
    Dependency,
    /// Disk full, out of memory.
    Resource,
    /// Somebody else holds it.
    Lock,
    /// Unreachable, name not resolved.
    Network,
    /// Longer than its duration category allows.
    Timeout,
    /// The caller's input.
    Validation,
    /// The target isn't in a state that allows it.
    State,
    /// No grant allows it.
    Denied,
    /// A defect of a module or of the host.
    Internal,
    /// None of these.
    Other,
}

impl Category {
    /// Whether the same call may succeed later without anybody doing anything.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Network | Self::Timeout)
    }
}

/// A stable code, a category, a sentence, and what to do about it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// Upper snake case.
    pub code: String,
    /// Decides whether a retry makes sense.
    pub category: Category,
    /// One sentence for a person.
    pub message: String,
    /// A step each.
    pub remediation: Vec<String>,
    /// Further members of the envelope, as `lock_info`: of the host's own problems only.
    pub details: Box<Map<String, Value>>,
}

impl Problem {
    /// `code` in upper snake case.
    pub fn new(code: &str, category: Category, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            category,
            message: message.into(),
            remediation: Vec::new(),
            details: Box::default(),
        }
    }

    /// Adds a step that a person or a model can take.
    pub fn remedy(mut self, step: impl Into<String>) -> Self {
        self.remediation.push(step.into());
        self
    }

    /// Adds a member of the envelope.
    pub fn detail(mut self, name: &str, value: Value) -> Self {
        self.details.insert(name.to_owned(), value);
        self
    }

    /// Says what needed another account's rights, where those couldn't be had.
    pub fn needed_for(mut self, what: &str, privilege: &Privilege) -> Self {
        if self.code == PRIVILEGE_REQUIRED {
            let account = privilege.account().unwrap_or("another account");
            self.message = format!("{what} as {account}: {}", self.message);
        }
        self
    }

    /// Of a change that may have been made, in part or not at all.
    pub fn uncertain(message: String) -> Self {
        Self::new(CHANGE_UNCERTAIN, Category::Network, message).detail("uncertain", true.into())
    }

    /// Whether it is [`Problem::uncertain`].
    pub fn is_uncertain(&self) -> bool {
        self.code == CHANGE_UNCERTAIN
    }

    /// Whether there was nobody to ask, or nobody any more.
    pub fn is_of_the_line(&self) -> bool {
        self.is_uncertain() || matches!(self.code.as_str(), "CONNECTION_LOST" | "CONNECTION_FAILED")
    }

    /// From the system's own error about `what`.
    pub fn io(what: &str, error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        let (code, category) = match error.kind() {
            ErrorKind::NotFound => ("FILE_NOT_FOUND", Category::NotFound),
            ErrorKind::PermissionDenied => ("PERMISSION_DENIED", Category::Privilege),
            ErrorKind::StorageFull | ErrorKind::OutOfMemory => ("OUT_OF_SPACE", Category::Resource),
            _ => ("IO_ERROR", Category::Other),
        };
        Self::new(code, category, format!("{what}: {error}"))
    }
}
