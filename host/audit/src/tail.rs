//! Reads the last and the first record of a file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::AuditError;
use super::record::{Mismatch, Record};
use super::size_limit::LONGEST_LINE;

/// The number of bytes that are read first. Most records are shorter.
const FIRST_LOOK: usize = 8 << 10;

/// The end of a file.
#[derive(Debug)]
pub struct Tail {
    /// The record of the last whole line.
    pub record: Option<Record>,
    /// The offset at which that line ends.
    pub end: u64,
    /// The number of bytes after it: those of a line that a crash left without its newline.
    pub torn: u64,
}

/// Reads the end of a file of this length.
pub fn tail(path: &Path, file: &File, length: u64) -> Result<Tail, AuditError> {
    let mut look = FIRST_LOOK;
    loop {
        let begin = length.saturating_sub(look as u64);
        let mut bytes = vec![0; usize::try_from(length - begin).unwrap_or(look)];
        file.read_exact_at(&mut bytes, begin).map_err(|source| AuditError::io("read", path, source))?;
        let is_newline = |byte: &u8| *byte == b'\n';
        let end = bytes.iter().rposition(is_newline);
        let start = end.and_then(|end| bytes[..end].iter().rposition(is_newline)).map(|at| at + 1);
        let start = if begin == 0 { end.map(|_| start.unwrap_or(0)) } else { start };
        match (start, end) {
            (Some(start), Some(end)) => {
                let record =
                    Record::parse(&bytes[start..end]).map_err(|mismatch| corrupt(path, "last", mismatch))?;
                let end = begin + end as u64 + 1;
                is_one_line(path, length - end)?;
                return Ok(Tail { record: Some(record), end, torn: length - end });
            }
            _ if begin == 0 => {
                is_one_line(path, length)?;
                return Ok(Tail { record: None, end: 0, torn: length });
            }
            // This would have been enough for a whole line and a torn one.
            _ if look > 2 * LONGEST_LINE => {
                let found = format!("no end of a line in the last {look} bytes");
                return Err(corrupt(path, "last", Mismatch::new("a record", found)));
            }
            _ => look *= 4,
        }
    }
}

/// Checks that what follows the last whole line is shorter than a line. A crash leaves no more; anything longer is
/// something else, and must not be cut off.
fn is_one_line(path: &Path, torn: u64) -> Result<(), AuditError> {
    if torn < LONGEST_LINE as u64 {
        return Ok(());
    }
    Err(corrupt(path, "last", Mismatch::new("a record", format!("{torn} bytes without the end of a line"))))
}

/// The number of the first record.
pub fn first_seq(path: &Path, file: &File) -> Result<u64, AuditError> {
    let mut bytes = vec![0; LONGEST_LINE];
    let mut read = 0;
    let end = loop {
        match file.read_at(&mut bytes[read..], read as u64) {
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(AuditError::io("read", path, source)),
        }
        match bytes[..read].iter().position(|byte| *byte == b'\n') {
            Some(end) => break end,
            None if read == bytes.len() => break read,
            None if file.metadata().is_ok_and(|metadata| metadata.len() > read as u64) => {}
            None => break read,
        }
    };
    match Record::parse(&bytes[..end]) {
        Ok(record) => Ok(record.seq),
        Err(mismatch) => Err(corrupt(path, "first", mismatch)),
    }
}

fn corrupt(path: &Path, which: &str, mismatch: Mismatch) -> AuditError {
    let place = format!("{}, {which} line", path.display());
    AuditError::Corrupt { place, expected: mismatch.expected, found: mismatch.found }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::record::{NONE_BEFORE, seal};
    use super::*;

    fn line(seq: u64, padding: usize) -> Vec<u8> {
        let members = serde_json::from_value(json!({"event": "x", "padding": "p".repeat(padding)})).unwrap();
        seal(members, seq, "2026-01-02T03:04:05.006Z".to_owned(), NONE_BEFORE).unwrap().0
    }

    #[test]
    fn the_last_whole_line_is_found_whatever_its_length_and_whatever_is_torn_after_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        for (before, last, torn) in [
            (None, None, 0),
            (None, None, 70_000),
            (None, Some(10), 0),
            (Some(10), Some(10), 5),
            (Some(10), Some(FIRST_LOOK), 0),
            (Some(200_000), Some(200_000), 200_000),
            (None, Some(200_000), 1),
        ] {
            let mut bytes = before.map(|padding| line(1, padding)).unwrap_or_default();
            bytes.extend(last.map(|padding| line(2, padding)).unwrap_or_default());
            let end = bytes.len() as u64;
            bytes.extend(vec![b'{'; torn]);
            std::fs::write(&path, &bytes).unwrap();
            let tail = tail(&path, &File::open(&path).unwrap(), bytes.len() as u64).unwrap();
            assert_eq!(tail.record.map(|record| record.seq), last.map(|_| 2), "{before:?} {last:?} {torn}");
            assert_eq!((tail.end, tail.torn), (end, torn as u64));
        }
    }

    #[test]
    fn a_last_line_that_is_no_record_is_an_error_that_names_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        for bytes in [
            b"{}\n".to_vec(),
            b"\n".to_vec(),
            vec![0; 3 * LONGEST_LINE],
            [line(1, 5), b"x\n".to_vec()].concat(),
        ] {
            std::fs::write(&path, &bytes).unwrap();
            let error = tail(&path, &File::open(&path).unwrap(), bytes.len() as u64).unwrap_err();
            assert!(error.to_string().contains("log, last line"), "{error}");
        }
    }

    #[test]
    fn the_first_number_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        std::fs::write(&path, [line(41, 100_000), line(42, 1)].concat()).unwrap();
        assert_eq!(first_seq(&path, &File::open(&path).unwrap()).unwrap(), 41);
        std::fs::write(&path, "{").unwrap();
        assert!(first_seq(&path, &File::open(&path).unwrap()).is_err());
    }
}
