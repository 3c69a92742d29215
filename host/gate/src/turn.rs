//! One plan at a time on a target: within this server, among all servers of this account, and among all that reach the
//! target from wherever, whatever they call it.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

use super::locks;
use host_base::account;
use host_base::problem::{Category, Problem};
use host_target::Target;
use host_target::lock::{Asked, Lock, wait};

/// How long another server's plan is waited for: clients give up after a minute, and are to be told who it is.
const PATIENCE: Duration = Duration::from_secs(45);
/// What servers that reach a target from elsewhere, or as another account, know of each other by: a lock takes no more
/// than opening it for reading, so every account can take it; it is root's, so nobody can put another one in its place;
/// it is on every target, stays the same for as long as that is up, and isn't a container's host's. An account of the
/// target could hold it for nothing but to be in the way. That changes nothing on the target, is told with that account's
/// name, and is less than a place that only root could make, where the servers of ordinary accounts wouldn't meet.
const THERE: &str = "/run";

/// The targets' turns.
pub(super) struct Turns {
    directory: Arc<dyn Fn() -> PathBuf + Send + Sync>,
    there: Arc<Path>,
    targets: Arc<Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>>,
}

/// A target that is this plan's alone, until it is dropped.
pub struct Turn {
    _here: OwnedMutexGuard<()>,
    file: File,
    there: There,
}

/// The lock on the target, where it has such.
struct There {
    path: Arc<Path>,
    lock: Option<Lock>,
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
    /// Whether it has it.
    pub fn is_held(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// From now on.
    pub fn hold(&self, turn: Turn) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(turn);
    }

    /// The same after a connection that was lost and had back: what lies on the target is taken anew. A problem where
    /// somebody else has taken it meanwhile.
    pub async fn keep(&self, target: &Target) -> Result<(), Problem> {
        let lost = {
            let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let there = held.as_mut().map(|turn| &mut turn.there);
            there.and_then(|there| there.lock.take_if(|lock| lock.is_lost()).map(|_| there.path.clone()))
        };
        let Some(path) = lost else { return Ok(()) };
        let lock = take_there(target, &path, PATIENCE).await?;
        if let Some(turn) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            turn.there.lock = lock;
        }
        Ok(())
    }

    /// Others may change the target from now on.
    pub fn give_up(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Turns {
    /// Of the servers of this account, whatever their homes: where the system keeps what is gone after a boot, or else in
    /// the directory of the log. Which of them is asked anew each time: the system takes an account's away with its last
    /// session, and a server may be there for longer. Two that ask at either side of that know of each other by what lies
    /// on the target.
    pub(super) fn of_this_account(log: &Path) -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let log = log.join("targets");
        let directory = move || account::runtime_directory(uid).unwrap_or_else(|| log.clone());
        Self { directory: Arc::new(directory), there: Path::new(THERE).into(), targets: Arc::default() }
    }

    /// With the files by which servers know of each other in this directory, and the directory itself for what lies on
    /// the target.
    #[cfg(any(test, feature = "test-support"))]
    #[allow(clippy::unwrap_used)]
    pub(super) fn new(directory: PathBuf) -> Self {
        std::fs::create_dir_all(&directory).unwrap();
        let there = directory.clone().into();
        Self { there, directory: Arc::new(move || directory.clone()), targets: Arc::default() }
    }

    /// Waits for the target.
    pub(super) async fn take(&self, target: &Target) -> Result<Turn, Problem> {
        let name = target.name();
        let known = {
            let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
            targets.entry(name.to_owned()).or_default().clone()
        };
        let here = known.lock_owned().await;
        let path = (self.directory)().join(format!("{name}.lock"));
        // It lies beside the log: where it can't be had, nothing can be put on record either.
        let wrong = |error: std::io::Error| {
            let message = format!("plans take turns by {}, which can't be opened: {error}", path.display());
            Problem::new("AUDIT_UNAVAILABLE", Category::Resource, message)
                .remedy("Free space, or mend what the message names")
        };
        let file = open(&path).map_err(wrong)?;
        let until = Instant::now() + PATIENCE;
        if !wait(&file, until).await.map_err(|error| wrong(error.into()))? {
            let message = format!("another server of this account is changing {name}");
            return Err(Problem::new("RESOURCE_LOCKED", Category::Lock, message)
                .detail("lock_info", serde_json::json!({"resource": path.display().to_string()})));
        }
        let there = There { path: self.there.clone(), lock: None };
        // Given back by itself where the target can't be asked.
        let mut turn = Turn { _here: here, file, there };
        let left = until.saturating_duration_since(Instant::now());
        turn.there.lock = take_there(target, &self.there, left).await?;
        Ok(turn)
    }
}

/// The lock on the target; nothing where it has none.
async fn take_there(target: &Target, path: &Path, patience: Duration) -> Result<Option<Lock>, Problem> {
    match target.lock(path, patience).await? {
        Asked::Taken(lock) => Ok(Some(lock)),
        Asked::Unavailable(why) => {
            tracing::debug!(
                target = target.name(),
                why,
                "no lock on the target: plans of elsewhere aren't seen"
            );
            Ok(None)
        }
        Asked::Kept => {
            let resource = path.display().to_string();
            let message = format!("another server is changing {}", target.name());
            let holder = locks::check(target, &[locks::Lock::File(resource.clone())], &[]).await;
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
    use host_target::fragile::{Fate, Line};

    fn target() -> Target {
        Target::local(Overrides::default())
    }

    #[tokio::test]
    async fn a_target_is_one_plans_alone() {
        let directory = tempfile::tempdir().unwrap();
        let turns = Turns::new(directory.path().join("locks"));
        let first = turns.take(&target()).await.unwrap();
        assert!(turns.take(&target()).now_or_never().is_none());
        drop(first);
        turns.take(&target()).await.unwrap();
    }

    #[tokio::test]
    async fn another_server_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        // Each has its own table of targets, as another process has.
        let (one, two) = (Turns::new(directory.path().into()), Turns::new(directory.path().into()));
        let here = target();
        let first = one.take(&here).await.unwrap();
        let (second, ()) = tokio::join!(two.take(&here), async { drop(first) });
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
        let turns = Turns { directory: Arc::new(directory), ..Turns::new(parent.path().into()) };
        drop(turns.take(&target()).await.unwrap());
        assert!(runtime.join("localhost.lock").exists());
        std::fs::remove_dir_all(&runtime).unwrap();
        drop(turns.take(&target()).await.unwrap());
        assert!(log.join("localhost.lock").exists());
        assert!(!runtime.exists());
    }

    /// Two servers that know of each other by what lies on the target only.
    fn apart(there: &Path) -> [Turns; 2] {
        ["one", "two"].map(|name| Turns { there: there.into(), ..Turns::new(there.join(name)) })
    }

    #[tokio::test]
    async fn a_server_of_another_account_or_machine_is_waited_for_as_well() {
        let there = tempfile::tempdir().unwrap();
        let [one, two] = apart(there.path());
        let here = target();
        let first = one.take(&here).await.unwrap();
        assert!(two.take(&here).now_or_never().is_none());
        let (second, ()) = tokio::join!(two.take(&here), async { drop(first) });
        second.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn who_keeps_the_lock_for_long_is_named() {
        let there = tempfile::tempdir().unwrap();
        let [one, two] = apart(there.path());
        let here = target();
        let _first = one.take(&here).await.unwrap();
        let refused = two.take(&here).await.err().unwrap();
        assert_eq!((refused.code.as_str(), refused.category), ("RESOURCE_LOCKED", Category::Lock));
        assert!(refused.message.starts_with("another server is changing localhost: "), "{refused}");
        assert!(refused.details.contains_key("lock_info"));
    }

    #[tokio::test]
    async fn where_a_target_has_no_such_lock_the_servers_of_this_account_take_turns_all_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let there = directory.path().join("none");
        let turns = Turns { there: there.into(), ..Turns::new(directory.path().join("locks")) };
        let _first = turns.take(&target()).await.unwrap();
        assert!(turns.take(&target()).now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_lock_that_went_with_the_connection_is_taken_anew() {
        let there = tempfile::tempdir().unwrap();
        let [one, two] = apart(there.path());
        let line = Line::new(|_| Fate::Answers);
        let (near, far) = (target(), Target::behind(&line));
        let held = Held::default();
        held.hold(one.take(&far).await.unwrap());
        held.keep(&far).await.unwrap();
        assert!(two.take(&near).now_or_never().is_none());
        line.goes();
        held.keep(&far).await.unwrap();
        assert!(two.take(&near).now_or_never().is_none(), "it is held again");
        held.give_up();
        two.take(&near).await.unwrap();
    }
}
