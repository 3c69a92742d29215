//! Changes that were begun, and of which there is no end; or one that says that nobody knows it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::event::{ChangeBegun, Event};
use super::record::Record;
use super::snapshot::Snapshot;
use super::{AuditError, Life};

/// Bytes at the end of a log that tell of lately.
const LATELY: u64 = 1 << 20;
/// How long a writer is waited for where nothing depends on it.
const SOON: Duration = Duration::from_millis(500);
/// [`super::Outcome::Uncertain`], as it stands in a record.
const UNCERTAIN: &str = "uncertain";
/// [`super::Outcome::Done`].
const DONE: &str = "done";

/// A change that was begun, and of which there is no end that anybody knows.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// What was to be done, and what it takes to put it back.
    pub begun: ChangeBegun,
    /// The record that says so.
    pub record: Record,
    /// Whether it has ended so that nobody knows its outcome.
    pub is_uncertain: bool,
}

impl Unfinished {
    /// Whether it is still being made. What is neither that nor left behind for sure must not be touched.
    pub fn life(&self) -> Life {
        if self.is_uncertain {
            return Life::Uncertain;
        }
        self.begun.process.as_ref().map_or(Life::Unknown, |process| process.life())
    }
}

/// Whether nothing of the change was left that couldn't be put back. A list that was too long for its record is none.
fn is_complete(recovered: &Record) -> bool {
    recovered.members.get("not_restored").and_then(Value::as_array).is_some_and(Vec::is_empty)
}

/// What a server that was killed has left of a change.
#[derive(Clone, Debug)]
pub struct Left {
    /// The change.
    pub begun: ChangeBegun,
    /// It was made to its end, so that only the copies of its files are left.
    pub is_made: bool,
}

/// What the last records tell of [`unfinished`] changes that nobody makes any more, and of those made to their end on this
/// machine whose copies are still beside their files. It costs a look at the end of the log and holds nothing against
/// the chain: enough to say that somebody should look.
pub fn left_lately(directory: &Path) -> Result<Vec<Left>, AuditError> {
    let mut open = Open::default();
    let mut made = Vec::new();
    for line in Snapshot::open_within(directory, SOON)?.lines_at_end(LATELY)? {
        // Calls are by far the most.
        if let Ok(text) = str::from_utf8(&line)
            && text.contains(r#""event":"change-"#)
            && let Ok(record) = Record::parse(&line)
        {
            made.extend(open.add(record));
        }
    }
    let is_left = |change: &Unfinished| matches!(change.life(), Life::Gone | Life::Uncertain);
    let gone = open.into_unfinished().into_iter().filter(is_left);
    let mut left: Vec<Left> = gone.map(|change| Left { begun: change.begun, is_made: false }).collect();
    for record in made {
        if let Ok(Event::ChangeBegun(begun)) = record.to_event()
            && begun.target.host_key.is_none()
            && begun
                .files
                .iter()
                .any(|file| file.staging.starts_with('/') && Path::new(&file.staging).exists())
            && begun.process.as_ref().is_some_and(|process| process.life() == Life::Gone)
        {
            left.push(Left { begun: *begun, is_made: true });
        }
    }
    Ok(left)
}

/// Changes without an end that anybody knows, among what was read so far; whether there is one at all.
#[derive(Debug, Default)]
pub(super) struct Open(BTreeMap<String, (Record, bool)>);

impl Open {
    /// Gives the beginning of a change of which this record says that it was made.
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
            // What is left of it can still be put back.
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
                // Of a newer version, whose changes this one couldn't put back.
                _ => {
                    tracing::warn!(seq = record.seq, "the beginning of a change isn't understood");
                    None
                }
            })
            .collect();
        all.sort_by_key(|change| change.record.seq);
        all
    }
}
