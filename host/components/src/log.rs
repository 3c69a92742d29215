//! The log lines of one call: what its guest printed and what was refused to it. Their number and size are limited.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memchr::memchr;

use host_base::problem::Problem;
use host_text::visible::visible;

/// The number of printed lines of one call that are logged.
const MOST_LINES: usize = 100;
/// The number of bytes of all logged lines together.
const MOST_BYTES: usize = 16 << 10;
/// The number of bytes of one line.
const LINE_BYTES: usize = 500;
/// The number of refusals of one call that are logged.
const MOST_REFUSALS: u64 = 20;

/// The number of lines of a stream that are kept as the last ones. A panic of Rust has three, and the last line of a
/// traceback of Python says what went wrong.
const LAST_LINES: usize = 3;

/// The log of one call. What exceeds the limits is counted, and the count is logged when the call ends.
pub(super) struct CallLog {
    module: Arc<str>,
    state: Mutex<State>,
}

/// The stream that a guest printed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

#[derive(Default)]
struct State {
    stdout: Line,
    stderr: Line,
    lines: usize,
    bytes: usize,
    /// True once a line did not fit. No later line is logged then, so that the log has no gaps.
    full: bool,
    left_out: LeftOut,
    refusals: u64,
}

#[derive(Clone, Copy, Default)]
struct LeftOut {
    lines: u64,
    bytes: u64,
}

/// The current line, as far as it can be logged.
#[derive(Default)]
struct Line {
    kept: Vec<u8>,
    length: u64,
    /// The lines before it that were not empty, the latest last.
    last: VecDeque<Vec<u8>>,
}

impl CallLog {
    /// The log of a call of this module.
    pub(super) fn new(module: &Arc<str>) -> Self {
        Self { module: module.clone(), state: Mutex::default() }
    }

    /// Adds output of the guest, in pieces of any size.
    pub(super) fn printed(&self, stream: Stream, piece: &[u8]) {
        let mut state = self.state();
        let mut rest = piece;
        while let Some(end) = memchr(b'\n', rest) {
            state.line(stream).add(&rest[..end]);
            self.end_line(&mut state, stream);
            rest = &rest[end + 1..];
        }
        state.line(stream).add(rest);
    }

    /// Logs that the guest looks at something. `how` is `run` or `open` with the commands as they are shown, or `read`,
    /// `stat` or `list` with the paths.
    pub(super) fn looks<T: Debug>(&self, how: &str, at: impl FnOnce() -> Vec<T>) {
        tracing::debug!(module = &*self.module, how, at = ?at(), "looks");
    }

    /// Logs that the grants did not allow something. `granted` lists similar grants.
    pub(super) fn refused(&self, problem: &Problem, granted: &[&str]) {
        let mut state = self.state();
        state.refusals += 1;
        if state.refusals <= MOST_REFUSALS {
            tracing::warn!(module = &*self.module, reason = problem.message, ?granted, "refused");
        }
    }

    /// What the guest printed last: its errors, or its output where it has printed none. It is as the guest wrote it, with
    /// its secrets and hidden characters.
    pub(super) fn last_words(&self) -> Option<String> {
        let state = self.state();
        [&state.stderr, &state.stdout].into_iter().find_map(Line::last_words)
    }

    fn end_line(&self, state: &mut State, stream: Stream) {
        let line = state.line(stream).ended();
        let is_wanted = !state.full && tracing::enabled!(tracing::Level::INFO);
        let shown = if is_wanted { line.shown() } else { String::new() };
        state.full |= state.lines >= MOST_LINES || state.bytes + shown.len() > MOST_BYTES;
        if state.full {
            state.left_out.lines += 1;
            state.left_out.bytes += line.length;
            return;
        }
        state.lines += 1;
        state.bytes += shown.len();
        let stream = stream.name();
        tracing::info!(module = &*self.module, stream, line = shown, "printed");
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallLog {
    fn drop(&mut self) {
        let mut state = std::mem::take(&mut *self.state());
        for stream in [Stream::Stdout, Stream::Stderr] {
            if state.line(stream).length > 0 {
                self.end_line(&mut state, stream);
            }
        }
        let module = &*self.module;
        let LeftOut { lines, bytes } = state.left_out;
        if lines > 0 {
            tracing::info!(module, "… and {lines} more lines ({bytes} bytes) are not logged");
        }
        if let more @ 1.. = state.refusals.saturating_sub(MOST_REFUSALS) {
            tracing::warn!(module, "… and {more} more refusals are not logged");
        }
    }
}

impl Stream {
    fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

impl State {
    fn line(&mut self, stream: Stream) -> &mut Line {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}

impl Line {
    fn add(&mut self, text: &[u8]) {
        let room = LINE_BYTES - self.kept.len();
        self.kept.extend_from_slice(&text[..text.len().min(room)]);
        self.length += text.len() as u64;
    }

    /// Takes the line as it is at its end, and begins the next one.
    fn ended(&mut self) -> Self {
        let (kept, length) = (std::mem::take(&mut self.kept), std::mem::take(&mut self.length));
        if !kept.trim_ascii().is_empty() {
            self.last.push_back(kept.clone());
            if self.last.len() > LAST_LINES {
                self.last.pop_front();
            }
        }
        Self { kept, length, last: VecDeque::new() }
    }

    /// The last lines that are not empty, with the current one.
    fn last_words(&self) -> Option<String> {
        let current = Some(&self.kept).filter(|line| !line.trim_ascii().is_empty());
        let lines: Vec<&Vec<u8>> = self.last.iter().chain(current).collect();
        let lines = &lines[lines.len().saturating_sub(LAST_LINES)..];
        let lines: Vec<_> = lines.iter().map(|line| String::from_utf8_lossy(line.trim_ascii())).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn shown(&self) -> String {
        let text = visible_bytes(self.kept.strip_suffix(b"\r").unwrap_or(&self.kept));
        if self.length > LINE_BYTES as u64 {
            return format!("{text}… ({} bytes)", self.length);
        }
        text
    }
}

/// The text, without a part of a character that a cut may leave at the end.
fn visible_bytes(bytes: &[u8]) -> String {
    let whole = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    };
    match String::from_utf8_lossy(whole) {
        Cow::Borrowed(text) => visible(text).into_owned(),
        Cow::Owned(text) => visible(&text).into_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests;
