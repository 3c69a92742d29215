//! Times and time spans, as `systemctl` prints them.

use linux_sysadmin_sdk::time;

/// Reads `Fri 2026-11-20 16:22:01 UTC` as seconds since the epoch. None where there is no time, and where it isn't in
/// UTC, because an abbreviation such as CST names several zones.
pub(crate) fn timestamp(text: &str) -> Option<i64> {
    let mut words = text.split(' ');
    let (_weekday, date, of_day, zone) = (words.next()?, words.next()?, words.next()?, words.next()?);
    if zone != "UTC" {
        return None;
    }
    let seconds_only = of_day.split('.').next()?;
    time::unix(three(date, '-')?, three(seconds_only, ':')?)
}

fn three(text: &str, separator: char) -> Option<[i64; 3]> {
    let mut parts = text.split(separator).map(|part| part.parse().ok());
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

/// Reads `1d 2h 30min 4.5s`, in the units of systemd.time(7), as microseconds. None for `infinity` and for unknown units.
pub(crate) fn span(text: &str) -> Option<u64> {
    const UNITS: [(&str, f64); 11] = [
        ("y", 31_557_600e6),
        ("month", 2_629_800e6),
        ("w", 604_800e6),
        ("d", 86_400e6),
        ("h", 3_600e6),
        ("min", 60e6),
        ("ms", 1e3),
        ("us", 1.0),
        ("μs", 1.0),
        ("µs", 1.0),
        ("s", 1e6),
    ];
    if text == "0" {
        return Some(0);
    }
    let parts = text.split_whitespace().map(|part| {
        let unit = part.trim_start_matches(|character: char| character.is_ascii_digit() || character == '.');
        let number: f64 = part.get(..part.len() - unit.len())?.parse().ok()?;
        let (_, microseconds) = UNITS.iter().find(|(name, _)| *name == unit)?;
        Some(number * microseconds)
    });
    let sum = parts.sum::<Option<f64>>()?;
    (sum > 0.0).then_some(sum.round() as u64)
}

/// Converts seconds to hours with two decimals.
pub(crate) fn hours(seconds: i64) -> f64 {
    (seconds as f64 / 36.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_utc_or_nothing() {
        let table = [
            ("Fri 2026-11-20 16:22:01 UTC", Some(1_795_191_721)),
            ("Fri 2026-11-20 16:22:01.123456 UTC", Some(1_795_191_721)),
            ("Thu 1970-01-01 00:00:00 UTC", Some(0)),
            ("Fri 2026-11-20 17:22:01 CET", None),
            ("Fri 2026-11-20 16:22:01", None),
            ("Fr 20. Nov 2026 16:22:01 UTC", None),
            ("Fri 2026-13-20 16:22:01 UTC", None),
            ("Fri 2026-11-20 16:22:01:00 UTC", None),
            ("Fri 99999999999999999999-11-20 16:22:01 UTC", None),
            ("n/a", None),
            ("0", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(timestamp(text), expected, "{text:?}");
        }
    }

    #[test]
    fn spans_are_sums_of_systemd_units() {
        let table = [
            ("38min 51.968179s", Some(2_331_968_179)),
            ("2d 23min 51.968179s", Some(174_231_968_179)),
            ("1w 1d 1h 1ms 7us", Some(694_800_001_007)),
            ("1y 2month", Some(36_817_200_000_000)),
            ("0", Some(0)),
            ("infinity", None),
            ("5 parsecs", None),
            ("min", None),
            ("1.2.3s", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(span(text), expected, "{text:?}");
        }
    }

    #[test]
    fn hours_have_two_digits() {
        assert_eq!([hours(108_360), hours(0), hours(59)], [30.1, 0.0, 0.02]);
    }
}
