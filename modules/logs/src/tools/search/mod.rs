//! `log_search`: counts every line that matches, and shows the newest or the oldest of them, repeated ones once.

mod context;
mod hits;

use std::collections::{BTreeMap, VecDeque};

use linux_sysadmin_sdk::knowledge::{LogSource, Profile};
use linux_sysadmin_sdk::prelude::*;

use super::answer::{self, Order};
use crate::budget::{Budget, Spent};
use crate::clock::Clock;
use crate::fold::Groups;
use crate::journal::{self, JournalStream, NoEntries, Query};
use crate::level::{self, Level};
use crate::line_format::LineFormat;
use crate::pattern::Pattern;
use crate::service_sources;
use crate::text_logs::file::{self, File, Packing};
use crate::text_logs::grep::{self, GrepEnd};
use crate::text_logs::read::{self, End, Unpacking};
use crate::text_logs::{inventory, path, seek};
use crate::time_range::Range;
use crate::unit_names;
use context::{ContextWindow, FileLines};
use hits::{Hits, Kept, Match};

/// The size in bytes above which the target's grep searches a file.
const LARGE: u64 = 2 << 20;
/// The number of different messages that are counted.
const GROUPS: usize = 5_000;
/// The most lines around a match.
const CONTEXT: u32 = 10;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// Regex without look-around
    pattern: String,
    /// Plain text
    #[serde(default)]
    fixed: bool,
    /// Either case
    #[serde(default)]
    ignore_case: bool,
    /// Log, or directory of /var/log
    path: Option<String>,
    /// All its logs, as nginx
    service: Option<String>,
    /// Only the journal of these
    #[serde(default)]
    units: Vec<String>,
    /// Journal's of this and worse
    priority: Option<String>,
    /// `2h`, `2026-03-01 10:15`, `yesterday`
    since: Option<String>,
    /// `1h`, `2026-03-01 10:15`
    until: Option<String>,
    /// Lines around, up to 10
    context: Option<u32>,
    /// Which end; default newest
    order: Option<Order>,
    /// Lines; default 100
    limit: Option<u32>,
    /// Fold repeats; default true
    fold: Option<bool>,
}

#[derive(Serialize)]
pub(crate) struct Answer {
    /// The number of lines that match.
    matches: u64,
    lines: Vec<Match>,
    /// The number of matches in each source that has any.
    sources: BTreeMap<String, u64>,
    /// The number of files that were searched.
    #[serde(skip_serializing_if = "is_zero")]
    files: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// The sources that were not searched, with the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The files of a directory.
struct Logs {
    /// The files, each with the range in which it is searched.
    all: Vec<(File, Range)>,
    /// The time at which the journal begins, where that matters.
    begins: Option<i64>,
    /// The directory, where it has more files than can be listed.
    truncated: Option<String>,
}

/// A search under way.
struct Search<'a> {
    cx: &'a Context,
    clock: &'a Clock<'a>,
    budget: &'a Budget<'a>,
    profiles: Vec<Profile>,
    pattern: Pattern,
    range: Range,
    priority: Option<Level>,
    context: usize,
    hits: Hits<'a>,
    sources: BTreeMap<String, u64>,
    files: usize,
    left_out: Vec<String>,
    spent: Option<Spent>,
    /// The program that unpacks the next packed file.
    unpacking: Option<Unpacking>,
    /// The program names of the service that the caller names.
    programs: Vec<String>,
}

pub(crate) fn log_search(args: Args, cx: &Context) -> Result<Single<Answer>> {
    let pattern = Pattern::new(&args.pattern, args.fixed, args.ignore_case)?;
    let most = answer::limit(args.limit)?;
    let priority = level::priority(args.priority.as_deref())?;
    let context = args.context.unwrap_or(0);
    if context > CONTEXT {
        let message = format!("context is {context}; expected at most {CONTEXT}");
        return Err(Problem::validation("INVALID_CONTEXT", message));
    }
    let given = [args.path.is_some(), args.service.is_some(), !args.units.is_empty()];
    if given.iter().filter(|given| **given).count() > 1 {
        let message = "expected one of path, service and units at most";
        return Err(Problem::validation("INVALID_ARGUMENTS", message));
    }
    let (clock, budget) = (Clock::new(cx), Budget::slow(cx));
    let range = Range::parse(args.since.as_deref(), args.until.as_deref(), &clock)?;
    let order = args.order.unwrap_or_default();
    let fold = args.fold.unwrap_or(true) && context == 0;
    let kept = match fold {
        true => Kept::Folded(Groups::new(GROUPS, order == Order::Oldest)),
        false => Kept::Lines(VecDeque::new()),
    };
    let mut search = Search {
        cx,
        clock: &clock,
        budget: &budget,
        profiles: Vec::new(),
        range,
        priority,
        context: context as usize,
        hits: Hits { cx, regex: pattern.regex(), kept, matches: 0, most, order, waiting: Vec::new() },
        sources: BTreeMap::new(),
        files: 0,
        left_out: Vec::new(),
        spent: None,
        unpacking: None,
        programs: Vec::new(),
        pattern,
    };
    if let Some(path) = &args.path {
        search.profiles = cx.detected();
        search.path(path)?;
    } else if let Some(service) = &args.service {
        search.profiles = cx.detected();
        search.service(service)?;
    } else {
        let units = unit_names::of_profiles(cx, args.units.clone())
            .iter()
            .map(|name| unit_names::full(name))
            .collect();
        let units: Vec<String> = units;
        let is_all = units.is_empty();
        let asked = search.start_journal(Query { units, ..Query::default() })?;
        // journalctl prints while the profiles are looked at and the files are listed.
        search.profiles = cx.detected();
        let logs = is_all.then(|| search.logs_in(inventory::EVERYWHERE));
        let is_any = logs.as_ref().is_some_and(|logs| matches!(logs, Ok(Logs { begins: Some(_), .. })));
        if let Some(Ok(logs)) = &logs {
            search.unpack(&logs.all);
        }
        search.read_journal(asked, is_any)?;
        if let Some(logs) = logs {
            search.files(logs);
        }
    }
    Ok(Single(search.answer()))
}

impl Search<'_> {
    fn answer(self) -> Answer {
        let mut left_out = self.left_out;
        if let Some(spent) = self.spent {
            left_out.insert(0, format!("incomplete: {}", spent.text()));
        }
        const SAID: usize = 20;
        let unsaid = left_out.len().saturating_sub(SAID);
        left_out.truncate(SAID);
        if unsaid > 0 {
            left_out.push(format!("and {unsaid} more"));
        }
        let matches = self.hits.matches;
        let (lines, truncated) = self.hits.shown();
        Answer { matches, lines, sources: self.sources, files: self.files, truncated, left_out }
    }

    fn found(&mut self, source: &str, before: u64) {
        self.hits.settle();
        let found = self.hits.matches - before;
        if found > 0 {
            *self.sources.entry(source.to_owned()).or_default() += found;
        }
    }

    fn journal(&mut self, query: Query) -> Result<()> {
        let asked = self.start_journal(query)?;
        self.read_journal(asked, false)
    }

    fn start_journal(&self, query: Query) -> Result<(Query, JournalStream)> {
        let words = match self.context {
            0 if journal::is_askable(&self.pattern.words) => self.pattern.words.clone(),
            _ => Vec::new(),
        };
        let query = Query {
            range: self.range,
            priority: self.priority,
            words,
            ignores_case: self.pattern.ignores_case,
            ..query
        };
        let begun = journal::begin(self.cx, self.budget, &query)?;
        Ok((query, begun))
    }

    /// Reads what journalctl prints. `is_any` says that the journal is known to have entries.
    fn read_journal(&mut self, (query, begun): (Query, JournalStream), is_any: bool) -> Result<()> {
        let before = self.hits.matches;
        let mut feed = ContextWindow::new(self.context);
        let (pattern, hits) = (&self.pattern, &mut self.hits);
        let mut has_answer = false;
        let spent = journal::each_of(begun, self.budget, |entry| {
            has_answer = true;
            let is_match = pattern.is_match(entry.line.message.as_bytes());
            let text = if is_match { entry.line.message.clone() } else { String::new() };
            feed.line(None, is_match.then_some(text), || Some(entry.line), hits);
            true
        })?;
        feed.end(&mut self.hits);
        self.spent = self.spent.or(spent);
        self.found("journal", before);
        if has_answer || is_any && query.words.is_empty() {
            return Ok(());
        }
        // Either nothing matches, or journalctl can't search for words, or there is no journal.
        let no_entries = match is_any {
            true => NoEntries { lacks_grep: journal::lacks_grep(self.cx, self.budget), absent: None },
            false => journal::why_empty(self.cx, self.budget, &query)?,
        };
        if no_entries.lacks_grep {
            self.pattern.words.clear();
            return self.journal(query);
        }
        if let Some(absent) = no_entries.absent {
            self.left_out.push(format!("journal: {}", absent.text()));
            return Ok(());
        }
        let (loaded, unknown) = self.budget.waiting(|| unit_names::as_loaded(self.cx, &query.units));
        self.left_out.extend(unknown);
        match loaded {
            Some(units) => self.journal(Query { units, ..query }),
            None => Ok(()),
        }
    }

    /// Searches a file with its rotated files, or a directory.
    fn path(&mut self, path: &str) -> Result<()> {
        let path = match path.trim_end_matches('/') {
            "/var/log" => return self.directory(inventory::EVERYWHERE),
            path => path,
        };
        path::check(self.cx, path)?;
        match file::family(self.cx, self.budget, path, self.range) {
            Ok(found) => {
                let format = path::line_format(&self.profiles, path)?;
                for file in found {
                    self.file(&file, &format, self.range)?;
                }
                Ok(())
            }
            Err(problem) if problem.code == "IS_A_DIRECTORY" && path.starts_with("/var/log/") => {
                self.directory(&format!("{path}/"))
            }
            Err(problem) => Err(problem),
        }
    }

    fn directory(&mut self, below: &str) -> Result<()> {
        let logs = self.logs_in(below);
        self.files(logs);
        Ok(())
    }

    fn logs_in(&self, below: &str) -> Result<Logs> {
        let (found, truncated) = self.budget.waiting(|| inventory::all(self.cx))?;
        let all = inventory::text_logs(self.range, below, found);
        // The beginning of the journal matters only where the journal is searched as well.
        let begins = match below == inventory::EVERYWHERE {
            true => inventory::journal_begins(self.cx, self.budget, &all)?,
            false => None,
        };
        let truncated = truncated.then(|| below.to_owned());
        Ok(Logs { all: inventory::beside_journal(all, begins), begins, truncated })
    }

    /// Starts to unpack the first of these files that another program unpacks, so that it goes on beside other work.
    fn unpack(&mut self, logs: &[(File, Range)]) {
        let files = logs.iter().map(|(file, _)| file);
        self.unpacking = self.unpacking.take().or_else(|| Unpacking::first(self.cx, self.budget, files));
    }

    fn files(&mut self, logs: Result<Logs>) {
        let Logs { all: logs, truncated, .. } = match logs {
            Ok(logs) => logs,
            Err(problem) => return self.left_out.push(problem.message),
        };
        if let Some(below) = truncated {
            self.left_out.push(format!("{below} has more files than can be listed"));
        }
        for (at, (file, range)) in logs.iter().enumerate() {
            if self.spent.is_some() {
                self.left_out.extend(logs[at..].iter().map(|(file, _)| file.path.clone()));
                break;
            }
            self.unpack(&logs[at..]);
            // A file that can't be read doesn't stop the search.
            let read = path::line_format(&self.profiles, &file.path)
                .and_then(|format| self.file(file, &format, *range));
            match read {
                Ok(()) => {}
                Err(problem) if problem.code == "NOT_TEXT" => {}
                Err(problem) => self.left_out.push(problem.message),
            }
        }
    }

    fn service(&mut self, name: &str) -> Result<()> {
        service_sources::check(name)?;
        let Some(profile) = self.cx.profile(name) else {
            return self.journal(Query { units: vec![unit_names::full(name)], ..Query::default() });
        };
        let units = service_sources::units(&profile, name);
        // rsyslog's files hold the lines of all programs, and all of them count as its own.
        if profile.id != "rsyslog" {
            self.programs = service_sources::programs(&profile);
        }
        if !units.is_empty() {
            self.journal(Query { units, ..Query::default() })?;
        }
        for log in &profile.logs {
            match &log.source {
                LogSource::Journal(_) => {}
                LogSource::Identifier(name) => {
                    self.journal(Query { identifiers: vec![name.clone()], ..Query::default() })?;
                }
                LogSource::Path(glob) => {
                    for path in service_sources::expand(self.cx, self.budget, glob) {
                        match self.path(&path) {
                            Ok(()) => {}
                            Err(problem) => self.left_out.push(problem.message),
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, file: &File, format: &LineFormat, range: Range) -> Result<()> {
        let before = self.hits.matches;
        let begin = seek::begin(self.cx, self.budget, file, format, self.clock, range);
        let left = file.size.unwrap_or(0).saturating_sub(begin);
        let may_ask = file.packing == Packing::None
            && file.path.starts_with(inventory::EVERYWHERE)
            && !self.pattern.words.is_empty()
            // Reading a small part of a large file is faster than a grep of the whole file.
            && left > LARGE.max(file.size.unwrap_or(0) / 16);
        match if may_ask { self.grep(file, format, range) } else { GrepEnd::Unusable } {
            GrepEnd::Complete => {}
            GrepEnd::Stopped(spent) => self.note(file, spent),
            GrepEnd::Unusable => self.read(file, format, range, begin)?,
        }
        self.files += 1;
        self.found(&file.path, before);
        Ok(())
    }

    /// Searches a file with the target's grep.
    fn grep(&mut self, file: &File, format: &LineFormat, range: Range) -> GrepEnd {
        let mut options = vec!["--line-number".to_owned(), "--fixed-strings".to_owned()];
        options.extend(self.pattern.ignores_case.then(|| "--ignore-case".to_owned()));
        options.extend((self.context > 0).then(|| format!("--context={}", self.context)));
        options.extend(self.pattern.words.iter().map(|word| format!("--regexp={word}")));
        let mut texts = FileLines::new(format, self.clock, file, range, &self.programs);
        let mut feed = ContextWindow::new(self.context);
        let (pattern, hits) = (&self.pattern, &mut self.hits);
        let asked = grep::grep(self.cx, self.budget, options, &file.path, |text| {
            // grep prints `12:match`, `13-context`, and `--` between groups of lines.
            let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let number = std::str::from_utf8(&text[..digits]).ok().and_then(|digits| digits.parse().ok());
            if number.is_some() && matches!(text.get(digits), Some(b':' | b'-')) {
                texts.each(number, &text[digits + 1..], pattern, &mut feed, hits);
            }
        });
        feed.end(&mut self.hits);
        asked
    }

    fn read(&mut self, file: &File, format: &LineFormat, range: Range, begin: u64) -> Result<()> {
        let mut texts = FileLines::new(format, self.clock, file, range, &self.programs);
        let mut feed = ContextWindow::new(self.context);
        let (pattern, hits) = (&self.pattern, &mut self.hits);
        let begun = self.unpacking.take_if(|unpacking| unpacking.is_of(file));
        let end = read::each_of(self.cx, self.budget, file, begin, begun, |text| {
            texts.each(None, text, pattern, &mut feed, hits);
            true
        })?;
        feed.end(&mut self.hits);
        if let End::Spent(spent) = end {
            self.note(file, spent);
        }
        Ok(())
    }

    fn note(&mut self, file: &File, spent: Spent) {
        self.left_out.push(format!("{}: not to its end", file.path));
        self.spent = Some(spent);
    }
}
