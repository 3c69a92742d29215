//! Adds records to the log. Each record is one line and one write, under a lock. Where any part of that fails, the writer
//! restores what was there before.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::event::{Dropped, Event, Mended, Rotated};
use super::files::{self, CURRENT_FILE, HEAD_FILE, OpenMode, RotatedFile, Stamp};
use super::head::Head;
use super::journal::{self, Journal};
use super::lock::{self, LockMode};
use super::process::Process;
use super::record::{NONE_BEFORE, seal};
use super::size_limit::{TooLong, limit_size};
use super::tail::{first_seq, tail};
use super::{AuditError, Config, Settings};
use host_base::{directories, faults};

/// The time for which this writer waits for another one. The other needs microseconds, or as long as the disk takes.
const WAIT: Duration = Duration::from_secs(5);

/// The event that a record must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The record survives the end of this process.
    Lazy,
    /// The record survives a crash of the machine: it is on the disk, and its head was sent to the journal, when
    /// [`AuditLog::append`] returns.
    Synced,
}

/// The place of a record in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainPosition {
    /// The record's number.
    pub seq: u64,
    /// The record's hash.
    pub hash: String,
}

/// The log of one account. No file is opened or made before the first record.
#[derive(Debug)]
pub struct AuditLog {
    directory: PathBuf,
    settings: Settings,
    journal: Journal,
    wait: Duration,
    /// The state after this process's last record. The file need not be read again while nobody else adds to it.
    cached: Mutex<Option<OpenLog>>,
}

/// The open file that records are added to, and the last record of the chain.
#[derive(Debug)]
struct OpenLog {
    file: File,
    stamp: Stamp,
    seq: u64,
    hash: String,
    /// The number of the last record that is known to be on the disk.
    synced: u64,
}

impl AuditLog {
    /// Makes a log that lies in this directory.
    pub fn new(directory: PathBuf, settings: Settings) -> Self {
        let journal = Journal::new(journal::SOCKET.into());
        Self { directory, settings, journal, wait: WAIT, cached: Mutex::default() }
    }

    /// Makes the log of the account that this process runs as. Where nothing tells the account's home, the log lies below
    /// `/dev/null`, so every attempt to record fails.
    pub fn of_this_account(config: &Config) -> Self {
        let directory = directory().unwrap_or_else(|| "/dev/null/linux-sysadmin".into());
        Self::new(directory, config.settings())
    }

    /// The directory of the log.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Sends heads to this journal socket in place of the machine's.
    #[must_use]
    pub fn with_journal(self, socket: PathBuf) -> Self {
        Self { journal: Journal::new(socket), ..self }
    }

    /// Waits for another writer no longer than this, in place of 5 seconds.
    #[must_use]
    pub fn with_wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Records an event. An error means that the record wasn't written, and that what it tells of must not happen.
    ///
    /// The call blocks the thread for tens of microseconds, for a synced record until the disk has it, and while another
    /// process writes.
    pub fn append(&self, event: &Event, durability: Durability) -> Result<ChainPosition, AuditError> {
        let members = members(event)?;
        let deadline = Instant::now() + self.wait;
        let mut cached = lock::lock_mutex(&self.cached, &self.directory, deadline)?;
        files::create_directory(&self.directory)?;
        let _held = lock::acquire(&self.directory, LockMode::Exclusive, deadline)?;
        let now = files::stamp(&self.directory.join(CURRENT_FILE))?;
        // The cached state is put back only after success: after a failure the next call reads the file.
        let mut log = match cached.take() {
            Some(log) if now == Some(log.stamp) => log,
            _ => self.open()?,
        };
        if log.stamp.length >= self.settings.rotate_bytes {
            self.rotate(&mut log)?;
        }
        let appended = self.add(&mut log, members, durability)?;
        *cached = Some(log);
        Ok(appended)
    }

    /// Opens the file, finds the end of the chain, and repairs what a crash left.
    fn open(&self) -> Result<OpenLog, AuditError> {
        let path = self.directory.join(CURRENT_FILE);
        let head = Head::read(&self.directory)?;
        let file = files::open(&path, OpenMode::Append)?;
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
                let place = self.directory.join(HEAD_FILE).display().to_string();
                let (expected, found) =
                    (format!("hash {hash} of record {seq}"), format!("hash {}", head.hash));
                return Err(AuditError::Corrupt { place, expected, found });
            }
            Some(head) => head.synced,
            None => 0,
        };
        let mut log = OpenLog { file, stamp, seq, hash, synced };
        if tail.torn > 0 {
            log.file.set_len(tail.end).map_err(|source| AuditError::io("mend", &path, source))?;
            log.stamp.length = tail.end;
        }
        if stamp.length == 0 {
            files::sync_directory(&self.directory)?;
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
        let Some(full) = files::rotated_files(&self.directory)?.pop() else { return Ok(None) };
        self.end_of(&full).map(|hash| Some((full.last, hash)))
    }

    /// The hash of a full file's last record.
    fn end_of(&self, full: &RotatedFile) -> Result<String, AuditError> {
        let path = self.directory.join(full.name());
        let file = files::open(&path, OpenMode::Read)?;
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

    /// Renames the full file and opens a new one.
    fn rotate(&self, log: &mut OpenLog) -> Result<(), AuditError> {
        let path = self.directory.join(CURRENT_FILE);
        let full = RotatedFile { first: first_seq(&path, &log.file)?, last: log.seq };
        let aside = self.directory.join(full.name());
        let failed = |source| AuditError::io("rename", &path, source);
        // Only writers make files of such a name, and the lock excludes every other writer.
        if files::stamp(&aside)?.is_some() {
            return Err(AuditError::io("write", &aside, std::io::ErrorKind::AlreadyExists.into()));
        }
        log.file.sync_data().map_err(failed)?;
        fs::rename(&path, &aside).map_err(failed)?;
        log.file = files::open(&path, OpenMode::Append)?;
        log.stamp = stamp_of(&path, &log.file)?;
        log.synced = log.seq;
        files::sync_directory(&self.directory)?;
        self.continue_chain(log)
    }

    /// Begins a new file: records which file it continues, and removes the files that retention drops.
    fn continue_chain(&self, log: &mut OpenLog) -> Result<(), AuditError> {
        let mut full = files::rotated_files(&self.directory)?;
        if let Some(newest) = full.last() {
            let rotated = Rotated { from: newest.name(), last_seq: log.seq };
            self.add(log, members(&Event::Rotated(rotated))?, Durability::Synced)?;
        }
        full.truncate(full.len().saturating_sub(self.settings.keep));
        let Some(last) = full.last() else { return Ok(()) };
        // A damaged file is evidence, so it isn't removed because of its age.
        let ends: Result<Vec<String>, AuditError> = full.iter().map(|full| self.end_of(full)).collect();
        let last_hash = match ends {
            Ok(mut ends) => ends.pop().unwrap_or_default(),
            Err(error) => {
                tracing::error!(%error, "old files of the audit log are kept: one of them is damaged");
                return Ok(());
            }
        };
        let files = full.iter().map(RotatedFile::name).collect();
        let dropped = Dropped { files, up_to_seq: last.last, last_hash };
        self.add(log, members(&Event::Dropped(dropped))?, Durability::Synced)?;
        // The oldest goes first: where a removal fails, the files that remain still follow each other.
        for full in full {
            let path = self.directory.join(full.name());
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "an old file of the audit log can't be removed");
                break;
            }
        }
        Ok(())
    }

    /// Writes one whole record and the head, or nothing.
    fn add(
        &self,
        log: &mut OpenLog,
        members: Map<String, Value>,
        durability: Durability,
    ) -> Result<ChainPosition, AuditError> {
        let path = self.directory.join(CURRENT_FILE);
        let seq = log.seq + 1;
        let event = members.get("event").and_then(Value::as_str).unwrap_or_default().to_owned();
        let (line, hash) = seal(members, seq, now(), &log.hash)?;
        let synced = if durability == Durability::Synced { seq } else { log.synced };
        let written = write(&path, &mut log.file, &line, &event, durability).and_then(|()| {
            let head = files::open(&self.directory.join(HEAD_FILE), OpenMode::ReadWrite)?;
            Head::new(seq, &hash, synced).write(&head, &self.directory)
        });
        if let Err(error) = written {
            if let Err(error) = log.file.set_len(log.stamp.length) {
                // The next writer that opens the file repairs it.
                tracing::error!(%error, path = %path.display(), "a half-written record can't be cut off");
            }
            return Err(error);
        }
        log.stamp.length += line.len() as u64;
        (log.seq, log.hash, log.synced) = (seq, hash.clone(), synced);
        if durability == Durability::Synced {
            self.journal.tell(&self.directory, seq, &hash);
        }
        Ok(ChainPosition { seq, hash })
    }
}

/// The directory of this account's log.
pub fn directory() -> Option<PathBuf> {
    directories::program_directory("XDG_STATE_HOME", ".local/state")
}

/// The members of an event's record, cut to the limits of [`limit_size`].
fn members(event: &Event) -> Result<Map<String, Value>, AuditError> {
    let mut members = match serde_json::to_value(event)? {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    if matches!(event, Event::ChangeBegun(_)) {
        members.insert("process".to_owned(), serde_json::to_value(Process::current())?);
    }
    limit_size(&mut members).map_err(|TooLong(bytes)| AuditError::TooLong { bytes })?;
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
    // There is only one write: a crash between two of them would leave half a line.
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

/// The time in RFC 3339 form, in UTC, with milliseconds.
fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}
