//! Reads the journal and the text logs, and counts what a summary needs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use linux_sysadmin_sdk::knowledge::Profile;
use linux_sysadmin_sdk::prelude::*;
use regex::bytes::Regex;

use super::profile_patterns::ProfilePatterns;
use super::signs::Signs;
use super::{HOUR, SHOWN};
use crate::budget::{Budget, Spent};
use crate::clock::{Clock, SECOND};
use crate::fold::Groups;
use crate::journal::{self, JournalStream, NoEntries, Query};
use crate::level::Level;
use crate::line::{Line, shortened};
use crate::line_format::{self, LineFormat};
use crate::text_logs::file::{File, Packing};
use crate::text_logs::grep::{self, GrepEnd};
use crate::text_logs::read::{self, End, Unpacking};
use crate::text_logs::tail::LineReader;
use crate::text_logs::{inventory, path, seek};
use crate::time_range::Range;

/// The size in bytes above which the target's grep searches a file.
const LARGE: u64 = 2 << 20;

/// Words of journal messages that matter whatever their priority: the message names a level of warning or worse itself, the
/// kernel killed a process, or a service is restarted.
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

/// The errors and warnings of a unit, with the times of the first and the last one.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) errors: u64,
    pub(super) warnings: u64,
    pub(super) first: Option<i64>,
    pub(super) last: Option<i64>,
}

/// The matches of a profile's pattern.
pub(super) struct Count {
    /// The number of matches.
    pub(super) count: u64,
    pub(super) last: i64,
    /// The last message that matched.
    pub(super) message: String,
}

/// A program and its unit.
pub(super) type Writer = (Rc<str>, Option<Rc<str>>);

/// Reads the logs, and holds what was counted so far.
pub(super) struct Collector<'a> {
    pub(super) cx: &'a Context,
    pub(super) clock: &'a Clock<'a>,
    pub(super) budget: &'a Budget<'a>,
    pub(super) range: Range,
    pub(super) patterns: &'a [ProfilePatterns<'a>],
    /// The indexes of the patterns that belong to each writer.
    pub(super) owners: HashMap<Writer, Vec<usize>>,
    pub(super) tallies: HashMap<Rc<str>, Tally>,
    /// The errors and warnings of each hour, by the number of hours since the epoch.
    pub(super) hours: BTreeMap<i64, (u64, u64)>,
    pub(super) groups: Groups,
    /// The matches of patterns, by the indexes of the profile and of its pattern.
    pub(super) known: HashMap<(usize, usize), Count>,
    /// The restarts of each unit: their number, and the times of the first and the last one.
    pub(super) restarts: BTreeMap<String, (u64, i64, i64)>,
    /// The processes that the kernel killed because memory was short, with the times.
    pub(super) killed: Vec<(i64, String)>,
    /// The number of journal entries that were read.
    pub(super) journal: u64,
    /// The number of files that were read.
    pub(super) files: usize,
    pub(super) left_out: Vec<String>,
    pub(super) spent: Option<Spent>,
    /// The program that unpacks the next packed file.
    pub(super) unpacking: Option<Unpacking>,
    /// The signs that all files share.
    pub(super) usual_signs: Option<Rc<Regex>>,
}

/// Starts to print the entries of priority warning or worse.
pub(super) fn begin_urgent(cx: &Context, budget: &Budget<'_>, range: Range) -> Result<JournalStream> {
    let urgent = Query { range, priority: Some(Level::WARNING), ..Query::default() };
    journal::begin(cx, budget, &urgent)
}

impl<'a> Collector<'a> {
    /// Reads entries of priority warning or worse, which the journal has an index for. Of the other entries, it reads only
    /// those that may matter, because printing all of them takes longer than everything else. Returns those of the logs that
    /// are to be read beside the journal.
    pub(super) fn journal(
        &mut self,
        urgent: JournalStream,
        logs: Result<Vec<(File, Range)>>,
    ) -> Result<Result<Vec<(File, Range)>>> {
        let (cx, budget) = (self.cx, self.budget);
        let words = self.words().unwrap_or_default();
        let mut rest = Query { range: self.range, words, ignores_case: true, ..Query::default() };
        let is_rest = |line: &Line| line.level.is_none_or(|level| level > Level::WARNING);
        // Both commands print at the same time.
        let of_rest = journal::begin(cx, budget, &rest)?;
        let logs = logs.and_then(|logs| {
            let begins = inventory::journal_begins(cx, budget, &logs)?;
            Ok(inventory::beside_journal(logs, begins))
        });
        self.unpack(logs.as_deref().unwrap_or_default());
        self.spent = self.entries(urgent, |_| true)?;
        let urgent = self.journal;
        self.spent = self.spent.or(self.entries(of_rest, is_rest)?);
        if self.journal > urgent || urgent > 0 && rest.words.is_empty() {
            return Ok(logs);
        }
        let NoEntries { lacks_grep, absent } = match urgent {
            0 => journal::why_empty(cx, budget, &rest)?,
            _ => NoEntries { lacks_grep: journal::lacks_grep(cx, budget), absent: None },
        };
        if lacks_grep {
            rest.words.clear();
            let of_rest = journal::begin(cx, budget, &rest)?;
            self.spent = self.spent.or(self.entries(of_rest, is_rest)?);
        }
        if self.journal == 0 {
            self.left_out.extend(absent.map(|absent| format!("journal: {}", absent.text())));
        }
        Ok(logs)
    }

    /// Starts to unpack the first of these files that another program unpacks, so that it goes on beside other work.
    fn unpack(&mut self, logs: &[(File, Range)]) {
        let files = logs.iter().map(|(file, _)| file);
        self.unpacking = self.unpacking.take().or_else(|| Unpacking::first(self.cx, self.budget, files));
    }

    fn entries(&mut self, begun: JournalStream, is_meant: impl Fn(&Line) -> bool) -> Result<Option<Spent>> {
        let budget = self.budget;
        journal::each_of(begun, budget, |entry| {
            if is_meant(&entry.line) {
                self.journal += 1;
                self.entry(entry.line);
            }
            true
        })
    }

    /// Words of which every message that matters has one. None where a profile's pattern has no such word.
    fn words(&self) -> Option<Vec<String>> {
        let mut words: BTreeSet<String> = MARKS.iter().map(|mark| (*mark).to_owned()).collect();
        for expected in self.patterns.iter().flat_map(|patterns| &patterns.patterns) {
            if expected.words.is_empty() {
                return None;
            }
            words.extend(expected.words.iter().cloned());
        }
        let words: Vec<_> = words.into_iter().collect();
        journal::is_askable(&words).then_some(words)
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
        // journald calls a message `info` where the program gave no priority. The level in the message counts then.
        if line.level == Some(Level::INFO)
            && let Some(marked) = line_format::marked(&line.message)
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

    pub(super) fn text_logs(&mut self, profiles: &[Profile], logs: Result<Vec<(File, Range)>>) {
        let (patterns, usual, mut all) = (self.patterns, self.usual_signs.clone(), HashMap::new());
        let logs = match logs {
            Ok(logs) => logs,
            Err(problem) => return self.left_out.push(problem.message),
        };
        for (at, (file, range)) in logs.iter().enumerate() {
            if self.spent.is_some() {
                self.left_out.extend(logs[at..].iter().map(|(file, _)| file.path.clone()));
                return;
            }
            self.unpack(&logs[at..]);
            let own: Vec<_> = (0..patterns.len()).filter(|at| patterns[*at].has_file(&file.path)).collect();
            // Most files belong to no profile, and share the same signs.
            let signs = all.entry(own.clone()).or_insert_with(|| {
                let own = own.iter().flat_map(|at| &patterns[*at].patterns);
                Signs::of(&usual, own.flat_map(|expected| &expected.words))
            });
            let read = path::line_format(profiles, &file.path)
                .and_then(|format| self.file(file, &format, *range, (&own, signs)));
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
        format: &LineFormat,
        range: Range,
        (own, signs): (&[usize], &Signs),
    ) -> Result<()> {
        let (cx, clock, budget) = (self.cx, self.clock, self.budget);
        let begin = seek::begin(cx, budget, file, format, clock, range);
        let left = file.size.unwrap_or(0).saturating_sub(begin);
        let mut reader = LineReader::new(format, clock, file.near(clock));
        let name: Rc<str> = file.path.trim_start_matches("/var/log/").into();
        let mut each = |collector: &mut Self, text: &[u8]| {
            let Some(mut line) = reader.line(text).filter(|line| line.at.is_some() && range.holds(line.at))
            else {
                return;
            };
            line.unit = Some(name.clone());
            collector.count(line, own);
        };
        let may_ask = file.packing == Packing::None && left > LARGE.max(file.size.unwrap_or(0) / 16);
        if may_ask {
            let options = [
                "--extended-regexp".to_owned(),
                "--ignore-case".to_owned(),
                format!("--regexp={}", signs.text),
            ];
            match grep::grep(cx, budget, options, &file.path, |text| each(self, text)) {
                GrepEnd::Complete => return Ok(()),
                GrepEnd::Stopped(spent) => {
                    self.note(file, spent);
                    return Ok(());
                }
                GrepEnd::Unusable => {}
            }
        }
        let begun = self.unpacking.take_if(|unpacking| unpacking.is_of(file));
        let end = read::each_of(cx, budget, file, begin, begun, |text| {
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
}

/// Reads `Out of memory: Killed process 812 (mysqld) total-vm:…`, also for a cgroup that is out of memory.
fn killed(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("Killed process ")?;
    let (pid, rest) = rest.split_once(" (")?;
    let (name, _) = rest.split_once(')')?;
    Some(format!("{name} ({pid})"))
}
