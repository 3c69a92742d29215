//! The comparison with an earlier run.

use std::collections::BTreeSet;

use linux_sysadmin_sdk::prelude::*;

use crate::finding::{Report, bounded};

/// An entry of an earlier answer. Its other members aren't needed.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Earlier {
    /// Kind of finding
    kind: String,
    /// What it is about
    subjects: Vec<String>,
    /// Number that it left out
    #[serde(default)]
    more: usize,
}

/// What has changed.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Compared {
    /// `KIND SUBJECT` of findings that are new.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    new: Vec<String>,
    /// The same of those that are gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gone: Vec<String>,
}

impl Compared {
    pub(super) fn summary(&self) -> String {
        format!("{} new, {} gone", self.new.len(), self.gone.len())
    }

    /// Leaves out what makes the lists too long.
    pub(super) fn shorten(&mut self) {
        bounded(&mut self.new);
        bounded(&mut self.gone);
    }
}

/// Compares an earlier answer with this one. Where either left subjects out, a subject that the other names may be
/// among them, and is then neither new nor gone.
pub(super) fn with(before: &[Earlier], now: &Report) -> Compared {
    let earlier: BTreeSet<(&str, &str)> = before
        .iter()
        .flat_map(|entry| entry.subjects.iter().map(|subject| (entry.kind.as_str(), plain(subject))))
        .collect();
    let later: BTreeSet<(&str, &str)> = now
        .findings
        .iter()
        .flat_map(|entry| entry.subjects.iter().map(|subject| (entry.kind.as_str(), plain(subject))))
        .collect();
    let was_cut = |kind: &str| before.iter().any(|entry| entry.kind == kind && entry.more > 0);
    let is_cut = |kind: &str| now.findings.iter().any(|entry| entry.kind == kind && entry.more > 0);
    let shown = |(kind, subject): &(&str, &str)| format!("{kind} {subject}");
    Compared {
        new: later.difference(&earlier).filter(|(kind, _)| !was_cut(kind)).map(shown).collect(),
        gone: earlier.difference(&later).filter(|(kind, _)| !is_cut(kind)).map(shown).collect(),
    }
}

/// A subject without its evidence.
fn plain(subject: &str) -> &str {
    subject.split(": ").next().unwrap_or(subject)
}
