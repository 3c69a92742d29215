//! Adding to the log: one line, one write, under a lock, and back to what was before where anything of it fails.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::bound::{TooLong, bound};
use super::event::{Dropped, Event, Mended, Rotated};
use super::files::{self, CURRENT, For, Full, HEAD, Stamp};
use super::head::Head;
use super::journal::{self, Journal};
use super::lock::{self, Share};
use super::process::Process;
use super::record::{NONE_BEFORE, seal};
use super::tail::{first_seq, tail};
use super::{AuditError, Config, Settings};
use host_base::{directories, faults};

/// How long another writer may take. It needs microseconds, or as long as the disk takes to write through.
const WAIT: Duration = Duration::from_secs(5);

/// Whether a record must outlive the machine's going down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It outlives this process.
    Lazy,
    /// It is on the disk, and the journal has its head, before what it tells of happens.
    Synced,
}

/// Where a record is in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Its number.
    pub seq: u64,
    /// Its hash.
    pub hash: String,
}

/// The log of one account. Cheap to hold; nothing is opened or made before the first record.
#[derive(Debug)]
pub struct Audit {
    directory: PathBuf,
    settings: Settings,
    journal: Journal,
    wait: Duration,
    /// What this process left, so that the file needn't be read as long as nobody else adds to it.
    left: Mutex<Option<Log>>,
}

/// The file that is added to, and the last record of the chain.
#[derive(Debug)]
struct Log {
    file: File,
    stamp: Stamp,
    seq: u64,
    hash: String,
    /// The last record that is known to be on the disk.
    synced: u64,
}

impl Audit {
    /// A log in this directory.
    pub fn new(directory: PathBuf, settings: Settings) -> Self {
        let journal = Journal::new(journal::SOCKET.into());
        Self { directory, settings, journal, wait: WAIT, left: Mutex::default() }
    }

    /// The log of the account that this process runs as. Where nothing says where its home is, nothing can be put on
    /// record.
    pub fn of_this_account(config: &Config) -> Self {
        let directory = directory().unwrap_or_else(|| "/dev/null/linux-sysadmin".into());
        Self::new(directory, config.settings())
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// With another journal than the machine's.
    #[must_use]
    pub fn with_journal(self, socket: PathBuf) -> Self {
        Self { journal: Journal::new(socket), ..self }
    }

    /// Waiting for another writer no longer than this, in place of 5 seconds.
    #[must_use]
    pub fn with_wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Puts an event on record. An error means that it isn't there, and that what it tells of must not happen.
    ///
    /// Blocks the thread for tens of microseconds, for a synced record until the disk has it, and while another
    /// process writes.
    pub fn append(&self, event: &Event, durability: Durability) -> Result<Appended, AuditError> {
        let members = members(event)?;
        let deadline = Instant::now() + self.wait;
        let mut left = lock::enter(&self.left, &self.directory, deadline)?;
        files::prepare(&self.directory)?;
        let _held = lock::take(&self.directory, Share::Exclusive, deadline)?;
        let now = files::stamp(&self.directory.join(CURRENT))?;
        // What fails leaves nothing behind, so the next one reads the file.
        let mut log = match left.take() {
            Some(log) if now == Some(log.stamp) => log,
            _ => self.open()?,
        };
        if log.stamp.length >= self.settings.rotate_bytes {
            self.rotate(&mut log)?;
        }
        let appended = self.add(&mut log, members, durability)?;
        *left = Some(log);
        Ok(appended)
    }

    /// Opens the file, finds the end of the chain, and puts right what a crash left.
    fn open(&self) -> Result<Log, AuditError> {
        let path = self.directory.join(CURRENT);
        let head = Head::read(&self.directory)?;
        let file = files::open(&path, For::Adding)?;
        let stamp = stamp_of(&path, &file)?;
        let tail = tail(&path, &file, stamp.length)?;
        let last = match tail.record {
            Some(record) => Some((record.seq, record.hash)),
            None => self.last_of_full()?,
        };
        let (seq, hash) = last.unwrap_or((0, NONE_BEFORE.to_owned()));
        let mut mended = Mended { bytes: tail.torn, lost_up_to_seq: None };
        let synced = match head {
            Some(head) if head.seq > seq && head.explains_end_at(seq) => {
                mended.lost_up_to_seq = Some(head.seq);
                head.synced
            }
            Some(head) if head.seq > seq => {
                return Err(AuditError::Truncated {
                    directory: self.directory.clone(),
                    named: head.seq,
                    last: seq,
                });
            }
            Some(head) if head.seq == seq && head.hash != hash => {
                let place = self.directory.join(HEAD).display().to_string();
                let (expected, found) =
                    (format!("hash {hash} of record {seq}"), format!("hash {}", head.hash));
                return Err(AuditError::Corrupt { place, expected, found });
            }
            Some(head) => head.synced,
            None => 0,
        };
        let mut log = Log { file, stamp, seq, hash, synced };
        if tail.torn > 0 {
            log.file.set_len(tail.end).map_err(|source| AuditError::io("mend", &path, source))?;
            log.stamp.length = tail.end;
        }
        if stamp.length == 0 {
            files::sync_names(&self.directory)?;
        }
        if log.stamp.length == 0 && log.seq > 0 {
            self.continue_chain(&mut log)?;
        }
        if mended != Mended::default() {
            tracing::warn!(?mended, path = %path.display(), "the audit log was mended");
            self.add(&mut log, members(&Event::Mended(mended))?, Durability::Synced)?;
        }
        Ok(log)
    }

    /// The last record of the newest full file.
    fn last_of_full(&self) -> Result<Option<(u64, String)>, AuditError> {
        let Some(full) = files::full_files(&self.directory)?.pop() else { return Ok(None) };
        self.end_of(&full).map(|hash| Some((full.last, hash)))
    }

    /// Hash of a full file's last record.
    fn end_of(&self, full: &Full) -> Result<String, AuditError> {
        let path = self.directory.join(full.name());
        let file = files::open(&path, For::Reading)?;
        let tail = tail(&path, &file, stamp_of(&path, &file)?.length)?;
        match tail.record {
            Some(record) if record.seq == full.last && tail.torn == 0 => Ok(record.hash),
            _ => Err(AuditError::Corrupt {
                place: format!("{}, last line", path.display()),
                expected: format!("record {}", full.last),
                found: "another, or none".to_owned(),
            }),
        }
    }

    /// Puts the full file aside and goes on in a new one.
    fn rotate(&self, log: &mut Log) -> Result<(), AuditError> {
        let path = self.directory.join(CURRENT);
        let full = Full { first: first_seq(&path, &log.file)?, last: log.seq };
        let aside = self.directory.join(full.name());
        let failed = |source| AuditError::io("rename", &path, source);
        // Only writers make such a name, and the lock shuts out all others.
        if files::stamp(&aside)?.is_some() {
            return Err(AuditError::io("write", &aside, std::io::ErrorKind::AlreadyExists.into()));
        }
        log.file.sync_data().map_err(failed)?;
        fs::rename(&path, &aside).map_err(failed)?;
        log.file = files::open(&path, For::Adding)?;
        log.stamp = stamp_of(&path, &log.file)?;
        log.synced = log.seq;
        files::sync_names(&self.directory)?;
        self.continue_chain(log)
    }

    /// Begins a new file: what it continues, and what retention takes away.
    fn continue_chain(&self, log: &mut Log) -> Result<(), AuditError> {
        let mut full = files::full_files(&self.directory)?;
        if let Some(newest) = full.last() {
            let rotated = Rotated { from: newest.name(), last_seq: log.seq };
            self.add(log, members(&Event::Rotated(rotated))?, Durability::Synced)?;
        }
        full.truncate(full.len().saturating_sub(self.settings.keep));
        let Some(last) = full.last() else { return Ok(()) };
        // What tells of damage isn't removed for its age.
        let ends: Result<Vec<String>, AuditError> = full.iter().map(|full| self.end_of(full)).collect();
        let last_hash = match ends {
            Ok(mut ends) => ends.pop().unwrap_or_default(),
            Err(error) => {
                tracing::error!(%error, "old files of the audit log stay: they are not what they should be");
                return Ok(());
            }
        };
        let files = full.iter().map(Full::name).collect();
        let dropped = Dropped { files, up_to_seq: last.last, last_hash };
        self.add(log, members(&Event::Dropped(dropped))?, Durability::Synced)?;
        // The oldest first: whatever stays is the end of what was to go.
        for full in full {
            let path = self.directory.join(full.name());
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "an old file of the audit log stays");
                break;
            }
        }
        Ok(())
    }

    /// Writes one record, or nothing.
    fn add(
        &self,
        log: &mut Log,
        members: Map<String, Value>,
        durability: Durability,
    ) -> Result<Appended, AuditError> {
        let path = self.directory.join(CURRENT);
        let seq = log.seq + 1;
        let event = members.get("event").and_then(Value::as_str).unwrap_or_default().to_owned();
        let (line, hash) = seal(members, seq, now(), &log.hash)?;
        let synced = if durability == Durability::Synced { seq } else { log.synced };
        let written = write(&path, &mut log.file, &line, &event, durability).and_then(|()| {
            let head = files::open(&self.directory.join(HEAD), For::Writing)?;
            Head::new(seq, &hash, synced).write(&head, &self.directory)
        });
        if let Err(error) = written {
            if let Err(error) = log.file.set_len(log.stamp.length) {
                // The next to open the file mends it.
                tracing::error!(%error, path = %path.display(), "what was written of a record stays");
            }
            return Err(error);
        }
        log.stamp.length += line.len() as u64;
        (log.seq, log.hash, log.synced) = (seq, hash.clone(), synced);
        if durability == Durability::Synced {
            self.journal.tell(&self.directory, seq, &hash);
        }
        Ok(Appended { seq, hash })
    }
}

/// The directory of this account's log.
pub fn directory() -> Option<PathBuf> {
    directories::of_account("XDG_STATE_HOME", ".local/state")
}

/// The event's own members, short enough.
fn members(event: &Event) -> Result<Map<String, Value>, AuditError> {
    let mut members = match serde_json::to_value(event)? {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    if matches!(event, Event::ChangeBegun(_)) {
        members.insert("process".to_owned(), serde_json::to_value(Process::current())?);
    }
    bound(&mut members).map_err(|TooLong(bytes)| AuditError::TooLong { bytes })?;
    Ok(members)
}

fn write(
    path: &Path,
    file: &mut File,
    line: &[u8],
    event: &str,
    durability: Durability,
) -> Result<(), AuditError> {
    let failed = |source| AuditError::io("write", path, source);
    // Once: what comes in two parts could be torn apart by a crash between them.
    let written = loop {
        match file.write(line) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            done => break done.map_err(failed)?,
        }
    };
    if written < line.len() {
        return Err(failed(std::io::ErrorKind::StorageFull.into()));
    }
    match durability {
        Durability::Lazy => Ok(()),
        Durability::Synced => {
            let point = |at: &str| {
                let passed = faults::pass(format_args!("{at}-sync-{event}"));
                passed.map_err(|problem| AuditError::Unwritable(problem.message))
            };
            point("before")?;
            file.sync_data().map_err(failed)?;
            point("after")
        }
    }
}

fn stamp_of(path: &Path, file: &File) -> Result<Stamp, AuditError> {
    file.metadata()
        .map(|metadata| Stamp::of(&metadata))
        .map_err(|source| AuditError::io("read", path, source))
}

/// RFC 3339, in UTC, with milliseconds.
fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}
