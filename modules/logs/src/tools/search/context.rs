//! The lines that a search reads, with the lines around each match.

use std::collections::VecDeque;

use super::hits::{Hit, Hits};
use crate::clock::Clock;
use crate::line::{Line, shortened};
use crate::line_format::LineFormat;
use crate::pattern::Pattern;
use crate::service_sources;
use crate::text_logs::file::File;
use crate::text_logs::tail::LineReader;
use crate::time_range::Range;

/// The lines of a file. A line is parsed only where it matches or is shown.
pub(super) struct FileLines<'a> {
    reader: LineReader<'a>,
    range: Range,
    /// The beginning of the last line that may have a time.
    head: Vec<u8>,
    /// The programs that may have written a line, for a file that others write to as well. Empty for all programs.
    programs: Vec<String>,
}

impl<'a> FileLines<'a> {
    pub(super) fn new(
        format: &'a LineFormat,
        clock: &'a Clock<'a>,
        file: &File,
        range: Range,
        programs: &[String],
    ) -> Self {
        let programs = if service_sources::is_shared(&file.path) { programs.to_vec() } else { Vec::new() };
        Self { reader: LineReader::new(format, clock, file.near(clock)), range, head: Vec::new(), programs }
    }

    pub(super) fn each(
        &mut self,
        number: Option<u64>,
        text: &[u8],
        pattern: &Pattern,
        feed: &mut ContextWindow,
        hits: &mut Hits<'_>,
    ) {
        let is_match = pattern.is_match(text);
        if !is_match && feed.context == 0 {
            if text.first().is_some_and(|first| !first.is_ascii_whitespace()) {
                self.head.clear();
                self.head.extend_from_slice(&text[..text.len().min(200)]);
            }
            return;
        }
        let mut make = || {
            if is_match && !self.head.is_empty() {
                let head = std::mem::take(&mut self.head);
                self.reader.line(&head);
            }
            self.reader.line(text)
        };
        let line = make();
        let is_meant = |line: &Line| {
            let mut programs = self.programs.iter();
            self.range.holds(line.at)
                && (self.programs.is_empty() || programs.any(|name| name.eq_ignore_ascii_case(&line.source)))
        };
        let matched = (is_match && line.as_ref().is_some_and(is_meant))
            .then(|| String::from_utf8_lossy(text).into_owned());
        feed.line(number, matched, || line, hits);
    }
}

/// Adds the lines around a match to it, while lines come in order.
pub(super) struct ContextWindow {
    context: usize,
    before: VecDeque<String>,
    open: Vec<(Hit, String)>,
    number: Option<u64>,
}

/// The longest line around a match, in bytes.
const BESIDE: usize = 300;

impl ContextWindow {
    pub(super) fn new(context: usize) -> Self {
        Self { context, before: VecDeque::new(), open: Vec::new(), number: None }
    }

    /// Takes the next line. It has a `number` where lines may be missing before it.
    pub(super) fn line(
        &mut self,
        number: Option<u64>,
        matched: Option<String>,
        line: impl FnOnce() -> Option<Line>,
        hits: &mut Hits<'_>,
    ) {
        if self.context == 0 {
            if let Some(matched) = matched
                && let Some(line) = line()
            {
                hits.add(Hit { line, before: Vec::new(), after: Vec::new() }, matched);
            }
            return;
        }
        if number.is_some() && self.number.map(|last| last + 1) != number {
            self.end(hits);
        }
        self.number = number;
        let Some(line) = line() else { return };
        let text = shortened(&line.message, BESIDE);
        self.open.iter_mut().for_each(|(hit, _)| hit.after.push(text.clone()));
        let (full, open) =
            std::mem::take(&mut self.open).into_iter().partition(|(hit, _)| hit.after.len() >= self.context);
        self.open = open;
        Vec::into_iter(full).for_each(|(hit, text)| hits.add(hit, text));
        if let Some(matched) = matched {
            let before = self.before.iter().cloned().collect();
            self.open.push((Hit { line, before, after: Vec::new() }, matched));
        }
        if self.before.len() == self.context {
            self.before.pop_front();
        }
        self.before.push_back(text);
    }

    pub(super) fn end(&mut self, hits: &mut Hits<'_>) {
        self.open.drain(..).for_each(|(hit, text)| hits.add(hit, text));
        self.before.clear();
        self.number = None;
    }
}
