//! The machine under administration. Nothing outside this folder starts a process or opens a connection.

mod entry;
mod facts;
mod files;
mod group;
mod local;
mod overrides;
mod program;
mod resolve;
#[cfg_attr(not(test), expect(dead_code, unused_imports, reason = "no target is reached by it yet"))]
mod ssh;
mod stream;
mod verbs;

pub use facts::Facts;
pub use local::Local;
use local::Rights;
pub use overrides::Overrides;
pub use program::PATH;
pub use resolve::Resolved;
pub use stream::OutputStream;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use crate::capability::Pattern;
use crate::problem::{Category, Problem};
use entry::Trusted;
use resolve::Last;
use verbs::{Runner, Verbs};

/// Commands that run at the same time; the rest wait.
const AT_ONCE: usize = 8;

/// Paths of one question that commands look at: each is a line of theirs, and so is each directory above it.
const PATHS_BY_COMMANDS: usize = 1000;

/// Whose rights a command or a file access takes. Written as `caller`, `root`, `root-if-available`, `user:NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Privilege {
    /// The account that the target is reached as.
    Caller,
    /// `sudo -n`, or directly where the caller is root.
    Root,
    /// `Root` where it can be had, else `Caller`.
    RootIfAvailable,
    /// Another account.
    User(String),
}

impl From<Privilege> for String {
    fn from(privilege: Privilege) -> Self {
        match privilege {
            Privilege::Caller => "caller".into(),
            Privilege::Root => "root".into(),
            Privilege::RootIfAvailable => "root-if-available".into(),
            Privilege::User(name) => format!("user:{name}"),
        }
    }
}

impl TryFrom<String> for Privilege {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match (text.as_str(), text.strip_prefix("user:")) {
            ("caller", _) => Ok(Self::Caller),
            ("root", _) => Ok(Self::Root),
            ("root-if-available", _) => Ok(Self::RootIfAvailable),
            (_, Some(name)) => Ok(Self::User(name.to_owned())),
            _ => Err(format!("expected caller, root, root-if-available or user:NAME, found {text}")),
        }
    }
}

/// Which end of an output above the limit is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The beginning.
    Head,
    /// The end.
    Tail,
}

/// One program and its arguments. No shell ever reads it.
#[derive(Clone, Debug)]
pub struct Command {
    /// A name, found in root-owned directories, or an absolute path.
    pub program: String,
    /// One token each.
    pub args: Vec<String>,
    /// Besides `PATH`, `HOME` and `LC_ALL`.
    pub env: Vec<(String, String)>,
    /// What it reads; nothing where there is none.
    pub stdin: Option<Vec<u8>>,
    /// Whose rights it takes.
    pub privilege: Privilege,
    /// When it is stopped, with every process it started.
    pub timeout: Duration,
    /// What stays of an output above the limit.
    pub keep: Keep,
}

/// What a command left behind.
#[derive(Clone, Debug)]
pub struct Output {
    /// 128 + N where signal N ended it, as shells report it.
    pub exit_code: i32,
    /// As it came, up to the limit.
    pub stdout: Vec<u8>,
    /// As it came, up to the limit.
    pub stderr: Vec<u8>,
    /// The whole size of stdout.
    pub stdout_bytes: u64,
    /// All lines of stdout.
    pub stdout_lines: u64,
    /// Whether anything was dropped.
    pub truncated: bool,
    /// Wall-clock time.
    pub duration: Duration,
}

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

/// How paths are reached.
#[derive(Clone, Debug)]
pub struct Access {
    /// Whose rights are taken.
    pub privilege: Privilege,
    /// What the host may run itself for that, where those rights aren't this process's own.
    pub verbs: Vec<Arc<Pattern>>,
}

impl Access {
    /// Whether sudo said no, to one who would be content without it.
    pub fn would_do_without_sudo<T>(&self, answers: &[Result<T, Problem>]) -> bool {
        let refused = |answer: &Result<T, Problem>| {
            answer.as_ref().is_err_and(|problem| problem.category == Category::Privilege)
        };
        self.privilege == Privilege::RootIfAvailable && answers.iter().any(refused)
    }
}

/// The same answer to all.
fn too_many<T>(paths: usize) -> Vec<Result<T, Problem>> {
    let message =
        format!("{paths} paths at once with another account's rights; at most {PATHS_BY_COMMANDS} are taken");
    let problem = Problem::new("TOO_MANY_PATHS", Category::Resource, message);
    (0..paths).map(|_| Err(problem.clone())).collect()
}

fn rights(facts: &Facts) -> Rights {
    Rights { available: facts.root_available(), limited: facts.sudo_limited }
}

/// Who reaches a path, and who may be able to change where it leads.
enum Way {
    /// This process, with its own rights.
    Here(Trusted),
    /// Commands.
    Commands(Trusted),
}

/// One machine, with what was found out about it.
pub struct Target {
    local: Local,
    overrides: Overrides,
    facts: OnceCell<Arc<Facts>>,
}

impl Target {
    /// This machine. Facts are gathered at the first question.
    pub fn local(overrides: Overrides) -> Self {
        Self { local: Local::new(), overrides, facts: OnceCell::new() }
    }

    /// As in the envelope.
    pub fn name(&self) -> &str {
        "localhost"
    }

    /// What is known of it; gathered once.
    pub async fn facts(&self) -> Arc<Facts> {
        let gather = || async { Arc::new(self.overrides.apply(facts::gather(&self.local).await)) };
        self.facts.get_or_init(gather).await.clone()
    }

    /// machine-id(5) as it is now, where there is one: which machine answers to this name.
    pub async fn machine_id(&self) -> Option<String> {
        facts::machine_id(&self.local).await
    }

    /// What stands in front of the command where it runs with other rights than the caller's, as `sudo -n `. A problem
    /// where it can't be started.
    pub fn prefix(&self, command: &Command, facts: &Facts) -> Result<String, Problem> {
        self.local.prefix(command, rights(facts))
    }

    /// Runs commands side by side; answers in the order given. Dropping the future ends them, with what they started.
    pub async fn run_all(&self, commands: &[Command]) -> Vec<Result<Output, Problem>> {
        let rights = rights(&*self.facts().await);
        let running: Vec<_> = commands.iter().map(|command| self.local.run(command, rights)).collect();
        // Polled in this task, so that dropping the whole drops each.
        futures_util::stream::iter(running).buffered(AT_ONCE).collect().await
    }

    /// Starts a command whose stdout is read piece by piece.
    pub async fn open(&self, command: &Command) -> Result<OutputStream, Problem> {
        let facts = self.facts().await;
        // Asked first where sudo allows some commands only: once a stream is open, nothing else can be run in its place.
        let allowed = !facts.sudo_limited || self.is_allowed(command).await;
        match command.privilege {
            Privilege::RootIfAvailable if !allowed => {
                let command = Command { privilege: Privilege::Caller, ..command.clone() };
                self.local.open(&command, Rights::NONE).await
            }
            _ if allowed => self.local.open(command, rights(&facts)).await,
            _ => self.local.open(command, Rights::NONE).await,
        }
    }

    /// Whether sudo would run it, or wouldn't be asked.
    async fn is_allowed(&self, command: &Command) -> bool {
        let account = match &command.privilege {
            Privilege::Caller => return true,
            Privilege::Root | Privilege::RootIfAvailable => "root",
            Privilege::User(name) => name,
        };
        let asked = ["-n", "-l", "-u", account, "--", &command.program].map(str::to_owned);
        let args = asked.into_iter().chain(command.args.iter().cloned()).collect();
        let question = Command {
            program: "sudo".to_owned(),
            args,
            privilege: Privilege::Caller,
            stdin: None,
            ..command.clone()
        };
        self.local.run(&question, Rights::NONE).await.is_ok_and(|output| output.exit_code == 0)
    }

    /// Where a program is on the target.
    pub fn program(&self, name: &str) -> Result<std::path::PathBuf, Problem> {
        self.local.program(name)
    }

    /// Whether nobody but root, or this account besides, could change what a path leads to.
    pub async fn is_safe_for(&self, path: &str, account: &str) -> Result<(), Problem> {
        let trusted = if account == "root" { Trusted::Root } else { Trusted::User(account.to_owned()) };
        let mut resolved = self.local.resolve(vec![path.to_owned()], Last::Followed, trusted).await;
        resolved.pop().unwrap_or_else(|| Err(local::no_root()))?.unless_dangling(path).map(drop)
    }

    /// Where paths lead, for a command that goes there with these rights; answers in the order given. A problem where
    /// a path could be made to lead elsewhere before the command does: see [`Trusted`].
    pub async fn resolve(&self, paths: Vec<String>, access: &Access) -> Vec<Result<Resolved, Problem>> {
        let resolved = match self.way(&access.privilege).await {
            Way::Here(trusted) => self.local.resolve(paths.clone(), Last::Followed, trusted).await,
            Way::Commands(_) if paths.len() > PATHS_BY_COMMANDS => return too_many(paths.len()),
            Way::Commands(trusted) => {
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
            Way::Here(trusted) => self.local.resolve(paths.clone(), Last::Kept, trusted).await,
            Way::Commands(trusted) => {
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
            Way::Here(trusted) => self.local.read_all(requests, trusted, check).await,
            Way::Commands(_) if requests.len() > PATHS_BY_COMMANDS => too_many(requests.len()),
            Way::Commands(trusted) => {
                let answers = self.verbs(access, &trusted).read_all(&requests, &*check).await;
                match access.would_do_without_sudo(&answers) {
                    true => self.local.read_all(requests, Trusted::Anyone, check).await,
                    false => answers,
                }
            }
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
            Way::Here(trusted) => self.local.stat_all(paths, trusted, check).await,
            Way::Commands(_) if paths.len() > PATHS_BY_COMMANDS => too_many(paths.len()),
            Way::Commands(trusted) => {
                let answers = self.verbs(access, &trusted).stat_all(&paths, &*check).await;
                match access.would_do_without_sudo(&answers) {
                    true => self.local.stat_all(paths, Trusted::Anyone, check).await,
                    false => answers,
                }
            }
        }
    }

    /// The names in a directory, sorted.
    pub async fn list_dir(
        &self,
        path: String,
        access: &Access,
        check: Arc<PathCheck>,
    ) -> Result<Vec<String>, Problem> {
        match self.way(&access.privilege).await {
            Way::Here(trusted) => self.local.list_dir(path, trusted, check).await,
            Way::Commands(trusted) => {
                let answers = [self.verbs(access, &trusted).list_dir(&path, &*check).await];
                match access.would_do_without_sudo(&answers) {
                    true => self.local.list_dir(path, Trusted::Anyone, check).await,
                    false => {
                        let [answer] = answers;
                        answer
                    }
                }
            }
        }
    }

    async fn way(&self, privilege: &Privilege) -> Way {
        let is_root = rustix::process::geteuid().is_root();
        match privilege {
            Privilege::User(name) => Way::Commands(Trusted::User(name.clone())),
            // Root's rights are in use then, whether they were asked for or not.
            _ if is_root => Way::Here(Trusted::Root),
            Privilege::Caller => Way::Here(Trusted::Anyone),
            Privilege::Root => Way::Commands(Trusted::Root),
            Privilege::RootIfAvailable if self.facts().await.root_available() => Way::Commands(Trusted::Root),
            Privilege::RootIfAvailable => Way::Here(Trusted::Anyone),
        }
    }

    fn verbs<'a>(&'a self, access: &'a Access, trusted: &'a Trusted) -> Verbs<'a, Self> {
        Verbs { runner: self, access, trusted }
    }
}

impl Runner for Target {
    async fn run_all(&self, commands: &[Command]) -> Vec<Result<Output, Problem>> {
        Self::run_all(self, commands).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
