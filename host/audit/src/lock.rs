//! The lock of a log: a `flock` on a file beside it lets one process at a time write. The wait for it is bounded, because a
//! process that is stopped while it holds the lock must not stop all others.

use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::AuditError;
use super::files::{self, LOCK_FILE, OpenMode, Stamp};

/// The lock, which is held until this value is dropped.
pub struct LockGuard(#[expect(dead_code, reason = "the lock lasts as long as the open file")] File);

/// The kind of lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// A writer's lock, which excludes writers and readers.
    Exclusive,
    /// A reader's lock, which excludes writers.
    Shared,
}

/// Takes the lock of a directory. It opens the file anew each time, so that the lock also excludes other threads of this
/// process. It then checks that the file still has its name, because a lock on a removed file excludes nobody.
pub fn acquire(directory: &Path, share: LockMode, deadline: Instant) -> Result<LockGuard, AuditError> {
    let path = directory.join(LOCK_FILE);
    let (purpose, operation) = match share {
        LockMode::Exclusive => (OpenMode::ReadWrite, FlockOperation::NonBlockingLockExclusive),
        LockMode::Shared => (OpenMode::Read, FlockOperation::NonBlockingLockShared),
    };
    retry_until(deadline, || {
        let file = files::open(&path, purpose)?;
        match flock(&file, operation) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(None),
            Err(errno) => return Err(AuditError::io("lock", &path, errno.into())),
        }
        let held = file.metadata().map_err(|source| AuditError::io("lock", &path, source))?;
        let is_that = files::stamp(&path)?.is_some_and(|named| named.same_file(&Stamp::of(&held)));
        Ok(is_that.then_some(LockGuard(file)))
    })?
    .ok_or(AuditError::Locked { path })
}

/// Locks a mutex before the deadline. The thread that holds it may be waiting for the lock of the file.
pub fn lock_mutex<'a, T>(
    mutex: &'a Mutex<T>,
    directory: &Path,
    deadline: Instant,
) -> Result<MutexGuard<'a, T>, AuditError> {
    retry_until(deadline, || match mutex.try_lock() {
        Ok(guard) => Ok(Some(guard)),
        // A poisoned value is safe to use: it only caches the file's state, and the caller compares it with the file.
        Err(TryLockError::Poisoned(poisoned)) => Ok(Some(poisoned.into_inner())),
        Err(TryLockError::WouldBlock) => Ok(None),
    })?
    .ok_or_else(|| AuditError::Locked { path: directory.join(LOCK_FILE) })
}

/// Repeats an attempt until it succeeds, fails, or the deadline has passed. The first pause is as long as one write takes.
fn retry_until<T>(
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
        let held = acquire(directory.path(), LockMode::Exclusive, Instant::now()).unwrap();
        for share in [LockMode::Exclusive, LockMode::Shared] {
            let error = acquire(directory.path(), share, Instant::now()).err().unwrap();
            assert!(matches!(error, AuditError::Locked { .. }), "{error}");
        }
        drop(held);
        assert!(acquire(directory.path(), LockMode::Exclusive, Instant::now()).is_ok());
    }

    #[test]
    fn a_lock_on_a_removed_file_shuts_out_nobody_so_it_is_taken_anew() {
        let directory = tempfile::tempdir().unwrap();
        let _old = acquire(directory.path(), LockMode::Exclusive, Instant::now()).unwrap();
        std::fs::remove_file(directory.path().join(LOCK_FILE)).unwrap();
        let _new = acquire(directory.path(), LockMode::Exclusive, Instant::now()).unwrap();
        assert!(acquire(directory.path(), LockMode::Exclusive, Instant::now()).is_err());
    }

    #[test]
    fn a_mutex_that_is_held_is_not_waited_for_beyond_the_deadline() {
        let mutex = Mutex::new(());
        let held = mutex.lock().unwrap();
        assert!(lock_mutex(&mutex, Path::new("/x"), Instant::now()).is_err());
        drop(held);
        assert!(lock_mutex(&mutex, Path::new("/x"), Instant::now()).is_ok());
    }
}
