//! The matches of a search: redacted, counted, and kept as far as the answer has room.

use std::collections::VecDeque;

use linux_sysadmin_sdk::prelude::*;
use regex::bytes::Regex;

use crate::fold::Groups;
use crate::line::{Line, ShownLine};
use crate::redaction;
use crate::tools::answer::Order;

/// A match in the answer, or several that differ in numbers and addresses only.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Match {
    Line(ShownLine),
    /// A match with the lines around it.
    Within {
        line: ShownLine,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        before: Vec<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        after: Vec<String>,
    },
}

/// A match with the lines around it.
pub(super) struct Hit {
    pub(super) line: Line,
    pub(super) before: Vec<String>,
    pub(super) after: Vec<String>,
}

/// The matches that are kept for the answer.
pub(super) enum Kept {
    Folded(Groups),
    Lines(VecDeque<Hit>),
}

/// The number of matches that are redacted at once.
const AT_ONCE: usize = 500;

/// Collects the matches of a search.
pub(super) struct Hits<'a> {
    pub(super) cx: &'a Context,
    pub(super) regex: Regex,
    pub(super) kept: Kept,
    pub(super) matches: u64,
    pub(super) most: usize,
    pub(super) order: Order,
    /// Matches that are not redacted yet, each with the text that matched.
    pub(super) waiting: Vec<(Hit, String)>,
}

impl Hits<'_> {
    pub(super) fn add(&mut self, hit: Hit, text: String) {
        self.waiting.push((hit, text));
        if self.waiting.len() >= AT_ONCE {
            self.settle();
        }
    }

    /// Redacts the waiting matches, and counts those that still match. Otherwise, a search could find out a secret.
    pub(super) fn settle(&mut self) {
        let (hits, texts): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting).into_iter().unzip();
        if texts.is_empty() {
            return;
        }
        let mut lines: Vec<Line> = hits.iter().map(|hit: &Hit| hit.line.clone()).collect();
        redaction::redact(self.cx, &mut lines);
        let redacted = lines.into_iter().zip(self.cx.redacted(texts));
        for (mut hit, (line, text)) in hits.into_iter().zip(redacted) {
            if redaction::ends_in_key_line(&hit.line.message) || !self.regex.is_match(text.as_bytes()) {
                continue;
            }
            hit.line = line;
            let beside = hit.before.iter_mut().chain(&mut hit.after);
            beside.for_each(|text| *text = redaction::without_key_line(std::mem::take(text)));
            self.count(hit);
        }
    }

    fn count(&mut self, hit: Hit) {
        self.matches += 1;
        match &mut self.kept {
            Kept::Folded(groups) => groups.add(hit.line),
            Kept::Lines(lines) => {
                lines.push_back(hit);
                // The sources are searched one after the other, and so the newest lines are known only at the end.
                if lines.len() >= 2 * self.most.max(1) {
                    self.cut();
                }
            }
        }
    }

    fn cut(&mut self) {
        let Kept::Lines(lines) = &mut self.kept else { return };
        let all = lines.make_contiguous();
        all.sort_by_key(|hit| hit.line.at);
        match self.order {
            Order::Newest => drop(lines.drain(..lines.len().saturating_sub(self.most))),
            Order::Oldest => lines.truncate(self.most),
        }
    }

    /// The matches in order of time, and whether there are more.
    pub(super) fn shown(mut self) -> (Vec<Match>, bool) {
        self.cut();
        match self.kept {
            Kept::Lines(lines) => {
                let more = self.matches > lines.len() as u64;
                let shown = lines.into_iter().map(|hit| {
                    let line = ShownLine::new(&hit.line, 1, None);
                    match hit.before.is_empty() && hit.after.is_empty() {
                        true => Match::Line(line),
                        false => Match::Within { line, before: hit.before, after: hit.after },
                    }
                });
                (shown.collect(), more)
            }
            Kept::Folded(groups) => {
                let dropped = groups.dropped > 0;
                let mut groups: Vec<_> = groups.into_groups().collect();
                match self.order {
                    Order::Newest => groups.sort_by_key(|group| std::cmp::Reverse(group.last)),
                    Order::Oldest => groups.sort_by_key(|group| group.first),
                }
                let more = dropped || groups.len() > self.most;
                groups.truncate(self.most);
                groups.sort_by_key(|group| group.last);
                let shown = groups.into_iter().map(|group| {
                    let line = Line { at: group.first, ..group.line };
                    Match::Line(ShownLine::new(&line, group.count, group.last))
                });
                (shown.collect(), more)
            }
        }
    }
}
