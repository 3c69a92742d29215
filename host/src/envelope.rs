//! The response envelope: one shape for every answer of every tool.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::remediation::{self, About};
use crate::retry::Tried;
use host_base::problem::{Category, Problem};
use host_gate::CONFIRMATION_REQUIRED;
use host_text::redact::{excerpt, redact_value};
use host_text::visible::make_visible;

/// What a message may hold of text that a module wrote.
const MESSAGE_CHARACTERS: usize = 4000;
/// Notes, and steps of remediation.
const MOST_NOTES: usize = 20;

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
    /// It goes on as a job.
    Running,
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
    /// Of dry runs: the change itself would be asked about.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub needs_confirmation: bool,
    /// Of what was tried again and then answered.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// Of a call that goes on: by what it can be asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// Of several hosts: how it ended on them.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub many: Option<Many>,
    /// Why there is no answer.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// The part of the envelope that only answers of several hosts have.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Many {
    /// How many were asked, and what became of that.
    pub hosts: Counts,
    /// Those that failed, together where it is for the same reason: `hosts`, `error_code`, `message`, `remediation` and
    /// what else their own envelopes say. In a message `{host}` stands for the host's name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Value>,
    /// Of a change that stopped: where nothing was begun.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_begun: Vec<String>,
    /// Of a change that stopped: where it was done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<String>,
}

/// Hosts.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Counts {
    /// All that were asked.
    pub total: usize,
    /// Of these.
    pub succeeded: usize,
    /// Of these.
    pub failed: usize,
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
    /// How often, and why.
    #[serde(flatten)]
    pub retries: Retries,
}

/// How often the host tried again by itself.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Retries {
    /// After the first attempt.
    pub retry_count: u32,
    /// Those that failed, each with `after_seconds`, `error_code` and `message`; none where there was one attempt only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Value>,
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
            needs_confirmation: false,
            retries: None,
            job_id: None,
            many: None,
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
        let mut problem = remediation::attach(problem, &About { host: target_host, ..About::default() });
        let retries = tried_by_the_problem(&mut problem.details);
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
                retried: retries.retry_count > 0,
                retries,
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

    /// Of a call that goes on as this job.
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

    /// With what the host has to say besides, before what others say.
    pub fn noted(&mut self, note: Option<String>) {
        self.notes.splice(0..0, note);
    }

    /// Says for how long the connection was gone, where it was lost and had back while the call ran.
    pub fn restored(&mut self, gone: Option<Duration>) {
        self.connection_restored = gone.is_some();
        self.connection_downtime_seconds = gone.map(|gone| (gone.as_secs_f64() * 10.0).round() / 10.0);
    }

    /// With what was tried before this answer. What the problem says itself of its attempts, as a connection that could
    /// not be had, comes after it.
    pub fn tried(&mut self, tried: Tried) {
        if tried.failed.is_empty() {
            return;
        }
        let mut attempts: Vec<Value> = tried.failed.iter().map(|attempt| json!(attempt)).collect();
        let mut retry_count = tried.retries;
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

    /// Whether the tool answered an error.
    pub fn is_error(&self) -> bool {
        !matches!(self.status, Status::Success | Status::Running)
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
        if let Some(preview) = &mut self.preview {
            make_visible(preview);
        }
        self.many.iter_mut().flat_map(|many| &mut many.failures).for_each(show);
        if let Some(failure) = &mut self.error {
            failure.details.values_mut().for_each(show);
            failure.retry.iter_mut().flat_map(|retry| &mut retry.retries.attempts).for_each(show);
        }
        self.retries.iter_mut().flat_map(|retries| &mut retries.attempts).for_each(show);
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

/// Of a problem that comes after attempts of its own.
fn tried_by_the_problem(details: &mut Map<String, Value>) -> Retries {
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
        let tried = Tried { retries: 2, failed: vec![attempt("A"), attempt("A"), attempt("B")] };
        let problem = Problem::new("B", Category::Network, "m");
        let mut failed = Envelope::failure("t", "localhost", Instant::now(), None, problem);
        failed.tried(tried.clone());
        let failed = failed.into_json();
        assert_eq!((&failed["retried"], &failed["retry_count"]), (&json!(true), &json!(2)));
        assert_eq!(codes(&failed), ["A", "A", "B"]);
        assert_eq!(failed["attempts"][0], json!({"after_seconds": 2.0, "error_code": "A", "message": "m"}));

        let mut done = Envelope::success("t", "localhost", Instant::now(), None);
        done.tried(Tried { retries: 1, failed: vec![attempt("A")] });
        let done = done.into_json();
        assert_eq!((&done["retry_count"], codes(&done)), (&json!(1), vec!["A"]));
        assert!(!done.contains_key("transient"));

        let mut once = Envelope::success("t", "localhost", Instant::now(), None);
        once.tried(Tried::default());
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
        failed.tried(Tried::default());
        let failed = failed.into_json();
        assert_eq!((&failed["retried"], &failed["retry_count"]), (&json!(true), &json!(2)));
        assert_eq!(codes(&failed), ["REFUSED", "REFUSED", "UNREACHABLE"]);

        let mut failed = Envelope::failure("t", "web1", Instant::now(), None, problem());
        failed.tried(Tried {
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
        envelope.tried(Tried {
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
