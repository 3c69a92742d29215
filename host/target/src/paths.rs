//! Files and directories of a target: where paths lead, what is there, and what is in it.

use std::sync::Arc;

use super::entry::Trusted;
use super::resolve::{Last, Resolved};
use super::verbs::Verbs;
use super::{Machine, Target};
use host_base::Privilege;
use host_base::problem::{Category, Problem};
use host_capability::Access;

/// Paths of one question that commands look at: each is a line of theirs, and so is each directory above it.
const PATHS_BY_COMMANDS: usize = 1000;

/// What `stat` says, symlinks not followed.
#[derive(Clone, Debug, PartialEq)]
pub struct Metadata {
    /// Bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Name, or the number where it has none.
    pub owner: String,
    /// Name, or the number where it has none.
    pub group: String,
    /// Seconds since the epoch.
    pub modified_unix: i64,
    /// Hard links: above one, the same file has other names as well.
    pub links: u64,
    /// `st_dev` of the file system that it is on; with `inode`, which file it is.
    pub device: u64,
    /// Which file it is on its file system.
    pub inode: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Whether it is a symlink itself.
    pub is_symlink: bool,
}

/// What kind of thing is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symlink itself.
    Symlink,
    /// A device, a pipe or a socket.
    Other,
}

/// What is at a path, a link there not followed.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Of which kind.
    pub kind: Kind,
    /// The rest.
    pub metadata: Metadata,
}

/// Where a path is, links above its end followed.
#[derive(Clone, Debug)]
pub struct Located {
    /// Without links above its end.
    pub path: String,
    /// What is there; nothing, if nothing.
    pub found: Option<Found>,
}

/// A part of one file.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// Absolute.
    pub path: String,
    /// Negative: counted from the end.
    pub offset: i64,
    /// At most 1 MiB is given.
    pub max_bytes: u64,
}

/// Decides whether a path may be reached, given what was asked for and where symlinks led.
pub type PathCheck = dyn Fn(&str, &str) -> Result<(), Problem> + Send + Sync;

/// The same answer to all.
fn too_many<T>(paths: usize) -> Vec<Result<T, Problem>> {
    let message =
        format!("{paths} paths at once with another account's rights; at most {PATHS_BY_COMMANDS} are taken");
    let problem = Problem::new("TOO_MANY_PATHS", Category::Resource, message);
    (0..paths).map(|_| Err(problem.clone())).collect()
}

/// Who reaches a path, and who may be able to change where it leads.
enum Way {
    /// The account itself, with its own rights.
    Own(Trusted),
    /// Commands, with another's.
    Commands(Trusted),
}

impl Target {
    /// The file or directory that a path leads to; a problem where others than root, or this account besides, could change that.
    pub async fn safe_for(&self, path: &str, account: &str) -> Result<Option<Found>, Problem> {
        let (trusted, paths) = match account {
            "root" => (Trusted::Root, vec![path.to_owned()]),
            account => (Trusted::User(account.to_owned()), vec![path.to_owned()]),
        };
        let mut resolved = match &self.machine {
            Machine::Local(local) => local.resolve(paths, Last::Followed, trusted).await,
            // By `stat`: accounts have names there.
            Machine::Remote(remote) => remote.locate(paths, Last::Followed, trusted).await,
        };
        let resolved = resolved.pop().unwrap_or_else(|| Err(crate::ending::no_root()))?;
        Ok(resolved.unless_dangling(path)?.found())
    }

    /// Where paths lead, for a command that goes there with these rights; answers in the order given. A problem where
    /// a path could be made to lead elsewhere before the command does: see [`Trusted`].
    pub async fn resolve(&self, paths: Vec<String>, access: &Access) -> Vec<Result<Resolved, Problem>> {
        let resolved = match self.way(&access.privilege).await {
            Err(problem) => vec![Err(problem); paths.len()],
            Ok(Way::Own(trusted)) => match &self.machine {
                Machine::Local(local) => local.resolve(paths.clone(), Last::Followed, trusted).await,
                Machine::Remote(remote) => remote.resolve(paths.clone(), Last::Followed, trusted).await,
            },
            Ok(Way::Commands(_)) if paths.len() > PATHS_BY_COMMANDS => return too_many(paths.len()),
            Ok(Way::Commands(trusted)) => {
                let asked: Vec<_> = paths.iter().map(String::as_str).collect();
                self.verbs(access, &trusted).resolve(&asked, Last::Followed).await
            }
        };
        let certain =
            |(asked, resolved): (&String, Result<Resolved, Problem>)| resolved?.unless_dangling(asked);
        paths.iter().zip(resolved).map(certain).collect()
    }

    /// Where files are that are to be written, and what is there; answers in the order given. A problem where somebody
    /// else could change a directory on the way: see [`Trusted`].
    pub async fn locate(&self, paths: Vec<String>, access: &Access) -> Vec<Result<Located, Problem>> {
        let resolved = match self.way(&access.privilege).await {
            Err(problem) => vec![Err(problem); paths.len()],
            Ok(Way::Own(trusted)) => match &self.machine {
                Machine::Local(local) => local.resolve(paths.clone(), Last::Kept, trusted).await,
                Machine::Remote(remote) => remote.locate(paths.clone(), Last::Kept, trusted).await,
            },
            Ok(Way::Commands(trusted)) => {
                let asked: Vec<_> = paths.iter().map(String::as_str).collect();
                self.verbs(access, &trusted).resolve(&asked, Last::Kept).await
            }
        };
        let located = |(asked, resolved): (&String, Result<Resolved, Problem>)| {
            let resolved = resolved?.unless_dangling(asked)?;
            Ok(Located { found: resolved.found(), path: resolved.path })
        };
        paths.iter().zip(resolved).map(located).collect()
    }

    /// Parts of files; answers in the order given.
    pub async fn read_all(
        &self,
        requests: Vec<ReadRequest>,
        access: &Access,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Vec<u8>, Problem>> {
        match self.way(&access.privilege).await {
            Err(problem) => vec![Err(problem); requests.len()],
            Ok(Way::Own(trusted)) => self.read_own(requests, trusted, check).await,
            Ok(Way::Commands(_)) if requests.len() > PATHS_BY_COMMANDS => too_many(requests.len()),
            Ok(Way::Commands(trusted)) => {
                let answers = self.verbs(access, &trusted).read_all(&requests, &*check).await;
                match access.would_do_without_sudo(&answers) {
                    true => self.read_own(requests, Trusted::Anyone, check).await,
                    false => answers,
                }
            }
        }
    }

    pub(super) async fn read_own(
        &self,
        requests: Vec<ReadRequest>,
        trusted: Trusted,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Vec<u8>, Problem>> {
        match &self.machine {
            Machine::Local(local) => local.read_all(requests, trusted, check).await,
            Machine::Remote(remote) => remote.read_all(requests, trusted, check).await,
        }
    }

    /// `None` for what doesn't exist.
    pub async fn stat_all(
        &self,
        paths: Vec<String>,
        access: &Access,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Option<Metadata>, Problem>> {
        match self.way(&access.privilege).await {
            Err(problem) => vec![Err(problem); paths.len()],
            Ok(Way::Own(trusted)) => self.stat_own(paths, trusted, check).await,
            Ok(Way::Commands(_)) if paths.len() > PATHS_BY_COMMANDS => too_many(paths.len()),
            Ok(Way::Commands(trusted)) => {
                let answers = self.verbs(access, &trusted).stat_all(&paths, &*check).await;
                match access.would_do_without_sudo(&answers) {
                    true => self.stat_own(paths, Trusted::Anyone, check).await,
                    false => answers,
                }
            }
        }
    }

    async fn stat_own(
        &self,
        paths: Vec<String>,
        trusted: Trusted,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Option<Metadata>, Problem>> {
        match &self.machine {
            Machine::Local(local) => local.stat_all(paths, trusted, check).await,
            Machine::Remote(remote) => remote.stat_all(paths, trusted, check).await,
        }
    }

    async fn list_own(
        &self,
        paths: Vec<String>,
        trusted: Trusted,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Vec<String>, Problem>> {
        match &self.machine {
            Machine::Local(local) => local.list_all(paths, trusted, check).await,
            Machine::Remote(remote) => remote.list_all(paths, trusted, check).await,
        }
    }

    /// The names in each directory, sorted.
    pub async fn list_all(
        &self,
        paths: Vec<String>,
        access: &Access,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Vec<String>, Problem>> {
        match self.way(&access.privilege).await {
            Err(problem) => vec![Err(problem); paths.len()],
            Ok(Way::Own(trusted)) => self.list_own(paths, trusted, check).await,
            Ok(Way::Commands(_)) if paths.len() > PATHS_BY_COMMANDS => too_many(paths.len()),
            Ok(Way::Commands(trusted)) => {
                let answers = self.verbs(access, &trusted).list_all(&paths, &*check).await;
                match access.would_do_without_sudo(&answers) {
                    true => self.list_own(paths, Trusted::Anyone, check).await,
                    false => answers,
                }
            }
        }
    }

    /// [`Target::list_all`] of one directory.
    pub async fn list_dir(
        &self,
        path: String,
        access: &Access,
        check: Arc<PathCheck>,
    ) -> Result<Vec<String>, Problem> {
        self.list_all(vec![path], access, check).await.remove(0)
    }

    async fn way(&self, privilege: &Privilege) -> Result<Way, Problem> {
        #[cfg(any(test, feature = "test-support"))]
        self.line.as_ref().map_or(Ok(0), |line| line.connected())?;
        // Of this machine it is known without being asked.
        let is_root = match &self.machine {
            Machine::Local(_) => rustix::process::geteuid().is_root(),
            Machine::Remote(_) => self.facts().await?.uid == 0,
        };
        Ok(match privilege {
            Privilege::User(name) => Way::Commands(Trusted::Owner(name.clone())),
            // Root's rights are in use then, whether they were asked for or not.
            _ if is_root => Way::Own(Trusted::Root),
            Privilege::Caller => Way::Own(Trusted::Anyone),
            Privilege::Root => Way::Commands(Trusted::Root),
            Privilege::RootIfAvailable if self.facts().await?.root_available() => {
                Way::Commands(Trusted::Root)
            }
            Privilege::RootIfAvailable => Way::Own(Trusted::Anyone),
        })
    }

    fn verbs<'a>(&'a self, access: &'a Access, trusted: &'a Trusted) -> Verbs<'a, Self> {
        Verbs { runner: self, access, trusted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Overrides;

    #[tokio::test]
    async fn so_many_paths_that_commands_would_look_at_them_for_ever_are_refused_at_once() {
        let target = Target::local(Overrides::default());
        let access = Access { privilege: Privilege::User("nobody".into()), verbs: Vec::new() };
        let paths = vec!["/srv/x".to_owned(); PATHS_BY_COMMANDS + 1];
        let code = |problem: Problem| problem.code;
        let resolved =
            target.resolve(paths.clone(), &access).await.into_iter().map(|one| code(one.unwrap_err()));
        let check: Arc<PathCheck> = Arc::new(|_, _| Ok(()));
        let stat = target.stat_all(paths.clone(), &access, check.clone()).await;
        let requests = paths.iter().map(|path| ReadRequest { path: path.clone(), offset: 0, max_bytes: 1 });
        let read = target.read_all(requests.collect(), &access, check).await;
        let all: Vec<String> = resolved
            .chain(stat.into_iter().map(|one| code(one.unwrap_err())))
            .chain(read.into_iter().map(|one| code(one.unwrap_err())))
            .collect();
        assert_eq!(all.len(), 3 * paths.len());
        assert!(all.iter().all(|code| code == "TOO_MANY_PATHS"));
    }
}
