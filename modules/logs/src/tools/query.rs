//! `log_query`: shows the newest or the oldest lines of the journal or of a file, in order of time.

use linux_sysadmin_sdk::prelude::*;

use super::answer::{Answer, Order, limit};
use crate::budget::Budget;
use crate::clock::Clock;
use crate::journal::{self, Found, Query};
use crate::level::{self, Level};
use crate::text_logs::tail::{self, LineFilter};
use crate::text_logs::{file, path};
use crate::time_range::Range;
use crate::unit_names;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// Text log instead, with its rotated files
    path: Option<String>,
    /// Units, as nginx
    #[serde(default)]
    units: Vec<String>,
    /// Syslog's, as `sudo`
    identifier: Option<String>,
    /// This and worse, as err
    priority: Option<String>,
    /// 0, -1 or an id
    boot: Option<String>,
    /// As `_UID=1000`
    #[serde(default)]
    fields: Vec<String>,
    /// `2h`, `2026-03-01 10:15`, `yesterday`
    since: Option<String>,
    /// `1h`, `2026-03-01 10:15`
    until: Option<String>,
    /// Go on behind it
    after_cursor: Option<String>,
    /// Which end; default newest
    order: Option<Order>,
    /// Lines; default 100
    limit: Option<u32>,
    /// Fold repeats; default true
    fold: Option<bool>,
}

pub(crate) fn log_query(args: Args, cx: &Context) -> Result<Noted<Answer>> {
    let most = limit(args.limit)?;
    let order = args.order.unwrap_or_default();
    let fold = args.fold.unwrap_or(true);
    let priority = level::priority(args.priority.as_deref())?;
    let clock = Clock::new(cx);
    let range = Range::parse(args.since.as_deref(), args.until.as_deref(), &clock)?;
    let budget = Budget::quick(cx);
    if let Some(path) = &args.path {
        let of_journal = [
            ("units", !args.units.is_empty()),
            ("identifier", args.identifier.is_some()),
            ("boot", args.boot.is_some()),
            ("fields", !args.fields.is_empty()),
            ("after_cursor", args.after_cursor.is_some()),
        ];
        if let Some((name, _)) = of_journal.iter().find(|(_, given)| *given) {
            let message = format!("{name} is of the journal, and path of a file; expected one of both");
            return Err(Problem::validation("INVALID_ARGUMENTS", message));
        }
        return of_file(cx, &clock, &budget, path, (range, priority), (most, order, fold));
    }
    let mut query = Query {
        units: unit_names::of_profiles(cx, args.units),
        identifiers: args.identifier.into_iter().collect(),
        priority,
        boot: args.boot,
        range,
        after_cursor: args.after_cursor,
        fields: args.fields,
        ..Query::default()
    };
    query.check()?;
    let forward = query.after_cursor.is_some() || order == Order::Oldest;
    let ask = |query: &Query| match forward {
        true => oldest(cx, &budget, query, most),
        false => journal::newest(cx, query, most),
    };
    let mut found = ask(&query)?;
    let mut notes = Vec::new();
    if found.as_ref().is_ok_and(|found| found.lines.is_empty()) {
        let (loaded, unknown) = unit_names::as_loaded(cx, &query.units);
        notes = unknown;
        if let Some(units) = loaded {
            query.units = units;
            found = ask(&query)?;
        }
    }
    let found = found.unwrap_or_else(|absent| {
        notes.push(format!("journal: {}", absent.text()));
        Found::default()
    });
    let cursor = found.cursor.or(query.after_cursor);
    let mut answer = Answer::new(cx, found.lines, most, order, fold).truncated(found.more);
    answer.cursor = cursor;
    Ok(Noted { data: answer, notes })
}

/// Reads the oldest entries until there are enough.
fn oldest(
    cx: &Context,
    budget: &Budget<'_>,
    query: &Query,
    most: usize,
) -> Result<std::result::Result<Found, journal::Absent>> {
    let mut found = Found::default();
    let stopped = journal::each(cx, budget, query, |entry| {
        found.more = found.lines.len() == most;
        if !found.more {
            found.lines.push(entry.line);
            found.cursor = Some(entry.cursor);
        }
        !found.more
    })?;
    found.more |= stopped.is_some();
    if found.lines.is_empty() {
        // A stream doesn't report why there is nothing.
        let output = cx.run(query.command(Some(1)))?;
        return journal::nothing_of(cx, query, &output);
    }
    Ok(Ok(found))
}

fn of_file(
    cx: &Context,
    clock: &Clock<'_>,
    budget: &Budget<'_>,
    path: &str,
    (range, priority): (Range, Option<Level>),
    (most, order, fold): (usize, Order, bool),
) -> Result<Noted<Answer>> {
    path::check(cx, path)?;
    let format = path::line_format(&cx.detected(), path)?;
    let files = file::family(cx, budget, path, range)?;
    let filter = LineFilter { range, priority, programs: None };
    let found = match order {
        Order::Newest => tail::newest(cx, budget, &files, &format, clock, (&filter, most)),
        Order::Oldest => tail::oldest(cx, budget, &files, &format, clock, (&filter, most)),
    }?;
    let notes = found.spent.map(|spent| format!("not all of {path} was looked at: {}", spent.text()));
    let answer = Answer::new(cx, found.lines, most, order, fold).truncated(found.more);
    Ok(Noted { data: answer, notes: notes.into_iter().collect() })
}
