//! The time, calls and bytes that a tool may use. A tool that stops by itself answers with what it has found; one that the
//! host stops answers with nothing.

use std::cell::Cell;
use std::time::Duration;

use linux_sysadmin_sdk::{Context, OutputStream, Result};

/// The limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spent {
    Time,
    Pieces,
}

impl Spent {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Time => "the time for one call was over",
            Self::Pieces => "it takes more pieces than one call may read",
        }
    }
}

/// The budget of one tool call. Like the host, it limits computing apart from waiting. The host allows 10,000 calls of its
/// functions.
pub(crate) struct Budget<'a> {
    cx: &'a Context,
    began: f64,
    most: Most,
    waited: Cell<f64>,
    calls: Cell<u32>,
    read: Cell<u64>,
    /// True where the last piece of a stream was small.
    was_small: Cell<bool>,
}

struct Most {
    /// The wall time, in seconds.
    wall: f64,
    /// The time for computing, in seconds.
    computing: f64,
    /// The bytes to read. A slow machine takes 2 s to hand over a gigabyte. The host counts that as computing, and this
    /// module as waiting. Lines use up the computing time first, but a hole in a file does not.
    read: u64,
}

/// The number of calls of the host's functions.
const CALLS: u32 = 8_000;

const GIB: u64 = 1 << 30;

/// The number of bytes that are read at once.
const PIECE: u32 = 1 << 20;
/// A piece below this size is small. Many programs write 4 KiB at a time, and so it is better to wait after two small
/// pieces.
const SMALL: usize = 48 << 10;
/// The time to wait after two small pieces.
const PAUSE: Duration = Duration::from_millis(3);
/// The number of calls before there are pauses. A short output is read within them.
const CALLS_WITHOUT_PAUSE: u32 = 100;

impl<'a> Budget<'a> {
    /// The budget of a tool that may take 30 s.
    pub(crate) fn quick(cx: &'a Context) -> Self {
        Self::new(cx, Most { wall: 20.0, computing: 3.0, read: GIB })
    }

    /// The budget of a tool that may take 600 s.
    pub(crate) fn slow(cx: &'a Context) -> Self {
        Self::new(cx, Most { wall: 240.0, computing: 20.0, read: 8 * GIB })
    }

    fn new(cx: &'a Context, most: Most) -> Self {
        let (waited, calls, read, was_small) = Default::default();
        Self { cx, began: cx.monotonic(), most, waited, calls, read, was_small }
    }

    /// Calls the host, and counts the time as waiting.
    pub(crate) fn waiting<T>(&self, call: impl FnOnce() -> T) -> T {
        let before = self.cx.monotonic();
        let answer = call();
        self.waited.set(self.waited.get() + self.cx.monotonic() - before);
        self.calls.set(self.calls.get() + 1);
        answer
    }

    /// Reads the next piece of a stream. It is empty at the end.
    pub(crate) fn read(&self, stream: &mut OutputStream) -> Result<Vec<u8>> {
        let piece = self.waiting(|| stream.read(PIECE))?;
        self.read.set(self.read.get() + piece.len() as u64);
        let is_small = !piece.is_empty() && piece.len() < SMALL;
        if self.was_small.replace(is_small) && is_small && self.calls.get() > CALLS_WITHOUT_PAUSE {
            let before = self.cx.monotonic();
            self.cx.sleep(PAUSE);
            self.waited.set(self.waited.get() + self.cx.monotonic() - before);
        }
        Ok(piece)
    }

    /// Reads parts of files, each given by path, offset and length.
    pub(crate) fn read_parts(&self, cx: &Context, parts: &[(&str, i64, u64)]) -> Vec<Result<Vec<u8>>> {
        let given = self.waiting(|| cx.read_parts(parts));
        let read = given.iter().flatten().map(Vec::len).sum::<usize>();
        self.read.set(self.read.get() + read as u64);
        given
    }

    /// The limit that was reached, if any.
    pub(crate) fn spent(&self) -> Option<Spent> {
        let elapsed = self.cx.monotonic() - self.began;
        if elapsed > self.most.wall || elapsed - self.waited.get() > self.most.computing {
            return Some(Spent::Time);
        }
        (self.calls.get() > CALLS || self.read.get() > self.most.read).then_some(Spent::Pieces)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::Command;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    #[test]
    fn what_is_read_of_files_and_of_programs_is_bounded() {
        let cx = FakeTarget::new().file("/a", b"0123456789").answer(&["a"], 0, "0123456789", "").context();
        let budget = Budget::new(&cx, Most { wall: 20.0, computing: 3.0, read: 14 });
        assert_eq!(budget.read_parts(&cx, &[("/a", 0, 3), ("/a", 3, 9)])[1].as_ref().unwrap(), b"3456789");
        assert_eq!(budget.spent(), None);
        let mut stream = cx.open(Command::new("a")).unwrap();
        assert_eq!(budget.read(&mut stream).unwrap(), b"0123456789");
        assert_eq!(budget.spent(), Some(Spent::Pieces));
    }
}
