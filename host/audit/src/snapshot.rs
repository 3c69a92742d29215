//! Reading the log as it is at one moment, oldest file first, a line at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Take};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::AuditError;
use super::bound::LONGEST_LINE;
use super::files::{self, CURRENT, For, Full};
use super::head::Head;
use super::lock::{self, Share};
use super::record::{Fault, Record};

/// How long a writer is waited for.
const WAIT: Duration = Duration::from_secs(5);

/// All files of a log, opened while nobody wrote.
#[derive(Debug)]
pub struct Snapshot {
    /// Where they are.
    pub directory: PathBuf,
    /// The oldest first.
    pub(super) files: Vec<LogFile>,
    /// What the head said.
    pub(super) head: Option<Head>,
    /// False where a process holds the lock and doesn't go on: then the last line may not be whole yet.
    pub(super) settled: bool,
}

/// One file.
#[derive(Debug)]
pub(super) struct LogFile {
    pub name: String,
    /// What its name says, where it is full.
    pub full: Option<Full>,
    pub file: File,
    pub length: u64,
}

impl Snapshot {
    /// Opens what is there; nothing, where there is no such directory.
    pub fn open(directory: &Path) -> Result<Self, AuditError> {
        Self::open_within(directory, WAIT)
    }

    /// [`open`](Self::open), waiting no longer than this for a writer.
    pub fn open_within(directory: &Path, wait: Duration) -> Result<Self, AuditError> {
        let (_held, settled) = match lock::take(directory, Share::Shared, Instant::now() + wait) {
            Ok(held) => (Some(held), true),
            Err(AuditError::Locked { .. }) => (None, false),
            // Nobody has ever written, or it is a copy.
            Err(AuditError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => (None, true),
            Err(error) => return Err(error),
        };
        // Before the files: what is added meanwhile is only beyond it.
        let head = Head::read(directory)?;
        let mut files = Vec::new();
        for full in files::full_files(directory)? {
            files.push(LogFile::open(directory, full.name(), Some(full))?);
        }
        if files::stamp(&directory.join(CURRENT))?.is_some() {
            files.push(LogFile::open(directory, CURRENT.to_owned(), None)?);
        }
        Ok(Self { directory: directory.to_owned(), files, head, settled })
    }

    /// Whether there is no log at all.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.head.is_none()
    }

    /// The whole lines among the last bytes of the file that is written to.
    pub(super) fn lines_at_end(&self, most: u64) -> Result<Vec<Vec<u8>>, AuditError> {
        let Some(current) = self.files.last().filter(|file| file.full.is_none()) else {
            return Ok(Vec::new());
        };
        let begin = current.length.saturating_sub(most);
        let mut bytes = vec![0; usize::try_from(current.length - begin).unwrap_or_default()];
        let read = current.file.read_exact_at(&mut bytes, begin);
        read.map_err(|source| AuditError::io("read", &self.directory.join(&current.name), source))?;
        let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        // The last one has no end yet, and the first one may have no beginning.
        lines.pop();
        if begin > 0 && !lines.is_empty() {
            lines.remove(0);
        }
        Ok(lines)
    }

    /// Every line, one after the other.
    pub(super) fn lines(self) -> Lines {
        Lines { directory: self.directory, files: self.files.into_iter(), reading: None }
    }

    /// Every record, one after the other. Whether they belong together is for [`verify`](super::verify) to say.
    pub fn records(self) -> Records {
        Records { lines: self.lines() }
    }
}

impl LogFile {
    fn open(directory: &Path, name: String, full: Option<Full>) -> Result<Self, AuditError> {
        let path = directory.join(&name);
        let file = files::open(&path, For::Reading)?;
        let length = file.metadata().map_err(|source| AuditError::io("read", &path, source))?.len();
        Ok(Self { name, full, file, length })
    }
}

/// A line of a file.
#[derive(Debug)]
pub(super) struct Line {
    /// The file's name.
    pub file: String,
    /// What that name says, where the file is full.
    pub full: Option<Full>,
    /// Counted from 1.
    pub number: u64,
    /// Without its end; of a line that is too long, the beginning.
    pub bytes: Vec<u8>,
    /// Whether it has an end.
    pub whole: bool,
}

impl Line {
    /// The record that it is.
    pub fn parse(&self) -> Result<Record, Fault> {
        if self.bytes.len() >= LONGEST_LINE {
            return Err(Fault::new("a record", format!("a line of {LONGEST_LINE} bytes or more")));
        }
        match self.whole {
            true => Record::parse(&self.bytes),
            false => {
                let found = format!("{} bytes without it", self.bytes.len());
                Err(Fault::new("the end of the line", found))
            }
        }
    }
}

/// All lines.
#[derive(Debug)]
pub(super) struct Lines {
    directory: PathBuf,
    files: std::vec::IntoIter<LogFile>,
    reading: Option<Reading>,
}

#[derive(Debug)]
struct Reading {
    name: String,
    full: Option<Full>,
    lines: u64,
    reader: BufReader<Take<File>>,
}

impl Iterator for Lines {
    type Item = Result<Line, AuditError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(reading) = &mut self.reading else {
                let LogFile { name, full, file, length } = self.files.next()?;
                let reader = BufReader::with_capacity(64 << 10, file.take(length));
                self.reading = Some(Reading { name, full, lines: 0, reader });
                continue;
            };
            match next_line(&mut reading.reader) {
                Ok(Some((bytes, whole))) => {
                    reading.lines += 1;
                    let (file, full) = (reading.name.clone(), reading.full.clone());
                    return Some(Ok(Line { file, full, number: reading.lines, bytes, whole }));
                }
                Ok(None) => self.reading = None,
                Err(source) => {
                    let path = self.directory.join(&reading.name);
                    // What can't be read now can't be read again either.
                    self.reading = None;
                    self.files = Vec::new().into_iter();
                    return Some(Err(AuditError::io("read", &path, source)));
                }
            }
        }
    }
}

/// A line without its end, and whether it had one. Of a line that is too long, the rest is passed over.
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

/// A line that is no record.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{file}:{line}: expected {}, found {}", fault.expected, fault.found)]
pub struct Unreadable {
    /// The file's name.
    pub file: String,
    /// Counted from 1.
    pub line: u64,
    /// What is wrong with it.
    pub fault: Fault,
}

/// All records.
#[derive(Debug)]
pub struct Records {
    lines: Lines,
}

impl Iterator for Records {
    type Item = Result<Result<Record, Unreadable>, AuditError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.lines.next()?.map(|line| {
            line.parse().map_err(|fault| Unreadable { file: line.file.clone(), line: line.number, fault })
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
