//! The links below `/proc/PID`: open files, the program, the working directory and namespaces. `find` reads them.
//!
//! Those of other accounts' processes need root's rights.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::processes::links::{TO_A_FILE, is_partial, parse, to_a_file, uses};
use linux_sysadmin_sdk::{Privilege, listening, prelude::*, text::excerpt, text::has_hidden};

/// Prints the links of one process, and the namespaces of PID 1 to compare with. The open files come last, because they may be
/// more than are kept of the output.
const OF_ONE: CommandLine = CommandLine::new(
    "find /proc/1/ns /proc/<int>/ns /proc/<int>/exe /proc/<int>/cwd /proc/<int>/root /proc/<int>/fd \
     -maxdepth 1 -type l -printf '%p\\t%l\\0'",
);

/// Follows the symlinks of a path that is there.
const RESOLVE: CommandLine = CommandLine::new("realpath --canonicalize-existing -- <path>");

/// Follows the symlinks of a path whose last parts aren't there.
const RESOLVE_MISSING: CommandLine = CommandLine::new("realpath --canonicalize-missing -- <path>");

/// The longest path in bytes (PATH_MAX).
const LONGEST_PATH: usize = 4095;

pub(crate) fn grants() -> [CommandGrant; 4] {
    [
        OF_ONE.read("program, open files and namespaces of one process").as_root_if_available(),
        TO_A_FILE.read("which processes have a file open").as_root_if_available(),
        RESOLVE.read("the path that the kernel has for a file, and whether it is there"),
        RESOLVE_MISSING.read("the same of a file that was deleted while it was open"),
    ]
}

/// The command that prints the links of a process.
pub(crate) fn of_one(pid: u32) -> Command {
    OF_ONE.with(vec![pid.to_string(); 5]).privilege(Privilege::RootIfAvailable)
}

/// The processes that use a file, or something below a directory.
pub(crate) struct Users {
    /// The uses that each process makes of it.
    pub(crate) by_pid: BTreeMap<u32, Vec<String>>,
    /// True where processes of other accounts couldn't be looked at.
    pub(crate) is_partial: bool,
    /// True where there are more links than the host keeps of the output.
    pub(crate) is_cut: bool,
}

/// Finds the processes that have a file open, are running from it, or work in it.
///
/// Problems: `INVALID_PATH`, and `FILE_NOT_FOUND` where there is no such file and nothing has had one open.
pub(crate) fn users(file: &str, cx: &Context) -> Result<Users> {
    let asked = checked(file)?;
    let there = cx.run(RESOLVE.with([asked]))?;
    let is_missing = there.error_text().contains("No such file or directory");
    let resolved = if is_missing { cx.run(RESOLVE_MISSING.with([asked]))? } else { there };
    let text = resolved.text();
    // Without the right to follow it, the path is taken as it is.
    let path = text.strip_suffix('\n').filter(|path| path.starts_with('/')).unwrap_or(asked);
    let output = cx.run(to_a_file(path))?;
    let mut by_pid = uses(parse(&output), path);
    if by_pid.is_empty() && !is_missing {
        // The link of a socket has its number, and not its path.
        let sockets = cx.run(listening::unix_command()).map(|output| output.text().into_owned());
        let listeners = listening::unix_listeners(&sockets.unwrap_or_default(), path);
        let pids = listeners.into_iter().filter_map(|pid| u32::try_from(pid).ok());
        by_pid = pids.map(|pid| (pid, vec!["listens".to_owned()])).collect();
    }
    let is_partial = is_partial(&output, "/proc/");
    if by_pid.is_empty() && is_missing {
        let message = format!("there is no {file}, and no process that can be seen has a deleted one open");
        return Err(Problem::not_found("FILE_NOT_FOUND", message));
    }
    Ok(Users { by_pid, is_partial, is_cut: output.truncated })
}

/// The path without a slash at its end.
fn checked(file: &str) -> Result<&str> {
    let bare = file.strip_suffix('/').unwrap_or(file);
    let mut parts = bare.strip_prefix('/').unwrap_or_default().split('/');
    if parts.all(|part| !matches!(part, "" | "." | ".."))
        // Grants refuse such characters.
        && !has_hidden(file)
        && file.len() <= LONGEST_PATH
    {
        return Ok(bare);
    }
    let expected = "expected the absolute path of a file or directory, without . and .., and of characters that can be seen";
    Err(Problem::validation("INVALID_PATH", format!("{:?} is refused: {expected}", excerpt(file, 80))))
}

/// Says whether a file is there, for this account.
pub(crate) fn is_there(path: &str, cx: &Context) -> bool {
    checked(path).and_then(|path| cx.run(RESOLVE.with([path]))).is_ok_and(|output| output.exit_code == 0)
}
