//! Verifies that the log is what was written: every line, every link of the chain, and both ends of it.

use std::fmt;
use std::path::Path;

use super::event::{Dropped, Event};
use super::files::{CURRENT_FILE, HEAD_FILE, RotatedFile};
use super::head::Head;
use super::journal_heads::JournalHeads;
use super::record::{Mismatch, NONE_BEFORE, Record};
use super::snapshot::{LogLine, Snapshot};
use super::unfinished::{OpenChanges, Unfinished};
use super::{AuditError, Liveness};

/// The result for a log that is what was written.
#[derive(Debug)]
pub struct Verified {
    /// The number of records.
    pub records: u64,
    /// The number of the first record; 0 where there is none.
    pub first: u64,
    /// The number of the last record; 0 where there is none.
    pub last: u64,
    /// Findings that are not damage.
    pub notes: Vec<Note>,
    /// Changes without an end.
    pub unfinished: Vec<Unfinished>,
}

/// A finding that is not damage, but worth knowing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Retention removed the records up to this one.
    Dropped(u64),
    /// The log goes on after the record that the head names: a crash came between the two writes.
    AheadOfHead {
        /// The record that the head names; 0 where there is no head.
        head: u64,
        /// The last record.
        last: u64,
    },
    /// The head names a record after the last one: the machine went down before the records in between were on the disk.
    Lost {
        /// The last record.
        last: u64,
        /// The record that the head names.
        head: u64,
    },
    /// This record says that a writer repaired what a crash had left.
    Mended(u64),
    /// Another process has held the lock for the whole wait. It may be in the middle of a record.
    LockHeld,
    /// The number of records of the chain that the journal names.
    HeadsFound(usize),
    /// The number of records that the journal names and that retention removed.
    HeadsDropped(usize),
    /// The earliest record that the journal names. It has lost the heads of earlier ones, or never had any.
    HeadsFrom(u64),
    /// The number of changes that are being made.
    Running(usize),
    /// The number of changes without an end whose process is gone.
    Unfinished(usize),
    /// The number of changes without an end that were made on another machine or in another container.
    Unknown(usize),
    /// The number of changes during which the connection broke.
    Uncertain(usize),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dropped(last) => {
                write!(f, "records 1 to {last} were removed because of their age, as is on record")
            }
            Self::AheadOfHead { head, last } => {
                write!(
                    f,
                    "{HEAD_FILE} names record {head}, the log goes on to {last}: a crash came between the two"
                )
            }
            Self::Lost { last, head } => write!(
                f,
                "{HEAD_FILE} names record {head}, the log ends at {last}: the machine was restarted, and those records may not \
                 have been on the disk"
            ),
            Self::Mended(seq) => write!(f, "record {seq} says that what a crash had left was put right"),
            Self::LockHeld => {
                f.write_str("a process holds the lock and doesn't go on; it may be in the middle of a record")
            }
            Self::HeadsFound(heads) => write!(f, "records that the other log names, all found: {heads}"),
            Self::HeadsDropped(heads) => {
                write!(f, "records that the other log names, removed because of their age: {heads}")
            }
            Self::HeadsFrom(seq) => write!(
                f,
                "the other log names no record before {seq}: earlier ones are as they were when that one was written"
            ),
            Self::Running(changes) => write!(f, "changes being made: {changes}"),
            Self::Unfinished(changes) => {
                write!(
                    f,
                    "changes left unfinished: {changes}; `audit recover` lists them and puts their files back"
                )
            }
            Self::Unknown(changes) => write!(
                f,
                "changes without an end, of another machine or container: {changes}; see `audit show --unfinished`"
            ),
            Self::Uncertain(changes) => write!(
                f,
                "changes whose outcome nobody knows, since the connection went: {changes}; look at their targets, then \
                 `audit recover` ends them"
            ),
        }
    }
}

/// The first place where a log isn't what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: expected {}, found {}", mismatch.expected, mismatch.found)]
pub struct Damage {
    /// `FILE:LINE`, or the name of a file.
    pub place: String,
    /// The difference between what should be there and what is there.
    pub mismatch: Mismatch,
}

/// The reason why a log could not be verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The log isn't what was written.
    #[error(transparent)]
    Damage(#[from] Damage),
    /// The log can't be read.
    #[error(transparent)]
    Audit(AuditError),
}

impl From<AuditError> for VerifyError {
    fn from(error: AuditError) -> Self {
        match error {
            // This is how reading a damaged head fails.
            AuditError::Corrupt { place, expected, found } => {
                Self::Damage(Damage { place, mismatch: Mismatch { expected, found } })
            }
            error => Self::Audit(error),
        }
    }
}

/// Verifies the log of a directory, and that it holds every record that the journal names.
pub fn verify(directory: &Path, heads: &JournalHeads) -> Result<Verified, VerifyError> {
    let (mut verified, torn) = scan(Snapshot::open(directory)?, heads)?;
    match torn {
        Some(_) if verified.notes.contains(&Note::LockHeld) => {}
        Some(broken) => return Err(broken.into()),
        None => {}
    }
    let count = |liveness: Liveness| {
        verified.unfinished.iter().filter(|change| change.liveness() == liveness).count()
    };
    for (changes, note) in [
        (count(Liveness::Running), Note::Running as fn(usize) -> Note),
        (count(Liveness::Gone), Note::Unfinished),
        (count(Liveness::Unknown), Note::Unknown),
        (count(Liveness::Uncertain), Note::Uncertain),
    ] {
        if changes > 0 {
            verified.notes.push(note(changes));
        }
    }
    Ok(verified)
}

/// Reads the whole log. It returns a last line without its newline apart from other damage, because a crash leaves one.
fn scan(snapshot: Snapshot, heads: &JournalHeads) -> Result<(Verified, Option<Damage>), VerifyError> {
    let settled = snapshot.settled;
    let empty = snapshot.files.iter().find(|file| file.full.is_some() && file.length == 0);
    if let Some(file) = empty {
        return Err(
            Damage { place: file.name.clone(), mismatch: Mismatch::new("records", "an empty file") }.into()
        );
    }
    let mut chain = Chain { head: snapshot.head.clone(), ..Chain::new(heads) };
    let mut torn = None;
    for line in snapshot.lines() {
        let line = line?;
        let broken = |mismatch| Damage { place: format!("{}:{}", line.file, line.number), mismatch };
        if !line.whole && line.full.is_none() {
            torn = line.parse().err().map(broken);
            break;
        }
        line.parse().and_then(|record| chain.add(&line, record)).map_err(broken)?;
    }
    let mut verified = chain.finish().map_err(|broken| match &torn {
        // The missing record is the one whose line has no newline.
        Some(torn) if torn.place == broken.place => torn.clone(),
        _ => broken,
    })?;
    if !settled {
        verified.notes.push(Note::LockHeld);
    }
    Ok((verified, torn))
}

/// Lists the changes that were begun and have neither a certain end nor a complete recovery, the oldest first. They include
/// changes that are still being made: see [`Unfinished::liveness`].
///
/// The caller puts back what it finds here, so a damaged log is an error. A last line without its newline, which a crash
/// leaves, is not.
pub fn unfinished(directory: &Path) -> Result<Vec<Unfinished>, AuditError> {
    match scan(Snapshot::open(directory)?, &JournalHeads::default()) {
        Ok((verified, _)) => Ok(verified.unfinished),
        Err(VerifyError::Audit(error)) => Err(error),
        Err(VerifyError::Damage(broken)) => Err(AuditError::Corrupt {
            place: broken.place,
            expected: broken.mismatch.expected,
            found: broken.mismatch.found,
        }),
    }
}

/// The state of the chain after the records that were read so far.
struct Chain<'a> {
    head: Option<Head>,
    heads: &'a JournalHeads,
    /// The file of the last record, where that is a full one.
    full: Option<RotatedFile>,
    /// The number and `prev_hash` of the first record, where it is not the very first of the chain.
    begin: Option<(u64, String)>,
    first: Option<(u64, String)>,
    last: u64,
    hash: String,
    /// The place after the last line that was read.
    place: (String, u64),
    records: u64,
    dropped: Vec<Dropped>,
    notes: Vec<Note>,
    open: OpenChanges,
}

impl<'a> Chain<'a> {
    fn new(heads: &'a JournalHeads) -> Self {
        Self {
            head: None,
            heads,
            full: None,
            begin: None,
            first: None,
            last: 0,
            hash: NONE_BEFORE.to_owned(),
            place: (CURRENT_FILE.to_owned(), 1),
            records: 0,
            dropped: Vec::new(),
            notes: Vec::new(),
            open: OpenChanges::default(),
        }
    }

    fn add(&mut self, line: &LogLine, record: Record) -> Result<(), Mismatch> {
        let place = format!("{}:{}", line.file, line.number);
        let begins_file = line.number == 1;
        if self.first.is_none() {
            if record.seq != 1 {
                // A later record has to tell that the records before it were removed: see `finish`.
                self.begin = Some((record.seq, record.prev_hash.clone()));
                (self.last, self.hash) = (record.seq.saturating_sub(1), record.prev_hash.clone());
            }
            self.first = Some((record.seq, place));
        }
        if record.seq != self.last.saturating_add(1) {
            return Err(Mismatch::new(format!("record {}", self.last + 1), format!("record {}", record.seq)));
        }
        if record.prev_hash != self.hash {
            let expected = format!("prev_hash {} of record {}", self.hash, self.last);
            return Err(Mismatch::new(expected, format!("prev_hash {}", record.prev_hash)));
        }
        if begins_file && record.seq > 1 {
            self.continues(&record)?;
        }
        if let Some(full) = &line.full
            && (begins_file && record.seq != full.first || record.seq > full.last)
        {
            let expected = format!("records {} to {}, as the file's name says", full.first, full.last);
            return Err(Mismatch::new(expected, format!("record {}", record.seq)));
        }
        if let Some(head) = self.head.as_ref().filter(|head| head.seq == record.seq)
            && head.hash != record.hash
        {
            let expected = format!("hash {} of record {}, which {HEAD_FILE} names", head.hash, head.seq);
            return Err(Mismatch::new(expected, format!("hash {}", record.hash)));
        }
        if let Some(named) = self.heads.contradicts(record.seq, &record.hash) {
            let expected = format!("hash {named} of record {}, which the other log names", record.seq);
            return Err(Mismatch::new(expected, format!("hash {}", record.hash)));
        }
        self.full = line.full.clone();
        (self.last, self.hash) = (record.seq, record.hash.clone());
        self.place = (line.file.clone(), line.number + 1);
        self.records += 1;
        match record.to_event() {
            Ok(Event::Dropped(dropped)) => self.dropped.push(dropped),
            Ok(Event::Mended(_)) => self.notes.push(Note::Mended(record.seq)),
            _ => {}
        }
        self.open.add(record);
        Ok(())
    }

    /// Checks that the first record of a file names the file before it.
    fn continues(&self, record: &Record) -> Result<(), Mismatch> {
        let before = self.full.as_ref();
        if let Some(full) = before.filter(|full| full.last != self.last) {
            let expected = format!("record {} at the end of the file before, as its name says", full.last);
            return Err(Mismatch::new(expected, format!("record {}", self.last)));
        }
        let fits = match record.to_event() {
            Ok(Event::Rotated(rotated)) => {
                rotated.last_seq == self.last && before.is_none_or(|full| full.name() == rotated.from)
            }
            _ => false,
        };
        match fits {
            true => Ok(()),
            false => {
                let expected = format!("that the file continues another one, after record {}", self.last);
                Err(Mismatch::new(expected, format!("the event {:?}", record.event)))
            }
        }
    }

    fn finish(mut self) -> Result<Verified, Damage> {
        let end = || format!("{}:{}", self.place.0, self.place.1);
        let nothing = || "the end of the log".to_owned();
        if let (Some((seq, hash)), Some((_, place))) = (&self.begin, &self.first) {
            let before = seq.saturating_sub(1);
            let is_on_record = self.dropped.iter().any(|dropped| {
                // The last of the files to be removed may still be there.
                dropped.up_to_seq >= *seq || dropped.up_to_seq == before && dropped.last_hash == *hash
            });
            if !is_on_record {
                let mismatch = Mismatch::new(
                    format!("the file with record {before}, or a record of its removal"),
                    format!("record {seq} as the first of all"),
                );
                return Err(Damage { place: place.clone(), mismatch });
            }
            self.notes.insert(0, Note::Dropped(before));
        }
        if let Some(full) = self.full.as_ref().filter(|full| full.last != self.last) {
            let expected = format!("record {}, as the file's name says", full.last);
            return Err(Damage { place: end(), mismatch: Mismatch::new(expected, nothing()) });
        }
        let first = self.first.as_ref().map_or(0, |(seq, _)| *seq);
        match &self.head {
            Some(head) if head.seq > self.last => {
                if !head.explains_end_at(self.last) {
                    let expected = format!("record {}, which {HEAD_FILE} names", head.seq);
                    return Err(Damage { place: end(), mismatch: Mismatch::new(expected, nothing()) });
                }
                self.notes.push(Note::Lost { last: self.last, head: head.seq });
            }
            Some(head) if head.seq < first => {
                let mismatch =
                    Mismatch::new(format!("record {first} or a later one"), format!("record {}", head.seq));
                return Err(Damage { place: HEAD_FILE.to_owned(), mismatch });
            }
            Some(head) if head.seq < self.last => {
                self.notes.push(Note::AheadOfHead { head: head.seq, last: self.last });
            }
            // Only a crash right after the first record leaves a log without a head.
            None if self.records == 1 => self.notes.push(Note::AheadOfHead { head: 0, last: self.last }),
            None if self.records > 1 => {
                let mismatch =
                    Mismatch::new(format!("record {}", self.last), "no such file, or an empty one");
                return Err(Damage { place: HEAD_FILE.to_owned(), mismatch });
            }
            _ => {}
        }
        if let Some(seq) = self.heads.after(self.last) {
            let expected = format!("record {seq}, which the other log names");
            return Err(Damage { place: end(), mismatch: Mismatch::new(expected, nothing()) });
        }
        let dropped = self.heads.before(first);
        for (heads, note) in [
            (self.heads.len() - dropped, Note::HeadsFound as fn(usize) -> Note),
            (dropped, Note::HeadsDropped),
        ] {
            if heads > 0 {
                self.notes.push(note(heads));
            }
        }
        if let Some(seq) = self.heads.after(0).filter(|seq| *seq > first) {
            self.notes.push(Note::HeadsFrom(seq));
        }
        Ok(Verified {
            records: self.records,
            first,
            last: self.last,
            notes: self.notes,
            unfinished: self.open.into_unfinished(),
        })
    }
}
