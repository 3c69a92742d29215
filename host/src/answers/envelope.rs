//! The response envelope: one shape for every answer of every tool.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::remediation::{self, RemediationContext};
use crate::retry::RetrySummary;
use host_base::problem::{Category, Problem};
use host_gate::CONFIRMATION_REQUIRED;
use host_text::redact::{excerpt, redact_value};
use host_text::visible::make_visible;

/// The number of characters of a message.
const MESSAGE_CHARACTERS: usize = 4000;
/// The number of notes, and that of remediation steps.
const MAX_NOTES: usize = 20;

/// The members of an envelope that each form for people writes in a place of its own, or leaves out since they tell nobody
/// anything. All others are written as they are.
pub const TOLD_APART: [&str; 27] = [
    "status",
    "tool",
    "target_host",
    "duration_ms",
    "command_executed",
    "total",
    "returned",
    "truncated",
    "filter",
    "summary",
    "severity",
    "connection_restored",
    "connection_downtime_seconds",
    "data",
    "notes",
    "dry_run",
    "needs_confirmation",
    "retry_count",
    "attempts",
    "job_id",
    "hosts",
    "error_code",
    "error_category",
    "message",
    "remediation",
    "transient",
    "retried",
];

/// The status of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// `data` holds the answer.
    Success,
    /// `error_code` and `message` say why there is no answer.
    Error,
    /// Another program or call holds a lock on what the call needs.
    Blocked,
    /// The plan waits for a person's yes, and no change was made.
    ConfirmationRequired,
    /// The call goes on as a job.
    Running,
}

/// The answer to a call. Fields that don't apply are left out, except `command_executed`.
#[derive(Clone, Debug, Serialize)]
pub struct Envelope {
    /// The status of the call.
    pub status: Status,
    /// The tool's name.
    pub tool: String,
    /// The target's name: `localhost`, or a remote host's.
    pub target_host: String,
    /// The duration of the call in milliseconds.
    pub duration_ms: u64,
    /// The command line that ran; `multiple (…)` names the programs where there were several.
    pub command_executed: Option<String>,
    /// The number of items before `limit`, in a listing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// The number of items in `data`, in a listing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<u64>,
    /// Whether there are more items, in a listing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// The text that the items were filtered by, in a listing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// The meaning of the data, in an analysis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The severity in an analysis: `info`, `warning`, `high` or `critical`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// True where the connection to the target was lost and restored during the call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub connection_restored: bool,
    /// The time for which the connection was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_downtime_seconds: Option<f64>,
    /// The tool's own answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Notes for the caller.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// True where the call was a dry run, which changes nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The plan, in a dry run. The gate has taken secrets out of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<Value>,
    /// Whether the change itself would need a confirmation, in a dry run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub needs_confirmation: bool,
    /// The failed attempts before a success.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// The id of the job, where the call goes on as one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The outcome on each host, in a call on several hosts.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub multi_host: Option<MultiHostInfo>,
    /// The reason why there is no answer.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// The part of the envelope that only answers of several hosts have.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MultiHostInfo {
    /// The numbers of hosts on which the call succeeded and failed.
    pub hosts: HostCounts,
    /// The failures. Hosts that failed for the same reason stand together: `hosts`, `error_code`, `message`, `remediation`
    /// and the other details of their own envelopes. In a message `{host}` stands for the host's name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Value>,
    /// The hosts on which nothing was begun, because a change had failed on another one before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_begun: Vec<String>,
    /// The hosts on which a change was done before it failed on another one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<String>,
}

/// Numbers of hosts.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct HostCounts {
    /// The number of hosts that the call names.
    pub total: usize,
    /// The number of hosts on which the call succeeded.
    pub succeeded: usize,
    /// The number of hosts on which the call failed.
    pub failed: usize,
}

/// The part of the envelope that only errors have.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// The error's stable code.
    pub error_code: String,
    /// The kind of error.
    pub error_category: Category,
    /// The message for a person.
    pub message: String,
    /// Whether trying again may help. `None` where the call is blocked or needs a confirmation.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// The steps that may help.
    pub remediation: Vec<String>,
    /// Details that only this kind of problem has, such as `lock_info`.
    #[serde(flatten)]
    pub details: Map<String, Value>,
}

/// Whether trying again may help, and what the host has tried.
#[derive(Clone, Debug, Serialize)]
pub struct Retry {
    /// Whether the same call may succeed later.
    pub transient: bool,
    /// Whether the host tried again by itself.
    pub retried: bool,
    /// The attempts of the host.
    #[serde(flatten)]
    pub retries: Retries,
}

/// The attempts that the host made by itself after the first.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Retries {
    /// The number of attempts after the first.
    pub retry_count: u32,
    /// The attempts that failed, each with `after_seconds`, `error_code` and `message`. Empty where the first attempt was
    /// the only one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Value>,
}

impl Envelope {
    /// A success without data. The caller of this function fills it in.
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
            needs_confirmation: false,
            retries: None,
            job_id: None,
            multi_host: None,
            error: None,
        }
    }

    /// An error. Text that a module or a target wrote is shortened here, and its hidden characters are made visible.
    pub fn failure(
        tool: &str,
        target_host: &str,
        started: Instant,
        command_executed: Option<String>,
        problem: Problem,
    ) -> Self {
        let mut problem = remediation::attach(
            problem,
            &RemediationContext { host: target_host, ..RemediationContext::default() },
            |_| Vec::new(),
        );
        let retries = own_attempts(&mut problem.details);
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
                // Where a change may have been made, somebody has to look before the call is made again.
                transient: problem.category.is_transient() && problem.details.get("uncertain").is_none(),
                retried: retries.retry_count > 0,
                retries,
            }),
            remediation: problem
                .remediation
                .iter()
                .take(MAX_NOTES)
                .map(|step| excerpt(step, MESSAGE_CHARACTERS))
                .collect(),
            details: *problem.details,
        };
        Self { status, error: Some(failure), ..Self::success(tool, target_host, started, command_executed) }
    }

    /// The answer of a call that goes on as this job.
    pub fn running(tool: &str, target_host: &str, started: Instant, job: &str) -> Self {
        let note = format!(
            "it goes on as job {job}: the tools about jobs wait for it, give what it says, and end it"
        );
        Self {
            status: Status::Running,
            job_id: Some(job.to_owned()),
            notes: vec![note],
            ..Self::success(tool, target_host, started, None)
        }
    }

    /// Adds a note of the host before all other notes.
    pub fn add_note(&mut self, note: Option<String>) {
        self.notes.splice(0..0, note);
    }

    /// Notes how long the connection was lost, where it was lost and restored during the call.
    pub fn set_connection_downtime(&mut self, downtime: Option<Duration>) {
        self.connection_restored = downtime.is_some();
        self.connection_downtime_seconds =
            downtime.map(|downtime| (downtime.as_secs_f64() * 10.0).round() / 10.0);
    }

    /// Adds the attempts before this answer. The attempts that the problem itself lists, such as those to connect, come
    /// after them.
    pub fn add_retries(&mut self, summary: RetrySummary) {
        if summary.failed.is_empty() {
            return;
        }
        let mut attempts: Vec<Value> = summary.failed.iter().map(|attempt| json!(attempt)).collect();
        let mut retry_count = summary.retries;
        match self.error.as_mut().and_then(|error| error.retry.as_mut()) {
            Some(retry) => {
                if !retry.retries.attempts.is_empty() {
                    attempts.pop();
                    attempts.append(&mut retry.retries.attempts);
                    retry_count += retry.retries.retry_count;
                }
                retry.retried = retry_count > 0;
                retry.retries = Retries { retry_count, attempts };
            }
            None => self.retries = Some(Retries { retry_count, attempts }),
        }
    }

    /// Whether the call has failed.
    pub fn is_error(&self) -> bool {
        !matches!(self.status, Status::Success | Status::Running)
    }

    /// The envelope as JSON. Secrets are taken out of text from modules and targets, and hidden characters are made visible.
    pub fn into_json(mut self) -> Map<String, Value> {
        // Redaction comes first: it would miss a secret with an escape in the middle.
        let show = |value: &mut Value| {
            redact_value(value);
            make_visible(value);
        };
        if let Some(data) = &mut self.data {
            show(data);
        }
        if let Some(preview) = &mut self.preview {
            make_visible(preview);
        }
        self.multi_host.iter_mut().flat_map(|info| &mut info.failures).for_each(show);
        if let Some(failure) = &mut self.error {
            failure.details.values_mut().for_each(show);
            failure.retry.iter_mut().flat_map(|retry| &mut retry.retries.attempts).for_each(show);
        }
        self.retries.iter_mut().flat_map(|retries| &mut retries.attempts).for_each(show);
        for text in [&mut self.summary, &mut self.severity, &mut self.command_executed, &mut self.filter] {
            *text = text.take().map(|text| excerpt(&text, MESSAGE_CHARACTERS));
        }
        self.notes.truncate(MAX_NOTES);
        for note in &mut self.notes {
            *note = excerpt(note, MESSAGE_CHARACTERS);
        }
        self.tool = excerpt(&self.tool, 80);
        // The data is moved, because a copy of it would take longer than the rest. Until then, null keeps its place.
        let data = self.data.as_mut().map(Value::take);
        // Every field serializes, and a struct is an object.
        let Ok(Value::Object(mut members)) = serde_json::to_value(self) else { return Map::new() };
        if let Some(data) = data {
            members.insert("data".to_owned(), data);
        }
        members
    }
}

/// Takes the attempts that the problem itself lists out of its details.
fn own_attempts(details: &mut Map<String, Value>) -> Retries {
    match details.remove("attempts") {
        Some(Value::Array(attempts)) if !attempts.is_empty() => {
            let retry_count = u32::try_from(attempts.len() - 1).unwrap_or(u32::MAX);
            Retries { retry_count, attempts }
        }
        _ => Retries::default(),
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

    fn attempt(error_code: &str) -> host_base::Attempt {
        host_base::Attempt { after_seconds: 2.0, error_code: error_code.into(), message: "m".into() }
    }

    fn codes(envelope: &Map<String, Value>) -> Vec<&str> {
        let attempts = envelope["attempts"].as_array().unwrap().iter();
        attempts.map(|attempt| attempt["error_code"].as_str().unwrap()).collect()
    }

    #[test]
    fn what_was_tried_is_told_of_an_error_and_of_a_success() {
        let summary = RetrySummary { retries: 2, failed: vec![attempt("A"), attempt("A"), attempt("B")] };
        let problem = Problem::new("B", Category::Network, "m");
        let mut failed = Envelope::failure("t", "localhost", Instant::now(), None, problem);
        failed.add_retries(summary.clone());
        let failed = failed.into_json();
        assert_eq!((&failed["retried"], &failed["retry_count"]), (&json!(true), &json!(2)));
        assert_eq!(codes(&failed), ["A", "A", "B"]);
        assert_eq!(failed["attempts"][0], json!({"after_seconds": 2.0, "error_code": "A", "message": "m"}));

        let mut done = Envelope::success("t", "localhost", Instant::now(), None);
        done.add_retries(RetrySummary { retries: 1, failed: vec![attempt("A")] });
        let done = done.into_json();
        assert_eq!((&done["retry_count"], codes(&done)), (&json!(1), vec!["A"]));
        assert!(!done.contains_key("transient"));

        let mut once = Envelope::success("t", "localhost", Instant::now(), None);
        once.add_retries(RetrySummary::default());
        let once = once.into_json();
        assert!(!once.contains_key("retry_count") && !once.contains_key("attempts"));
    }

    #[test]
    fn what_a_problem_says_of_its_own_attempts_counts_too() {
        let problem = || {
            let own = json!([attempt("REFUSED"), attempt("REFUSED"), attempt("UNREACHABLE")]);
            Problem::new("CONNECTION_FAILED", Category::Network, "m").detail("attempts", own)
        };
        let mut failed = Envelope::failure("t", "web1", Instant::now(), None, problem());
        failed.add_retries(RetrySummary::default());
        let failed = failed.into_json();
        assert_eq!((&failed["retried"], &failed["retry_count"]), (&json!(true), &json!(2)));
        assert_eq!(codes(&failed), ["REFUSED", "REFUSED", "UNREACHABLE"]);

        let mut failed = Envelope::failure("t", "web1", Instant::now(), None, problem());
        failed.add_retries(RetrySummary {
            retries: 1,
            failed: vec![attempt("CONNECTION_LOST"), attempt("CONNECTION_FAILED")],
        });
        let failed = failed.into_json();
        assert_eq!(failed["retry_count"], 3);
        assert_eq!(codes(&failed), ["CONNECTION_LOST", "REFUSED", "REFUSED", "UNREACHABLE"]);
    }

    #[test]
    fn an_error_that_does_not_pass_by_itself_says_what_to_do() {
        let problem = Problem::new("X", Category::State, "m");
        let envelope = Envelope::failure("t", "localhost", Instant::now(), None, problem);
        assert!(!envelope.error.unwrap().remediation.is_empty());
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
        envelope.add_retries(RetrySummary {
            retries: 1,
            failed: vec![host_base::Attempt { message: secret.into(), ..attempt("A") }, attempt("X")],
        });
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
