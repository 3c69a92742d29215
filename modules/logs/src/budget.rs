//! What a call may use, so that it ends by itself with what it has found and not by the host's limits with nothing.

use std::cell::Cell;
use std::time::Duration;

use linux_sysadmin_sdk::{Context, OutputStream, Result};

/// Why something was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spent {
    Time,
    Calls,
}

impl Spent {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Time => "the time for one call was over",
            Self::Calls => "it takes more pieces than one call may read",
        }
    }
}

/// Of one call. The host allows 10,000 calls to it, and tells computing from waiting; so does this.
pub(crate) struct Budget<'a> {
    cx: &'a Context,
    began: f64,
    /// Seconds by the clock on the wall, and of them for computing.
    wall: f64,
    computing: f64,
    waited: Cell<f64>,
    calls: Cell<u32>,
}

const CALLS: u32 = 8_000;

/// What is read at once, and what is so little that it is better to wait for more: many programs write 4 KiB at a time.
const PIECE: u32 = 1 << 20;
const LITTLE: usize = 48 << 10;
const WHILE: Duration = Duration::from_millis(3);

impl<'a> Budget<'a> {
    /// Of a tool that may take 30 s.
    pub(crate) fn quick(cx: &'a Context) -> Self {
        Self::new(cx, 20.0, 3.0)
    }

    /// Of a tool that may take 600 s.
    pub(crate) fn slow(cx: &'a Context) -> Self {
        Self::new(cx, 240.0, 20.0)
    }

    fn new(cx: &'a Context, wall: f64, computing: f64) -> Self {
        Self { cx, began: cx.monotonic(), wall, computing, waited: Cell::new(0.0), calls: Cell::new(0) }
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
        if !piece.is_empty() && piece.len() < LITTLE {
            let before = self.cx.monotonic();
            self.cx.sleep(WHILE);
            self.waited.set(self.waited.get() + self.cx.monotonic() - before);
        }
        Ok(piece)
    }

    /// Whether there is none left.
    pub(crate) fn spent(&self) -> Option<Spent> {
        let elapsed = self.cx.monotonic() - self.began;
        if elapsed > self.wall || elapsed - self.waited.get() > self.computing {
            return Some(Spent::Time);
        }
        // Handing over what was read is the guest's own time in the host's eyes.
        (self.calls.get() > CALLS).then_some(Spent::Calls)
    }
}
