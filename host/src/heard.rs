//! What the commands of one call say while they run: the latest lines, for whoever doesn't wait for the end.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::redact::redact_lines;
use crate::visible::visible;

/// Bytes that are kept of it.
const KEPT: usize = 256 << 10;
/// A line that is longer is several.
const LONGEST: usize = 16 << 10;
/// What keeping a line takes besides its bytes: empty ones aren't free.
const LINE: usize = 64;

/// Lines, numbered from 0.
#[derive(Debug, Default)]
pub struct Heard(Mutex<Lines>);

#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<Vec<u8>>,
    bytes: usize,
    /// The number of the first that is kept.
    first: u64,
    /// What has no end yet.
    rest: Vec<u8>,
}

/// Some of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    /// Without secrets, and with everything visible.
    pub text: String,
    /// The number of its first line.
    pub first: u64,
    /// The number of the line behind it.
    pub next: u64,
    /// Lines that were asked for and are no longer kept.
    pub lost: u64,
}

impl Heard {
    /// What came.
    pub fn add(&self, mut piece: &[u8]) {
        let mut lines = self.lines();
        while !piece.is_empty() {
            let room = LONGEST - lines.rest.len();
            let end = piece.iter().take(room).position(|byte| *byte == b'\n');
            let taken = end.map_or(piece.len().min(room), |end| end + 1);
            lines.rest.extend_from_slice(&piece[..taken]);
            piece = &piece[taken..];
            if end.is_some() || lines.rest.len() >= LONGEST {
                lines.end_line();
            }
        }
    }

    /// A line of the host's own, whatever came before it.
    pub fn say(&self, line: &str) {
        let mut lines = self.lines();
        if !lines.rest.is_empty() {
            lines.end_line();
        }
        drop(lines);
        self.add(line.as_bytes());
        self.add(b"\n");
    }

    /// From this line on. A line that has no end yet is given once it has one, or where nothing comes any more.
    pub fn from(&self, line: u64, is_over: bool) -> Piece {
        let mut lines = self.lines();
        if is_over && !lines.rest.is_empty() {
            lines.end_line();
        }
        let next = lines.first + lines.kept.len() as u64;
        // A key's first line says that the others are its own, so they are looked at together.
        let whole: Vec<u8> = lines.kept.iter().flatten().copied().collect();
        let whole = String::from_utf8_lossy(&whole);
        let shown = redact_lines(&whole);
        let first = line.clamp(lines.first, next);
        let skip = usize::try_from(first - lines.first).unwrap_or(usize::MAX);
        let text = shown.split_inclusive('\n').skip(skip).map(|line| visible(line)).collect();
        Piece { text, first, next, lost: first.saturating_sub(line) }
    }

    /// Lines so far.
    pub fn count(&self) -> u64 {
        let lines = self.lines();
        lines.first + lines.kept.len() as u64
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.rest);
        // Bytes that are no text must not become another number of lines.
        line.retain(|byte| *byte != b'\r' && *byte != 0);
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        self.bytes += line.len() + LINE;
        self.kept.push_back(line);
        while self.bytes > KEPT {
            let Some(oldest) = self.kept.pop_front() else { return };
            self.bytes -= oldest.len() + LINE;
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_given_once_they_are_whole_and_again_from_any_that_is_kept() {
        let heard = Heard::default();
        heard.add(b"one\ntw");
        assert_eq!(heard.from(0, false), Piece { text: "one\n".into(), first: 0, next: 1, lost: 0 });
        heard.add(b"o\nthree");
        assert_eq!(heard.from(1, false).text, "two\n");
        assert_eq!(heard.from(1, true), Piece { text: "two\nthree\n".into(), first: 1, next: 3, lost: 0 });
        assert_eq!(heard.from(9, true), Piece { text: String::new(), first: 3, next: 3, lost: 0 });
        heard.add(b"half");
        heard.say("$ next");
        assert_eq!(heard.from(3, false).text, "half\n$ next\n");
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_is_lost_is_said() {
        let heard = Heard::default();
        for number in 0..100_000 {
            heard.add(format!("line {number}\n").as_bytes());
        }
        let piece = heard.from(10, true);
        assert!(piece.text.len() <= KEPT && piece.text.ends_with("line 99999\n"));
        assert_eq!((piece.next, piece.lost), (100_000, piece.first - 10));
        assert!(piece.text.starts_with(&format!("line {}\n", piece.first)));
        heard.add(&vec![b'x'; 3 * KEPT]);
        assert!(heard.from(0, true).text.len() <= KEPT);
    }

    #[test]
    fn empty_lines_are_not_free() {
        let heard = Heard::default();
        heard.add(&vec![b'\n'; 2 * KEPT]);
        let kept = heard.lines().kept.len();
        assert!(kept > 0 && kept <= KEPT / LINE, "{kept}");
    }

    #[test]
    fn secrets_and_what_cannot_be_seen_stay_out_of_it() {
        let heard = Heard::default();
        heard.add(b"password=hunter2\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn\n");
        let first = heard.from(0, false);
        heard.add(b"NzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----\n\x1b[31mred\n");
        let rest = heard.from(first.next, true);
        for secret in ["hunter2", "b3Blbn", "NzaC1rZXk", "\u{1b}"] {
            assert!(!first.text.contains(secret) && !rest.text.contains(secret), "{secret}");
        }
        assert!(rest.text.ends_with("red\n"), "{rest:?}");
        assert_eq!((first.next, rest.next), (3, 6));
    }
}
