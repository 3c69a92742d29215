//! Reads heads back from the system's journal, as `journalctl -t linux-sysadmin -o cat` prints them.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use super::journal::MESSAGE_PREFIX;
use host_base::sha256::is_sha256;

/// The number of bytes that are read of a line. The line of a head is shorter.
const LONGEST: u64 = 4096;

/// The hashes of records that the journal names, by the records' numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalHeads(BTreeMap<u64, Vec<String>>);

impl JournalHeads {
    /// Reads lines, and ignores those that are not heads, such as other messages of this program.
    pub fn read(mut reader: impl BufRead) -> io::Result<Self> {
        let mut heads = Self::default();
        loop {
            let mut line = Vec::new();
            if reader.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
                return Ok(heads);
            }
            if line.last() != Some(&b'\n') && line.len() as u64 == LONGEST {
                reader.skip_until(b'\n')?;
            }
            let Some((seq, hash)) = std::str::from_utf8(&line).ok().and_then(parse) else { continue };
            let hashes = heads.0.entry(seq).or_default();
            if !hashes.iter().any(|known| known == hash) {
                hashes.push(hash.to_owned());
            }
        }
    }

    /// The number of records that have a head.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no record has a head.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of records before this one that have a head.
    pub(super) fn before(&self, seq: u64) -> usize {
        self.0.range(..seq).count()
    }

    /// The first record after this one that has a head.
    pub(super) fn after(&self, seq: u64) -> Option<u64> {
        self.0.range(seq.saturating_add(1)..).next().map(|(seq, _)| *seq)
    }

    /// The first head of this record that has another hash.
    pub(super) fn contradicts(&self, seq: u64, hash: &str) -> Option<&str> {
        self.0.get(&seq)?.iter().find(|named| *named != hash).map(String::as_str)
    }
}

fn parse(line: &str) -> Option<(u64, &str)> {
    let (seq, hash) = line.trim_end().strip_prefix(MESSAGE_PREFIX)?.split_once(' ')?;
    is_sha256(hash).then_some((seq.parse().ok()?, hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_heads_are_read_out_of_whatever_the_journal_has() {
        let (a, b) = ("a".repeat(64), "b".repeat(64));
        let noise = "x".repeat(3 * 4096);
        let text = format!(
            "-- No entries --\naudit head 7 {a}\naudit head 7 {a}\naudit head 7 {b}\nother\naudit head 8 short\n{noise}\n\
             audit head x {a}\naudit head 9 {b}"
        );
        let heads = JournalHeads::read(text.as_bytes()).unwrap();
        assert_eq!(heads.len(), 2);
        assert_eq!((heads.before(9), heads.after(7), heads.after(9)), (1, Some(9), None));
        assert_eq!(heads.contradicts(7, &a), Some(b.as_str()));
        assert_eq!(heads.contradicts(9, &b), None);
        assert_eq!(heads.contradicts(10, &b), None);
        assert!(JournalHeads::read(&b""[..]).unwrap().is_empty());
    }
}
