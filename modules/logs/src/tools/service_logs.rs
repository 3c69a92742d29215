//! `svc_logs`: shows what a service writes to all its logs, in order of time.

use std::collections::{BTreeSet, HashSet};

use linux_sysadmin_sdk::knowledge::{Log, LogFormat, LogSource, Profile};
use linux_sysadmin_sdk::prelude::*;

use super::answer::{self, Answer, Order};
use crate::budget::Budget;
use crate::clock::{Clock, SECOND};
use crate::journal::{self, Query};
use crate::level::{self, Level};
use crate::line::Line;
use crate::line_format::{self, LineFormat};
use crate::service_sources;
use crate::text_logs::file;
use crate::text_logs::tail::{self, LineFilter};
use crate::time_range::Range;
use crate::unit_names;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// Unit or profile, as nginx
    service: String,
    /// This and worse, as err
    priority: Option<String>,
    /// `2h`, `2026-03-01 10:15`, `yesterday`
    since: Option<String>,
    /// `1h`, `2026-03-01 10:15`
    until: Option<String>,
    /// Lines; default 100
    limit: Option<u32>,
    /// Fold repeats; default true
    fold: Option<bool>,
}

/// The lines of all logs of one service.
struct Sources<'a> {
    cx: &'a Context,
    clock: &'a Clock<'a>,
    budget: &'a Budget<'a>,
    range: Range,
    priority: Option<Level>,
    most: usize,
    lines: Vec<Line>,
    truncated: bool,
    /// The sources that were read.
    looked: Vec<String>,
    /// The sources that don't exist.
    missing: Vec<String>,
    notes: Vec<String>,
}

pub(crate) fn svc_logs(args: Args, cx: &Context) -> Result<Noted<Answer>> {
    service_sources::check(&args.service)?;
    let most = answer::limit(args.limit)?;
    let priority = level::priority(args.priority.as_deref())?;
    let (clock, budget) = (Clock::new(cx), Budget::quick(cx));
    let range = Range::parse(args.since.as_deref(), args.until.as_deref(), &clock)?;
    let profile = cx.profile(&args.service);
    let mut sources = Sources {
        cx,
        clock: &clock,
        budget: &budget,
        range,
        priority,
        most,
        lines: Vec::new(),
        truncated: false,
        looked: Vec::new(),
        missing: Vec::new(),
        notes: Vec::new(),
    };
    match &profile {
        Some(profile) => sources.of_profile(profile, &args.service)?,
        None => {
            let query = Query { units: vec![unit_names::full(&args.service)], ..Query::default() };
            sources.journal(query, unit_names::full(&args.service), false)?;
            if sources.lines.is_empty() && sources.missing.is_empty() {
                sources.notes.push(format!(
                    "no profile knows {}, and the journal has nothing of such a unit in that time",
                    args.service
                ));
            }
        }
    }
    let Sources { mut lines, truncated, looked, missing, notes, .. } = sources;
    without_copies(&mut lines);
    let answer = Answer::new(cx, lines, most, Order::Newest, args.fold.unwrap_or(true))
        .truncated(truncated)
        .sources(looked, missing);
    Ok(Noted { data: answer, notes })
}

impl Sources<'_> {
    fn of_profile(&mut self, profile: &Profile, asked: &str) -> Result<()> {
        let units = service_sources::units(profile, asked);
        let mut has_marks = false;
        let mut identifiers = BTreeSet::new();
        let mut paths = Vec::new();
        for log in &profile.logs {
            match &log.source {
                LogSource::Journal(_) => has_marks |= log.format != LogFormat::Journal,
                LogSource::Identifier(name) => {
                    identifiers.insert(name.clone());
                }
                LogSource::Path(path) => paths.push((path, log)),
            }
        }
        if !units.is_empty() {
            let name = units.join(", ");
            let query = Query { units, ..Query::default() };
            self.journal(query, name, has_marks)?;
        }
        if !identifiers.is_empty() {
            let name = identifiers.iter().cloned().collect::<Vec<_>>().join(", ");
            let query = Query { identifiers: identifiers.into_iter().collect(), ..Query::default() };
            self.journal(query, name, false)?;
        }
        let programs = service_sources::programs(profile);
        for (path, log) in paths {
            if log.format == LogFormat::Binary {
                continue;
            }
            let found = service_sources::expand(self.cx, self.budget, path);
            if found.is_empty() {
                self.missing.push(path.clone());
            }
            for path in found {
                self.file(&path, log, &programs, profile.id == "rsyslog")?;
            }
        }
        Ok(())
    }

    fn journal(&mut self, query: Query, name: String, has_marks: bool) -> Result<()> {
        let query = Query { range: self.range, priority: self.priority.filter(|_| !has_marks), ..query };
        match self.budget.waiting(|| journal::newest(self.cx, &query, self.most))? {
            Ok(found) => {
                self.truncated |= found.more;
                self.looked.push(format!("journal: {name}"));
                let marked = found.lines.into_iter().map(|mut line| {
                    if has_marks {
                        let marked = line_format::marked(&line.message);
                        line.level = marked.into_iter().chain(line.level).min();
                    }
                    line
                });
                let priority = self.priority;
                self.lines.extend(marked.filter(|line| {
                    priority.is_none_or(|most| line.level.is_some_and(|level| level <= most))
                }));
            }
            Err(absent) => self.missing.push(format!("journal: {}", absent.text())),
        }
        Ok(())
    }

    fn file(&mut self, path: &str, log: &Log, programs: &[String], all: bool) -> Result<()> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let format = LineFormat::of(log, name)?;
        let files = match file::family(self.cx, self.budget, path, self.range) {
            Ok(files) => files,
            Err(problem) if problem.code == "FILE_NOT_FOUND" => {
                self.missing.push(path.to_owned());
                return Ok(());
            }
            Err(problem) => {
                self.notes.push(problem.message);
                return Ok(());
            }
        };
        let is_shared = service_sources::SHARED.contains(&name) && !all;
        let filter = LineFilter {
            range: self.range,
            priority: self.priority,
            programs: is_shared.then_some(programs),
        };
        match tail::newest(self.cx, self.budget, &files, &format, self.clock, (&filter, self.most)) {
            Ok(found) => {
                self.truncated |= found.more;
                self.looked.push(path.to_owned());
                self.lines.extend(found.lines);
                let spent =
                    found.spent.map(|spent| format!("not all of {path} was looked at: {}", spent.text()));
                self.notes.extend(spent);
            }
            Err(problem) => self.notes.push(problem.message),
        }
        Ok(())
    }
}

/// Removes lines of files that are copies of the journal's lines, as syslog writes them.
fn without_copies(lines: &mut Vec<Line>) {
    // Only the journal's lines have a unit. A copy has the same second or the one before or after it.
    let of_journal: HashSet<(i64, String)> = lines
        .iter()
        .filter(|line| line.unit.is_some())
        .filter_map(|line| Some((line.at? / SECOND, line.message.trim().to_owned())))
        .collect();
    lines.retain(|line| {
        let Some(at) = line.at.filter(|_| line.unit.is_none()) else { return true };
        let second = at / SECOND;
        (second - 1..=second + 1)
            .all(|second| !of_journal.contains(&(second, line.message.trim().to_owned())))
    });
}
