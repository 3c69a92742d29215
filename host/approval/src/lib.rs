//! Confirmation at a terminal. A call that must be confirmed waits in its server. A person at a terminal sees the plan
//! and decides, with `linux-sysadmin pending`, `approve` and `deny`.
//!
//! Server and terminal talk over a Unix socket in a directory that only the server's account can enter ([`directory`]),
//! with one line of JSON each way ([`message`]). The server checks who is at the other end before it tells anything
//! ([`listen`]). The terminal does the same ([`ask`]), because it must not show root the plan of another account's
//! server.
//!
//! A decision names the SHA-256 of the plan that was shown, so that it can't approve another plan.

#![forbid(unsafe_code)]

mod ask;
mod directory;
mod listen;
mod message;

pub use ask::{AskError, ServerCall, Servers};
pub use listen::{Deciders, ListenError, Listener};

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use host_audit::Person;
use host_base::Risk;
use host_gate::{EXPIRES, Question};
use std::time::{SystemTime, UNIX_EPOCH};

/// A call that waits for a decision, as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitingCall {
    /// The id: 16 hexadecimal digits in lower case.
    pub id: String,
    /// The tool that was called.
    pub tool: String,
    /// The module that the tool belongs to.
    pub module: String,
    /// The name of the machine that would be changed.
    pub target: String,
    /// The risk of the plan.
    pub risk: Risk,
    /// One sentence about the plan.
    pub summary: String,
    /// The name that the client gives itself.
    pub client: String,
    /// The time of the question, in seconds since 1970.
    pub asked_unix: u64,
    /// The time after which nothing can be decided, in seconds since 1970.
    pub expires_unix: u64,
    /// The question as the host wrote it from the plan: commands, diffs, risk and reasons, and how far the plan can be
    /// undone. It is empty in a list.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question: String,
    /// The plan as data. It is null in a list.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub preview: Value,
    /// The SHA-256 of the plan, which a decision names.
    pub sha256: String,
}

impl WaitingCall {
    /// The waiting call of a question that was asked at `since`.
    pub fn of(question: &Question, since: SystemTime) -> Self {
        let asked_unix = since.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self {
            id: question.id.clone(),
            tool: question.tool.clone(),
            module: question.module.clone(),
            target: question.target.clone(),
            risk: question.risk,
            summary: question.summary.clone(),
            client: question.client.clone(),
            asked_unix,
            expires_unix: asked_unix + EXPIRES.as_secs(),
            question: question.text.clone(),
            preview: question.preview.clone(),
            sha256: question.sha256.clone(),
        }
    }
}

/// The calls that wait in this server.
pub trait WaitingCalls: Send + Sync {
    /// All waiting calls, the oldest first.
    fn waiting(&self) -> Vec<WaitingCall>;

    /// Decides a call, at most once, if its plan still has this SHA-256. It must not block. The future tells what comes of a
    /// yes, once that is known.
    fn decide(
        &self,
        id: &str,
        sha256: &str,
        yes: bool,
        by: Person,
    ) -> Result<BoxFuture<'static, Beginning>, Refused>;
}

/// The consequence of a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beginning {
    /// The change is running.
    Running,
    /// Nothing is changed, for this reason. What was shown may not be what could be done by then.
    Nothing(String),
    /// It isn't known yet: the change may wait for another one on the same target.
    #[default]
    Unknown,
}

/// The reason why a decision was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Refused {
    /// There is no call with this id, or it doesn't wait any more.
    #[error("no call of this id waits any more")]
    Unknown,
    /// No decision came in time.
    #[error("the call has expired: nothing was changed, and the client has to call again")]
    Expired,
    /// Another decision about the same call was taken first.
    #[error("the call has been decided already")]
    Decided,
    /// The plan that waits isn't the one that was shown.
    #[error("the plan that waits is not the one that was shown: nothing was decided")]
    OtherPlan,
}

#[cfg(test)]
mod tests;
