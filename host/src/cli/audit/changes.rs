//! The changes on record, each as one row: when, who, on which host, what, and what came of it. The calls that changed nothing
//! have rows of the same form.

use std::collections::VecDeque;

use serde_json::Value;

use super::filter::{Filter, Subject};
use crate::cli::screen::{Screen, cut, severity_style};
use crate::cli::table::{Cell, Column, Table};
use host_audit::{Liveness, Process, Record};
use host_text::visible::{excerpt, one_line};

/// The number of characters of a sentence, a name or a code that a row keeps.
const MOST_TEXT: usize = 200;
/// The protocol of a call from a shell.
const CLI: &str = "cli";
/// The width of a name, and the least widths of columns.
const MOST_NAME: usize = 20;
const LEAST_NAME: usize = 6;
const LEAST_WHAT: usize = 15;

/// A change, or a call that changed nothing.
struct Row {
    seq: u64,
    time: String,
    /// The id of the change; `None` for a call.
    change: Option<String>,
    who: String,
    host: String,
    what: String,
    /// The status or outcome as it is on record; `None` for a change whose end is not on record.
    status: Option<String>,
    /// The error code of a call.
    code: Option<String>,
    process: Option<Process>,
}

/// Rows in the order of the log.
pub(super) struct Rows<'a> {
    filter: &'a Filter,
    /// True where the calls that changed nothing have rows as well.
    looks: bool,
    rows: VecDeque<Row>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(filter: &'a Filter, looks: bool) -> Self {
        Self { filter, looks, rows: VecDeque::new() }
    }

    /// Adds a record. Records come in the order of the log.
    pub(super) fn add(&mut self, record: &Record) {
        let of_change = |row: &&mut Row| row.change.is_some() && row.change.as_deref() == record.change();
        match record.event.as_str() {
            "change-begun" => self.push(record, Row::begun(record)),
            // The end of a change doesn't repeat what its beginning said.
            "change-ended" => {
                if let Some(row) = self.rows.iter_mut().rev().find(of_change) {
                    row.status = record.word("outcome").map(str::to_owned);
                }
            }
            "change-recovered" => {
                if let Some(row) = self.rows.iter_mut().rev().find(of_change) {
                    row.status = Some("recovered".to_owned());
                }
            }
            // The change of a call has its own row.
            "call" if self.looks && record.change().is_none() => self.push(record, Row::call(record)),
            _ => {}
        }
    }

    fn push(&mut self, record: &Record, row: Row) {
        if !self.filter.wants_at(&record.time) || !self.filter.wants_subject(&Subject::of(record)) {
            return;
        }
        // Only the end of a change tells its status.
        if row.change.is_none() && !self.filter.wants_status(row.status.as_deref()) {
            return;
        }
        if self.filter.status.is_none()
            && self.filter.last.is_some_and(|last| self.rows.len() >= last as usize)
        {
            self.rows.pop_front();
        }
        self.rows.push_back(row);
    }

    /// The table of the rows that pass the filter; `None` where there is none.
    pub(super) fn table(mut self, screen: Screen) -> Option<String> {
        self.rows.retain(|row| self.filter.wants_status(row.status.as_deref()));
        let most = self.filter.last.map_or(usize::MAX, |last| last as usize);
        let surplus = self.rows.len().saturating_sub(most);
        let mut table = Table::new([
            Column::whole("NR"),
            Column::whole("WHEN"),
            Column::cut("WHO", LEAST_NAME),
            Column::cut("HOST", LEAST_NAME),
            Column::cut("WHAT", LEAST_WHAT),
            Column::whole("OUTCOME"),
        ]);
        for row in self.rows.iter().skip(surplus) {
            let (outcome, word) = row.outcome();
            table.row([
                Cell { is_number: true, ..Cell::from(row.seq.to_string()) },
                Cell::from(format!("{}Z", row.time)),
                Cell::from(cut(&row.who, MOST_NAME)),
                Cell::from(cut(&row.host, MOST_NAME)),
                Cell::from(row.what.clone()),
                Cell::styled(cut(&outcome, MOST_NAME), severity_style(&word)),
            ]);
        }
        (self.rows.len() > surplus).then(|| table.text(screen, 0))
    }
}

impl Row {
    fn begun(record: &Record) -> Self {
        // A plan that was too long for its record is left out of it.
        let plan = record.members.get("plan").and_then(|plan| plan.get("description"));
        let what = plan.and_then(Value::as_str).or_else(|| record.word("tool"));
        let process = record.members.get("process").cloned();
        Self {
            change: record.change().map(str::to_owned),
            process: process.and_then(|process| serde_json::from_value(process).ok()),
            ..Self::of(record, what)
        }
    }

    fn call(record: &Record) -> Self {
        let what = record.word("tool").map(|tool| match record.word_of("called_by", "name") {
            Some(module) => format!("{tool} for {module}"),
            None => tool.to_owned(),
        });
        Self {
            status: record.word("status").map(str::to_owned),
            code: record.word("error_code").map(shown),
            ..Self::of(record, what.as_deref())
        }
    }

    fn of(record: &Record, what: Option<&str>) -> Self {
        // A list has times to the minute.
        let time = record.time.get(..16).unwrap_or(&record.time).replace('T', " ");
        Self {
            seq: record.seq,
            time: one_line(&time),
            change: None,
            who: who(record),
            host: shown(record.word_of("target", "name").unwrap_or("-")),
            what: shown(what.unwrap_or("?")),
            status: None,
            code: None,
            process: None,
        }
    }

    /// The outcome as it is shown, and the word that says how serious it is.
    fn outcome(&self) -> (String, String) {
        let status = self.status.clone().unwrap_or_else(|| {
            let is_made = match self.process.as_ref().map_or(Liveness::Unknown, Process::liveness) {
                Liveness::Running => "running",
                Liveness::Gone | Liveness::Uncertain => "unfinished",
                Liveness::Unknown => "unknown",
            };
            is_made.to_owned()
        });
        let shown = self.code.clone().unwrap_or_else(|| one_line(&status.replace('-', " ")));
        (shown, status)
    }
}

/// The person who decided at a terminal, or else the client, without its version. A call from a shell has no client.
fn who(record: &Record) -> String {
    let by = record.members.get("decided_by").and_then(|by| by.get("terminal"));
    if let Some(account) = by.and_then(|person| person.get("account")).and_then(Value::as_str) {
        return shown(account);
    }
    let client = record.word("client").unwrap_or("?");
    let is_version = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
    match (record.word("protocol"), client.rsplit_once(' ')) {
        (Some(CLI), _) => CLI.to_owned(),
        (_, Some((name, version))) if is_version(version) => shown(name),
        _ => shown(client),
    }
}

fn shown(text: &str) -> String {
    one_line(&excerpt(text, MOST_TEXT))
}
