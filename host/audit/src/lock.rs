//! One writer at a time, of all processes: an exclusive lock on a file beside the log. A process that was stopped while
//! it held the lock must not stop all others, so the wait has an end.

use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::AuditError;
use super::files::{self, For, LOCK, Stamp};

/// Held until it is dropped.
pub struct Held(#[expect(dead_code, reason = "the lock lasts as long as the open file")] File);

/// Whose lock it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// A writer's: one at a time.
    Exclusive,
    /// A reader's: no writer meanwhile.
    Shared,
}

/// Takes the lock of a directory. The file is opened each time, so that a thread shuts out the others of its process
/// too, and is looked at again: a lock on a file that somebody removed shuts out nobody.
pub fn take(directory: &Path, share: Share, deadline: Instant) -> Result<Held, AuditError> {
    let path = directory.join(LOCK);
    let (purpose, operation) = match share {
        Share::Exclusive => (For::Writing, FlockOperation::NonBlockingLockExclusive),
        Share::Shared => (For::Reading, FlockOperation::NonBlockingLockShared),
    };
    until(deadline, || {
        let file = files::open(&path, purpose)?;
        match flock(&file, operation) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(None),
            Err(errno) => return Err(AuditError::io("lock", &path, errno.into())),
        }
        let held = file.metadata().map_err(|source| AuditError::io("lock", &path, source))?;
        let is_that = files::stamp(&path)?.is_some_and(|named| named.same_file(&Stamp::of(&held)));
        Ok(is_that.then_some(Held(file)))
    })?
    .ok_or(AuditError::Locked { path })
}

/// Takes a mutex within the same time: whoever holds it may be waiting for the file's lock.
pub fn enter<'a, T>(
    mutex: &'a Mutex<T>,
    directory: &Path,
    deadline: Instant,
) -> Result<MutexGuard<'a, T>, AuditError> {
    until(deadline, || match mutex.try_lock() {
        Ok(guard) => Ok(Some(guard)),
        // What it guards is only a memory of what the file says, and is compared with the file.
        Err(TryLockError::Poisoned(poisoned)) => Ok(Some(poisoned.into_inner())),
        Err(TryLockError::WouldBlock) => Ok(None),
    })?
    .ok_or_else(|| AuditError::Locked { path: directory.join(LOCK) })
}

/// Tries until it succeeds, fails, or the time is over; at first after a few microseconds, as long as one write takes.
fn until<T>(
    deadline: Instant,
    mut attempt: impl FnMut() -> Result<Option<T>, AuditError>,
) -> Result<Option<T>, AuditError> {
    let mut pause = Duration::from_micros(20);
    loop {
        if let Some(got) = attempt()? {
            return Ok(Some(got));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_held_is_not_waited_for_beyond_the_deadline() {
        let directory = tempfile::tempdir().unwrap();
        let held = take(directory.path(), Share::Exclusive, Instant::now()).unwrap();
        for share in [Share::Exclusive, Share::Shared] {
            let error = take(directory.path(), share, Instant::now()).err().unwrap();
            assert!(matches!(error, AuditError::Locked { .. }), "{error}");
        }
        drop(held);
        assert!(take(directory.path(), Share::Exclusive, Instant::now()).is_ok());
    }

    #[test]
    fn a_lock_on_a_removed_file_shuts_out_nobody_so_it_is_taken_anew() {
        let directory = tempfile::tempdir().unwrap();
        let _old = take(directory.path(), Share::Exclusive, Instant::now()).unwrap();
        std::fs::remove_file(directory.path().join(LOCK)).unwrap();
        let _new = take(directory.path(), Share::Exclusive, Instant::now()).unwrap();
        assert!(take(directory.path(), Share::Exclusive, Instant::now()).is_err());
    }

    #[test]
    fn a_mutex_that_is_held_is_not_waited_for_beyond_the_deadline() {
        let mutex = Mutex::new(());
        let held = mutex.lock().unwrap();
        assert!(enter(&mutex, Path::new("/x"), Instant::now()).is_err());
        drop(held);
        assert!(enter(&mutex, Path::new("/x"), Instant::now()).is_ok());
    }
}
