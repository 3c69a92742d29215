//! Points in time as seconds since the epoch and as text, in the proleptic Gregorian calendar and UTC.

/// Writes a time as RFC 3339 in UTC, to the second: `2026-11-20T15:57:01Z`.
pub fn rfc3339(unix: i64) -> String {
    let (days, second) = (unix.div_euclid(86_400), unix.rem_euclid(86_400));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The seconds since the epoch of a date (`[2026, 11, 20]`) and a time of day (`[15, 57, 1]`) in UTC. `None` where a
/// number is out of its range.
pub fn unix([year, month, day]: [i64; 3], [hour, minute, second]: [i64; 3]) -> Option<i64> {
    let plausible = (1..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let in_day = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    (plausible && in_day).then(|| days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

/// The days since the epoch. A year counts from March, so that the leap day is its last day. 400 years have 146,097 days.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The inverse of [`days`].
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * from_march + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::{date, days, rfc3339, unix};

    #[test]
    fn seconds_are_written_as_rfc_3339_and_back() {
        let table = [
            (0, "1970-01-01T00:00:00Z", [1970, 1, 1], [0, 0, 0]),
            (951_782_400, "2000-02-29T00:00:00Z", [2000, 2, 29], [0, 0, 0]),
            (1_795_191_721, "2026-11-20T16:22:01Z", [2026, 11, 20], [16, 22, 1]),
            (4_107_542_399, "2100-02-28T23:59:59Z", [2100, 2, 28], [23, 59, 59]),
            (-1, "1969-12-31T23:59:59Z", [1969, 12, 31], [23, 59, 59]),
        ];
        for (seconds, text, date, time) in table {
            assert_eq!(rfc3339(seconds), text);
            assert_eq!(unix(date, time), Some(seconds));
        }
    }

    #[test]
    fn every_day_of_a_calendar_cycle_comes_back() {
        for day in -200_000..200_000 {
            let (year, month, of_month) = date(day);
            assert_eq!(days(year, month, of_month), day);
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for date in [[2026, 0, 1], [2026, 13, 1], [2026, 1, 0], [2026, 1, 32], [0, 1, 1], [99_999, 1, 1]] {
            assert_eq!(unix(date, [0, 0, 0]), None);
        }
        assert_eq!(unix([2026, 1, 1], [24, 0, 0]), None);
    }
}
