//! What a call may use, so that it ends by itself with what it has found and not by the host's limits with nothing.

use std::cell::Cell;
use std::time::Duration;

use linux_sysadmin_sdk::{Context, OutputStream, Result};

/// Why something was left out.
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

/// Of one call. The host allows 10,000 calls to it, and tells computing from waiting; so does this.
pub(crate) struct Budget<'a> {
    cx: &'a Context,
    began: f64,
    most: Most,
    waited: Cell<f64>,
    calls: Cell<u32>,
    read: Cell<u64>,
    /// The last piece of a stream was little.
    was_little: Cell<bool>,
}

struct Most {
    /// Seconds by the clock on the wall, and of them for computing.
    wall: f64,
    computing: f64,
    /// Bytes. Handing them over is the guest's own time in the host's eyes and waiting in the guest's, and takes a slow
    /// machine 2 s for a gigabyte. Of lines that are looked at, time is up before; of a hole it isn't.
    read: u64,
}

const CALLS: u32 = 8_000;

const GIB: u64 = 1 << 30;

/// What is read at once, and what is so little that after a second one it is better to wait for more: many programs write
/// 4 KiB at a time. So many calls are to be had without that: what is short is read before it would be worth it.
const PIECE: u32 = 1 << 20;
const LITTLE: usize = 48 << 10;
const WHILE: Duration = Duration::from_millis(3);
const UNHURRIED: u32 = 100;

impl<'a> Budget<'a> {
    /// Of a tool that may take 30 s.
    pub(crate) fn quick(cx: &'a Context) -> Self {
        Self::new(cx, Most { wall: 20.0, computing: 3.0, read: GIB })
    }

    /// Of a tool that may take 600 s.
    pub(crate) fn slow(cx: &'a Context) -> Self {
        Self::new(cx, Most { wall: 240.0, computing: 20.0, read: 8 * GIB })
    }

    fn new(cx: &'a Context, most: Most) -> Self {
        let (waited, calls, read, was_little) = Default::default();
        Self { cx, began: cx.monotonic(), most, waited, calls, read, was_little }
    }

    /// A call to the host, which is waited for.
    pub(crate) fn waiting<T>(&self, call: impl FnOnce() -> T) -> T {
        let before = self.cx.monotonic();
        let answer = call();
        self.waited.set(self.waited.get() + self.cx.monotonic() - before);
        self.calls.set(self.calls.get() + 1);
        answer
    }

    /// The next piece of a stream; empty at its end.
    pub(crate) fn read(&self, stream: &mut OutputStream) -> Result<Vec<u8>> {
        let piece = self.waiting(|| stream.read(PIECE))?;
        self.read.set(self.read.get() + piece.len() as u64);
        let is_little = !piece.is_empty() && piece.len() < LITTLE;
        if self.was_little.replace(is_little) && is_little && self.calls.get() > UNHURRIED {
            let before = self.cx.monotonic();
            self.cx.sleep(WHILE);
            self.waited.set(self.waited.get() + self.cx.monotonic() - before);
        }
        Ok(piece)
    }

    /// Parts of files.
    pub(crate) fn read_parts(&self, cx: &Context, parts: &[(&str, i64, u64)]) -> Vec<Result<Vec<u8>>> {
        let given = self.waiting(|| cx.read_parts(parts));
        let read = given.iter().flatten().map(Vec::len).sum::<usize>();
        self.read.set(self.read.get() + read as u64);
        given
    }

    /// Whether there is none left.
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
