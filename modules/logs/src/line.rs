//! A line of a log, wherever it comes from, and its text in an answer.

use std::fmt;
use std::rc::Rc;

use linux_sysadmin_sdk::prelude::*;
use serde::Serializer;

use crate::clock;
use crate::level::Level;

/// The longest message in an answer, in bytes.
const SHOWN: usize = 1000;

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The time in microseconds since the epoch. None where neither the line nor one before it has a time.
    pub(crate) at: Option<i64>,
    /// The program or the file.
    pub(crate) source: Rc<str>,
    /// The unit that wrote it, or that it is about.
    pub(crate) unit: Option<Rc<str>>,
    pub(crate) level: Option<Level>,
    pub(crate) message: String,
}

/// A line in an answer, or several lines that differ in numbers and addresses only. It is one text, because a model reads
/// many of them: `TIME[..LAST] SOURCE[ LEVEL][ xCOUNT]: MESSAGE`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ShownLine {
    /// The time of the first line.
    pub(crate) time: Option<String>,
    /// The source. None where all lines of the answer have the same.
    pub(crate) source: Option<Rc<str>>,
    /// The level. None where it is unknown or `info`.
    pub(crate) level: Option<&'static str>,
    pub(crate) message: String,
    /// The number of lines. None where it is one.
    pub(crate) count: Option<u64>,
    /// The time of the last line, where that differs.
    pub(crate) last: Option<String>,
}

impl fmt::Display for ShownLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, source, level, message, count, last } = self;
        let time = time.as_deref().map(|time| match last {
            Some(last) => format!("{time}..{}", without_same_day(time, last)),
            None => time.to_owned(),
        });
        let count = count.map(|count| format!("x{count}"));
        let source = source.as_deref().map(str::to_owned);
        let level = level.map(str::to_owned);
        let head: Vec<String> = [time, source, level, count].into_iter().flatten().collect();
        if !head.is_empty() {
            write!(formatter, "{}: ", head.join(" "))?;
        }
        formatter.write_str(message)
    }
}

/// The last time, without the day where that is the same.
fn without_same_day<'a>(first: &str, last: &'a str) -> &'a str {
    match (first.split_once('T'), last.split_once('T')) {
        (Some((day, _)), Some((same, time))) if day == same => time,
        _ => last,
    }
}

impl Serialize for ShownLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl ShownLine {
    pub(crate) fn new(line: &Line, count: u64, last: Option<i64>) -> Self {
        let time = line.at.map(clock::text);
        Self {
            last: last.map(clock::text).filter(|last| count > 1 && time.as_ref() != Some(last)),
            time,
            source: Some(line.source.clone()),
            level: line.level.filter(|level| *level != Level::INFO).map(Level::name),
            message: shortened(&line.message, SHOWN),
            count: (count > 1).then_some(count),
        }
    }
}

/// Removes the source from all lines where it is the same, and returns it.
pub(crate) fn common_source(lines: &mut [ShownLine]) -> Option<Rc<str>> {
    let first = lines.first()?.source.clone()?;
    if lines.len() < 2 || lines.iter().any(|line| line.source.as_ref() != Some(&first)) {
        return None;
    }
    lines.iter_mut().for_each(|line| line.source = None);
    Some(first)
}

/// The beginning of a text of more than `most` bytes, with its length.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let text = text.trim_end();
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}… ({} bytes)", &text[..end], text.len())
}

/// Sorts lines by time. Lines without a time come first.
pub(crate) fn in_order(lines: &mut [Line]) {
    lines.sort_by_key(|line| line.at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_text_with_what_is_known_of_it_before_the_message() {
        let at = |time: &str| Some(time.to_owned());
        let first = at("2026-11-22T11:17:01Z");
        let whole = ShownLine {
            time: first.clone(),
            source: Some("sshd".into()),
            level: Some("err"),
            message: "a: b".into(),
            count: Some(3),
            last: at("2026-11-22T11:18:00Z"),
        };
        assert_eq!(whole.to_string(), "2026-11-22T11:17:01Z..11:18:00Z sshd err x3: a: b");
        let next_day = ShownLine { last: at("2026-11-23T00:00:00Z"), ..whole };
        assert_eq!(next_day.to_string(), "2026-11-22T11:17:01Z..2026-11-23T00:00:00Z sshd err x3: a: b");
        let plain = ShownLine {
            time: first,
            source: None,
            level: None,
            message: "m".into(),
            count: None,
            last: None,
        };
        assert_eq!(plain.to_string(), "2026-11-22T11:17:01Z: m");
        assert_eq!(ShownLine { time: None, ..plain }.to_string(), "m");
    }

    #[test]
    fn a_long_message_is_cut_between_characters_and_says_how_long_it_was() {
        assert_eq!(shortened("short \n", 10), "short");
        assert_eq!(shortened("ééé", 3), "é… (6 bytes)");
    }
}
