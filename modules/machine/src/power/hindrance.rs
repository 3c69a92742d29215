//! Finds what hinders a shutdown, and what would hinder the start after it.

use linux_sysadmin_sdk::{Category, Output, prelude::*};

use super::units::Units;

/// The directory in which logind keeps the locks that delay or block a shutdown. systemd-inhibit(1) prints them as a table
/// whose columns can't be told apart where a name has blanks.
pub(crate) const INHIBITORS: &str = "/run/systemd/inhibit";
/// Checks /etc/fstab; it exits with 1 where a file system can't be mounted.
pub(crate) const FSTAB: CommandLine = CommandLine::new("findmnt --verify");
/// Checks sshd's configuration and host keys.
pub(crate) const SSHD: CommandLine = CommandLine::new("sshd -t");

/// The most locks that are read.
const MOST: usize = 100;

/// Refuses a shutdown that somebody blocks.
pub(crate) fn refuse_inhibited(cx: &Context) -> Result<()> {
    let names = cx.list_dir(INHIBITORS).unwrap_or_default();
    let paths: Vec<_> = names
        .iter()
        .filter(|name| !name.ends_with(".ref"))
        .take(MOST)
        .map(|name| format!("{INHIBITORS}/{name}"))
        .collect();
    let blocking: Vec<_> = cx.read_all(&paths).into_iter().filter_map(|file| blocks(&file.ok()?)).collect();
    match blocking.is_empty() {
        true => Ok(()),
        false => Err(Problem::new("SHUTDOWN_INHIBITED", Category::Lock, blocking.join("; "))
            .remedy("Wait until that has ended, or pass force=true to go down all the same")),
    }
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
pub(crate) fn of_the_next_start(units: &Units, fstab: Result<Output>, sshd: Result<Output>) -> Vec<String> {
    let mut warnings = fstab.map(|output| of_fstab(&output.text())).unwrap_or_default();
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

/// The errors that `findmnt --verify` tells, each with its mount point, which stands on a line of its own before them.
fn of_fstab(text: &str) -> Vec<String> {
    let mut mount_point = "";
    let mut errors = Vec::new();
    for line in text.lines() {
        match line.trim_start().strip_prefix("[E] ") {
            // A mount point that doesn't exist is made at the start.
            Some(error) if error.contains("boot required target") => {}
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
            of_fstab(text),
            ["/etc/fstab, /data: unreachable on boot required source: \
              UUID=deadbeef-0000-0000-0000-000000000001; the start may stop there"]
        );
        assert!(of_fstab("Success, no errors or warnings detected\n").is_empty());
    }
}
