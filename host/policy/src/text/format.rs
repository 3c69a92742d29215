//! The formats of files, by their paths. The format says which reader finds the code in a file.

use super::harmless::{is_data, is_own};

/// The format of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// A unit of systemd or a drop-in, or a service description of D-Bus.
    Unit,
    /// A system crontab, with the account before each command.
    SystemCrontab,
    /// The crontab of this account; `None` for root's.
    Crontab(Option<String>),
    /// The table of anacron.
    Anacrontab,
    /// The rules of sudo.
    Sudoers,
    /// The values of the kernel that this program sets at the start of a machine.
    Sysctl,
    /// The file systems that the machine mounts at its start.
    Fstab,
    /// A file of Docker Compose.
    Compose,
    /// The settings of ssh, of this account or for all.
    Ssh(Option<String>),
    /// The keys of this account for sshd; `None` for root's.
    AuthorizedKeys(Option<String>),
    /// A file that is run as a whole, or of which it is not known what root's programs take from it.
    Opaque(&'static str),
}

/// The file with the values of the kernel that this program sets. Another file of the directory may hide one of a package by
/// its name, so that its contents don't tell what it changes.
const SYSCTL: &str = "/etc/sysctl.d/90-linux-sysadmin.conf";

/// The file systems that the machine mounts at its start.
pub const FSTAB: &str = "/etc/fstab";

/// The suffixes of units.
const UNITS: [&str; 11] = [
    "service",
    "socket",
    "mount",
    "automount",
    "swap",
    "timer",
    "path",
    "target",
    "slice",
    "scope",
    "device",
];

/// The files in a home directory that a login or a shell reads.
const LOGIN: [&str; 20] = [
    ".profile",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bashrc",
    ".bash_aliases",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".xsession",
    ".xprofile",
    ".xinitrc",
];

/// The path without `.`, `..` and doubled slashes. No symbolic link is followed.
pub fn normalize(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The format of a file at this normalized path; `None` where the file is only data.
pub fn of_path(path: &str) -> Option<Format> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let within = |directory: &str| path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'));
    let extension = name.rsplit_once('.').map(|(_, extension)| extension).unwrap_or_default();

    if let Some(format) = of_systemd(path, name, extension).or_else(|| in_a_home(path)) {
        return Some(format);
    }
    if path == "/etc/crontab" || within("/etc/cron.d") {
        return Some(Format::SystemCrontab);
    }
    if path == "/etc/anacrontab" {
        return Some(Format::Anacrontab);
    }
    if path == "/etc/sudoers" || within("/etc/sudoers.d") {
        return Some(Format::Sudoers);
    }
    if path == SYSCTL {
        return Some(Format::Sysctl);
    }
    if path == FSTAB {
        return Some(Format::Fstab);
    }
    if path == "/etc/ssh/ssh_config" || within("/etc/ssh/ssh_config.d") {
        return Some(Format::Ssh(None));
    }
    if path.split('/').any(|part| part.ends_with(".git")) {
        return Some(Format::Opaque("git's own, which says what git runs"));
    }
    if is_compose(name, extension) {
        return Some(Format::Compose);
    }
    // A unit can be linked to where it lies. What is in a home directory is its account's own.
    let is_unit = matches!(extension, "service" | "socket" | "timer" | "path" | "mount");
    if is_unit && !is_system_path(path) && !within("/home") && !name.starts_with('.') {
        return Some(Format::Unit);
    }
    is_system_path(path)
        .then_some(Format::Opaque("a file of the system's, which programs of root's read or run"))
}

/// True where a reader knows the format of a file at this path, so that its contents alone decide.
pub fn has_reader(path: &str) -> bool {
    // Of values of the kernel and of mounts, those that a removed file had count as well.
    !matches!(of_path(&normalize(path)), Some(Format::Opaque(_) | Format::Sysctl | Format::Fstab))
}

/// True for a directory whose files are drop-ins of a unit of systemd.
pub fn is_drop_in_directory(path: &str) -> bool {
    path.ends_with(".d") && of_path(&format!("{}/x.conf", normalize(path))) == Some(Format::Unit)
}

/// True for a path of the system: files there belong to no account or service, and are not only data.
pub fn is_system_path(path: &str) -> bool {
    !is_data(path) && !is_own(path)
}

/// Whether it is the name of a compose file. Such a file may be in any directory.
fn is_compose(name: &str, extension: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_named = ["compose", "docker-compose", "docker-stack", "podman-compose", "container-compose"]
        .iter()
        .any(|start| name.strip_prefix(start).is_some_and(|rest| rest.starts_with(['.', '-', '_'])));
    is_named && matches!(extension.to_ascii_lowercase().as_str(), "yaml" | "yml")
}

fn of_systemd(path: &str, name: &str, extension: &str) -> Option<Format> {
    const ABOVE: [&str; 6] = [
        "/etc/systemd/",
        "/run/systemd/",
        "/usr/lib/systemd/",
        "/lib/systemd/",
        "/usr/local/lib/systemd/",
        "/usr/share/systemd/",
    ];
    if path.contains("/dbus-1/") && extension == "service" {
        return Some(Format::Unit);
    }
    let of_home = path.split_once("/.config/systemd/").or_else(|| path.split_once("/.local/share/systemd/"));
    let below = ABOVE.iter().find_map(|above| path.strip_prefix(above)).or(of_home.map(|(_, rest)| rest))?;
    let (directory, rest) = below.split_once('/')?;
    let is_drop_in = || rest.rsplit('/').nth(1).is_some_and(|parent| parent.ends_with(".d"));
    let is_unit = UNITS.contains(&extension) || extension == "conf" && is_drop_in();
    let holds_units =
        ["system", "user", "transient"].iter().any(|kind| directory.split('.').next() == Some(kind));
    (holds_units && is_unit && !directory.ends_with(".d") && !name.starts_with('.')).then_some(Format::Unit)
}

/// The format of a file in an account's home directory or crontab spool.
fn in_a_home(path: &str) -> Option<Format> {
    for spool in ["/var/spool/cron/crontabs/", "/var/spool/cron/tabs/", "/var/cron/tabs/", "/var/spool/cron/"]
    {
        if let Some(user) = path.strip_prefix(spool)
            && !user.contains('/')
        {
            return Some(Format::Crontab(not_root(user)));
        }
    }
    let (user, rest) = match (path.strip_prefix("/root/"), path.strip_prefix("/home/")) {
        (Some(rest), _) => (None, rest),
        (None, Some(rest)) => rest.split_once('/').map(|(user, rest)| (not_root(user), rest))?,
        (None, None) => {
            // A home directory can be anywhere.
            let (home, rest) = path.split_once("/.ssh/")?;
            (not_root(home.rsplit('/').next()?), &path[path.len() - rest.len() - 5..])
        }
    };
    match rest {
        ".ssh/config" => Some(Format::Ssh(user)),
        ".ssh/authorized_keys" | ".ssh/authorized_keys2" => Some(Format::AuthorizedKeys(user)),
        ".ssh/rc" => Some(Format::Opaque("a script")),
        ".ssh/environment" | ".pam_environment" => Some(Format::Opaque("variables of a login")),
        ".gitconfig" | ".config/git/config" => Some(Format::Opaque("git's own, which says what git runs")),
        rest if LOGIN.contains(&rest) => Some(Format::Opaque("a script")),
        rest if rest.starts_with(".config/environment.d/") => Some(Format::Opaque("variables of a login")),
        rest if rest.starts_with(".config/containers/systemd/") => {
            Some(Format::Opaque("a container as a unit"))
        }
        rest if rest.starts_with(".config/autostart/") => Some(Format::Opaque("what a login starts")),
        _ => None,
    }
}

/// The account whose home directory the file is in, where its path tells.
pub fn home_owner_of_file(path: &str) -> Option<String> {
    let path = normalize(path);
    let (user, _) = path.strip_prefix("/home/")?.split_once('/')?;
    Some(user.to_owned())
}

/// The account whose home directory this path is, or is in, where the path tells.
pub fn home_owner_of_path(path: &str) -> Option<String> {
    let path = normalize(path);
    let user = path.strip_prefix("/home/")?.split('/').next()?;
    (!user.is_empty()).then(|| user.to_owned())
}

/// The account; `None` for root.
pub fn not_root(user: &str) -> Option<String> {
    (!matches!(user, "" | "root" | "0" | "+0")).then(|| user.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_decides_the_format() {
        let alice = || Some("alice".to_owned());
        let table = [
            ("/etc/systemd/system/a.service", Format::Unit),
            ("/etc//systemd/x/../system/a@.timer", Format::Unit),
            ("/etc/systemd/system/a.service.d/b.conf", Format::Unit),
            ("/etc/systemd/system/service.d/b.conf", Format::Unit),
            ("/etc/systemd/system.control/a.socket", Format::Unit),
            ("/etc/systemd/user/a.service", Format::Unit),
            ("/run/systemd/transient/a.service", Format::Unit),
            ("/usr/lib/systemd/system/a.path", Format::Unit),
            ("/root/.config/systemd/user/a.service", Format::Unit),
            ("/usr/share/dbus-1/system-services/org.a.service", Format::Unit),
            ("/srv/units/a.service", Format::Unit),
            ("/etc/crontab", Format::SystemCrontab),
            ("/etc/cron.d/a", Format::SystemCrontab),
            ("/etc/anacrontab", Format::Anacrontab),
            ("/var/spool/cron/crontabs/root", Format::Crontab(None)),
            ("/var/spool/cron/crontabs/alice", Format::Crontab(alice())),
            ("/var/spool/cron/alice", Format::Crontab(alice())),
            ("/etc/sudoers.d/a", Format::Sudoers),
            ("/etc/sysctl.d/90-linux-sysadmin.conf", Format::Sysctl),
            ("/etc/./fstab", Format::Fstab),
            ("/srv/app/compose.yaml", Format::Compose),
            ("/srv/app/docker-compose.override.yml", Format::Compose),
            ("/etc/ssh/ssh_config.d/a.conf", Format::Ssh(None)),
            ("/home/alice/.ssh/config", Format::Ssh(alice())),
            ("/home/alice/.ssh/authorized_keys", Format::AuthorizedKeys(alice())),
            ("/var/lib/alice/.ssh/authorized_keys", Format::AuthorizedKeys(alice())),
            ("/root/.ssh/authorized_keys", Format::AuthorizedKeys(None)),
        ];
        for (path, expected) in table {
            assert_eq!(of_path(&normalize(path)), Some(expected), "{path}");
        }
        for path in [
            "/etc/hosts",
            "/srv/data/notes.txt",
            "/srv/app/composer.yaml",
            "/home/alice/notes",
            "/var/log/app/x",
        ] {
            assert_eq!(of_path(&normalize(path)), None, "{path}");
        }
        for path in [
            "/etc/systemd/system/a.txt",
            "/etc/systemd/system/.a.service",
            "/etc/systemd/system.conf",
            "/etc/systemd/system.conf.d/a.conf",
            "/etc/systemd/system-generators/a.service",
            "/etc/ssh/sshd_config.d/a.conf",
            "/etc/sysctl.d/99-protect-links.conf",
            "/etc/cron.daily/a",
            "/var/spool/cron/atjobs/a0001",
            "/home/alice/.bashrc",
            "/home/alice/.gitconfig",
            "/srv/a/.git/hooks/post-merge",
            "/usr/local/bin/a.sh",
            "/etc/fstab.d/a",
            "/new/place",
            "",
            "/",
        ] {
            assert!(matches!(of_path(&normalize(path)), Some(Format::Opaque(_))), "{path}");
        }
    }

    #[test]
    fn a_directory_for_drop_ins_is_that_of_a_unit() {
        for (path, is_it) in [
            ("/etc/systemd/system/a.service.d", true),
            ("/etc/systemd/system/service.d", true),
            ("/etc/systemd/user/a@.timer.d", true),
            ("/etc/systemd/system/a.service", false),
            ("/etc/systemd/system.conf.d", false),
            ("/etc/cron.d", false),
            ("/etc/nginx/conf.d", false),
        ] {
            assert_eq!(is_drop_in_directory(path), is_it, "{path}");
        }
    }

    #[test]
    fn a_path_is_made_normal_before_it_is_judged() {
        let table =
            [("/a//b/./c/", "/a/b/c"), ("/a/../../b", "/b"), ("/../etc/shadow", "/etc/shadow"), ("", "/")];
        for (path, expected) in table {
            assert_eq!(normalize(path), expected);
        }
    }
}
