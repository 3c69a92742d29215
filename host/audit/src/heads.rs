//! Heads that another log knows: what `journalctl -t linux-sysadmin -o cat` prints.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use super::journal::HEAD;
use host_base::sha256::is_sha256;

/// Read of a line. A head's is shorter.
const LONGEST: u64 = 4096;

/// Records' hashes by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heads(BTreeMap<u64, Vec<String>>);

impl Heads {
    /// Reads lines; other lines than a head's are passed over, as other messages of the same program.
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

    /// How many records they name.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether they name none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many records before this one they name.
    pub(super) fn before(&self, seq: u64) -> usize {
        self.0.range(..seq).count()
    }

    /// The first record after this one that they name.
    pub(super) fn after(&self, seq: u64) -> Option<u64> {
        self.0.range(seq.saturating_add(1)..).next().map(|(seq, _)| *seq)
    }

    /// A hash of this record that isn't this one.
    pub(super) fn contradicts(&self, seq: u64, hash: &str) -> Option<&str> {
        self.0.get(&seq)?.iter().find(|named| *named != hash).map(String::as_str)
    }
}

fn parse(line: &str) -> Option<(u64, &str)> {
    let (seq, hash) = line.trim_end().strip_prefix(HEAD)?.split_once(' ')?;
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
        let heads = Heads::read(text.as_bytes()).unwrap();
        assert_eq!(heads.len(), 2);
        assert_eq!((heads.before(9), heads.after(7), heads.after(9)), (1, Some(9), None));
        assert_eq!(heads.contradicts(7, &a), Some(b.as_str()));
        assert_eq!(heads.contradicts(9, &b), None);
        assert_eq!(heads.contradicts(10, &b), None);
        assert!(Heads::read(&b""[..]).unwrap().is_empty());
    }
}
