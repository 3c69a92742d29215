//! The time of a line, by a profile's format or in one of the usual formats.

use jiff::civil::DateTime;
use jiff::fmt::strtime;

use crate::clock::{Clock, SECOND};

/// Reads a time by a profile's format. A time without a zone is in the target's zone.
pub(super) fn by_format(text: &str, format: &str, clock: &Clock<'_>, near: i64) -> Option<i64> {
    let (parsed, _) = strtime::BrokenDownTime::parse_prefix(format, text).ok()?;
    if let Ok(at) = parsed.to_timestamp() {
        return Some(at.as_microsecond());
    }
    if let Ok(civil) = parsed.to_datetime() {
        return Some(clock.local(civil)? * SECOND + i64::from(civil.subsec_nanosecond() / 1000));
    }
    // The format has no year.
    let date = (i64::from(parsed.month()?), i64::from(parsed.day()?));
    let time = (
        i64::from(parsed.hour().unwrap_or(0)),
        i64::from(parsed.minute().unwrap_or(0)),
        i64::from(parsed.second().unwrap_or(0)),
    );
    without_year(date, time, clock, near)
}

/// The latest time with this date that is at most a day after `near`.
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

/// Reads a time in one of the usual formats, and returns where in the text it ends.
pub(super) fn usual(text: &str, clock: &Clock<'_>, near: i64) -> Option<(i64, usize)> {
    let bytes = text.as_bytes();
    let first = bytes.iter().position(|byte| !matches!(byte, b' ' | b'[' | b'(' | b'"' | b'\t'))?;
    let rest = &text[first..];
    let (at, length) = iso(rest, clock).or_else(|| syslog(rest, clock, near)).or_else(|| seconds(rest))?;
    Some((at, first + length))
}

pub(super) fn digits(text: &str, at: usize, count: usize) -> Option<i64> {
    let part = text.as_bytes().get(at..at + count)?;
    part.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

fn is_at(text: &str, at: usize, allowed: &[u8]) -> bool {
    text.as_bytes().get(at).is_some_and(|byte| allowed.contains(byte))
}

/// Reads `10:15:02` at an offset.
fn time_of_day(text: &str, at: usize) -> Option<(i64, i64, i64)> {
    let separated = is_at(text, at + 2, b":") && is_at(text, at + 5, b":");
    let (hour, minute, second) = (digits(text, at, 2)?, digits(text, at + 3, 2)?, digits(text, at + 6, 2)?);
    (separated && hour < 24 && minute < 60 && second < 61).then_some((hour, minute, second.min(59)))
}

/// Reads `2026-03-01T10:15:02.123+01:00`, `2026/03/01 10:15:02`, `2026-03-01  10:15:02,123`.
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

/// Reads a zone: `Z`, `+01:00`, `-0500`, ` UTC`. Returns the seconds ahead of UTC, and the length of the text.
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

/// Reads `Mar  1 10:15:02`, also with a weekday before it and a year after it, as in `Sun Mar 01 10:15:02.123 2026`.
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

/// Reads `1795346221.997`, as squid and auditd write it.
fn seconds(text: &str) -> Option<(i64, usize)> {
    let begins = if text.starts_with("type=") { text.find("msg=audit(")? + 10 } else { 0 };
    let second = digits(text, begins, 10)?;
    if !is_at(text, begins + 10, b".") || !(1_000_000_000..5_000_000_000).contains(&second) {
        return None;
    }
    let millis = digits(text, begins + 11, 3)?;
    let end = text[begins..].find([' ', ')']).map_or(text.len(), |end| begins + end);
    // The message of an audit record is the whole line, because it needs its type.
    Some((second * SECOND + millis * 1000, if begins > 0 { 0 } else { end }))
}

/// Reads `01/Mar/2026:10:15:02 +0000` of the Common Log Format.
pub(super) fn clf(text: &str) -> Option<i64> {
    let month = month(text.get(3..6)?)?;
    let separated = is_at(text, 2, b"/") && is_at(text, 6, b"/") && is_at(text, 11, b":");
    let (day, year) = (digits(text, 0, 2)?, digits(text, 7, 4)?);
    let (hour, minute, second) = time_of_day(text, 12).filter(|_| separated)?;
    let (offset, _) = offset(text.get(20..)?)?;
    Some((linux_sysadmin_sdk::time::unix([year, month, day], [hour, minute, second])? - offset) * SECOND)
}

/// Reads `01 Mar 2026 10:15:02` after one to three words.
pub(super) fn day_first(text: &str, clock: &Clock<'_>) -> Option<i64> {
    let begins =
        text.match_indices(' ').map(|(at, _)| at + 1).take(3).find(|at| {
            digits(text, *at, 2).is_some() && text.get(at + 3..at + 6).and_then(month).is_some()
        })?;
    let date =
        (digits(text, begins + 7, 4)?, month(text.get(begins + 3..begins + 6)?)?, digits(text, begins, 2)?);
    Some(clock.local(civil(date, time_of_day(text, begins + 12)?)?)? * SECOND)
}
