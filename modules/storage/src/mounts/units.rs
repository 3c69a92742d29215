//! The units that systemd makes of fstab, and why one failed. See systemd.mount(5) and systemd-escape(1).

use std::fmt::Write as _;

use linux_sysadmin_sdk::{DurationCategory, JournalEntry, Privilege, prelude::*, text};

const SHOW: CommandLine = CommandLine::new("systemctl show --property=ActiveState -- <unit>...");
const DAEMON_RELOAD: CommandLine = CommandLine::new("systemctl daemon-reload");
const START: CommandLine = CommandLine::new("systemctl start -- <unit>");
const STOP: CommandLine = CommandLine::new("systemctl stop -- <unit>");
const JOURNAL: CommandLine =
    CommandLine::new("journalctl --output=json --no-pager --quiet --boot --lines=20 --unit=<unit>");

pub(crate) fn grants(module: Module) -> Module {
    module
        .command(SHOW.read("which mounts failed"))
        .command(JOURNAL.read("why a mount failed").as_root_if_available())
        .command(DAEMON_RELOAD.change(Risk::Low, "let systemd read fstab again"))
        .command(START.change(Risk::Moderate, "start a unit that mounts on use again"))
        .command(STOP.change(Risk::Moderate, "stop a unit that mounts on use"))
}

/// The name of a path in units.
pub(crate) fn escaped(path: &str) -> String {
    let path = path.trim_matches('/');
    if path.is_empty() {
        return "-".to_owned();
    }
    let mut name = String::new();
    for (index, byte) in path.bytes().enumerate() {
        match byte {
            b'/' => name.push('-'),
            b'.' if index > 0 => name.push('.'),
            byte if byte.is_ascii_alphanumeric() || b"_:".contains(&byte) => name.push(char::from(byte)),
            byte => {
                let _ = write!(name, "\\x{byte:02x}");
            }
        }
    }
    name
}

/// The command with which systemd reads fstab again; none on a machine without systemd.
pub(crate) fn reload(cx: &Context) -> Option<Command> {
    let command = DAEMON_RELOAD.command().as_root().duration(DurationCategory::Normal);
    (cx.distro().init_system == "systemd").then_some(command)
}

/// The step that stops the unit which mounts a path once it is used.
pub(crate) fn stop_automount(path: &str) -> Step {
    let unit = escaped(path) + ".automount";
    Step::run(STOP.with([&unit]).as_root()).undo(START.with([&unit]).as_root())
}

/// Why the mount of each path failed: what its unit said last, which may be nothing. `None` where it didn't fail.
pub(crate) fn failures(points: &[&str], cx: &Context) -> Vec<Option<String>> {
    let units: Vec<String> = points.iter().map(|point| escaped(point) + ".mount").collect();
    if units.is_empty() || cx.distro().init_system != "systemd" {
        return vec![None; points.len()];
    }
    let states = cx.run(SHOW.with(&units)).map(|output| output.text().into_owned()).unwrap_or_default();
    let states: Vec<&str> = states.split_whitespace().collect();
    let has_failed = |index: usize| states.get(index) == Some(&"ActiveState=failed");
    let failed: Vec<&String> =
        units.iter().enumerate().filter(|(index, _)| has_failed(*index)).map(|(_, unit)| unit).collect();
    let command = |unit: &&String| JOURNAL.with([*unit]).privilege(Privilege::RootIfAvailable);
    let mut outputs = cx.run_all(failed.iter().map(command).collect()).into_iter();
    let mut said = || outputs.next()?.ok().and_then(|output| reason(&output.stdout)).or(Some(String::new()));
    (0..units.len()).map(|index| if has_failed(index) { said() } else { None }).collect()
}

/// What the program said last, or else systemd's last error.
fn reason(journal: &[u8]) -> Option<String> {
    let entries: Vec<_> = journal.split(|byte| *byte == b'\n').filter_map(JournalEntry::parse).collect();
    let of_program = entries.iter().rev().find(|entry| !entry.is_of_manager() && entry.message().is_some());
    let of_systemd = || entries.iter().rev().find(|entry| entry.priority().is_some_and(|level| level <= 4));
    of_program.or_else(of_systemd)?.message().map(text::of_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_name_that_systemd_escape_gives() {
        // systemd-escape --path, systemd 252
        for (path, expected) in [
            ("/", "-"),
            ("/mnt/data", "mnt-data"),
            ("/mnt/a b", "mnt-a\\x20b"),
            ("/srv/x-y/.z", "srv-x\\x2dy-.z"),
            ("/.snap", "\\x2esnap"),
            ("/mnt/ä", "mnt-\\xc3\\xa4"),
        ] {
            assert_eq!(escaped(path), expected);
        }
    }

    #[test]
    fn the_program_says_why_before_systemd() {
        let program = r#"{"__REALTIME_TIMESTAMP":"1","MESSAGE":"mount: /mnt/x: can't find UUID=1.","PRIORITY":"3","_SYSTEMD_UNIT":"mnt-x.mount"}"#;
        let manager = r#"{"__REALTIME_TIMESTAMP":"1","MESSAGE":"Failed to mount /mnt/x.","PRIORITY":"3","UNIT":"mnt-x.mount"}"#;
        let said = |lines: &[&str]| reason(lines.join("\n").as_bytes());
        assert_eq!(said(&[program, manager]).as_deref(), Some("mount: /mnt/x: can't find UUID=1."));
        assert_eq!(said(&[manager]).as_deref(), Some("Failed to mount /mnt/x."));
        assert_eq!(said(&["garbage", ""]), None);
    }
}
