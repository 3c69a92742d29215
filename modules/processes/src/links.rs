//! The links below `/proc/PID`: open files, the program, the working directory and namespaces. `find` reads them.
//!
//! Those of other accounts' processes need root's rights.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::{Output, Privilege, prelude::*};

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

/// Follows the symlinks of a path, whether or not it exists.
const RESOLVE: CommandLine = CommandLine::new("realpath --canonicalize-missing -- <path>");

/// What the kernel adds to the name of a deleted file.
pub(crate) const DELETED: &str = " (deleted)";

pub(crate) fn grants() -> [CommandGrant; 3] {
    [
        OF_ONE.read("program, open files and namespaces of one process").as_root_if_available(),
        TO_A_FILE.read("which processes have a file open").as_root_if_available(),
        RESOLVE.read("the path that the kernel has for a file that is asked for"),
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

/// Whether the rights didn't suffice for some of the links below a directory.
pub(crate) fn is_partial(output: &Output, directory: &str) -> bool {
    let refused = |line: &str| line.contains(directory) && line.contains("Permission denied");
    output.error_text().lines().any(refused)
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
    if !file.starts_with('/') || file.contains(char::is_control) {
        let message = format!(
            "{:?} is no path: expected one that begins with /",
            linux_sysadmin_sdk::text::excerpt(file, 80)
        );
        return Err(Problem::validation("INVALID_PATH", message));
    }
    let resolved = cx.run(RESOLVE.with([file]))?;
    let text = resolved.text();
    // Without the right to follow it, the path is taken as it is.
    let path = text.trim_end_matches('\n');
    let path = if path.starts_with('/') { path } else { file }.trim_end_matches('/');
    let quoted = quoted(path);
    let patterns = [quoted.clone(), format!("{quoted}{DELETED}"), format!("{quoted}/*")];
    let output = cx.run(TO_A_FILE.with(patterns).privilege(Privilege::RootIfAvailable))?;
    let mut by_pid: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for link in parse(&output) {
        let use_of = use_of(&link, path);
        let all = by_pid.entry(link.pid).or_default();
        if !all.contains(&use_of) {
            all.push(use_of);
        }
    }
    let is_partial = is_partial(&output, "/proc/");
    if by_pid.is_empty() && matches!(cx.stat_all(&[file]).remove(0), Ok(None)) {
        let message = format!("there is no {file}, and no process that can be seen has a deleted one open");
        return Err(Problem::not_found("FILE_NOT_FOUND", message));
    }
    Ok(Users { by_pid, is_partial })
}

/// What a process has by a link, such as `fd 3` and `cwd`, with the path where it isn't the one that was asked for.
fn use_of(link: &Link, asked: &str) -> String {
    let what = match link.name.split_once('/') {
        Some(("fd", number)) => format!("fd {number}"),
        Some(_) => "mapped".to_owned(),
        None => link.name.clone(),
    };
    if link.target == asked { what } else { format!("{what} {}", link.target) }
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
        for (name, target, expected) in [
            ("fd/3", "/srv/x", "fd 3"),
            ("fd/3", "/srv/x (deleted)", "fd 3 /srv/x (deleted)"),
            ("cwd", "/srv/x/y", "cwd /srv/x/y"),
            ("exe", "/srv/x", "exe"),
            ("map_files/400000-452000", "/srv/x", "mapped"),
        ] {
            assert_eq!(use_of(&link(name, target), "/srv/x"), expected);
        }
    }
}
