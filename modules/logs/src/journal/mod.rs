//! Reads the journal by `journalctl`, and says why there is nothing.

mod entry;
mod query;

use linux_sysadmin_sdk::{Category, DurationCategory, OutputStream, prelude::*};

pub(crate) use entry::{Entry, EntryReader};
pub(crate) use query::{Query, grant, is_askable};

use crate::budget::{Budget, Spent};
use crate::line::Line;
use crate::text_logs::line_splitter::LineSplitter;
use crate::time_range::Range;

/// The longest entry as JSON, in bytes. A message that isn't text takes four bytes for each of its own.
const LONGEST: usize = 1 << 20;

/// Entries that were found.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) lines: Vec<Line>,
    /// The cursor of the last entry.
    pub(crate) cursor: Option<String>,
    /// True where there are more entries.
    pub(crate) more: bool,
}

/// The reason why the journal can't be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// There is no journal.
    NoJournal,
    /// The account may not read the journal, or journalctl failed with this message.
    Refused(String),
}

impl Absent {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::NoJournal => "there is no journal".to_owned(),
            Self::Refused(said) => said.clone(),
        }
    }
}

/// Reads the newest entries. The oldest of them comes first.
pub(crate) fn newest(cx: &Context, query: &Query, most: usize) -> Result<std::result::Result<Found, Absent>> {
    let output = match cx.run(query.command(Some(most + 1))) {
        Ok(output) => output,
        Err(problem) => return absent(problem).map(Err),
    };
    let mut reader = EntryReader::default();
    let entries = output.stdout.split(|byte| *byte == b'\n').filter_map(|line| reader.entry(line));
    let mut entries: Vec<_> = entries.collect();
    if query.is_backwards(Some(most)) {
        entries.reverse();
    }
    if entries.is_empty() {
        return nothing_of(cx, query, &output);
    }
    let cut = entries.len().saturating_sub(most);
    let more = cut > 0 || output.truncated;
    entries.drain(..cut);
    let cursor = entries.last().map(|entry| entry.cursor.clone());
    let lines = entries.into_iter().map(|entry| entry.line).collect();
    Ok(Ok(Found { lines, cursor, more }))
}

/// A journalctl that has been started and prints while other work goes on. None where it can't be started.
pub(crate) struct JournalStream(Option<OutputStream>);

/// Starts to print every entry, the oldest first.
pub(crate) fn begin(cx: &Context, budget: &Budget<'_>, query: &Query) -> Result<JournalStream> {
    let command = query.command(None).duration(DurationCategory::Slow);
    match budget.waiting(|| cx.open(command)) {
        Ok(stream) => Ok(JournalStream(Some(stream))),
        Err(problem) => absent(problem).map(|_| JournalStream(None)),
    }
}

/// Reads every entry, the oldest first, until the sink returns false or a limit of the budget is reached, which is returned.
/// A stream reports no errors: where there are no entries, [`why_empty`] says why.
pub(crate) fn each(
    cx: &Context,
    budget: &Budget<'_>,
    query: &Query,
    sink: impl FnMut(Entry) -> bool,
) -> Result<Option<Spent>> {
    each_of(begin(cx, budget, query)?, budget, sink)
}

/// The same for a journalctl that has been started.
pub(crate) fn each_of(
    begun: JournalStream,
    budget: &Budget<'_>,
    mut sink: impl FnMut(Entry) -> bool,
) -> Result<Option<Spent>> {
    let Some(mut stream) = begun.0 else { return Ok(None) };
    let (mut lines, mut reader) = (LineSplitter::new(LONGEST), EntryReader::default());
    loop {
        if let Some(spent) = budget.spent() {
            return Ok(Some(spent));
        }
        let piece = budget.read(&mut stream)?;
        let mut each = |line: &[u8]| reader.entry(line).is_none_or(&mut sink);
        if piece.is_empty() {
            lines.end(&mut each);
            return Ok(None);
        }
        if !lines.piece(&piece, &mut each) {
            return Ok(None);
        }
    }
}

/// The time of the first entry of the journal.
pub(crate) fn first(cx: &Context, budget: &Budget<'_>) -> Result<Option<i64>> {
    let mut at = None;
    each(cx, budget, &Query::default(), |entry| {
        at = entry.line.at;
        false
    })?;
    Ok(at)
}

/// The reasons why a query found no entries. Both are false or none where nothing matches.
pub(crate) struct NoEntries {
    /// True where `journalctl` was built without `--grep`. It then prints nothing when it is asked for words.
    pub(crate) lacks_grep: bool,
    /// The reason why the journal can't be read.
    pub(crate) absent: Option<Absent>,
}

/// A time for which no journal has entries.
const NEVER: i64 = 1 << 32;

/// Finds out why a query found no entries.
pub(crate) fn why_empty(cx: &Context, budget: &Budget<'_>, query: &Query) -> Result<NoEntries> {
    let all = Query { words: Vec::new(), ..query.clone() };
    let (of_all, of_any) = (all.command(Some(1)), Query::default().command(Some(1)));
    // Without other conditions than words, both commands are the same.
    let is_limited = of_all.args != of_any.args;
    let mut commands = vec![of_all];
    commands.extend((!query.words.is_empty()).then(grep_probe));
    commands.extend(is_limited.then_some(of_any));
    let mut outputs = budget.waiting(|| cx.run_all(commands)).into_iter();
    let of_all = outputs.next();
    let of_probe = if query.words.is_empty() { None } else { outputs.next() };
    let of_any = outputs.next();
    let lacks_grep = of_probe.and_then(Result::ok).is_some_and(says_no_grep);
    let absent = match of_all {
        Some(Ok(output)) if holds(&output) => None,
        Some(Ok(output)) => {
            let is_any = || of_any.and_then(Result::ok).is_some_and(|output| holds(&output));
            nothing(&all, &output, is_any)?.err()
        }
        Some(Err(problem)) => Some(Absent::Refused(problem.message)),
        None => None,
    };
    Ok(NoEntries { lacks_grep, absent })
}

/// Whether `journalctl` was built without `--grep`, for a journal that is known to have entries.
pub(crate) fn lacks_grep(cx: &Context, budget: &Budget<'_>) -> bool {
    budget.waiting(|| cx.run(grep_probe())).is_ok_and(says_no_grep)
}

/// A query for words that finds no entries. It fails where `journalctl` was built without `--grep`.
fn grep_probe() -> Command {
    let range = Range { since: Some(NEVER), until: None };
    Query { range, words: vec!["x".to_owned()], ..Query::default() }.command(Some(1))
}

fn says_no_grep(output: Output) -> bool {
    output.error_text().contains("pattern matching")
}

fn holds(output: &Output) -> bool {
    output.stdout.contains(&b'{')
}

/// The reason why a query found no entries, from its output.
pub(crate) fn nothing_of(
    cx: &Context,
    query: &Query,
    output: &Output,
) -> Result<std::result::Result<Found, Absent>> {
    nothing(query, output, || cx.run(Query::default().command(Some(1))).is_ok_and(|output| holds(&output)))
}

/// The reason why a query found no entries. Nothing matches, there is no journal, or it can't be read. Wrong arguments are
/// an error.
fn nothing(
    query: &Query,
    output: &Output,
    is_any: impl FnOnce() -> bool,
) -> Result<std::result::Result<Found, Absent>> {
    let said = output.error_text();
    let said = said.lines().find(|line| !line.starts_with("Hint:")).unwrap_or_default();
    if said.contains("cursor") {
        let message = format!("after_cursor is no cursor of this journal: {said}");
        return Err(Problem::validation("INVALID_CURSOR", message).remedy("Ask without it, or by since"));
    }
    if said.contains("boot") && query.boot.is_some() {
        return Err(Problem::not_found("BOOT_NOT_FOUND", said.to_owned()));
    }
    // journalctl says this where no unit matches the pattern.
    if said.contains("No data available") {
        return Ok(Ok(Found::default()));
    }
    if output.exit_code != 0 {
        return Ok(Err(Absent::Refused(said.to_owned())));
    }
    // journalctl says nothing at all where there is no journal.
    Ok(if is_any() { Ok(Found::default()) } else { Err(Absent::NoJournal) })
}

fn absent(problem: Problem) -> Result<Absent> {
    match problem.category {
        Category::NotFound => Ok(Absent::NoJournal),
        Category::Privilege => Ok(Absent::Refused(problem.message)),
        _ => Err(problem),
    }
}
