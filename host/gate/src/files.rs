//! The steps of a plan that work on files and directories. Each step happens as a whole or not at all, and can be
//! undone byte for byte.
//!
//! A new file is first written into a fresh directory beside its place, under its own name. Nobody else may enter that
//! directory, so a program that reads all files of a directory (`conf.d`) never sees a half-written one, and a program
//! that validates the file finds the name that it expects. Then the file is renamed over its place. The directory keeps
//! the former file as a hard link, so that putting it back restores contents, owner, mode, times, access control list
//! and security context.
//!
//! What is moved, gets other attributes, or is removed as an empty directory needs no copy: its device, inode, mode, owner
//! and group are kept, and its undo goes by them.
//!
//! A directory that earlier steps of the plan empty holds the copies that those steps keep. It stays until they are removed,
//! after the plan has succeeded, and goes with them. So its undo has nothing to do.
//!
//! Files are written by commands only, in the same way on this machine and on others. The commands are those of
//! `capability/verbs.yaml`: with another account's rights, nothing runs that the module's grants don't include.

mod attributes;
mod contents;
mod directories;
mod moving;
mod writing;

pub use attributes::is_same;
pub use moving::Whereabouts;

use std::sync::Arc;
use std::time::Duration;

use super::expected_target::ExpectedTarget;
use super::file_problems::{also, changed, failed, no_answer};
use super::plan::Action;
use host_audit::FileChange;
use host_base::faults;
use host_base::problem::{Category, Problem};
use host_base::sha256;
use host_base::{Command, Output, Privilege};
use host_capability::Access;
use host_capability::is_lexically_safe;
use host_target::{FileKind, Found, Located, Target};
use host_text::redact::excerpt;

/// The time for one of the host's own commands, each of which works on one file.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The name of the former file in the staging directory.
const KEPT: &str = ".previous";
/// The beginning of a staging directory's name. The rest is made of the change's id and the step's number.
const STAGING: &str = ".linux-sysadmin-";
/// The number of hexadecimal digits of the step's number there.
const STEP_DIGITS: usize = 2;

/// The place of a step's file or directory, and what was there before the plan.
#[derive(Clone, Debug)]
pub struct Site {
    /// The path without symbolic links.
    pub path: String,
    /// The path without symbolic links that the file or directory is moved to.
    pub to: Option<String>,
    /// The file or directory that was found. None where nothing was there.
    pub found: Option<Found>,
    /// The contents of the file that was found, or the target of the symbolic link.
    pub before: Option<Vec<u8>>,
    /// The names of the directories in a directory that is to be removed which earlier steps empty. None where the directory
    /// is empty already, or isn't to be removed.
    pub emptied: Option<Vec<String>>,
    /// The directory for copies.
    pub staging: String,
    access: Access,
    /// The number of the step.
    step: usize,
}

impl Site {
    /// Looks at the place of a step of the change with this id; `(id, number)` names both. The result is a problem
    /// where the step would work on a file with several names, or on anything but what its kind of step is for. `permits` is
    /// asked first about each path, as it was given and without links, and whether anything is there.
    pub async fn survey(
        target: &Target,
        access: Access,
        path: &str,
        action: &Action,
        (id, number): (&str, usize),
        permits: impl Fn(&str, &str, bool) -> Result<(), Problem>,
    ) -> Result<Self, Problem> {
        let asked: Vec<&str> = std::iter::once(path).chain(action.to()).collect();
        if let Some(path) = asked.iter().find(|path| path.ends_with('/') || !is_lexically_safe(path)) {
            return Err(Problem::new(
                "INVALID_PATH",
                Category::Validation,
                format!(
                    "{} is no file's path: expected an absolute one without `.`, `..` or `//`",
                    excerpt(path, 300)
                ),
            ));
        }
        let located = target.locate(asked.iter().map(|path| (*path).to_owned()).collect(), &access).await;
        let mut places = Vec::new();
        for (path, located) in asked.into_iter().zip(located) {
            let located = located.map_err(|problem| {
                problem.needed_for(&format!("changing {}", excerpt(path, 300)), &access.privilege)
            })?;
            permits(path, &located.path, located.found.is_some())?;
            let (_, name) = split(&located.path);
            if name == KEPT || name.starts_with(STAGING) {
                let message = format!("{} has a name that the host uses for its own copies", located.path);
                return Err(Problem::new("INVALID_PATH", Category::Validation, message));
            }
            places.push(located);
        }
        let mut places = places.into_iter();
        let Some(Located { path, found }) = places.next() else { return Err(no_answer()) };
        let to = places.next();
        // The name has fourteen digits of the change's id and two of the step's number, so that no two steps share a
        // directory.
        let (above, id) = (split(&path).0, &id[..14.min(id.len())]);
        let staging = format!("{above}/{STAGING}{id}{number:0STEP_DIGITS$x}");
        let mut site = Self {
            staging,
            to: to.as_ref().map(|to| to.path.clone()),
            found,
            before: None,
            emptied: None,
            access,
            path,
            step: number,
        };
        site.check(action)?;
        match (action, to) {
            (Action::Move(_), Some(to)) => site.check_move(target, &to).await?,
            (Action::SetAttributes(attributes), _) => site.check_attributes(target, attributes).await?,
            (Action::RemoveDirectory(_), _) => site.check_removal(target).await?,
            _ => {}
        }
        if !site.is_directory() && site.found.is_some() && !matches!(action, Action::SetAttributes(_)) {
            site.before = Some(match action {
                Action::Move(_) => site.beginning(target, site.is_link()).await?,
                _ => site.read(target, site.is_link()).await?,
            });
        }
        Ok(site)
    }

    /// The place of a step in the audit log, which doesn't hold the former contents.
    pub fn recorded(file: &FileChange, access: Access, step: usize) -> Result<Self, Problem> {
        let (path, staging) = (file.path.as_str(), file.staging.as_str());
        let is_beside = |staging: &str| {
            let name = staging.strip_prefix(split(path).0).and_then(|rest| rest.strip_prefix('/'));
            name.is_some_and(|name| name.starts_with(STAGING) && !name.contains('/'))
        };
        if !is_lexically_safe(path) || !is_beside(staging) || file.to.iter().any(|to| !is_lexically_safe(to))
        {
            let message =
                format!("the copies of {path} are beside it, and not in {staging} as the record says");
            return Err(Problem::new("INVALID_RECORD", Category::Validation, message));
        }
        let (path, staging, to) = (path.to_owned(), staging.to_owned(), file.to.clone());
        let found = file.before.as_ref().map(attributes::found);
        Ok(Self { path, to, staging, found, before: None, emptied: None, access, step })
    }

    fn is_a(&self, kind: FileKind) -> bool {
        self.found.as_ref().is_some_and(|found| found.kind == kind)
    }

    /// Whether a directory was found.
    pub fn is_directory(&self) -> bool {
        self.is_a(FileKind::Directory)
    }

    /// Whether a symbolic link was found.
    fn is_link(&self) -> bool {
        self.is_a(FileKind::Symlink)
    }

    /// The target of the symbolic link that was found.
    pub fn link_target(&self) -> Option<&[u8]> {
        self.before.as_deref().filter(|_| self.is_link())
    }

    /// The places that a half-done step has left something in.
    pub fn places(&self, action: &Action) -> Vec<&str> {
        let other = match action {
            Action::Write(_) | Action::Remove(_) => Some(self.staging.as_str()),
            _ => self.to.as_deref(),
        };
        std::iter::once(self.path.as_str()).chain(other).collect()
    }

    fn pass(&self, point: &str) -> Result<(), Problem> {
        faults::pass(format_args!("{point}-{}", self.step))
    }

    fn check(&self, action: &Action) -> Result<(), Problem> {
        let path = &self.path;
        let state = |code: &str, message: String| Err(Problem::new(code, Category::State, message));
        let denied = |code: &str, message: String| Err(Problem::new(code, Category::Denied, message));
        let (what, expected) = match action {
            Action::Move(_) => ("moved", "a regular file or a directory"),
            Action::SetAttributes(_) => ("changed", "a regular file or a directory"),
            Action::RemoveDirectory(_) => ("removed", "a directory"),
            Action::Remove(_) => ("removed", "a regular file or a symlink"),
            _ => ("written", "a regular file"),
        };
        let Some(found) = &self.found else {
            return match action {
                Action::Write(_) | Action::MakeDirectory(_) | Action::Run(_) | Action::Signal(_) => Ok(()),
                _ => Err(Problem::new(
                    "FILE_NOT_FOUND",
                    Category::NotFound,
                    format!("{path} is to be {what}, but isn't there"),
                )),
            };
        };
        if let Action::MakeDirectory(_) = action {
            return state("FILE_EXISTS", format!("{path} is to be made as a directory, but exists already"));
        }
        match found.kind {
            FileKind::File if !expected.contains("file") => {
                denied("NOT_A_DIRECTORY", format!("{path} is a regular file; expected {expected}"))
            }
            FileKind::Symlink if !expected.contains("symlink") => {
                denied("SYMLINK", format!("{path} is a symlink; expected {expected}: name what it leads to"))
            }
            FileKind::File | FileKind::Symlink if found.metadata.links == 1 => Ok(()),
            FileKind::File | FileKind::Symlink => denied(
                "HARD_LINK",
                format!(
                    "{path} has {} names; expected a file with this name only: the other name may be somebody else's",
                    found.metadata.links
                ),
            ),
            FileKind::Directory if expected.contains("directory") => Ok(()),
            FileKind::Directory => {
                denied("NOT_A_REGULAR_FILE", format!("{path} is a directory; expected {expected}"))
            }
            FileKind::Other => denied(
                "NOT_A_REGULAR_FILE",
                format!("{path} is a device, pipe or socket; expected {expected}"),
            ),
        }
    }

    /// Checks that nobody has changed the place since the plan was made. With `only_attributes`, programs may go on writing
    /// to a file, and changing what is in a directory.
    async fn unchanged(&self, target: &Target, only_attributes: bool) -> Result<(), Problem> {
        let paths = std::iter::once(&self.path).chain(&self.to).cloned().collect();
        let mut located = target.locate(paths, &self.access).await.into_iter();
        let at = located.next().unwrap_or_else(|| Err(no_answer()))?;
        let links = |found: &Option<Found>| found.as_ref().map(|found| found.metadata.links);
        let is_as_before = match only_attributes {
            true => {
                at.found.as_ref().map(attributes::of) == self.attributes()
                    && (self.is_directory() || links(&at.found) == links(&self.found))
            }
            false => at.found == self.found,
        };
        if at.path != self.path || !is_as_before {
            return Err(changed(&self.path));
        }
        if let Some(to) = &self.to {
            let at = located.next().unwrap_or_else(|| Err(no_answer()))?;
            if at.path != *to || at.found.is_some() {
                return Err(changed(to));
            }
        }
        match &self.before {
            Some(before) if self.beginning(target, self.is_link()).await? != *before => {
                Err(changed(&self.path))
            }
            _ => Ok(()),
        }
    }

    /// The beginning of the names of all directories for copies that this change makes.
    fn copies_of_change(&self) -> String {
        let name = split(&self.staging).1;
        name[..name.len() - STEP_DIGITS].to_owned()
    }

    /// What is left over where [`Site::tidy`] fails.
    pub fn leftover(&self) -> &str {
        if self.emptied.is_some() { &self.path } else { &self.staging }
    }

    /// The path of the former file's copy.
    pub fn kept(&self) -> String {
        format!("{}/{KEPT}", self.staging)
    }

    /// The path of the new file until it is renamed over its place.
    pub fn staged(&self) -> String {
        format!("{}/{}", self.staging, split(&self.path).1)
    }

    /// Executes the step. A step that fails is undone at once. `validate` is the command that validates the new file,
    /// with `{}` for the file's path.
    pub async fn apply(
        &self,
        target: &Target,
        action: &Action,
        validate: Option<&Command>,
        expected: &ExpectedTarget,
    ) -> Result<(), Problem> {
        let only_attributes =
            matches!(action, Action::Move(_) | Action::SetAttributes(_)) || self.emptied.is_some();
        self.unchanged(target, only_attributes).await?;
        let selinux = expected.facts().mac_system == "selinux";
        let applied = match action {
            Action::Write(write) => self.write(target, write, validate, selinux).await,
            Action::Remove(_) => self.remove(target).await,
            Action::MakeDirectory(directory) => self.make_directory(target, directory).await,
            Action::Move(_) => self.move_there(target).await,
            Action::SetAttributes(attributes) => self.set_attributes(target, attributes).await,
            Action::RemoveDirectory(_) => self.remove_when_empty(target).await,
            Action::Run(_) | Action::Signal(_) => Ok(()),
        };
        let Err(problem) = applied else { return Ok(()) };
        let lost = problem.is_uncertain();
        let taken_back = async {
            // After a reconnection, the step's copies are on the machine that was lost.
            expected.check(target).await?;
            match self.take_back(target, action, lost).await {
                // The last command of the lost connection may have reached the target after the check for copies.
                Err(problem) if lost && problem.code == "DIRECTORY_NOT_EMPTY" => {
                    self.take_back(target, action, lost).await
                }
                taken_back => taken_back,
            }
        };
        Err(match taken_back.await {
            Err(second) => also(problem, &second),
            Ok(()) if lost => {
                let message = format!(
                    "{}: the connection was lost in the middle of the step; what had been begun is taken back",
                    self.path
                );
                Problem::new("CONNECTION_LOST", Category::Network, message)
            }
            Ok(()) => problem,
        })
    }

    /// Undoes the step, however far it came. The copies stay where that can't be seen. Where the connection was lost in
    /// the middle of a command, the command may still reach the target meanwhile, so nothing is removed that it could
    /// have put there.
    async fn take_back(&self, target: &Target, action: &Action, lost: bool) -> Result<(), Problem> {
        match action {
            // A command that reported its failure has left nothing behind.
            Action::MakeDirectory(_) => {
                return match lost && self.is_there(target).await? {
                    true => self.remove_directory(target).await,
                    false => Ok(()),
                };
            }
            Action::Move(_) => return self.take_back_move(target).await,
            Action::SetAttributes(_) => return self.take_back_attributes(target).await,
            Action::RemoveDirectory(_) if self.emptied.is_some() => return Ok(()),
            Action::RemoveDirectory(_) => return self.make_again(target).await.map(drop),
            Action::Run(_) | Action::Signal(_) | Action::Write(_) | Action::Remove(_) => {}
        }
        if !self.is_staged(target).await? {
            return Ok(());
        }
        let was_renamed = !self.holds(target, self.staged()).await?;
        // From here on, no file is left that could still be renamed over the place.
        self.run(target, "rm", &["--force", "--", &self.staged()], None).await?;
        if self.holds(target, self.kept()).await? {
            self.put_back(target).await?;
        } else if let (None, Action::Write(write)) = (&self.found, action)
            && (was_renamed || lost)
            && self.now(target).await? == Some(sha256::of(&write.contents))
        {
            self.remove_new(target).await?;
        }
        self.pass("before-tidy")?;
        self.run(target, "rmdir", &["--", &self.staging], None).await.map(drop)
    }

    /// Undoes the step after it has succeeded.
    pub async fn undo(&self, target: &Target, action: &Action) -> Result<(), Problem> {
        match action {
            Action::Run(_) | Action::Signal(_) => Ok(()),
            Action::MakeDirectory(_) => self.remove_directory(target).await,
            Action::Move(_) => self.undo_move(target).await,
            Action::SetAttributes(attributes) => self.undo_attributes(target, attributes).await,
            Action::RemoveDirectory(_) if self.emptied.is_some() => Ok(()),
            Action::RemoveDirectory(_) => self.undo_removal(target).await,
            Action::Write(_) | Action::Remove(_) => {
                let ours = match action {
                    Action::Write(write) => Some(sha256::of(&write.contents)),
                    _ => None,
                };
                let now = self.now(target).await.map_err(|problem| self.with_copy(problem))?;
                if now != ours {
                    let message = match self.found.is_some() {
                        true => format!(
                            "somebody has changed it since; what was there before is kept as {}",
                            self.kept()
                        ),
                        false => "somebody has changed it since, so it stays".to_owned(),
                    };
                    return Err(Problem::new("FILE_CHANGED", Category::State, message));
                }
                match self.found.is_some() {
                    true => self.put_back(target).await.map_err(|problem| self.with_copy(problem))?,
                    false => self.remove_new(target).await?,
                }
                self.tidy(target).await
            }
        }
    }

    /// Removes a file that the step made.
    pub async fn remove_new(&self, target: &Target) -> Result<(), Problem> {
        self.run(target, "rm", &["--force", "--", &self.path], None).await.map(drop)
    }

    /// Puts the former file back at its place.
    pub async fn put_back(&self, target: &Target) -> Result<(), Problem> {
        let kept = self.kept();
        // Until the new file is renamed over it, the former file has both names, and `mv` needs two different files.
        if self.is_at_place(target).await? {
            return self.run(target, "rm", &["--force", "--", &kept], None).await.map(drop);
        }
        self.run(target, "mv", &["--no-target-directory", "--", &kept, &self.path], None).await.map(drop)
    }

    /// Whether the file at the place is the same file as the copy.
    async fn is_at_place(&self, target: &Target) -> Result<bool, Problem> {
        let located = target.locate(vec![self.path.clone(), self.kept()], &self.access).await;
        let mut files = Vec::new();
        for located in located {
            let found = located?.found;
            files.push(found.map(|found| (found.metadata.device, found.metadata.inode)));
        }
        Ok(matches!(files.as_slice(), [Some(place), Some(kept)] if place == kept))
    }

    /// Adds the path of the former file's copy to a problem.
    fn with_copy(&self, mut problem: Problem) -> Problem {
        if self.found.is_none() {
            return problem;
        }
        problem.message = format!("{}; the former file is kept as {}", problem.message, self.kept());
        problem
    }

    /// Whether the copy of the former file exists.
    pub async fn is_kept(&self, target: &Target) -> Result<bool, Problem> {
        Ok(self.is_staged(target).await? && self.holds(target, self.kept()).await?)
    }

    /// Whether the directory for copies exists.
    pub async fn is_staged(&self, target: &Target) -> Result<bool, Problem> {
        self.holds(target, self.staging.clone()).await
    }

    /// Whether anything is at the place.
    pub async fn is_there(&self, target: &Target) -> Result<bool, Problem> {
        self.holds(target, self.path.clone()).await
    }

    async fn holds(&self, target: &Target, path: String) -> Result<bool, Problem> {
        let located = target.locate(vec![path], &self.access).await.pop();
        Ok(located.unwrap_or_else(|| Err(no_answer()))?.found.is_some())
    }

    /// Removes the copies, and a directory that held the copies of earlier steps.
    pub async fn tidy(&self, target: &Target) -> Result<(), Problem> {
        if self.emptied.is_some() {
            return self.remove_directory(target).await;
        }
        if !self.is_staged(target).await? {
            return Ok(());
        }
        self.pass("before-tidy")?;
        self.run(target, "rm", &["--force", "--", &self.staged()], None).await?;
        self.run(target, "rm", &["--force", "--", &self.kept()], None).await?;
        self.run(target, "rmdir", &["--", &self.staging], None).await.map(drop)
    }

    /// The commands by which the target itself would undo the step. Each has its arguments and, where needed, a path
    /// that must exist for it to run.
    pub fn undo_by_target(&self, action: &Action, selinux: bool) -> Vec<(Vec<String>, Option<String>)> {
        let argv = |argv: &[&str]| argv.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        match action {
            Action::Run(_) | Action::Signal(_) => Vec::new(),
            Action::MakeDirectory(_) => vec![(argv(&["rmdir", "--", &self.path]), None)],
            Action::Move(_) => self.move_back_by_target(),
            Action::SetAttributes(attributes) => {
                let back = self.restoring(attributes).into_iter();
                back.map(|argv| (argv, Some(self.path.clone()))).collect()
            }
            Action::RemoveDirectory(_) if self.emptied.is_some() => Vec::new(),
            Action::RemoveDirectory(_) => {
                self.making_again(selinux).into_iter().map(|argv| (argv, None)).collect()
            }
            Action::Write(_) | Action::Remove(_) => {
                let (kept, staged) = (self.kept(), self.staged());
                let mut undo = match self.found.is_some() {
                    true => {
                        let moved = argv(&["mv", "--no-target-directory", "--", &kept, &self.path]);
                        // To systemd, a symbolic link that leads to nothing isn't there.
                        vec![(moved, Some(if self.is_link() { self.staging.clone() } else { kept }))]
                    }
                    false => vec![(argv(&["rm", "--force", "--", &self.path]), None)],
                };
                undo.push((argv(&["rm", "--force", "--", &staged]), Some(self.staging.clone())));
                undo.push((argv(&["rmdir", "--", &self.staging]), Some(self.staging.clone())));
                undo
            }
        }
    }

    /// Checks that one of the host's own commands is allowed with these rights.
    fn may_run(&self, program: &str, args: &[String], stdin: bool) -> Result<(), Problem> {
        let allows = |verb: &Arc<host_capability::Verb>| verb.allows(program, args, &[], stdin).is_some();
        if self.access.privilege == Privilege::Caller || self.access.verbs.iter().any(allows) {
            return Ok(());
        }
        let command = excerpt(&format!("{program} {}", args.join(" ")), 300);
        let message = format!("`{command}` is not run with another account's rights: no grant covers it");
        Err(Problem::new("CAPABILITY_DENIED", Category::Denied, message))
    }

    /// Checks that all of these commands are allowed, each with its program first.
    fn may_run_all(&self, commands: &[Vec<String>]) -> Result<(), Problem> {
        let mut words = commands.iter().filter_map(|argv| argv.split_first());
        words.try_for_each(|(program, args)| self.may_run(program, args, false))
    }

    /// Runs such a command.
    async fn run_argv(&self, target: &Target, argv: &[String]) -> Result<Output, Problem> {
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        match words.split_first() {
            Some((program, args)) => self.run(target, program, args, None).await,
            None => Err(no_answer()),
        }
    }

    /// Runs one of the host's own commands on the place.
    async fn run(
        &self,
        target: &Target,
        program: &str,
        args: &[&str],
        stdin: Option<Vec<u8>>,
    ) -> Result<Output, Problem> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        self.may_run(program, &args, stdin.is_some())?;
        let privilege = self.access.privilege.clone();
        let command = Command { stdin, privilege, ..Command::new(program, args, TIMEOUT) };
        let output = run_one(target, &command).await?;
        match output.exit_code {
            0 => Ok(output),
            _ => Err(failed(program, &self.path, &output)),
        }
    }
}

/// Runs a command that changes the target. Its future is large, and a step awaits many of them one inside the other: in a box
/// they don't fill the stack.
pub(super) async fn run_one(target: &Target, command: &Command) -> Result<Output, Problem> {
    Box::pin(target.act(command)).await
}

/// The mode in the form that `chmod` takes.
pub(super) fn octal(mode: u32) -> String {
    format!("{mode:04o}")
}

/// The parts of a path before and after its last slash.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

#[cfg(test)]
mod tests;
