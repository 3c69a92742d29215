//! A schedule in words, and warnings about surprising schedules.

use crate::expression::{Element, Expression, Field, Unit, Values, When, values_as_runs};
use crate::schedule::{Schedule, days_in};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The most times of day that are listed one by one.
const LISTED_TIMES: usize = 6;

/// Says when the expression runs, in one sentence without its full stop.
pub fn describe(expression: &Expression) -> String {
    let When::Times(fields) = &expression.when else {
        return "Once when cron starts after the system has booted".to_owned();
    };
    if fields.iter().any(Field::is_random) {
        let parts = fields.iter().filter(|field| field.is_random());
        let parts: Vec<_> = parts.map(|field| format!("{} {}", field.unit.name(), field.text)).collect();
        let fixed = fields.iter().filter(|field| !field.is_random() && !field.is_full());
        let fixed: Vec<_> =
            fixed.map(|field| format!("{} {}", field.unit.name(), field.expanded())).collect();
        let fixed = if fixed.is_empty() { String::new() } else { format!(", with {}", and(&fixed)) };
        return format!("At a time drawn when cron loads the crontab ({}){fixed}", and(&parts));
    }
    let [minute, hour, day_of_month, month, day_of_week] = &**fields;
    let mut sentence = times(minute, hour);
    let days = days(day_of_month, day_of_week);
    if !days.is_empty() {
        sentence += &format!(" on {days}");
    } else if !hour.is_full() {
        sentence += " every day";
    }
    if !month.is_full() {
        let name = |value: u8| MONTHS[usize::from(value) - 1].to_owned();
        sentence += &format!(" in {}", set(month.values, "month", name));
    }
    if !Schedule::new(fields).is_possible() {
        sentence += ", which never happens";
    }
    sentence
}

fn times(minute: &Field, hour: &Field) -> String {
    let hours: Vec<u8> = hour.values.iter().collect();
    let minutes: Vec<u8> = minute.values.iter().collect();
    let (first, last) = (minutes[0], minutes[minutes.len() - 1]);
    let clock = |hour: u8, minute: u8| format!("{hour:02}:{minute:02}");
    if !hour.is_full() && hours.len() * minutes.len() <= LISTED_TIMES {
        let times = hours.iter().flat_map(|hour| minutes.iter().map(|minute| clock(*hour, *minute)));
        return format!("At {}", and(&times.collect::<Vec<_>>()));
    }
    let every = match progression(&minutes) {
        _ if minute.is_full() => Some("Every minute".to_owned()),
        Some(step) if first == 0 && 60 % step == 0 && last + step == 60 => {
            Some(format!("Every {step} minutes"))
        }
        _ => None,
    };
    let at = match minutes[..] {
        [minute] => format!("At minute {minute}"),
        _ => format!("At {}", set(minute.values, "minute", |value| value.to_string())),
    };
    let of_hours = match (values_as_runs(hour.values).as_slice(), progression(&hours)) {
        _ if hour.is_full() => return every.unwrap_or_else(|| format!("{at} of every hour")),
        ([(from, to)], _) if every.is_some() => {
            format!(" from {} through {}", clock(*from, first), clock(*to, last))
        }
        ([(from, to)], _) => format!(" of every hour from {from} through {to}"),
        (_, Some(step)) if hours[0] < step && hours[hours.len() - 1] + step >= 24 => {
            let nth = ordinal(step);
            let preposition = if every.is_some() { "in" } else { "of" };
            format!(" {preposition} every {nth} hour starting at {}", clock(hours[0], 0))
        }
        _ => {
            let preposition = if every.is_some() { "in" } else { "of" };
            let hours: Vec<_> = hours.iter().map(u8::to_string).collect();
            format!(" {preposition} the hours {}", and(&hours))
        }
    };
    every.unwrap_or(at) + &of_hours
}

fn days(day_of_month: &Field, day_of_week: &Field) -> String {
    let dates = set(day_of_month.values, "day", |value| value.to_string());
    let dates = match day_of_month.values.len() {
        _ if dates.starts_with("every") => format!("{dates} of the month"),
        1 => format!("day {dates} of the month"),
        _ => format!("days {} of the month", dates.strip_prefix("days ").unwrap_or(&dates)),
    };
    let weekdays = set(day_of_week.values, "day of the week", |value| DAYS[usize::from(value)].to_owned());
    let both = day_of_month.star || day_of_week.star;
    match (day_of_month.is_full(), day_of_week.is_full()) {
        (true, true) => String::new(),
        (true, false) if both => weekdays,
        (false, true) if both => dates,
        // One field is full and neither begins with a star. Then either field suffices, so that this is every day.
        (true, _) | (_, true) => String::new(),
        (false, false) if both => format!("{dates} if that is {}", or(&weekday_names(day_of_week.values))),
        (false, false) => format!("{dates} and also on every {}", and(&weekday_names(day_of_week.values))),
    }
}

fn weekday_names(values: Values) -> Vec<String> {
    values.iter().map(|value| DAYS[usize::from(value)].to_owned()).collect()
}

/// Values in words: `1`, `5 and 20`, `1 through 5`, `every 2nd day from 1 through 31`.
fn set(values: Values, noun: &str, name: impl Fn(u8) -> String) -> String {
    let listed: Vec<u8> = values.iter().collect();
    if let Some(step) = progression(&listed).filter(|step| *step > 1 && listed.len() > 4) {
        let (from, to) = (name(listed[0]), name(listed[listed.len() - 1]));
        return format!("every {} {noun} from {from} through {to}", ordinal(step));
    }
    let mut parts = Vec::new();
    for (low, high) in values_as_runs(values) {
        match high - low {
            0 => parts.push(name(low)),
            1 => parts.extend([name(low), name(high)]),
            _ => parts.push(format!("{} through {}", name(low), name(high))),
        }
    }
    let plural = if noun == "minute" { "minutes " } else { "" };
    format!("{plural}{}", and(&parts))
}

/// The distance between neighbouring values, where it is always the same.
fn progression(values: &[u8]) -> Option<u8> {
    let step = values.get(1)? - values[0];
    values.windows(2).all(|pair| pair[1] - pair[0] == step).then_some(step)
}

fn ordinal(number: u8) -> String {
    match number {
        _ if number / 10 == 1 => format!("{number}th"),
        _ if number % 10 == 1 => format!("{number}st"),
        _ if number % 10 == 2 => format!("{number}nd"),
        _ if number % 10 == 3 => format!("{number}rd"),
        _ => format!("{number}th"),
    }
}

fn and(parts: &[String]) -> String {
    listing(parts, "and")
}

fn or(parts: &[String]) -> String {
    listing(parts, "or")
}

fn listing(parts: &[String], word: &str) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} {word} {last}", rest.join(", ")),
    }
}

/// Warnings about what a reader of the expression might not expect, one sentence each.
pub fn warnings(expression: &Expression) -> Vec<String> {
    let mut warnings = Vec::new();
    let When::Times(fields) = &expression.when else {
        warnings.push("@reboot has no clock times: cron runs it once when it starts after a boot".to_owned());
        return warnings;
    };
    let [minute, hour, day_of_month, month, day_of_week] = &**fields;
    let random = fields.iter().any(Field::is_random);
    if random {
        warnings.push(random_warning(fields));
    } else if !Schedule::new(fields).is_possible() {
        let months = set(month.values, "month", |value| MONTHS[usize::from(value) - 1].to_owned());
        let days = set(day_of_month.values, "day", |value| value.to_string());
        warnings.push(format!("this never runs: there is no day {days} in {months}"));
        return warnings;
    }
    if minute.star && minute.is_full() && !hour.is_full() && !hour.is_random() {
        let one = hour.values.iter().next().unwrap_or(0);
        let hours = hour.values.len();
        warnings.push(format!(
            "the minute is `*`: this runs in every minute of {}, {} times a day; \
             once an hour would be minute 0 (`0 {} …`)",
            if hours == 1 { format!("hour {one}") } else { format!("{hours} hours") },
            60 * hours,
            hour.text,
        ));
    }
    for field in &**fields {
        warnings.extend(field.elements.iter().filter_map(|element| step_warning(field, *element)));
    }
    warnings.extend(days_warning(day_of_month, day_of_week));
    if !random {
        warnings.extend(short_months_warning(day_of_month, month));
    }
    warnings
}

fn random_warning(fields: &[Field; 5]) -> String {
    let mut reads = Vec::new();
    let mut refused = false;
    for field in fields.iter().filter(|field| field.is_random()) {
        for part in field.text.split(',').filter(|part| part.contains('~')) {
            match part.split_once('~') {
                Some((low, _)) if !low.is_empty() => reads.push(format!("`{part}` as `{low}`")),
                _ => refused = true,
            }
        }
    }
    let debian = match (reads.is_empty(), refused) {
        (_, true) => "refuses the line".to_owned(),
        (false, _) => format!("silently reads {} and skips the rest of the field", and(&reads)),
        (true, _) => "doesn't know it".to_owned(),
    };
    format!(
        "`~` is cronie's: the value is drawn anew whenever cron loads the crontab; Debian's cron {debian}"
    )
}

/// A warning about a step that doesn't divide the range evenly.
fn step_warning(field: &Field, element: Element) -> Option<String> {
    let unit = field.unit;
    let Element::Range { low, high, step: step @ 2.. } = element else { return None };
    if low != unit.first() || high < unit.last() - u8::from(unit == Unit::DayOfWeek) {
        return None;
    }
    let count = u32::from(unit.last() - unit.first()) + u32::from(unit != Unit::DayOfWeek);
    let (circle, name) = match unit {
        Unit::Minute => ("hour", "minute"),
        Unit::Hour => ("day", "hour"),
        Unit::DayOfMonth => ("month", "day"),
        Unit::Month => ("year", "month"),
        Unit::DayOfWeek => ("week", "day"),
    };
    if step >= count {
        let only = if unit == Unit::DayOfWeek { "Sunday".to_owned() } else { format!("{name} {low}") };
        return Some(format!("a step of {step} in the field {} leaves only {only}", unit.name()));
    }
    // The length of a month changes, so that no step of days fits.
    if unit == Unit::DayOfMonth {
        return Some(format!(
            "a step of {step} in the field {} starts anew every month: \
             the 1st follows the last of its days, however near",
            unit.name()
        ));
    }
    if count.is_multiple_of(step) {
        return None;
    }
    let last = field.values.iter().next_back()?;
    let label = |value: u8| match unit {
        Unit::DayOfWeek => DAYS[usize::from(value)].to_owned(),
        Unit::Month => MONTHS[usize::from(value) - 1].to_owned(),
        _ => format!("{name} {value}"),
    };
    let left = count - u32::from(last - low);
    Some(format!(
        "a step of {step} in the field {} starts anew every {circle}: from {} to {} it is {left} {name}{}",
        unit.name(),
        label(last),
        label(low),
        if left == 1 { "" } else { "s" },
    ))
}

fn days_warning(day_of_month: &Field, day_of_week: &Field) -> Option<String> {
    let restricted = |field: &Field| !field.is_full() || field.is_random();
    match (day_of_month.star, day_of_week.star) {
        (false, false) if !restricted(day_of_month) || !restricted(day_of_week) => {
            let full = if restricted(day_of_month) { day_of_week } else { day_of_month };
            Some(format!(
                "`{}` in the field {} names every day but isn't `*`: \
                 cron runs the job when either day field matches, so this runs every day",
                full.text,
                full.unit.name(),
            ))
        }
        (false, false) => Some(
            "day of month and day of week are both given: \
             cron runs the job when either matches, not only when both do"
                .to_owned(),
        ),
        _ if !restricted(day_of_month) || !restricted(day_of_week) => None,
        (dom_star, _) => {
            let field = if dom_star { day_of_month } else { day_of_week };
            Some(format!(
                "`{}` starts with `*`, so cron counts the field {} as unrestricted and runs the job \
                 only when both day fields match; written without the `*` either would do",
                field.text,
                field.unit.name(),
            ))
        }
    }
}

/// A warning about days that some months don't have.
fn short_months_warning(day_of_month: &Field, month: &Field) -> Option<String> {
    // A range from an early day on means "until the end", and a step has its own warning.
    let runs = values_as_runs(day_of_month.values);
    let named: Vec<u8> = runs.iter().filter(|run| run.0 > 28).flat_map(|run| run.0..=run.1).collect();
    if named.is_empty() || day_of_month.star {
        return None;
    }
    let lacking = |year: i16| {
        let months = month.values.iter().filter(move |month| days_in(year, *month) > 0);
        let named = named.clone();
        months.filter(move |month| named.iter().any(|day| *day > days_in(year, *month))).collect::<Vec<u8>>()
    };
    let never = lacking(2000);
    let sometimes = lacking(2001);
    let names = |months: &[u8]| {
        and(&months.iter().map(|month| MONTHS[usize::from(*month) - 1].to_owned()).collect::<Vec<_>>())
    };
    let days: Vec<String> = named.iter().map(u8::to_string).collect();
    match (never.is_empty(), sometimes.is_empty()) {
        (true, true) => None,
        (true, false) => Some("29 February is in leap years only".to_owned()),
        (false, _) if named.len() == 1 => Some(format!("day {} doesn't exist in {}", days[0], names(&never))),
        (false, _) => Some(format!("not all of the days {} exist in {}", and(&days), names(&never))),
    }
}
