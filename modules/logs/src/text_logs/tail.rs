//! Reads the newest or the oldest lines of text logs, and no more of a file than they need.

use std::collections::VecDeque;

use linux_sysadmin_sdk::{Privilege, prelude::*};

use super::file::{File, Packing};
use super::read::{self, End};
use super::{line_splitter, seek};
use crate::budget::{Budget, Spent};
use crate::clock::Clock;
use crate::level::Level;
use crate::line::Line;
use crate::line_format::LineFormat;
use crate::time_range::Range;

/// The bytes that are read at once from the end.
const PIECE: u64 = 1 << 20;

/// The conditions that lines must meet.
pub(crate) struct LineFilter<'a> {
    pub(crate) range: Range,
    pub(crate) priority: Option<Level>,
    /// The programs that may have written a line, for a file that others write to as well.
    pub(crate) programs: Option<&'a [String]>,
}

impl LineFilter<'_> {
    fn accepts(&self, line: &Line) -> bool {
        self.range.holds(line.at)
            && self.priority.is_none_or(|most| line.level.is_some_and(|level| level <= most))
            && self
                .programs
                .is_none_or(|programs| programs.iter().any(|name| name.eq_ignore_ascii_case(&line.source)))
    }
}

/// Reads lines in order. A line without a time gets that of the line before.
pub(crate) struct LineReader<'a> {
    format: &'a LineFormat,
    clock: &'a Clock<'a>,
    near: i64,
    at: Option<i64>,
    level: Option<Level>,
}

impl<'a> LineReader<'a> {
    pub(crate) fn new(format: &'a LineFormat, clock: &'a Clock<'a>, near: i64) -> Self {
        Self { format, clock, near, at: None, level: None }
    }

    /// Reads a line. None where it is empty.
    pub(crate) fn line(&mut self, text: &[u8]) -> Option<Line> {
        let mut line = self.format.line(text, self.clock, self.near)?;
        if line.at.is_some() {
            (self.at, self.level) = (line.at, line.level);
        } else {
            line.at = self.at;
            line.level = line.level.or(self.level);
        }
        Some(line)
    }
}

/// Lines that were found, the oldest first.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) lines: Vec<Line>,
    /// True where there are more lines.
    pub(crate) more: bool,
    pub(crate) spent: Option<Spent>,
}

/// Reads the newest lines. The newest file comes first in `files`.
pub(crate) fn newest(
    cx: &Context,
    budget: &Budget<'_>,
    files: &[File],
    format: &LineFormat,
    clock: &Clock<'_>,
    (filter, most): (&LineFilter<'_>, usize),
) -> Result<Found> {
    let mut found = Found::default();
    for file in files {
        let left = most - found.lines.len();
        let (mut lines, spent) = match (file.packing, file.size) {
            (Packing::None, Some(size)) => {
                from_end(cx, budget, file, size, format, clock, (filter, left + 1))?
            }
            _ => from_begin(cx, budget, file, format, clock, (filter, left + 1))?,
        };
        let cut = lines.len().saturating_sub(left);
        lines.drain(..cut);
        lines.append(&mut found.lines);
        found = Found { lines, more: cut > 0, spent };
        if found.more || found.spent.is_some() {
            break;
        }
    }
    Ok(found)
}

/// Reads a file from its end, which needs a file that isn't packed.
fn from_end(
    cx: &Context,
    budget: &Budget<'_>,
    file: &File,
    size: u64,
    format: &LineFormat,
    clock: &Clock<'_>,
    (filter, most): (&LineFilter<'_>, usize),
) -> Result<(Vec<Line>, Option<Spent>)> {
    let cx = &cx.files_as(Privilege::RootIfAvailable);
    let mut found: VecDeque<Vec<Line>> = VecDeque::new();
    let mut count = 0;
    // The beginning of the piece that was read last, up to its first line end. That line began in the piece before it.
    let mut rest = Vec::new();
    let mut end = seek::end(cx, budget, (file, size), format, clock, filter.range);
    let last = end;
    let mut spent = None;
    while end > 0 && count < most {
        spent = budget.spent();
        if spent.is_some() {
            break;
        }
        let begin = end.saturating_sub(PIECE);
        let part = (file.path.as_str(), i64::try_from(begin).unwrap_or(i64::MAX), end - begin);
        let mut piece = budget.read_parts(cx, &[part]).pop().transpose()?.unwrap_or_default();
        end = begin;
        // Only the beginning of a file such as wtmp shows that it is binary.
        let head = match begin {
            0 => Some(Ok(piece.clone())),
            _ if begin + PIECE >= last => budget.read_parts(cx, &[(file.path.as_str(), 0, 4096)]).pop(),
            _ => None,
        };
        if read::is_binary(&head.transpose()?.unwrap_or_default()) {
            return Err(read::binary(&file.path));
        }
        let is_hole = line_splitter::is_hole(&piece);
        if is_hole {
            // The text after the hole is a line of its own.
            piece.clear();
        }
        let first = match piece.iter().position(|byte| *byte == b'\n') {
            _ if begin == 0 || is_hole => 0,
            Some(at) => at + 1,
            // The line is longer than a piece. Its end is dropped, and its beginning is kept.
            None => {
                rest = piece;
                continue;
            }
        };
        let mut text = piece[first..].to_vec();
        text.extend_from_slice(&rest);
        rest = piece[..first].to_vec();
        let mut reader = LineReader::new(format, clock, file.near(clock));
        let lines: Vec<_> = text.split(|byte| *byte == b'\n').filter_map(|line| reader.line(line)).collect();
        // Where a whole piece is from before the range, the pieces before it are as well.
        let is_before = !is_hole
            && filter.range.since.is_some()
            && lines.iter().any(|line| line.at.is_some())
            && lines.iter().all(|line| !Range { until: None, ..filter.range }.holds(line.at.or(Some(0))));
        let mut meant: Vec<_> = lines.into_iter().filter(|line| filter.accepts(line)).collect();
        meant.drain(..meant.len().saturating_sub(most));
        // Without this, it would keep the memory of all lines.
        meant.shrink_to_fit();
        count += meant.len();
        found.push_front(meant);
        if is_before {
            break;
        }
    }
    Ok((found.into_iter().flatten().collect(), spent))
}

/// Reads a file from its beginning, and keeps the last lines. A packed file can't be read from its end.
fn from_begin(
    cx: &Context,
    budget: &Budget<'_>,
    file: &File,
    format: &LineFormat,
    clock: &Clock<'_>,
    (filter, most): (&LineFilter<'_>, usize),
) -> Result<(Vec<Line>, Option<Spent>)> {
    let mut reader = LineReader::new(format, clock, file.near(clock));
    let mut last = VecDeque::new();
    let end = read::each(cx, budget, file, 0, |text| {
        if let Some(line) = reader.line(text).filter(|line| filter.accepts(line)) {
            if last.len() == most {
                last.pop_front();
            }
            last.push_back(line);
        }
        true
    })?;
    let spent = match end {
        End::Whole => None,
        End::Spent(spent) => Some(spent),
    };
    Ok((last.into(), spent))
}

/// Reads the oldest lines. The newest file comes first in `files`.
pub(crate) fn oldest(
    cx: &Context,
    budget: &Budget<'_>,
    files: &[File],
    format: &LineFormat,
    clock: &Clock<'_>,
    (filter, most): (&LineFilter<'_>, usize),
) -> Result<Found> {
    let mut found = Found::default();
    for file in files.iter().rev() {
        let from = seek::begin(cx, budget, file, format, clock, filter.range);
        let mut reader = LineReader::new(format, clock, file.near(clock));
        let end = read::each(cx, budget, file, from, |text| {
            let Some(line) = reader.line(text).filter(|line| filter.accepts(line)) else { return true };
            found.more = found.lines.len() == most;
            if !found.more {
                found.lines.push(line);
            }
            !found.more
        })?;
        if let End::Spent(spent) = end {
            found.spent = Some(spent);
        }
        if found.more || found.spent.is_some() {
            break;
        }
    }
    Ok(found)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::read::tests::packed;
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;
    use proptest::prelude::*;

    const WHOLE: LineFilter<'_> =
        LineFilter { range: Range { since: None, until: None }, priority: None, programs: None };

    fn found(
        target: FakeTarget,
        filter: &LineFilter<'_>,
        most: usize,
        from_end: bool,
    ) -> (Vec<String>, bool) {
        let cx = target.context();
        let (budget, clock) = (Budget::quick(&cx), Clock::new(&cx));
        let format = LineFormat::unknown("x");
        let files = crate::text_logs::file::family(&cx, &budget, "/var/log/x", filter.range).unwrap();
        let read = if from_end { newest } else { oldest };
        let found = read(&cx, &budget, &files, &format, &clock, (filter, most)).unwrap();
        (found.lines.into_iter().map(|line| line.message).collect(), found.more)
    }

    /// Three files of one log. A higher number means an older file.
    fn rotated() -> FakeTarget {
        let at = |second: i64| linux_sysadmin_sdk::Metadata {
            size: 100,
            mode: 0o644,
            owner: "root".into(),
            group: "root".into(),
            modified_unix: second,
            is_dir: false,
            is_symlink: false,
        };
        let line = |minute: u32| format!("2026-03-01T10:{minute:02}:00Z {minute}\n  more\n");
        let (plain, one, two) = (line(5) + &line(6), line(3) + &line(4), packed(&(line(1) + &line(2))));
        let sized =
            |second: i64, size: usize| linux_sysadmin_sdk::Metadata { size: size as u64, ..at(second) };
        FakeTarget::new()
            .metadata("/var/log/x", sized(1_772_359_560, plain.len()))
            .metadata("/var/log/x.1", sized(1_772_359_440, one.len()))
            .metadata("/var/log/x.2.gz", sized(1_772_359_320, two.len()))
            .file("/var/log/x", plain)
            .file("/var/log/x.1", one)
            .file("/var/log/x.2.gz", two)
    }

    #[test]
    fn rotated_files_are_one_log_and_a_line_without_a_time_goes_with_the_one_before() {
        for (most, newest, oldest) in [
            (3, vec!["  more", "6", "  more"], vec!["1", "  more", "2"]),
            (5, vec!["  more", "5", "  more", "6", "  more"], vec!["1", "  more", "2", "  more", "3"]),
        ] {
            assert_eq!(
                found(rotated(), &WHOLE, most, true),
                (newest.into_iter().map(str::to_owned).collect(), true)
            );
            assert_eq!(
                found(rotated(), &WHOLE, most, false),
                (oldest.into_iter().map(str::to_owned).collect(), true)
            );
        }
        let all = found(rotated(), &WHOLE, 100, true);
        assert_eq!(all, found(rotated(), &WHOLE, 100, false));
        assert_eq!((all.0.len(), all.1), (12, false));
        // 10:02 to 10:04.
        let range = Range { since: Some(1_772_359_320), until: Some(1_772_359_440) };
        let within = LineFilter { range, ..WHOLE };
        let expected: Vec<_> = ["2", "  more", "3", "  more", "4", "  more"].map(str::to_owned).into();
        assert_eq!(found(rotated(), &within, 100, true), (expected.clone(), false));
        assert_eq!(found(rotated(), &within, 100, false), (expected, false));
    }

    #[test]
    fn a_clock_that_went_back_leaves_no_line_out() {
        let text = "2026-03-01T12:00:00Z a\n2026-03-01T10:00:00Z b\n2026-03-01T13:00:00Z c\n";
        let range = Range { since: Some(1_772_362_800), until: None };
        let target = FakeTarget::new().file("/var/log/x", text).metadata(
            "/var/log/x",
            linux_sysadmin_sdk::Metadata {
                size: text.len() as u64,
                mode: 0o644,
                owner: "root".into(),
                group: "root".into(),
                modified_unix: 1_772_370_000,
                is_dir: false,
                is_symlink: false,
            },
        );
        assert_eq!(found(target, &LineFilter { range, ..WHOLE }, 10, true).0, ["a", "c"]);
    }

    #[test]
    fn a_line_longer_than_a_piece_is_cut_and_those_around_it_are_whole() {
        let text = ["a\n", &"x".repeat(10 << 20), "\nb\nc"].concat();
        let (lines, more) = found(FakeTarget::new().file("/var/log/x", text), &WHOLE, 10, true);
        let begins: Vec<_> = lines.iter().map(|line| &line[..1]).collect();
        assert_eq!((begins, more), (vec!["a", "x", "b", "c"], false));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn from_the_end_the_lines_are_the_same_as_from_the_begin(lengths in proptest::collection::vec(1_usize..400_000, 1..12), last in any::<bool>()) {
            let lines: Vec<_> = lengths.iter().enumerate().map(|(at, length)| format!("{at} {}", "x".repeat(*length))).collect();
            let text = lines.join("\n") + if last { "\n" } else { "" };
            let cut = |(lines, more): (Vec<String>, bool)| (lines.into_iter().map(|line| line[..1].to_owned()).collect::<Vec<_>>(), more);
            let target = FakeTarget::new().file("/var/log/x", text);
            let newest = cut(found(target.clone(), &WHOLE, 100, true));
            prop_assert_eq!(newest.0.len(), lengths.len());
            prop_assert_eq!(newest, cut(found(target, &WHOLE, 100, false)));
        }
    }
}
