//! Finds what hinders a shutdown, and what would hinder the start after it.

use linux_sysadmin_sdk::{Category, Output, prelude::*};

use super::units::Units;

/// The directory in which logind keeps the locks that delay or block a shutdown. systemd-inhibit(1) prints them as a table
/// whose columns can't be told apart where a name has blanks.
pub(crate) const INHIBITORS: &str = "/run/systemd/inhibit";
/// Checks /etc/fstab; it exits with 1 where a file system can't be mounted.
pub(crate) const FSTAB: CommandLine = CommandLine::new("findmnt --verify");
/// The table that it checks.
pub(crate) const FSTAB_FILE: &str = "/etc/fstab";
/// Checks sshd's configuration and host keys.
pub(crate) const SSHD: CommandLine = CommandLine::new("sshd -t");

/// The most locks that are read.
const MOST: usize = 100;

/// Sentences about those who block a shutdown.
pub(crate) fn inhibitors(cx: &Context) -> Vec<String> {
    let names = cx.list_dir(INHIBITORS).unwrap_or_default();
    let paths: Vec<_> = names
        .iter()
        .filter(|name| !name.ends_with(".ref"))
        .take(MOST)
        .map(|name| format!("{INHIBITORS}/{name}"))
        .collect();
    cx.read_all(&paths).into_iter().filter_map(|file| blocks(&file.ok()?)).collect()
}

/// The problem of a shutdown that somebody blocks.
pub(crate) fn inhibited(blocking: &[String]) -> Problem {
    Problem::new("SHUTDOWN_INHIBITED", Category::Lock, blocking.join("; "))
        .remedy("Wait until that has ended, or pass force=true to go down all the same")
}

/// The programs that block a shutdown, where the lock does so.
fn blocks(lock: &str) -> Option<String> {
    let value = |key: &str| {
        lock.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap_or_default()
    };
    let is_about_shutdown = value("WHAT").split(':').any(|what| what == "shutdown");
    (is_about_shutdown && value("MODE").starts_with("block"))
        .then(|| format!("{} (PID {}) blocks a shutdown: {}", value("WHO"), value("PID"), value("WHY")))
}

/// Sentences about what would keep the machine, or the way to it, from coming back.
pub(crate) fn of_the_next_start(
    units: &Units,
    fstab: Result<Output>,
    optional: &[String],
    sshd: Result<Output>,
) -> Vec<String> {
    let mut warnings = fstab.map(|output| of_fstab(&output.text(), optional)).unwrap_or_default();
    if let Ok(output) = sshd
        && output.exit_code != 0
        && units.has_ssh()
        && let Some(line) = output.error_text().lines().next()
        && !line.contains("no hostkeys available")
    {
        warnings.push(format!("sshd would not start again: {line}"));
    }
    if units.has_ssh() && !units.ssh_starts_at_boot() {
        warnings.push("sshd runs, and nothing starts it at boot".to_owned());
    }
    let lost = units.not_started_at_boot();
    if !lost.is_empty() {
        warnings.push(format!("nothing starts these at boot, though they run: {}", lost.join(", ")));
    }
    warnings
}

/// The mount points in /etc/fstab that the start doesn't wait for, as `findmnt --verify` names them.
pub(crate) fn optional_mounts(fstab: &str) -> Vec<String> {
    let mount_point = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [source, mount_point, _, options, ..] = fields[..] else { return None };
        let is_optional = options.split(',').any(|option| matches!(option, "nofail" | "noauto"));
        (is_optional && !source.starts_with('#')).then(|| mount_point.replace("\\040", " "))
    };
    fstab.lines().filter_map(mount_point).collect()
}

/// The errors that `findmnt --verify` tells, each with its mount point, which stands on a line of its own before them.
fn of_fstab(text: &str, optional: &[String]) -> Vec<String> {
    let mut mount_point = "";
    let mut errors = Vec::new();
    for line in text.lines() {
        match line.trim_start().strip_prefix("[E] ") {
            // A mount point that doesn't exist is made at the start, and systemd orders mounts by their paths.
            Some(error) if error.contains("boot required target") || error.starts_with("wrong order") => {}
            Some(_) if optional.iter().any(|optional| optional == mount_point) => {}
            Some(error) => {
                errors.push(format!("/etc/fstab, {mount_point}: {error}; the start may stop there"))
            }
            None if !line.starts_with(' ') => mount_point = line.trim(),
            None => {}
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_blocks_a_shutdown_is_told_with_who_and_why() {
        // systemd 252, `systemd-inhibit --what=shutdown:sleep --who="backup job" --why="copies disks"`.
        let lock = "# This is private data. Do not parse.\nWHAT=shutdown:sleep\nMODE=block\nUID=0\nPID=112\n\
                    WHO=backup job\nWHY=copies disks\nFIFO=/run/systemd/inhibit/1.ref\n";
        let told = "backup job (PID 112) blocks a shutdown: copies disks";
        assert_eq!(blocks(lock).as_deref(), Some(told));
        for harmless in [
            lock.replace("MODE=block", "MODE=delay"),
            lock.replace("WHAT=shutdown:sleep", "WHAT=sleep:idle"),
            String::new(),
        ] {
            assert_eq!(blocks(&harmless), None, "{harmless}");
        }
    }

    #[test]
    fn a_file_system_that_the_start_waits_for_in_vain_is_told() {
        // findmnt of util-linux 2.38.1.
        let text = "\n0 parse errors, 2 errors, 1 warning\n/data\n   [E] unreachable on boot required target: No such \
                    file or directory\n   [E] unreachable on boot required source: UUID=deadbeef-0000-0000-0000-\
                    000000000001\n   [W] your fstab has been modified, but systemd still uses the old version;\n       \
                    use 'systemctl daemon-reload' to reload\n";
        assert_eq!(
            of_fstab(text, &[]),
            ["/etc/fstab, /data: unreachable on boot required source: \
              UUID=deadbeef-0000-0000-0000-000000000001; the start may stop there"]
        );
        assert!(of_fstab("Success, no errors or warnings detected\n", &[]).is_empty());
    }

    #[test]
    fn a_file_system_that_the_start_does_not_wait_for_is_no_warning() {
        // findmnt of util-linux 2.38.1 calls these errors as well.
        let text = "/mnt/n\n   [E] wrong order: /mnt/n specified before /mnt\n   [E] unreachable on boot required target: No \
                    such file or directory\n   [E] unreachable on boot required source: UUID=dead-beef\n/mnt/b\n   [E] \
                    unreachable on boot required source: UUID=dead-bee3\n";
        let fstab = "# UUID=1 /mnt/b ext4 nofail\nUUID=dead-beef /mnt/n ext4 ro,nofail 0 0\nUUID=dead-bee3 /mnt/b ext4 \
                     defaults 0 0\nUUID=4 /a\\040b ext4 noauto 0 0\nbroken\n";
        let optional = optional_mounts(fstab);
        assert_eq!(optional, ["/mnt/n", "/a b"]);
        let told = "/etc/fstab, /mnt/b: unreachable on boot required source: UUID=dead-bee3; the start may stop there";
        assert_eq!(of_fstab(text, &optional), [told]);
    }
}
