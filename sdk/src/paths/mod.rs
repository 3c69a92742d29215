//! What more than one module asks of paths: which ones a caller names, where symlinks lead, access control lists, and
//! attributes. Each module runs the commands with its own rights; here are the commands and what their output means.

mod acl;
mod argument;
mod attributes;

pub use acl::{Acl, GETFACL, acls};
pub use argument::Paths;
pub use attributes::{IMMUTABLE, LSATTR, PathAttributes, attributes};

use crate::{Category, CommandLine, Problem, text::excerpt};

/// The most symlinks that the kernel follows on one path, path_resolution(7).
pub const MOST_LINKS: usize = 40;

/// Prints the target of a symlink as it is written.
pub const READLINK: CommandLine = CommandLine::new("readlink --no-newline -- <path>");

/// The path behind a symlink: `rest` is what the path has after the link, with its slash. The result has no `.` and `..`.
///
/// ```
/// # use linux_sysadmin_sdk::paths::followed;
/// assert_eq!(followed("/var/run", "../run", "/nginx.pid"), "/run/nginx.pid");
/// ```
pub fn followed(link: &str, target: &str, rest: &str) -> String {
    let above = link.rsplit_once('/').map_or("", |(above, _)| above);
    let whole =
        if target.starts_with('/') { format!("{target}{rest}") } else { format!("{above}/{target}{rest}") };
    let mut names: Vec<&str> = Vec::new();
    for name in whole.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// The problem of a path on which more symlinks lie than the kernel follows.
pub fn too_many_links(path: &str) -> Problem {
    let message = format!("{} leads through more than {MOST_LINKS} symlinks", excerpt(path, 200));
    Problem::new("TOO_MANY_SYMLINKS", Category::State, message)
}

#[cfg(test)]
mod tests {
    use super::followed;

    #[test]
    fn a_target_is_joined_to_the_links_directory() {
        for (link, target, rest, expected) in [
            ("/var/run", "/run", "/x", "/run/x"),
            ("/lib", "usr/lib", "/x/y", "/usr/lib/x/y"),
            ("/a/b", "../c/./d", "", "/c/d"),
            ("/a/b", "../../../..", "", "/"),
            ("/etc/x", "../usr/./x", "", "/usr/x"),
            ("/x", "../../y", "", "/y"),
        ] {
            assert_eq!(followed(link, target, rest), expected, "{link}");
        }
    }
}
