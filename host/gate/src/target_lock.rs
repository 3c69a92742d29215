//! Locks a target, so that only one plan at a time changes it: within this server, among all servers of this account,
//! and among all servers that reach the target, under any name.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

use super::resource_locks;
use host_base::account;
use host_base::problem::{Category, Problem};
use host_target::Target;
use host_target::lock::{Lock, LockOutcome, wait_for};

/// The time to wait for another server's plan. Clients give up after a minute, and are to be told before that who holds
/// the lock.
const PATIENCE: Duration = Duration::from_secs(45);
/// The directory on the target that servers of other accounts and machines lock. A lock needs only read access, so
/// every account can take it. The directory is root's, so nobody can replace it. It is on every target, stays the same
/// until the next boot, and isn't shared between a container and its host. An account of the target could hold the lock
/// to be in the way. That changes nothing on the target, and the problem names the account. A directory that only root
/// can make would be worse: servers of ordinary accounts would have no common lock.
const LOCKED_ON_TARGET: &str = "/run";

/// The locks of all targets.
pub(super) struct TargetLocks {
    directory: Arc<dyn Fn() -> PathBuf + Send + Sync>,
    there: Arc<Path>,
    targets: Arc<Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>>,
}

/// The lock on one target, held until it is dropped.
pub struct TargetLock {
    _here: OwnedMutexGuard<()>,
    file: File,
    there: LockOnTarget,
}

/// The part of the lock that lies on the target, where the target has the directory.
struct LockOnTarget {
    path: Arc<Path>,
    lock: Option<Lock>,
}

impl Drop for TargetLock {
    /// Unlocks the file explicitly. Closing it isn't enough: a child process that is being started shares the file
    /// until it runs its program.
    fn drop(&mut self) {
        _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// The target lock of one call, if it has one. The call releases it while it waits for a confirmation.
#[derive(Clone, Default)]
pub struct TargetLockSlot(Arc<Mutex<Option<TargetLock>>>);

impl TargetLockSlot {
    /// Whether the call holds the lock.
    pub fn is_held(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Keeps the lock until it is released.
    pub fn hold(&self, target_lock: TargetLock) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(target_lock);
    }

    /// Takes the part on the target again where a lost connection has released it. The result is a problem where
    /// somebody else has taken it meanwhile.
    pub async fn renew(&self, target: &Target) -> Result<(), Problem> {
        let lost = {
            let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let there = held.as_mut().map(|target_lock| &mut target_lock.there);
            there.and_then(|there| there.lock.take_if(|lock| lock.is_lost()).map(|_| there.path.clone()))
        };
        let Some(path) = lost else { return Ok(()) };
        let lock = lock_on_target(target, &path, PATIENCE).await?;
        if let Some(target_lock) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            target_lock.there.lock = lock;
        }
        Ok(())
    }

    /// Releases the lock, so that others may change the target.
    pub fn release(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl TargetLocks {
    /// The locks that all servers of this account share, whatever their home directories. The lock files lie in the
    /// account's runtime directory, or else in the directory of the log. The directory is chosen for each lock: the
    /// system removes the runtime directory with the account's last session, and a server may run longer. Two servers
    /// that choose different directories still share the lock on the target.
    pub(super) fn of_this_account(log: &Path) -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let log = log.join("targets");
        let directory = move || account::runtime_directory(uid).unwrap_or_else(|| log.clone());
        Self {
            directory: Arc::new(directory),
            there: Path::new(LOCKED_ON_TARGET).into(),
            targets: Arc::default(),
        }
    }

    /// Locks whose files lie in this directory, apart from those of the account's servers.
    pub(super) fn within(directory: PathBuf) -> Self {
        Self {
            directory: Arc::new(move || directory.clone()),
            there: Path::new(LOCKED_ON_TARGET).into(),
            targets: Arc::default(),
        }
    }

    /// Locks with their files in this directory, which also stands for the directory on the target.
    #[cfg(any(test, feature = "test-support"))]
    #[allow(clippy::unwrap_used)]
    pub(super) fn new(directory: PathBuf) -> Self {
        std::fs::create_dir_all(&directory).unwrap();
        let there = directory.clone().into();
        Self { there, directory: Arc::new(move || directory.clone()), targets: Arc::default() }
    }

    /// Waits for the target, and locks it.
    pub(super) async fn acquire(&self, target: &Target) -> Result<TargetLock, Problem> {
        let name = target.name();
        let known = {
            let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
            targets.entry(name.to_owned()).or_default().clone()
        };
        let here = known.lock_owned().await;
        let path = (self.directory)().join(format!("{name}.lock"));
        // The file lies beside the log. Where it can't be opened, nothing can be recorded either.
        let wrong = |error: std::io::Error| {
            let message = format!("the lock file {} can't be opened: {error}", path.display());
            Problem::new("AUDIT_UNAVAILABLE", Category::Resource, message)
                .remedy("Free space, or mend what the message names")
        };
        let file = open(&path).map_err(wrong)?;
        let until = Instant::now() + PATIENCE;
        if !wait_for(&file, until).await.map_err(|error| wrong(error.into()))? {
            let message = format!("another server of this account is changing {name}");
            return Err(Problem::new("RESOURCE_LOCKED", Category::Lock, message)
                .detail("lock_info", serde_json::json!({"resource": path.display().to_string()})));
        }
        let there = LockOnTarget { path: self.there.clone(), lock: None };
        // Dropping the value releases the local part where the target gives no answer.
        let mut target_lock = TargetLock { _here: here, file, there };
        let left = until.saturating_duration_since(Instant::now());
        target_lock.there.lock = lock_on_target(target, &self.there, left).await?;
        Ok(target_lock)
    }
}

/// Takes the lock on the target. None where the target has no such directory.
async fn lock_on_target(target: &Target, path: &Path, patience: Duration) -> Result<Option<Lock>, Problem> {
    match target.lock(path, patience).await? {
        LockOutcome::Taken(lock) => Ok(Some(lock)),
        LockOutcome::Unavailable(why) => {
            tracing::debug!(
                target = target.name(),
                why,
                "no lock on the target: plans of elsewhere aren't seen"
            );
            Ok(None)
        }
        LockOutcome::HeldByOther => {
            let resource = path.display().to_string();
            let message = format!("another server is changing {}", target.name());
            let holder =
                resource_locks::check(target, &[resource_locks::ResourceLock::File(resource.clone())], &[])
                    .await;
            let mut problem = holder.err().unwrap_or_else(|| {
                let resource = serde_json::json!({"resource": resource});
                Problem::new("RESOURCE_LOCKED", Category::Lock, "somebody else held its lock")
                    .detail("lock_info", resource)
            });
            problem.message = format!("{message}: {}", problem.message);
            Err(problem)
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
    use host_target::Overrides;
    use host_target::test_connection::{Fate, TestConnection};

    fn target() -> Target {
        Target::local(Overrides::default())
    }

    #[tokio::test]
    async fn a_target_is_one_plans_alone() {
        let directory = tempfile::tempdir().unwrap();
        let target_locks = TargetLocks::new(directory.path().join("locks"));
        let first = target_locks.acquire(&target()).await.unwrap();
        assert!(target_locks.acquire(&target()).now_or_never().is_none());
        drop(first);
        target_locks.acquire(&target()).await.unwrap();
    }

    #[tokio::test]
    async fn another_server_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        // Each has its own table of targets, like another process.
        let (one, two) =
            (TargetLocks::new(directory.path().into()), TargetLocks::new(directory.path().into()));
        let here = target();
        let first = one.acquire(&here).await.unwrap();
        let (second, ()) = tokio::join!(two.acquire(&here), async { drop(first) });
        second.unwrap();
    }

    #[tokio::test]
    async fn a_server_outlives_the_directory_of_its_accounts_sessions() {
        let parent = tempfile::tempdir().unwrap();
        let [runtime, log] = ["runtime", "log"].map(|name| parent.path().join(name));
        std::fs::create_dir(&runtime).unwrap();
        let directory = {
            let [runtime, log] = [runtime.clone(), log.clone()];
            move || if runtime.is_dir() { runtime.clone() } else { log.clone() }
        };
        let target_locks =
            TargetLocks { directory: Arc::new(directory), ..TargetLocks::new(parent.path().into()) };
        drop(target_locks.acquire(&target()).await.unwrap());
        assert!(runtime.join("localhost.lock").exists());
        std::fs::remove_dir_all(&runtime).unwrap();
        drop(target_locks.acquire(&target()).await.unwrap());
        assert!(log.join("localhost.lock").exists());
        assert!(!runtime.exists());
    }

    /// Two servers that share only the lock on the target.
    fn apart(there: &Path) -> [TargetLocks; 2] {
        ["one", "two"].map(|name| TargetLocks { there: there.into(), ..TargetLocks::new(there.join(name)) })
    }

    #[tokio::test]
    async fn a_server_of_another_account_or_machine_is_waited_for_as_well() {
        let there = tempfile::tempdir().unwrap();
        let [one, two] = apart(there.path());
        let here = target();
        let first = one.acquire(&here).await.unwrap();
        assert!(two.acquire(&here).now_or_never().is_none());
        let (second, ()) = tokio::join!(two.acquire(&here), async { drop(first) });
        second.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn who_keeps_the_lock_for_long_is_named() {
        let there = tempfile::tempdir().unwrap();
        let [one, two] = apart(there.path());
        let here = target();
        let _first = one.acquire(&here).await.unwrap();
        let refused = two.acquire(&here).await.err().unwrap();
        assert_eq!((refused.code.as_str(), refused.category), ("RESOURCE_LOCKED", Category::Lock));
        assert!(refused.message.starts_with("another server is changing localhost: "), "{refused}");
        assert!(refused.details.contains_key("lock_info"));
    }

    #[tokio::test]
    async fn where_a_target_has_no_such_lock_the_servers_of_this_account_take_turns_all_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let there = directory.path().join("none");
        let target_locks =
            TargetLocks { there: there.into(), ..TargetLocks::new(directory.path().join("locks")) };
        let _first = target_locks.acquire(&target()).await.unwrap();
        assert!(target_locks.acquire(&target()).now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_lock_that_went_with_the_connection_is_taken_anew() {
        let there = tempfile::tempdir().unwrap();
        let [one, two] = apart(there.path());
        let line = TestConnection::new(|_| Fate::Answers);
        let (near, far) = (target(), Target::over_test_connection(&line));
        let held = TargetLockSlot::default();
        held.hold(one.acquire(&far).await.unwrap());
        held.renew(&far).await.unwrap();
        assert!(two.acquire(&near).now_or_never().is_none());
        line.lose();
        held.renew(&far).await.unwrap();
        assert!(two.acquire(&near).now_or_never().is_none(), "it is held again");
        held.release();
        two.acquire(&near).await.unwrap();
    }
}
