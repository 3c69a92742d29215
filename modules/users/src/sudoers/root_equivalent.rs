//! Commands that give all rights: an account that runs one of them as root can run anything.

/// Programs that start others, or a shell.
const START: &[&str] = &[
    "ash",
    "at",
    "awk",
    "bash",
    "batch",
    "busybox",
    "capsh",
    "chroot",
    "chrt",
    "crontab",
    "csh",
    "dash",
    "doas",
    "docker",
    "env",
    "expect",
    "find",
    "fish",
    "flock",
    "gawk",
    "gdb",
    "incus",
    "ionice",
    "irb",
    "jrunscript",
    "kubectl",
    "ksh",
    "ld.so",
    "logsave",
    "ltrace",
    "lua",
    "lxc",
    "lxd",
    "machinectl",
    "make",
    "mawk",
    "mksh",
    "nerdctl",
    "nice",
    "node",
    "nohup",
    "nsenter",
    "parallel",
    "perl",
    "php",
    "pkexec",
    "podman",
    "psql",
    "python",
    "python2",
    "python3",
    "rbash",
    "ruby",
    "run-parts",
    "runuser",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "sg",
    "sh",
    "socat",
    "ssh",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-nspawn",
    "systemd-run",
    "taskset",
    "tclsh",
    "tcsh",
    "time",
    "timeout",
    "tmux",
    "unshare",
    "watch",
    "xargs",
    "zsh",
];

/// Programs that edit or show files, and start a shell from there.
const EDIT: &[&str] = &[
    "ed",
    "edit",
    "editor",
    "emacs",
    "ex",
    "jed",
    "joe",
    "less",
    "man",
    "mcedit",
    "micro",
    "more",
    "nano",
    "nvim",
    "pager",
    "pico",
    "rview",
    "rvim",
    "sed",
    "sensible-editor",
    "vi",
    "view",
    "vim",
    "vipw",
    "vigr",
    "visudo",
    "ftp",
    "gdbserver",
    "mutt",
];

/// Programs that write any file, or change who may write it.
const WRITE: &[&str] = &[
    "apt",
    "apt-get",
    "aptitude",
    "chattr",
    "chgrp",
    "chmod",
    "chown",
    "cp",
    "cpio",
    "curl",
    "dd",
    "debugfs",
    "dnf",
    "dpkg",
    "dnf5",
    "flatpak",
    "git",
    "install",
    "insmod",
    "kexec",
    "ln",
    "modprobe",
    "mount",
    "mv",
    "pip",
    "pip3",
    "rpm",
    "rsync",
    "scp",
    "setcap",
    "setfacl",
    "sftp",
    "snap",
    "sponge",
    "systemctl",
    "tar",
    "tee",
    "truncate",
    "unzip",
    "wget",
    "yum",
    "zypper",
    "adduser",
    "chpasswd",
    "gpasswd",
    "newusers",
    "passwd",
    "useradd",
    "usermod",
    "zip",
    "7z",
];

/// A warning about a command that gives all rights. `None` where nothing is known against it.
pub(super) fn warning(command: &str) -> Option<String> {
    let (program, arguments) = command.split_once(' ').unwrap_or((command, ""));
    if program.ends_with('/') {
        return Some(format!(
            "`{program}` lets run every program that is in that directory or is put there later"
        ));
    }
    let name = program.rsplit('/').next().unwrap_or_default();
    // The name may end with a version.
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let is_among = |list: &[&str]| list.contains(&name) || list.contains(&plain);
    let what = if is_among(START) {
        "starts other programs"
    } else if is_among(EDIT) {
        "starts a shell from within, or edits any file"
    } else if is_among(WRITE) {
        "can write what root then runs"
    } else {
        return None;
    };
    Some(match arguments {
        "" => format!("`{program}` {what}: with any arguments, it is as good as ALL"),
        _ => format!("`{program}` {what}: check that these arguments don't allow it"),
    })
}

#[cfg(test)]
mod tests {
    use super::warning;

    #[test]
    fn what_amounts_to_everything_is_said() {
        for command in [
            "/bin/bash",
            "/usr/bin/python3.11",
            "/usr/bin/vim",
            "/usr/bin/",
            "/usr/bin/find",
            "/usr/bin/env",
            "/usr/bin/tee",
            "/usr/bin/apt-get",
            "/usr/bin/less",
        ] {
            assert!(warning(command).is_some(), "{command}");
        }
        for command in
            ["/usr/sbin/nginx -t", "/usr/bin/journalctl --unit=nginx", "/usr/local/bin/deploy", "/usr/bin/id"]
        {
            assert_eq!(warning(command), None, "{command}");
        }
        assert!(warning("/usr/bin/systemctl").unwrap().contains("any arguments"));
        assert!(warning("/usr/bin/systemctl restart nginx").unwrap().contains("these arguments"));
    }
}
