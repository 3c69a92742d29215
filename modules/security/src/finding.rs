//! Findings: the one shape in which every check says what is weak.
//!
//! A check collects [`Found`], with a [`Finding`] for each weak thing. [`Found::report`] folds it into the answer: one
//! entry for each kind, with all the subjects that have it.

use linux_sysadmin_sdk::{prelude::*, text};
use serde_json::Value;

/// The most subjects that an entry of a report names, and all entries together. Each entry names one at least.
const SUBJECTS: usize = 12;
const ALL_SUBJECTS: usize = 150;
/// The most characters of a subject and of its evidence.
const CHARACTERS: usize = 200;
/// The most sentences of a list that aren't findings.
const SENTENCES: usize = 25;

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
    pub fn report(mut self) -> Report {
        let mut groups: Vec<Vec<Finding>> = Vec::new();
        for finding in self.findings {
            match groups.iter_mut().find(|group| group[0].kind == finding.kind) {
                Some(group) => group.push(finding),
                None => groups.push(vec![finding]),
            }
        }
        for group in &mut groups {
            group.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        }
        groups.sort_by_key(|group| std::cmp::Reverse(group[0].severity));
        let mut left = ALL_SUBJECTS;
        let findings = groups.into_iter().map(|group| {
            let entry = folded(group, SUBJECTS.min(left).max(1));
            left = left.saturating_sub(entry.subjects.len());
            entry
        });
        let findings = findings.collect();
        bounded(&mut self.unseen);
        Report { findings, unseen: self.unseen }
    }
}

/// The public rule that a kind of weakness breaks.
fn reference(kind: &str) -> Option<String> {
    let mut lines = include_str!("references.txt").lines().filter_map(|line| line.split_once(": "));
    lines.find(|(known, _)| *known == kind).map(|(_, reference)| reference.to_owned())
}

/// Keeps the first sentences, each of them short, and tells how many are left out.
pub(crate) fn bounded(sentences: &mut Vec<String>) {
    let more = sentences.len().saturating_sub(SENTENCES);
    sentences.truncate(SENTENCES);
    for sentence in sentences.iter_mut() {
        *sentence = text::of_line(sentence);
    }
    if more > 0 {
        sentences.push(format!("and {more} more"));
    }
}

/// One entry for findings of one kind, the most severe first, with at most so many subjects.
fn folded(mut group: Vec<Finding>, most: usize) -> Entry {
    let short = |text: &str| text::excerpt(text, CHARACTERS);
    let shared = group.iter().all(|finding| finding.evidence == group[0].evidence);
    let shown = |finding: &Finding| match shared || finding.evidence.is_empty() {
        true => short(&finding.subject),
        false => format!("{}: {}", short(&finding.subject), short(&finding.evidence)),
    };
    let subjects = group.iter().take(most).map(shown).collect();
    let more = group.len().saturating_sub(most);
    let first = group.swap_remove(0);
    let evidence = if shared { short(&first.evidence) } else { String::new() };
    let (severity, kind, mend) = (first.severity, first.kind, first.mend);
    let reference = reference(&kind);
    Entry { severity, kind, subjects, more, evidence, mend, reference }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
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
    fn a_report_is_bounded_whatever_was_found_and_keeps_what_is_most_severe() {
        let long = "x".repeat(4096);
        let mut found = Found::default();
        for kind in 0..80 {
            let severity = if kind == 79 { Severity::Critical } else { Severity::Warning };
            for number in 0..500 {
                let (subject, evidence) = (format!("{number}{long}"), format!("{number}{long}"));
                found.push(Finding::new(severity, format!("kind-{kind}"), subject, evidence));
            }
        }
        found.unseen = (0..10_000).map(|number| format!("{number} {long}")).collect();
        let report = found.report();
        assert_eq!((report.findings.len(), report.findings[0].kind.as_str()), (80, "kind-79"));
        assert_eq!((report.findings[0].subjects.len(), report.findings[0].more), (12, 488));
        // Nothing is lost without being counted.
        assert!(report.findings.iter().all(|entry| entry.subjects.len() + entry.more == 500));
        assert_eq!((report.unseen.len(), report.unseen[25].as_str()), (26, "and 9975 more"));
        let bytes = serde_json::to_string(&report).unwrap().len();
        assert!(bytes < 120_000, "{bytes}");
    }

    #[test]
    fn an_answer_without_findings_says_whether_all_was_seen() {
        assert_eq!(Found::default().analysis("accounts").summary, "Nothing weak in the accounts");
        let blind = Found { unseen: vec!["/etc/shadow".into()], ..Found::default() };
        assert_eq!(blind.analysis("accounts").summary, "Nothing weak in what could be seen of the accounts");
    }
}
