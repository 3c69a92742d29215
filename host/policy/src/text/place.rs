//! Which text is read how, by where it stands.

use super::harmless::{is_data, is_own};

/// Who reads a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// systemd, as a unit or a drop-in of one; dbus-daemon, as a service's description.
    Unit,
    /// cron, with the account before each command.
    SystemCrontab,
    /// cron, as an account's own; root's where there is none.
    Crontab(Option<String>),
    /// anacron.
    Anacrontab,
    /// sudo.
    Sudoers,
    /// Docker Compose.
    Compose,
    /// ssh, as its settings; an account's own where there is one.
    Ssh(Option<String>),
    /// sshd, as an account's keys.
    AuthorizedKeys(Option<String>),
    /// Run as a whole, or what programs of root's may take from it isn't known here.
    Opaque(&'static str),
}

/// Suffixes of units that name what runs or what is started.
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

/// Files that a login or a shell reads, in a home.
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

/// Without `.`, `..` and doubled slashes, as far as the text alone tells.
pub fn normal(path: &str) -> String {
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

/// The kind of a file at this normal path, by the program that reads it; none where it is only data.
pub fn kind(path: &str) -> Option<Kind> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let within = |directory: &str| path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'));
    let extension = name.rsplit_once('.').map(|(_, extension)| extension).unwrap_or_default();

    if let Some(kind) = of_systemd(path, name, extension).or_else(|| in_a_home(path)) {
        return Some(kind);
    }
    if path == "/etc/crontab" || within("/etc/cron.d") {
        return Some(Kind::SystemCrontab);
    }
    if path == "/etc/anacrontab" {
        return Some(Kind::Anacrontab);
    }
    if path == "/etc/sudoers" || within("/etc/sudoers.d") {
        return Some(Kind::Sudoers);
    }
    if path == "/etc/ssh/ssh_config" || within("/etc/ssh/ssh_config.d") {
        return Some(Kind::Ssh(None));
    }
    if path.split('/').any(|part| part.ends_with(".git")) {
        return Some(Kind::Opaque("git's own, which says what git runs"));
    }
    if is_compose(name, extension) {
        return Some(Kind::Compose);
    }
    is_system(path).then_some(Kind::Opaque("a file of the system's, which programs of root's read or run"))
}

/// True where a text at this path is taken apart, so that its contents alone count.
pub fn is_read(path: &str) -> bool {
    !matches!(kind(&normal(path)), Some(Kind::Opaque(_)))
}

/// True of a path that is the system's, and neither somebody's own nor only data.
pub fn is_system(path: &str) -> bool {
    !is_data(path) && !is_own(path)
}

/// Any directory may hold one: it is run from there.
fn is_compose(name: &str, extension: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_named = ["compose", "docker-compose", "docker-stack", "podman-compose", "container-compose"]
        .iter()
        .any(|start| name.strip_prefix(start).is_some_and(|rest| rest.starts_with(['.', '-', '_'])));
    is_named && matches!(extension.to_ascii_lowercase().as_str(), "yaml" | "yml")
}

fn of_systemd(path: &str, name: &str, extension: &str) -> Option<Kind> {
    const ABOVE: [&str; 6] = [
        "/etc/systemd/",
        "/run/systemd/",
        "/usr/lib/systemd/",
        "/lib/systemd/",
        "/usr/local/lib/systemd/",
        "/usr/share/systemd/",
    ];
    if path.contains("/dbus-1/") && extension == "service" {
        return Some(Kind::Unit);
    }
    let of_home = path.split_once("/.config/systemd/").or_else(|| path.split_once("/.local/share/systemd/"));
    let below = ABOVE.iter().find_map(|above| path.strip_prefix(above)).or(of_home.map(|(_, rest)| rest))?;
    let (directory, rest) = below.split_once('/')?;
    let is_drop_in = || rest.rsplit('/').nth(1).is_some_and(|parent| parent.ends_with(".d"));
    let is_unit = UNITS.contains(&extension) || extension == "conf" && is_drop_in();
    let holds_units =
        ["system", "user", "transient"].iter().any(|kind| directory.split('.').next() == Some(kind));
    (holds_units && is_unit && !directory.ends_with(".d") && !name.starts_with('.')).then_some(Kind::Unit)
}

/// What an account itself has.
fn in_a_home(path: &str) -> Option<Kind> {
    for spool in ["/var/spool/cron/crontabs/", "/var/spool/cron/tabs/", "/var/cron/tabs/", "/var/spool/cron/"]
    {
        if let Some(user) = path.strip_prefix(spool)
            && !user.contains('/')
        {
            return Some(Kind::Crontab(not_root(user)));
        }
    }
    let (user, rest) = match (path.strip_prefix("/root/"), path.strip_prefix("/home/")) {
        (Some(rest), _) => (None, rest),
        (None, Some(rest)) => rest.split_once('/').map(|(user, rest)| (not_root(user), rest))?,
        (None, None) => {
            // An account's home can be anywhere.
            let (home, rest) = path.split_once("/.ssh/")?;
            (not_root(home.rsplit('/').next()?), &path[path.len() - rest.len() - 5..])
        }
    };
    match rest {
        ".ssh/config" => Some(Kind::Ssh(user)),
        ".ssh/authorized_keys" | ".ssh/authorized_keys2" => Some(Kind::AuthorizedKeys(user)),
        ".ssh/rc" => Some(Kind::Opaque("a script")),
        ".ssh/environment" | ".pam_environment" => Some(Kind::Opaque("variables of a login")),
        ".gitconfig" | ".config/git/config" => Some(Kind::Opaque("git's own, which says what git runs")),
        rest if LOGIN.contains(&rest) => Some(Kind::Opaque("a script")),
        rest if rest.starts_with(".config/environment.d/") => Some(Kind::Opaque("variables of a login")),
        rest if rest.starts_with(".config/containers/systemd/") => {
            Some(Kind::Opaque("a container as a unit"))
        }
        rest if rest.starts_with(".config/autostart/") => Some(Kind::Opaque("what a login starts")),
        _ => None,
    }
}

/// Whose home a file is in, where that follows from its path.
pub fn home_of(path: &str) -> Option<String> {
    let path = normal(path);
    let (user, _) = path.strip_prefix("/home/")?.split_once('/')?;
    Some(user.to_owned())
}

/// Whose home a path is or is in.
pub fn home_at(path: &str) -> Option<String> {
    let path = normal(path);
    let user = path.strip_prefix("/home/")?.split('/').next()?;
    (!user.is_empty()).then(|| user.to_owned())
}

/// None where it is root's.
pub fn not_root(user: &str) -> Option<String> {
    (!matches!(user, "" | "root" | "0" | "+0")).then(|| user.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_what_finds_it_there_reads_it() {
        let alice = || Some("alice".to_owned());
        let table = [
            ("/etc/systemd/system/a.service", Kind::Unit),
            ("/etc//systemd/x/../system/a@.timer", Kind::Unit),
            ("/etc/systemd/system/a.service.d/b.conf", Kind::Unit),
            ("/etc/systemd/system/service.d/b.conf", Kind::Unit),
            ("/etc/systemd/system.control/a.socket", Kind::Unit),
            ("/etc/systemd/user/a.service", Kind::Unit),
            ("/run/systemd/transient/a.service", Kind::Unit),
            ("/usr/lib/systemd/system/a.path", Kind::Unit),
            ("/root/.config/systemd/user/a.service", Kind::Unit),
            ("/usr/share/dbus-1/system-services/org.a.service", Kind::Unit),
            ("/etc/crontab", Kind::SystemCrontab),
            ("/etc/cron.d/a", Kind::SystemCrontab),
            ("/etc/anacrontab", Kind::Anacrontab),
            ("/var/spool/cron/crontabs/root", Kind::Crontab(None)),
            ("/var/spool/cron/crontabs/alice", Kind::Crontab(alice())),
            ("/var/spool/cron/alice", Kind::Crontab(alice())),
            ("/etc/sudoers.d/a", Kind::Sudoers),
            ("/srv/app/compose.yaml", Kind::Compose),
            ("/srv/app/docker-compose.override.yml", Kind::Compose),
            ("/etc/ssh/ssh_config.d/a.conf", Kind::Ssh(None)),
            ("/home/alice/.ssh/config", Kind::Ssh(alice())),
            ("/home/alice/.ssh/authorized_keys", Kind::AuthorizedKeys(alice())),
            ("/var/lib/alice/.ssh/authorized_keys", Kind::AuthorizedKeys(alice())),
            ("/root/.ssh/authorized_keys", Kind::AuthorizedKeys(None)),
        ];
        for (path, expected) in table {
            assert_eq!(kind(&normal(path)), Some(expected), "{path}");
        }
        for path in [
            "/etc/hosts",
            "/srv/data/notes.txt",
            "/srv/app/composer.yaml",
            "/home/alice/notes",
            "/var/log/app/x",
        ] {
            assert_eq!(kind(&normal(path)), None, "{path}");
        }
        for path in [
            "/etc/systemd/system/a.txt",
            "/etc/systemd/system/.a.service",
            "/etc/systemd/system.conf",
            "/etc/systemd/system.conf.d/a.conf",
            "/etc/systemd/system-generators/a.service",
            "/etc/ssh/sshd_config.d/a.conf",
            "/etc/cron.daily/a",
            "/var/spool/cron/atjobs/a0001",
            "/home/alice/.bashrc",
            "/home/alice/.gitconfig",
            "/srv/a/.git/hooks/post-merge",
            "/usr/local/bin/a.sh",
            "/etc/fstab",
            "/new/place",
            "",
            "/",
        ] {
            assert!(matches!(kind(&normal(path)), Some(Kind::Opaque(_))), "{path}");
        }
    }

    #[test]
    fn a_path_is_made_normal_before_it_is_judged() {
        let table =
            [("/a//b/./c/", "/a/b/c"), ("/a/../../b", "/b"), ("/../etc/shadow", "/etc/shadow"), ("", "/")];
        for (path, expected) in table {
            assert_eq!(normal(path), expected);
        }
    }
}
