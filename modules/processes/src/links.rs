//! The links below `/proc/PID`: open files, the program, the working directory and namespaces. `find` reads them.
//!
//! Those of other accounts' processes need root's rights.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::{
    Output, Privilege, listening,
    prelude::*,
    text::{excerpt, is_unseen},
};

/// Prints the links of one process, and the namespaces of PID 1 to compare with. The open files come last, because they may be
/// more than are kept of the output.
const OF_ONE: CommandLine = CommandLine::new(
    "find /proc/1/ns /proc/<int>/ns /proc/<int>/exe /proc/<int>/cwd /proc/<int>/root /proc/<int>/fd \
     -maxdepth 1 -type l -printf '%p\\t%l\\0'",
);

/// Prints the links of all processes that lead to a file, to what lies below it, or to what it was before it was deleted.
const TO_A_FILE: CommandLine = CommandLine::new(
    "find /proc -mindepth 1 -maxdepth 3 '(' -path '/proc/[!1-9]*' -o -path '/proc/*/task' -o -path '/proc/*/net' \
     -o -path '/proc/*/attr' -o -path '/proc/*/ns' -o -path '/proc/*/fdinfo' ')' -prune \
     -o -type l '(' -lname <text> -o -lname <text> -o -lname <text> ')' -printf '%p\\t%l\\0'",
);

/// Follows the symlinks of a path that is there.
const RESOLVE: CommandLine = CommandLine::new("realpath --canonicalize-existing -- <path>");

/// Follows the symlinks of a path whose last parts aren't there.
const RESOLVE_MISSING: CommandLine = CommandLine::new("realpath --canonicalize-missing -- <path>");

/// The longest path in bytes (PATH_MAX).
const LONGEST_PATH: usize = 4095;

/// The words that the kernel adds to the name of a deleted file.
pub(crate) const DELETED: &str = " (deleted)";

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

/// A link below `/proc/PID`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    pub(crate) pid: u32,
    /// The path below `/proc/PID`, such as `exe` and `fd/3`.
    pub(crate) name: String,
    pub(crate) target: String,
}

/// The links in the output of these commands. A target may hold any characters but NUL.
pub(crate) fn parse(output: &Output) -> Vec<Link> {
    let text = output.text();
    // A last link without its NUL is cut.
    let whole = text.rfind('\0').map_or("", |end| &text[..end]);
    let link = |line: &str| {
        let (path, target) = line.split_once('\t')?;
        let (pid, name) = path.strip_prefix("/proc/")?.split_once('/')?;
        (!target.is_empty()).then_some(Link {
            pid: pid.parse().ok()?,
            name: name.to_owned(),
            target: target.to_owned(),
        })
    };
    whole.split('\0').filter_map(link).collect()
}

/// Says whether the rights didn't suffice for some of the links below a directory.
pub(crate) fn is_partial(output: &Output, directory: &str) -> bool {
    let refused = |line: &str| line.contains(directory) && line.contains("Permission denied");
    output.error_text().lines().any(refused)
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
    let quoted = quoted(path);
    let patterns = [quoted.clone(), format!("{quoted}{DELETED}"), format!("{quoted}/*")];
    let output = cx.run(TO_A_FILE.with(patterns).privilege(Privilege::RootIfAvailable))?;
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
        && !file.contains(is_unseen)
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

/// The uses that each process makes of a path, such as `fd 3,4` and `cwd`, with what lies below it where that was found.
fn uses(links: Vec<Link>, asked: &str) -> BTreeMap<u32, Vec<String>> {
    let mut by_target: BTreeMap<(u32, String), (Vec<String>, Vec<String>)> = BTreeMap::new();
    for Link { pid, name, target } in links {
        let (descriptors, others) = by_target.entry((pid, target)).or_default();
        match name.split_once('/') {
            Some(("fd", number)) => descriptors.push(number.to_owned()),
            Some(_) => others.push("mapped".to_owned()),
            None => others.push(name),
        }
    }
    let mut by_pid: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for ((pid, target), (descriptors, mut others)) in by_target {
        // A program is mapped as well, and so may be a file that is open.
        let is_mapped_only = others.iter().all(|other| other == "mapped");
        if !descriptors.is_empty() {
            others = vec![format!("fd {}", descriptors.join(","))];
        } else if is_mapped_only {
            others.truncate(1);
        } else {
            others.retain(|other| other != "mapped");
        }
        let target = if target == asked { String::new() } else { format!(" {target}") };
        by_pid.entry(pid).or_default().push(others.join(", ") + &target);
    }
    by_pid
}

/// A path as a pattern of `find` that matches only itself.
fn quoted(path: &str) -> String {
    let mut quoted = String::new();
    for c in path.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::output;

    #[test]
    fn a_target_may_hold_tabs_and_line_breaks_and_a_cut_link_is_none() {
        let said = "/proc/7/exe\t/bin/a\tb\nc\0/proc/7/fd/3\tsocket:[12]\0/proc/7/fd/4\t\0/proc/x/exe\t/y\0/proc/7/fd/5\t/cu";
        let links = parse(&output(1, said, "find: '/proc/1/ns': Permission denied"));
        let shown: Vec<_> =
            links.iter().map(|link| (link.pid, link.name.as_str(), link.target.as_str())).collect();
        assert_eq!(shown, [(7, "exe", "/bin/a\tb\nc"), (7, "fd/3", "socket:[12]")]);
        assert!(parse(&output(0, "", "")).is_empty() && parse(&output(0, "garbage", "")).is_empty());
    }

    #[test]
    fn a_pattern_matches_only_its_own_path() {
        assert_eq!(quoted("/a[1]*?\\b c"), "/a\\[1\\]\\*\\?\\\\b c");
    }

    #[test]
    fn what_a_process_has_of_a_file_is_told_in_few_words() {
        let link = |name: &str, target: &str| Link { pid: 7, name: name.into(), target: target.into() };
        let map = "map_files/400000-452000";
        for (links, expected) in [
            (vec![link("fd/3", "/srv/x"), link("fd/4", "/srv/x"), link(map, "/srv/x")], "fd 3,4"),
            (vec![link("fd/3", "/srv/x (deleted)")], "fd 3 /srv/x (deleted)"),
            (vec![link("cwd", "/srv/x/y")], "cwd /srv/x/y"),
            (vec![link("cwd", "/srv/x"), link("root", "/srv/x")], "cwd, root"),
            (vec![link("exe", "/srv/x"), link(map, "/srv/x")], "exe"),
            (vec![link(map, "/srv/x"), link(map, "/srv/x")], "mapped"),
        ] {
            assert_eq!(uses(links, "/srv/x")[&7], [expected]);
        }
    }
}
