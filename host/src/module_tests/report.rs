//! The outcome of a module's tests: one line for each check, with the reason where it fails.

use serde::Serialize;
use serde_json::{Value, json};

use host_text::visible::one_line;

/// The number of reasons that one check tells to a reader. A module that fails in one way often fails in the same way everywhere.
const MAX_REASONS: usize = 3;

/// The outcome of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// What the check says holds.
    Passed,
    /// It doesn't hold.
    Failed,
    /// Nothing was there to check it by.
    Skipped,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// `standard`, `calls`, or the domain of the suite.
    pub suite: String,
    /// The recorded machine that it was made on, where it was made on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// What should hold, as a sentence.
    pub check: String,
    /// Whether it does.
    pub outcome: Outcome,
    /// Why it doesn't, or why that wasn't checked. Empty where the check passed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// All checks of a module.
#[derive(Debug, Default)]
pub struct Report {
    checks: Vec<Check>,
}

impl Report {
    /// Adds a check. It failed where there is a reason.
    pub fn add(
        &mut self,
        suite: &str,
        machine: Option<&str>,
        check: impl Into<String>,
        reasons: Vec<String>,
    ) {
        let outcome = if reasons.is_empty() { Outcome::Passed } else { Outcome::Failed };
        self.push(suite, machine, check.into(), outcome, reasons);
    }

    /// Adds a check that could not be made, and why.
    pub fn skip(&mut self, suite: &str, machine: Option<&str>, check: impl Into<String>, reason: &str) {
        self.push(suite, machine, check.into(), Outcome::Skipped, vec![reason.to_owned()]);
    }

    fn push(
        &mut self,
        suite: &str,
        machine: Option<&str>,
        check: String,
        outcome: Outcome,
        reasons: Vec<String>,
    ) {
        let (suite, machine) = (suite.to_owned(), machine.map(str::to_owned));
        self.checks.push(Check { suite, machine, check, outcome, reasons });
    }

    /// The number of checks with this outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.checks.iter().filter(|check| check.outcome == outcome).count()
    }

    /// Whether no check failed.
    pub fn has_passed(&self) -> bool {
        self.count(Outcome::Failed) == 0
    }

    /// One line for each check, its reasons below it, and a last line with the numbers. Whatever a module or a transcript
    /// says has no character that a terminal acts upon.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for check in &self.checks {
            let word = match check.outcome {
                Outcome::Passed => "ok  ",
                Outcome::Failed => "FAIL",
                Outcome::Skipped => "skip",
            };
            let machine = check.machine.as_ref().map(|machine| format!(" on {machine}")).unwrap_or_default();
            text.push_str(&format!("{word}  {}{machine}: {}\n", check.suite, one_line(&check.check)));
            for reason in check.reasons.iter().take(MAX_REASONS) {
                text.push_str(&format!("        {}\n", one_line(reason)));
            }
            let left = check.reasons.len().saturating_sub(MAX_REASONS);
            if left > 0 {
                text.push_str(&format!("        and {left} more, which --json has\n"));
            }
        }
        let [passed, failed, skipped] =
            [Outcome::Passed, Outcome::Failed, Outcome::Skipped].map(|outcome| self.count(outcome));
        text.push_str(&format!("{passed} passed, {failed} failed, {skipped} skipped\n"));
        text
    }

    /// The same as JSON.
    pub fn json(&self) -> Value {
        json!({
            "passed": self.count(Outcome::Passed),
            "failed": self.count(Outcome::Failed),
            "skipped": self.count(Outcome::Skipped),
            "checks": self.checks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_has_one_line_and_a_failure_has_its_reasons_below() {
        let mut report = Report::default();
        report.add("standard", None, "the description is stable", Vec::new());
        let reasons = (1..=5).map(|number| format!("reason {number}")).collect();
        report.add("calls", Some("arch"), "look", reasons);
        report.skip("packages", None, "a story", "nothing is recorded");
        assert_eq!(
            report.text(),
            "ok    standard: the description is stable\nFAIL  calls on arch: look\n        reason 1\n        reason 2\n        \
             reason 3\n        and 2 more, which --json has\nskip  packages: a story\n        nothing is recorded\n\
             1 passed, 1 failed, 1 skipped\n"
        );
        assert!(!report.has_passed());
        let json = report.json();
        assert_eq!((&json["failed"], &json["checks"][1]["outcome"]), (&json!(1), &json!("failed")));
        assert_eq!(json["checks"][0].get("reasons"), None);
        assert_eq!(json["checks"][1]["reasons"].as_array().unwrap().len(), 5);
    }

    #[test]
    fn nothing_that_a_module_says_moves_the_cursor() {
        let mut report = Report::default();
        report.add("calls", None, "x\u{1b}[2J", vec!["y\nok    forged".to_owned()]);
        let text = report.text();
        assert!(!text.contains('\u{1b}') && !text.lines().any(|line| line == "ok    forged"), "{text:?}");
    }
}
