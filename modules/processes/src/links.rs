//! The links below `/proc/PID`: open files, the program, the working directory and namespaces. `find` reads them.
//!
//! Those of other accounts' processes need root's rights.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::processes::links::{DELETED, Link, is_partial, parse};
use linux_sysadmin_sdk::{Privilege, prelude::*, text::excerpt, text::has_hidden};

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
    /// What each process has of it.
    pub(crate) by_pid: BTreeMap<u32, Vec<String>>,
    /// Whether processes of other accounts couldn't be looked at.
    pub(crate) is_partial: bool,
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
    let by_pid = uses(parse(&output), path);
    let is_partial = is_partial(&output, "/proc/");
    if by_pid.is_empty() && is_missing {
        let message = format!("there is no {file}, and no process that can be seen has a deleted one open");
        return Err(Problem::not_found("FILE_NOT_FOUND", message));
    }
    Ok(Users { by_pid, is_partial })
}

/// The path without a slash at its end.
fn checked(file: &str) -> Result<&str> {
    let bare = file.strip_suffix('/').unwrap_or(file);
    let mut parts = bare.strip_prefix('/').unwrap_or_default().split('/');
    if parts.all(|part| !matches!(part, "" | "." | "..")) && !has_hidden(file) && file.len() <= LONGEST_PATH {
        return Ok(bare);
    }
    let expected = "expected the absolute path of a file or directory, without . and .., and of characters that can be seen";
    Err(Problem::validation("INVALID_PATH", format!("{:?} is refused: {expected}", excerpt(file, 80))))
}

/// Whether a file is there, for this account.
pub(crate) fn is_there(path: &str, cx: &Context) -> bool {
    checked(path).and_then(|path| cx.run(RESOLVE.with([path]))).is_ok_and(|output| output.exit_code == 0)
}

/// What each process has of a path, such as `fd 3,4` and `cwd`, with what lies below it where that was found.
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
