//! Timestamps in the lines of text logs, in the usual formats, wherever they stand in the line.

use linux_sysadmin_sdk::{knowledge::expression, time};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The number of seconds that a timestamp may be in the future, because of clocks and time zones.
const AHEAD: i64 = 86_400;

/// The formats. Groups are `y` year, `m` month, `b` name of the month, `d` day, `t` time of day and `z` zone.
const FORMATS: [&str; 3] = [
    r"(?P<y>[0-9]{4})[-/](?P<m>[0-9]{2})[-/](?P<d>[0-9]{2})[T ](?P<t>[0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,][0-9]+)?(?P<z>Z|[+-][0-9]{2}:?[0-9]{2})?",
    r"(?P<d>[0-9]{2})[-/ ](?P<b>[A-Z][a-z]{2})[-/ ](?P<y>[0-9]{4})[: ](?P<t>[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.[0-9]+)?(?: (?P<z>[+-][0-9]{4}))?",
    r"(?P<b>[A-Z][a-z]{2}) +(?P<d>[0-9]{1,2}) (?P<t>[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.[0-9]+)?(?: (?P<y>[0-9]{4}))?",
];

/// The time of a line, in seconds since the epoch. A line without a zone is in the zone of the target, which is `offset`
/// seconds ahead of UTC. A line without a year is of the last year in which it isn't after `now`.
pub(crate) fn written(line: &str, now: i64, offset: i64) -> Option<i64> {
    FORMATS.iter().find_map(|format| {
        let found = expression(format).ok()?.captures(line)?;
        let group = |name: &str| found.name(name).map(|group| group.as_str());
        let number = |name: &str| group(name)?.parse::<i64>().ok();
        let of_name =
            |name: &str| MONTHS.iter().zip(1..).find(|(known, _)| **known == name).map(|(_, month)| month);
        let month = number("m").or_else(|| of_name(group("b")?))?;
        let mut of_day = group("t")?.split(':').map(|part| part.parse().ok());
        let of_day = [of_day.next()??, of_day.next()??, of_day.next()??];
        let zone = match group("z") {
            Some("Z") => 0,
            Some(zone) => seconds(zone)?,
            None => offset,
        };
        let at = |year: i64| Some(time::unix([year, month, number("d")?], of_day)? - zone);
        match number("y") {
            Some(year) => at(year),
            None => {
                let year: i64 = time::rfc3339(now).get(..4)?.parse().ok()?;
                at(year).filter(|moment| *moment <= now + AHEAD).or_else(|| at(year - 1))
            }
        }
    })
}

/// The seconds ahead of UTC that `+0200` or `-05:30` stands for.
pub(crate) fn seconds(zone: &str) -> Option<i64> {
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let digits: String = digits.chars().filter(|character| *character != ':').collect();
    let (hours, minutes) = digits.split_at_checked(2)?;
    Some(sign * (hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_in_the_forms_of_logs() {
        // 2026-03-01 10:15:02 UTC.
        let moment = 1_772_360_102;
        for line in [
            "2026/03/01 11:15:02 [error] 812#812: *17 open()",
            "2026-03-01 11:15:02,123 fail2ban.actions [77]: ERROR x",
            "2026-03-01T10:15:02.000Z host x: y",
            "2026-03-01T12:15:02+02:00 host x: y",
            "time=\"2026-03-01T10:15:02Z\" level=error msg=x",
            "192.0.2.7 - - [01/Mar/2026:10:15:02 +0000] \"GET /\"",
            "01-Mar-2026 11:15:02.123 general: error: x",
            "[Sun Mar 01 11:15:02.123456 2026] [core:error]",
            "Mar  1 11:15:02 host sshd[1]: x",
        ] {
            assert_eq!(written(line, moment + 5, 3600), Some(moment), "{line}");
        }
        // Without a year, it is the latest such date.
        assert_eq!(written("Dec 31 23:59:59 host x", 1_772_360_102, 0), Some(1_767_225_599));
        for line in ["", "no time", "2026-13-01 10:15:02", "Xyz  1 11:15:02 x", "99/99/9999"] {
            assert_eq!(written(line, moment, 0), None, "{line}");
        }
        assert_eq!(
            [seconds("+0200"), seconds("-05:30"), seconds("CET"), seconds("")],
            [Some(7200), Some(-19_800), None, None]
        );
    }
}
