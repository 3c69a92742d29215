//! How the lines of a text log look: where the time stands, who says it, how bad it is.
//!
//! A profile knows the form of its logs. What it doesn't know is read by the forms that most programs use; a line that
//! has none goes with the line before.

use std::borrow::Cow;
use std::rc::Rc;

use jiff::civil::DateTime;
use jiff::fmt::strtime;
use linux_sysadmin_sdk::Result;
use linux_sysadmin_sdk::knowledge::{self, LogFormat};
use regex::Regex;

use crate::line::{Level, Line};
use crate::moment::{Clock, SECOND};
use crate::pieces::without_zeros;

/// How far into a line a time, a program or a level is looked for.
const HEAD: usize = 400;
/// How much of a line becomes a message.
const MESSAGE: usize = 16 << 10;

/// The form of one log.
pub(crate) struct Form {
    format: LogFormat,
    line: Option<Regex>,
    time: Option<String>,
    /// The file's name, where lines don't say who they are of.
    source: Rc<str>,
}

/// What a line says besides its message.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parts<'a> {
    at: Option<i64>,
    level: Option<Level>,
    source: Option<&'a str>,
    message: Cow<'a, str>,
}

impl Form {
    /// Of a file that no profile knows.
    pub(crate) fn unknown(source: &str) -> Self {
        Self { format: LogFormat::Plain, line: None, time: None, source: source.into() }
    }

    /// As a profile says.
    pub(crate) fn of(log: &knowledge::Log, source: &str) -> Result<Self> {
        let line = log.line.as_deref().map(knowledge::expression).transpose()?;
        Ok(Self { format: log.format, line, time: log.time.clone(), source: source.into() })
    }

    /// When a line was written, where it says so. `near` is a time that can't be before it: of forms without a year.
    pub(crate) fn time(&self, text: &[u8], clock: &Clock<'_>, near: i64) -> Option<i64> {
        let text = String::from_utf8_lossy(head(text));
        self.parts(&text, clock, near).at
    }

    /// A line; none where it is empty.
    pub(crate) fn line(&self, text: &[u8], clock: &Clock<'_>, near: i64) -> Option<Line> {
        // What was lost in a crash is zeros.
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
            // Numbers and marks of the program's own, as redis' `#`.
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

/// Its first bytes.
fn head(text: &[u8]) -> &[u8] {
    &text[..text.len().min(HEAD)]
}

/// As far as a character goes.
fn start(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// By a profile's own format, in the target's zone where it has none.
fn by_format(text: &str, format: &str, clock: &Clock<'_>, near: i64) -> Option<i64> {
    let (parsed, _) = strtime::BrokenDownTime::parse_prefix(format, text).ok()?;
    if let Ok(at) = parsed.to_timestamp() {
        return Some(at.as_microsecond());
    }
    if let Ok(civil) = parsed.to_datetime() {
        return Some(clock.local(civil)? * SECOND + i64::from(civil.subsec_nanosecond() / 1000));
    }
    // Without a year.
    let date = (i64::from(parsed.month()?), i64::from(parsed.day()?));
    let time = (
        i64::from(parsed.hour().unwrap_or(0)),
        i64::from(parsed.minute().unwrap_or(0)),
        i64::from(parsed.second().unwrap_or(0)),
    );
    without_year(date, time, clock, near)
}

/// The latest such day that doesn't lie a day after the time that nothing can be before.
fn without_year(
    (month, day): (i64, i64),
    (hour, minute, second): (i64, i64, i64),
    clock: &Clock<'_>,
    near: i64,
) -> Option<i64> {
    let year = jiff::Timestamp::from_second(near).ok()?.to_zoned(clock.zone().clone()).year();
    let at = |year: i16| -> Option<i64> {
        let civil = DateTime::new(
            year,
            month.try_into().ok()?,
            day.try_into().ok()?,
            hour.try_into().ok()?,
            minute.try_into().ok()?,
            second.min(59).try_into().ok()?,
            0,
        );
        clock.local(civil.ok()?)
    };
    let found = at(year).filter(|at| *at <= near + 86_400).or_else(|| at(year - 1))?;
    Some(found * SECOND)
}

/// Any of the usual forms, and where in the text it ends.
fn usual(text: &str, clock: &Clock<'_>, near: i64) -> Option<(i64, usize)> {
    let bytes = text.as_bytes();
    let first = bytes.iter().position(|byte| !matches!(byte, b' ' | b'[' | b'(' | b'"' | b'\t'))?;
    let rest = &text[first..];
    let (at, length) = iso(rest, clock).or_else(|| syslog(rest, clock, near)).or_else(|| seconds(rest))?;
    Some((at, first + length))
}

fn digits(text: &str, at: usize, count: usize) -> Option<i64> {
    let part = text.as_bytes().get(at..at + count)?;
    part.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

fn is_at(text: &str, at: usize, allowed: &[u8]) -> bool {
    text.as_bytes().get(at).is_some_and(|byte| allowed.contains(byte))
}

/// `10:15:02` at a place.
fn time_of_day(text: &str, at: usize) -> Option<(i64, i64, i64)> {
    let separated = is_at(text, at + 2, b":") && is_at(text, at + 5, b":");
    let (hour, minute, second) = (digits(text, at, 2)?, digits(text, at + 3, 2)?, digits(text, at + 6, 2)?);
    (separated && hour < 24 && minute < 60 && second < 61).then_some((hour, minute, second.min(59)))
}

/// `2026-03-01T10:15:02.123+01:00`, `2026/03/01 10:15:02`, `2026-03-01  10:15:02,123`.
fn iso(text: &str, clock: &Clock<'_>) -> Option<(i64, usize)> {
    if !(is_at(text, 4, b"-/") && is_at(text, 7, b"-/") && is_at(text, 10, b"T _:-")) {
        return None;
    }
    let (year, month, day) = (digits(text, 0, 4)?, digits(text, 5, 2)?, digits(text, 8, 2)?);
    let begins = if is_at(text, 11, b" ") { 12 } else { 11 };
    let (hour, minute, second) = time_of_day(text, begins)?;
    let mut end = begins + 8;
    let mut micros = 0;
    if is_at(text, end, b".,") && is_at(text, end + 1, b"0123456789") {
        let fraction = text[end + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let six: String = text[end + 1..end + 1 + fraction.min(6)].to_owned();
        micros = format!("{six:0<6}").parse().ok()?;
        end += 1 + fraction;
    }
    let utc = linux_sysadmin_sdk::time::unix([year, month, day], [hour, minute, second])?;
    if let Some((offset, length)) = offset(&text[end..]) {
        return Some(((utc - offset) * SECOND + micros, end + length));
    }
    let at = clock.local(civil((year, month, day), (hour, minute, second))?)?;
    Some((at * SECOND + micros, end))
}

fn civil((year, month, day): (i64, i64, i64), (hour, minute, second): (i64, i64, i64)) -> Option<DateTime> {
    DateTime::new(
        year.try_into().ok()?,
        month.try_into().ok()?,
        day.try_into().ok()?,
        hour.try_into().ok()?,
        minute.try_into().ok()?,
        second.try_into().ok()?,
        0,
    )
    .ok()
}

/// `Z`, `+01:00`, `-0500`, ` UTC`: seconds, and how long it is.
fn offset(text: &str) -> Option<(i64, usize)> {
    if text.starts_with('Z') {
        return Some((0, 1));
    }
    if text.starts_with(" UTC") || text.starts_with(" GMT") {
        return Some((0, 4));
    }
    let blank = usize::from(text.starts_with(' '));
    let sign = match text.as_bytes().get(blank)? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = digits(text, blank + 1, 2)?;
    let colon = usize::from(is_at(text, blank + 3, b":"));
    let minutes = digits(text, blank + 3 + colon, 2)?;
    Some((sign * (hours * 3600 + minutes * 60), blank + 5 + colon))
}

fn month(name: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    MONTHS.iter().position(|month| *month == name).map(|at| at as i64 + 1)
}

/// `Mar  1 10:15:02`, with a weekday in front and a year behind where a program writes them (`Sun Mar 01 10:15:02.123
/// 2026`).
fn syslog(text: &str, clock: &Clock<'_>, near: i64) -> Option<(i64, usize)> {
    let weekday =
        ["Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "].iter().any(|day| text.starts_with(day));
    let begins = if weekday { 4 } else { 0 };
    let month = month(text.get(begins..begins + 3)?)?;
    let day = text.get(begins + 4..begins + 6)?.trim_start().parse().ok()?;
    if !is_at(text, begins + 6, b" ") {
        return None;
    }
    let time = time_of_day(text, begins + 7)?;
    let end = begins + 15;
    if weekday {
        let fraction = text[end..].bytes().take_while(|byte| *byte == b'.' || byte.is_ascii_digit()).count();
        if let Some(year) = digits(text, end + fraction + 1, 4) {
            let at = clock.local(civil((year, month, day), time)?)?;
            return Some((at * SECOND, end + fraction + 5));
        }
    }
    Some((without_year((month, day), time, clock, near)?, end))
}

/// `1795346221.997`, as squid and auditd write it.
fn seconds(text: &str) -> Option<(i64, usize)> {
    let begins = if text.starts_with("type=") { text.find("msg=audit(")? + 10 } else { 0 };
    let second = digits(text, begins, 10)?;
    if !is_at(text, begins + 10, b".") || !(1_000_000_000..5_000_000_000).contains(&second) {
        return None;
    }
    let millis = digits(text, begins + 11, 3)?;
    let end = text[begins..].find([' ', ')']).map_or(text.len(), |end| begins + end);
    // An audit record is nothing without its type.
    Some((second * SECOND + millis * 1000, if begins > 0 { 0 } else { end }))
}

/// `[01/Mar/2026:10:15:02 +0000]` somewhere in a line of a web server: one whose answer was the server's own fault is an
/// error. What is said is the whole line without the time.
fn common<'a>(text: &'a str, _: &Clock<'_>) -> Option<Parts<'a>> {
    let short = start(text, HEAD);
    let (begins, at) = short.match_indices('[').find_map(|(at, _)| Some((at, clf(&text[at + 1..])?)))?;
    let level = common_status(text).and_then(|status| (500..600).contains(&status).then_some(Level::ERROR));
    // `[01/Mar/2026:10:15:02 +0000] `
    let message = format!("{}{}", &text[..begins], text[begins + 1..].split_once(']')?.1.trim_start());
    Some(Parts { at: Some(at), level, source: None, message: message.into() })
}

fn clf(text: &str) -> Option<i64> {
    let month = month(text.get(3..6)?)?;
    let separated = is_at(text, 2, b"/") && is_at(text, 6, b"/") && is_at(text, 11, b":");
    let (day, year) = (digits(text, 0, 2)?, digits(text, 7, 4)?);
    let (hour, minute, second) = time_of_day(text, 12).filter(|_| separated)?;
    let (offset, _) = offset(text.get(20..)?)?;
    Some((linux_sysadmin_sdk::time::unix([year, month, day], [hour, minute, second])? - offset) * SECOND)
}

/// Behind the request.
fn common_status(text: &str) -> Option<i64> {
    let mut quoted = text.match_indices("\" ");
    let (end, _) = quoted.next()?;
    digits(text, end + 2, 3)
}

/// An object in each line.
fn by_json<'a>(text: &'a str, clock: &Clock<'_>, near: i64) -> Option<Parts<'a>> {
    let Ok(serde_json::Value::Object(members)) = serde_json::from_str(text) else { return None };
    let member = |names: &[&str]| names.iter().find_map(|name| members.get(*name));
    let at = match member(&["time", "ts", "timestamp", "@timestamp", "date", "t"]) {
        Some(serde_json::Value::String(written)) => usual(written, clock, near).map(|(at, _)| at),
        Some(serde_json::Value::Number(number)) => number.as_f64().and_then(|number| {
            // Seconds, or thousandths of them.
            let seconds = if number > 1e11 { number / 1e3 } else { number };
            (1e9..5e9).contains(&seconds).then_some((seconds * 1e6) as i64)
        }),
        _ => None,
    };
    let level =
        member(&["level", "lvl", "severity", "log.level"]).and_then(|level| Level::parse(level.as_str()?));
    // The message alone would lose the fields that say what it is about; docker's object has nothing else.
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

/// A time in front, or somewhere near, then maybe a host and a program.
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

/// `01 Mar 2026 10:15:02` behind a word or two.
fn day_first(text: &str, clock: &Clock<'_>) -> Option<i64> {
    let begins =
        text.match_indices(' ').map(|(at, _)| at + 1).take(3).find(|at| {
            digits(text, *at, 2).is_some() && text.get(at + 3..at + 6).and_then(month).is_some()
        })?;
    let date =
        (digits(text, begins + 7, 4)?, month(text.get(begins + 3..begins + 6)?)?, digits(text, begins, 2)?);
    Some(clock.local(civil(date, time_of_day(text, begins + 12)?)?)? * SECOND)
}

/// `host name[1]: message`, as syslog writes it.
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

/// How bad a program says itself that it is, where it writes to the journal what it would write to a file.
pub(crate) fn marked(text: &str) -> Option<Level> {
    let short = start(text, 200);
    short
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .zip(places(short))
        .find_map(|(word, place)| is_mark(short, word, place).then(|| Level::parse(word)).flatten())
}

/// How bad it is, by what programs write: `[error]`, `level=warn`, `WARNING:`, or plain words.
fn by_words(text: &str) -> Option<Level> {
    let short = start(text, 200);
    marked(text).or_else(|| {
        let lower = short.to_ascii_lowercase();
        let says = |word: &str| {
            lower.match_indices(word).any(|(at, _)| {
                let (before, after) = (&lower[..at], &lower[at + word.len()..]);
                let is_negated = ["no ", "0 ", "without "].iter().any(|no| before.ends_with(no));
                !is_negated && is_word_between(before, after)
            })
        };
        if ["panic", "fatal", "out of memory", "oom-kill", "segfault", "critical"]
            .iter()
            .any(|word| says(word))
        {
            Some(Level::CRITICAL)
        } else if ["error", "failed", "failure", "cannot", "can't", "unable to", "traceback"]
            .iter()
            .any(|word| says(word))
        {
            Some(Level::ERROR)
        } else {
            ["warn", "denied", "refused", "timed out", "timeout"]
                .iter()
                .any(|word| says(word))
                .then_some(Level::WARNING)
        }
    })
}

/// Whether what stands between is a word, and not part of a name such as `libgpg-error0` or `/var/log/error.log`.
fn is_word_between(before: &str, after: &str) -> bool {
    let joins = |letter: char| letter.is_ascii_alphanumeric() || "-_/".contains(letter);
    let after = after.strip_prefix('s').unwrap_or(after);
    let is_name = after
        .strip_prefix('.')
        .is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_alphanumeric()));
    !before.ends_with(|letter: char| joins(letter) || letter == '.') && !after.starts_with(joins) && !is_name
}

/// Where the words begin that a text is split into.
fn places(text: &str) -> impl Iterator<Item = usize> {
    std::iter::once(0).chain(
        text.char_indices()
            .filter(|(_, letter)| !letter.is_ascii_alphanumeric())
            .map(|(at, letter)| at + letter.len_utf8()),
    )
}

/// Whether a word stands as a level does: in brackets, behind `level=`, before a colon, or in capitals.
fn is_mark(text: &str, word: &str, at: usize) -> bool {
    // Numbers are levels only where somebody says so.
    if word.len() < 3 || word.bytes().any(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let (before, after) = (&text[..at], &text[at + word.len()..]);
    let bracketed = before.ends_with(['[', '<', '(', '|', '"', '=', '@'])
        && (after.is_empty() || after.starts_with([']', '>', ')', '|', '"', ' ', ':']));
    let capitals = word.bytes().all(|byte| byte.is_ascii_uppercase());
    let in_front = after.starts_with(": ") && (before.is_empty() || before.ends_with([' ', ']', ':']));
    bracketed && !before.ends_with("(") || capitals || in_front
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::moment;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    /// 2026-03-02 00:00:00 UTC.
    const NEAR: i64 = 1_772_409_600;

    fn read(form: &Form, text: &str) -> (Option<String>, Option<&'static str>, String, String) {
        let cx = FakeTarget::new().context();
        let line = form.line(text.as_bytes(), &Clock::new(&cx), NEAR).unwrap();
        (line.at.map(moment::text), line.level.map(Level::name), line.source.to_string(), line.message)
    }

    #[test]
    fn the_usual_forms_are_read_whoever_writes_them() {
        let form = Form::unknown("x.log");
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
            // The day after the file was last written to is the year before.
            ("Dec 31 23:59:59 host x[1]: y", Some("2025-12-31T23:59:59Z"), None, "x", "y"),
            // No form, a date in another language, bytes that are none.
            ("  at foo.bar(Baz.java:12)", None, None, "x.log", "  at foo.bar(Baz.java:12)"),
            ("1. März 2026, 10:15:02: nichts", None, None, "x.log", "1. März 2026, 10:15:02: nichts"),
            ("2026-99-99 99:99:99 x", None, None, "x.log", "2026-99-99 99:99:99 x"),
        ] {
            let (found, found_level, found_source, found_message) = read(&form, text);
            assert_eq!(
                (found.as_deref(), found_level, found_source.as_str(), found_message.as_str()),
                (time, level, source, message),
                "{text}"
            );
        }
    }

    #[test]
    fn a_web_servers_own_faults_are_errors() {
        let form = Form { format: LogFormat::Common, ..Form::unknown("access.log") };
        for (status, level) in [("502", Some("err")), ("404", None), ("200", None)] {
            let text = format!(
                "192.0.2.7 - - [01/Mar/2026:11:15:02 +0100] \"GET /error HTTP/1.1\" {status} 157 \"-\" \"curl\""
            );
            let (time, found, ..) = read(&form, &text);
            assert_eq!((time.as_deref(), found), (Some("2026-03-01T10:15:02Z"), level), "{text}");
        }
    }

    #[test]
    fn an_object_is_read_by_its_members() {
        let form = Form { format: LogFormat::Json, ..Form::unknown("x.log") };
        let caddy = r#"{"level":"error","ts":1772360102.5,"logger":"http","msg":"x"}"#;
        assert_eq!(
            read(&form, caddy),
            (Some("2026-03-01T10:15:02Z".into()), Some("err"), "x.log".into(), caddy.into())
        );
        let docker = r#"{"log":"ERROR: \"x\" failed\n","stream":"stderr","time":"2026-03-01T10:15:02.5Z"}"#;
        assert_eq!(
            read(&form, docker),
            (
                Some("2026-03-01T10:15:02Z".into()),
                Some("err"),
                "x.log".into(),
                r#"ERROR: \"x\" failed"#.into()
            )
        );
        assert_eq!(read(&form, "{broken").0, None);
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
        let form = Form::of(&log, "x").unwrap();
        let found = read(&form, "2026/03/01 10:15:02 [notice] signal 15 (error)");
        assert_eq!(
            found,
            (Some("2026-03-01T10:15:02Z".into()), Some("notice"), "x".into(), "signal 15 (error)".into())
        );
        // Without a year, and with a fraction.
        let log = knowledge::Log {
            line: Some("^(?P<time>.{15}) (?P<message>.*)$".into()),
            time: Some("%b %e %H:%M:%S".into()),
            ..log
        };
        let found = read(&Form::of(&log, "x").unwrap(), "Mar  1 10:15:02 y");
        assert_eq!(found.0.as_deref(), Some("2026-03-01T10:15:02Z"));
    }

    #[test]
    fn what_is_no_error_isnt_called_one() {
        for text in [
            "0 errors",
            "no error",
            "terror",
            "completed without error",
            "error.log rotated",
            "status installed libgpg-error0:amd64 1.46-1",
            "GET /error HTTP/1.1",
        ] {
            assert_eq!(by_words(text), None, "{text}");
        }
        for (text, level) in [
            ("x: error: y", 3),
            ("Error reading x", 3),
            ("cannot open x", 3),
            ("2 errors.", 3),
            ("[warn] x", 4),
            ("connection refused", 4),
            ("WARNING x", 4),
        ] {
            assert_eq!(by_words(text), Some(Level(level)), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_stands_in_a_line_breaks_it(text in "(2026-|Mar |[0-9]{10}\\.|type=|\\[|\\{\"log\":\"|time=\"){0,2}.{0,40}") {
            for format in [LogFormat::Plain, LogFormat::Json, LogFormat::Common] {
                let form = Form { format, ..Form::unknown("x") };
                let cx = FakeTarget::new().context();
                form.line(text.as_bytes(), &Clock::new(&cx), NEAR);
            }
        }
    }
}
