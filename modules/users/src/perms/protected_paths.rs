//! Paths whose permissions must not change carelessly: the system's own trees, programs that start others, and secrets.

/// Trees that belong to the system.
const SYSTEM: [&str; 11] =
    ["/bin", "/boot", "/dev", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin", "/sys", "/usr"];

/// Trees in /usr for software of the site.
const LOCAL: [&str; 5] =
    ["/usr/local/src/", "/usr/local/share/", "/usr/local/lib/", "/usr/local/games/", "/usr/local/opt/"];

/// Directories that are protected themselves, but not what is below them.
const TOPS: [&str; 13] = [
    "/",
    "/etc",
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/root",
    "/run",
    "/srv",
    "/tmp",
    "/var",
    "/lost+found",
    "/efi",
];

/// Trees of the system below /etc, /var and /run.
const PARTS: [&str; 57] = [
    "/etc/NetworkManager",
    "/etc/X11",
    "/etc/alternatives",
    "/etc/apparmor",
    "/etc/apparmor.d",
    "/etc/apt",
    "/etc/audit",
    "/etc/cron.d",
    "/etc/cron.daily",
    "/etc/cron.hourly",
    "/etc/cron.monthly",
    "/etc/cron.weekly",
    "/etc/dbus-1",
    "/etc/default",
    "/etc/dnf",
    "/etc/init.d",
    "/etc/initramfs-tools",
    "/etc/kernel",
    "/etc/ld.so.conf.d",
    "/etc/logrotate.d",
    "/etc/modprobe.d",
    "/etc/modules-load.d",
    "/etc/netplan",
    "/etc/network",
    "/etc/pam.d",
    "/etc/pki",
    "/etc/polkit-1",
    "/etc/profile.d",
    "/etc/rc.d",
    "/etc/security",
    "/etc/selinux",
    "/etc/skel",
    "/etc/ssh",
    "/etc/ssl",
    "/etc/sudoers.d",
    "/etc/sysconfig",
    "/etc/sysctl.d",
    "/etc/systemd",
    "/etc/udev",
    "/etc/yum.repos.d",
    "/run/dbus",
    "/run/lock",
    "/run/systemd",
    "/run/udev",
    "/run/user",
    "/var/backups",
    "/var/cache/apt",
    "/var/cache/dnf",
    "/var/lib/apt",
    "/var/lib/dpkg",
    "/var/lib/pam",
    "/var/lib/rpm",
    "/var/lib/sss",
    "/var/lib/systemd",
    "/var/lib/sudo",
    "/var/spool/cron",
    "/var/spool/at",
];

/// Directories that many programs share. They are protected themselves, but not what is below them.
const SHARED: [&str; 16] = [
    "/var/cache",
    "/var/crash",
    "/var/lib",
    "/var/local",
    "/var/lock",
    "/var/log",
    "/var/mail",
    "/var/opt",
    "/var/run",
    "/var/spool",
    "/var/spool/mail",
    "/var/tmp",
    "/var/log/journal",
    "/var/log/audit",
    "/var/www",
    "/usr/local",
];

/// Programs that run other programs or any code.
const INTERPRETERS: [&str; 40] = [
    "ash", "awk", "bash", "busybox", "csh", "dash", "ed", "emacs", "env", "expect", "find", "fish", "gawk",
    "gdb", "ksh", "less", "lua", "make", "mawk", "mksh", "more", "nano", "node", "perl", "php", "python",
    "rbash", "ruby", "sed", "sh", "tar", "tclsh", "tcsh", "vi", "vim", "cp", "dd", "tee", "xargs", "zsh",
];

/// Directories that every account has to pass.
const PASSED_BY_ALL: [&str; 13] = [
    "/",
    "/bin",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/proc",
    "/run",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/lib64",
    "/var",
];

/// Programs by which an account becomes root.
const TO_ROOT: [&str; 5] = ["/bin/su", "/usr/bin/su", "/usr/bin/sudo", "/usr/bin/pkexec", "/usr/bin/doas"];

/// Paths that control access or hold secrets. A `*` stands for one name.
const SENSITIVE: [&str; 19] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/passwd",
    "/etc/passwd-",
    "/etc/group",
    "/etc/group-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/sudoers.d/*",
    "/etc/ssh/sshd_config",
    "/etc/ssh/*_key",
    "/etc/ssl/private",
    "/etc/ssl/private/*",
    "/etc/pki/tls/private",
    "/etc/pki/tls/private/*",
    "/etc/security/opasswd",
    "/etc/pam.d/*",
];

/// Whether a path is this directory, or below it.
pub(crate) fn is_within(path: &str, directory: &str) -> bool {
    path == directory || path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// The reason why a tree can't be changed as a whole. `None` where it can.
pub(crate) fn system(path: &str, homes: &[&str]) -> Option<String> {
    let refused = |why: &str| Some(format!("{path} {why}"));
    if TOPS.contains(&path) || SHARED.contains(&path) {
        return refused("is a directory that the system consists of");
    }
    let is_local = LOCAL.iter().any(|local| path.strip_prefix(local).is_some_and(|rest| !rest.is_empty()));
    if let Some(top) = SYSTEM.iter().find(|top| is_within(path, top)).filter(|_| !is_local) {
        return refused(&format!("is in {top}, which is the system's"));
    }
    if let Some(part) = PARTS.iter().find(|part| is_within(path, part)) {
        return refused(&format!("is in {part}, which is the system's"));
    }
    if is_within(path, "/root/.ssh") || path.split('/').any(|name| name == ".ssh") {
        return refused("keeps keys, of which each has permissions of its own");
    }
    // The directory holds several homes.
    let around = homes.iter().filter(|home| **home != path && is_within(home, path)).count();
    if around > 0 { refused("is a directory around homes") } else { None }
}

/// Whether every account has to pass the directory.
pub(crate) fn is_passed_by_all(path: &str) -> bool {
    PASSED_BY_ALL.contains(&path)
}

/// Whether the program needs its setuid bit to make an account root.
pub(crate) fn leads_to_root(path: &str) -> bool {
    TO_ROOT.contains(&path)
}

/// Whether a program runs any code, by its name without version or variant (`python3.11`, `vim.basic`).
pub(crate) fn is_interpreter(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let stem = name.split(['.', '-']).next().unwrap_or_default();
    INTERPRETERS.contains(&stem.trim_end_matches(|c: char| c.is_ascii_digit()))
}

/// The home that a path is in.
pub(crate) fn home<'a>(path: &str, homes: &[&'a str]) -> Option<&'a str> {
    let own = homes.iter().find(|home| is_within(path, home)).copied();
    own.or_else(|| ["/home", "/root"].into_iter().find(|top| is_within(path, top)))
}

/// Whether more permissions would give others access or show them secrets.
pub(crate) fn is_sensitive(path: &str) -> bool {
    let fits = |glob: &&str| {
        let (mut own, mut names) = (glob.split('/'), path.split('/'));
        loop {
            match (own.next(), names.next()) {
                (None, None) => return true,
                (Some("*"), Some(_)) => {}
                (Some(own), Some(name)) if own == name => {}
                (Some(own), Some(name)) if own.starts_with('*') && name.ends_with(&own[1..]) => {}
                _ => return false,
            }
        }
    };
    SENSITIVE.iter().any(fits) || path.split('/').any(|name| matches!(name, ".ssh" | ".gnupg"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_consists_of_is_no_tree_to_change() {
        let homes = ["/home/ada", "/srv/people/bob", "/root", "/nonexistent"];
        for path in [
            "/",
            "/etc",
            "/usr",
            "/usr/bin",
            "/usr/lib/x/y",
            "/var",
            "/var/lib",
            "/bin",
            "/lib",
            "/boot/grub",
            "/dev",
            "/proc",
            "/sys",
            "/root",
            "/home",
            "/etc/ssh",
            "/etc/pam.d",
            "/var/lib/dpkg/info",
            "/home/ada/.ssh",
            "/usr/local",
            "/usr/local/bin",
            "/srv",
            "/srv/people",
            "/run",
            "/tmp",
            "/var/log",
        ] {
            assert!(system(path, &homes).is_some(), "{path}");
        }
        for path in [
            "/srv/www",
            "/home/ada",
            "/home/ada/x",
            "/opt/app",
            "/var/www/site",
            "/var/lib/app",
            "/etc/nginx",
            "/usr/local/src/x",
            "/srv/people/bob",
            "/usrx",
            "/root/x",
        ] {
            assert_eq!(system(path, &homes), None, "{path}");
        }
    }

    #[test]
    fn interpreters_homes_and_secrets_are_known() {
        for path in
            ["/bin/bash", "/usr/bin/python3.11", "/usr/bin/perl", "/usr/bin/vim.basic", "/usr/bin/find"]
        {
            assert!(is_interpreter(path), "{path}");
        }
        assert!(!is_interpreter("/usr/bin/passwd"));
        let homes = ["/srv/people/bob"];
        assert_eq!(home("/srv/people/bob/x", &homes), Some("/srv/people/bob"));
        assert_eq!((home("/home/x/y", &homes), home("/srv/people/bobby", &homes)), (Some("/home"), None));
        for path in [
            "/etc/shadow",
            "/etc/sudoers.d/x",
            "/etc/ssh/ssh_host_rsa_key",
            "/home/ada/.ssh/id_rsa",
            "/home/ada/.ssh",
        ] {
            assert!(is_sensitive(path), "{path}");
        }
        assert!(!is_sensitive("/etc/ssh/ssh_host_rsa_key.pub") && !is_sensitive("/srv/etc/shadow"));
    }
}
