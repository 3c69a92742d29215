//! The reason why something couldn't be done. The envelope of an error is made from it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::privilege::Privilege;

/// The error code where another account's rights are not available.
pub const PRIVILEGE_REQUIRED: &str = "PRIVILEGE_REQUIRED";

/// The error code of a change that was under way when the connection was lost.
const CHANGE_UNCERTAIN: &str = "CHANGE_UNCERTAIN";
/// The error code of a command that another process has ended.
pub const COMMAND_KILLED: &str = "COMMAND_KILLED";

/// The categories of the envelope, which say whether a retry makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// The account lacks a right, or sudo refuses.
    Privilege,
    /// There is no such package, unit, user, file or tool.
    NotFound,
    /// A dependency is missing, or packages conflict.
    Dependency,
    /// The disk is full, or the memory.
    Resource,
    /// Another process or person holds what is needed.
    Lock,
    /// The target can't be reached, or its name isn't resolved.
    Network,
    /// The work took longer than its duration category allows.
    Timeout,
    /// The caller's input is wrong.
    Validation,
    /// The target is in a state that doesn't allow it.
    State,
    /// No grant allows it.
    Denied,
    /// A defect of a module or of the host.
    Internal,
    /// The problem is of no other category.
    Other,
}

impl Category {
    /// Says whether the same call may succeed later by itself.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Network | Self::Timeout)
    }
}

/// A stable code, a category, a sentence, and steps that help.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// The error code, in upper snake case.
    pub code: String,
    /// The category, which decides whether a retry makes sense.
    pub category: Category,
    /// One sentence for a person.
    pub message: String,
    /// Steps that help, one in each string.
    pub remediation: Vec<String>,
    /// The further members of the envelope, such as `lock_info`. Only the host's own problems have some.
    pub details: Box<Map<String, Value>>,
}

impl Problem {
    /// Makes a problem. `code` is in upper snake case.
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

    /// Puts before the message what needed the other account's rights. Only changes a problem with
    /// [`PRIVILEGE_REQUIRED`].
    pub fn needed_for(mut self, what: &str, privilege: &Privilege) -> Self {
        if self.code == PRIVILEGE_REQUIRED {
            let account = privilege.account().unwrap_or("another account");
            self.message = format!("{what} as {account}: {}", self.message);
        }
        self
    }

    /// Makes the problem of a change that may have been made, in part or not at all.
    pub fn uncertain(message: String) -> Self {
        Self::new(CHANGE_UNCERTAIN, Category::Network, message).detail("uncertain", true.into())
    }

    /// Says whether [`Problem::uncertain`] made it.
    pub fn is_uncertain(&self) -> bool {
        self.code == CHANGE_UNCERTAIN
    }

    /// Says whether the target couldn't be reached, or the connection was lost.
    pub fn is_connection_failure(&self) -> bool {
        self.is_uncertain() || matches!(self.code.as_str(), "CONNECTION_LOST" | "CONNECTION_FAILED")
    }

    /// Makes a problem from the system's own error about `what`.
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
