//! `log_summary`: what went wrong lately, where, how often, since when, and what that means.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use linux_sysadmin_sdk::knowledge::{self, LogSource, Profile};
use linux_sysadmin_sdk::prelude::*;
use regex::bytes::{Regex, RegexBuilder};

use crate::ask::{self, Asked};
use crate::budget::{Budget, Spent};
use crate::files::{self, End, File, Packing};
use crate::fold::{Group, Groups};
use crate::form::{self, Form};
use crate::inventory;

use crate::journal::{self, Begun, Query, Silence};
use crate::line::{Level, Line, shortened};
use crate::moment::{self, Clock, Range, SECOND};
use crate::pattern::words_of;
use crate::tail::Reader;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// Different messages that are told apart.
const GROUPS: usize = 3_000;
/// How many of each are shown.
const UNITS: usize = 12;
const MESSAGES: usize = 12;
const PATTERNS: usize = 15;
const SHOWN: usize = 240;
/// So many starts again are a service that doesn't stay up.
const FLAPPING: u64 = 3;
/// From what size on the target is asked which lines may matter.
const LARGE: u64 = 2 << 20;

/// What a message of the journal has in it that says itself that it is a warning or worse, or is of the kernel's killing,
/// or of a service that is started again.
const MARKS: &[&str] = &[
    "emerg",
    "alert",
    "crit",
    "fatal",
    "panic",
    "err",
    "eror",
    "severe",
    "failure",
    "warn",
    "wrn",
    "Killed process",
    "Scheduled restart job",
];

/// What a line of a text log has in it where it may matter, whatever its program.
const SIGNS: &str = "error|fail|fatal|panic|critical|crit\\]|emerg|alert|warn|denied|refused|timed out|timeout|traceback|segfault|out of memory|cannot |can't |unable to|\" 5[0-9][0-9] ";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// `2h`, `2026-03-01 10:15`, `yesterday` … (default 24h)
    since: Option<String>,
    until: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Summary {
    since: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    errors: u64,
    warnings: u64,
    /// Most errors first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    units: Vec<Unit>,
    /// How many have any, where these aren't all.
    #[serde(skip_serializing_if = "Option::is_none")]
    units_total: Option<usize>,
    /// Errors and warnings of each hour that has any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    per_hour: BTreeMap<String, (u64, u64)>,
    /// What profiles know of what was found, the worst first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    known: Vec<Known>,
    /// What is said most, the worst first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Message>,
    /// How many kinds there are, where these aren't all.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages_total: Option<usize>,
    /// Services that were started again and again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flapping: Vec<Flapping>,
    /// What the kernel killed for want of memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    oom_kills: Vec<Killed>,
    /// Entries of the journal, and files, that were looked at.
    sources: Sources,
    /// What wasn't looked at, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
}

#[derive(Serialize)]
struct Unit {
    unit: Rc<str>,
    #[serde(skip_serializing_if = "is_zero")]
    errors: u64,
    #[serde(skip_serializing_if = "is_zero")]
    warnings: u64,
    first: String,
    last: String,
}

#[derive(Serialize)]
struct Message {
    unit: Rc<str>,
    level: &'static str,
    message: String,
    count: u64,
    first: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    /// Not before the last hour.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    new: bool,
}

#[derive(Serialize)]
struct Known {
    profile: String,
    severity: &'static str,
    means: String,
    /// Id of a symptom in the profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    symptom: Option<String>,
    count: u64,
    last: String,
    /// The last one.
    message: String,
}

#[derive(Serialize)]
struct Flapping {
    unit: String,
    restarts: u64,
    first: String,
    last: String,
}

#[derive(Serialize)]
struct Killed {
    time: String,
    process: String,
}

#[derive(Serialize)]
struct Sources {
    journal: u64,
    files: usize,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[derive(Default)]
struct Tally {
    errors: u64,
    warnings: u64,
    first: Option<i64>,
    last: Option<i64>,
}

/// A profile's patterns, and whose lines they are searched in.
struct Patterns<'a> {
    profile: &'a Profile,
    units: Vec<String>,
    patterns: Vec<Expected<'a>>,
}

/// A pattern. Its expression takes long to make, and nearly no message has the words for it.
struct Expected<'a> {
    pattern: &'a knowledge::LogPattern,
    /// One of these is in every message that it finds; none where that can't be told.
    words: Vec<String>,
    regex: OnceCell<Option<regex::Regex>>,
}

impl<'a> Expected<'a> {
    fn new(pattern: &'a knowledge::LogPattern) -> Self {
        Self { pattern, words: words_of(&pattern.matches), regex: OnceCell::new() }
    }

    fn is_in(&self, message: &str) -> bool {
        if !self.words.is_empty() && !self.words.iter().any(|word| message.contains(word)) {
            return false;
        }
        let regex = self.regex.get_or_init(|| knowledge::expression(&self.pattern.matches).ok());
        regex.as_ref().is_some_and(|regex| regex.is_match(message))
    }
}

impl<'a> Patterns<'a> {
    fn new(profile: &'a Profile) -> Self {
        let units = profile.units.iter().map(|unit| unit.name.trim_end_matches(".service").to_owned());
        let identifiers = profile.logs.iter().filter_map(|log| match &log.source {
            LogSource::Identifier(name) => Some(name.clone()),
            LogSource::Journal(unit) => Some(unit.trim_end_matches(".service").to_owned()),
            LogSource::Path(_) => None,
        });
        let names = profile.processes.iter().cloned();
        let units = units.chain(identifiers).chain(names).collect();
        Self { profile, units, patterns: profile.log_patterns.iter().map(Expected::new).collect() }
    }

    fn is_of(&self, line: &Line) -> bool {
        let names = [Some(&line.source), line.unit.as_ref()];
        names.into_iter().flatten().any(|name| {
            self.units.iter().any(|unit| {
                unit.eq_ignore_ascii_case(name)
                    || unit.strip_suffix('@').is_some_and(|template| {
                        name.strip_prefix(template).is_some_and(|rest| rest.starts_with('@'))
                    })
            })
        })
    }

    fn has_file(&self, path: &str) -> bool {
        self.profile
            .logs
            .iter()
            .any(|log| matches!(&log.source, LogSource::Path(glob) if files::covers(glob, path)))
    }
}

struct Count {
    count: u64,
    last: i64,
    message: String,
}

/// A program, and its unit.
type Writer = (Rc<str>, Option<Rc<str>>);

struct Looking<'a> {
    cx: &'a Context,
    clock: &'a Clock<'a>,
    budget: &'a Budget<'a>,
    range: Range,
    patterns: &'a [Patterns<'a>],
    /// By unit or program, which of the patterns are its own.
    owners: HashMap<Writer, Vec<usize>>,
    tallies: HashMap<Rc<str>, Tally>,
    hours: BTreeMap<i64, (u64, u64)>,
    groups: Groups,
    known: HashMap<(usize, usize), Count>,
    restarts: BTreeMap<String, (u64, i64, i64)>,
    killed: Vec<(i64, String)>,
    journal: u64,
    files: usize,
    left_out: Vec<String>,
    spent: Option<Spent>,
}

pub(crate) fn log_summary(args: Args, cx: &Context) -> Result<Analysis<Summary>> {
    let (clock, budget) = (Clock::new(cx), Budget::slow(cx));
    let since = args.since.as_deref().unwrap_or("24h");
    let files = budget.waiting(|| clock.beside(vec![inventory::command()])).remove(0);
    let range = Range::parse(Some(since), args.until.as_deref(), &clock)?;
    let logs = files.and_then(inventory::listed);
    let logs = logs.map(|(found, _)| inventory::text_logs(range, inventory::EVERYWHERE, found));
    let profiles = cx.detected();
    let patterns: Vec<_> = profiles.iter().map(Patterns::new).collect();
    let mut looking = Looking {
        cx,
        clock: &clock,
        budget: &budget,
        range,
        patterns: &patterns,
        owners: HashMap::new(),
        tallies: HashMap::new(),
        hours: BTreeMap::new(),
        groups: Groups::new(GROUPS, true),
        known: HashMap::new(),
        restarts: BTreeMap::new(),
        killed: Vec::new(),
        journal: 0,
        files: 0,
        left_out: Vec::new(),
        spent: None,
    };
    let begins = looking.journal(logs.as_deref().unwrap_or_default())?;
    looking.text_logs(&profiles, logs.and_then(|logs| Ok(inventory::beside_journal(logs, begins?))));
    Ok(looking.answer())
}

impl<'a> Looking<'a> {
    /// What is marked as a warning or worse, which the journal has an index of; and of the rest only what may matter: to
    /// have all of it printed takes longer than everything else. Gives when it begins, where that matters for the logs.
    fn journal(&mut self, logs: &[(File, Range)]) -> Result<Result<Option<i64>>> {
        let (cx, budget) = (self.cx, self.budget);
        let all = Query { range: self.range, ..Query::default() };
        let urgent = Query { priority: Some(Level::WARNING), ..all.clone() };
        let words = self.words().unwrap_or_default();
        let mut rest = Query { words, ignores_case: true, ..all };
        let is_rest = |line: &Line| line.level.is_none_or(|level| level > Level::WARNING);
        // All print at once.
        let (urgent, of_rest) = (journal::begin(cx, budget, &urgent)?, journal::begin(cx, budget, &rest)?);
        let begins = inventory::journal_begins(cx, budget, logs);
        self.spent = self.entries(urgent, |_| true)?;
        let urgent = self.journal;
        self.spent = self.spent.or(self.entries(of_rest, is_rest)?);
        if self.journal > urgent || urgent > 0 && rest.words.is_empty() {
            return Ok(begins);
        }
        let Silence { is_of_words, absent } = match urgent {
            0 => journal::silence(cx, budget, &rest)?,
            _ => Silence { is_of_words: journal::is_of_words(cx, budget), absent: None },
        };
        if is_of_words {
            rest.words.clear();
            let of_rest = journal::begin(cx, budget, &rest)?;
            self.spent = self.spent.or(self.entries(of_rest, is_rest)?);
        }
        if self.journal == 0 {
            self.left_out.extend(absent.map(|absent| format!("journal: {}", absent.text())));
        }
        Ok(begins)
    }

    fn entries(&mut self, begun: Begun, is_meant: impl Fn(&Line) -> bool) -> Result<Option<Spent>> {
        let budget = self.budget;
        journal::each_of(begun, budget, |entry| {
            if is_meant(&entry.line) {
                self.journal += 1;
                self.entry(entry.line);
            }
            true
        })
    }

    /// One of these is in every message that matters; none where a profile's pattern has no such word.
    fn words(&self) -> Option<Vec<String>> {
        let mut words: BTreeSet<String> = MARKS.iter().map(|mark| (*mark).to_owned()).collect();
        for expected in self.patterns.iter().flat_map(|patterns| &patterns.patterns) {
            if expected.words.is_empty() {
                return None;
            }
            words.extend(expected.words.iter().cloned());
        }
        let words: Vec<_> = words.into_iter().collect();
        let is_askable = words.iter().all(|word| !word.contains("\\E"))
            && journal::alternatives(&words).len() <= journal::LONGEST_EXPRESSION;
        is_askable.then_some(words)
    }

    fn entry(&mut self, mut line: Line) {
        let at = line.at.unwrap_or_default();
        if &*line.source == "systemd"
            && let Some(unit) = line.unit.clone()
            && line.message.contains("Scheduled restart job, restart counter is at")
        {
            let restarts = self.restarts.entry(unit.to_string()).or_insert((0, at, at));
            (restarts.0, restarts.2) = (restarts.0 + 1, at);
        }
        if &*line.source == "kernel"
            && let Some(process) = killed(&line.message)
        {
            self.killed.push((at, process));
        }
        // What a program says of itself counts where journald was told nothing: everything is `info` then.
        if line.level == Some(Level::INFO)
            && let Some(marked) = form::marked(&line.message)
        {
            line.level = Some(marked);
        }
        let key = (line.source.clone(), line.unit.clone());
        if !self.owners.contains_key(&key) {
            let own = self.patterns.iter().enumerate().filter(|(_, patterns)| patterns.is_of(&line));
            let own = own.map(|(at, _)| at).collect();
            self.owners.insert(key.clone(), own);
        }
        let own = self.owners.get(&key).cloned().unwrap_or_default();
        self.count(line, &own);
    }

    fn count(&mut self, line: Line, own: &[usize]) {
        let at = line.at.unwrap_or_default();
        for profile in own {
            for (number, expected) in self.patterns[*profile].patterns.iter().enumerate() {
                if expected.is_in(&line.message) {
                    let known = self.known.entry((*profile, number));
                    let known = known.or_insert_with(|| Count { count: 0, last: at, message: String::new() });
                    known.count += 1;
                    if known.last <= at {
                        (known.last, known.message) = (at, shortened(&line.message, SHOWN));
                    }
                    break;
                }
            }
        }
        let Some(level) = line.level.filter(|level| *level <= Level::WARNING) else { return };
        let is_error = level <= Level::ERROR;
        let unit = line.unit.clone().unwrap_or_else(|| line.source.clone());
        let add = |(errors, warnings): (&mut u64, &mut u64)| match is_error {
            true => *errors += 1,
            false => *warnings += 1,
        };
        let tally = self.tallies.entry(unit).or_default();
        add((&mut tally.errors, &mut tally.warnings));
        tally.first = Some(tally.first.map_or(at, |first| first.min(at)));
        tally.last = tally.last.max(Some(at));
        let hour = self.hours.entry(at.div_euclid(HOUR * SECOND)).or_default();
        add((&mut hour.0, &mut hour.1));
        self.groups.add(line);
    }

    fn text_logs(&mut self, profiles: &[Profile], logs: Result<Vec<(File, Range)>>) {
        let (patterns, usual, mut all) = (self.patterns, signs(SIGNS), HashMap::new());
        let logs = match logs {
            Ok(logs) => logs,
            Err(problem) => return self.left_out.push(problem.message),
        };
        for (at, (file, range)) in logs.iter().enumerate() {
            if self.spent.is_some() {
                self.left_out.extend(logs[at..].iter().map(|(file, _)| file.path.clone()));
                return;
            }
            let own: Vec<_> = (0..patterns.len()).filter(|at| patterns[*at].has_file(&file.path)).collect();
            // Most files are of no profile's, and have the same signs.
            let signs = all.entry(own.clone()).or_insert_with(|| {
                let own = own.iter().flat_map(|at| &patterns[*at].patterns);
                Signs::of(&usual, own.flat_map(|expected| &expected.words))
            });
            let read = files::form(profiles, &file.path)
                .and_then(|form| self.file(file, &form, *range, (&own, signs)));
            match read {
                Ok(()) => self.files += 1,
                Err(problem) if problem.code == "NOT_TEXT" => {}
                Err(problem) => self.left_out.push(problem.message),
            }
        }
    }

    fn file(
        &mut self,
        file: &File,
        form: &Form,
        range: Range,
        (own, signs): (&[usize], &Signs),
    ) -> Result<()> {
        let (cx, clock, budget) = (self.cx, self.clock, self.budget);
        let begin = files::begin(cx, budget, file, form, clock, range);
        let left = file.size.unwrap_or(0).saturating_sub(begin);
        let mut reader = Reader::new(form, clock, file.near(clock));
        let name: Rc<str> = file.path.trim_start_matches("/var/log/").into();
        let mut each = |looking: &mut Self, text: &[u8]| {
            let Some(mut line) = reader.line(text).filter(|line| line.at.is_some() && range.holds(line.at))
            else {
                return;
            };
            line.unit = Some(name.clone());
            looking.count(line, own);
        };
        let may_ask = file.packing == Packing::None && left > LARGE.max(file.size.unwrap_or(0) / 16);
        if may_ask {
            let options = [
                "--extended-regexp".to_owned(),
                "--ignore-case".to_owned(),
                format!("--regexp={}", signs.text),
            ];
            match ask::grep(cx, budget, options, &file.path, |text| each(self, text)) {
                Asked::Whole => return Ok(()),
                Asked::Spent(spent) => {
                    self.note(file, spent);
                    return Ok(());
                }
                Asked::No => {}
            }
        }
        let end = files::each(cx, budget, file, begin, |text| {
            if signs.are_in(text) {
                each(self, text);
            }
            true
        })?;
        if let End::Spent(spent) = end {
            self.note(file, spent);
        }
        Ok(())
    }

    fn note(&mut self, file: &File, spent: Spent) {
        self.left_out.push(format!("{}: not to its end", file.path));
        self.spent = Some(spent);
    }

    fn answer(self) -> Analysis<Summary> {
        let now = self.range.until.unwrap_or_else(|| self.clock.now());
        let hour_ago = (now - HOUR) * SECOND;
        let begins = self.range.since.unwrap_or(now - DAY);
        let mut left_out = self.left_out;
        if let Some(spent) = self.spent {
            left_out.insert(0, format!("incomplete: {}", spent.text()));
        }
        left_out.truncate(20);

        let (errors, warnings) =
            self.hours.values().fold((0, 0), |sum, hour| (sum.0 + hour.0, sum.1 + hour.1));
        let mut tallies: Vec<_> = self.tallies.into_iter().collect();
        tallies.sort_by(|(a, one), (b, other)| {
            (other.errors, other.warnings).cmp(&(one.errors, one.warnings)).then_with(|| a.cmp(b))
        });
        let units_total = (tallies.len() > UNITS).then_some(tallies.len());
        let units = tallies.into_iter().take(UNITS).map(|(unit, tally)| Unit {
            unit,
            errors: tally.errors,
            warnings: tally.warnings,
            first: moment::text(tally.first.unwrap_or_default()),
            last: moment::text(tally.last.unwrap_or_default()),
        });
        let units: Vec<_> = units.collect();

        let mut known: Vec<_> = self.known.into_iter().collect();
        let of = |(profile, number): (usize, usize)| {
            let patterns = &self.patterns[profile];
            (patterns.profile, patterns.patterns[number].pattern)
        };
        known.sort_by_key(|(at, count)| {
            (std::cmp::Reverse(of(*at).1.severity as u8), std::cmp::Reverse(count.count), *at)
        });
        let known: Vec<_> = known
            .into_iter()
            .take(PATTERNS)
            .map(|(at, count)| {
                let (profile, pattern) = of(at);
                Known {
                    profile: profile.id.clone(),
                    severity: severity(pattern.severity),
                    means: pattern.means.clone(),
                    symptom: pattern.symptom.clone(),
                    count: count.count,
                    last: moment::text(count.last),
                    message: count.message,
                }
            })
            .collect();

        let mut groups: Vec<Group> = self.groups.into_groups().collect();
        let messages_total = (groups.len() > MESSAGES).then_some(groups.len());
        // Errors before warnings, what is new before what is old, what is frequent before what is rare.
        let is_new =
            |group: &Group| group.first.is_some_and(|first| first >= hour_ago) && begins < now - HOUR;
        let rank = |group: &Group| {
            let level = group.line.level.unwrap_or(Level::WARNING);
            (level > Level::ERROR, level > Level::CRITICAL, std::cmp::Reverse(group.count))
        };
        groups.sort_by(|a, b| {
            rank(a)
                .cmp(&rank(b))
                .then_with(|| b.last.cmp(&a.last))
                .then_with(|| a.line.message.cmp(&b.line.message))
        });
        let new = groups.iter().filter(|group| is_new(group)).count();
        let chosen = chosen(&groups, &is_new);
        let messages: Vec<_> = chosen
            .into_iter()
            .map(|group| Message {
                unit: group.line.unit.clone().unwrap_or_else(|| group.line.source.clone()),
                level: group.line.level.map_or("warning", Level::name),
                message: shortened(&group.line.message, SHOWN),
                count: group.count,
                first: moment::text(group.first.unwrap_or_default()),
                last: group.last.filter(|_| group.count > 1).map(moment::text),
                new: is_new(group),
            })
            .collect();

        let flapping: Vec<_> = self
            .restarts
            .into_iter()
            .filter(|(_, (count, ..))| *count >= FLAPPING)
            .map(|(unit, (restarts, first, last))| Flapping {
                unit,
                restarts,
                first: moment::text(first),
                last: moment::text(last),
            })
            .collect();
        let oom_kills: Vec<_> = self
            .killed
            .into_iter()
            .rev()
            .take(10)
            .map(|(at, process)| Killed { time: moment::text(at), process })
            .collect();

        let worst = known.iter().filter(|known| known.severity == "critical").count();
        let is_bad = known.iter().any(|known| known.severity == "error") || errors > 0;
        let severity = if !oom_kills.is_empty() || worst > 0 {
            Severity::High
        } else if !flapping.is_empty() || is_bad || warnings > 0 {
            Severity::Warning
        } else {
            Severity::Info
        };
        let mut said =
            vec![format!("{errors} errors and {warnings} warnings since {}", moment::text(begins * SECOND))];
        said.extend(
            units
                .first()
                .filter(|unit| unit.errors > 0)
                .map(|unit| format!("most errors from {} ({})", unit.unit, unit.errors)),
        );
        said.extend(
            known.first().map(|known| format!("{}: {} ({} times)", known.profile, known.means, known.count)),
        );
        said.extend(
            flapping
                .iter()
                .max_by_key(|unit| unit.restarts)
                .map(|unit| format!("{} was started again {} times", unit.unit, unit.restarts)),
        );
        said.extend(
            oom_kills
                .first()
                .map(|killed| format!("the kernel killed {} for want of memory", killed.process)),
        );
        if new > 0 {
            said.push(format!("{new} kinds of messages are new within the last hour"));
        }
        if self.spent.is_some() {
            said.push("not everything could be looked at".to_owned());
        }
        let hour = |hour: i64| moment::text(hour * HOUR * SECOND)[..13].to_owned();
        let data = Summary {
            since: moment::text(begins * SECOND),
            until: self.range.until.map(|until| moment::text(until * SECOND)),
            errors,
            warnings,
            units,
            units_total,
            per_hour: self.hours.into_iter().rev().take(48).map(|(at, counts)| (hour(at), counts)).collect(),
            known,
            messages,
            messages_total,
            flapping,
            oom_kills,
            sources: Sources { journal: self.journal, files: self.files },
            left_out,
        };
        Analysis { data, summary: said.join("; "), severity }
    }
}

/// The first of a ranking, with what is new in place of the last of them.
fn chosen<'g>(groups: &'g [Group], is_new: &impl Fn(&Group) -> bool) -> Vec<&'g Group> {
    let mut chosen: Vec<_> = groups.iter().take(MESSAGES).collect();
    let others = groups.iter().skip(MESSAGES).filter(|group| is_new(group)).take(MESSAGES / 3);
    let others: Vec<_> = others.collect();
    chosen.truncate(MESSAGES - others.len().min(MESSAGES));
    chosen.extend(others);
    chosen
}

fn severity(severity: knowledge::Severity) -> &'static str {
    match severity {
        knowledge::Severity::Warning => "warning",
        knowledge::Severity::Error => "error",
        knowledge::Severity::Critical => "critical",
    }
}

/// `Out of memory: Killed process 812 (mysqld) total-vm:…`, of a cgroup as well.
fn killed(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("Killed process ")?;
    let (pid, rest) = rest.split_once(" (")?;
    let (name, _) = rest.split_once(')')?;
    Some(format!("{name} ({pid})"))
}

/// What a line has to have to be looked at.
struct Signs {
    /// One of these finds it. None where that is anything.
    regexes: Option<Vec<Rc<Regex>>>,
    text: String,
}

/// The longest argument of that kind.
const MOST_SIGNS: usize = 3_000;

/// Finds these signs, whatever their case.
fn signs(text: &str) -> Option<Rc<Regex>> {
    let mut builder = RegexBuilder::new(text);
    builder.unicode(false).case_insensitive(true).size_limit(4 << 20).build().ok().map(Rc::new)
}

impl Signs {
    /// The usual ones, and these words that patterns of a profile need, as grep and this module's own expressions read
    /// them. To make an expression takes longer than to look through most files, so those of all files share the usual one.
    fn of<'w>(usual: &Option<Rc<Regex>>, words: impl Iterator<Item = &'w String>) -> Self {
        let mut own = String::new();
        for word in words {
            let escaped: String = word
                .chars()
                .flat_map(|letter| {
                    "\\^$.[]|()?*+{}".contains(letter).then_some('\\').into_iter().chain([letter])
                })
                .collect();
            if SIGNS.len() + own.len() + escaped.len() < MOST_SIGNS {
                own = format!("{own}|{escaped}");
            }
        }
        let regexes = std::iter::once(usual.clone()).chain(own.strip_prefix('|').map(signs)).collect();
        Self { regexes, text: format!("{SIGNS}{own}") }
    }

    fn are_in(&self, line: &[u8]) -> bool {
        self.regexes.as_ref().is_none_or(|all| all.iter().any(|regex| regex.is_match(line)))
    }
}
