//! Programs and libraries that an update has replaced, or that were deleted, while a process runs on them.

use crate::{Command, CommandGrant, CommandLine, Privilege};

/// Prints the mapped files of a process that have been deleted or replaced.
const DELETED: CommandLine = CommandLine::new("grep --fixed-strings -- '(deleted)' <path:/proc/*/maps>");

/// The grant for [`command`], which runs as root where possible.
pub fn grant() -> CommandGrant {
    DELETED.read("whether a process runs on files that an update has replaced").as_root_if_available()
}

/// The command that prints the replaced files of a process.
pub fn command(pid: u64) -> Command {
    DELETED.with([format!("/proc/{pid}/maps")]).privilege(Privilege::RootIfAvailable)
}

/// The replaced programs and libraries in the output of [`command`]: files that are mapped as executable. Files that a
/// program makes for itself at run time are left out.
pub fn of(maps: &str) -> Vec<String> {
    const OWN: [&str; 6] = ["/memfd:", "/dev/", "/tmp/", "/var/tmp/", "/run/", "/SYSV"];
    let mut files: Vec<String> = maps
        .lines()
        .filter_map(|line| {
            let (fields, path) = line.split_at(line.find('/')?);
            let path = path.strip_suffix(" (deleted)")?;
            let is_executed = fields.split_whitespace().nth(1)?.contains('x');
            (is_executed && !OWN.iter().any(|own| path.starts_with(own))).then(|| path.to_owned())
        })
        .collect();
    files.sort();
    files.dedup();
    files
}

#[cfg(test)]
mod tests {
    use super::of;

    /// Recorded from /proc/PID/maps on Linux 6.1, after updates.
    const MAPS: &str = "\
55d0c8a00000-55d0c8a2a000 r--p 00000000 fe:01 131 /usr/sbin/nginx (deleted)
55d0c8a2a000-55d0c8b2a000 r-xp 0002a000 fe:01 131 /usr/sbin/nginx (deleted)
7f1c00000000-7f1c00100000 r-xp 00000000 fe:01 777 /usr/lib/x86_64-linux-gnu/libssl.so.3 (deleted)
7f1c00100000-7f1c00200000 r--p 00000000 fe:01 778 /usr/share/data (deleted)
7f1c00200000-7f1c00300000 rw-s 00000000 00:01 9 /dev/zero (deleted)
7f1c00300000-7f1c00400000 r-xp 00000000 00:01 10 /memfd:doublemapper (deleted)
7f1c00400000-7f1c00500000 r-xp 00000000 fe:01 11 /tmp/ffiX (deleted)
7f1c00500000-7f1c00600000 r-xp 00000000 fe:01 12 /opt/my app/lib.so (deleted)
garbage (deleted)
/ (deleted)
";

    #[test]
    fn what_runs_and_was_replaced_is_told_and_what_a_program_makes_for_itself_is_not() {
        let expected = ["/opt/my app/lib.so", "/usr/lib/x86_64-linux-gnu/libssl.so.3", "/usr/sbin/nginx"];
        assert_eq!(of(MAPS), expected);
        assert!(of("").is_empty());
    }
}
