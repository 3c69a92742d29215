//! A lock that lies on the target, where every administrator finds it, from whichever machine. It is a lock of the
//! kernel, flock(2), and ends with the process that holds it. Across SSH that process lasts as long as the connection.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use tokio::time::Instant;

use host_base::problem::Problem;

/// The time between two attempts. flock can only wait without them in a thread of its own.
const PAUSE: Duration = Duration::from_millis(50);

/// A lock that is held until this is dropped or the connection is lost.
pub struct Lock {
    holder: Holder,
    #[cfg(any(test, feature = "test-support"))]
    test_connection: Option<(std::sync::Arc<super::test_connection::TestConnection>, u64)>,
}

/// Holds a lock on another machine until it is dropped.
pub(super) trait RemoteHold: Send + Sync {
    /// Says whether the connection, and the lock with it, is lost.
    fn is_lost(&self) -> bool;
}

enum Holder {
    Local(File),
    Remote(Box<dyn RemoteHold>),
}

/// The outcome of asking for a lock.
pub enum LockOutcome {
    /// The lock is held.
    Taken(Lock),
    /// Another process held the lock all the time.
    HeldByOther,
    /// The target has no such locks, for this reason.
    Unavailable(String),
}

impl Lock {
    /// Says whether another process may have the lock by now.
    pub fn is_lost(&self) -> bool {
        #[cfg(any(test, feature = "test-support"))]
        if let Some((test_connection, connection)) = &self.test_connection {
            return !test_connection.is_still(*connection);
        }
        match &self.holder {
            Holder::Local(_) => false,
            Holder::Remote(held) => held.is_lost(),
        }
    }

    fn with_holder(holder: Holder) -> Self {
        Self {
            holder,
            #[cfg(any(test, feature = "test-support"))]
            test_connection: None,
        }
    }

    pub(super) fn remote(held: impl RemoteHold + 'static) -> Self {
        Self::with_holder(Holder::Remote(Box::new(held)))
    }

    /// Ties the lock to a connection of a test.
    #[cfg(any(test, feature = "test-support"))]
    pub(super) fn over_test_connection(
        mut self,
        test_connection: &std::sync::Arc<super::test_connection::TestConnection>,
        connection: u64,
    ) -> Self {
        self.test_connection = Some((test_connection.clone(), connection));
        self
    }
}

impl Drop for Lock {
    /// Unlocks explicitly: closing the file isn't enough, because a child that is just being started holds it too.
    fn drop(&mut self) {
        if let Holder::Local(file) = &self.holder {
            _ = flock(file, FlockOperation::Unlock);
        }
    }
}

/// Takes a lock on this machine, and waits for it at most for `patience`.
pub(super) async fn take_local(path: &Path, patience: Duration) -> Result<LockOutcome, Problem> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) => return Ok(LockOutcome::Unavailable(format!("{}: {error}", path.display()))),
    };
    Ok(match wait_for(&file, Instant::now() + patience).await {
        Ok(true) => LockOutcome::Taken(Lock::with_holder(Holder::Local(file))),
        Ok(false) => LockOutcome::HeldByOther,
        Err(error) => LockOutcome::Unavailable(format!("{}: {error}", path.display())),
    })
}

/// Waits for the lock of an open file until this moment. Returns whether it was taken.
pub async fn wait_for(file: &File, until: Instant) -> Result<bool, Errno> {
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}
