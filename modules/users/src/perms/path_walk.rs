//! The way to a path through all directories and symlinks, as the kernel resolves it.

use linux_sysadmin_sdk::paths::{MOST_LINKS, followed, too_many_links};
use linux_sysadmin_sdk::prelude::*;

use crate::files::{self, Kind, Stat};
use crate::validate::shown;

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
        for _ in 0..=MOST_LINKS {
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
            path = followed(&link, &target, &path[link.len()..]);
        }
        Err(too_many_links(&path))
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

#[cfg(test)]
mod tests {
    use super::prefixes;

    #[test]
    fn a_path_is_gone_down_step_by_step() {
        assert_eq!(prefixes("/"), ["/"]);
        assert_eq!(prefixes("/srv/a b"), ["/", "/srv", "/srv/a b"]);
    }
}
