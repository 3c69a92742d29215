//! Ranges of time, and the forms in which a caller may write their ends.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use linux_sysadmin_sdk::{prelude::*, time};

use crate::clock::{Clock, SECOND};

/// A range of time, in seconds since the epoch. It includes both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) since: Option<i64>,
    pub(crate) until: Option<i64>,
}

impl Range {
    /// Reads the ends as a caller writes them.
    pub(crate) fn parse(since: Option<&str>, until: Option<&str>, clock: &Clock<'_>) -> Result<Self> {
        let point = |name: &str, text: Option<&str>| text.map(|text| parse(name, text, clock)).transpose();
        let range = Self { since: point("since", since)?, until: point("until", until)? };
        if let (Some(since), Some(until)) = (range.since, range.until)
            && since > until
        {
            let (since, until) = (time::rfc3339(since), time::rfc3339(until));
            let message = format!("since ({since}) lies after until ({until})");
            return Err(Problem::validation("INVALID_RANGE", message));
        }
        Ok(range)
    }

    /// Whether a time lies within the range. A line without a time always does.
    pub(crate) fn holds(&self, micros: Option<i64>) -> bool {
        micros.is_none_or(|at| {
            let at = at.div_euclid(SECOND);
            self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at <= until)
        })
    }
}

const EXPECTED: &str = "expected a time (`2026-03-01 10:15`, `2026-03-01T10:15:00Z`, `10:15`, `@1795346221`), \
                        a span back from now (`2h`, `30 min ago`), `now`, `today` or `yesterday`";

fn parse(name: &str, text: &str, clock: &Clock<'_>) -> Result<i64> {
    let invalid = || Problem::validation("INVALID_TIME", format!("{name} is {text:?}; {EXPECTED}"));
    let text = text.trim();
    if let Some(at) = text.strip_prefix('@') {
        return at.parse().ok().filter(|at| (0..1 << 40).contains(at)).ok_or_else(invalid);
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at.as_second());
    }
    let today =
        || Timestamp::from_second(clock.now()).ok().map(|now| now.to_zoned(clock.zone().clone()).date());
    let midnight = |date: Option<Date>| clock.local(date?.to_datetime(Time::midnight()));
    let found = match text {
        "now" => Some(clock.now()),
        "today" => midnight(today()),
        "yesterday" => midnight(today().and_then(|date| date.yesterday().ok())),
        _ if text.contains('-') && !text.starts_with('-') => {
            let civil = text
                .parse::<DateTime>()
                .ok()
                .or_else(|| text.parse::<Date>().ok().map(|date| date.to_datetime(Time::midnight())));
            civil.and_then(|civil| clock.local(civil))
        }
        _ if text.contains(':') => {
            let time = text.parse::<Time>().ok();
            time.zip(today()).and_then(|(time, date)| clock.local(date.to_datetime(time)))
        }
        _ => span(text).map(|seconds| clock.now().saturating_sub(seconds)),
    };
    found.ok_or_else(invalid)
}

/// The seconds in `2h`, `-1 day 30 min`, `90 minutes ago`.
fn span(text: &str) -> Option<i64> {
    let text = text.strip_prefix('-').unwrap_or(text);
    let mut rest = text.strip_suffix("ago").unwrap_or(text).trim();
    let mut seconds = 0_i64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let count: i64 = rest[..end].parse().ok()?;
        rest = rest[end..].trim_start();
        let end = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "s" | "sec" | "second" | "seconds" => 1,
            "m" | "min" | "minute" | "minutes" => 60,
            "h" | "hr" | "hour" | "hours" => 3600,
            "d" | "day" | "days" => 86_400,
            "w" | "week" | "weeks" => 7 * 86_400,
            "month" | "months" => 30 * 86_400,
            "y" | "year" | "years" => 365 * 86_400,
            _ => return None,
        };
        seconds = seconds.checked_add(count.checked_mul(unit)?)?;
        rest = rest[end..].trim_start();
    }
    Some(seconds)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::clock::LOCALTIME;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    /// 2026-11-22 11:17:01 UTC.
    const AT: &str = "1795346221\n";

    fn range(since: Option<&str>, until: Option<&str>) -> Result<Range> {
        let cx = FakeTarget::new().answer(&["date", "+%s"], 0, AT, "").context();
        Range::parse(since, until, &Clock::new(&cx))
    }

    #[test]
    fn a_time_is_read_in_every_form_that_is_offered() {
        for (text, expected) in [
            ("@1795346221", "2026-11-22T11:17:01Z"),
            ("now", "2026-11-22T11:17:01Z"),
            ("today", "2026-11-22T00:00:00Z"),
            ("yesterday", "2026-11-21T00:00:00Z"),
            ("2h", "2026-11-22T09:17:01Z"),
            ("-2h", "2026-11-22T09:17:01Z"),
            ("1 day 30 min ago", "2026-11-21T10:47:01Z"),
            ("10:15", "2026-11-22T10:15:00Z"),
            ("2026-03-01", "2026-03-01T00:00:00Z"),
            ("2026-03-01 10:15", "2026-03-01T10:15:00Z"),
            ("2026-03-01T10:15:02", "2026-03-01T10:15:02Z"),
            ("2026-03-01T10:15:02+02:00", "2026-03-01T08:15:02Z"),
            ("2026-03-01T10:15:02.5Z", "2026-03-01T10:15:02Z"),
        ] {
            assert_eq!(time::rfc3339(range(Some(text), None).unwrap().since.unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused_and_says_what_was_expected() {
        for text in [
            "",
            "soon",
            "2026-13-01",
            "25:00",
            "@-1",
            "@x",
            "2 fortnights",
            "ago",
            "+",
            "99999999999999999 years",
            "1. März",
        ] {
            let problem = range(Some(text), None).unwrap_err();
            assert_eq!(problem.code, "INVALID_TIME", "{text}");
            assert!(problem.message.contains("yesterday"), "{}", problem.message);
        }
        assert_eq!(range(Some("1h"), Some("2h")).unwrap_err().code, "INVALID_RANGE");
        assert_eq!(range(Some("1h"), Some("1h")).unwrap().since, Some(1_795_342_621));
    }

    #[test]
    fn a_local_time_is_the_targets_own() {
        // The zone is always two hours ahead of UTC.
        let cx = FakeTarget::new().file(LOCALTIME, zone_file()).answer(&["date", "+%s"], 0, AT, "").context();
        let range = Range::parse(Some("2026-03-01 10:15"), Some("today"), &Clock::new(&cx)).unwrap();
        assert_eq!(time::rfc3339(range.since.unwrap()), "2026-03-01T08:15:00Z");
        assert_eq!(time::rfc3339(range.until.unwrap()), "2026-11-21T22:00:00Z");
    }

    /// A file as in tzfile(5): header and body of version 1 and of version 2 with one type, and the rule.
    fn zone_file() -> Vec<u8> {
        let part = || {
            let mut part = b"TZif2".to_vec();
            part.extend([0; 15]);
            // isutcnt, isstdcnt, leapcnt, timecnt, typecnt, charcnt
            for count in [0_u32, 0, 0, 0, 1, 4] {
                part.extend(count.to_be_bytes());
            }
            part.extend(7200_i32.to_be_bytes());
            part.extend([0, 0]);
            part.extend(b"XYZ\0");
            part
        };
        [part(), part(), b"\nXYZ-2\n".to_vec()].concat()
    }
}
