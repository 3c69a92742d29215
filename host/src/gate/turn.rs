//! One plan at a time on a target: within this server, and among all servers of this account.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

use crate::account;
use crate::problem::{Category, Problem};

/// How long another server's plan is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at it: flock has no way to be told without a thread that waits for ever.
const AGAIN: Duration = Duration::from_millis(50);

/// The targets' turns.
pub(super) struct Turns {
    directory: Arc<Path>,
    targets: Arc<Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>>,
}

/// A target that is this plan's alone, until it is dropped.
pub struct Turn {
    _here: OwnedMutexGuard<()>,
    file: File,
}

impl Drop for Turn {
    /// Said, and not only closed: a child that is being started has this file too, until it is another program.
    fn drop(&mut self) {
        _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// A call's turn, where it has one: it gives it up while somebody is asked.
#[derive(Clone, Default)]
pub struct Held(Arc<Mutex<Option<Turn>>>);

impl Held {
    /// From now on.
    pub fn hold(&self, turn: Turn) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(turn);
    }

    /// Others may change the target from now on.
    pub fn give_up(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Turns {
    /// Of the servers of this account, whatever their homes: where the system keeps what is gone after a boot, or else in
    /// the directory of the log.
    pub(super) fn of_this_account(log: &Path) -> Self {
        let uid = rustix::process::geteuid().as_raw();
        Self::new(account::runtime_directory(uid).unwrap_or_else(|| log.join("targets")))
    }

    /// With the files by which servers know of each other in this directory.
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory: directory.into(), targets: Arc::default() }
    }

    /// Waits for the target of this name.
    pub(super) async fn take(&self, target: &str) -> Result<Turn, Problem> {
        let known = {
            let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
            targets.entry(target.to_owned()).or_default().clone()
        };
        let here = known.lock_owned().await;
        let path = self.directory.join(format!("{target}.lock"));
        // It lies beside the log: where it can't be had, nothing can be put on record either.
        let wrong = |error: std::io::Error| {
            let message = format!("plans take turns by {}, which can't be opened: {error}", path.display());
            Problem::new("AUDIT_UNAVAILABLE", Category::Resource, message)
                .remedy("Free space, or mend what the message names")
        };
        let file = open(&path).map_err(wrong)?;
        let until = Instant::now() + PATIENCE;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Turn { _here: here, file }),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => {
                    tokio::time::sleep(AGAIN).await
                }
                Err(Errno::WOULDBLOCK) => {
                    let message = format!("another server of this account is changing {target}");
                    return Err(Problem::new("RESOURCE_LOCKED", Category::Lock, message)
                        .detail("lock_info", serde_json::json!({"resource": path.display().to_string()})));
                }
                Err(error) => return Err(wrong(error.into())),
            }
        }
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_target_is_one_plans_alone_and_another_target_is_free() {
        let directory = tempfile::tempdir().unwrap();
        let turns = Turns::new(directory.path().join("locks"));
        let first = turns.take("a").await.unwrap();
        assert!(turns.take("a").now_or_never().is_none());
        let _other = turns.take("b").await.unwrap();
        drop(first);
        turns.take("a").await.unwrap();
    }

    #[tokio::test]
    async fn another_server_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        // Each has its own table of targets, as another process has.
        let (one, two) = (Turns::new(directory.path().into()), Turns::new(directory.path().into()));
        let first = one.take("a").await.unwrap();
        let (second, ()) = tokio::join!(two.take("a"), async { drop(first) });
        second.unwrap();
    }
}
