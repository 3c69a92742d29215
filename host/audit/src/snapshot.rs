//! Reads the log as it is at one moment: the oldest file first, one line at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Take};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::AuditError;
use super::files::{self, CURRENT_FILE, OpenMode, RotatedFile};
use super::head::Head;
use super::lock::{self, LockMode};
use super::record::{Mismatch, Record};
use super::size_limit::LONGEST_LINE;

/// The time for which a reader waits for a writer.
const WAIT: Duration = Duration::from_secs(5);

/// All files of a log, opened while nobody wrote.
#[derive(Debug)]
pub struct Snapshot {
    /// The directory of the log.
    pub directory: PathBuf,
    /// The files with records, the oldest first.
    pub(super) files: Vec<SnapshotFile>,
    /// The head, as it was at that moment.
    pub(super) head: Option<Head>,
    /// False where another process held the lock for the whole wait. Then the last line may not be whole yet.
    pub(super) settled: bool,
}

/// One file of a snapshot.
#[derive(Debug)]
pub(super) struct SnapshotFile {
    pub name: String,
    /// The numbers in its name, where it is a full file.
    pub full: Option<RotatedFile>,
    pub file: File,
    pub length: u64,
}

impl Snapshot {
    /// Opens all files of a log; none where there is no such directory.
    pub fn open(directory: &Path) -> Result<Self, AuditError> {
        Self::open_within(directory, WAIT)
    }

    /// Like [`open`](Self::open), but waits no longer than this for a writer.
    pub fn open_within(directory: &Path, wait: Duration) -> Result<Self, AuditError> {
        let (_held, settled) = match lock::acquire(directory, LockMode::Shared, Instant::now() + wait) {
            Ok(held) => (Some(held), true),
            Err(AuditError::Locked { .. }) => (None, false),
            // Nobody has ever written to the log, or it is a copy.
            Err(AuditError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => (None, true),
            Err(error) => return Err(error),
        };
        // The head is read before the files: records that are added in between only follow it.
        let head = Head::read(directory)?;
        let mut files = Vec::new();
        for full in files::rotated_files(directory)? {
            files.push(SnapshotFile::open(directory, full.name(), Some(full))?);
        }
        if files::stamp(&directory.join(CURRENT_FILE))?.is_some() {
            files.push(SnapshotFile::open(directory, CURRENT_FILE.to_owned(), None)?);
        }
        Ok(Self { directory: directory.to_owned(), files, head, settled })
    }

    /// Whether there is no log at all.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.head.is_none()
    }

    /// The whole lines among the last bytes of the current file.
    pub(super) fn lines_at_end(&self, most: u64) -> Result<Vec<Vec<u8>>, AuditError> {
        let Some(current) = self.files.last().filter(|file| file.full.is_none()) else {
            return Ok(Vec::new());
        };
        let begin = current.length.saturating_sub(most);
        let mut bytes = vec![0; usize::try_from(current.length - begin).unwrap_or_default()];
        let read = current.file.read_exact_at(&mut bytes, begin);
        read.map_err(|source| AuditError::io("read", &self.directory.join(&current.name), source))?;
        let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        // The last piece has no newline yet, and the first one may lack its beginning.
        lines.pop();
        if begin > 0 && !lines.is_empty() {
            lines.remove(0);
        }
        Ok(lines)
    }

    /// Iterates over every line.
    pub(super) fn lines(self) -> LogLines {
        LogLines { directory: self.directory, files: self.files.into_iter(), reading: None }
    }

    /// Iterates over every record. [`verify`](super::verify()) checks that they form a chain.
    pub fn records(self) -> Records {
        Records { lines: self.lines() }
    }
}

impl SnapshotFile {
    fn open(directory: &Path, name: String, full: Option<RotatedFile>) -> Result<Self, AuditError> {
        let path = directory.join(&name);
        let file = files::open(&path, OpenMode::Read)?;
        let length = file.metadata().map_err(|source| AuditError::io("read", &path, source))?.len();
        Ok(Self { name, full, file, length })
    }
}

/// A line of a log file.
#[derive(Debug)]
pub(super) struct LogLine {
    /// The file's name.
    pub file: String,
    /// The numbers in that name, where the file is full.
    pub full: Option<RotatedFile>,
    /// The line's number, counted from 1.
    pub number: u64,
    /// The line without its newline; only the beginning of a line that is too long.
    pub bytes: Vec<u8>,
    /// Whether the line has a newline.
    pub whole: bool,
}

impl LogLine {
    /// Parses the line as a record.
    pub fn parse(&self) -> Result<Record, Mismatch> {
        if self.bytes.len() >= LONGEST_LINE {
            return Err(Mismatch::new("a record", format!("a line of {LONGEST_LINE} bytes or more")));
        }
        match self.whole {
            true => Record::parse(&self.bytes),
            false => {
                let found = format!("{} bytes without it", self.bytes.len());
                Err(Mismatch::new("the end of the line", found))
            }
        }
    }
}

/// An iterator over all lines of a snapshot.
#[derive(Debug)]
pub(super) struct LogLines {
    directory: PathBuf,
    files: std::vec::IntoIter<SnapshotFile>,
    reading: Option<FileLines>,
}

#[derive(Debug)]
struct FileLines {
    name: String,
    full: Option<RotatedFile>,
    lines: u64,
    reader: BufReader<Take<File>>,
}

impl Iterator for LogLines {
    type Item = Result<LogLine, AuditError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(reading) = &mut self.reading else {
                let SnapshotFile { name, full, file, length } = self.files.next()?;
                let reader = BufReader::with_capacity(64 << 10, file.take(length));
                self.reading = Some(FileLines { name, full, lines: 0, reader });
                continue;
            };
            match next_line(&mut reading.reader) {
                Ok(Some((bytes, whole))) => {
                    reading.lines += 1;
                    let (file, full) = (reading.name.clone(), reading.full.clone());
                    return Some(Ok(LogLine { file, full, number: reading.lines, bytes, whole }));
                }
                Ok(None) => self.reading = None,
                Err(source) => {
                    let path = self.directory.join(&reading.name);
                    // After a read error the iteration ends.
                    self.reading = None;
                    self.files = Vec::new().into_iter();
                    return Some(Err(AuditError::io("read", &path, source)));
                }
            }
        }
    }
}

/// Reads a line without its newline, and tells whether it had one. It skips the rest of a line that is too long.
fn next_line(reader: &mut impl BufRead) -> io::Result<Option<(Vec<u8>, bool)>> {
    let mut bytes = Vec::new();
    reader.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', &mut bytes)?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        return Ok(Some((bytes, true)));
    }
    if bytes.len() < LONGEST_LINE {
        return Ok((!bytes.is_empty()).then_some((bytes, false)));
    }
    let whole = reader.skip_until(b'\n')? > 0;
    Ok(Some((bytes, whole)))
}

/// A line that isn't a record.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{file}:{line}: expected {}, found {}", mismatch.expected, mismatch.found)]
pub struct UnreadableLine {
    /// The file's name.
    pub file: String,
    /// The line's number, counted from 1.
    pub line: u64,
    /// The difference between the line and what was expected.
    pub mismatch: Mismatch,
}

/// An iterator over all records of a snapshot.
#[derive(Debug)]
pub struct Records {
    lines: LogLines,
}

impl Iterator for Records {
    type Item = Result<Result<Record, UnreadableLine>, AuditError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.lines.next()?.map(|line| {
            line.parse().map_err(|mismatch| UnreadableLine {
                file: line.file.clone(),
                line: line.number,
                mismatch,
            })
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_bounded_and_the_one_after_it_is_read() {
        let long = vec![b'x'; 3 * LONGEST_LINE];
        let mut text: &[u8] = &[&long[..], b"\nb\n\nc"].concat();
        let mut lines = Vec::new();
        while let Some((bytes, whole)) = next_line(&mut text).unwrap() {
            lines.push((bytes.len(), whole));
        }
        assert_eq!(lines, [(LONGEST_LINE, true), (1, true), (0, true), (1, false)]);
    }
}
