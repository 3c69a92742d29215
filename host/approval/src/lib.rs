//! The terminal's way of a decision: a call that must be confirmed waits in its server, and a person elsewhere sees the
//! plan and decides, with `linux-sysadmin pending`, `approve` and `deny`.
//!
//! The way between the two is a Unix socket in a directory that only the server's account can enter ([`directory`]),
//! one line of JSON each way ([`message`]). The server looks who is at the other end before it tells anything
//! ([`listen`]), and so does the one who asks ([`ask`]): as root it must not be shown somebody else's plan.
//!
//! A decision names the plan that was shown by its SHA-256, so that nothing else is approved than what was seen.

#![forbid(unsafe_code)]

mod ask;
mod directory;
mod listen;
mod message;

pub use ask::{AskError, Pending, Servers};
pub use listen::{Deciders, ListenError, Listener};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use host_audit::Person;
use host_base::Risk;
use host_gate::{EXPIRES, Question};
use std::time::{SystemTime, UNIX_EPOCH};

/// A call that waits for a decision, as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    /// 16 hexadecimal digits, lower case.
    pub id: String,
    /// That was called.
    pub tool: String,
    /// Whose tool it is.
    pub module: String,
    /// What would be changed: the target's name.
    pub target: String,
    /// Of the plan.
    pub risk: Risk,
    /// One sentence.
    pub summary: String,
    /// Who called, in its own words.
    pub client: String,
    /// Seconds since 1970.
    pub asked_unix: u64,
    /// Seconds since 1970; from then on nothing can be decided.
    pub expires_unix: u64,
    /// The whole text, written by the host from the plan: commands, differences, risk and why, what undo there is. Not
    /// in a list.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question: String,
    /// The same as data. Not in a list.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub preview: Value,
    /// Of the plan: what a decision is bound to.
    pub sha256: String,
}

impl Waiting {
    /// A question that waits since then.
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
pub trait Parked: Send + Sync {
    /// All of them, the oldest first.
    fn waiting(&self) -> Vec<Waiting>;

    /// Decides one, at most once, if its plan is still the one of this SHA-256. Must not block.
    fn decide(&self, id: &str, sha256: &str, yes: bool, by: Person) -> Result<(), Refused>;
}

/// Why a decision was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Refused {
    /// There is none, or it is over and forgotten.
    #[error("no call of this id waits any more")]
    Unknown,
    /// Nobody decided in time.
    #[error("the call has expired: nothing was changed, and the client has to call again")]
    Expired,
    /// Somebody was faster.
    #[error("the call has been decided already")]
    Decided,
    /// What waits isn't what was shown.
    #[error("the plan that waits is not the one that was shown: nothing was decided")]
    OtherPlan,
}

#[cfg(test)]
mod tests;
