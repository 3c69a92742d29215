//! Compares the forecast with the daemon: with recorded runs of Debian's cron, and with a model of its main loop that
//! looks at every minute. The model shares only the offsets of the time zones with the forecast.
#![allow(clippy::unwrap_used)]

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use module_cron::expression::{Field, Unit, When};
use module_cron::parse::parse;
use module_cron::schedule::Schedule;
use module_cron::zone::zone;

fn fields(expression: &str) -> Box<[Field; 5]> {
    match parse(expression) {
        Ok(expression) => match expression.when {
            When::Times(fields) => fields,
            When::Boot => panic!("{expression:?} has no times"),
        },
        Err(problems) => panic!("{expression}: {problems:?}"),
    }
}

/// All runs after one instant and before another.
fn forecast(expression: &str, zone: &TimeZone, from: i64, to: i64) -> Vec<i64> {
    let most = usize::try_from((to - from) / 60 * 2).unwrap();
    let from = Timestamp::from_second(from).unwrap();
    let forecast = Schedule::new(&fields(expression)).forecast(zone, from, most);
    forecast.runs.iter().map(|run| run.at).filter(|at| *at < to).collect()
}

#[test]
fn runs_are_those_of_debians_cron() {
    let instant = |text: &str| {
        let local: DateTime = text.trim().parse().unwrap();
        TimeZone::UTC.to_timestamp(local).unwrap().as_second()
    };
    let mut lines = 0;
    for line in include_str!("data/debian-cron.txt").lines().filter(|line| !line.starts_with('#')) {
        let parts: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, from, to, expression, runs] = parts[..] else { panic!("{line}") };
        let seen: Vec<i64> = runs.split_whitespace().map(instant).collect();
        let told = forecast(expression, &zone(name).unwrap(), instant(from), instant(to));
        assert_eq!(told, seen, "{line}");
        lines += 1;
    }
    assert!(lines > 250, "{lines}");
}

/// cron.c's main loop, with one wake-up per minute and jobs that take no time.
fn daemon(fields: &[Field; 5], zone: &TimeZone, start: i64, end: i64) -> Vec<i64> {
    let wall = |at: i64| {
        let offset = zone.to_offset(Timestamp::from_second(at).unwrap()).seconds();
        (at + i64::from(offset)).div_euclid(60)
    };
    let mut runs = Vec::new();
    let mut find_jobs = |minute: i64, at: i64, wild: bool, fixed: bool| {
        if matches(fields, minute) && if fields[0].star || fields[1].star { wild } else { fixed } {
            runs.push(at);
        }
    };
    let mut running = wall(start);
    let mut virtual_time = running;
    // Since 1970, offsets have been multiples of 30 seconds.
    assert_eq!(start % 30, 0);
    for at in (start..end).step_by(30) {
        let clock = wall(at);
        if clock == running {
            continue;
        }
        running = clock;
        match running - virtual_time {
            1 => {
                virtual_time = running;
                find_jobs(running, at, true, true);
            }
            2..=5 => {
                while virtual_time < running {
                    virtual_time += 1;
                    find_jobs(virtual_time, at, true, true);
                }
            }
            6..=180 => {
                find_jobs(running, at, true, false);
                while virtual_time < running {
                    virtual_time += 1;
                    find_jobs(virtual_time, at, false, true);
                }
            }
            -179..=0 => find_jobs(running, at, true, false),
            _ => {
                virtual_time = running;
                find_jobs(running, at, true, true);
            }
        }
    }
    runs
}

fn matches(fields: &[Field; 5], minute: i64) -> bool {
    let date = Date::constant(1970, 1, 1) + jiff::Span::new().days(minute.div_euclid(1440));
    let minute = minute.rem_euclid(1440);
    let has = |index: usize, value: i64| fields[index].values.contains(u8::try_from(value).unwrap());
    let day = has(2, date.day().into());
    let weekday = has(4, date.weekday().to_sunday_zero_offset().into());
    let days = if fields[2].star || fields[4].star { day && weekday } else { day || weekday };
    has(0, minute % 60) && has(1, minute / 60) && has(3, date.month().into()) && days
}

/// Pseudo-random numbers from a fixed seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    fn field(&mut self, unit: Unit) -> String {
        let (first, last) = (u64::from(unit.first()), u64::from(unit.last()));
        // Most hours are around those at which clocks change.
        let (low, high) = if unit == Unit::Hour && self.below(3) > 0 { (0, 4) } else { (first, last) };
        match self.below(10) {
            0..3 => "*".to_owned(),
            3 => format!("*/{}", self.between(1, last)),
            4..7 => self.between(low, high).to_string(),
            7 | 8 => {
                let start = self.between(first, last);
                format!("{start}-{}/{}", self.between(start, last), self.between(1, 7))
            }
            _ => format!("{},{}", self.between(low, high), self.between(low, high)),
        }
    }

    fn expression(&mut self) -> String {
        let mut fields = Unit::ALL.map(|unit| self.field(unit));
        if self.below(3) > 0 {
            fields[3] = "*".to_owned();
        }
        if self.below(2) > 0 {
            fields[2] = "*".to_owned();
        }
        fields.join(" ")
    }
}

const DAY: i64 = 86_400;

/// Compares the forecast and the main loop from a day before to a day after a change, and returns the number of runs.
fn compare(zone: &TimeZone, change: i64, expression: &str, after: i64) -> usize {
    let (start, end) = (change - 2 * DAY, change + DAY);
    let mut seen = daemon(&fields(expression), zone, start, end);
    seen.retain(|at| *at > after);
    assert_eq!(forecast(expression, zone, after, end), seen, "{expression} in {zone:?} after {after}");
    seen.len()
}

fn changes(zone: &TimeZone, before: i64) -> Vec<i64> {
    let changes = zone.following(Timestamp::from_second(30 * DAY).unwrap());
    changes.map(|change| change.timestamp().as_second()).take_while(|change| *change < before).collect()
}

#[test]
fn runs_are_those_of_the_main_loop_around_real_changes() {
    let zones = [
        "Europe/Berlin",
        "Europe/Dublin",
        "Australia/Lord_Howe",
        "Australia/Sydney",
        "America/Havana",
        "America/St_Johns",
        "America/Caracas",
        "Africa/Cairo",
        "Africa/Casablanca",
        "Africa/Monrovia",
        "Asia/Beirut",
        "Asia/Pyongyang",
        "Pacific/Apia",
        "Pacific/Chatham",
        "Antarctica/Casey",
        "Antarctica/Troll",
        "Asia/Kathmandu",
        "UTC",
    ];
    let mut numbers = Numbers(7);
    let mut compared = 0;
    for name in zones {
        let zone = zone(name).unwrap();
        let changes = changes(&zone, 2_000_000_000);
        let some = changes.iter().copied().step_by(changes.len().div_ceil(8).max(1));
        for change in some.chain([1_750_000_020]) {
            for _ in 0..3 {
                let after = change - DAY + i64::try_from(numbers.below(30 * 3600)).unwrap();
                compared += compare(&zone, change, &numbers.expression(), after);
            }
        }
    }
    assert!(compared > 10_000, "{compared}");
}

#[test]
fn runs_are_those_of_the_main_loop_whatever_the_size_of_a_change() {
    let mut numbers = Numbers(11);
    let mut compared = 0;
    for minutes in [1, 2, 4, 5, 6, 59, 179, 180, 181, 182, 240, 1439] {
        let (hours, rest) = (minutes / 60, minutes % 60);
        let zone = format!("STD0DST-{hours}:{rest:02},J60/2,J300/3");
        let zone = TimeZone::posix(&zone).unwrap();
        for change in changes(&zone, 2 * 366 * DAY) {
            // These expressions cover the whole clock, and every minute around the change.
            for expression in ["* * * * *", "0-59 0-23 * * *", "*/2 1-4 * * *", "1-59/3 0-5 * * *"] {
                compared += compare(&zone, change, expression, change - 3600);
            }
            for _ in 0..5 {
                compared += compare(&zone, change, &numbers.expression(), change - DAY);
            }
        }
    }
    assert!(compared > 100_000, "{compared}");
}
