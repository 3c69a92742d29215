//! What `install` and `remove` do, one step after the other: shown before, undone where one of them fails.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use super::account::HOME;
use super::programs::must;
use super::{ACCOUNT, SystemError, fragments, put};
use host_target::Target;

/// One thing that is to be different. What a variant's fields mean is in its own comment.
#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The system account is made, at home here.
    Account { home: PathBuf, group_exists: bool },
    /// A directory is made, or put right where it `exists`: root's with 0755, or the account's with 0700.
    Directory { path: PathBuf, is_accounts: bool, exists: bool },
    /// Directories in the account's home, with 0700: made or put right by the account itself. What root does below a
    /// directory of another's may go elsewhere.
    OwnDirectories { missing: Vec<PathBuf>, wrong: Vec<PathBuf> },
    /// A program or a component is put in place, with these bytes; `original` is where they come from in the end.
    Copy { from: PathBuf, original: PathBuf, to: PathBuf, mode: u32, sha256: String },
    /// A file of root's gets this text. One of sudo's is checked by visudo before it counts.
    Write { path: PathBuf, text: String, mode: u32, is_sudos: bool },
    /// A file is taken away.
    Remove { path: PathBuf },
    /// A directory is taken away at the very end, where nothing is in it any more.
    RemoveEmpty { path: PathBuf },
    /// A directory is taken away with everything in it, which can't be undone.
    RemoveTree { path: PathBuf },
    /// The account is taken away.
    RemoveAccount,
}

impl Step {
    /// Whether there is no way back from it.
    fn is_final(&self) -> bool {
        matches!(self, Self::RemoveTree { .. } | Self::RemoveAccount)
    }

    /// For who is asked about it: what is done, and what it comes to.
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
                let says = says(text).count();
                let after = if *is_sudos { ", after visudo has checked it" } else { "" };
                format!("write {} ({says} lines{after})", path.display())
            }
            Self::Remove { path } | Self::RemoveEmpty { path } => format!("remove {}", path.display()),
            Self::RemoveTree { path } => format!("remove {} with EVERYTHING in it", path.display()),
            Self::RemoveAccount => format!("remove the account {ACCOUNT}"),
        }
    }

    /// For who is asked about it: the lines by which something is allowed. What it comes to is in their words only.
    pub fn allows(&self) -> Vec<&str> {
        match self {
            Self::Write { path, text, .. } if path.starts_with(fragments::DIRECTORY) => says(text).collect(),
            _ => Vec::new(),
        }
    }
}

/// A file's lines but for blank ones and comments. In sudoers, `#` without a blank may begin something else.
fn says(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && *line != "#" && !line.starts_with("# "))
}

/// How one is taken back.
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
    /// What was there lies beside it; nothing was there.
    File {
        path: PathBuf,
        before: Option<PathBuf>,
    },
}

/// What became of steps that weren't all done.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failed {
    /// Why not.
    pub error: SystemError,
    /// What of this run couldn't be taken back. Everything else was.
    pub left: Vec<String>,
    /// Where there was no way back any more: what remains to be done.
    pub remaining: Vec<String>,
}

/// Does them in order. Where one fails, or `finally` isn't content, all are undone, the latest first. From the first one
/// on from which there is no way back, none is.
pub async fn carry_out(
    target: &Target,
    steps: &[Step],
    finally: impl AsyncFnOnce() -> Result<(), SystemError>,
) -> Result<(), Failed> {
    let mut done = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        if let Err(error) = perform(target, step, &mut done).await {
            // The account goes at once or not at all, unlike a directory.
            let passed = if *step == Step::RemoveAccount { number } else { number + 1 };
            if !steps[..passed].iter().any(Step::is_final) {
                return Err(taken_back(target, done, error).await);
            }
            keep(done);
            let remaining = steps[number..].iter().map(Step::described).collect();
            return Err(Failed { error, left: Vec::new(), remaining });
        }
    }
    match finally().await {
        Ok(()) => {
            keep(done);
            for step in steps {
                // That something else is in it is no failure.
                if let Step::RemoveEmpty { path } = step {
                    let _ = fs::remove_dir(path);
                }
            }
            Ok(())
        }
        Err(error) => Err(taken_back(target, done, error).await),
    }
}

/// What was there before isn't needed any more.
fn keep(done: Vec<Undo>) {
    for undo in done {
        if let Undo::File { before: Some(before), .. } = undo {
            let _ = fs::remove_file(before);
        }
    }
}

async fn taken_back(target: &Target, mut done: Vec<Undo>, error: SystemError) -> Failed {
    let mut left = Vec::new();
    while let Some(step) = done.pop() {
        if let Err(error) = undo(target, step).await {
            left.push(error.to_string());
        }
    }
    Failed { error, left, remaining: Vec::new() }
}

/// What can be undone is noted as soon as it is done.
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
            let staged = put::beside(to, "new");
            let copied =
                put::copy(from, &staged, *mode, sha256).map_err(|error| SystemError::io(from, error));
            copied.inspect_err(|_| drop(fs::remove_file(&staged)))?;
            replace(&staged, to, done)?;
        }
        Step::Write { path, text, mode, is_sudos } => {
            let staged = put::beside(path, "new");
            let written =
                put::stage(&staged, text.as_bytes(), *mode).map_err(|error| SystemError::io(path, error));
            let checked = match (written, is_sudos) {
                (Ok(()), true) => visudo(target, &staged).await,
                (written, _) => written,
            };
            checked.inspect_err(|_| drop(fs::remove_file(&staged)))?;
            replace(&staged, path, done)?;
        }
        Step::Remove { path } => {
            let before = put::beside(path, "before");
            fs::rename(path, &before).map_err(|error| SystemError::io(path, error))?;
            done.push(Undo::File { path: path.clone(), before: Some(before) });
        }
        // What is kept until then may be in it.
        Step::RemoveEmpty { .. } => {}
        Step::RemoveTree { path } => {
            fs::remove_dir_all(path).map_err(|error| SystemError::io(path, error))?;
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

/// In a directory that only root can change, so what is looked at is what is changed.
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
            // Whatever is in the account's home then came there in this run.
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
    let before = put::replace(staged, path).map_err(|error| SystemError::io(path, error))?;
    done.push(Undo::File { path: path.to_owned(), before });
    Ok(())
}

/// A shell that isn't one.
async fn no_shell(target: &Target) -> String {
    for name in ["nologin", "false"] {
        if let Ok(path) = target.program(name).await {
            return path;
        }
    }
    "/bin/false".to_owned()
}

/// Whether sudo could read the file.
async fn visudo(target: &Target, path: &Path) -> Result<(), SystemError> {
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

    async fn carried_out(steps: &[Step]) -> Result<(), Failed> {
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
        assert!(failed.left.is_empty() && failed.remaining.is_empty(), "{failed:?}");
        assert!(failed.error.to_string().contains("/c: "), "{failed}");
        assert_eq!(names(directory.path()), ["a", "b"]);
        assert_eq!(fs::read_to_string(at("b")).unwrap(), "b");
        // The last word isn't a step's.
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
