//! What the commands of one call say while they run: the latest lines, for whoever doesn't wait for the end.
//!
//! A line that begins with `$ ` is the host's own: the command that it starts. A line of output that begins with `$` has
//! one more in front, so that no output can be taken for one.
//!
//! Several commands may run at the same time, and each says things on two streams. Lines of different streams stand
//! in the order in which they ended, but none is made of pieces of two; and a secret that goes over several lines is
//! looked for in the lines of its own stream.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use host_text::redact::redact_lines;
use host_text::visible::{one_line, visible};

/// Bytes that are kept of it.
const KEPT: usize = 256 << 10;
/// A line that is longer is several.
const LONGEST: usize = 16 << 10;
/// What keeping a line takes besides its bytes: empty ones aren't free.
const LINE: usize = 64;

/// The first line of a key, put before the lines of one whose first line isn't among them.
const KEY_BEGINS: &str = "-----BEGIN PRIVATE KEY-----\n";
/// What [`redact_lines`] puts in place of each line of a key.
const KEY_LINE: &str = "[redacted private key]\n";

/// Lines, numbered from 0.
#[derive(Debug, Default)]
pub struct Heard(Mutex<Lines>);

#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<Line>,
    bytes: usize,
    /// The number of the first that is kept.
    first: u64,
    /// Of each stream that hasn't ended, what has no end yet.
    open: BTreeMap<u64, Vec<u8>>,
    /// Streams whose lines that are no longer kept began a key, and didn't end it.
    in_key: BTreeSet<u64>,
    /// Streams so far.
    streams: u64,
}

#[derive(Debug)]
struct Line {
    bytes: Vec<u8>,
    said_by: SaidBy,
}

#[derive(Clone, Copy, Debug)]
enum SaidBy {
    Host,
    Stream(u64),
}

/// One stream of one command. Dropped, it has ended.
#[derive(Debug)]
pub struct HeardStream {
    heard: Arc<Heard>,
    number: u64,
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
    /// One more stream, which begins with a line of its own.
    pub fn stream(self: &Arc<Self>) -> HeardStream {
        let mut lines = self.lines();
        let number = lines.streams;
        lines.streams += 1;
        lines.open.insert(number, Vec::new());
        HeardStream { heard: self.clone(), number }
    }

    /// A line of the host's own, whatever is under way. It begins with `$ `.
    pub fn say(&self, line: &str) {
        let bytes = format!("{}\n", one_line(line)).into_bytes();
        self.lines().keep(Line { bytes, said_by: SaidBy::Host });
    }

    /// From this line on. A line that has no end yet is given once it has one, or where nothing comes any more.
    pub fn from(&self, line: u64, is_over: bool) -> Piece {
        let mut lines = self.lines();
        if is_over {
            let streams: Vec<u64> = lines.open.keys().copied().collect();
            streams.into_iter().for_each(|stream| lines.end_rest(stream));
        }
        let next = lines.first + lines.kept.len() as u64;
        let first = line.clamp(lines.first, next);
        let skip = usize::try_from(first - lines.first).unwrap_or(usize::MAX);
        let text = lines.shown().into_iter().skip(skip).collect();
        Piece { text, first, next, lost: first.saturating_sub(line) }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeardStream {
    /// What came.
    pub fn add(&self, mut piece: &[u8]) {
        let mut lines = self.heard.lines();
        while !piece.is_empty() {
            let Some(rest) = lines.open.get_mut(&self.number) else { return };
            let room = LONGEST - rest.len();
            let end = piece.iter().take(room).position(|byte| *byte == b'\n');
            let taken = end.map_or(piece.len().min(room), |end| end + 1);
            rest.extend_from_slice(&piece[..taken]);
            piece = &piece[taken..];
            if end.is_some() || rest.len() >= LONGEST {
                lines.end_rest(self.number);
            }
        }
    }
}

impl Drop for HeardStream {
    fn drop(&mut self) {
        let mut lines = self.heard.lines();
        lines.end_rest(self.number);
        lines.open.remove(&self.number);
    }
}

impl Lines {
    /// What a stream has said since its last line is a line.
    fn end_rest(&mut self, number: u64) {
        let Some(rest) = self.open.get_mut(&number).filter(|rest| !rest.is_empty()) else { return };
        let mut bytes = std::mem::take(rest);
        // Bytes that are no text must not become another number of lines, nor hide what a line begins with.
        bytes.retain(|byte| *byte != b'\r' && *byte != 0);
        if bytes.last() != Some(&b'\n') {
            bytes.push(b'\n');
        }
        self.keep(Line { bytes, said_by: SaidBy::Stream(number) });
    }

    fn keep(&mut self, line: Line) {
        self.bytes += line.bytes.len() + LINE;
        self.kept.push_back(line);
        while self.bytes > KEPT {
            let Some(oldest) = self.kept.pop_front() else { return };
            self.bytes -= oldest.bytes.len() + LINE;
            self.first += 1;
            if let SaidBy::Stream(number) = oldest.said_by {
                match goes_on_in_key(&oldest.bytes, self.in_key.contains(&number)) {
                    true => self.in_key.insert(number),
                    false => self.in_key.remove(&number),
                };
            }
        }
    }

    /// All that are kept, as they are shown.
    fn shown(&self) -> Vec<String> {
        let mut streams: HashMap<u64, (String, Vec<usize>)> = HashMap::new();
        let mut shown = vec![String::new(); self.kept.len()];
        for (at, line) in self.kept.iter().enumerate() {
            let text = String::from_utf8_lossy(&line.bytes);
            match line.said_by {
                SaidBy::Host => shown[at] = visible(&redact_lines(&text)).into_owned(),
                SaidBy::Stream(number) => {
                    let (whole, places) = streams.entry(number).or_insert_with(|| {
                        let begins = if self.in_key.contains(&number) { KEY_BEGINS } else { "" };
                        (begins.to_owned(), Vec::new())
                    });
                    whole.push_str(&text);
                    places.push(at);
                }
            }
        }
        for (whole, places) in streams.into_values() {
            let redacted = redact_lines(&whole);
            let lines: Vec<&str> = redacted.split_inclusive('\n').collect();
            // Without the key's first line, where that was put before them.
            let begin = lines.len().saturating_sub(places.len());
            for (place, line) in places.into_iter().zip(&lines[begin..]) {
                let mark = if line.starts_with('$') { "$" } else { "" };
                shown[place] = format!("{mark}{}", visible(line));
            }
        }
        shown
    }
}

/// Whether what comes behind this line belongs to a key.
fn goes_on_in_key(line: &[u8], is_in_key: bool) -> bool {
    let begins = if is_in_key { KEY_BEGINS } else { "" };
    let text = format!("{begins}{}next\n", String::from_utf8_lossy(line));
    redact_lines(&text).ends_with(KEY_LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines so far.
    fn count(heard: &Heard) -> u64 {
        heard.from(u64::MAX, false).next
    }

    #[test]
    fn lines_are_given_once_they_are_whole_and_again_from_any_that_is_kept() {
        let heard = Arc::new(Heard::default());
        let stream = heard.stream();
        stream.add(b"one\ntw");
        assert_eq!(heard.from(0, false), Piece { text: "one\n".into(), first: 0, next: 1, lost: 0 });
        stream.add(b"o\nthree");
        assert_eq!(heard.from(1, false).text, "two\n");
        assert_eq!(heard.from(1, true), Piece { text: "two\nthree\n".into(), first: 1, next: 3, lost: 0 });
        assert_eq!(heard.from(9, true), Piece { text: String::new(), first: 3, next: 3, lost: 0 });
        stream.add(b"half");
        drop(stream);
        assert_eq!((heard.from(3, false).text.as_str(), count(&heard)), ("half\n", 4));
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_is_lost_is_said() {
        let heard = Arc::new(Heard::default());
        let stream = heard.stream();
        for number in 0..100_000 {
            stream.add(format!("line {number}\n").as_bytes());
        }
        let piece = heard.from(10, true);
        assert!(piece.text.len() <= KEPT && piece.text.ends_with("line 99999\n"));
        assert_eq!((piece.next, piece.lost), (100_000, piece.first - 10));
        assert!(piece.text.starts_with(&format!("line {}\n", piece.first)));
        stream.add(&vec![b'x'; 3 * KEPT]);
        assert!(heard.from(0, true).text.len() <= KEPT);
    }

    #[test]
    fn empty_lines_are_not_free() {
        let heard = Arc::new(Heard::default());
        heard.stream().add(&vec![b'\n'; 2 * KEPT]);
        let kept = heard.lines().kept.len();
        assert!(kept > 0 && kept <= KEPT / LINE, "{kept}");
    }

    #[test]
    fn secrets_and_what_cannot_be_seen_stay_out_of_it() {
        let heard = Arc::new(Heard::default());
        let stream = heard.stream();
        stream.add(b"password=hunter2\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn\n");
        let first = heard.from(0, false);
        stream.add(b"NzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----\n\x1b[31mred\n");
        let rest = heard.from(first.next, true);
        for secret in ["hunter2", "b3Blbn", "NzaC1rZXk", "\u{1b}"] {
            assert!(!first.text.contains(secret) && !rest.text.contains(secret), "{secret}");
        }
        assert!(rest.text.ends_with("red\n"), "{rest:?}");
        assert_eq!((first.next, rest.next), (3, 6));
    }

    #[test]
    fn a_secret_is_one_though_another_stream_speaks_in_its_middle() {
        let heard = Arc::new(Heard::default());
        let (stdout, stderr) = (heard.stream(), heard.stream());
        stdout.add(b"-----BEGIN PRIVATE KEY-----\nMIIE");
        stderr.add(b"-----END PRIVATE KEY-----\npass");
        stdout.add(b"vQIBADAN\n");
        heard.say("$ id");
        stderr.add(b"word=hun");
        stdout.add(b"QEFAASC\n-----END PRIVATE KEY-----\n");
        stderr.add(b"ter2\n");
        drop((stdout, stderr));
        let key = KEY_LINE;
        let expected = format!("{key}-----END PRIVATE KEY-----\n{key}$ id\n{key}{key}password=[redacted]\n");
        assert_eq!(heard.from(0, false).text, expected);
    }

    #[test]
    fn a_key_is_one_though_its_first_line_is_no_longer_kept() {
        let heard = Arc::new(Heard::default());
        let (stdout, stderr) = (heard.stream(), heard.stream());
        stdout.add(b"-----BEGIN PRIVATE KEY-----\n");
        stderr.add(&vec![b'\n'; KEPT]);
        stdout.add(b"MIIEvQIBADAN\n");
        assert_eq!(heard.from(count(&heard) - 1, false).text, KEY_LINE);
        stderr.add(&vec![b'\n'; KEPT]);
        stdout.add(b"QEFAASC=\n");
        let all = heard.from(0, false).text;
        assert!(!all.contains("QEFA") && !all.contains("MIIE"), "{all}");
        stdout.add(b"-----END PRIVATE KEY-----\nplain\n");
        let text = heard.from(count(&heard) - 2, false).text;
        assert_eq!(text, format!("{KEY_LINE}plain\n"));
        stderr.add(&vec![b'\n'; KEPT]);
        stdout.add(b"also plain\n");
        assert_eq!(heard.from(count(&heard) - 1, false).text, "also plain\n");
    }

    #[test]
    fn output_is_never_taken_for_a_line_of_the_hosts_own() {
        for (output, shown) in [
            ("$ rm -rf /\n", "$$ rm -rf /\n"),
            ("$$ rm\n", "$$$ rm\n"),
            ("\0$ rm\n", "$$ rm\n"),
            ("\r$ rm\n", "$$ rm\n"),
            ("\u{200b}$ rm\n", "\\u{200b}$ rm\n"),
            ("a\u{2028}$ rm\n", "a\\u{2028}$ rm\n"),
            (" $ rm $ x\n", " $ rm $ x\n"),
        ] {
            let heard = Arc::new(Heard::default());
            heard.stream().add(output.as_bytes());
            assert_eq!(heard.from(0, false).text, shown);
        }
        let heard = Arc::new(Heard::default());
        let stream = heard.stream();
        stream.add(b"$");
        heard.say("$ printf 'a\n$ rm'");
        stream.add(&[&vec![b'x'; LONGEST - 1][..], b"$ rm\n"].concat());
        let text = heard.from(0, false).text;
        let own: Vec<&str> = text.lines().filter(|line| line.starts_with("$ ")).collect();
        assert_eq!(own, ["$ printf 'a\\n$ rm'"]);
        assert!(text.ends_with("\n$$ rm\n"));
    }
}
