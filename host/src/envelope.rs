//! The response envelope: one shape for every answer of every tool.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::problem::{Category, Problem};
use crate::redact::{excerpt, redact_value};
use crate::visible::make_visible;

/// What a message may hold of text that a module wrote.
const MESSAGE_CHARACTERS: usize = 4000;
/// Notes, and steps of remediation.
const MOST_NOTES: usize = 20;

/// The code of a change that a person has to confirm.
pub const CONFIRMATION_REQUIRED: &str = "CONFIRMATION_REQUIRED";

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// `data` holds the answer.
    Success,
    /// `error_code` and `message` say why not.
    Error,
    /// Somebody else holds what the call needs.
    Blocked,
    /// Nothing was changed: a person has to say yes first.
    ConfirmationRequired,
}

/// One answer. Fields that don't apply are left out, but for `command_executed`.
#[derive(Clone, Debug, Serialize)]
pub struct Envelope {
    /// How the call ended.
    pub status: Status,
    /// The tool's name.
    pub tool: String,
    /// The target's name: `localhost`, or a remote host's.
    pub target_host: String,
    /// Wall-clock milliseconds.
    pub duration_ms: u64,
    /// The command line that ran; `multiple (…)` names the programs where there were several.
    pub command_executed: Option<String>,
    /// Of listings: how many there were before `limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Of listings: how many are in `data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<u64>,
    /// Of listings: whether there were more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// Of listings: the text that was looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Of analyses: an interpretation to build on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Of analyses: `info`, `warning`, `high` or `critical`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// The connection to the target was lost, and is back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub connection_restored: bool,
    /// For so long it was gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_downtime_seconds: Option<f64>,
    /// The tool's own answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// What the caller should know besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Nothing was changed, as was asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Of dry runs: the plan. What it holds is safe to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<Value>,
    /// Why there is no answer.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// The part of the envelope that only errors have.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// Machine-readable.
    pub error_code: String,
    /// The kind of error.
    pub error_category: Category,
    /// For a person.
    pub message: String,
    /// What retrying did or may do; not where somebody else holds what is needed.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// A step each.
    pub remediation: Vec<String>,
    /// What only this kind of problem has, as `lock_info`.
    #[serde(flatten)]
    pub details: Map<String, Value>,
}

/// Whether trying again helps.
#[derive(Clone, Debug, Serialize)]
pub struct Retry {
    /// Whether the same call may succeed later.
    pub transient: bool,
    /// Whether the host tried again by itself.
    pub retried: bool,
    /// How often.
    pub retry_count: u32,
}

impl Envelope {
    /// An empty success; the caller fills in what the tool said.
    pub fn success(
        tool: &str,
        target_host: &str,
        started: Instant,
        command_executed: Option<String>,
    ) -> Self {
        Self {
            status: Status::Success,
            tool: tool.to_owned(),
            target_host: target_host.to_owned(),
            duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            command_executed,
            total: None,
            returned: None,
            truncated: None,
            filter: None,
            summary: None,
            severity: None,
            connection_restored: false,
            connection_downtime_seconds: None,
            data: None,
            notes: Vec::new(),
            dry_run: false,
            preview: None,
            error: None,
        }
    }

    /// An error. Whatever a module or a target wrote into the problem is bounded and made visible here.
    pub fn failure(
        tool: &str,
        target_host: &str,
        started: Instant,
        command_executed: Option<String>,
        problem: Problem,
    ) -> Self {
        let status = match problem.category {
            Category::Lock => Status::Blocked,
            _ if problem.code == CONFIRMATION_REQUIRED => Status::ConfirmationRequired,
            _ => Status::Error,
        };
        let failure = Failure {
            error_code: excerpt(&problem.code, 64),
            error_category: problem.category,
            message: excerpt(&problem.message, MESSAGE_CHARACTERS),
            retry: (status == Status::Error).then(|| Retry {
                // What may have been done is not to be done again before somebody has looked.
                transient: problem.category.is_transient() && problem.details.get("uncertain").is_none(),
                retried: false,
                retry_count: 0,
            }),
            remediation: problem
                .remediation
                .iter()
                .take(MOST_NOTES)
                .map(|step| excerpt(step, MESSAGE_CHARACTERS))
                .collect(),
            details: *problem.details,
        };
        Self { status, error: Some(failure), ..Self::success(tool, target_host, started, command_executed) }
    }

    /// Says for how long the connection was gone, where it was lost and had back while the call ran.
    pub fn restored(&mut self, gone: Option<Duration>) {
        self.connection_restored = gone.is_some();
        self.connection_downtime_seconds = gone.map(|gone| (gone.as_secs_f64() * 10.0).round() / 10.0);
    }

    /// Whether the tool answered an error.
    pub fn is_error(&self) -> bool {
        self.status != Status::Success
    }

    /// As JSON, with everything that somebody else wrote redacted and made visible.
    pub fn into_json(mut self) -> Map<String, Value> {
        // Redacted first: an escape in the middle of a secret would hide it.
        let show = |value: &mut Value| {
            redact_value(value);
            make_visible(value);
        };
        if let Some(data) = &mut self.data {
            show(data);
        }
        if let Some(failure) = &mut self.error {
            failure.details.values_mut().for_each(show);
        }
        for text in [&mut self.summary, &mut self.severity, &mut self.command_executed, &mut self.filter] {
            *text = text.take().map(|text| excerpt(&text, MESSAGE_CHARACTERS));
        }
        self.notes.truncate(MOST_NOTES);
        for note in &mut self.notes {
            *note = excerpt(note, MESSAGE_CHARACTERS);
        }
        self.tool = excerpt(&self.tool, 80);
        match serde_json::to_value(self) {
            Ok(Value::Object(members)) => members,
            // Unreachable: every field serializes, and a struct is an object.
            _ => Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_five_core_fields_are_always_there_and_duration_is_a_number() {
        let envelope = Envelope::success("t", "localhost", Instant::now(), None).into_json();
        let keys: Vec<_> = envelope.keys().map(String::as_str).collect();
        assert_eq!(keys, ["status", "tool", "target_host", "duration_ms", "command_executed"]);
        assert!(envelope["duration_ms"].is_u64());
        assert!(envelope["command_executed"].is_null());
    }

    #[test]
    fn an_error_has_each_field_of_the_schema() {
        let problem = Problem::new("X", Category::Timeout, "slow\u{1b}").remedy("wait");
        let envelope = Envelope::failure("t", "localhost", Instant::now(), None, problem).into_json();
        assert_eq!(envelope["status"], "error");
        assert_eq!(envelope["error_code"], "X");
        assert_eq!(envelope["error_category"], "timeout");
        assert_eq!(envelope["message"], "slow\\u{1b}");
        assert_eq!(envelope["transient"], true);
        assert_eq!(envelope["retried"], false);
        assert_eq!(envelope["retry_count"], 0);
        assert_eq!(envelope["remediation"], serde_json::json!(["wait"]));
        assert!(!envelope.contains_key("data"));
    }

    #[test]
    fn no_part_of_an_answer_shows_a_secret_not_even_where_it_is_cut() {
        let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
        let long = format!("{}{secret}", "x ".repeat(MESSAGE_CHARACTERS / 2 - 5));
        let problem = Problem::new("X", Category::Other, long.clone())
            .remedy(secret)
            .detail("lock_info", serde_json::json!({"resource": secret}));
        let mut envelope = Envelope::failure("t", "localhost", Instant::now(), Some(secret.into()), problem);
        envelope.summary = Some(long.clone());
        envelope.filter = Some(secret.into());
        envelope.notes = vec![long];
        envelope.data = Some(serde_json::json!({"password": "hunter2", "list": [format!("a {secret}")]}));
        let shown = serde_json::to_string(&envelope.into_json()).unwrap();
        assert!(!shown.contains("ghp_") && !shown.contains("hunter2"), "{shown}");
        assert!(shown.contains(r#""list":["a [redacted]"]"#), "{shown}");
    }

    #[test]
    fn what_somebody_else_holds_is_blocked_and_not_an_error() {
        let problem = Problem::new("RESOURCE_LOCKED", Category::Lock, "held");
        let envelope = Envelope::failure("t", "localhost", Instant::now(), None, problem);
        assert!(envelope.is_error());
        let envelope = envelope.into_json();
        assert_eq!(envelope["status"], "blocked");
        assert!(!envelope.contains_key("transient"));
    }
}
