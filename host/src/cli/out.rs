//! Where answers go.

use std::io::{self, ErrorKind, StdoutLock, Write};

/// Stdout. Whoever reads it may have seen enough (`| head`): the rest goes nowhere, and the command ends as it would have.
pub(super) fn out() -> Out {
    Out(io::stdout().lock())
}

/// See [`out`].
pub(super) struct Out(StdoutLock<'static>);

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_closed(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_closed(self.0.flush(), ())
    }
}

fn unless_closed<T>(done: io::Result<T>, instead: T) -> io::Result<T> {
    match done {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(instead),
        done => done,
    }
}
