//! Files and directories of a target: where paths lead, what is there, and what is in it.

use std::sync::Arc;

use super::account::Account;
use super::entry::Trusted;
use super::file_commands::FileCommands;
use super::files;
use super::local::{READ_BYTES, read_within};
use super::resolve::{LastLink, Resolved, resolve};
use super::{Machine, Target, rights};
use host_base::Privilege;
use host_base::problem::{Category, Problem};
use host_capability::Access;

/// The most paths of one question that commands look at. Each path is a line of their output, and so is each directory
/// above it.
const PATHS_BY_COMMANDS: usize = 1000;

/// The result of `stat`. Symlinks are not followed.
#[derive(Clone, Debug, PartialEq)]
pub struct Metadata {
    /// The size in bytes.
    pub size: u64,
    /// The permission bits.
    pub mode: u32,
    /// The owner's name, or the user id where it has none.
    pub owner: String,
    /// The group's name, or the group id where it has none.
    pub group: String,
    /// The time of the last modification, in seconds since the epoch.
    pub modified_unix: i64,
    /// The number of hard links. Above one, the file has other names as well.
    pub links: u64,
    /// `st_dev` of the file system that holds the file. Together with `inode` it identifies the file.
    pub device: u64,
    /// The number of the file on its file system.
    pub inode: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Whether it is a symlink.
    pub is_symlink: bool,
}

impl Metadata {
    /// Returns whether the owner and the group have names.
    pub(super) fn has_names(&self) -> bool {
        [&self.owner, &self.group].into_iter().all(|name| name.bytes().any(|byte| !byte.is_ascii_digit()))
    }
}

/// The kind of what is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symlink, which is not followed.
    Symlink,
    /// A device, a pipe or a socket.
    Other,
}

/// An entry at a path. A link there is not followed.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The kind of the file.
    pub kind: FileKind,
    /// All else that `stat` tells.
    pub metadata: Metadata,
}

/// A path whose links above its end are resolved.
#[derive(Clone, Debug)]
pub struct Located {
    /// The path without links above its end.
    pub path: String,
    /// The file at the path, if there is one.
    pub found: Option<Found>,
}

/// A part of one file.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// The absolute path of the file.
    pub path: String,
    /// The place of the first byte. A negative number counts from the end.
    pub offset: i64,
    /// The most bytes to read. At most 1 MiB is given.
    pub max_bytes: u64,
}

/// Decides whether a path may be reached. It gets the path that was asked for, and the one to which symlinks led.
pub type PathCheck = dyn Fn(&str, &str) -> Result<(), Problem> + Send + Sync;

/// Returns the problem of too many paths for each of them.
fn too_many<T>(paths: usize) -> Vec<Result<T, Problem>> {
    let message =
        format!("{paths} paths at once with another account's rights; at most {PATHS_BY_COMMANDS} are taken");
    let problem = Problem::new("TOO_MANY_PATHS", Category::Resource, message);
    (0..paths).map(|_| Err(problem.clone())).collect()
}

/// The way to reach a path, and the accounts that may be able to change where it leads.
enum AccessMethod {
    /// The account reaches it with its own rights.
    Direct(Trusted),
    /// A thread of root's server reaches it with this account's rights.
    As(Account),
    /// Commands reach it with another account's rights.
    Commands(Trusted),
}

impl Target {
    /// Returns the file or directory that a path leads to. Returns a problem where accounts other than root and
    /// `account` could change it.
    pub async fn safe_for(&self, path: &str, account: &str) -> Result<Option<Found>, Problem> {
        let (trusted, paths) = match account {
            "root" => (Trusted::Root, vec![path.to_owned()]),
            account => (Trusted::User(account.to_owned()), vec![path.to_owned()]),
        };
        let mut resolved = match &self.machine {
            Machine::Local(local) => local.resolve(paths, LastLink::Followed, trusted).await,
            Machine::Recorded(recorded) => recorded.resolve(&paths, None),
            // `stat` asks, because owners have names there.
            Machine::Remote(remote) => remote.locate(paths, LastLink::Followed, trusted).await,
        };
        let resolved = resolved.pop().unwrap_or_else(|| Err(crate::command_problem::no_root()))?;
        Ok(resolved.unless_dangling(path)?.found())
    }

    /// Returns where paths lead, for a command that goes there with these rights, in the order given. Returns a
    /// problem where a path could be made to lead elsewhere before the command uses it, see [`Trusted`].
    pub async fn resolve(&self, paths: Vec<String>, access: &Access) -> Vec<Result<Resolved, Problem>> {
        self.resolve_by(paths, access, false).await
    }

    /// Does the same, and what is there has device, inode, and the names of owner and group on every machine. SFTP, by which
    /// paths are resolved otherwise over SSH, doesn't tell these.
    pub async fn resolve_with_identity(
        &self,
        paths: Vec<String>,
        access: &Access,
    ) -> Vec<Result<Resolved, Problem>> {
        self.resolve_by(paths, access, true).await
    }

    async fn resolve_by(
        &self,
        paths: Vec<String>,
        access: &Access,
        with_identity: bool,
    ) -> Vec<Result<Resolved, Problem>> {
        let resolved = match self.access_method(&access.privilege).await {
            Err(problem) => vec![Err(problem); paths.len()],
            Ok(AccessMethod::Direct(trusted)) => match &self.machine {
                Machine::Local(local) => local.resolve(paths.clone(), LastLink::Followed, trusted).await,
                Machine::Recorded(recorded) => recorded.resolve(&paths, None),
                Machine::Remote(remote) if with_identity => {
                    remote.locate(paths.clone(), LastLink::Followed, trusted).await
                }
                Machine::Remote(remote) => remote.resolve(paths.clone(), LastLink::Followed, trusted).await,
            },
            Ok(AccessMethod::As(account)) => resolve_as(account, paths.clone(), LastLink::Followed).await,
            Ok(AccessMethod::Commands(_)) if paths.len() > PATHS_BY_COMMANDS => return too_many(paths.len()),
            Ok(AccessMethod::Commands(trusted)) => {
                let asked: Vec<_> = paths.iter().map(String::as_str).collect();
                let commands = self.file_commands(access, &trusted).await;
                match with_identity {
                    true => commands.resolve(&asked, LastLink::Followed).await,
                    false => commands.resolve_without_names(&asked).await,
                }
            }
        };
        let certain =
            |(asked, resolved): (&String, Result<Resolved, Problem>)| resolved?.unless_dangling(asked);
        paths.iter().zip(resolved).map(certain).collect()
    }

    /// Returns where files lie that are to be written, and what is there, in the order given. Returns a problem where
    /// somebody else could change a directory on the way, see [`Trusted`].
    pub async fn locate(&self, paths: Vec<String>, access: &Access) -> Vec<Result<Located, Problem>> {
        let resolved = match self.access_method(&access.privilege).await {
            Err(problem) => vec![Err(problem); paths.len()],
            Ok(AccessMethod::Direct(trusted)) => match &self.machine {
                Machine::Local(local) => local.resolve(paths.clone(), LastLink::Kept, trusted).await,
                Machine::Recorded(recorded) => recorded.resolve(&paths, Some(&access.privilege)),
                Machine::Remote(remote) => remote.locate(paths.clone(), LastLink::Kept, trusted).await,
            },
            Ok(AccessMethod::As(account)) => resolve_as(account, paths.clone(), LastLink::Kept).await,
            Ok(AccessMethod::Commands(trusted)) => {
                let asked: Vec<_> = paths.iter().map(String::as_str).collect();
                self.file_commands(access, &trusted).await.resolve(&asked, LastLink::Kept).await
            }
        };
        let located = |(asked, resolved): (&String, Result<Resolved, Problem>)| {
            let resolved = resolved?.unless_dangling(asked)?;
            Ok(Located { found: resolved.found(), path: resolved.path })
        };
        paths.iter().zip(resolved).map(located).collect()
    }

    /// Reads parts of files, and returns them in the order given.
    pub async fn read_all(
        &self,
        requests: Vec<ReadRequest>,
        access: &Access,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Vec<u8>, Problem>> {
        let count = requests.len();
        match self.access_method(&access.privilege).await {
            Err(problem) => vec![Err(problem); count],
            Ok(AccessMethod::Direct(trusted)) => {
                self.read_own(requests, trusted, &access.privilege, check).await
            }
            Ok(AccessMethod::As(account)) => {
                let read = move |trusted: &Trusted| read_within(READ_BYTES, &requests, trusted, &*check);
                account.look(count, read).await
            }
            Ok(AccessMethod::Commands(_)) if count > PATHS_BY_COMMANDS => too_many(count),
            Ok(AccessMethod::Commands(trusted)) => {
                let answers = self.file_commands(access, &trusted).await.read_all(&requests, &check).await;
                match access.would_do_without_sudo(&answers) {
                    true => self.read_own(requests, Trusted::Anyone, &access.privilege, check).await,
                    false => answers,
                }
            }
        }
    }

    pub(super) async fn read_own(
        &self,
        requests: Vec<ReadRequest>,
        trusted: Trusted,
        privilege: &Privilege,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Vec<u8>, Problem>> {
        match &self.machine {
            Machine::Local(local) => local.read_all(requests, trusted, check).await,
            Machine::Remote(remote) => remote.read_all(requests, trusted, check).await,
            Machine::Recorded(recorded) => recorded.read_all(&requests, privilege, &*check),
        }
    }

    /// Returns what is at each path, or `None` where nothing is.
    pub async fn stat_all(
        &self,
        paths: Vec<String>,
        access: &Access,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Option<Metadata>, Problem>> {
        match self.access_method(&access.privilege).await {
            Err(problem) => vec![Err(problem); paths.len()],
            Ok(AccessMethod::Direct(trusted)) => {
                self.stat_own(paths, trusted, &access.privilege, check).await
            }
            Ok(AccessMethod::As(account)) => {
                account.look(paths.len(), move |trusted| files::stat_all(&paths, trusted, &*check)).await
            }
            Ok(AccessMethod::Commands(_)) if paths.len() > PATHS_BY_COMMANDS => too_many(paths.len()),
            Ok(AccessMethod::Commands(trusted)) => {
                let answers = self.file_commands(access, &trusted).await.stat_all(&paths, &check).await;
                match access.would_do_without_sudo(&answers) {
                    true => self.stat_own(paths, Trusted::Anyone, &access.privilege, check).await,
                    false => answers,
                }
            }
        }
    }

    async fn stat_own(
        &self,
        paths: Vec<String>,
        trusted: Trusted,
        privilege: &Privilege,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Option<Metadata>, Problem>> {
        match &self.machine {
            Machine::Local(local) => local.stat_all(paths, trusted, check).await,
            Machine::Remote(remote) => remote.stat_all(paths, trusted, check).await,
            Machine::Recorded(recorded) => recorded.stat_all(&paths, privilege, &*check),
        }
    }

    async fn list_own(
        &self,
        paths: Vec<String>,
        trusted: Trusted,
        privilege: &Privilege,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Vec<String>, Problem>> {
        match &self.machine {
            Machine::Local(local) => local.list_all(paths, trusted, check).await,
            Machine::Remote(remote) => remote.list_all(paths, trusted, check).await,
            Machine::Recorded(recorded) => recorded.list_all(&paths, privilege, &*check),
        }
    }

    /// Returns the names in each directory, sorted.
    pub async fn list_all(
        &self,
        paths: Vec<String>,
        access: &Access,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Vec<String>, Problem>> {
        match self.access_method(&access.privilege).await {
            Err(problem) => vec![Err(problem); paths.len()],
            Ok(AccessMethod::Direct(trusted)) => {
                self.list_own(paths, trusted, &access.privilege, check).await
            }
            Ok(AccessMethod::As(account)) => {
                account.look(paths.len(), move |trusted| files::list_all(&paths, trusted, &*check)).await
            }
            Ok(AccessMethod::Commands(_)) if paths.len() > PATHS_BY_COMMANDS => too_many(paths.len()),
            Ok(AccessMethod::Commands(trusted)) => {
                let answers = self.file_commands(access, &trusted).await.list_all(&paths, &check).await;
                match access.would_do_without_sudo(&answers) {
                    true => self.list_own(paths, Trusted::Anyone, &access.privilege, check).await,
                    false => answers,
                }
            }
        }
    }

    /// Calls [`Target::list_all`] for one directory.
    pub async fn list_dir(
        &self,
        path: String,
        access: &Access,
        check: Arc<PathCheck>,
    ) -> Result<Vec<String>, Problem> {
        self.list_all(vec![path], access, check).await.remove(0)
    }

    async fn access_method(&self, privilege: &Privilege) -> Result<AccessMethod, Problem> {
        #[cfg(any(test, feature = "test-support"))]
        self.test_connection.as_ref().map_or(Ok(0), |connection| connection.connected())?;
        // For this machine the answer needs no question.
        let is_root = match &self.machine {
            Machine::Local(_) => rustix::process::geteuid().is_root(),
            Machine::Remote(_) => self.facts().await?.uid == 0,
            // Recorded files need no commands.
            Machine::Recorded(recorded) => {
                recorded.check_rights(privilege, rights(recorded.facts()))?;
                return Ok(AccessMethod::Direct(Trusted::Anyone));
            }
        };
        Ok(match privilege {
            Privilege::User(name) => {
                let account = matches!(self.machine, Machine::Local(_) if is_root)
                    .then(|| Account::named(name))
                    .flatten();
                account.map_or_else(|| AccessMethod::Commands(Trusted::Owner(name.clone())), AccessMethod::As)
            }
            // Root's rights are in use then, whether they were asked for or not.
            _ if is_root => AccessMethod::Direct(Trusted::Root),
            Privilege::Caller => AccessMethod::Direct(Trusted::Anyone),
            Privilege::Root => AccessMethod::Commands(Trusted::Root),
            Privilege::RootIfAvailable if self.facts().await?.root_available() => {
                AccessMethod::Commands(Trusted::Root)
            }
            Privilege::RootIfAvailable => AccessMethod::Direct(Trusted::Anyone),
        })
    }

    async fn file_commands<'a>(&'a self, access: &'a Access, trusted: &'a Trusted) -> FileCommands<'a, Self> {
        // An account that has no rights of root is told so, on this machine as on every other one.
        let is_roots =
            *trusted == Trusted::Root && self.facts().await.is_ok_and(|facts| facts.root_available());
        let here = match &self.machine {
            Machine::Local(local) if is_roots => Some(local),
            _ => None,
        };
        FileCommands { runner: self, access, trusted, here }
    }
}

/// Where paths lead on this machine for an account.
async fn resolve_as(account: Account, paths: Vec<String>, last: LastLink) -> Vec<Result<Resolved, Problem>> {
    let count = paths.len();
    let look = move |trusted: &Trusted| paths.iter().map(|path| resolve(path, last, trusted)).collect();
    account.look(count, look).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Overrides;

    #[tokio::test]
    async fn so_many_paths_that_commands_would_look_at_them_for_ever_are_refused_at_once() {
        let target = Target::local(Overrides::default());
        // An account that isn't in the table of this machine is reached by commands, also by root.
        let access = Access { privilege: Privilege::User("no-such-account".into()), verbs: Vec::new() };
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
