//! Points in time of a schedule: a cron expression, a word or a time of day, as cron and as systemd write them.

use std::collections::BTreeSet;

use linux_sysadmin_sdk::{prelude::*, text::excerpt};

/// The fields of a cron expression: name, least and greatest value.
const FIELDS: [(&str, u32, u32); 5] =
    [("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7)];
const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// A schedule that was checked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct When {
    /// The five fields of cron.
    pub(crate) cron: String,
    /// The same for `OnCalendar`. There are two where cron means "on this day of the month or on that weekday".
    pub(crate) calendars: Vec<String>,
}

impl When {
    pub(crate) fn checked(text: &str) -> Result<Self> {
        let refused = |why: String| {
            let message = format!(
                "{:?} is no schedule: {why}; expected a cron expression (`30 2 * * 1-5`), `HH:MM`, hourly, daily, weekly or monthly",
                excerpt(text, 100)
            );
            Problem::validation("INVALID_SCHEDULE", message)
        };
        let cron = match text.trim_start_matches('@') {
            "hourly" => "0 * * * *".to_owned(),
            "daily" | "midnight" => "0 0 * * *".to_owned(),
            "weekly" => "0 0 * * 0".to_owned(),
            "monthly" => "0 0 1 * *".to_owned(),
            other => match other.split_once(':') {
                Some((hour, minute)) => {
                    let number =
                        |text: &str| text.parse::<u32>().ok().filter(|_| (1..=2).contains(&text.len()));
                    let time =
                        number(hour).zip(number(minute)).ok_or_else(|| refused("no time of day".into()))?;
                    format!("{} {} * * *", time.1, time.0)
                }
                None => other.split_whitespace().collect::<Vec<_>>().join(" "),
            },
        };
        let words: Vec<_> = cron.split(' ').collect();
        if words.len() != FIELDS.len() {
            return Err(refused(format!("it has {} fields", words.len())));
        }
        let mut values = Vec::new();
        for (word, (name, least, greatest)) in words.iter().zip(FIELDS) {
            let found = numbers(word, least, greatest);
            values.push(found.ok_or_else(|| refused(format!("{word:?} is no {name} ({least}-{greatest})")))?);
        }
        let [minutes, hours, days, months, weekdays] = values.as_slice() else {
            return Err(refused(String::new()));
        };
        let date = |days: &str, weekdays: Option<&str>| {
            let weekdays = weekdays.map(|names| format!("{names} ")).unwrap_or_default();
            let [minute, hour] = [(minutes, 2), (hours, 2)].map(|(values, width)| listed(values, width));
            format!("{weekdays}*-{}-{days} {hour}:{minute}:00", listed(months, 2))
        };
        let names = weekdays.as_ref().map(|weekdays| {
            let days: BTreeSet<u32> = weekdays.iter().map(|day| day % 7).collect();
            days.into_iter()
                .filter_map(|day| WEEKDAYS.get(day as usize).copied())
                .collect::<Vec<_>>()
                .join(",")
        });
        let calendars = match (days, names) {
            (Some(_), Some(names)) => vec![date(&listed(days, 2), None), date("*", Some(&names))],
            (_, names) => vec![date(&listed(days, 2), names.as_deref())],
        };
        Ok(Self { cron, calendars })
    }
}

/// The values of a field; `Some(None)` for all of them.
fn numbers(word: &str, least: u32, greatest: u32) -> Option<Option<BTreeSet<u32>>> {
    if word == "*" {
        return Some(None);
    }
    let mut found = BTreeSet::new();
    for part in word.split(',') {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let step: usize = step.parse().ok().filter(|step| *step > 0)?;
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (least, greatest),
            Some((from, to)) => (from.parse().ok()?, to.parse().ok()?),
            None => range.parse().map(|only| (only, only)).ok()?,
        };
        if from < least || to > greatest || from > to {
            return None;
        }
        found.extend((from..=to).step_by(step));
    }
    Some(Some(found))
}

fn listed(values: &Option<BTreeSet<u32>>, width: usize) -> String {
    let Some(values) = values else { return "*".to_owned() };
    values.iter().map(|value| format!("{value:0width$}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_the_same_for_cron_and_for_systemd() {
        for (text, cron, calendars) in [
            ("30 2 * * *", "30 2 * * *", &["*-*-* 02:30:00"][..]),
            ("@daily", "0 0 * * *", &["*-*-* 00:00:00"]),
            ("weekly", "0 0 * * 0", &["Sun *-*-* 00:00:00"]),
            ("monthly", "0 0 1 * *", &["*-*-01 00:00:00"]),
            ("hourly", "0 * * * *", &["*-*-* *:00:00"]),
            ("3:05", "5 3 * * *", &["*-*-* 03:05:00"]),
            (
                "*/20  1-3,22 * 1,7 1-5",
                "*/20 1-3,22 * 1,7 1-5",
                &["Mon,Tue,Wed,Thu,Fri *-01,07-* 01,02,03,22:00,20,40:00"],
            ),
            ("0 4 1 * 0,7", "0 4 1 * 0,7", &["*-*-01 04:00:00", "Sun *-*-* 04:00:00"]),
        ] {
            let when = When::checked(text).unwrap();
            assert_eq!(
                (when.cron.as_str(), when.calendars),
                (cron, calendars.iter().map(|c| (*c).to_owned()).collect())
            );
        }
        for text in [
            "",
            "daily daily",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 8",
            "5-1 * * * *",
            "*/0 * * * *",
            "25:00",
            "3:60",
            "3:5:1",
            "x",
            "* * * *",
            "* * * * * *",
            "0 3 * * * root",
            "0\n3 * * *\n* x",
        ] {
            assert_eq!(When::checked(text).unwrap_err().code, "INVALID_SCHEDULE", "{text}");
        }
    }
}
