//! Carries out the steps of `install` and `remove`. They are shown before, and undone where one of them fails.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use super::account::HOME;
use super::programs::must;
use super::{ACCOUNT, SystemError, atomic_file, fragments, wall};
use host_target::Target;

/// One change of the machine. Each variant's comment explains its fields.
#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Makes the system account, with this home.
    Account { home: PathBuf, group_exists: bool },
    /// Makes a directory, or corrects it where it `exists`: root's with 0755, or the account's with 0700.
    Directory { path: PathBuf, is_accounts: bool, exists: bool },
    /// Makes or corrects directories in the account's home, with 0700. The account itself does it: what root does
    /// below a directory of another account may go elsewhere.
    OwnDirectories { missing: Vec<PathBuf>, wrong: Vec<PathBuf> },
    /// Puts a program or a component with these bytes in place. `original` is where they come from in the end.
    Copy { from: PathBuf, original: PathBuf, to: PathBuf, mode: u32, sha256: String },
    /// Writes this text to a file of root's. visudo checks one of sudo's before it counts.
    Write { path: PathBuf, text: String, mode: u32, is_sudos: bool },
    /// Removes a file.
    Remove { path: PathBuf },
    /// Removes a directory at the very end, if it is empty then.
    RemoveEmpty { path: PathBuf },
    /// Removes a directory with everything in it, which can't be undone.
    RemoveTree { path: PathBuf },
    /// Restarts the journal, which then reads its configuration.
    RestartJournal,
    /// Removes the account.
    RemoveAccount,
}

impl Step {
    /// Says whether the step can't be undone.
    fn is_final(&self) -> bool {
        matches!(self, Self::RemoveTree { .. } | Self::RemoveAccount)
    }

    /// Describes the step and its effect, for the person who is asked.
    pub fn described(&self) -> String {
        match self {
            Self::Account { home, .. } => format!(
                "make the system account {ACCOUNT}, without a password or a shell, at home in {}",
                home.display()
            ),
            Self::Directory { path, is_accounts, exists } => {
                let verb = if *exists { "put right" } else { "make" };
                let (owner, mode) = if *is_accounts { (ACCOUNT, "0700") } else { ("root", "0755") };
                format!("{verb} {}, of {owner}, mode {mode}", path.display())
            }
            Self::OwnDirectories { missing, wrong } => {
                let names = |paths: &[PathBuf]| -> String {
                    let names = paths.iter().map(|path| path.strip_prefix(HOME).unwrap_or(path));
                    names.map(|name| name.display().to_string()).collect::<Vec<_>>().join(", ")
                };
                let all = [("make", missing), ("put right", wrong)]
                    .into_iter()
                    .filter(|(_, paths)| !paths.is_empty());
                let all: Vec<String> = all.map(|(verb, paths)| format!("{verb} {}", names(paths))).collect();
                format!("in {HOME}, as {ACCOUNT}: {}, mode 0700", all.join("; "))
            }
            Self::Copy { original, to, sha256, .. } => {
                format!("copy {} to {} (SHA-256 {sha256})", original.display(), to.display())
            }
            Self::Write { path, text, is_sudos, .. } => {
                let count = meaningful_lines(text).count();
                let after = if *is_sudos { ", after visudo has checked it" } else { "" };
                format!("write {} ({count} lines{after})", path.display())
            }
            Self::Remove { path } | Self::RemoveEmpty { path } => format!("remove {}", path.display()),
            Self::RemoveTree { path } => format!("remove {} with EVERYTHING in it", path.display()),
            Self::RestartJournal => format!("restart {}, which keeps its messages", wall::UNIT),
            Self::RemoveAccount => format!("remove the account {ACCOUNT}"),
        }
    }

    /// Returns the lines that allow something, for the person who is asked. Only their own words tell what they allow.
    pub fn allows(&self) -> Vec<&str> {
        match self {
            Self::Write { path, text, .. } if path.starts_with(fragments::DIRECTORY) => {
                meaningful_lines(text).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Returns a file's lines without blank ones and comments. In sudoers, `#` without a blank may begin something else.
fn meaningful_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && *line != "#" && !line.starts_with("# "))
}

/// The action that undoes a step.
enum Undo {
    Account,
    Directory(PathBuf),
    Tree(PathBuf),
    Attributes {
        path: PathBuf,
        mode: u32,
        uid: u32,
        gid: u32,
    },
    OwnDirectories(Vec<PathBuf>),
    /// The old file lies beside the new one, if there was one.
    File {
        path: PathBuf,
        before: Option<PathBuf>,
    },
}

/// The reason why a run failed, and what is left of it.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct StepsFailed {
    /// The error of the step that failed.
    pub error: SystemError,
    /// Errors of steps that couldn't be undone. All others were undone.
    pub not_undone: Vec<String>,
    /// The steps that remain to be done, where a step was done that can't be undone.
    pub remaining: Vec<String>,
}

/// Carries the steps out in order. If one fails, or `finally` does, all are undone, the latest first. After a step
/// that can't be undone, none is.
pub async fn carry_out(
    target: &Target,
    steps: &[Step],
    finally: impl AsyncFnOnce() -> Result<(), SystemError>,
) -> Result<(), StepsFailed> {
    let mut done = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        if let Err(error) = perform(target, step, &mut done).await {
            // The account is removed as a whole or not at all, unlike a directory.
            let passed = if *step == Step::RemoveAccount { number } else { number + 1 };
            if !steps[..passed].iter().any(Step::is_final) {
                return Err(undo_all(target, done, error).await);
            }
            remove_old_files(done);
            let remaining = steps[number..].iter().map(Step::described).collect();
            return Err(StepsFailed { error, not_undone: Vec::new(), remaining });
        }
    }
    match finally().await {
        Ok(()) => {
            remove_old_files(done);
            for step in steps {
                // It isn't an error if something else is in it.
                if let Step::RemoveEmpty { path } = step {
                    let _ = fs::remove_dir(path);
                }
            }
            Ok(())
        }
        Err(error) => Err(undo_all(target, done, error).await),
    }
}

/// Removes the old files, which aren't needed any more.
fn remove_old_files(done: Vec<Undo>) {
    for undo in done {
        if let Undo::File { before: Some(before), .. } = undo {
            let _ = fs::remove_file(before);
        }
    }
}

async fn undo_all(target: &Target, mut done: Vec<Undo>, error: SystemError) -> StepsFailed {
    let mut not_undone = Vec::new();
    while let Some(step) = done.pop() {
        if let Err(error) = undo(target, step).await {
            not_undone.push(error.to_string());
        }
    }
    StepsFailed { error, not_undone, remaining: Vec::new() }
}

/// Performs a step, and notes as soon as possible how to undo it.
async fn perform(target: &Target, step: &Step, done: &mut Vec<Undo>) -> Result<(), SystemError> {
    match step {
        Step::Account { home, group_exists } => {
            let home = home.display().to_string();
            let group = if *group_exists { ["--gid", ACCOUNT].as_slice() } else { &["--user-group"] };
            let shell = no_shell(target).await;
            let head = ["--system", "--no-create-home", "--home-dir", &home, "--shell", &shell];
            let comment = ["--comment", "linux-sysadmin, an MCP server"];
            must(target, "useradd", &[&head[..], &comment, group, &["--", ACCOUNT]].concat()).await?;
            done.push(Undo::Account);
        }
        Step::Directory { path, is_accounts, .. } => directory(path, *is_accounts, done)?,
        Step::OwnDirectories { missing, wrong } => {
            let paths = |paths: &[PathBuf]| -> Vec<String> {
                paths.iter().map(|path| path.display().to_string()).collect()
            };
            if !missing.is_empty() {
                as_account(target, &["mkdir", "--mode=0700", "--"], &paths(missing)).await?;
                done.push(Undo::OwnDirectories(missing.clone()));
            }
            if !wrong.is_empty() {
                as_account(target, &["chmod", "0700", "--"], &paths(wrong)).await?;
            }
        }
        Step::Copy { from, to, mode, sha256, .. } => {
            let staged = atomic_file::beside(to, "new");
            let copied =
                atomic_file::copy(from, &staged, *mode, sha256).map_err(|error| SystemError::io(from, error));
            copied.inspect_err(|_| drop(fs::remove_file(&staged)))?;
            replace(&staged, to, done)?;
        }
        Step::Write { path, text, mode, is_sudos } => {
            let staged = atomic_file::beside(path, "new");
            let written = atomic_file::stage(&staged, text.as_bytes(), *mode)
                .map_err(|error| SystemError::io(path, error));
            let checked = match (written, is_sudos) {
                (Ok(()), true) => check_with_visudo(target, &staged).await,
                (written, _) => written,
            };
            checked.inspect_err(|_| drop(fs::remove_file(&staged)))?;
            replace(&staged, path, done)?;
        }
        Step::Remove { path } => {
            let before = atomic_file::beside(path, "before");
            fs::rename(path, &before).map_err(|error| SystemError::io(path, error))?;
            done.push(Undo::File { path: path.clone(), before: Some(before) });
        }
        // Old files that are kept until the end may be in it.
        Step::RemoveEmpty { .. } => {}
        Step::RemoveTree { path } => {
            fs::remove_dir_all(path).map_err(|error| SystemError::io(path, error))?;
        }
        Step::RestartJournal => {
            must(target, "systemctl", &["try-restart", "--", wall::UNIT]).await?;
        }
        Step::RemoveAccount => {
            must(target, "userdel", &["--", ACCOUNT]).await?;
        }
    }
    Ok(())
}

async fn undo(target: &Target, undo: Undo) -> Result<(), SystemError> {
    let wrong = |path: &Path| {
        let path = path.to_owned();
        move |error| SystemError::io(&path, error)
    };
    match undo {
        Undo::Account => must(target, "userdel", &["--", ACCOUNT]).await.map(drop),
        Undo::Directory(path) => fs::remove_dir(&path).map_err(wrong(&path)),
        Undo::Tree(path) => fs::remove_dir_all(&path).map_err(wrong(&path)),
        Undo::Attributes { path, mode, uid, gid } => set(&path, mode, uid, gid).map_err(wrong(&path)),
        Undo::OwnDirectories(paths) => {
            let paths: Vec<String> = paths.iter().rev().map(|path| path.display().to_string()).collect();
            as_account(target, &["rm", "--recursive", "--force", "--"], &paths).await
        }
        Undo::File { path, before: Some(before) } => fs::rename(&before, &path).map_err(wrong(&path)),
        Undo::File { path, before: None } => fs::remove_file(&path).map_err(wrong(&path)),
    }
}

/// Makes or corrects a directory. Only root can change the directory above it, and so what is looked at is what is
/// changed.
fn directory(path: &Path, is_accounts: bool, done: &mut Vec<Undo>) -> Result<(), SystemError> {
    let wrong = |error| SystemError::io(path, error);
    let (mode, uid, gid) = match (is_accounts, super::account()) {
        (false, _) => (0o755, 0, 0),
        (true, Some(account)) => (0o700, account.uid, account.gid),
        (true, None) => return Err(SystemError::Refused(format!("there is no account {ACCOUNT}"))),
    };
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => {
            let before = (found.mode() & 0o7777, found.uid(), found.gid());
            done.push(Undo::Attributes {
                path: path.to_owned(),
                mode: before.0,
                uid: before.1,
                gid: before.2,
            });
        }
        Ok(_) => return Err(SystemError::Refused(format!("{} is not a directory", path.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().mode(0o700).create(path).map_err(wrong)?;
            // What is in the account's home later came there in this run.
            done.push(if is_accounts {
                Undo::Tree(path.to_owned())
            } else {
                Undo::Directory(path.to_owned())
            });
        }
        Err(error) => return Err(wrong(error)),
    }
    set(path, mode, uid, gid).map_err(wrong)
}

fn set(path: &Path, mode: u32, uid: u32, gid: u32) -> io::Result<()> {
    chown(path, Some(uid), Some(gid))?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

fn replace(staged: &Path, path: &Path, done: &mut Vec<Undo>) -> Result<(), SystemError> {
    let before = atomic_file::replace(staged, path).map_err(|error| SystemError::io(path, error))?;
    done.push(Undo::File { path: path.to_owned(), before });
    Ok(())
}

/// Returns a shell that allows no login.
async fn no_shell(target: &Target) -> String {
    for name in ["nologin", "false"] {
        if let Ok(path) = target.program(name).await {
            return path;
        }
    }
    "/bin/false".to_owned()
}

/// Checks that sudo can read the file.
async fn check_with_visudo(target: &Target, path: &Path) -> Result<(), SystemError> {
    must(target, "visudo", &["-c", "-f", &path.display().to_string()]).await.map(drop)
}

async fn as_account(target: &Target, argv: &[&str], paths: &[String]) -> Result<(), SystemError> {
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let head = ["-n", "-u", ACCOUNT, "--"];
    must(target, "sudo", &[&head[..], argv, &paths].concat()).await.map(drop)
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;
    use host_target::Overrides;

    async fn carried_out(steps: &[Step]) -> Result<(), StepsFailed> {
        carry_out(&Target::local(Overrides::default()), steps, async || Ok(())).await
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_sudo_is_told_is_shown_line_by_line_and_comments_are_not() {
        let text = "# The module\n#\n\na ALL=(root) NOPASSWD: A\n#include /tmp/x\n#0 ALL=ALL\n";
        let write = |path: &str| Step::Write {
            path: path.into(),
            text: text.to_owned(),
            mode: 0o440,
            is_sudos: false,
        };
        let shown = ["a ALL=(root) NOPASSWD: A", "#include /tmp/x", "#0 ALL=ALL"];
        for path in ["/etc/sudoers.d/linux-sysadmin-a", "/etc/sudoers.d/linux-sysadmin-a.3.env"] {
            assert_eq!(write(path).allows(), shown);
            assert!(write(path).described().contains("(3 lines"), "{}", write(path).described());
        }
        assert!(write("/var/lib/linux-sysadmin/system.json").allows().is_empty());
    }

    #[tokio::test]
    async fn what_was_done_before_a_step_failed_is_undone() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("a"), "a").unwrap();
        fs::write(at("b"), "b").unwrap();
        let remove = |name: &str| Step::Remove { path: at(name) };
        let failed = carried_out(&[remove("a"), remove("b"), remove("c")]).await.unwrap_err();
        assert!(failed.not_undone.is_empty() && failed.remaining.is_empty(), "{failed:?}");
        assert!(failed.error.to_string().contains("/c: "), "{failed}");
        assert_eq!(names(directory.path()), ["a", "b"]);
        assert_eq!(fs::read_to_string(at("b")).unwrap(), "b");
        // The last check fails here, not a step.
        let target = Target::local(Overrides::default());
        let no = async || Err(SystemError::Refused("no".to_owned()));
        assert!(carry_out(&target, &[remove("a")], no).await.is_err());
        assert_eq!(names(directory.path()), ["a", "b"]);
        carried_out(&[remove("a")]).await.unwrap();
        assert_eq!(names(directory.path()), ["b"]);
        carried_out(&[Step::RemoveEmpty { path: directory.path().into() }, remove("b")]).await.unwrap();
        assert!(!directory.path().exists());
    }

    #[tokio::test]
    async fn where_there_is_no_way_back_what_remains_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("a"), "a").unwrap();
        fs::create_dir(at("tree")).unwrap();
        fs::write(at("tree/x"), "x").unwrap();
        let remove = |name: &str| Step::Remove { path: at(name) };
        let tree = |name: &str| Step::RemoveTree { path: at(name) };
        let failed = carried_out(&[tree("none"), remove("a")]).await.unwrap_err();
        assert_eq!(failed.remaining, [tree("none").described(), remove("a").described()]);
        let failed = carried_out(&[remove("a"), tree("tree"), remove("none")]).await.unwrap_err();
        assert_eq!(failed.remaining, [remove("none").described()]);
        assert_eq!(names(directory.path()), Vec::<String>::new());
    }

    #[tokio::test]
    async fn other_bytes_than_those_that_were_shown_are_not_put_in_place() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        fs::write(&from, "evil").unwrap();
        fs::write(&to, "old").unwrap();
        let sha256 = hex::encode(Sha256::digest("good"));
        let step = Step::Copy { from: from.clone(), original: from, to: to.clone(), mode: 0o755, sha256 };
        let failed = carried_out(&[step]).await.unwrap_err();
        assert!(failed.error.to_string().contains("somebody has changed it"), "{failed}");
        assert_eq!(fs::read_to_string(&to).unwrap(), "old");
        assert_eq!(names(directory.path()), ["from", "to"]);
    }
}
