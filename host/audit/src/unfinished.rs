//! Finds changes that were begun and have no end, or whose end says that the outcome is unknown.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::event::{ChangeBegun, Event};
use super::record::Record;
use super::snapshot::Snapshot;
use super::{AuditError, Liveness};

/// The number of bytes at the end of a log in which [`recent_leftovers`] looks.
const RECENT_BYTES: u64 = 1 << 20;
/// The time for which [`recent_leftovers`] waits for a writer. No decision depends on its result.
const LOCK_WAIT: Duration = Duration::from_millis(500);
/// [`super::Outcome::Uncertain`], as it is written in a record.
const UNCERTAIN: &str = "uncertain";
/// [`super::Outcome::Done`], as it is written in a record.
const DONE: &str = "done";

/// A change that was begun and has no certain end.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// The beginning of the change, with everything that it takes to put it back.
    pub begun: ChangeBegun,
    /// The record of the beginning.
    pub record: Record,
    /// Whether the change ended with an unknown outcome.
    pub is_uncertain: bool,
}

impl Unfinished {
    /// Whether the change is still being made. Where that is [`Liveness::Unknown`], the change must not be touched.
    pub fn liveness(&self) -> Liveness {
        if self.is_uncertain {
            return Liveness::Uncertain;
        }
        self.begun.process.as_ref().map_or(Liveness::Unknown, |process| process.liveness())
    }
}

/// Whether a recovery put everything back. A list that was left out of its record because of its length counts as a no.
fn is_complete(recovered: &Record) -> bool {
    recovered.members.get("not_restored").and_then(Value::as_array).is_some_and(Vec::is_empty)
}

/// The rest of a change that a server left when it was killed.
#[derive(Clone, Debug)]
pub struct Leftover {
    /// The change.
    pub begun: ChangeBegun,
    /// Whether the change was done to its end, so that only the copies of its files are left.
    pub is_done: bool,
}

/// Reads from the last records which [`unfinished`](super::unfinished()) changes nobody makes any more, and which changes
/// were done to their end on this machine while their copies still lie beside the files. It reads only the end of the log
/// and doesn't verify the chain, which is enough to tell a person to look.
pub fn recent_leftovers(directory: &Path) -> Result<Vec<Leftover>, AuditError> {
    let mut open = OpenChanges::default();
    let mut made = Vec::new();
    for line in Snapshot::open_within(directory, LOCK_WAIT)?.lines_at_end(RECENT_BYTES)? {
        // Most records are calls, which need no parsing here.
        if let Ok(text) = str::from_utf8(&line)
            && text.contains(r#""event":"change-"#)
            && let Ok(record) = Record::parse(&line)
        {
            made.extend(open.add(record));
        }
    }
    let is_left = |change: &Unfinished| matches!(change.liveness(), Liveness::Gone | Liveness::Uncertain);
    let gone = open.into_unfinished().into_iter().filter(is_left);
    let mut left: Vec<Leftover> =
        gone.map(|change| Leftover { begun: change.begun, is_done: false }).collect();
    for record in made {
        if let Ok(Event::ChangeBegun(begun)) = record.to_event()
            && begun.target.host_key.is_none()
            && begun
                .files
                .iter()
                .any(|file| file.staging.starts_with('/') && Path::new(&file.staging).exists())
            && begun.process.as_ref().is_some_and(|process| process.liveness() == Liveness::Gone)
        {
            left.push(Leftover { begun: *begun, is_done: true });
        }
    }
    Ok(left)
}

/// The changes without a certain end, among the records that were read so far. The flag tells that a change ended with an
/// unknown outcome.
#[derive(Debug, Default)]
pub(super) struct OpenChanges(BTreeMap<String, (Record, bool)>);

impl OpenChanges {
    /// Adds a record. Returns the beginning of a change where this record says that the change was done.
    pub fn add(&mut self, record: Record) -> Option<Record> {
        let id = record.word("id").map(str::to_owned)?;
        match record.event.as_str() {
            "change-begun" => _ = self.0.insert(id, (record, false)),
            "change-ended" if record.word("outcome") == Some(UNCERTAIN) => {
                if let Some((_, is_uncertain)) = self.0.get_mut(&id) {
                    *is_uncertain = true;
                }
            }
            "change-ended" => {
                let (begun, _) = self.0.remove(&id)?;
                return (record.word("outcome") == Some(DONE)).then_some(begun);
            }
            // After an incomplete recovery the change stays open: the rest can still be put back.
            "change-recovered" if is_complete(&record) => _ = self.0.remove(&id),
            _ => {}
        }
        None
    }

    pub fn into_unfinished(self) -> Vec<Unfinished> {
        let mut all: Vec<Unfinished> = self
            .0
            .into_values()
            .filter_map(|(record, is_uncertain)| match record.to_event() {
                Ok(Event::ChangeBegun(begun)) => Some(Unfinished { begun: *begun, record, is_uncertain }),
                // A newer version wrote it, whose changes this version couldn't put back.
                _ => {
                    tracing::warn!(seq = record.seq, "the record of a change's beginning can't be read");
                    None
                }
            })
            .collect();
        all.sort_by_key(|change| change.record.seq);
        all
    }
}
