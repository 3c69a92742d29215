//! Reads files by commands, where this process can't open them: with another account's rights, or on another machine.
//! Where files of this machine are looked at with root's rights, this process first looks by itself as far as it may, because
//! each command starts sudo and a program.
//!
//! Each command is built here. Where it takes rights other than the account's own, it has to match one of the grants'
//! patterns (`capability/verbs.yaml`); otherwise it isn't run. [`answers`] reads the output.

mod answers;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::entry::{Entry, Trusted, not_a_regular_file};
use super::files::{MOST_BYTES, MOST_NAMES, too_many_names};
use super::local::{Local, READ_BYTES, files_too_large};
use super::own_first::OwnFirst;
use super::resolve::{End, LastLink, NextStep, Resolved, Walk, is_kernels};
use super::{Metadata, PathCheck, ReadRequest};
use host_base::problem::{Category, Problem};
use host_base::{Command, Output, Privilege};
use host_capability::Access;
use host_text::visible::excerpt;

/// The time limit of one command. A command reads at most 1 MiB, and the slowest is a disk that is waking up.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The most paths that one command looks at. With their answers they stay well below the limits of a program's
/// arguments and of the kept output.
const PATHS: usize = 200;
/// The most bytes of these paths. Over SSH a whole command line has to be shorter than 128 KiB, with its quotes.
const PATHS_BYTES: usize = 24 << 10;

/// The number of file parts that are held as output before they are counted.
const READS: usize = 16;

/// The options of `stat`; [`answers::entries`] reads its output.
const STAT: &[&str] = &["--format=%f:%u:%g:%s:%Y:%h:%D:%i:%U:%G:%n", "--"];
const READLINK: &[&str] = &["--zero", "--"];
const LS: &[&str] = &["--almost-all", "--format=single-column", "--sort=none", "--quoting-style=c", "--"];
/// The options of `dd`. A link in the file's place is an error, and a pipe isn't waited for.
const DD: &[&str] = &["iflag=fullblock,nofollow,nonblock,skip_bytes,count_bytes", "bs=65536", "status=none"];

/// Runs commands, on this machine or over a connection to another one.
pub(super) trait Runner: Sync {
    /// Returns the answers in the order given.
    fn run_all(&self, commands: &[Command]) -> impl Future<Output = Vec<Result<Output, Problem>>> + Send;
}

/// The answer about each path.
type AnswersByPath<T> = HashMap<String, Result<T, Problem>>;

/// Files as one access reaches them.
pub(super) struct FileCommands<'a, R> {
    pub(super) runner: &'a R,
    pub(super) access: &'a Access,
    pub(super) trusted: &'a Trusted,
    /// This machine, where the account of the access sees all that this process may see.
    pub(super) here: Option<&'a Local>,
}

impl<'a, R: Runner> FileCommands<'a, R> {
    /// Reads parts of files, and returns them in the order given.
    pub(super) async fn read_all(
        &self,
        requests: &[ReadRequest],
        check: &Arc<PathCheck>,
    ) -> Vec<Result<Vec<u8>, Problem>> {
        let may = |request: &ReadRequest| self.may_look_itself(&request.path);
        let read = |here: &'a Local, own| here.read_all(own, self.trusted.clone(), check.clone());
        let found = OwnFirst::ask(self.here, requests, may, |_| true, read).await;
        let requests = &found.rest;
        let paths: Vec<_> = requests.iter().map(|request| request.path.as_str()).collect();
        let resolved = self.find(&paths, LastLink::Followed, &**check).await;
        let built = requests.iter().zip(resolved).map(|(request, resolved)| self.dd(request, resolved?));
        let built: Vec<_> = built.collect();
        let mut left = READ_BYTES.saturating_sub(found.own().map(Vec::len).sum());
        let mut answers = Vec::with_capacity(requests.len());
        for (built, requests) in built.chunks(READS).zip(requests.chunks(READS)) {
            if left == 0 {
                answers.extend(built.iter().map(|_| Err(files_too_large())));
                continue;
            }
            let commands: Vec<_> = built.iter().filter_map(|built| built.as_ref().ok().cloned()).collect();
            let mut outputs = self.runner.run_all(&commands).await.into_iter();
            for (built, request) in built.iter().zip(requests) {
                answers.push(match built {
                    Ok(_) => outputs
                        .next()
                        .unwrap_or_else(|| Err(answers::missing("dd")))
                        .and_then(|output| answers::contents(&request.path, output)),
                    Err(problem) => Err(problem.clone()),
                });
                if let Some(Ok(contents)) = answers.last() {
                    left = left.saturating_sub(contents.len());
                }
            }
        }
        found.with(answers)
    }

    /// Returns what is at each path, or `None` where nothing is.
    pub(super) async fn stat_all(
        &self,
        paths: &[String],
        check: &Arc<PathCheck>,
    ) -> Vec<Result<Option<Metadata>, Problem>> {
        let may = |path: &String| self.may_look_itself(path);
        // `stat` knows accounts that aren't in this machine's own tables.
        let is_named = |found: &Option<Metadata>| found.as_ref().is_none_or(Metadata::has_names);
        let stat = |here: &'a Local, own| here.stat_all(own, self.trusted.clone(), check.clone());
        let found = OwnFirst::ask(self.here, paths, may, is_named, stat).await;
        let rest: Vec<_> = found.rest.iter().map(String::as_str).collect();
        let resolved = self.find(&rest, LastLink::Kept, &**check).await.into_iter();
        let metadata = |resolved: Resolved| match &resolved.end {
            End::There(entry) => Some(Metadata::from(entry)),
            End::Missing | End::Dangling => None,
        };
        let answers = resolved.map(|resolved| resolved.map(metadata)).collect();
        found.with(answers)
    }

    /// Returns the names in each directory, sorted. All directories together may hold at most [`MOST_NAMES`].
    pub(super) async fn list_all(
        &self,
        paths: &[String],
        check: &Arc<PathCheck>,
    ) -> Vec<Result<Vec<String>, Problem>> {
        let may = |path: &String| self.may_look_itself(path);
        let list = |here: &'a Local, own| here.list_all(own, self.trusted.clone(), check.clone());
        let found = OwnFirst::ask(self.here, paths, may, |_| true, list).await;
        let asked: Vec<_> = found.rest.iter().map(String::as_str).collect();
        let resolved = self.find(&asked, LastLink::Followed, &**check).await;
        let built = asked.iter().zip(resolved).map(|(path, resolved)| self.ls(path, resolved?));
        let built: Vec<_> = built.collect();
        let mut left = MOST_NAMES.saturating_sub(found.own().map(Vec::len).sum());
        let mut answers = Vec::with_capacity(asked.len());
        for (built, paths) in built.chunks(READS).zip(asked.chunks(READS)) {
            let commands: Vec<_> = built.iter().filter_map(|built| built.as_ref().ok().cloned()).collect();
            let mut outputs = self.runner.run_all(&commands).await.into_iter();
            for (built, path) in built.iter().zip(paths) {
                let mut names = || {
                    built.as_ref().map_err(Problem::clone)?;
                    let output = outputs.next().unwrap_or_else(|| Err(answers::missing("ls")))?;
                    let names = answers::names(path, output)?;
                    left = left.checked_sub(names.len()).ok_or_else(|| too_many_names(path, left))?;
                    Ok(names)
                };
                answers.push(names());
            }
        }
        found.with(answers)
    }

    fn ls(&self, path: &str, found: Resolved) -> Result<Command, Problem> {
        if there(path, &found)?.kind() != FileType::Directory {
            return Err(Problem::io(path, &Errno::NOTDIR.into()));
        }
        self.command("ls", LS.iter().copied().chain([found.path.as_str()]))
    }

    /// Returns where paths lead. They may be reached as they were asked for and with their symlinks resolved.
    async fn find(
        &self,
        paths: &[&str],
        last: LastLink,
        check: &PathCheck,
    ) -> Vec<Result<Resolved, Problem>> {
        let asked: Vec<_> = paths.iter().map(|path| check(path, path)).collect();
        let allowed = paths.iter().zip(&asked).filter(|(_, asked)| asked.is_ok());
        let allowed: Vec<_> = allowed.map(|(path, _)| *path).collect();
        let found = match last {
            LastLink::Followed => self.resolve_without_names(&allowed).await,
            LastLink::Kept => self.resolve(&allowed, last).await,
        };
        let mut found = found.into_iter();
        let mut checked = |path: &str, asked: Result<(), Problem>| {
            asked?;
            let found = found.next().unwrap_or_else(|| Err(answers::missing("stat")))?;
            if found.end != End::Dangling {
                check(path, &found.path)?;
            }
            Ok(found)
        };
        paths.iter().zip(asked).map(|(path, asked)| checked(path, asked)).collect()
    }

    /// Returns where paths lead, with their last links followed. What is there may have the owners' numbers for their names.
    pub(super) async fn resolve_without_names(&self, paths: &[&str]) -> Vec<Result<Resolved, Problem>> {
        let asked: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let may = |path: &String| self.may_look_itself(path);
        let resolve = |here: &'a Local, own| here.resolve(own, LastLink::Followed, self.trusted.clone());
        let found = OwnFirst::ask(self.here, &asked, may, |_| true, resolve).await;
        let rest: Vec<_> = found.rest.iter().map(String::as_str).collect();
        let answers = self.resolve(&rest, LastLink::Followed).await;
        found.with(answers)
    }

    /// Returns whether this process, where it reaches the path, finds there what the account of the access would find. The
    /// kernel's own files differ from reader to reader.
    fn may_look_itself(&self, path: &str) -> bool {
        self.here.is_some() && !is_kernels(path)
    }

    /// Returns where paths lead. All are asked together, in one round trip where no path has a link.
    pub(super) async fn resolve(&self, paths: &[&str], last: LastLink) -> Vec<Result<Resolved, Problem>> {
        let mut walks: Vec<_> = paths.iter().map(|path| Walk::new(path, last, self.trusted)).collect();
        loop {
            let (mut looks, mut links) = (BTreeSet::new(), BTreeSet::new());
            for walk in walks.iter().flatten() {
                match walk.ask() {
                    NextStep::Look(paths) => looks.extend(paths),
                    NextStep::Follow(link) => links.extend([link]),
                    NextStep::Done(_) => {}
                }
            }
            if looks.is_empty() && links.is_empty() {
                break;
            }
            let (seen, led) = tokio::join!(self.look(looks), self.follow(links));
            let about =
                |path: &String| seen.get(path).cloned().unwrap_or_else(|| Err(answers::missing("stat")));
            for slot in &mut walks {
                let Ok(walk) = slot else { continue };
                let went = match walk.ask() {
                    NextStep::Look(paths) => walk.looked(paths.iter().map(about)),
                    NextStep::Follow(link) => match led.get(&link) {
                        Some(Ok(target)) => walk.followed(target),
                        Some(Err(problem)) => Err(problem.clone()),
                        None => Err(answers::missing("readlink")),
                    },
                    NextStep::Done(_) => Ok(()),
                };
                if let Err(problem) = went {
                    *slot = Err(problem);
                }
            }
        }
        let done = |walk: Walk| match walk.ask() {
            NextStep::Done(resolved) => Ok(resolved),
            NextStep::Look(_) | NextStep::Follow(_) => Err(answers::missing("stat")),
        };
        walks.into_iter().map(|walk| walk.and_then(done)).collect()
    }

    async fn look(&self, paths: BTreeSet<String>) -> AnswersByPath<Option<Entry>> {
        self.of_each("stat", STAT, paths, answers::entries).await
    }

    async fn follow(&self, links: BTreeSet<String>) -> AnswersByPath<String> {
        self.of_each("readlink", READLINK, links, answers::targets).await
    }

    /// Asks a program about many paths, with as few commands as the patterns and the length of an argv allow.
    async fn of_each<T>(
        &self,
        program: &str,
        options: &[&str],
        paths: BTreeSet<String>,
        read: impl Fn(&[String], Output) -> Vec<Result<T, Problem>>,
    ) -> AnswersByPath<T> {
        let args = |paths: &[String]| -> Vec<String> {
            options.iter().map(|option| (*option).to_owned()).chain(paths.iter().cloned()).collect()
        };
        let mut left: Vec<String> = paths.into_iter().collect();
        let mut groups: Vec<Vec<String>> = Vec::new();
        if self.is_own() {
            groups.extend(few_at_once(std::mem::take(&mut left)));
        }
        for verb in &self.access.verbs {
            let covered = |path: &mut String| {
                verb.allows(program, &args(std::slice::from_ref(path)), &[], false).is_some()
            };
            groups.extend(few_at_once(left.extract_if(.., covered).collect()));
        }
        let mut said: AnswersByPath<T> =
            left.into_iter().map(|path| (path.clone(), Err(not_covered(program, &path)))).collect();
        let (mut asked, mut commands) = (Vec::new(), Vec::new());
        for group in groups {
            match self.command(program, args(&group).iter().map(String::as_str)) {
                Ok(command) => {
                    commands.push(command);
                    asked.push(group);
                }
                Err(problem) => said.extend(group.into_iter().map(|path| (path, Err(problem.clone())))),
            }
        }
        let outputs = self.runner.run_all(&commands).await;
        for (group, output) in asked.into_iter().zip(outputs) {
            let answers = match output {
                Ok(output) => read(&group, output),
                Err(problem) => group.iter().map(|_| Err(problem.clone())).collect(),
            };
            said.extend(group.into_iter().zip(answers));
        }
        said
    }

    /// Builds the command that reads a part of a file.
    fn dd(&self, request: &ReadRequest, found: Resolved) -> Result<Command, Problem> {
        let entry = there(&request.path, &found)?;
        if entry.kind() != FileType::RegularFile {
            return Err(not_a_regular_file(&request.path, entry.kind()));
        }
        let skip = match u64::try_from(request.offset) {
            Ok(offset) => offset,
            // An offset before the beginning means the beginning.
            Err(_) => entry.size.saturating_sub(request.offset.unsigned_abs()),
        };
        let (file, skip) = (format!("if={}", found.path), format!("skip={skip}"));
        let count = format!("count={}", request.max_bytes.min(MOST_BYTES));
        let [flags, block, status] = DD else { return Err(answers::missing("dd")) };
        self.command("dd", [file.as_str(), flags, block, &skip, &count, status])
    }

    /// Says whether the account's own rights are taken. [`PathCheck`] has allowed the path then.
    fn is_own(&self) -> bool {
        self.access.privilege == Privilege::Caller
    }

    /// Builds a command. Returns a problem where none of the patterns allows it.
    fn command<'s>(
        &self,
        program: &str,
        args: impl IntoIterator<Item = &'s str>,
    ) -> Result<Command, Problem> {
        let args: Vec<_> = args.into_iter().map(str::to_owned).collect();
        if !self.is_own()
            && !self.access.verbs.iter().any(|verb| verb.allows(program, &args, &[], false).is_some())
        {
            return Err(not_covered(program, &args.join(" ")));
        }
        Ok(Command { privilege: self.access.privilege.clone(), ..Command::new(program, args, TIMEOUT) })
    }
}

/// Splits paths into groups that one command takes.
fn few_at_once(paths: Vec<String>) -> Vec<Vec<String>> {
    let mut groups: Vec<Vec<String>> = Vec::new();
    let mut bytes = 0;
    for path in paths {
        match groups.last_mut() {
            Some(group) if group.len() < PATHS && bytes + path.len() <= PATHS_BYTES => {
                bytes += path.len();
                group.push(path);
            }
            _ => {
                bytes = path.len();
                groups.push(vec![path]);
            }
        }
    }
    groups
}

fn there<'f>(path: &str, found: &'f Resolved) -> Result<&'f Entry, Problem> {
    match &found.end {
        End::There(entry) => Ok(entry),
        End::Missing | End::Dangling => Err(Problem::io(path, &Errno::NOENT.into())),
    }
}

fn not_covered(program: &str, about: &str) -> Problem {
    let command = excerpt(&format!("{program} {about}"), 300);
    let message = format!("`{command}` is not run with another account's rights: no grant covers it");
    Problem::new("CAPABILITY_DENIED", Category::Denied, message)
}

#[cfg(test)]
mod tests;
