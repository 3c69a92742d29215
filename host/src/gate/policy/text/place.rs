//! Which text is read how, by where it stands.

/// Who reads a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// systemd, as a unit or a drop-in of one; dbus-daemon, as a service's description.
    Unit,
    /// systemd's managers, as their own settings.
    SystemdConf,
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
    /// ssh or sshd, as its settings; an account's own where there is one.
    Ssh(Option<String>),
    /// sshd, as an account's keys.
    AuthorizedKeys(Option<String>),
    /// udev, as rules.
    Udev,
    /// logrotate.
    Logrotate,
    /// systemd-sysctl and sysctl.
    Sysctl,
    /// modprobe.
    Modprobe,
    /// PAM, with the service in the file's name or before each line.
    Pam {
        /// Whether the file is of one service.
        one_service: bool,
    },
    /// A shell, PAM or an init script, as variables to be set.
    Assignments,
    /// git, as its settings.
    Git(Option<String>),
    /// Run as a whole, or in a form that isn't taken apart here.
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

/// Directories of which every file is run, or read by what runs it.
const RUN_WHOLE: [&str; 39] = [
    "/etc/cron.hourly",
    "/etc/cron.daily",
    "/etc/cron.weekly",
    "/etc/cron.monthly",
    "/etc/cron.yearly",
    "/etc/profile.d",
    "/etc/init.d",
    "/etc/rc.d",
    "/etc/NetworkManager/dispatcher.d",
    "/usr/lib/NetworkManager/dispatcher.d",
    "/etc/networkd-dispatcher",
    "/usr/lib/networkd-dispatcher",
    "/etc/network/if-up.d",
    "/etc/network/if-down.d",
    "/etc/network/if-pre-up.d",
    "/etc/network/if-post-down.d",
    "/etc/dhcp/dhclient-enter-hooks.d",
    "/etc/dhcp/dhclient-exit-hooks.d",
    "/etc/ppp/ip-up.d",
    "/etc/ppp/ip-down.d",
    "/etc/kernel",
    "/etc/initramfs/post-update.d",
    "/etc/initramfs-tools/hooks",
    "/etc/initramfs-tools/scripts",
    "/etc/grub.d",
    "/etc/update-motd.d",
    "/etc/acpi",
    "/etc/X11/Xsession.d",
    "/etc/letsencrypt/renewal-hooks",
    "/etc/apt/apt.conf.d",
    "/etc/dpkg/dpkg.cfg.d",
    "/etc/polkit-1/rules.d",
    "/usr/share/polkit-1/rules.d",
    "/etc/containers/systemd",
    "/usr/share/containers/systemd",
    "/var/spool/cron/atjobs",
    "/var/spool/at",
    "/etc/xinetd.d",
    "/etc/bash_completion.d",
];

/// Single files of that sort.
const WHOLE: [&str; 19] = [
    "/etc/rc.local",
    "/etc/profile",
    "/etc/bash.bashrc",
    "/etc/bashrc",
    "/etc/zsh/zshrc",
    "/etc/zsh/zshenv",
    "/etc/zsh/zprofile",
    "/etc/zshrc",
    "/etc/zshenv",
    "/etc/csh.cshrc",
    "/etc/csh.login",
    "/etc/ssh/sshrc",
    "/etc/network/interfaces",
    "/etc/inittab",
    "/etc/inetd.conf",
    "/etc/apt/apt.conf",
    "/etc/dpkg/dpkg.cfg",
    "/etc/dhcp/dhclient-enter-hooks",
    "/etc/dhcp/dhclient-exit-hooks",
];

const PROGRAMS: [&str; 9] = [
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/libexec",
    "/root/bin",
    "/root/.local/bin",
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

/// Who takes code from a file at this place, if anybody does. The path is a normal one.
pub fn kind(path: &str) -> Option<Kind> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let within = |directory: &str| path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'));
    let in_one_of = |directories: &[&str]| directories.iter().any(|directory| within(directory));
    let extension = name.rsplit_once('.').map(|(_, extension)| extension).unwrap_or_default();

    if let Some(kind) = of_systemd(path, name, extension) {
        return Some(kind);
    }
    if let Some(kind) = in_a_home(path) {
        return Some(kind);
    }
    if path == "/etc/crontab" || within("/etc/cron.d") {
        return Some(Kind::SystemCrontab);
    }
    if path == "/etc/anacrontab" {
        return Some(Kind::Anacrontab);
    }
    if path == "/etc/sudoers" || within("/etc/sudoers.d") || path == "/usr/local/etc/sudoers" {
        return Some(Kind::Sudoers);
    }
    if in_one_of(&["/etc/ssh/ssh_config.d", "/etc/ssh/sshd_config.d"])
        || ["/etc/ssh/ssh_config", "/etc/ssh/sshd_config"].contains(&path)
    {
        return Some(Kind::Ssh(None));
    }
    if extension == "rules" && path.contains("/udev/rules.d/") {
        return Some(Kind::Udev);
    }
    if path == "/etc/logrotate.conf" || within("/etc/logrotate.d") {
        return Some(Kind::Logrotate);
    }
    if path == "/etc/sysctl.conf" || path.contains("/sysctl.d/") {
        return Some(Kind::Sysctl);
    }
    if path == "/etc/modprobe.conf" || path.contains("/modprobe.d/") {
        return Some(Kind::Modprobe);
    }
    if path == "/etc/pam.conf" {
        return Some(Kind::Pam { one_service: false });
    }
    if in_one_of(&["/etc/pam.d", "/usr/lib/pam.d", "/usr/share/pam-configs"]) {
        return Some(Kind::Pam { one_service: true });
    }
    if in_one_of(&RUN_WHOLE) || WHOLE.contains(&path) || is_rc(path) {
        return Some(Kind::Opaque("a script"));
    }
    let is_program =
        in_one_of(&PROGRAMS) || path.strip_prefix("/opt/").is_some_and(|rest| rest.contains("/bin/"));
    if is_program {
        return Some(Kind::Opaque("a program"));
    }
    if path.contains("/.git/hooks/")
        || path.contains(".git/hooks/")
        || path.contains("/git-core/templates/hooks/")
    {
        return Some(Kind::Opaque("a hook of git"));
    }
    if path.ends_with("/.git/config") || path.ends_with(".git/config.worktree") || path == "/etc/gitconfig" {
        return Some(Kind::Git(None));
    }
    if is_compose(name, extension) {
        return Some(Kind::Compose);
    }
    let is_assignments = path == "/etc/environment"
        || in_one_of(&["/etc/default", "/etc/sysconfig", "/etc/environment.d", "/usr/lib/environment.d"]);
    is_assignments.then_some(Kind::Assignments)
}

/// `/etc/rc3.d` and its like.
fn is_rc(path: &str) -> bool {
    path.strip_prefix("/etc/rc")
        .and_then(|rest| rest.split_once(".d/"))
        .is_some_and(|(level, _)| level.len() == 1)
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
    let Some((directory, rest)) = below.split_once('/') else {
        return matches!(name, "system.conf" | "user.conf").then_some(Kind::SystemdConf);
    };
    let drop_in = |rest: &str| rest.rsplit('/').nth(1).is_some_and(|parent| parent.ends_with(".d"));
    match directory {
        "system-generators"
        | "user-generators"
        | "system-environment-generators"
        | "user-environment-generators"
        | "system-sleep"
        | "system-shutdown" => Some(Kind::Opaque("a program")),
        "system.conf.d" | "user.conf.d" => Some(Kind::SystemdConf),
        "network" | "journald.conf.d" | "logind.conf.d" | "resolved.conf.d" | "timesyncd.conf.d" => None,
        _ if UNITS.contains(&extension) => Some(Kind::Unit),
        _ if extension == "conf" && drop_in(rest) => Some(Kind::Unit),
        // In `.wants` and `.requires` only the name counts; what else is there isn't read.
        _ => None,
    }
    .filter(|_| !name.starts_with('.'))
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
        ".ssh/environment" | ".pam_environment" => Some(Kind::Assignments),
        ".gitconfig" | ".config/git/config" => Some(Kind::Git(user)),
        rest if LOGIN.contains(&rest) => Some(Kind::Opaque("a script")),
        rest if rest.starts_with(".config/environment.d/") => Some(Kind::Assignments),
        rest if rest.starts_with(".config/containers/systemd/") => {
            Some(Kind::Opaque("a container as a unit"))
        }
        rest if rest.starts_with(".config/autostart/") => Some(Kind::Opaque("what a login starts")),
        _ => None,
    }
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
            ("/etc/systemd/system/a.service", Some(Kind::Unit)),
            ("/etc//systemd/x/../system/a@.timer", Some(Kind::Unit)),
            ("/etc/systemd/system/a.service.d/b.conf", Some(Kind::Unit)),
            ("/etc/systemd/system/service.d/b.conf", Some(Kind::Unit)),
            ("/etc/systemd/system.control/a.socket", Some(Kind::Unit)),
            ("/etc/systemd/user/a.service", Some(Kind::Unit)),
            ("/run/systemd/transient/a.service", Some(Kind::Unit)),
            ("/usr/lib/systemd/system/a.path", Some(Kind::Unit)),
            ("/root/.config/systemd/user/a.service", Some(Kind::Unit)),
            ("/etc/systemd/system/a.txt", None),
            ("/etc/systemd/system.conf", Some(Kind::SystemdConf)),
            ("/etc/systemd/journald.conf", None),
            ("/etc/systemd/system.conf.d/a.conf", Some(Kind::SystemdConf)),
            ("/etc/systemd/journald.conf.d/a.conf", None),
            ("/etc/systemd/network/a.network", None),
            ("/etc/systemd/system-generators/a", Some(Kind::Opaque("a program"))),
            ("/usr/share/dbus-1/system-services/org.a.service", Some(Kind::Unit)),
            ("/etc/crontab", Some(Kind::SystemCrontab)),
            ("/etc/cron.d/a", Some(Kind::SystemCrontab)),
            ("/etc/cron.daily/a", Some(Kind::Opaque("a script"))),
            ("/etc/anacrontab", Some(Kind::Anacrontab)),
            ("/var/spool/cron/crontabs/root", Some(Kind::Crontab(None))),
            ("/var/spool/cron/crontabs/alice", Some(Kind::Crontab(alice()))),
            ("/var/spool/cron/alice", Some(Kind::Crontab(alice()))),
            ("/var/spool/cron/atjobs/a0001", Some(Kind::Opaque("a script"))),
            ("/etc/sudoers.d/a", Some(Kind::Sudoers)),
            ("/srv/app/compose.yaml", Some(Kind::Compose)),
            ("/srv/app/docker-compose.override.yml", Some(Kind::Compose)),
            ("/srv/app/composer.yaml", None),
            ("/etc/ssh/sshd_config.d/a.conf", Some(Kind::Ssh(None))),
            ("/home/alice/.ssh/config", Some(Kind::Ssh(alice()))),
            ("/home/alice/.ssh/authorized_keys", Some(Kind::AuthorizedKeys(alice()))),
            ("/var/lib/alice/.ssh/authorized_keys", Some(Kind::AuthorizedKeys(alice()))),
            ("/root/.ssh/authorized_keys", Some(Kind::AuthorizedKeys(None))),
            ("/root/.bashrc", Some(Kind::Opaque("a script"))),
            ("/etc/udev/rules.d/99-a.rules", Some(Kind::Udev)),
            ("/etc/logrotate.d/a", Some(Kind::Logrotate)),
            ("/etc/sysctl.d/a.conf", Some(Kind::Sysctl)),
            ("/etc/modprobe.d/a.conf", Some(Kind::Modprobe)),
            ("/etc/pam.d/a", Some(Kind::Pam { one_service: true })),
            ("/etc/profile.d/a.sh", Some(Kind::Opaque("a script"))),
            ("/etc/rc.local", Some(Kind::Opaque("a script"))),
            ("/etc/rc3.d/S01a", Some(Kind::Opaque("a script"))),
            ("/etc/network/if-up.d/a", Some(Kind::Opaque("a script"))),
            ("/usr/local/bin/a.sh", Some(Kind::Opaque("a program"))),
            ("/srv/a/.git/hooks/post-merge", Some(Kind::Opaque("a hook of git"))),
            ("/srv/a.git/hooks/update", Some(Kind::Opaque("a hook of git"))),
            ("/srv/a/.git/config", Some(Kind::Git(None))),
            ("/etc/default/ssh", Some(Kind::Assignments)),
            ("/etc/nginx/nginx.conf", None),
            ("/etc/hosts", None),
            ("/etc/fstab", None),
            ("/srv/data/notes.txt", None),
            ("", None),
            ("/", None),
        ];
        for (path, expected) in table {
            assert_eq!(kind(&normal(path)), expected, "{path}");
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
