//! A lock that lies on the target: whoever administers it, from wherever, finds it there. It is the kernel's own, flock(2),
//! so that it goes with whoever holds it; across SSH that is a process there that lasts as long as the connection.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use tokio::time::Instant;

use host_base::problem::Problem;

/// Between two looks at it: flock has no way to be told without a thread that waits for ever.
const AGAIN: Duration = Duration::from_millis(50);

/// A lock that is held until this is dropped, or the connection goes.
pub struct Lock {
    holder: Holder,
    #[cfg(any(test, feature = "test-support"))]
    line: Option<(std::sync::Arc<super::fragile::Line>, u64)>,
}

/// Holds a lock on another machine until it is dropped.
pub(super) trait Holds: Send + Sync {
    /// Whether the connection is gone, and the lock with it.
    fn is_lost(&self) -> bool;
}

enum Holder {
    Here(File),
    There(Box<dyn Holds>),
}

/// What became of asking for a lock.
pub enum Asked {
    /// It is held.
    Taken(Lock),
    /// Somebody else has it, and kept it.
    Kept,
    /// The target has no such locks; why.
    Unavailable(String),
}

impl Lock {
    /// Whether somebody else may have it by now.
    pub fn is_lost(&self) -> bool {
        #[cfg(any(test, feature = "test-support"))]
        if let Some((line, connection)) = &self.line {
            return !line.is_still(*connection);
        }
        match &self.holder {
            Holder::Here(_) => false,
            Holder::There(held) => held.is_lost(),
        }
    }

    fn by(holder: Holder) -> Self {
        Self {
            holder,
            #[cfg(any(test, feature = "test-support"))]
            line: None,
        }
    }

    pub(super) fn there(held: impl Holds + 'static) -> Self {
        Self::by(Holder::There(Box::new(held)))
    }

    /// One that goes with a connection of a test's.
    #[cfg(any(test, feature = "test-support"))]
    pub(super) fn behind(mut self, line: &std::sync::Arc<super::fragile::Line>, connection: u64) -> Self {
        self.line = Some((line.clone(), connection));
        self
    }
}

impl Drop for Lock {
    /// Said, and not only closed: a child that is being started has this file too, until it is another program.
    fn drop(&mut self) {
        if let Holder::Here(file) = &self.holder {
            _ = flock(file, FlockOperation::Unlock);
        }
    }
}

/// On this machine, waited for at most so long.
pub(super) async fn here(path: &Path, patience: Duration) -> Result<Asked, Problem> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) => return Ok(Asked::Unavailable(format!("{}: {error}", path.display()))),
    };
    Ok(match wait(&file, Instant::now() + patience).await {
        Ok(true) => Asked::Taken(Lock::by(Holder::Here(file))),
        Ok(false) => Asked::Kept,
        Err(error) => Asked::Unavailable(format!("{}: {error}", path.display())),
    })
}

/// Whether the lock of an open file could be had until then.
pub async fn wait(file: &File, until: Instant) -> Result<bool, Errno> {
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => {
                tokio::time::sleep(AGAIN).await;
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}
