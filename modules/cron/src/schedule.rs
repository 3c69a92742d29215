//! Computes when a job runs, by a walk along a time zone's clock that does at its changes what cron(8) does.
//!
//! Debian's cron and cronie count minutes of the wall clock and compare, at every wake-up, the minute it is
//! with the last minute whose jobs ran. A step of one is the normal case. Otherwise the clock was changed,
//! and the size of the step decides, with one distinction: a job is a *wildcard* job if its minute or hour
//! starts with `*`.
//!
//! | step, in minutes | wildcard jobs | other jobs |
//! | --- | --- | --- |
//! | 2 to 5 | every skipped minute is made up for at once | the same |
//! | 6 to 180 | go by the new time | every skipped minute is made up for at once |
//! | 0 to -179 | go by the new time | wait until the clock is past where it was |
//! | more, either way | go by the new time | the same |
//!
//! `croner` has a rule for daylight saving too, but not this one, and `jiff` gives what the walk needs: a
//! zone's offsets and the instants at which they change, from a time zone database in the component, for
//! there is no /usr/share/zoneinfo where it runs.

use std::ops::{ControlFlow, RangeInclusive};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use crate::expression::{Field, Unit, Values};

const MINUTE: i64 = 60;
const DAY_MINUTES: i64 = 24 * 60;

/// Larger steps, in minutes, are corrections of the clock.
const LARGE: i64 = 3 * 60;

/// The longest search without a run. An expression's days recur within 40 years: 29 February on one day of the week,
/// across a century year that is no leap year.
const PATIENCE: i64 = 50 * 366 * 24 * 60 * 60;

/// The longest segment, so that a search never looks much further than it must.
const STRIDE: i64 = 366 * 24 * 60 * 60;

/// The walk starts this long before the first run, so that cron's state is that of an undisturbed clock. It is longer
/// than any change that cron makes up for.
const RUN_UP: i64 = 2 * 24 * 60 * 60;

/// The five fields in a form that is matched quickly.
pub struct Schedule {
    minutes_of_day: Vec<i64>,
    days_of_month: Values,
    months: Values,
    days_of_week: Values,
    both_days_must_match: bool,
    wildcard: bool,
}

/// The relation of a run to a change of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The clock shows the scheduled time.
    Due,
    /// The scheduled time was skipped, and the job starts right after.
    MadeUp,
    /// The clock shows the scheduled time for the second time.
    Again,
}

/// One run of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The start of the run, in seconds since 1970.
    pub at: i64,
    /// The minute of the wall clock at which the run was due, in minutes since 1970-01-01 00:00 of that clock.
    pub scheduled: i64,
    /// The reason why the job runs at this time.
    pub cause: Cause,
}

/// The effect of a clock change on a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// cron makes up for this number of runs.
    MadeUp(usize),
    /// This number of runs doesn't happen.
    Skipped(usize),
    /// This number of runs happens in both passes.
    Twice(usize),
    /// This number of runs happens in the first pass only.
    Once(usize),
}

/// A clock change that affects runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The time of the change, in seconds since 1970.
    pub at: i64,
    /// The wall clock time that would have come, in minutes as in [`Run::scheduled`].
    pub from: i64,
    /// The wall clock time that came instead.
    pub to: i64,
    /// The effect on the runs.
    pub effect: Effect,
}

/// The next runs, and the clock changes that affect them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// The runs in ascending order.
    pub runs: Vec<Run>,
    /// The clock changes in ascending order, up to the last run.
    pub changes: Vec<Change>,
    /// The time at which the search ended without a further run, in seconds since 1970.
    pub gave_up: Option<i64>,
}

impl Schedule {
    /// Makes a schedule from fields without random values, in their order.
    pub fn new(fields: &[Field; 5]) -> Self {
        let [minute, hour, day_of_month, month, day_of_week] = fields;
        debug_assert!(fields.iter().map(|field| field.unit).eq(Unit::ALL));
        let hours = hour.values.iter().map(i64::from);
        let minutes_of_day =
            hours.flat_map(|hour| minute.values.iter().map(move |minute| hour * 60 + i64::from(minute)));
        Self {
            minutes_of_day: minutes_of_day.collect(),
            days_of_month: day_of_month.values,
            months: month.values,
            days_of_week: day_of_week.values,
            both_days_must_match: day_of_month.star || day_of_week.star,
            wildcard: minute.star || hour.star,
        }
    }

    /// Whether cron's rules for a changed clock leave the job to the new time.
    pub const fn is_wildcard(&self) -> bool {
        self.wildcard
    }

    /// Whether any calendar has such a day.
    pub fn is_possible(&self) -> bool {
        let a_date_exists = || {
            let longest = |month| if month == 2 { 29 } else { days_in(2000, month) };
            let first = self.days_of_month.iter().next();
            self.months.iter().any(|month| first.is_some_and(|day| day <= longest(month)))
        };
        // Otherwise one matching day field is enough, and every month has each day of the week.
        !self.minutes_of_day.is_empty()
            && !self.months.is_empty()
            && if self.both_days_must_match {
                !self.days_of_week.is_empty() && a_date_exists()
            } else {
                !self.days_of_week.is_empty() || a_date_exists()
            }
    }

    /// Whether a job runs on this day.
    pub fn matches_day(&self, date: Date) -> bool {
        let day = self.days_of_month.contains(date.day().unsigned_abs());
        let weekday = self.days_of_week.contains(date.weekday().to_sunday_zero_offset().unsigned_abs());
        self.months.contains(date.month().unsigned_abs())
            && if self.both_days_must_match { day && weekday } else { day || weekday }
    }

    /// The matching minutes of the wall clock in ascending order.
    fn minutes(&self, range: RangeInclusive<i64>) -> impl Iterator<Item = i64> {
        let (low, high) = range.into_inner();
        let first_day = low.div_euclid(DAY_MINUTES);
        let mut date = date_of(first_day);
        let mut day = first_day;
        std::iter::from_fn(move || {
            let this = (day, date?);
            day += 1;
            date = this.1.tomorrow().ok();
            (this.0 * DAY_MINUTES <= high).then_some(this)
        })
        .filter(|(_, date)| self.matches_day(*date))
        .flat_map(move |(day, _)| self.minutes_of_day.iter().map(move |minute| day * DAY_MINUTES + minute))
        .skip_while(move |minute| *minute < low)
        .take_while(move |minute| *minute <= high)
    }

    /// The first `count` runs after an instant, by the clock of a time zone.
    pub fn forecast(&self, zone: &TimeZone, after: Timestamp, count: usize) -> Forecast {
        let mut forecast = Forecast::default();
        if self.is_possible() {
            self.walk(zone, after.as_second(), count, &mut forecast);
        } else {
            forecast.gave_up = Some(after.as_second());
        }
        forecast
    }

    fn walk(&self, zone: &TimeZone, after: i64, count: usize, forecast: &mut Forecast) {
        let mut start = after - RUN_UP;
        let mut offset = offset_at(zone, start);
        // These are the last minute whose jobs ran, the last minute that passed, and the latest minute that the clock
        // ever showed.
        let mut done = wall_minute(start, offset) - 1;
        let mut previous = done;
        let mut latest = done;
        loop {
            let (end, next_offset) = segment_end(zone, start);
            let first = wall_minute(start, offset);
            let last = wall_minute(end - 1, offset);
            let from = previous + 1;
            let step = first - done;
            // cron wakes up when the minute changes. A clock that is set back by one minute doesn't wake it.
            let start_at = if first == previous { first + 1 } else { first };

            let mut emit = |at: i64, scheduled: i64, cause: Cause| {
                if at > after {
                    forecast.runs.push(Run { at, scheduled, cause });
                }
                if forecast.runs.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            let jump = step > LARGE || step <= -LARGE;
            let made_up = match step {
                _ if jump => None,
                2..=5 => Some(done + 1..=first - 1),
                6.. if !self.wildcard => Some(done + 1..=first - 1),
                _ => None,
            };
            if first != from && start > after {
                let count = |range| self.minutes(range).count();
                let effect = match &made_up {
                    Some(skipped) => Effect::MadeUp(count(skipped.clone())),
                    None if step > 1 => Effect::Skipped(count(from..=first - 1)),
                    None if self.wildcard || jump => Effect::Twice(count(first..=latest.min(last))),
                    None => Effect::Once(count(first..=done.min(last))),
                };
                let (Effect::MadeUp(n) | Effect::Skipped(n) | Effect::Twice(n) | Effect::Once(n)) = effect;
                if n > 0 {
                    forecast.changes.push(Change { at: start, from, to: first, effect });
                }
            }
            for minute in made_up.into_iter().flat_map(|skipped| self.minutes(skipped)) {
                if emit(start, minute, Cause::MadeUp).is_break() {
                    return;
                }
            }
            let due = if self.wildcard || jump { start_at } else { start_at.max(done + 1) };
            for minute in self.minutes(due..=last) {
                let cause = if minute <= latest { Cause::Again } else { Cause::Due };
                if emit((minute * MINUTE - i64::from(offset)).max(start), minute, cause).is_break() {
                    return;
                }
            }

            done = if jump { last } else { done.max(last) };
            previous = last;
            latest = latest.max(last);
            let since = forecast.runs.last().map_or(after, |run| run.at);
            if end - since > PATIENCE || next_offset.is_none() {
                forecast.gave_up = Some(end);
                return;
            }
            start = end;
            offset = next_offset.unwrap_or(offset);
        }
    }
}

/// The end of the segment with one offset that holds an instant, and the offset that follows. No offset follows at the
/// end of time.
fn segment_end(zone: &TimeZone, start: i64) -> (i64, Option<i32>) {
    let horizon = start + STRIDE;
    let end = Timestamp::from_second(start)
        .ok()
        .and_then(|start| zone.following(start).next())
        .map_or(horizon, |transition| transition.timestamp().as_second().min(horizon));
    match Timestamp::from_second(end) {
        Ok(instant) => (end, Some(zone.to_offset(instant).seconds())),
        Err(_) => (Timestamp::MAX.as_second(), None),
    }
}

fn offset_at(zone: &TimeZone, at: i64) -> i32 {
    Timestamp::from_second(at).map_or(0, |at| zone.to_offset(at).seconds())
}

const fn wall_minute(at: i64, offset: i32) -> i64 {
    (at + offset as i64).div_euclid(MINUTE)
}

fn date_of(day: i64) -> Option<Date> {
    Date::constant(1970, 1, 1).checked_add(Span::new().try_days(day).ok()?).ok()
}

/// A minute of the wall clock as `2026-03-29 02:30`.
pub fn wall_text(minute: i64) -> String {
    let date = date_of(minute.div_euclid(DAY_MINUTES)).map_or_else(String::new, |date| date.to_string());
    let minute = minute.rem_euclid(DAY_MINUTES);
    format!("{date} {:02}:{:02}", minute / 60, minute % 60)
}

/// The number of days of a month.
pub fn days_in(year: i16, month: u8) -> u8 {
    i8::try_from(month)
        .ok()
        .and_then(|month| Date::new(year, month, 1).ok())
        .map_or(0, |date| date.days_in_month().unsigned_abs())
}
