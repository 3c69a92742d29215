//! The way to a path through all directories and symlinks, as the kernel resolves it.

use linux_sysadmin_sdk::{Category, prelude::*};

use crate::files::{self, Kind, Stat};
use crate::validate::shown;

/// The most symlinks that the kernel follows.
const LINKS: usize = 40;

/// The directories and symlinks on the way, beginning with the root, and the end of the path. The end is a symlink where
/// the path names one that isn't followed.
#[derive(Clone, Debug)]
pub(crate) struct PathWalk {
    pub(crate) passed: Vec<Stat>,
    /// The end of the path, without symlinks on the way.
    pub(crate) end: Stat,
}

impl PathWalk {
    /// Resolves a path. A symlink at its end is followed only where `follow_last` says so.
    pub(crate) fn down(path: &str, follow_last: bool, cx: &Context) -> Result<Self> {
        let mut passed: Vec<Stat> = Vec::new();
        let mut path = path.to_owned();
        for _ in 0..=LINKS {
            let prefixes = prefixes(&path);
            let found = files::stat(&prefixes, cx)?;
            let mut link = None;
            for (index, prefix) in prefixes.iter().enumerate() {
                let stat = found.iter().find(|stat| stat.path == *prefix).ok_or_else(|| no_such(prefix))?;
                if !passed.contains(stat) {
                    passed.push(stat.clone());
                }
                let is_last = index + 1 == prefixes.len();
                if stat.kind == Kind::Symlink && (follow_last || !is_last) {
                    link = Some(prefix.clone());
                    break;
                }
                if is_last {
                    return Ok(Self { end: stat.clone(), passed });
                }
                if !stat.is_directory() {
                    let message = format!("{prefix} is no directory, so there is no {}", shown(&path));
                    return Err(Problem::not_found("PATH_NOT_FOUND", message));
                }
            }
            let Some(link) = link else { break };
            let target = files::target(&link, cx)?;
            path = joined(&link, &target, &path[link.len()..]);
        }
        let message = format!("{} leads through more than {LINKS} symlinks", shown(&path));
        Err(Problem::new("TOO_MANY_SYMLINKS", Category::State, message))
    }
}

pub(crate) fn no_such(path: &str) -> Problem {
    Problem::not_found("PATH_NOT_FOUND", format!("there is no {}", shown(path)))
}

/// The prefixes of `/a/b` are `/`, `/a` and `/a/b`.
fn prefixes(path: &str) -> Vec<String> {
    let mut prefixes = vec!["/".to_owned()];
    let ends = path.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0).chain([path.len()]);
    prefixes.extend(ends.filter(|end| *end > 1).map(|end| path[..end].to_owned()));
    prefixes
}

/// The path after one of its symlinks is followed, without `.` and `..`.
fn joined(link: &str, target: &str, rest: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::{joined, prefixes};

    #[test]
    fn a_path_is_gone_down_step_by_step() {
        assert_eq!(prefixes("/"), ["/"]);
        assert_eq!(prefixes("/srv/a b"), ["/", "/srv", "/srv/a b"]);
        for (link, target, rest, expected) in [
            ("/var/run", "/run", "/x", "/run/x"),
            ("/lib", "usr/lib", "/x/y", "/usr/lib/x/y"),
            ("/a/b", "../c/./d", "", "/c/d"),
            ("/a/b", "../../../..", "", "/"),
        ] {
            assert_eq!(joined(link, target, rest), expected, "{link}");
        }
    }
}
