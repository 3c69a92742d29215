//! Points in time in other tools' answers: RFC 3339, or a log's own form without a zone.

use linux_sysadmin_sdk::time::unix;

/// The seconds since the epoch of `2026-11-20T15:57:01Z`, `2026-11-20T15:57:01.5+01:00` or `2026-11-20  15:57:01`. A time
/// without a zone counts only where the machine's zone is UTC.
pub(crate) fn parse(text: &str, is_utc: bool) -> Option<i64> {
    let date = text.get(..10)?;
    let rest = text.get(10..)?.trim_start_matches(['T', ' ']);
    let clock = rest.get(..8)?;
    let zone = rest.get(8..)?.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    let seconds = unix(numbers(date, '-')?, numbers(clock, ':')?)?;
    match zone {
        "Z" => Some(seconds),
        "" => is_utc.then_some(seconds),
        zone => Some(seconds - offset(zone)?),
    }
}

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let parts = text.split(separator).map(|part| part.parse().ok()).collect::<Option<Vec<i64>>>()?;
    parts.try_into().ok()
}

/// The seconds of `+01:00` or `-0530`.
fn offset(zone: &str) -> Option<i64> {
    let sign = match zone.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let digits = zone.get(1..)?.replace(':', "");
    let (hours, minutes) = (digits.get(..2)?.parse::<i64>().ok()?, digits.get(2..4)?.parse::<i64>().ok()?);
    (digits.len() == 4).then_some(sign * (hours * 3600 + minutes * 60))
}

/// A span in words of one unit: `40 s`, `12 min`, `3 h`, `2 days`.
pub(crate) fn span(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7200 => format!("{} min", seconds / 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_other_tools_are_seconds_and_anything_else_is_none() {
        for (text, seconds) in [
            ("2026-11-20T16:22:01Z", Some(1_795_191_721)),
            ("2026-11-20T16:22:01.250Z", Some(1_795_191_721)),
            ("2026-11-20T17:22:01+01:00", Some(1_795_191_721)),
            ("2026-11-20T10:52:01-0530", Some(1_795_191_721)),
            ("2026-11-20  16:22:01", Some(1_795_191_721)),
            ("2026-11-20T16:22:01+1", None),
            ("2026-13-20T16:22:01Z", None),
            ("yesterday", None),
            ("äääääääää2026-11-20", None),
            ("", None),
        ] {
            assert_eq!(parse(text, true), seconds, "{text}");
        }
        assert_eq!(parse("2026-11-20 16:22:01", false), None, "the zone isn't known");
    }

    #[test]
    fn a_span_has_one_unit() {
        for (seconds, text) in
            [(-5, "0 s"), (40, "40 s"), (720, "12 min"), (10_800, "3 h"), (200_000, "2 days")]
        {
            assert_eq!(span(seconds), text);
        }
    }
}
