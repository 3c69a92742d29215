//! `log_query`: the newest or the oldest lines of the journal or of a file, in order of time.

use linux_sysadmin_sdk::prelude::*;

use crate::budget::Budget;
use crate::journal::{self, Found, Query};
use crate::line::{self, Level, Line, Shown};
use crate::moment::{Clock, Range};
use crate::tail::{self, Wanted};
use crate::{files, fold, unit};

/// Where an answer isn't told how long it may be.
pub(crate) const LIMIT: usize = 100;
/// The longest.
pub(crate) const MOST: usize = 2000;

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Order {
    #[default]
    Newest,
    Oldest,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// A text log instead of the journal, its rotated files included
    path: Option<String>,
    #[serde(default)]
    units: Vec<String>,
    /// Of syslog, as `sudo`
    identifier: Option<String>,
    /// This and worse: err, warning …
    priority: Option<String>,
    /// 0 this one, -1 the one before, or an id
    boot: Option<String>,
    /// Of the journal, as `_UID=1000`
    #[serde(default)]
    fields: Vec<String>,
    /// `2h`, `2026-03-01 10:15`, `yesterday` …
    since: Option<String>,
    until: Option<String>,
    /// `cursor` of an answer, to go on behind it
    after_cursor: Option<String>,
    /// Which are meant where there are more (default newest)
    order: Option<Order>,
    /// Lines (default 100)
    limit: Option<u32>,
    /// Show what is repeated once, with its count (default true)
    fold: Option<bool>,
}

/// Lines in order of time.
#[derive(Serialize)]
pub(crate) struct Answer {
    /// Of all lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<std::rc::Rc<str>>,
    lines: Vec<Shown>,
    /// How many those are, where some are shown once for all that say the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<usize>,
    /// What was looked at, where it wasn't said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sources: Vec<String>,
    /// What isn't there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
    /// There are more than were asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// To go on behind the last line.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

/// How many lines are asked for.
pub(crate) fn limit(asked: Option<u32>) -> Result<usize> {
    let asked = asked.map_or(LIMIT, |asked| asked as usize);
    if !(1..=MOST).contains(&asked) {
        let message = format!("limit is {asked}; expected 1 to {MOST}");
        return Err(Problem::validation("INVALID_LIMIT", message));
    }
    Ok(asked)
}

impl Answer {
    /// Lines of several sources, which keeps their order; the newest or the oldest `most`.
    pub(crate) fn new(cx: &Context, mut lines: Vec<Line>, most: usize, order: Order, fold: bool) -> Self {
        line::redact(cx, &mut lines);
        line::in_order(&mut lines);
        let cut = lines.len().saturating_sub(most);
        match order {
            Order::Newest => drop(lines.drain(..cut)),
            Order::Oldest => lines.truncate(most),
        }
        let mut shown = if fold { fold::near(&lines) } else { fold::none(&lines) };
        let total = (shown.len() < lines.len()).then_some(lines.len());
        let source = line::common_source(&mut shown);
        Self {
            source,
            lines: shown,
            total,
            sources: Vec::new(),
            missing: Vec::new(),
            truncated: cut > 0,
            cursor: None,
        }
    }

    pub(crate) fn truncated(mut self, truncated: bool) -> Self {
        self.truncated |= truncated;
        self
    }

    pub(crate) fn sources(mut self, sources: Vec<String>, missing: Vec<String>) -> Self {
        (self.sources, self.missing) = (sources, missing);
        self
    }
}

pub(crate) fn log_query(args: Args, cx: &Context) -> Result<Noted<Answer>> {
    let most = limit(args.limit)?;
    let order = args.order.unwrap_or_default();
    let fold = args.fold.unwrap_or(true);
    let priority = line::priority(args.priority.as_deref())?;
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
        units: unit::of_profiles(cx, args.units),
        identifiers: args.identifier.into_iter().collect(),
        priority,
        boot: args.boot,
        range,
        // What follows a cursor is read on from there.
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
        let (loaded, unknown) = unit::as_loaded(cx, &query.units);
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

/// The oldest entries: read until there are enough.
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
        // A stream doesn't tell why.
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
    files::check(cx, path)?;
    let form = files::form(&cx.detected(), path)?;
    let files = files::family(cx, budget, path, range)?;
    let wanted = Wanted { range, priority, programs: None };
    let found = match order {
        Order::Newest => tail::newest(cx, budget, &files, &form, clock, (&wanted, most)),
        Order::Oldest => tail::oldest(cx, budget, &files, &form, clock, (&wanted, most)),
    }?;
    let notes = found.spent.map(|spent| format!("not all of {path} was looked at: {}", spent.text()));
    let answer = Answer::new(cx, found.lines, most, order, fold).truncated(found.more);
    Ok(Noted { data: answer, notes: notes.into_iter().collect() })
}
