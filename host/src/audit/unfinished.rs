//! Changes that were begun, and of which there is no end.

use std::collections::BTreeMap;
use std::path::Path;

use super::event::{ChangeBegun, Event};
use super::heads::Heads;
use super::record::Record;
use super::snapshot::Snapshot;
use super::verify::{VerifyError, scan};
use super::{AuditError, Life};

/// A change that was begun, and of which there is no end.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// What was to be done, and what it takes to put it back.
    pub begun: ChangeBegun,
    /// The record that says so.
    pub record: Record,
}

impl Unfinished {
    /// Whether it is still being made. What is neither that nor left behind for sure must not be touched.
    pub fn life(&self) -> Life {
        self.begun.process.as_ref().map_or(Life::Unknown, |process| process.life())
    }
}

/// Every change that was begun and neither ended nor recovered, those included that are still being made: see
/// [`Unfinished::life`]. The oldest first.
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

/// Changes without an end, among what was read so far.
#[derive(Debug, Default)]
pub(super) struct Open(BTreeMap<String, Record>);

impl Open {
    pub fn add(&mut self, record: Record) {
        let Some(id) = record.word("id").map(str::to_owned) else { return };
        match record.event.as_str() {
            "change-begun" => _ = self.0.insert(id, record),
            "change-ended" | "change-recovered" => _ = self.0.remove(&id),
            _ => {}
        }
    }

    pub fn into_unfinished(self) -> Vec<Unfinished> {
        let mut all: Vec<Unfinished> = self
            .0
            .into_values()
            .filter_map(|record| match record.to_event() {
                Ok(Event::ChangeBegun(begun)) => Some(Unfinished { begun: *begun, record }),
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
