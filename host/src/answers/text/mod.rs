//! The text of an answer, which is written for reading: a few lines that say what matters first, and below an empty line the
//! data. Programs read the same envelope as JSON.
//!
//! What an answer repeats of the call, and what is the same in every answer, is left out. The text of a machine comes below
//! the empty line only, except in messages.

mod values;

use serde_json::{Map, Value};

use super::envelope::TOLD_APART;
use values::Lines;

/// The further members that the lines above the data tell, or that tell a reader nothing.
const ABOVE: [&str; 2] = ["risk_level", "dry_run_available"];

/// The name of the server's own machine as a target.
const LOCAL: &str = "localhost";

/// The text of an envelope.
pub fn of_envelope(envelope: &Map<String, Value>) -> String {
    let answer = Answer(envelope);
    let above = answer.above();
    let mut below = Lines::default();
    if let Some(data) = envelope.get("data") {
        below.value(data);
    }
    let is_below = |name: &str| !TOLD_APART.contains(&name) && !ABOVE.contains(&name);
    for (name, value) in envelope.iter().filter(|(name, _)| is_below(name)) {
        below.member(name, value);
    }
    let text = match (above.is_empty(), below.into_text()) {
        (true, below) if below.is_empty() => "done".to_owned(),
        // Without the empty line, the text of a machine could pose as a line of the host.
        (true, below) => format!("\n{below}"),
        (false, below) => format!("{above}\n{below}"),
    };
    text.trim_end().to_owned()
}

struct Answer<'a>(&'a Map<String, Value>);

impl Answer<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    fn is_true(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(true))
    }

    fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    /// The lines above the data.
    fn above(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        lines.extend(self.outcome());
        lines.extend(self.hosts());
        if let Some(summary) = self.text("summary") {
            lines.push(match self.text("severity") {
                None | Some("info") => summary.to_owned(),
                Some(severity) => format!("{severity}: {summary}"),
            });
        }
        lines.extend(self.page());
        lines.extend(self.target());
        lines.extend(self.texts("remediation").map(|step| format!("try: {step}")));
        lines.extend(self.attempts());
        lines.extend(self.texts("notes").map(|note| format!("note: {note}")));
        // What else a message has to say is indented, so that none of it looks like a line of its own.
        lines.into_iter().map(|line| line.trim_end().replace('\n', "\n  ") + "\n").collect()
    }

    /// What became of the call, where it is more than that the call succeeded.
    fn outcome(&self) -> Option<String> {
        let said = || self.text("message").unwrap_or_default();
        let code = || self.text("error_code").unwrap_or_default();
        match self.text("status")? {
            "success" if self.is_true("dry_run") => Some(match self.is_true("needs_confirmation") {
                true => "dry run: nothing is changed; the change itself needs a confirmation".to_owned(),
                false => "dry run: nothing is changed".to_owned(),
            }),
            "success" => None,
            "running" => Some(format!("running as job {}", self.text("job_id").unwrap_or_default())),
            "confirmation_required" => Some(format!("confirmation required: {}", said())),
            status => Some(format!("{status}: {} ({})", said(), code())),
        }
    }

    /// How many of several hosts the call succeeded on.
    fn hosts(&self) -> Option<String> {
        let hosts = self.0.get("hosts")?;
        Some(format!("{} of {} hosts succeeded", hosts["succeeded"], hosts["total"]))
    }

    /// The part of a listing that is shown, where it is not the whole one.
    fn page(&self) -> Option<String> {
        match (self.number("returned"), self.number("total")) {
            (Some(0), Some(0)) => Some("nothing found".to_owned()),
            (Some(returned), Some(total)) if returned < total => {
                Some(format!("{returned} of {total}: narrow by filter, or raise limit"))
            }
            _ => None,
        }
    }

    /// The target, where it is not the server's own machine, and a connection that was lost on the way.
    fn target(&self) -> Option<String> {
        let host = self.text("target_host").filter(|host| *host != LOCAL && self.0.get("hosts").is_none());
        let lost = self.0.get("connection_downtime_seconds").filter(|_| self.is_true("connection_restored"));
        let lost = lost.map(|seconds| format!("the connection was lost for {seconds} s, and is restored"));
        match (host, lost) {
            (Some(host), Some(lost)) => Some(format!("on {host}; {lost}")),
            (Some(host), None) => Some(format!("on {host}")),
            (None, lost) => lost,
        }
    }

    /// How often the call was tried again, and whether it may succeed later.
    fn attempts(&self) -> Option<String> {
        let again = self.number("retry_count").filter(|count| *count > 0);
        let tried = again.map(|count| format!("tried {} times", count + 1));
        match (tried, self.is_true("transient")) {
            (Some(tried), true) => Some(format!("{tried}; it may work later")),
            (None, true) => Some("it may work later".to_owned()),
            (tried, false) => tried,
        }
    }
}

#[cfg(test)]
mod tests;
