//! The links below `/proc/PID`, as `find -printf '%p\t%l\0'` prints them: open files, the program, the working directory.
//!
//! Those of other accounts' processes need root's rights.

use crate::Output;

/// The words that the kernel adds to the name of a deleted file.
pub const DELETED: &str = " (deleted)";

/// A link below `/proc/PID`.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The number of the process.
    pub pid: u32,
    /// The path below `/proc/PID`, such as `exe` and `fd/3`.
    pub name: String,
    /// The path that the link leads to, or what the kernel has in its place.
    pub target: String,
}

/// The links in the output of `find`. A target may hold any characters but NUL.
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

/// Whether the rights didn't suffice for some of the links below a directory.
pub fn is_partial(output: &Output, directory: &str) -> bool {
    let refused = |line: &str| line.contains(directory) && line.contains("Permission denied");
    output.error_text().lines().any(refused)
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
}
