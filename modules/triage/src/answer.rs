//! The answer: the first findings of the ranking, as far as few bytes hold them.

use linux_sysadmin_sdk::time::rfc3339;
use linux_sysadmin_sdk::{prelude::*, text};

use crate::call::Call;
use crate::finding::{Finding, Kind};
use crate::notebook::Notebook;
use crate::rank;

/// The most findings in an answer.
const MOST: usize = 12;
/// The bytes for findings. The first ones are told whatever they take.
const BYTES: usize = 1000;
const ALWAYS: usize = 3;
/// The most findings that are only named, beside an explanation of the complaint and otherwise.
const NAMED: (usize, usize) = (3, MOST);
/// The lines of evidence of the first finding and of others, and the characters of a line.
const LINES: (usize, usize) = (3, 1);
const LINE: (usize, usize) = (240, 120);

#[derive(Serialize)]
pub(crate) struct Triage {
    /// The likeliest cause of the complaint first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Shown>,
    /// The findings that are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    more: Vec<String>,
    /// The looks that failed, with the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unseen: Vec<String>,
    /// What was looked at without a finding, where no finding explains the complaint.
    #[serde(skip_serializing_if = "String::is_empty")]
    fine: String,
}

#[derive(Serialize)]
struct Shown {
    kind: Kind,
    what: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    evidence: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<Call>,
}

impl Shown {
    fn of(finding: &Finding, is_first: bool) -> Self {
        let (lines, length) = if is_first { (LINES.0, LINE.0) } else { (LINES.1, LINE.1) };
        let mut evidence: Vec<String> = Vec::new();
        for line in &finding.evidence {
            let line = text::excerpt(line, length);
            if evidence.len() < lines && !evidence.contains(&line) && !line.is_empty() {
                evidence.push(line);
            }
        }
        Self {
            kind: finding.kind,
            what: text::excerpt(&finding.what, LINE.0),
            evidence: evidence.join("; "),
            cause: finding.cause.as_deref().map(|cause| text::excerpt(cause, LINE.0 * 2)),
            since: finding.since.map(rfc3339),
            call: finding.call.clone(),
        }
    }
}

pub(crate) fn answer(mut notebook: Notebook<'_>) -> Analysis<Triage> {
    let mut findings = std::mem::take(&mut notebook.findings);
    rank::sort(&mut findings, &notebook.complaint);
    let severity = findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Info);
    let summary = summary(&findings);
    let explanation = findings.first().filter(|first| rank::explains(first, &notebook.complaint));
    let (mut shown, mut more, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (at, finding) in findings.iter().enumerate() {
        // Beside an explanation, what has little to do with the complaint is only named.
        let is_beside = |first| !rank::is_near(finding, first, &notebook.complaint);
        let one = Shown::of(finding, at == 0);
        bytes += serde_json::to_string(&one).map_or(0, |text| text.len());
        let is_room = at < ALWAYS || (bytes <= BYTES && at < MOST);
        if is_room && !explanation.is_some_and(is_beside) {
            shown.push(one);
        } else {
            more.push(text::excerpt(&finding.what, 60));
        }
    }
    let named = if explanation.is_some() { NAMED.0 } else { NAMED.1 };
    let left = more.len().saturating_sub(named);
    more.truncate(named);
    if left > 0 {
        more.push(format!("and {left} more"));
    }
    let fine = if explanation.is_some() { String::new() } else { notebook.fine() };
    let data = Triage { findings: shown, more, unseen: notebook.all_unseen(), fine };
    Analysis { data, summary, severity }
}

/// What the first finding is about. Its cause stands below, with the evidence.
fn summary(findings: &[Finding]) -> String {
    match findings.first() {
        Some(first) => text::excerpt(&first.what, 120),
        None => "nothing was found that is wrong".to_owned(),
    }
}
