//! Changes that were begun, and of which there is no end; or one that says that nobody knows it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::event::{ChangeBegun, Event};
use super::heads::Heads;
use super::record::Record;
use super::snapshot::Snapshot;
use super::verify::{VerifyError, scan};
use super::{AuditError, Life};

/// Bytes at the end of a log that tell of lately.
const LATELY: u64 = 1 << 20;
/// How long a writer is waited for where nothing depends on it.
const SOON: Duration = Duration::from_millis(500);
/// [`super::Outcome::Uncertain`], as it stands in a record.
const UNCERTAIN: &str = "uncertain";

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

/// Every change that was begun and neither ended for sure nor recovered with nothing left to put back, those included that
/// are still being made: see [`Unfinished::life`]. The oldest first.
///
/// What is found here is about to be put back on a machine, so a log that isn't what was written gives nothing; but
/// for a last line without its end, which is what a crash leaves.
pub fn unfinished(directory: &Path) -> Result<Vec<Unfinished>, AuditError> {
    match scan(Snapshot::open(directory)?, &Heads::default()) {
        Ok((verified, _)) => Ok(verified.unfinished),
        Err(VerifyError::Audit(error)) => Err(error),
        Err(VerifyError::Broken(broken)) => Err(AuditError::Corrupt {
            place: broken.place,
            expected: broken.fault.expected,
            found: broken.fault.found,
        }),
    }
}

/// Whether nothing of the change was left that couldn't be put back. A list that was too long for its record is none.
fn is_complete(recovered: &Record) -> bool {
    recovered.members.get("not_restored").and_then(Value::as_array).is_some_and(Vec::is_empty)
}

/// Of [`unfinished`] what the last records tell, and nobody makes any more. It costs a look at the end of the log and
/// holds nothing against the chain: enough to say that somebody should look.
pub fn left_lately(directory: &Path) -> Result<Vec<String>, AuditError> {
    let mut open = Open::default();
    for line in Snapshot::open_within(directory, SOON)?.lines_at_end(LATELY)? {
        // Calls are by far the most.
        if let Ok(text) = str::from_utf8(&line)
            && text.contains(r#""event":"change-"#)
            && let Ok(record) = Record::parse(&line)
        {
            open.add(record);
        }
    }
    let is_left = |change: &Unfinished| matches!(change.life(), Life::Gone | Life::Uncertain);
    let gone = open.into_unfinished().into_iter().filter(is_left);
    Ok(gone.map(|change| change.begun.id).collect())
}

/// Changes without an end that anybody knows, among what was read so far; whether there is one at all.
#[derive(Debug, Default)]
pub(super) struct Open(BTreeMap<String, (Record, bool)>);

impl Open {
    pub fn add(&mut self, record: Record) {
        let Some(id) = record.word("id").map(str::to_owned) else { return };
        match record.event.as_str() {
            "change-begun" => _ = self.0.insert(id, (record, false)),
            "change-ended" if record.word("outcome") == Some(UNCERTAIN) => {
                if let Some((_, is_uncertain)) = self.0.get_mut(&id) {
                    *is_uncertain = true;
                }
            }
            "change-ended" => _ = self.0.remove(&id),
            // What is left of it can still be put back.
            "change-recovered" if is_complete(&record) => _ = self.0.remove(&id),
            _ => {}
        }
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
