//! Findings: the one shape in which every check says what is weak.
//!
//! A check collects [`Found`], with a [`Finding`] for each weak thing. [`Found::report`] folds it into the answer: one
//! entry for each kind, with all the subjects that have it.

use linux_sysadmin_sdk::prelude::*;
use serde_json::Value;

/// The most subjects that an entry of a report names.
const SUBJECTS: usize = 12;

/// Something that is weak.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    /// How soon somebody should act.
    pub severity: Severity,
    /// The kind of weakness, such as `user-empty-password`. Kinds never change, because operators accept findings by
    /// them.
    pub kind: String,
    /// What is weak: an account, a path, a socket, an option.
    pub subject: String,
    /// What was seen, in a few words that the subject doesn't say. Never a secret.
    pub evidence: String,
    /// The call that mends it.
    pub mend: Option<Mend>,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Mend {
    /// The name of the tool.
    pub tool: String,
    /// The arguments of the call.
    pub arguments: Value,
}

impl Finding {
    /// A finding without a mend.
    pub fn new(
        severity: Severity,
        kind: impl Into<String>,
        subject: impl Into<String>,
        evidence: impl Into<String>,
    ) -> Self {
        let (kind, subject, evidence) = (kind.into(), subject.into(), evidence.into());
        Self { severity, kind, subject, evidence, mend: None }
    }

    /// Sets the call that mends it.
    pub fn mend(mut self, tool: &str, arguments: Value) -> Self {
        self.mend = Some(Mend { tool: tool.to_owned(), arguments });
        self
    }
}

/// What a check has found, and what it could not see.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Found {
    /// The findings, in the order in which the check came to them.
    pub findings: Vec<Finding>,
    /// What could not be looked at, one sentence each.
    pub unseen: Vec<String>,
}

/// Findings of one kind.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Entry {
    pub severity: Severity,
    pub kind: String,
    /// Each is the subject, with its evidence behind a colon where the subjects differ in it.
    pub subjects: Vec<String>,
    /// The number of subjects that are left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
    /// The evidence that all subjects share.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// Mends the first subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<Mend>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// The answer of a check.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Report {
    /// The findings, the most severe first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Entry>,
    /// What could not be looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Found {
    /// Adds a finding.
    pub fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// The severity of the worst finding.
    pub fn severity(&self) -> Severity {
        self.findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Info)
    }

    /// The answer of a check of these things, such as `accounts`.
    pub fn analysis(self, things: &str) -> Analysis<Report> {
        let severity = self.severity();
        let report = self.report();
        let count = report.findings.len();
        let summary = match (count, report.unseen.is_empty()) {
            (0, true) => format!("Nothing weak in the {things}"),
            (0, false) => format!("Nothing weak in what could be seen of the {things}"),
            (1, _) => format!("One kind of weakness in the {things}"),
            (count, _) => format!("{count} kinds of weakness in the {things}"),
        };
        Analysis { data: report, summary, severity }
    }

    /// The findings folded by kind, the most severe first.
    pub fn report(self) -> Report {
        let mut groups: Vec<Vec<Finding>> = Vec::new();
        for finding in self.findings {
            match groups.iter_mut().find(|group| group[0].kind == finding.kind) {
                Some(group) => group.push(finding),
                None => groups.push(vec![finding]),
            }
        }
        let mut findings: Vec<Entry> = groups.into_iter().map(folded).collect();
        findings.sort_by_key(|entry| std::cmp::Reverse(entry.severity));
        Report { findings, unseen: self.unseen }
    }
}

/// The public rule that a kind of weakness breaks.
fn reference(kind: &str) -> Option<String> {
    let mut lines = include_str!("references.txt").lines().filter_map(|line| line.split_once(": "));
    lines.find(|(known, _)| *known == kind).map(|(_, reference)| reference.to_owned())
}

/// One entry for findings of one kind, the most severe subjects first.
fn folded(mut group: Vec<Finding>) -> Entry {
    group.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let shared = group.iter().all(|finding| finding.evidence == group[0].evidence);
    let shown = |finding: &Finding| match shared || finding.evidence.is_empty() {
        true => finding.subject.clone(),
        false => format!("{}: {}", finding.subject, finding.evidence),
    };
    let subjects = group.iter().take(SUBJECTS).map(shown).collect();
    let more = group.len().saturating_sub(SUBJECTS);
    let first = group.swap_remove(0);
    let evidence = if shared { first.evidence } else { String::new() };
    let (severity, kind, mend) = (first.severity, first.kind, first.mend);
    let reference = reference(&kind);
    Entry { severity, kind, subjects, more, evidence, mend, reference }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_a_kind_are_one_entry_and_the_worst_comes_first() {
        let mut found = Found::default();
        for number in 0..20 {
            found.push(Finding::new(Severity::Warning, "b", format!("s{number}"), "same"));
        }
        found.push(Finding::new(Severity::Warning, "a", "x", "one"));
        found.push(Finding::new(Severity::Critical, "a", "y", "two").mend("t", Value::Null));
        assert_eq!(found.severity(), Severity::Critical);
        let report = found.report();
        let [first, second] = &report.findings[..] else { panic!("{report:?}") };
        assert_eq!(
            (first.kind.as_str(), &first.subjects[..]),
            ("a", &["y: two".to_owned(), "x: one".to_owned()][..])
        );
        assert_eq!((first.evidence.as_str(), first.reference.as_deref()), ("", None));
        assert_eq!(reference("user-uid-0").as_deref(), Some("CCE-83624-7"));
        assert_eq!((second.subjects.len(), second.more, second.evidence.as_str()), (12, 8, "same"));
    }

    #[test]
    fn an_answer_without_findings_says_whether_all_was_seen() {
        assert_eq!(Found::default().analysis("accounts").summary, "Nothing weak in the accounts");
        let blind = Found { unseen: vec!["/etc/shadow".into()], ..Found::default() };
        assert_eq!(blind.analysis("accounts").summary, "Nothing weak in what could be seen of the accounts");
    }
}
