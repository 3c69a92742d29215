//! Whether the log is what was written: every line, every link of the chain, both ends of it.

use std::fmt;
use std::path::Path;

use super::event::{Dropped, Event};
use super::files::{CURRENT, Full, HEAD};
use super::head::Head;
use super::heads::Heads;
use super::record::{Fault, NONE_BEFORE, Record};
use super::snapshot::{Line, Snapshot};
use super::unfinished::{Open, Unfinished};
use super::{AuditError, Life};

/// A log that is what was written.
#[derive(Debug)]
pub struct Verified {
    /// How many records there are.
    pub records: u64,
    /// The number of the first; 0 where there is none.
    pub first: u64,
    /// The number of the last; 0 where there is none.
    pub last: u64,
    /// What is as it may be, and worth knowing.
    pub notes: Vec<Note>,
    /// Changes without an end.
    pub unfinished: Vec<Unfinished>,
}

/// What is as it may be, and worth knowing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Records before the first were removed by retention; the last removed.
    Dropped(u64),
    /// The log goes on after the record that the head names: a crash came in between.
    AheadOfHead {
        /// The record that the head names; 0 where there is no head.
        head: u64,
        /// The last record.
        last: u64,
    },
    /// The head goes on after the last record: the machine went down before these were written through.
    Lost {
        /// The last record.
        last: u64,
        /// The record that the head names.
        head: u64,
    },
    /// What a crash left was put right, by this record.
    Mended(u64),
    /// A process holds the lock and doesn't go on. It may be in the middle of a record.
    NotSettled,
    /// Heads of the other log that name records of the chain.
    HeadsFound(usize),
    /// Heads of the other log that name records that were removed by retention.
    HeadsDropped(usize),
    /// Changes that are being made.
    Running(usize),
    /// Changes without an end, whose process is gone.
    Unfinished(usize),
    /// Changes without an end, made on another machine or in another container.
    Unknown(usize),
    /// Changes in the middle of which the connection went.
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
                    "{HEAD} names record {head}, the log goes on to {last}: a crash came between the two"
                )
            }
            Self::Lost { last, head } => write!(
                f,
                "{HEAD} names record {head}, the log ends at {last}: the machine was restarted, and those records may not \
                 have been on the disk"
            ),
            Self::Mended(seq) => write!(f, "record {seq} says that what a crash had left was put right"),
            Self::NotSettled => {
                f.write_str("a process holds the lock and doesn't go on; it may be in the middle of a record")
            }
            Self::HeadsFound(heads) => write!(f, "records that the other log names, all found: {heads}"),
            Self::HeadsDropped(heads) => {
                write!(f, "records that the other log names, removed because of their age: {heads}")
            }
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
#[error("{place}: expected {}, found {}", fault.expected, fault.found)]
pub struct Broken {
    /// `FILE:LINE`, or a file that has no such line.
    pub place: String,
    /// What is wrong there.
    pub fault: Fault,
}

/// Why a log isn't verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// It isn't what was written.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// It can't be read.
    #[error(transparent)]
    Audit(AuditError),
}

impl From<AuditError> for VerifyError {
    fn from(error: AuditError) -> Self {
        match error {
            // The head.
            AuditError::Corrupt { place, expected, found } => {
                Self::Broken(Broken { place, fault: Fault { expected, found } })
            }
            error => Self::Audit(error),
        }
    }
}

/// Verifies the log of a directory, and that what another log knows of it is in it.
pub fn verify(directory: &Path, heads: &Heads) -> Result<Verified, VerifyError> {
    let (mut verified, torn) = scan(Snapshot::open(directory)?, heads)?;
    match torn {
        Some(_) if verified.notes.contains(&Note::NotSettled) => {}
        Some(broken) => return Err(broken.into()),
        None => {}
    }
    let count = |life: Life| verified.unfinished.iter().filter(|change| change.life() == life).count();
    for (changes, note) in [
        (count(Life::Running), Note::Running as fn(usize) -> Note),
        (count(Life::Gone), Note::Unfinished),
        (count(Life::Unknown), Note::Unknown),
        (count(Life::Uncertain), Note::Uncertain),
    ] {
        if changes > 0 {
            verified.notes.push(note(changes));
        }
    }
    Ok(verified)
}

/// Reads all of it. A last line without its end is told apart: a crash leaves one.
fn scan(snapshot: Snapshot, heads: &Heads) -> Result<(Verified, Option<Broken>), VerifyError> {
    let settled = snapshot.settled;
    let empty = snapshot.files.iter().find(|file| file.full.is_some() && file.length == 0);
    if let Some(file) = empty {
        return Err(Broken { place: file.name.clone(), fault: Fault::new("records", "an empty file") }.into());
    }
    let mut chain = Chain { head: snapshot.head.clone(), ..Chain::new(heads) };
    let mut torn = None;
    for line in snapshot.lines() {
        let line = line?;
        let broken = |fault| Broken { place: format!("{}:{}", line.file, line.number), fault };
        if !line.whole && line.full.is_none() {
            torn = line.parse().err().map(broken);
            break;
        }
        line.parse().and_then(|record| chain.add(&line, record)).map_err(broken)?;
    }
    let mut verified = chain.finish().map_err(|broken| match &torn {
        // The record that is missing is the one without its end.
        Some(torn) if torn.place == broken.place => torn.clone(),
        _ => broken,
    })?;
    if !settled {
        verified.notes.push(Note::NotSettled);
    }
    Ok((verified, torn))
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

/// What was read so far.
struct Chain<'a> {
    head: Option<Head>,
    heads: &'a Heads,
    /// The file of the last record, where that is full.
    full: Option<Full>,
    /// Name and hash of what the first record continues, where it is not the very first.
    begin: Option<(u64, String)>,
    first: Option<(u64, String)>,
    last: u64,
    hash: String,
    /// The line after the last one.
    place: (String, u64),
    records: u64,
    dropped: Vec<Dropped>,
    notes: Vec<Note>,
    open: Open,
}

impl<'a> Chain<'a> {
    fn new(heads: &'a Heads) -> Self {
        Self {
            head: None,
            heads,
            full: None,
            begin: None,
            first: None,
            last: 0,
            hash: NONE_BEFORE.to_owned(),
            place: (CURRENT.to_owned(), 1),
            records: 0,
            dropped: Vec::new(),
            notes: Vec::new(),
            open: Open::default(),
        }
    }

    fn add(&mut self, line: &Line, record: Record) -> Result<(), Fault> {
        let place = format!("{}:{}", line.file, line.number);
        let begins_file = line.number == 1;
        if self.first.is_none() {
            if record.seq != 1 {
                // Whether that may be is on record later.
                self.begin = Some((record.seq, record.prev_hash.clone()));
                (self.last, self.hash) = (record.seq.saturating_sub(1), record.prev_hash.clone());
            }
            self.first = Some((record.seq, place));
        }
        if record.seq != self.last.saturating_add(1) {
            return Err(Fault::new(format!("record {}", self.last + 1), format!("record {}", record.seq)));
        }
        if record.prev_hash != self.hash {
            let expected = format!("prev_hash {} of record {}", self.hash, self.last);
            return Err(Fault::new(expected, format!("prev_hash {}", record.prev_hash)));
        }
        if begins_file && record.seq > 1 {
            self.continues(&record)?;
        }
        if let Some(full) = &line.full
            && (begins_file && record.seq != full.first || record.seq > full.last)
        {
            let expected = format!("records {} to {}, as the file's name says", full.first, full.last);
            return Err(Fault::new(expected, format!("record {}", record.seq)));
        }
        if let Some(head) = self.head.as_ref().filter(|head| head.seq == record.seq)
            && head.hash != record.hash
        {
            let expected = format!("hash {} of record {}, which {HEAD} names", head.hash, head.seq);
            return Err(Fault::new(expected, format!("hash {}", record.hash)));
        }
        if let Some(named) = self.heads.contradicts(record.seq, &record.hash) {
            let expected = format!("hash {named} of record {}, which the other log names", record.seq);
            return Err(Fault::new(expected, format!("hash {}", record.hash)));
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

    /// The first record of a file names the file before it.
    fn continues(&self, record: &Record) -> Result<(), Fault> {
        let before = self.full.as_ref();
        if let Some(full) = before.filter(|full| full.last != self.last) {
            let expected = format!("record {} at the end of the file before, as its name says", full.last);
            return Err(Fault::new(expected, format!("record {}", self.last)));
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
                Err(Fault::new(expected, format!("the event {:?}", record.event)))
            }
        }
    }

    fn finish(mut self) -> Result<Verified, Broken> {
        let end = || format!("{}:{}", self.place.0, self.place.1);
        let nothing = || "the end of the log".to_owned();
        if let (Some((seq, hash)), Some((_, place))) = (&self.begin, &self.first) {
            let before = seq.saturating_sub(1);
            let is_on_record = self.dropped.iter().any(|dropped| {
                // Of files that were to go, the last may still be there.
                dropped.up_to_seq >= *seq || dropped.up_to_seq == before && dropped.last_hash == *hash
            });
            if !is_on_record {
                let fault = Fault::new(
                    format!("the file with record {before}, or a record of its removal"),
                    format!("record {seq} as the first of all"),
                );
                return Err(Broken { place: place.clone(), fault });
            }
            self.notes.insert(0, Note::Dropped(before));
        }
        if let Some(full) = self.full.as_ref().filter(|full| full.last != self.last) {
            let expected = format!("record {}, as the file's name says", full.last);
            return Err(Broken { place: end(), fault: Fault::new(expected, nothing()) });
        }
        let first = self.first.as_ref().map_or(0, |(seq, _)| *seq);
        match &self.head {
            Some(head) if head.seq > self.last => {
                if !head.explains_end_at(self.last) {
                    let expected = format!("record {}, which {HEAD} names", head.seq);
                    return Err(Broken { place: end(), fault: Fault::new(expected, nothing()) });
                }
                self.notes.push(Note::Lost { last: self.last, head: head.seq });
            }
            Some(head) if head.seq < first => {
                let fault =
                    Fault::new(format!("record {first} or a later one"), format!("record {}", head.seq));
                return Err(Broken { place: HEAD.to_owned(), fault });
            }
            Some(head) if head.seq < self.last => {
                self.notes.push(Note::AheadOfHead { head: head.seq, last: self.last });
            }
            // A crash may have come before the first head was written, and not later.
            None if self.records == 1 => self.notes.push(Note::AheadOfHead { head: 0, last: self.last }),
            None if self.records > 1 => {
                let fault = Fault::new(format!("record {}", self.last), "no such file, or an empty one");
                return Err(Broken { place: HEAD.to_owned(), fault });
            }
            _ => {}
        }
        if let Some(seq) = self.heads.after(self.last) {
            let expected = format!("record {seq}, which the other log names");
            return Err(Broken { place: end(), fault: Fault::new(expected, nothing()) });
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
        Ok(Verified {
            records: self.records,
            first,
            last: self.last,
            notes: self.notes,
            unfinished: self.open.into_unfinished(),
        })
    }
}
