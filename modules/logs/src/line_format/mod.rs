//! The format of a text log's lines: where the time stands, which program writes, and how bad it is.
//!
//! A profile knows the format of its logs. Other logs are read by the formats that most programs use.

mod level_words;
mod timestamp;

use std::borrow::Cow;
use std::rc::Rc;

use linux_sysadmin_sdk::Result;
use linux_sysadmin_sdk::knowledge::{self, LogFormat};
use regex::Regex;

pub(crate) use level_words::marked;

use crate::clock::Clock;
use crate::level::Level;
use crate::line::Line;
use crate::text_logs::line_splitter::without_zeros;
use level_words::by_words;
use timestamp::{by_format, clf, day_first, digits, usual};

/// The part of a line in which a time, a program or a level is looked for, in bytes.
const HEAD: usize = 400;
/// The longest message, in bytes.
const MESSAGE: usize = 16 << 10;

/// The format of one log's lines.
pub(crate) struct LineFormat {
    format: LogFormat,
    line: Option<Regex>,
    time: Option<String>,
    /// The source of lines that name no program: the file's name.
    source: Rc<str>,
}

/// The parts of a line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parts<'a> {
    at: Option<i64>,
    level: Option<Level>,
    source: Option<&'a str>,
    message: Cow<'a, str>,
}

impl LineFormat {
    /// The format of a file that no profile knows.
    pub(crate) fn unknown(source: &str) -> Self {
        Self { format: LogFormat::Plain, line: None, time: None, source: source.into() }
    }

    /// The format that a profile says.
    pub(crate) fn of(log: &knowledge::Log, source: &str) -> Result<Self> {
        let line = log.line.as_deref().map(knowledge::expression).transpose()?;
        Ok(Self { format: log.format, line, time: log.time.clone(), source: source.into() })
    }

    /// The time of a line. `near` is a time that is not before it, from which the year follows where the line has none.
    pub(crate) fn time(&self, text: &[u8], clock: &Clock<'_>, near: i64) -> Option<i64> {
        let text = String::from_utf8_lossy(head(text));
        self.parts(&text, clock, near).at
    }

    /// Reads a line. None where it is empty.
    pub(crate) fn line(&self, text: &[u8], clock: &Clock<'_>, near: i64) -> Option<Line> {
        // After a crash, a file may have zeros in place of lost text.
        let text = without_zeros(text);
        let text = String::from_utf8_lossy(&text[..text.len().min(MESSAGE)]);
        let text = text.trim_end_matches('\0');
        if text.trim().is_empty() {
            return None;
        }
        let parts = self.parts(text, clock, near);
        let source = parts.source.map_or_else(|| self.source.clone(), Rc::from);
        let message = if parts.message.trim().is_empty() { Cow::Borrowed(text) } else { parts.message };
        Some(Line {
            at: parts.at,
            source,
            unit: None,
            level: parts.level,
            message: message.trim_end().to_owned(),
        })
    }

    fn parts<'a>(&self, text: &'a str, clock: &Clock<'_>, near: i64) -> Parts<'a> {
        if let Some(found) = self.line.as_ref().and_then(|line| line.captures(text)) {
            let group = |name| found.name(name).map(|found| found.as_str());
            let written = group("time");
            let time = self.time.as_deref();
            let at = written.zip(time).and_then(|(text, format)| by_format(text, format, clock, near));
            let at = at.or_else(|| written.and_then(|written| usual(written, clock, near)).map(|(at, _)| at));
            let level = group("level").and_then(Level::parse);
            let message = group("message").unwrap_or(text);
            return Parts {
                at,
                level: level.or_else(|| by_words(message)),
                source: None,
                message: message.into(),
            };
        }
        match self.format {
            LogFormat::Json => by_json(text, clock, near),
            LogFormat::Common => common(text, clock),
            _ => None,
        }
        .unwrap_or_else(|| plain(text, clock, near))
    }
}

/// The first bytes of a line, in which its time is looked for.
fn head(text: &[u8]) -> &[u8] {
    &text[..text.len().min(HEAD)]
}

/// The first `most` bytes of a text, without a part of a character at the end.
fn start(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// Reads a line of a web server, with `[01/Mar/2026:10:15:02 +0000]` somewhere in it. A status of 500 to 599 makes it an
/// error. The message is the line without the time.
fn common<'a>(text: &'a str, _: &Clock<'_>) -> Option<Parts<'a>> {
    let short = start(text, HEAD);
    let (begins, at) = short.match_indices('[').find_map(|(at, _)| Some((at, clf(&text[at + 1..])?)))?;
    let level = common_status(text).and_then(|status| (500..600).contains(&status).then_some(Level::ERROR));
    // `[01/Mar/2026:10:15:02 +0000] `
    let message = format!("{}{}", &text[..begins], text[begins + 1..].split_once(']')?.1.trim_start());
    Some(Parts { at: Some(at), level, source: None, message: message.into() })
}

/// The status of an answer, which follows the quoted request.
fn common_status(text: &str) -> Option<i64> {
    let mut quoted = text.match_indices("\" ");
    let (end, _) = quoted.next()?;
    digits(text, end + 2, 3)
}

/// Reads a line that is a JSON object.
fn by_json<'a>(text: &'a str, clock: &Clock<'_>, near: i64) -> Option<Parts<'a>> {
    let Ok(serde_json::Value::Object(members)) = serde_json::from_str(text) else { return None };
    let member = |names: &[&str]| names.iter().find_map(|name| members.get(*name));
    let at = match member(&["time", "ts", "timestamp", "@timestamp", "date", "t"]) {
        Some(serde_json::Value::String(written)) => usual(written, clock, near).map(|(at, _)| at),
        Some(serde_json::Value::Number(number)) => number.as_f64().and_then(|number| {
            // The number is in seconds or milliseconds.
            let seconds = if number > 1e11 { number / 1e3 } else { number };
            (1e9..5e9).contains(&seconds).then_some((seconds * 1e6) as i64)
        }),
        _ => None,
    };
    let level =
        member(&["level", "lvl", "severity", "log.level"]).and_then(|level| Level::parse(level.as_str()?));
    // The message is the whole object, because other members say what it is about. Only Docker's objects have no others.
    let is_dockers = members.contains_key("log") && members.len() <= 4;
    let (level, message) = if is_dockers {
        let log = members.get("log").and_then(serde_json::Value::as_str).unwrap_or_default();
        let begins = text.find("\"log\":\"").map_or(0, |at| at + 7);
        let end = begins + text[begins..].find("\",\"").unwrap_or(0);
        (level.or_else(|| by_words(log)), text[begins..end].trim_end_matches("\\n"))
    } else {
        (level, text)
    };
    Some(Parts { at, level, source: None, message: message.into() })
}

/// Reads a line of text with a time at its beginning or near it, and maybe a host and a program after it.
fn plain<'a>(text: &'a str, clock: &Clock<'_>, near: i64) -> Parts<'a> {
    let short = start(text, HEAD);
    if let Some((at, end)) = usual(short, clock, near) {
        let rest = text[end..].trim_start_matches([' ', ']', ')', ':', ',', '\t']);
        return match program(rest) {
            Some((source, message)) => Parts {
                at: Some(at),
                level: by_words(message),
                source: Some(source),
                message: message.into(),
            },
            None => Parts { at: Some(at), level: by_words(rest), source: None, message: rest.into() },
        };
    }
    if let Some(parts) = common(text, clock) {
        return parts;
    }
    // `time="2026-…" level=…`, `1:M 01 Mar 2026 10:15:02.123 * …`, `type=… msg=audit(…)`.
    let at = ["time=\"", "ts=", "time=", "t=", "Date: ", "date="].iter().find_map(|name| {
        let begins = short.find(name)? + name.len();
        usual(&short[begins..], clock, near).map(|(at, _)| at)
    });
    Parts {
        at: at.or_else(|| day_first(short, clock)),
        level: by_words(text),
        source: None,
        message: text.into(),
    }
}

/// Reads `host name[1]: message`, as syslog writes it.
fn program(text: &str) -> Option<(&str, &str)> {
    let (host, rest) = text.split_once(' ')?;
    if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte)) {
        return None;
    }
    let (tag, message) = rest.split_once(": ").or_else(|| Some((rest.strip_suffix(':')?, "")))?;
    let name = tag.split('[').next()?;
    let is_name = !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./@()".contains(&byte));
    is_name.then_some((name, message))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::clock;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    /// 2026-03-02 00:00:00 UTC.
    const NEAR: i64 = 1_772_409_600;

    fn read(format: &LineFormat, text: &str) -> (Option<String>, Option<&'static str>, String, String) {
        let cx = FakeTarget::new().context();
        let line = format.line(text.as_bytes(), &Clock::new(&cx), NEAR).unwrap();
        (line.at.map(clock::text), line.level.map(Level::name), line.source.to_string(), line.message)
    }

    #[test]
    fn the_usual_forms_are_read_whoever_writes_them() {
        let format = LineFormat::unknown("x.log");
        let at = Some("2026-03-01T10:15:02Z");
        for (text, time, level, source, message) in [
            // rsyslog 8.2302 (Debian 12).
            (
                "Mar  1 10:15:02 debian1 sshd[35]: Failed password for root",
                at,
                Some("err"),
                "sshd",
                "Failed password for root",
            ),
            (
                "2026-03-01T10:15:02.123456+00:00 host systemd[1]: Started x.",
                at,
                None,
                "systemd",
                "Started x.",
            ),
            ("2026-03-01T11:15:02+01:00 host kernel: oops", at, None, "kernel", "oops"),
            // nginx, fail2ban, dpkg, dnf, postgresql, apache.
            (
                "2026/03/01 10:15:02 [emerg] 812#812: bind() failed",
                at,
                Some("emerg"),
                "x.log",
                "[emerg] 812#812: bind() failed",
            ),
            (
                "2026-03-01 10:15:02,103 fail2ban.actions [34]: WARNING x",
                at,
                Some("warning"),
                "x.log",
                "fail2ban.actions [34]: WARNING x",
            ),
            (
                "2026-03-01 10:15:02 status installed adduser:all 3.134",
                at,
                None,
                "x.log",
                "status installed adduser:all 3.134",
            ),
            ("2026-03-01T10:15:02+0000 DEBUG Fedora", at, Some("debug"), "x.log", "DEBUG Fedora"),
            (
                "2026-03-01 10:15:02.123 UTC [12] FATAL:  the database system is starting up",
                at,
                Some("crit"),
                "x.log",
                "[12] FATAL:  the database system is starting up",
            ),
            (
                "[Sun Mar 01 10:15:02.123456 2026] [core:error] [pid 7] AH00126",
                at,
                Some("err"),
                "x.log",
                "[core:error] [pid 7] AH00126",
            ),
            // Start-Date of apt, redis, auditd, squid, logfmt.
            ("Start-Date: 2026-03-01  10:15:02", at, None, "x.log", "Start-Date: 2026-03-01  10:15:02"),
            (
                "812:M 01 Mar 2026 10:15:02.123 * Ready to accept connections",
                at,
                None,
                "x.log",
                "812:M 01 Mar 2026 10:15:02.123 * Ready to accept connections",
            ),
            (
                "type=AVC msg=audit(1772360102.997:123): avc:  denied",
                at,
                Some("warning"),
                "x.log",
                "type=AVC msg=audit(1772360102.997:123): avc:  denied",
            ),
            ("1772360102.997     12 192.0.2.1 TCP_MISS/200", at, None, "x.log", "12 192.0.2.1 TCP_MISS/200"),
            (
                "time=\"2026-03-01T10:15:02Z\" level=warning msg=\"x\"",
                at,
                Some("warning"),
                "x.log",
                "time=\"2026-03-01T10:15:02Z\" level=warning msg=\"x\"",
            ),
            // A date after the last change of the file is one of the year before.
            ("Dec 31 23:59:59 host x[1]: y", Some("2025-12-31T23:59:59Z"), None, "x", "y"),
            // A line without a time, a date in another language, and numbers that are no date.
            ("  at foo.bar(Baz.java:12)", None, None, "x.log", "  at foo.bar(Baz.java:12)"),
            ("1. März 2026, 10:15:02: nichts", None, None, "x.log", "1. März 2026, 10:15:02: nichts"),
            ("2026-99-99 99:99:99 x", None, None, "x.log", "2026-99-99 99:99:99 x"),
        ] {
            let (found, found_level, found_source, found_message) = read(&format, text);
            assert_eq!(
                (found.as_deref(), found_level, found_source.as_str(), found_message.as_str()),
                (time, level, source, message),
                "{text}"
            );
        }
    }

    #[test]
    fn a_web_servers_own_faults_are_errors() {
        let format = LineFormat { format: LogFormat::Common, ..LineFormat::unknown("access.log") };
        for (status, level) in [("502", Some("err")), ("404", None), ("200", None)] {
            let text = format!(
                "192.0.2.7 - - [01/Mar/2026:11:15:02 +0100] \"GET /error HTTP/1.1\" {status} 157 \"-\" \"curl\""
            );
            let (time, found, ..) = read(&format, &text);
            assert_eq!((time.as_deref(), found), (Some("2026-03-01T10:15:02Z"), level), "{text}");
        }
    }

    #[test]
    fn an_object_is_read_by_its_members() {
        let format = LineFormat { format: LogFormat::Json, ..LineFormat::unknown("x.log") };
        let caddy = r#"{"level":"error","ts":1772360102.5,"logger":"http","msg":"x"}"#;
        assert_eq!(
            read(&format, caddy),
            (Some("2026-03-01T10:15:02Z".into()), Some("err"), "x.log".into(), caddy.into())
        );
        let docker = r#"{"log":"ERROR: \"x\" failed\n","stream":"stderr","time":"2026-03-01T10:15:02.5Z"}"#;
        assert_eq!(
            read(&format, docker),
            (
                Some("2026-03-01T10:15:02Z".into()),
                Some("err"),
                "x.log".into(),
                r#"ERROR: \"x\" failed"#.into()
            )
        );
        assert_eq!(read(&format, "{broken").0, None);
    }

    #[test]
    fn a_profiles_own_form_wins() {
        let log = knowledge::Log {
            source: knowledge::LogSource::Path("/x".into()),
            format: LogFormat::Other,
            line: Some(
                r"^(?P<time>[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9:]+) \[(?P<level>[a-z]+)\] (?P<message>.*)$"
                    .into(),
            ),
            time: Some("%Y/%m/%d %H:%M:%S".into()),
            root: false,
            optional: false,
            what: None,
        };
        let format = LineFormat::of(&log, "x").unwrap();
        let found = read(&format, "2026/03/01 10:15:02 [notice] signal 15 (error)");
        assert_eq!(
            found,
            (Some("2026-03-01T10:15:02Z".into()), Some("notice"), "x".into(), "signal 15 (error)".into())
        );
        // A format without a year.
        let log = knowledge::Log {
            line: Some("^(?P<time>.{15}) (?P<message>.*)$".into()),
            time: Some("%b %e %H:%M:%S".into()),
            ..log
        };
        let found = read(&LineFormat::of(&log, "x").unwrap(), "Mar  1 10:15:02 y");
        assert_eq!(found.0.as_deref(), Some("2026-03-01T10:15:02Z"));
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_stands_in_a_line_breaks_it(text in "(2026-|Mar |[0-9]{10}\\.|type=|\\[|\\{\"log\":\"|time=\"){0,2}.{0,40}") {
            for format in [LogFormat::Plain, LogFormat::Json, LogFormat::Common] {
                let format = LineFormat { format, ..LineFormat::unknown("x") };
                let cx = FakeTarget::new().context();
                format.line(text.as_bytes(), &Clock::new(&cx), NEAR);
            }
        }
    }
}
