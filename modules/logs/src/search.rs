//! `log_search`: every line that matches, counted; the newest or the oldest shown, and what is repeated shown once.

use std::collections::{BTreeMap, VecDeque};

use linux_sysadmin_sdk::knowledge::{LogSource, Profile};
use linux_sysadmin_sdk::prelude::*;
use regex::bytes::Regex;

use crate::ask::{self, Asked};
use crate::budget::{Budget, Spent};
use crate::files::{self, End, File, Packing};
use crate::fold::Groups;
use crate::form::Form;

use crate::inventory;
use crate::journal::{self, Begun, Query, Silence};
use crate::line::{self, Level, Line, Shown, shortened};
use crate::moment::{Clock, Range};
use crate::pattern::Pattern;
use crate::query::{self, Order};
use crate::service;
use crate::tail::Reader;
use crate::unit;

/// What a file has to have before another program is asked to look through it.
const LARGE: u64 = 2 << 20;
/// Different messages that are counted.
const GROUPS: usize = 5_000;
/// The most lines around a match.
const CONTEXT: u32 = 10;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// Regular expression (of the regex crate: no look-around)
    pattern: String,
    /// It is just text
    #[serde(default)]
    fixed: bool,
    #[serde(default)]
    ignore_case: bool,
    /// A log with its rotated files, or a directory in /var/log (default the journal and all of /var/log)
    path: Option<String>,
    /// All logs of this service
    service: Option<String>,
    /// The journal of these
    #[serde(default)]
    units: Vec<String>,
    /// Of the journal, this and worse
    priority: Option<String>,
    /// `2h`, `2026-03-01 10:15`, `yesterday` …
    since: Option<String>,
    until: Option<String>,
    /// Lines around each match, up to 10
    context: Option<u32>,
    /// Which are shown where there are more (default newest)
    order: Option<Order>,
    /// Lines (default 100)
    limit: Option<u32>,
    /// Show what is repeated once, with its count (default true without context)
    fold: Option<bool>,
}

/// A match, or several that are the same but for numbers and addresses.
#[derive(Serialize)]
#[serde(untagged)]
enum Match {
    Line(Shown),
    /// With those around it.
    Within {
        line: Shown,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        before: Vec<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        after: Vec<String>,
    },
}

#[derive(Serialize)]
pub(crate) struct Answer {
    /// All lines that match.
    matches: u64,
    lines: Vec<Match>,
    /// Matches in each source that has any.
    sources: BTreeMap<String, u64>,
    /// Files that were looked through.
    #[serde(skip_serializing_if = "is_zero")]
    files: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// What wasn't looked through, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A match with what is around it.
struct Hit {
    line: Line,
    before: Vec<String>,
    after: Vec<String>,
}

/// All that was found.
enum Kept {
    Folded(Groups),
    Lines(VecDeque<Hit>),
}

/// The files of a directory.
struct Logs {
    /// Each with the range that is meant of it.
    all: Vec<(File, Range)>,
    /// When the journal begins, where that was asked.
    begins: Option<i64>,
    /// The directory, where it has more.
    truncated: Option<String>,
}

/// Matches that are redacted at once.
const AT_ONCE: usize = 500;

struct Hits<'a> {
    cx: &'a Context,
    regex: Regex,
    kept: Kept,
    matches: u64,
    most: usize,
    order: Order,
    /// With the text that matched, which may be a secret's.
    waiting: Vec<(Hit, String)>,
}

impl Hits<'_> {
    fn add(&mut self, hit: Hit, text: String) {
        self.waiting.push((hit, text));
        if self.waiting.len() >= AT_ONCE {
            self.settle();
        }
    }

    /// Only what matches as it is shown is a match: another one would tell of a secret what it is searched for.
    fn settle(&mut self) {
        let (hits, texts): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting).into_iter().unzip();
        if texts.is_empty() {
            return;
        }
        let mut lines: Vec<Line> = hits.iter().map(|hit: &Hit| hit.line.clone()).collect();
        line::redact(self.cx, &mut lines);
        let redacted = lines.into_iter().zip(self.cx.redacted(texts));
        for (mut hit, (line, text)) in hits.into_iter().zip(redacted) {
            if line::is_like_a_keys(&hit.line.message) || !self.regex.is_match(text.as_bytes()) {
                continue;
            }
            hit.line = line;
            let beside = hit.before.iter_mut().chain(&mut hit.after);
            beside.for_each(|text| *text = line::without_a_keys(std::mem::take(text)));
            self.count(hit);
        }
    }

    fn count(&mut self, hit: Hit) {
        self.matches += 1;
        match &mut self.kept {
            Kept::Folded(groups) => groups.add(hit.line),
            Kept::Lines(lines) => {
                lines.push_back(hit);
                // Sources come one after the other, so it takes all of them to say which are the newest.
                if lines.len() >= 2 * self.most.max(1) {
                    self.cut();
                }
            }
        }
    }

    fn cut(&mut self) {
        let Kept::Lines(lines) = &mut self.kept else { return };
        let all = lines.make_contiguous();
        all.sort_by_key(|hit| hit.line.at);
        match self.order {
            Order::Newest => drop(lines.drain(..lines.len().saturating_sub(self.most))),
            Order::Oldest => lines.truncate(self.most),
        }
    }

    /// In order of time, and whether there are more.
    fn shown(mut self) -> (Vec<Match>, bool) {
        self.cut();
        match self.kept {
            Kept::Lines(lines) => {
                let more = self.matches > lines.len() as u64;
                let shown = lines.into_iter().map(|hit| {
                    let line = Shown::new(&hit.line, 1, None);
                    match hit.before.is_empty() && hit.after.is_empty() {
                        true => Match::Line(line),
                        false => Match::Within { line, before: hit.before, after: hit.after },
                    }
                });
                (shown.collect(), more)
            }
            Kept::Folded(groups) => {
                let dropped = groups.dropped > 0;
                let mut groups: Vec<_> = groups.into_groups().collect();
                match self.order {
                    Order::Newest => groups.sort_by_key(|group| std::cmp::Reverse(group.last)),
                    Order::Oldest => groups.sort_by_key(|group| group.first),
                }
                let more = dropped || groups.len() > self.most;
                groups.truncate(self.most);
                groups.sort_by_key(|group| group.last);
                let shown = groups.into_iter().map(|group| {
                    let line = Line { at: group.first, ..group.line };
                    Match::Line(Shown::new(&line, group.count, group.last))
                });
                (shown.collect(), more)
            }
        }
    }
}

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
    /// Programs of the service that is asked for.
    programs: Vec<String>,
}

pub(crate) fn log_search(args: Args, cx: &Context) -> Result<Single<Answer>> {
    let pattern = Pattern::new(&args.pattern, args.fixed, args.ignore_case)?;
    let most = query::limit(args.limit)?;
    let priority = line::priority(args.priority.as_deref())?;
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
        profiles: cx.detected(),
        range,
        priority,
        context: context as usize,
        hits: Hits { cx, regex: pattern.regex(), kept, matches: 0, most, order, waiting: Vec::new() },
        sources: BTreeMap::new(),
        files: 0,
        left_out: Vec::new(),
        spent: None,
        programs: Vec::new(),
        pattern,
    };
    if let Some(path) = &args.path {
        search.path(path)?;
    } else if let Some(service) = &args.service {
        search.service(service)?;
    } else {
        let units =
            unit::of_profiles(cx, args.units.clone()).iter().map(|name| service::unit(name)).collect();
        let units: Vec<String> = units;
        let is_all = units.is_empty();
        let asked = search.ask_journal(Query { units, ..Query::default() })?;
        // All print at once.
        let logs = is_all.then(|| search.logs_in(inventory::EVERYWHERE));
        let is_any = logs.as_ref().is_some_and(|logs| matches!(logs, Ok(Logs { begins: Some(_), .. })));
        search.journal_says(asked, is_any)?;
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
        let asked = self.ask_journal(query)?;
        self.journal_says(asked, false)
    }

    fn ask_journal(&self, query: Query) -> Result<(Query, Begun)> {
        let words = match self.context {
            0 if is_askable(&self.pattern.words) => self.pattern.words.clone(),
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

    /// `is_any`: there is something in the journal, whatever was asked for.
    fn journal_says(&mut self, (query, begun): (Query, Begun), is_any: bool) -> Result<()> {
        let before = self.hits.matches;
        let mut feed = Feed::new(self.context);
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
        // Whether nothing matches, or it can't be asked so, or not at all.
        let silence = match is_any {
            true => Silence { is_of_words: journal::is_of_words(self.cx, self.budget), absent: None },
            false => journal::silence(self.cx, self.budget, &query)?,
        };
        if silence.is_of_words {
            self.pattern.words.clear();
            return self.journal(query);
        }
        if let Some(absent) = silence.absent {
            self.left_out.push(format!("journal: {}", absent.text()));
            return Ok(());
        }
        let (loaded, unknown) = self.budget.waiting(|| unit::as_loaded(self.cx, &query.units));
        self.left_out.extend(unknown);
        match loaded {
            Some(units) => self.journal(Query { units, ..query }),
            None => Ok(()),
        }
    }

    /// A file with its rotated ones, or a directory.
    fn path(&mut self, path: &str) -> Result<()> {
        let path = match path.trim_end_matches('/') {
            "/var/log" => return self.directory(inventory::EVERYWHERE),
            path => path,
        };
        files::check(self.cx, path)?;
        match files::family(self.cx, self.budget, path, self.range) {
            Ok(found) => {
                let form = files::form(&self.profiles, path)?;
                for file in found {
                    self.file(&file, &form, self.range)?;
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
        // Only where the journal is asked, too.
        let begins = match below == inventory::EVERYWHERE {
            true => inventory::journal_begins(self.cx, self.budget, &all)?,
            false => None,
        };
        let truncated = truncated.then(|| below.to_owned());
        Ok(Logs { all: inventory::beside_journal(all, begins), begins, truncated })
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
            // One that can't be read is no reason to leave out the others.
            let read =
                files::form(&self.profiles, &file.path).and_then(|form| self.file(file, &form, *range));
            match read {
                Ok(()) => {}
                Err(problem) if problem.code == "NOT_TEXT" => {}
                Err(problem) => self.left_out.push(problem.message),
            }
        }
    }

    fn service(&mut self, name: &str) -> Result<()> {
        service::check(name)?;
        let Some(profile) = self.cx.profile(name) else {
            return self.journal(Query { units: vec![service::unit(name)], ..Query::default() });
        };
        let units = service::units(&profile, name);
        // rsyslog's own files hold what everybody says.
        if profile.id != "rsyslog" {
            self.programs = service::programs(&profile);
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
                    for path in service::expand(self.cx, self.budget, glob) {
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

    fn file(&mut self, file: &File, form: &Form, range: Range) -> Result<()> {
        let before = self.hits.matches;
        let begin = files::begin(self.cx, self.budget, file, form, self.clock, range);
        let left = file.size.unwrap_or(0).saturating_sub(begin);
        let may_ask = file.packing == Packing::None
            && file.path.starts_with(inventory::EVERYWHERE)
            && !self.pattern.words.is_empty()
            // A small part of a large file is read faster than the whole is looked through.
            && left > LARGE.max(file.size.unwrap_or(0) / 16);
        match if may_ask { self.ask(file, form, range) } else { Asked::No } {
            Asked::Whole => {}
            Asked::Spent(spent) => self.note(file, spent),
            Asked::No => self.read(file, form, range, begin)?,
        }
        self.files += 1;
        self.found(&file.path, before);
        Ok(())
    }

    /// Has the target look through a file.
    fn ask(&mut self, file: &File, form: &Form, range: Range) -> Asked {
        let mut options = vec!["--line-number".to_owned(), "--fixed-strings".to_owned()];
        options.extend(self.pattern.ignores_case.then(|| "--ignore-case".to_owned()));
        options.extend((self.context > 0).then(|| format!("--context={}", self.context)));
        options.extend(self.pattern.words.iter().map(|word| format!("--regexp={word}")));
        let mut texts = Texts::new(form, self.clock, file, range, &self.programs);
        let mut feed = Feed::new(self.context);
        let (pattern, hits) = (&self.pattern, &mut self.hits);
        let asked = ask::grep(self.cx, self.budget, options, &file.path, |text| {
            // `12:match`, `13-beside it`, and `--` between those that are apart.
            let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let number = std::str::from_utf8(&text[..digits]).ok().and_then(|digits| digits.parse().ok());
            if number.is_some() && matches!(text.get(digits), Some(b':' | b'-')) {
                texts.each(number, &text[digits + 1..], pattern, &mut feed, hits);
            }
        });
        feed.end(&mut self.hits);
        asked
    }

    fn read(&mut self, file: &File, form: &Form, range: Range, begin: u64) -> Result<()> {
        let mut texts = Texts::new(form, self.clock, file, range, &self.programs);
        let mut feed = Feed::new(self.context);
        let (pattern, hits) = (&self.pattern, &mut self.hits);
        let end = files::each(self.cx, self.budget, file, begin, |text| {
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

/// Whether journalctl takes these words.
fn is_askable(words: &[String]) -> bool {
    words.iter().all(|word| !word.contains("\\E"))
        && journal::alternatives(words).len() <= journal::LONGEST_EXPRESSION
}

/// Lines of a file, read only as far as is needed.
struct Texts<'a> {
    reader: Reader<'a>,
    range: Range,
    /// The last line that may have had a time.
    head: Vec<u8>,
    /// Whose lines are meant, where others write to the same file; everybody's where none is named.
    programs: Vec<String>,
}

impl<'a> Texts<'a> {
    fn new(form: &'a Form, clock: &'a Clock<'a>, file: &File, range: Range, programs: &[String]) -> Self {
        let programs = if service::is_shared(&file.path) { programs.to_vec() } else { Vec::new() };
        Self { reader: Reader::new(form, clock, file.near(clock)), range, head: Vec::new(), programs }
    }

    fn each(
        &mut self,
        number: Option<u64>,
        text: &[u8],
        pattern: &Pattern,
        feed: &mut Feed,
        hits: &mut Hits<'_>,
    ) {
        let is_match = pattern.is_match(text);
        if !is_match && feed.context == 0 {
            if text.first().is_some_and(|first| !first.is_ascii_whitespace()) {
                self.head.clear();
                self.head.extend_from_slice(&text[..text.len().min(200)]);
            }
            return;
        }
        let mut make = || {
            if is_match && !self.head.is_empty() {
                let head = std::mem::take(&mut self.head);
                self.reader.line(&head);
            }
            self.reader.line(text)
        };
        let line = make();
        let is_meant = |line: &Line| {
            let mut programs = self.programs.iter();
            self.range.holds(line.at)
                && (self.programs.is_empty() || programs.any(|name| name.eq_ignore_ascii_case(&line.source)))
        };
        let matched = (is_match && line.as_ref().is_some_and(is_meant))
            .then(|| String::from_utf8_lossy(text).into_owned());
        feed.line(number, matched, || line, hits);
    }
}

/// Lines in their order, of which the matches are kept with what is around them.
struct Feed {
    context: usize,
    before: VecDeque<String>,
    open: Vec<(Hit, String)>,
    number: Option<u64>,
}

/// How much of a line beside a match is shown.
const BESIDE: usize = 300;

impl Feed {
    fn new(context: usize) -> Self {
        Self { context, before: VecDeque::new(), open: Vec::new(), number: None }
    }

    /// `number` where lines are left out in between.
    fn line(
        &mut self,
        number: Option<u64>,
        matched: Option<String>,
        line: impl FnOnce() -> Option<Line>,
        hits: &mut Hits<'_>,
    ) {
        if self.context == 0 {
            if let Some(matched) = matched
                && let Some(line) = line()
            {
                hits.add(Hit { line, before: Vec::new(), after: Vec::new() }, matched);
            }
            return;
        }
        if number.is_some() && self.number.map(|last| last + 1) != number {
            self.end(hits);
        }
        self.number = number;
        let Some(line) = line() else { return };
        let text = shortened(&line.message, BESIDE);
        self.open.iter_mut().for_each(|(hit, _)| hit.after.push(text.clone()));
        let (full, open) =
            std::mem::take(&mut self.open).into_iter().partition(|(hit, _)| hit.after.len() >= self.context);
        self.open = open;
        Vec::into_iter(full).for_each(|(hit, text)| hits.add(hit, text));
        if let Some(matched) = matched {
            let before = self.before.iter().cloned().collect();
            self.open.push((Hit { line, before, after: Vec::new() }, matched));
        }
        if self.before.len() == self.context {
            self.before.pop_front();
        }
        self.before.push_back(text);
    }

    fn end(&mut self, hits: &mut Hits<'_>) {
        self.open.drain(..).for_each(|(hit, text)| hits.add(hit, text));
        self.before.clear();
        self.number = None;
    }
}
