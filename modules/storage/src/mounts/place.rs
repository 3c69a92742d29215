//! Where something may be mounted: what is at the path, and whether the system needs the directory.

use linux_sysadmin_sdk::{Category, DurationCategory, Privilege, prelude::*, text::excerpt};

use super::fstab::without_slash;
use crate::mount_table::is_within;

const REALPATH: CommandLine = CommandLine::new("realpath --canonicalize-missing -- <path>");
const STAT: CommandLine = CommandLine::new("stat --format=%F -- <path>");
const OWNER: CommandLine = CommandLine::new("stat --format=%U:%a -- <path>");
/// Prints a dot for each entry, so that the size of the output counts them.
const ENTRIES: CommandLine = CommandLine::new("find <path> -mindepth 1 -maxdepth 1 -printf .");

/// Directories that nothing is mounted over, nor anywhere below them.
const KERNELS: [&str; 11] =
    ["/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr"];
/// Directories that nothing is mounted over on a running system.
const ITSELF: [&str; 8] = ["/", "/root", "/run", "/var", "/var/lib", "/var/log", "/var/cache", "/var/spool"];
/// Directories that a running system needs, besides [`KERNELS`] and what is below them.
const NEEDED: [&str; 9] =
    ["/", "/efi", "/run", "/var", "/var/lib", "/var/log", "/var/cache", "/var/spool", "/root"];

pub(crate) fn grants() -> [CommandGrant; 4] {
    [
        REALPATH.read("whether a mount point is a symlink").as_root_if_available(),
        STAT.read("whether a mount point is a directory, and whether its source is there")
            .as_root_if_available(),
        OWNER.read("who else could put something in the place of a mount point").as_root_if_available(),
        ENTRIES.read("whether a mount point is empty").as_root_if_available(),
    ]
}

/// What is at a mount point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Missing,
    Directory,
    /// A symlink on the path leads to another one.
    Symlink(String),
    /// Another kind of file, such as `regular file`.
    Other(String),
    /// It can't be looked at, as where a file system hangs. The text is the reason.
    Unknown(String),
}

/// Looks at several paths at the same time.
pub(crate) fn all<P: AsRef<str>>(paths: &[P], cx: &Context) -> Vec<Place> {
    let commands = paths.iter().flat_map(|path| {
        [REALPATH, STAT].map(|line| line.with([path.as_ref()]).privilege(Privilege::RootIfAvailable))
    });
    let mut answers = cx.run_all(commands.collect()).into_iter();
    let mut next = || answers.next().unwrap_or_else(|| Err(Problem::unexpected("stat", "")));
    paths.iter().map(|path| place(path.as_ref(), next(), next())).collect()
}

fn place(path: &str, real: Result<Output>, kind: Result<Output>) -> Place {
    let (real, kind) = match (real, kind) {
        (Ok(real), Ok(kind)) => (real, kind),
        (Err(problem), _) | (_, Err(problem)) => return Place::Unknown(problem.message),
    };
    let text = real.text();
    let target = text.strip_suffix('\n').unwrap_or(&text);
    if real.exit_code == 0 && target != path {
        return Place::Symlink(target.to_owned());
    }
    match (kind.exit_code, kind.text().trim()) {
        (0, "directory") => Place::Directory,
        (0, other) => Place::Other(other.to_owned()),
        _ if kind.error_text().contains("No such file or directory") => Place::Missing,
        _ => Place::Unknown(kind.error_text()),
    }
}

/// The kind of file at a path, as stat(1) names it. `None` where nothing can be seen there.
pub(crate) fn kind(path: &str, cx: &Context) -> Option<String> {
    let output = cx.run(STAT.with([path]).privilege(Privilege::RootIfAvailable)).ok()?;
    (output.exit_code == 0).then(|| output.text().trim().to_owned())
}

/// The number of entries in a directory.
pub(crate) fn entries(path: &str, cx: &Context) -> Result<u64> {
    let command =
        ENTRIES.with([path]).privilege(Privilege::RootIfAvailable).duration(DurationCategory::Quick);
    Ok(cx.run(command)?.stdout_bytes)
}

/// The directories on the path that are missing, the upper ones first.
pub(crate) fn missing(path: &str, cx: &Context) -> Vec<String> {
    let directories = upwards(path);
    let places = all(&directories, cx);
    let found = directories.into_iter().zip(places).filter(|(_, place)| *place == Place::Missing);
    found.map(|(directory, _)| directory.to_owned()).collect()
}

/// The directory above a path in which an account other than root can put something in its place, and who that is.
pub(crate) fn redirected_by(path: &str, cx: &Context) -> Option<(String, String)> {
    let mut above = upwards(path);
    above.pop();
    let command = |directory: &&str| OWNER.with([*directory]).privilege(Privilege::RootIfAvailable);
    let outputs = cx.run_all(above.iter().map(command).collect());
    above.into_iter().zip(outputs).find_map(|(directory, output)| {
        let text = output.ok().filter(|output| output.exit_code == 0)?.text().trim().to_owned();
        let (owner, mode) = text.split_once(':')?;
        let is_open = u32::from_str_radix(mode, 8).is_ok_and(|mode| mode & 0o022 != 0);
        let who = if owner != "root" { owner } else { "other accounts" };
        (owner != "root" || is_open).then(|| (directory.to_owned(), who.to_owned()))
    })
}

/// The directories on the path below the root, the upper ones first, and the path itself.
fn upwards(path: &str) -> Vec<&str> {
    let ends = path.match_indices('/').skip(1).map(|(end, _)| end).chain([path.len()]);
    ends.map(|end| &path[..end]).collect()
}

/// The path without a slash at its end, where it is absolute and says what it means.
pub(crate) fn checked(path: &str) -> Result<&str> {
    let trimmed = without_slash(path);
    let is_plain = trimmed.strip_prefix('/').is_some_and(|rest| {
        rest.is_empty() || rest.split('/').all(|name| !matches!(name, "" | "." | "..") && name.len() <= 255)
    });
    if is_plain && trimmed.len() < 4096 && !trimmed.chars().any(char::is_control) {
        return Ok(trimmed);
    }
    let message = format!(
        "{:?} is no mount point: expected an absolute path without `.`, `..`, empty parts and control characters",
        excerpt(path, 200)
    );
    Err(Problem::validation("INVALID_PATH", message))
}

/// Refuses a mount point that would cover a part of the system.
pub(crate) fn check_coverable(path: &str) -> Result<()> {
    if ITSELF.contains(&path) || KERNELS.iter().any(|directory| is_within(path, directory)) {
        let message = format!("{path} is a part of the running system, which a mount there would cover");
        return Err(Problem::validation("SYSTEM_DIRECTORY", message).remedy(
            "Mount it below /mnt or /srv; a part of the system moves to another disk from a rescue system",
        ));
    }
    Ok(())
}

/// Refuses a mount that the running system needs.
pub(crate) fn check_removable(path: &str) -> Result<()> {
    if NEEDED.contains(&path) || KERNELS.iter().any(|directory| is_within(path, directory)) {
        let message = format!("{path} is a part of the running system, which needs it");
        return Err(Problem::new("SYSTEM_MOUNT", Category::State, message));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_point_is_an_absolute_path_that_says_what_it_means() {
        for (path, expected) in [("/mnt/a b/", "/mnt/a b"), ("/", "/"), ("/srv/käse", "/srv/käse")] {
            assert_eq!(checked(path).unwrap(), expected);
        }
        let long = format!("/{}", "a".repeat(256));
        for path in ["", "mnt", "./a", "/a/../b", "/a//b", "/a/.", "/a\nb", "/a\u{7f}", "-a", &long] {
            assert_eq!(checked(path).unwrap_err().code, "INVALID_PATH", "{path:?}");
        }
    }

    #[test]
    fn the_system_is_neither_covered_nor_taken_away() {
        for path in
            ["/", "/usr", "/usr/local/x", "/etc/x", "/var", "/var/lib", "/proc/x", "/boot/efi", "/root"]
        {
            assert_eq!(check_coverable(path).unwrap_err().code, "SYSTEM_DIRECTORY", "{path}");
        }
        for path in ["/mnt", "/srv/a", "/home", "/var/lib/mysql", "/usrlocal", "/tmp", "/opt"] {
            assert!(check_coverable(path).is_ok(), "{path}");
        }
        for path in ["/", "/usr", "/boot/efi", "/var", "/var/log", "/run", "/dev/shm"] {
            assert_eq!(check_removable(path).unwrap_err().code, "SYSTEM_MOUNT", "{path}");
        }
        for path in ["/mnt/x", "/home", "/var/lib/mysql", "/srv", "/run/media/ada/x"] {
            assert!(check_removable(path).is_ok(), "{path}");
        }
    }
}
