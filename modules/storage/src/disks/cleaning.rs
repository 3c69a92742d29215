//! What may be cleaned, and the call that cleans it.

use linux_sysadmin_sdk::prelude::*;

use super::walk::Walk;
use crate::mount_table::is_within;
use crate::size::shown;

/// The directory in which kernels lie.
pub(crate) const BOOT: &str = "/boot";

pub(crate) fn grants() -> [PathGrant; 1] {
    [PathGrant::read(BOOT, "how many kernels are installed")]
}

/// Something that may go.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Cleaning {
    path: String,
    what: &'static str,
    size: String,
    /// The call that cleans it, or that says what of it may go.
    next: String,
}

/// A directory whose content may go. A `*` stands for the name of one directory, and `PATH` in the call for the whole path.
struct Place {
    directory: &'static str,
    what: &'static str,
    next: &'static str,
}

const fn place(directory: &'static str, what: &'static str, next: &'static str) -> Place {
    Place { directory, what, next }
}

const PACKAGES: &str = "downloaded packages";
const DUMPS: &str = "core dumps";
const OLD_FILES: &str = r#"command_run {"argv": ["systemd-tmpfiles", "--clean"], "as_root": true}"#;
const CACHE: &str = "caches, which programs fill again";

const PLACES: [Place; 16] = [
    place("/var/cache/apt/archives", PACKAGES, "pkg_clean {}"),
    place("/var/cache/dnf", PACKAGES, "pkg_clean {}"),
    place("/var/cache/libdnf5", PACKAGES, "pkg_clean {}"),
    place(
        "/var/log/journal",
        "journal",
        r#"command_run {"argv": ["journalctl", "--rotate", "--vacuum-size=200M"], "as_root": true}"#,
    ),
    place("/var/log", "logs", "log_disk_usage {}"),
    place("/var/lib/systemd/coredump", DUMPS, OLD_FILES),
    place("/var/crash", DUMPS, r#"command_run {"argv": ["ls", "-l", "/var/crash"]}"#),
    place("/tmp", "temporary files", OLD_FILES),
    place("/var/tmp", "temporary files", OLD_FILES),
    place(
        "/var/lib/docker",
        "containers and images",
        r#"command_run {"argv": ["docker", "system", "df"], "as_root": true}"#,
    ),
    place(
        "/var/lib/containers",
        "containers and images",
        r#"command_run {"argv": ["podman", "system", "df"], "as_root": true}"#,
    ),
    place("/var/lib/snapd", "old revisions of snaps", r#"command_run {"argv": ["snap", "list", "--all"]}"#),
    place("/root/.cache", CACHE, r#"command_run {"argv": ["rm", "-r", "--", "PATH"], "as_root": true}"#),
    place("/home/*/.cache", CACHE, r#"command_run {"argv": ["rm", "-r", "--", "PATH"], "as_root": true}"#),
    place(
        "/home/*/.local/share/Trash",
        "deleted by the user",
        r#"command_run {"argv": ["rm", "-r", "--", "PATH"], "as_root": true}"#,
    ),
    place("/usr/lib/modules", "old kernels", OLD_KERNELS),
];

const OLD_KERNELS: &str = "pkg_autoremove {}";
const OLD_KERNELS_RHEL: &str =
    r#"command_run {"argv": ["dnf", "--assumeyes", "remove", "--oldinstallonly"], "as_root": true}"#;

/// What may be cleaned in a tree, where it takes at least so many bytes, the largest first.
pub(crate) fn of(walk: &Walk, least: u64, cx: &Context) -> Vec<Cleaning> {
    let is_rhel = cx.distro().family == "rhel";
    let found = walk.directories.iter().filter(|taken| taken.bytes >= least).filter_map(|taken| {
        let path = taken.path.trim_end_matches('/');
        let place = PLACES.iter().find(|place| is_at(place.directory, path))?;
        let is_of_kernels = place.next == OLD_KERNELS;
        if is_of_kernels && kernels(cx) < 2 {
            return None;
        }
        let next = if is_of_kernels && is_rhel { OLD_KERNELS_RHEL } else { place.next };
        Some((
            taken.bytes,
            Cleaning {
                path: path.to_owned(),
                what: place.what,
                size: shown(taken.bytes),
                next: next.replace("PATH", path),
            },
        ))
    });
    let mut found: Vec<(u64, Cleaning)> = found.collect();
    if walk.files.iter().any(|file| is_within(&file.path, BOOT) && file.bytes >= least) && kernels(cx) > 1 {
        let bytes = walk.bytes_of(BOOT).unwrap_or(walk.bytes);
        let next = if is_rhel { OLD_KERNELS_RHEL } else { OLD_KERNELS };
        found.push((
            bytes,
            Cleaning {
                path: BOOT.to_owned(),
                what: "old kernels",
                size: shown(bytes),
                next: next.to_owned(),
            },
        ));
    }
    // The journal lies among the logs.
    let journal = found.iter().find(|(_, one)| one.what == "journal").map_or(0, |(bytes, _)| *bytes);
    if let Some((bytes, logs)) = found.iter_mut().find(|(_, one)| one.path == "/var/log") {
        *bytes = bytes.saturating_sub(journal);
        logs.size = shown(*bytes);
    }
    found.retain(|(bytes, _)| *bytes >= least);
    found.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    found.into_iter().map(|(_, one)| one).collect()
}

fn kernels(cx: &Context) -> usize {
    let names = cx.list_dir(BOOT).unwrap_or_default();
    names.iter().filter(|name| name.starts_with("vmlinuz-") && !name.contains("rescue")).count()
}

fn is_at(directory: &str, path: &str) -> bool {
    let mut wanted = directory.split('/');
    let mut names = path.split('/');
    wanted.by_ref().zip(names.by_ref()).all(|(wanted, name)| wanted == "*" || wanted == name)
        && directory.matches('/').count() == path.matches('/').count()
}

#[cfg(test)]
mod tests {
    use super::is_at;

    #[test]
    fn a_star_stands_for_one_name() {
        for (directory, path, expected) in [
            ("/tmp", "/tmp", true),
            ("/tmp", "/tmp/x", false),
            ("/tmp", "/", false),
            ("/home/*/.cache", "/home/a b/.cache", true),
            ("/home/*/.cache", "/home/.cache", false),
            ("/home/*/.cache", "/home/a/b/.cache", false),
        ] {
            assert_eq!(is_at(directory, path), expected, "{directory} {path}");
        }
    }
}
