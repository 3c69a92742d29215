//! The output of one call's commands while they run: the latest lines, for a client that doesn't wait for the end.
//!
//! A line that begins with `$ ` is the host's own and shows the command that it starts. A line of output that begins
//! with `$` gets one more in front, and so can't be taken for a line of the host.
//!
//! Several commands may run at the same time, and each writes to two streams. Lines of different streams stand in the
//! order in which they ended. No line mixes two streams, and a secret of several lines is looked for in the lines of
//! its own stream. Where the call is on several hosts, each line says of which host it is.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use host_text::redact::redact_lines;
use host_text::visible::{one_line, visible};

/// The number of bytes that are kept.
const CAPACITY: usize = 256 << 10;
/// A longer line is split.
const LONGEST_LINE: usize = 16 << 10;
/// The memory that a line takes besides its bytes. Without it, empty lines would cost nothing.
const LINE_OVERHEAD: usize = 64;

/// The first line of a private key. It is put before the kept lines of a stream whose key began in a line that is
/// dropped.
const KEY_FIRST_LINE: &str = "-----BEGIN PRIVATE KEY-----\n";
/// The text that [`redact_lines`] puts in place of each line of a key.
const REDACTED_KEY_LINE: &str = "[redacted private key]\n";

/// The lines of output, numbered from 0. The buffers of the hosts of one call share their lines.
#[derive(Debug, Default)]
pub struct OutputBuffer {
    state: Arc<Mutex<State>>,
    /// The host that the lines are from, where the call is on several hosts.
    host: Option<Arc<str>>,
}

#[derive(Debug, Default)]
struct State {
    kept: VecDeque<BufferedLine>,
    bytes: usize,
    /// The number of the first line that is kept.
    first: u64,
    /// The unfinished line of each stream that hasn't ended.
    unfinished: BTreeMap<u64, BufferedLine>,
    /// The streams in which a dropped line began a key that didn't end in a dropped line.
    in_key: BTreeSet<u64>,
    /// The number of streams that were opened.
    stream_count: u64,
}

#[derive(Debug)]
struct BufferedLine {
    bytes: Vec<u8>,
    source: Source,
    host: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Host,
    Stream(u64),
}

/// One output stream of one command. Dropping it ends the stream.
#[derive(Debug)]
pub struct StreamWriter {
    buffer: Arc<OutputBuffer>,
    number: u64,
}

/// Consecutive lines of the buffer.
#[derive(Debug, PartialEq, Eq)]
pub struct BufferedLines {
    /// The lines, without secrets and with hidden characters made visible.
    pub text: String,
    /// The number of the first line in `text`.
    pub first: u64,
    /// The number of the line after the last one in `text`.
    pub next: u64,
    /// The number of lines that were asked for and are no longer kept.
    pub lost: u64,
}

impl OutputBuffer {
    /// A buffer for the part of the call that is on this host.
    pub fn for_host(&self, host: &str) -> Self {
        Self { state: self.state.clone(), host: Some(host.into()) }
    }

    /// Opens one more stream. Its first output begins a new line.
    pub fn open_stream(self: &Arc<Self>) -> StreamWriter {
        let mut state = self.state();
        let number = state.stream_count;
        state.stream_count += 1;
        let line =
            BufferedLine { bytes: Vec::new(), source: Source::Stream(number), host: self.host.clone() };
        state.unfinished.insert(number, line);
        StreamWriter { buffer: self.clone(), number }
    }

    /// Adds a line of the host's own, which begins with `$ `. It never splits a line of output.
    pub fn add_host_line(&self, line: &str) {
        let bytes = format!("{}\n", one_line(line)).into_bytes();
        self.state().keep(BufferedLine { bytes, source: Source::Host, host: self.host.clone() });
    }

    /// Returns the lines from `line` on. An unfinished line is left out, unless `is_over` says that no more output
    /// comes.
    pub fn lines_from(&self, line: u64, is_over: bool) -> BufferedLines {
        let mut state = self.state();
        if is_over {
            let streams: Vec<u64> = state.unfinished.keys().copied().collect();
            streams.into_iter().for_each(|stream| state.finish_line(stream));
        }
        let next = state.first + state.kept.len() as u64;
        let first = line.clamp(state.first, next);
        let skip = usize::try_from(first - state.first).unwrap_or(usize::MAX);
        let text = state.shown().into_iter().skip(skip).collect();
        BufferedLines { text, first, next, lost: first.saturating_sub(line) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamWriter {
    /// Adds output of the stream.
    pub fn write(&self, mut piece: &[u8]) {
        let mut state = self.buffer.state();
        while !piece.is_empty() {
            let Some(BufferedLine { bytes: rest, .. }) = state.unfinished.get_mut(&self.number) else {
                return;
            };
            let room = LONGEST_LINE - rest.len();
            let end = piece.iter().take(room).position(|byte| *byte == b'\n');
            let taken = end.map_or(piece.len().min(room), |end| end + 1);
            rest.extend_from_slice(&piece[..taken]);
            piece = &piece[taken..];
            if end.is_some() || rest.len() >= LONGEST_LINE {
                state.finish_line(self.number);
            }
        }
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        let mut state = self.buffer.state();
        state.finish_line(self.number);
        state.unfinished.remove(&self.number);
    }
}

impl State {
    /// Keeps the unfinished line of a stream as a line.
    fn finish_line(&mut self, number: u64) {
        let Some(line) = self.unfinished.get_mut(&number).filter(|line| !line.bytes.is_empty()) else {
            return;
        };
        let mut bytes = std::mem::take(&mut line.bytes);
        let (source, host) = (line.source, line.host.clone());
        // Bytes that aren't text must not change the number of lines, or hide how a line begins.
        bytes.retain(|byte| *byte != b'\r' && *byte != 0);
        if bytes.last() != Some(&b'\n') {
            bytes.push(b'\n');
        }
        self.keep(BufferedLine { bytes, source, host });
    }

    fn keep(&mut self, line: BufferedLine) {
        self.bytes += line.bytes.len() + LINE_OVERHEAD;
        self.kept.push_back(line);
        while self.bytes > CAPACITY {
            let Some(oldest) = self.kept.pop_front() else { return };
            self.bytes -= oldest.bytes.len() + LINE_OVERHEAD;
            self.first += 1;
            if let Source::Stream(number) = oldest.source {
                match continues_key(&oldest.bytes, self.in_key.contains(&number)) {
                    true => self.in_key.insert(number),
                    false => self.in_key.remove(&number),
                };
            }
        }
    }

    /// Returns all kept lines as they are shown.
    fn shown(&self) -> Vec<String> {
        let mut streams: HashMap<u64, (String, Vec<usize>)> = HashMap::new();
        let mut shown = vec![String::new(); self.kept.len()];
        for (at, line) in self.kept.iter().enumerate() {
            let text = String::from_utf8_lossy(&line.bytes);
            match line.source {
                Source::Host => {
                    let text = visible(&redact_lines(&text)).into_owned();
                    shown[at] = match &line.host {
                        None => text,
                        Some(host) => text.replacen("$ ", &format!("$ {host}: "), 1),
                    };
                }
                Source::Stream(number) => {
                    let (whole, places) = streams.entry(number).or_insert_with(|| {
                        let begins = if self.in_key.contains(&number) { KEY_FIRST_LINE } else { "" };
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
            // Leaves out the key's first line where it was added above.
            let begin = lines.len().saturating_sub(places.len());
            for (place, line) in places.into_iter().zip(&lines[begin..]) {
                shown[place] = match &self.kept[place].host {
                    Some(host) => format!("{host}: {}", visible(line)),
                    None if line.starts_with('$') => format!("${}", visible(line)),
                    None => visible(line).into_owned(),
                };
            }
        }
        shown
    }
}

/// Says whether the line after this one belongs to a key.
fn continues_key(line: &[u8], is_in_key: bool) -> bool {
    let begins = if is_in_key { KEY_FIRST_LINE } else { "" };
    let text = format!("{begins}{}next\n", String::from_utf8_lossy(line));
    redact_lines(&text).ends_with(REDACTED_KEY_LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of lines so far.
    fn count(buffer: &OutputBuffer) -> u64 {
        buffer.lines_from(u64::MAX, false).next
    }

    #[test]
    fn of_several_hosts_each_line_says_whose_it_is() {
        let whole = OutputBuffer::default();
        let [one, other] = ["web1", "web2"].map(|host| Arc::new(whole.for_host(host)));
        let streams = [one.open_stream(), other.open_stream()];
        one.add_host_line("$ uptime");
        streams[0].write(b"$ web2: ha");
        streams[1].write(b"up\n-----BEGIN PRIVATE KEY-----\n");
        streams[0].write(b"lf\n");
        streams[1].write(b"AAAA");
        assert_eq!(
            whole.lines_from(0, true).text,
            "$ web1: uptime\nweb2: up\nweb2: [redacted private key]\nweb1: $ web2: half\nweb2: [redacted private key]\n"
        );
    }

    #[test]
    fn lines_are_given_once_they_are_whole_and_again_from_any_that_is_kept() {
        let buffer = Arc::new(OutputBuffer::default());
        let stream = buffer.open_stream();
        stream.write(b"one\ntw");
        assert_eq!(
            buffer.lines_from(0, false),
            BufferedLines { text: "one\n".into(), first: 0, next: 1, lost: 0 }
        );
        stream.write(b"o\nthree");
        assert_eq!(buffer.lines_from(1, false).text, "two\n");
        assert_eq!(
            buffer.lines_from(1, true),
            BufferedLines { text: "two\nthree\n".into(), first: 1, next: 3, lost: 0 }
        );
        assert_eq!(
            buffer.lines_from(9, true),
            BufferedLines { text: String::new(), first: 3, next: 3, lost: 0 }
        );
        stream.write(b"half");
        drop(stream);
        assert_eq!((buffer.lines_from(3, false).text.as_str(), count(&buffer)), ("half\n", 4));
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_is_lost_is_said() {
        let buffer = Arc::new(OutputBuffer::default());
        let stream = buffer.open_stream();
        for number in 0..100_000 {
            stream.write(format!("line {number}\n").as_bytes());
        }
        let piece = buffer.lines_from(10, true);
        assert!(piece.text.len() <= CAPACITY && piece.text.ends_with("line 99999\n"));
        assert_eq!((piece.next, piece.lost), (100_000, piece.first - 10));
        assert!(piece.text.starts_with(&format!("line {}\n", piece.first)));
        stream.write(&vec![b'x'; 3 * CAPACITY]);
        assert!(buffer.lines_from(0, true).text.len() <= CAPACITY);
    }

    #[test]
    fn empty_lines_are_not_free() {
        let buffer = Arc::new(OutputBuffer::default());
        buffer.open_stream().write(&vec![b'\n'; 2 * CAPACITY]);
        let kept = buffer.state().kept.len();
        assert!(kept > 0 && kept <= CAPACITY / LINE_OVERHEAD, "{kept}");
    }

    #[test]
    fn secrets_and_what_cannot_be_seen_stay_out_of_it() {
        let buffer = Arc::new(OutputBuffer::default());
        let stream = buffer.open_stream();
        stream.write(b"password=hunter2\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn\n");
        let first = buffer.lines_from(0, false);
        stream.write(b"NzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----\n\x1b[31mred\n");
        let rest = buffer.lines_from(first.next, true);
        for secret in ["hunter2", "b3Blbn", "NzaC1rZXk", "\u{1b}"] {
            assert!(!first.text.contains(secret) && !rest.text.contains(secret), "{secret}");
        }
        assert!(rest.text.ends_with("red\n"), "{rest:?}");
        assert_eq!((first.next, rest.next), (3, 6));
    }

    #[test]
    fn a_secret_is_one_though_another_stream_speaks_in_its_middle() {
        let buffer = Arc::new(OutputBuffer::default());
        let (stdout, stderr) = (buffer.open_stream(), buffer.open_stream());
        stdout.write(b"-----BEGIN PRIVATE KEY-----\nMIIE");
        stderr.write(b"-----END PRIVATE KEY-----\npass");
        stdout.write(b"vQIBADAN\n");
        buffer.add_host_line("$ id");
        stderr.write(b"word=hun");
        stdout.write(b"QEFAASC\n-----END PRIVATE KEY-----\n");
        stderr.write(b"ter2\n");
        drop((stdout, stderr));
        let key = REDACTED_KEY_LINE;
        let expected = format!("{key}-----END PRIVATE KEY-----\n{key}$ id\n{key}{key}password=[redacted]\n");
        assert_eq!(buffer.lines_from(0, false).text, expected);
    }

    #[test]
    fn a_key_is_one_though_its_first_line_is_no_longer_kept() {
        let buffer = Arc::new(OutputBuffer::default());
        let (stdout, stderr) = (buffer.open_stream(), buffer.open_stream());
        stdout.write(b"-----BEGIN PRIVATE KEY-----\n");
        stderr.write(&vec![b'\n'; CAPACITY]);
        stdout.write(b"MIIEvQIBADAN\n");
        assert_eq!(buffer.lines_from(count(&buffer) - 1, false).text, REDACTED_KEY_LINE);
        stderr.write(&vec![b'\n'; CAPACITY]);
        stdout.write(b"QEFAASC=\n");
        let all = buffer.lines_from(0, false).text;
        assert!(!all.contains("QEFA") && !all.contains("MIIE"), "{all}");
        stdout.write(b"-----END PRIVATE KEY-----\nplain\n");
        let text = buffer.lines_from(count(&buffer) - 2, false).text;
        assert_eq!(text, format!("{REDACTED_KEY_LINE}plain\n"));
        stderr.write(&vec![b'\n'; CAPACITY]);
        stdout.write(b"also plain\n");
        assert_eq!(buffer.lines_from(count(&buffer) - 1, false).text, "also plain\n");
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
            let buffer = Arc::new(OutputBuffer::default());
            buffer.open_stream().write(output.as_bytes());
            assert_eq!(buffer.lines_from(0, false).text, shown);
        }
        let buffer = Arc::new(OutputBuffer::default());
        let stream = buffer.open_stream();
        stream.write(b"$");
        buffer.add_host_line("$ printf 'a\n$ rm'");
        stream.write(&[&vec![b'x'; LONGEST_LINE - 1][..], b"$ rm\n"].concat());
        let text = buffer.lines_from(0, false).text;
        let own: Vec<&str> = text.lines().filter(|line| line.starts_with("$ ")).collect();
        assert_eq!(own, ["$ printf 'a\\n$ rm'"]);
        assert!(text.ends_with("\n$$ rm\n"));
    }
}
