//! The head: the number and hash of the last record, in a file of its own. It shows that the end of a log was cut off.
//!
//! The head is written after the record, so a crash between the two leaves the log ahead of the head. The head can be
//! ahead of the log as well: where the machine goes down, either of two files that weren't written through may survive.
//! Therefore the head names the last record that is known to be on the disk, and the boot in which it was written.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::AuditError;
use super::files::{self, HEAD_FILE, OpenMode};
use super::process::boot_id;
use host_base::sha256::is_sha256;

/// The size of the file in bytes. It is written at once, and fits into one block of any disk.
const SIZE: usize = 256;

/// The last record, as the head names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The record's number.
    pub seq: u64,
    /// The record's hash.
    pub hash: String,
    /// The number of the last record that is known to be on the disk.
    pub synced: u64,
    /// The boot in which the head was written: `/proc/sys/kernel/random/boot_id`.
    pub boot: String,
}

impl Head {
    /// Makes the head for a record that was just written.
    pub fn new(seq: u64, hash: &str, synced: u64) -> Self {
        Self { seq, hash: hash.to_owned(), synced, boot: boot_id().unwrap_or_default() }
    }

    /// Whether a log that ends with this record can have lost the records after it because the machine went down.
    pub fn explains_end_at(&self, seq: u64) -> bool {
        seq >= self.synced && !self.boot.is_empty() && boot_id().is_some_and(|boot| boot != self.boot)
    }

    /// Reads a directory's head. `None` where there is no head, or an empty one.
    pub fn read(directory: &Path) -> Result<Option<Self>, AuditError> {
        let path = directory.join(HEAD_FILE);
        let file = match files::open(&path, OpenMode::Read) {
            Err(AuditError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            opened => opened?,
        };
        // A head has exactly `SIZE` bytes, so one byte more is enough to refuse another file.
        let mut bytes = [0; SIZE + 1];
        let read = read_at_most(&file, &mut bytes).map_err(|source| AuditError::io("read", &path, source))?;
        let bytes = &bytes[..read];
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let corrupt = || AuditError::Corrupt {
            place: path.display().to_string(),
            expected: "a record's number and hash".to_owned(),
            found: "something else".to_owned(),
        };
        let head: Self = serde_json::from_slice(bytes).map_err(|_| corrupt())?;
        match head.padded() == bytes && is_sha256(&head.hash) {
            true => Ok(Some(head)),
            false => Err(corrupt()),
        }
    }

    /// Replaces the head in the file by this one, in one write.
    pub fn write(&self, file: &File, directory: &Path) -> Result<(), AuditError> {
        let failed = |source| AuditError::io("write", &directory.join(HEAD_FILE), source);
        match file.write_at(&self.padded(), 0).map_err(failed)? {
            SIZE => Ok(()),
            _ => Err(failed(io::ErrorKind::StorageFull.into())),
        }
    }

    fn padded(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.resize(SIZE - 1, b' ');
        text.push(b'\n');
        text
    }
}

/// Reads the beginning of a file into the buffer, and returns the number of bytes read.
fn read_at_most(file: &File, bytes: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], read as u64)? {
            0 => break,
            more => read += more,
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Head::read(directory.path()).unwrap(), None);
        let file = files::open(&directory.path().join(HEAD_FILE), OpenMode::ReadWrite).unwrap();
        assert_eq!(Head::read(directory.path()).unwrap(), None);
        // The largest number fits, and a shorter one leaves nothing of it.
        for head in [Head::new(u64::MAX, &"a".repeat(64), u64::MAX), Head::new(1, &"b".repeat(64), 0)] {
            head.write(&file, directory.path()).unwrap();
            assert_eq!(Head::read(directory.path()).unwrap(), Some(head));
            assert_eq!(file.metadata().unwrap().len(), SIZE as u64);
        }
    }

    #[test]
    fn a_head_that_is_not_understood_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let good = Head::new(1, &"b".repeat(64), 0).padded();
        for bytes in [b"x".to_vec(), good[1..].to_vec(), [good.clone(), b" ".to_vec()].concat()] {
            std::fs::write(directory.path().join(HEAD_FILE), bytes).unwrap();
            assert!(matches!(Head::read(directory.path()), Err(AuditError::Corrupt { .. })));
        }
        std::fs::write(directory.path().join(HEAD_FILE), good).unwrap();
        assert!(Head::read(directory.path()).is_ok());
    }

    #[test]
    fn only_another_boot_explains_a_lost_end_and_only_of_what_was_not_written_through() {
        let this_boot = Head::new(9, &"b".repeat(64), 5);
        let another = Head { boot: "another".to_owned(), ..this_boot.clone() };
        let untold = Head { boot: String::new(), ..this_boot.clone() };
        for (head, end, explains) in [
            (&this_boot, 7, false),
            (&another, 7, true),
            (&another, 5, true),
            (&another, 4, false),
            (&untold, 7, false),
        ] {
            assert_eq!(head.explains_end_at(end), explains, "{head:?} {end}");
        }
    }
}
