//! What the log holds of one call: what its guest printed and what was refused to it, bounded, whatever it does.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memchr::memchr;

use host_base::problem::Problem;
use host_text::visible::visible;

/// Printed lines of one call that are logged.
const MOST_LINES: usize = 100;
/// All of them together, as they are logged.
const MOST_BYTES: usize = 16 << 10;
/// Of one line.
const LINE_BYTES: usize = 500;
/// Refusals of one call that are logged.
const MOST_REFUSALS: u64 = 20;

/// One call's part of the log. What didn't fit is counted, and the count is logged when the call has ended.
pub(super) struct CallLog {
    module: Arc<str>,
    state: Mutex<State>,
}

/// Where a guest printed.
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
    /// A line didn't fit; nor does any after it, or the log would have holes.
    full: bool,
    left_out: LeftOut,
    refusals: u64,
}

#[derive(Clone, Copy, Default)]
struct LeftOut {
    lines: u64,
    bytes: u64,
}

/// The line that is being printed, as far as it can be logged.
#[derive(Default)]
struct Line {
    kept: Vec<u8>,
    length: u64,
}

impl CallLog {
    /// Of a call of this module.
    pub(super) fn new(module: &Arc<str>) -> Self {
        Self { module: module.clone(), state: Mutex::default() }
    }

    /// What a guest printed, in pieces of any size.
    pub(super) fn printed(&self, stream: Stream, piece: &[u8]) {
        if !tracing::enabled!(tracing::Level::INFO) {
            return;
        }
        let mut state = self.state();
        let mut rest = piece;
        while let Some(end) = memchr(b'\n', rest) {
            state.line(stream).add(&rest[..end]);
            self.end_line(&mut state, stream);
            rest = &rest[end + 1..];
        }
        state.line(stream).add(rest);
    }

    /// The guest looks at something: `run` or `open` and the commands, as they are shown, or `read`, `stat` or `list` and the
    /// paths.
    pub(super) fn looks<T: Debug>(&self, how: &str, at: impl FnOnce() -> Vec<T>) {
        tracing::debug!(module = &*self.module, how, at = ?at(), "looks");
    }

    /// A grant didn't allow something; `granted` is what comes close to it.
    pub(super) fn refused(&self, problem: &Problem, granted: &[&str]) {
        let mut state = self.state();
        state.refusals += 1;
        if state.refusals <= MOST_REFUSALS {
            tracing::warn!(module = &*self.module, reason = problem.message, ?granted, "refused");
        }
    }

    fn end_line(&self, state: &mut State, stream: Stream) {
        let line = std::mem::take(state.line(stream));
        let shown = if state.full { String::new() } else { line.shown() };
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

    fn shown(&self) -> String {
        let text = visible_bytes(self.kept.strip_suffix(b"\r").unwrap_or(&self.kept));
        if self.length > LINE_BYTES as u64 {
            return format!("{text}… ({} bytes)", self.length);
        }
        text
    }
}

/// As text, without the piece of a character that a cut may leave at the end.
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
