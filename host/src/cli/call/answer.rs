//! Writes the answer to a call for a person at a terminal: the summary, the data as table or pairs, and for an error what to
//! try. The same envelope goes as JSON to a program.

use serde_json::{Map, Value};

use super::values;
use crate::answers::envelope::TOLD_APART;
use crate::cli::pending_call::plan_line;
use crate::cli::screen::{BAD, FAINT, HEADING, Screen, WARNING, severity_style};
use crate::config::ListingLimit;
use host_text::visible::one_line;

/// The further members that are written in a form of their own, or say nothing to a person. All others are written as pairs
/// below an error.
const KNOWN: [&str; 5] = ["preview", "failures", "not_begun", "done", "duration_category"];

/// The answer as text. No line is longer than the screen.
pub(super) fn text(envelope: &Map<String, Value>, screen: Screen) -> String {
    let mut answer = Answer { envelope, screen, text: String::new() };
    answer.summary();
    answer.data();
    answer.dry_run();
    answer.hosts();
    answer.error();
    answer.notes();
    answer.last_line();
    answer.text
}

struct Answer<'a> {
    envelope: &'a Map<String, Value>,
    screen: Screen,
    text: String,
}

impl Answer<'_> {
    fn word(&self, name: &str) -> Option<&str> {
        self.envelope.get(name)?.as_str()
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.envelope.get(name)?.as_u64()
    }

    fn items(&self, name: &str) -> &[Value] {
        self.envelope.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// Writes a sentence behind a label, which has its colour.
    fn line(&mut self, label: &str, style: anstyle::Style, sentence: &str) {
        let wrapped = self.screen.wrap(&one_line(sentence), label, "  ");
        let behind = wrapped.strip_prefix(label).unwrap_or_default();
        self.text.push_str(&format!("{}{behind}\n", self.screen.paint(style, label)));
    }

    /// Parts an answer from what stands above it.
    fn blank(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    fn summary(&mut self) {
        let Some(summary) = self.word("summary").map(str::to_owned) else { return };
        let severity = one_line(self.word("severity").unwrap_or("info"));
        let style = severity_style(&severity);
        self.line(&format!("{severity}: "), style, &summary);
    }

    fn data(&mut self) {
        match self.envelope.get("data") {
            None | Some(Value::Null) => {}
            Some(Value::Array(items)) if items.is_empty() => self.text.push_str("nothing found\n"),
            Some(data) => {
                self.blank();
                values::write(&mut self.text, data, self.screen, 0);
            }
        }
        let is_cut = self.envelope.get("truncated") == Some(&Value::Bool(true));
        if let (true, Some(returned), Some(total)) = (is_cut, self.number("returned"), self.number("total")) {
            let all = match total <= u64::from(ListingLimit::MOST) {
                true => format!("limit={total} shows all, "),
                false => String::new(),
            };
            let more = format!("{returned} of {total}; {all}filter=TEXT those with the text");
            self.line("shown: ", FAINT, &more);
        }
    }

    fn dry_run(&mut self) {
        let Some(preview) = self.envelope.get("preview") else { return };
        self.blank();
        if self.envelope.get("dry_run") == Some(&Value::Bool(true)) {
            let asks = self.envelope.get("needs_confirmation") == Some(&Value::Bool(true));
            let asks = if asks { "the change itself needs a confirmation" } else { "it would run unasked" };
            self.line("dry run: ", HEADING, &format!("nothing is changed; {asks}"));
        }
        match host_gate::plan_text(preview) {
            Some(plan) => {
                let lines = plan.lines().flat_map(|line| plan_line(line, self.screen));
                self.text.extend(lines.flat_map(|line| [line, "\n".to_owned()]));
            }
            None => values::write(&mut self.text, preview, self.screen, 2),
        }
    }

    /// Writes how many of several hosts answered, and why others didn't.
    fn hosts(&mut self) {
        let Some(Value::Object(hosts)) = self.envelope.get("hosts") else { return };
        let number = |name: &str| hosts.get(name).and_then(Value::as_u64).unwrap_or_default();
        let (total, succeeded, failed) = (number("total"), number("succeeded"), number("failed"));
        self.blank();
        self.line("hosts: ", HEADING, &format!("{succeeded} of {total} succeeded, {failed} failed"));
        for name in ["done", "not_begun"] {
            let names: Vec<&str> = self.items(name).iter().filter_map(Value::as_str).collect();
            if !names.is_empty() {
                let names = names.join(", ");
                self.line(&format!("{}: ", name.replace('_', " ")), HEADING, &names);
            }
        }
        for failure in self.items("failures").to_vec() {
            let text = |name: &str| failure[name].as_str().unwrap_or_default().to_owned();
            let hosts = failure["hosts"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let hosts = hosts.collect::<Vec<_>>().join(", ");
            let message = text("message").replace("{host}", "the host");
            self.line("error: ", BAD, &format!("{hosts}: {message} ({})", text("error_code")));
            self.advice(failure["remediation"].as_array().map(Vec::as_slice).unwrap_or_default());
        }
    }

    fn error(&mut self) {
        let Some(message) = self.word("message").map(str::to_owned) else { return };
        let code = self.word("error_code").unwrap_or_default().to_owned();
        let is_waiting = matches!(self.word("status"), Some("confirmation_required" | "blocked"));
        self.blank();
        self.line("error: ", if is_waiting { WARNING } else { BAD }, &format!("{message} ({code})"));
        let (envelope, screen) = (self.envelope, self.screen);
        self.advice(self.items("remediation").to_vec().as_slice());
        let retries = self.number("retry_count").unwrap_or_default();
        if retries > 0 {
            self.line("tried: ", FAINT, &format!("{} times", retries + 1));
        }
        let is_detail = |(name, _): &(&String, &Value)| {
            !TOLD_APART.contains(&name.as_str()) && !KNOWN.contains(&name.as_str())
        };
        let details: Map<String, Value> =
            envelope.iter().filter(is_detail).map(|(name, value)| (name.clone(), value.clone())).collect();
        if !details.is_empty() {
            values::object(&mut self.text, &details, screen, 2);
        }
    }

    fn advice(&mut self, steps: &[Value]) {
        for step in steps.iter().filter_map(Value::as_str) {
            self.line("try: ", WARNING, step);
        }
    }

    fn notes(&mut self) {
        for note in self.items("notes").to_vec() {
            self.line("note: ", HEADING, note.as_str().unwrap_or_default());
        }
        if let Some(seconds) = self.envelope.get("connection_downtime_seconds").and_then(Value::as_f64) {
            self.line("note: ", HEADING, &format!("the connection was lost for {seconds} s and is restored"));
        }
    }

    /// Writes where the call ran, how long it took, and the command.
    fn last_line(&mut self) {
        let host = one_line(self.word("target_host").unwrap_or_default());
        let ran = self.word("command_executed").map(|ran| format!(": {}", one_line(ran))).unwrap_or_default();
        let duration = self.number("duration_ms").unwrap_or_default();
        let line = format!("{host}, {duration} ms{ran}");
        let line = crate::cli::screen::cut(&line, self.screen.columns());
        self.text.push_str(&format!("{}\n", self.screen.paint(FAINT, &line)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use textwrap::core::display_width;

    use super::*;

    fn shown(envelope: Value) -> String {
        text(envelope.as_object().unwrap(), Screen::plain(80))
    }

    #[test]
    fn an_analysis_begins_with_its_summary() {
        let envelope = json!({
            "status": "success", "tool": "web_check", "target_host": "web1", "duration_ms": 35,
            "command_executed": "nginx -t", "summary": "2 of 3 checks failed", "severity": "high",
            "data": {"checks": [{"check": "syntax", "result": "fail"}, {"check": "port", "result": "ok"}]},
        });
        assert_eq!(
            shown(envelope.clone()),
            "high: 2 of 3 checks failed\n\nchecks\n  CHECK   RESULT\n  syntax  fail\n  port    ok\nweb1, 35 ms: nginx -t\n"
        );
        let colored = text(envelope.as_object().unwrap(), Screen::colored(80));
        assert!(colored.starts_with("\u{1b}[31mhigh: \u{1b}[0m2 of 3"), "{colored:?}");
    }

    #[test]
    fn a_listing_is_a_table_and_says_what_is_left_out() {
        let envelope = json!({
            "status": "success", "tool": "web_list", "target_host": "localhost", "duration_ms": 3,
            "command_executed": null, "total": 40, "returned": 1, "truncated": true,
            "data": [{"site": "a.example", "requests": 12}], "notes": ["the log begins today"],
        });
        assert_eq!(
            shown(envelope),
            "SITE       REQUESTS\na.example        12\n\
             shown: 1 of 40; limit=40 shows all, filter=TEXT those with the text\nnote: the log begins today\nlocalhost, 3 ms\n"
        );
        let none =
            json!({"status": "success", "target_host": "web1", "duration_ms": 3, "total": 0, "data": []});
        assert_eq!(shown(none), "nothing found\nweb1, 3 ms\n");
    }

    #[test]
    fn an_error_says_what_it_is_and_what_to_try() {
        let envelope = json!({
            "status": "error", "tool": "web_stop", "target_host": "web1", "duration_ms": 3, "command_executed": null,
            "error_code": "STEP_FAILED", "error_category": "state", "transient": false, "retried": false, "retry_count": 0,
            "message": "step 2 failed: nginx can't bind to port 80, because another program listens there already",
            "remediation": ["See who listens on port 80", "Stop it"],
            "failed_step": 2, "undone": ["/etc/nginx/nginx.conf"],
        });
        assert_eq!(
            shown(envelope),
            "error: step 2 failed: nginx can't bind to port 80, because another program\n  \
             listens there already (STEP_FAILED)\ntry: See who listens on port 80\ntry: Stop it\n  \
             failed_step  2\n  undone       /etc/nginx/nginx.conf\nweb1, 3 ms\n"
        );
    }

    #[test]
    fn a_dry_run_shows_the_plan_and_several_hosts_how_many_answered() {
        let envelope = json!({
            "status": "success", "tool": "web_stop", "target_host": "2 hosts", "duration_ms": 3, "command_executed": null,
            "dry_run": true, "needs_confirmation": true, "preview": {
                "command": "systemctl stop -- nginx.service", "description": "Stop nginx", "warnings": [],
                "affected_services": ["nginx.service"],
            },
            "hosts": {"total": 2, "succeeded": 1, "failed": 1}, "done": ["web1"],
            "failures": [{"hosts": ["web2"], "error_code": "UNREACHABLE", "message": "{host} doesn't answer", "remediation": ["Look"]}],
        });
        assert_eq!(
            shown(envelope),
            "dry run: nothing is changed; the change itself needs a confirmation\n  Says:    Stop nginx\n  \
             Stops or restarts: nginx.service\n\n  1. run systemctl stop -- nginx.service\n\n  \
             Undo:    none of step 1; where a step fails, the others before it are undone\n\n\
             hosts: 1 of 2 succeeded, 1 failed\ndone: web1\nerror: web2: the host doesn't answer (UNREACHABLE)\ntry: Look\n\
             2 hosts, 3 ms\n"
        );
    }

    #[test]
    fn nothing_of_a_target_moves_the_cursor_or_leaves_the_screen() {
        let evil = format!("x\u{1b}[2J\u{202e}\n{}", "日本 ".repeat(100));
        let mut envelope = json!({
            "status": "error", "tool": evil, "target_host": evil, "duration_ms": 3, "command_executed": evil,
            "error_code": evil, "message": evil, "remediation": [evil], "notes": [evil], "summary": evil,
            "severity": "warning", "data": [{(evil.as_str()): evil}], "preview": {"diff": evil}, "dry_run": true,
            "hosts": {}, "failures": [{"hosts": [evil], "message": evil, "remediation": [evil]}], "not_begun": [evil],
        });
        envelope[evil.as_str()] = json!(evil);
        for width in [20, 80, 200] {
            let shown = text(envelope.as_object().unwrap(), Screen::plain(width));
            assert!(!shown.chars().any(|c| c != '\n' && host_text::characters::is_hidden(c)), "{shown:?}");
            let widest = shown.lines().max_by_key(|line| display_width(line)).unwrap();
            assert!(display_width(widest) <= width, "{width}: {widest:?}");
        }
    }
}
