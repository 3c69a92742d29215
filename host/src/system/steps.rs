//! What `install` and `remove` do, one step after the other: shown before, undone where one of them fails.
//!
//! A file is staged beside its place, checked, and renamed. What was there is kept beside it until everything is done.
//! Both have names with a dot, which sudo passes over in its directory.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::{ACCOUNT, SystemError};
use crate::target::{Command, Keep, Output, Privilege, Target};
use crate::visible::excerpt;

/// For programs that only look something up, or change one file.
const SHORT: Duration = Duration::from_secs(60);

/// One thing that is to be different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The system account is made, at home here.
    Account { home: PathBuf, group_exists: bool },
    /// A directory is made or put right: root's with 0755, or the account's with 0700.
    Directory { path: PathBuf, is_accounts: bool },
    /// Directories in the account's home, with 0700: made or put right by the account itself. What root does below a
    /// directory of another's may go elsewhere.
    OwnDirectories { missing: Vec<PathBuf>, wrong: Vec<PathBuf> },
    /// A program or a component is put in place; `doubt` is who could have changed the original.
    Copy { from: PathBuf, original: PathBuf, to: PathBuf, mode: u32, sha256: String, doubt: Option<String> },
    /// A file of root's gets this text. One of sudo's is checked by visudo before it counts.
    Write { path: PathBuf, text: String, mode: u32, is_sudos: bool },
    /// A file is taken away.
    Remove { path: PathBuf },
    /// Directories are taken away where nothing is in them any more.
    RemoveEmpty { path: PathBuf },
    /// A directory is taken away with everything in it, which can't be undone.
    RemoveTree { path: PathBuf },
    /// The account is taken away.
    RemoveAccount,
}

impl Step {
    /// For who is asked about it: what is done, and what it comes to.
    pub fn described(&self) -> String {
        match self {
            Self::Account { home, .. } => format!(
                "make the system account {ACCOUNT}, without a password or a shell, at home in {}",
                home.display()
            ),
            Self::Directory { path, is_accounts: true } => {
                format!("make {} (or put it right), of {ACCOUNT}, mode 0700", path.display())
            }
            Self::Directory { path, is_accounts: false } => {
                format!("make {} (or put it right), of root, mode 0755", path.display())
            }
            Self::OwnDirectories { missing, wrong } => {
                let all: Vec<String> =
                    missing.iter().chain(wrong).map(|path| path.display().to_string()).collect();
                format!("as {ACCOUNT}: make {} (or put them right), mode 0700", all.join(", "))
            }
            Self::Copy { original, to, sha256, doubt, .. } => {
                let doubt = doubt.as_ref().map_or(String::new(), |doubt| format!("; CHECK IT: {doubt}"));
                format!("copy {} to {} (SHA-256 {sha256}{doubt})", original.display(), to.display())
            }
            Self::Write { path, text, is_sudos, .. } => {
                let says = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
                let after = if *is_sudos { ", after visudo has checked it" } else { "" };
                format!("write {} ({says} lines{after})", path.display())
            }
            Self::Remove { path } | Self::RemoveEmpty { path } => format!("remove {}", path.display()),
            Self::RemoveTree { path } => format!("remove {} with EVERYTHING in it", path.display()),
            Self::RemoveAccount => format!("remove the account {ACCOUNT}"),
        }
    }
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
}

/// Does them in order. Where one fails, or `finally` isn't content, all are undone, the latest first.
pub async fn carry_out(
    target: &Target,
    steps: &[Step],
    finally: impl AsyncFnOnce() -> Result<(), SystemError>,
) -> Result<(), Failed> {
    let mut done = Vec::new();
    let mut outcome = Ok(());
    for step in steps {
        outcome = perform(target, step, &mut done).await;
        if outcome.is_err() {
            break;
        }
    }
    if outcome.is_ok() {
        outcome = finally().await;
    }
    let Err(error) = outcome else {
        for undo in done {
            if let Undo::File { before: Some(before), .. } = undo {
                let _ = fs::remove_file(before);
            }
        }
        return Ok(());
    };
    let mut left = Vec::new();
    while let Some(step) = done.pop() {
        if let Err(error) = undo(target, step).await {
            left.push(error.to_string());
        }
    }
    Err(Failed { error, left })
}

/// What can be undone is noted as soon as it is done.
async fn perform(target: &Target, step: &Step, done: &mut Vec<Undo>) -> Result<(), SystemError> {
    match step {
        Step::Account { home, group_exists } => {
            let home = home.display().to_string();
            let group = if *group_exists { ["--gid", ACCOUNT].as_slice() } else { &["--user-group"] };
            let shell = no_shell(target);
            let head = ["--system", "--no-create-home", "--home-dir", &home, "--shell", &shell];
            let comment = ["--comment", "linux-sysadmin, an MCP server"];
            must(target, "useradd", &[&head[..], &comment, group, &["--", ACCOUNT]].concat()).await?;
            done.push(Undo::Account);
        }
        Step::Directory { path, is_accounts } => directory(path, *is_accounts, done)?,
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
            let staged = beside(to, "new");
            let copied = copy(from, &staged, *mode, sha256).map_err(|error| SystemError::io(from, error));
            copied.inspect_err(|_| drop(fs::remove_file(&staged)))?;
            replace(&staged, to, done)?;
        }
        Step::Write { path, text, mode, is_sudos } => {
            let staged = beside(path, "new");
            let written =
                stage(&staged, text.as_bytes(), *mode).map_err(|error| SystemError::io(path, error));
            let checked = match (written, is_sudos) {
                (Ok(()), true) => visudo(target, &staged).await,
                (written, _) => written,
            };
            checked.inspect_err(|_| drop(fs::remove_file(&staged)))?;
            replace(&staged, path, done)?;
        }
        Step::Remove { path } => {
            let before = beside(path, "before");
            fs::rename(path, &before).map_err(|error| SystemError::io(path, error))?;
            done.push(Undo::File { path: path.clone(), before: Some(before) });
        }
        // That something else is in it is no failure.
        Step::RemoveEmpty { path } => match fs::remove_dir(path) {
            Err(error) if !is_there_or_full(&error) => return Err(SystemError::io(path, error)),
            _ => {}
        },
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

/// The copy's bytes are those that were shown, or there is none.
fn copy(from: &Path, staged: &Path, mode: u32, sha256: &str) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut to = staged_file(staged)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = source.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        digest.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
    }
    let found = hex::encode(digest.finalize());
    if found != sha256 {
        return Err(io::Error::other(format!(
            "it was changed meanwhile: SHA-256 {found} instead of {sha256}"
        )));
    }
    finish(&to, mode)
}

fn stage(staged: &Path, contents: &[u8], mode: u32) -> io::Result<()> {
    let mut file = staged_file(staged)?;
    file.write_all(contents)?;
    finish(&file, mode)
}

/// What an earlier run left there when it was killed is no use to anybody.
fn staged_file(staged: &Path) -> io::Result<File> {
    match fs::remove_file(staged) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(staged)
}

fn finish(file: &File, mode: u32) -> io::Result<()> {
    std::os::unix::fs::fchown(file, Some(0), Some(0))?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.sync_all()
}

fn replace(staged: &Path, path: &Path, done: &mut Vec<Undo>) -> Result<(), SystemError> {
    let before = beside(path, "before");
    let kept = match fs::remove_file(&before) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => match fs::hard_link(path, &before) {
            Ok(()) => Ok(Some(before.clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        },
    };
    let replaced = kept.and_then(|kept| fs::rename(staged, path).map(|()| kept));
    match replaced {
        Ok(before) => {
            done.push(Undo::File { path: path.to_owned(), before });
            Ok(())
        }
        Err(error) => {
            let _ = fs::remove_file(staged);
            let _ = fs::remove_file(&before);
            Err(SystemError::io(path, error))
        }
    }
}

fn beside(path: &Path, what: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{what}"))
}

fn is_there_or_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty)
}

/// A shell that isn't one.
fn no_shell(target: &Target) -> String {
    let found = ["nologin", "false"].iter().find_map(|name| target.program(name).ok());
    found.map_or_else(|| "/bin/false".to_owned(), |path| path.display().to_string())
}

/// Whether sudo could read the file.
async fn visudo(target: &Target, path: &Path) -> Result<(), SystemError> {
    must(target, "visudo", &["-c", "-q", "-f", &path.display().to_string()]).await.map(drop)
}

async fn as_account(target: &Target, argv: &[&str], paths: &[String]) -> Result<(), SystemError> {
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let head = ["-n", "-u", ACCOUNT, "--"];
    must(target, "sudo", &[&head[..], argv, &paths].concat()).await.map(drop)
}

/// Runs a program, found in root's own directories, that must succeed.
pub async fn must(target: &Target, program: &str, args: &[&str]) -> Result<Output, SystemError> {
    let output = run(target, program, args, SHORT).await?;
    succeeded(program, args, output)
}

/// The output of a program that was to succeed.
pub fn succeeded(program: &str, args: &[&str], output: Output) -> Result<Output, SystemError> {
    if output.exit_code == 0 {
        return Ok(output);
    }
    let said = [output.stderr, output.stdout].concat();
    let said = excerpt(String::from_utf8_lossy(&said).trim(), 1000);
    let command = format!("{program} {}", args.join(" "));
    Err(SystemError::Command { command, exit_code: output.exit_code, said })
}

/// Runs a program, found in root's own directories, with nothing on stdin.
pub async fn run(
    target: &Target,
    program: &str,
    args: &[&str],
    timeout: Duration,
) -> Result<Output, SystemError> {
    let command = Command {
        program: program.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: Vec::new(),
        stdin: None,
        privilege: Privilege::Caller,
        timeout,
        keep: Keep::Head,
    };
    let none = || SystemError::Refused(format!("{program} was not run"));
    Ok(target.run_all(&[command]).await.pop().ok_or_else(none)??)
}
