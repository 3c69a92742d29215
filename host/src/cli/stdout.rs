//! Standard output, for answers.

use std::io::{self, ErrorKind, StdoutLock, Write};

/// Standard output. Where its reader has closed it (`| head`), the rest is dropped, and the command ends as it would have.
pub(super) fn stdout() -> Stdout {
    Stdout(io::stdout().lock())
}

/// See [`stdout`].
pub(super) struct Stdout(StdoutLock<'static>);

impl Write for Stdout {
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
