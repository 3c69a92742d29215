//! `svc_logs`: all that a service writes, in one order of time, wherever it writes it.

use std::collections::{BTreeSet, HashSet};

use linux_sysadmin_sdk::knowledge::{Log, LogFormat, LogSource, Profile};
use linux_sysadmin_sdk::{Privilege, prelude::*};

use crate::budget::Budget;
use crate::files;
use crate::form::{self, Form};
use crate::journal::{self, Query};
use crate::line::{self, Level, Line};
use crate::moment::{Clock, Range, SECOND};
use crate::query::{self, Answer, Order};
use crate::tail::{self, Wanted};

/// Files that a glob of a profile's may come to, the latest ones.
const FILES: usize = 20;

/// Where programs of all kinds write to.
pub(crate) const SHARED: &[&str] = &[
    "syslog",
    "messages",
    "auth.log",
    "secure",
    "daemon.log",
    "kern.log",
    "user.log",
    "mail.log",
    "maillog",
    "cron",
    "cron.log",
    "debug",
];

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// A unit, or the id of a profile
    service: String,
    /// This and worse: err, warning …
    priority: Option<String>,
    /// `2h`, `2026-03-01 10:15`, `yesterday` …
    since: Option<String>,
    until: Option<String>,
    /// Lines (default 100)
    limit: Option<u32>,
    /// Show what is repeated once, with its count (default true)
    fold: Option<bool>,
}

/// Whether a text may be the name of a service.
pub(crate) fn check(service: &str) -> Result<()> {
    let is_name = !service.is_empty()
        && service.len() <= 255
        && !service.starts_with(['.', '@', '-'])
        && service.bytes().all(|byte| byte.is_ascii_alphanumeric() || br":_.\@-".contains(&byte));
    if is_name {
        return Ok(());
    }
    let message = format!("{service:?} is no name of a service; expected one like `nginx` or `ssh.service`");
    Err(Problem::validation("INVALID_SERVICE", message))
}

/// All sources of one service.
struct Sources<'a> {
    cx: &'a Context,
    clock: &'a Clock<'a>,
    budget: &'a Budget<'a>,
    range: Range,
    priority: Option<Level>,
    most: usize,
    lines: Vec<Line>,
    truncated: bool,
    /// What was looked at.
    looked: Vec<String>,
    /// What wasn't there.
    missing: Vec<String>,
    notes: Vec<String>,
}

pub(crate) fn svc_logs(args: Args, cx: &Context) -> Result<Noted<Answer>> {
    check(&args.service)?;
    let most = query::limit(args.limit)?;
    let priority = line::priority(args.priority.as_deref())?;
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
            let query = Query { units: vec![unit(&args.service)], ..Query::default() };
            sources.journal(query, unit(&args.service), false)?;
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

/// With its suffix.
pub(crate) fn unit(name: &str) -> String {
    const SUFFIXES: [&str; 10] =
        ["service", "socket", "timer", "mount", "target", "path", "slice", "scope", "device", "automount"];
    match name.rsplit_once('.') {
        Some((_, suffix)) if SUFFIXES.contains(&suffix) => name.to_owned(),
        _ => format!("{name}.service"),
    }
}

impl Sources<'_> {
    fn of_profile(&mut self, profile: &Profile, asked: &str) -> Result<()> {
        let units = units(profile, asked);
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
        let programs = programs(profile);
        for (path, log) in paths {
            if log.format == LogFormat::Binary {
                continue;
            }
            let found = expand(self.cx, self.budget, path);
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
                        let marked = form::marked(&line.message);
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
        let form = Form::of(log, name)?;
        let files = match files::family(self.cx, self.budget, path, self.range) {
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
        let is_shared = SHARED.contains(&name) && !all;
        let wanted =
            Wanted { range: self.range, priority: self.priority, programs: is_shared.then_some(programs) };
        match tail::newest(self.cx, self.budget, &files, &form, self.clock, (&wanted, self.most)) {
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

/// Units whose journal is a service's. The main one's starts and stops count, wherever it writes; an instance is what it
/// was asked for.
pub(crate) fn units(profile: &Profile, asked: &str) -> Vec<String> {
    let mut units: BTreeSet<String> = profile.main_unit().map(|unit| unit.name.clone()).into_iter().collect();
    let own = unit(asked);
    if own.contains('@') && profile.unit(&own).is_some() {
        units.insert(own);
    }
    units.extend(profile.logs.iter().filter_map(|log| match &log.source {
        LogSource::Journal(unit) => Some(unit.clone()),
        _ => None,
    }));
    units.into_iter().collect()
}

/// True of a file that programs of all kinds write to, be it a rotated one.
pub(crate) fn is_shared(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    SHARED.iter().any(|shared| *shared == name || files::is_rotated(shared, name))
}

/// Names by which a service's lines are known in a file that others write to, too.
pub(crate) fn programs(profile: &Profile) -> Vec<String> {
    let units = profile.units.iter().filter_map(|unit| unit.name.split(['.', '@']).next());
    let names = profile.processes.iter().map(String::as_str).chain(units).chain([profile.id.as_str()]);
    let identifiers = profile.logs.iter().filter_map(|log| match &log.source {
        LogSource::Identifier(name) => Some(name.as_str()),
        _ => None,
    });
    names.chain(identifiers).map(str::to_owned).collect()
}

/// The files of a profile's glob, without rotated ones; the latest first.
pub(crate) fn expand(cx: &Context, budget: &Budget<'_>, glob: &str) -> Vec<String> {
    if !glob.contains('*') {
        return vec![glob.to_owned()];
    }
    let cx = &cx.files_as(Privilege::RootIfAvailable);
    let mut found = vec![String::new()];
    let mut parts = glob.trim_start_matches('/').split('/').peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        if !part.contains('*') {
            found.iter_mut().for_each(|path| *path = format!("{path}/{part}"));
            continue;
        }
        let mut next = Vec::new();
        found.truncate(FILES);
        let listed = budget.waiting(|| cx.list_all(&found));
        for (path, names) in found.iter().zip(listed) {
            let names = names.unwrap_or_default();
            let all: Vec<_> = names.iter().map(String::as_str).collect();
            let meant = all.iter().filter(|name| files::word(if part == "**" { "*" } else { part }, name));
            let originals = meant.filter(|name| {
                !is_last || !all.iter().any(|other| other != *name && files::is_rotated(other, name))
            });
            next.extend(originals.map(|name| format!("{path}/{name}")));
        }
        found = next;
    }
    let metadata = budget.waiting(|| cx.stat_all(&found));
    let mut files: Vec<_> = found
        .into_iter()
        .zip(metadata)
        .filter_map(|(path, metadata)| Some((metadata.ok()??, path)))
        .filter(|(metadata, _)| !metadata.is_dir)
        .map(|(metadata, path)| (std::cmp::Reverse(metadata.modified_unix), path))
        .collect();
    files.sort();
    files.into_iter().take(FILES).map(|(_, path)| path).collect()
}

/// What syslog wrote to a file is in the journal already.
fn without_copies(lines: &mut Vec<Line>) {
    // Only the journal's lines have a unit or microseconds; a copy has the same second, or the one beside it.
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
