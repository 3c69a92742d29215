//! Links below `/proc/PID`, as `find` prints them: which processes have a file open, run from it, or work in a directory.
//!
//! Those of other accounts' processes need root's rights.

use std::collections::BTreeMap;

use crate::{Command, CommandLine, Output, Privilege};

/// Prints the links of all processes that lead to a file, to what lies below it, or to what it was before it was deleted.
pub const TO_A_FILE: CommandLine = CommandLine::new(
    "find /proc -mindepth 1 -maxdepth 3 '(' -path '/proc/[!1-9]*' -o -path '/proc/*/task' -o -path '/proc/*/net' \
     -o -path '/proc/*/attr' -o -path '/proc/*/ns' -o -path '/proc/*/fdinfo' ')' -prune \
     -o -type l '(' -lname <text> -o -lname <text> -o -lname <text> ')' -printf '%p\\t%l\\0'",
);

/// The words that the kernel adds to the name of a deleted file.
pub const DELETED: &str = " (deleted)";

/// The command that prints the links of all processes that lead to a path or to what lies below it.
pub fn to_a_file(path: &str) -> Command {
    let quoted = quoted(path);
    let patterns = [quoted.clone(), format!("{quoted}{DELETED}"), format!("{quoted}/*")];
    TO_A_FILE.with(patterns).privilege(Privilege::RootIfAvailable)
}

/// A link below `/proc/PID`.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The number of the process.
    pub pid: u32,
    /// The path below `/proc/PID`, such as `exe` and `fd/3`.
    pub name: String,
    /// The path that the link leads to.
    pub target: String,
}

/// The links in the output of these commands. A target may hold any characters but NUL.
pub fn parse(output: &Output) -> Vec<Link> {
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
pub fn is_partial(output: &Output, directory: &str) -> bool {
    let refused = |line: &str| line.contains(directory) && line.contains("Permission denied");
    output.error_text().lines().any(refused)
}

/// The uses that each process makes of a path, such as `fd 3,4` and `cwd`, with what lies below it where that was found.
pub fn uses(links: Vec<Link>, asked: &str) -> BTreeMap<u32, Vec<String>> {
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
    use crate::testkit::output;

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
    fn missing_rights_are_told_by_the_directory_that_they_lack() {
        let refused = output(1, "", "find: '/proc/1/fd': Permission denied\n");
        assert!(is_partial(&refused, "/proc/") && !is_partial(&refused, "/proc/2/"));
        assert!(!is_partial(&output(1, "", "find: '/proc/9': No such file or directory\n"), "/proc/"));
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
