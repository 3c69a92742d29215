//! A line of a log, wherever it comes from, its level, and how it is shown.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use linux_sysadmin_sdk::prelude::*;
use serde::Serializer;

use crate::moment;

/// How much of a message an answer quotes.
const SHOWN: usize = 1000;

/// syslog(3).
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Level(pub(crate) u8);

impl Level {
    pub(crate) const CRITICAL: Self = Self(2);
    pub(crate) const ERROR: Self = Self(3);
    pub(crate) const WARNING: Self = Self(4);
    pub(crate) const INFO: Self = Self(6);
    const NAMES: [&'static str; 8] = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.get(usize::from(self.0)).copied().unwrap_or("debug")
    }

    /// As programs spell it, in any case.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        let lower = word.to_ascii_lowercase();
        Some(Self(match lower.as_str() {
            "emerg" | "emergency" | "panic" | "0" => 0,
            "alert" | "1" => 1,
            "crit" | "critical" | "fatal" | "2" => 2,
            "err" | "error" | "eror" | "severe" | "failure" | "3" => 3,
            "warn" | "warning" | "wrn" | "4" => 4,
            "notice" | "5" => 5,
            "info" | "information" | "inf" | "6" => 6,
            "debug" | "dbg" | "trace" | "verbose" | "7" => 7,
            _ => return None,
        }))
    }
}

/// As a caller says how bad lines have to be: `err` is that and worse.
pub(crate) fn priority(text: Option<&str>) -> Result<Option<Level>> {
    let Some(text) = text else { return Ok(None) };
    Level::parse(text).map(Some).ok_or_else(|| {
        let message = format!("there is no priority {text:?}; expected one of {}", Level::NAMES.join(", "));
        Problem::validation("UNKNOWN_PRIORITY", message)
    })
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Microseconds since the epoch; none where neither it nor a line before it says.
    pub(crate) at: Option<i64>,
    /// The program, or the file.
    pub(crate) source: Rc<str>,
    /// The unit that it is of, or that it is about.
    pub(crate) unit: Option<Rc<str>>,
    pub(crate) level: Option<Level>,
    pub(crate) message: String,
}

/// Leaves out of messages what is secret, as long as the lines are in the order in which each source wrote them: a key that
/// came line by line is known by those around it, which an answer needn't show.
pub(crate) fn redact(cx: &Context, lines: &mut [Line]) {
    let mut of_source: BTreeMap<Rc<str>, Vec<usize>> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        of_source.entry(line.source.clone()).or_default().push(at);
    }
    for at in of_source.into_values() {
        // A message of several lines is a text of its own.
        let (whole, single): (Vec<_>, Vec<_>) =
            at.into_iter().partition(|at| lines[*at].message.contains('\n'));
        for at in [whole, single] {
            let messages = at.iter().map(|at| std::mem::take(&mut lines[*at].message)).collect();
            for (at, message) in at.iter().zip(cx.redacted(messages)) {
                lines[*at].message = without_a_keys(message);
            }
        }
    }
}

const REDACTED: &str = "[redacted]";

/// The message without its last word, where that is like a line of a private key.
pub(crate) fn without_a_keys(message: String) -> String {
    match is_like_a_keys(&message) {
        true => {
            let text = message.trim_end();
            let begins = text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
            format!("{}{REDACTED}", &text[..begins])
        }
        false => message,
    }
}

/// Whether a message ends with what a line of a private key is made of: without the line that says so, nobody can tell it
/// from one. What programs write goes before it, as a time or a name.
pub(crate) fn is_like_a_keys(message: &str) -> bool {
    let text = message.split_whitespace().next_back().unwrap_or_default();
    let has = |is: fn(&char) -> bool| text.chars().any(|character| is(&character));
    (40..=128).contains(&text.len())
        && text.chars().all(|character| character.is_ascii_alphanumeric() || "+/=".contains(character))
        && has(char::is_ascii_uppercase)
        && has(char::is_ascii_lowercase)
        && !text.chars().all(|character| character.is_ascii_hexdigit())
}

/// A line in an answer, or several that are the same but for numbers and addresses. It is text, since a model reads many:
/// `TIME[..LAST] SOURCE[ LEVEL][ xCOUNT]: MESSAGE`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Of the first.
    pub(crate) time: Option<String>,
    /// Not where all are of the same.
    pub(crate) source: Option<Rc<str>>,
    /// Where it can be told, and isn't `info`.
    pub(crate) level: Option<&'static str>,
    pub(crate) message: String,
    /// Where it is more than one.
    pub(crate) count: Option<u64>,
    /// Of the last, where that differs.
    pub(crate) last: Option<String>,
}

impl fmt::Display for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, source, level, message, count, last } = self;
        let time = time.as_deref().map(|time| match last {
            Some(last) => format!("{time}..{}", behind(time, last)),
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

/// Without the day, where that is the same.
fn behind<'a>(first: &str, last: &'a str) -> &'a str {
    match (first.split_once('T'), last.split_once('T')) {
        (Some((day, _)), Some((same, time))) if day == same => time,
        _ => last,
    }
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Shown {
    pub(crate) fn new(line: &Line, count: u64, last: Option<i64>) -> Self {
        let time = line.at.map(moment::text);
        Self {
            last: last.map(moment::text).filter(|last| count > 1 && time.as_ref() != Some(last)),
            time,
            source: Some(line.source.clone()),
            level: line.level.filter(|level| *level != Level::INFO).map(Level::name),
            message: shortened(&line.message, SHOWN),
            count: (count > 1).then_some(count),
        }
    }
}

/// Takes away the source where it is the same everywhere, and gives it.
pub(crate) fn common_source(lines: &mut [Shown]) -> Option<Rc<str>> {
    let first = lines.first()?.source.clone()?;
    if lines.len() < 2 || lines.iter().any(|line| line.source.as_ref() != Some(&first)) {
        return None;
    }
    lines.iter_mut().for_each(|line| line.source = None);
    Some(first)
}

/// At most so many bytes, and how many there were.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let text = text.trim_end();
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}… ({} bytes)", &text[..end], text.len())
}

/// In order of time, each stretch of lines without a time behind the line it came after.
pub(crate) fn in_order(lines: &mut [Line]) {
    lines.sort_by_key(|line| line.at);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_key_is_known_without_the_line_that_says_so() {
        for line in [
            "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW",
            "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
        ] {
            assert!(is_like_a_keys(line), "{line}");
            assert_eq!(without_a_keys(format!("app[7]: {line}")), "app[7]: [redacted]");
        }
        for line in [
            "",
            "connect() failed (111: Connection refused)",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "Started",
            "session opened for user root(uid=0) by (uid=1000) and this is longer",
        ] {
            assert!(!is_like_a_keys(line), "{line}");
        }
    }

    #[test]
    fn a_priority_is_a_name_or_a_number_in_any_spelling() {
        for (text, expected) in [("err", 3), ("ERROR", 3), ("3", 3), ("warn", 4), ("emerg", 0), ("debug", 7)]
        {
            assert_eq!(priority(Some(text)).unwrap(), Some(Level(expected)), "{text}");
        }
        for text in ["", "8", "bad", "-1", "err..warning"] {
            let problem = priority(Some(text)).unwrap_err();
            assert_eq!(problem.code, "UNKNOWN_PRIORITY");
            assert!(problem.message.contains("warning"), "{}", problem.message);
        }
        assert_eq!(priority(None).unwrap(), None);
    }

    #[test]
    fn a_line_is_text_with_what_is_known_of_it_before_the_message() {
        let at = |time: &str| Some(time.to_owned());
        let first = at("2026-11-22T11:17:01Z");
        let whole = Shown {
            time: first.clone(),
            source: Some("sshd".into()),
            level: Some("err"),
            message: "a: b".into(),
            count: Some(3),
            last: at("2026-11-22T11:18:00Z"),
        };
        assert_eq!(whole.to_string(), "2026-11-22T11:17:01Z..11:18:00Z sshd err x3: a: b");
        let next_day = Shown { last: at("2026-11-23T00:00:00Z"), ..whole };
        assert_eq!(next_day.to_string(), "2026-11-22T11:17:01Z..2026-11-23T00:00:00Z sshd err x3: a: b");
        let plain =
            Shown { time: first, source: None, level: None, message: "m".into(), count: None, last: None };
        assert_eq!(plain.to_string(), "2026-11-22T11:17:01Z: m");
        assert_eq!(Shown { time: None, ..plain }.to_string(), "m");
    }

    #[test]
    fn a_long_message_is_cut_between_characters_and_says_how_long_it_was() {
        assert_eq!(shortened("short \n", 10), "short");
        assert_eq!(shortened("ééé", 3), "é… (6 bytes)");
    }
}
