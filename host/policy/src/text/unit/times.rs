//! Reads times in units, see systemd.time(7): spans, and the times at which a timer starts its unit.

use super::{Entry, Unit};
use crate::text::Schedule;

const MINUTE: f64 = 60.0;
const HOUR: f64 = 60.0 * MINUTE;
const DAY: f64 = 24.0 * HOUR;
/// A regular timer elapses at least once within this time.
const MONTH: f64 = 31.0 * DAY;

/// The days of the week. Their first three letters stand for them as well.
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Whether a span is at most ten minutes.
pub fn is_short(value: &str) -> bool {
    is_within(value, 10.0 * MINUTE)
}

/// Whether a span is at most as long as this. No value and 0 mean no limit.
fn is_within(value: &str, most: f64) -> bool {
    seconds(value).is_some_and(|seconds| seconds > 0.0 && seconds <= most)
}

/// The length of a span. A number alone is seconds.
fn seconds(value: &str) -> Option<f64> {
    let mut seconds = 0.0;
    let mut rest = value.trim();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..end].parse().ok()?;
        let behind = rest[end..].trim_start();
        let end = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        seconds += number
            * match &behind[..end] {
                "us" | "usec" => 1e-6,
                "ms" | "msec" => 1e-3,
                "" | "s" | "sec" | "second" | "seconds" => 1.0,
                "m" | "min" | "minute" | "minutes" => MINUTE,
                "h" | "hr" | "hour" | "hours" => HOUR,
                "d" | "day" | "days" => DAY,
                "w" | "week" | "weeks" => 7.0 * DAY,
                _ => return None,
            };
        rest = behind[end..].trim_start();
    }
    Some(seconds)
}

/// The schedule of a timer; `None` for other units.
pub fn schedule(unit: &Unit) -> Option<Schedule> {
    if !unit.name.ends_with(".timer") {
        return None;
    }
    // The first two only describe, and the others don't decide when the timer elapses.
    let decides = |entry: &&Entry| {
        !["Description", "Documentation"].contains(&entry.key.as_str())
            && entry.section != "Install"
            && !entry.section.starts_with("X-")
    };
    let entries: Vec<&Entry> = unit.entries.iter().filter(decides).collect();
    let settings: Vec<String> =
        entries.iter().map(|entry| format!("{}={}", entry.key, entry.value)).collect();
    Some(Schedule { is_regular: is_regular(&entries), settings: settings.join("\n") })
}

/// Whether a timer with these settings elapses at least once in about a month. A setting that isn't known for that may keep it
/// from it, such as a condition.
fn is_regular(entries: &[&Entry]) -> bool {
    // By a calendar, once after the start, and again after each run.
    let (mut by_calendar, mut once, mut again) = (false, false, false);
    for Entry { section, key, value, .. } in entries {
        if section != "Timer" {
            return false;
        }
        match key.as_str() {
            // An empty value resets all of them.
            key if key.starts_with("On") && value.is_empty() => {
                (by_calendar, once, again) = (false, false, false);
            }
            "OnCalendar" => by_calendar |= is_regular_calendar(value),
            "OnActiveSec" | "OnBootSec" | "OnStartupSec" => once |= is_within(value, MONTH),
            "OnUnitActiveSec" | "OnUnitInactiveSec" => again |= is_within(value, MONTH),
            "AccuracySec" | "RandomizedDelaySec" | "RandomizedOffsetSec" => {
                if !value.is_empty() && !seconds(value).is_some_and(|seconds| seconds <= DAY) {
                    return false;
                }
            }
            "Unit" | "Persistent" | "FixedRandomDelay" | "WakeSystem" | "OnClockChange"
            | "OnTimezoneChange" => {}
            _ => return false,
        }
    }
    by_calendar || once && again
}

/// Whether a calendar expression comes at least once in about a month, in each year.
fn is_regular_calendar(expression: &str) -> bool {
    let words: Vec<&str> = expression.split_whitespace().collect();
    let words = match words.split_last() {
        Some((&"UTC", rest)) => rest,
        _ => &words[..],
    };
    if let [nickname] = words
        && ["minutely", "hourly", "daily", "weekly", "monthly"].contains(nickname)
    {
        return true;
    }
    // Days of the week, date and time come in this order, each at most once.
    let kind = |word: &&str| match word {
        word if are_weekdays(word) => Some(0),
        word if is_each_month(word) => Some(1),
        word if is_time(word) => Some(2),
        _ => None,
    };
    let kinds: Option<Vec<u8>> = words.iter().map(kind).collect();
    kinds.is_some_and(|kinds| !kinds.is_empty() && kinds.is_sorted_by(|one, next| one < next))
}

fn are_weekdays(word: &str) -> bool {
    let is_day = |name: &str| {
        let name = name.to_ascii_lowercase();
        WEEKDAYS.iter().any(|day| *day == name || day[..3] == name)
    };
    word.split(',').all(|part| part.split("..").all(is_day))
}

/// Whether a date has days in each month of each year.
fn is_each_month(word: &str) -> bool {
    match word.split('-').collect::<Vec<_>>()[..] {
        ["*", "*", day] | ["*", day] => is_component(day, 1, 31),
        _ => false,
    }
}

/// Whether this is a time of the day.
fn is_time(word: &str) -> bool {
    match word.split(':').collect::<Vec<_>>()[..] {
        [hour, minute] => is_component(hour, 0, 23) && is_component(minute, 0, 59),
        [hour, minute, second] => {
            is_component(hour, 0, 23) && is_component(minute, 0, 59) && is_component(second, 0, 59)
        }
        _ => false,
    }
}

/// Whether a component of a date or a time is a list of numbers and ranges within these bounds, each with or without a step.
fn is_component(text: &str, least: u32, most: u32) -> bool {
    let is_number = |text: &str| text.parse().is_ok_and(|number: u32| (least..=most).contains(&number));
    text.split(',').all(|part| {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let is_range = range == "*" || {
            let (from, to) = range.split_once("..").unwrap_or((range, range));
            is_number(from) && is_number(to)
        };
        is_range && step.parse().is_ok_and(|step: u32| step > 0)
    })
}

#[cfg(test)]
mod tests {
    use crate::text::code_in_file;

    fn is_regular(settings: &str) -> bool {
        let text = format!("[Unit]\nDescription=x\n[Timer]\n{settings}\n[Install]\nWantedBy=timers.target\n");
        code_in_file("/etc/systemd/system/a.timer", text.as_bytes()).unwrap().schedule.unwrap().is_regular
    }

    #[test]
    fn a_timer_is_regular_that_elapses_each_month_whatever_happens() {
        for settings in [
            "OnCalendar=daily",
            "OnCalendar=monthly UTC",
            "OnCalendar=*:0/15",
            "OnCalendar=Mon..Fri 08..18:00",
            "OnCalendar=Wed,Sunday 03:00",
            "OnCalendar=*-*-02 07:00:00",
            "OnCalendar=*-1/3\nOnCalendar=weekly",
            "OnCalendar=*-*-* 22,23,00,01:00:00\nPersistent=true\nRandomizedDelaySec=1h",
            "OnBootSec=10min\nOnUnitActiveSec=1h 30min",
            "OnActiveSec=1\nOnUnitInactiveSec=2w\nUnit=b.service",
            "OnCalendar=2099-01-01\nOnCalendar=\nOnCalendar=hourly",
        ] {
            assert!(is_regular(settings), "{settings}");
        }
    }

    #[test]
    fn a_timer_is_not_regular_that_may_never_elapse() {
        for settings in [
            "",
            "OnCalendar=2099-01-01",
            "OnCalendar=2000-01-01 03:00",
            "OnCalendar=yearly",
            "OnCalendar=*-02-30",
            "OnCalendar=*-*-32",
            "OnCalendar=25:00",
            "OnCalendar=03:00 Mon",
            "OnCalendar=Mon Mon",
            "OnCalendar=someday",
            "OnCalendar=daily Mars/Olympus",
            "OnCalendar=daily\nOnCalendar=",
            "OnCalendar=daily\nOnBootSec=",
            "OnCalendar=daily\nRandomizedDelaySec=10y",
            "OnCalendar=daily\nAccuracySec=infinity",
            "OnCalendar=daily\nX=1",
            "OnCalendar=daily\n[Unit]\nConditionPathExists=/nowhere",
            "OnCalendar=daily\n[Unit]\nRequisite=b.service",
            "OnBootSec=10min",
            "OnUnitActiveSec=1h",
            "OnBootSec=10min\nOnUnitActiveSec=100y",
        ] {
            assert!(!is_regular(settings), "{settings}");
        }
    }
}
