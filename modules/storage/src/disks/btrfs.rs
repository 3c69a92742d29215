//! The errors that btrfs has counted on its devices, by `btrfs device stats`.

use linux_sysadmin_sdk::{Privilege, prelude::*};

/// Prints lines such as `[/dev/sda].write_io_errs    0`.
const STATS: CommandLine = CommandLine::new("btrfs device stats -- <text>");

pub(crate) fn grants() -> [CommandGrant; 1] {
    [STATS.read("errors that btrfs has counted on its devices").as_root_if_available()]
}

pub(crate) fn stats(point: &str) -> Command {
    STATS.with([point]).privilege(Privilege::RootIfAvailable)
}

/// The devices with errors, each with what went wrong. A device that is missing has a number in place of its name.
pub(crate) fn errors(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let Some((device, counter)) = line.strip_prefix('[').and_then(|rest| rest.rsplit_once("].")) else {
            continue;
        };
        let mut words = counter.split_whitespace();
        let (Some(name), Some(count)) = (words.next(), words.next()) else { continue };
        if count.parse::<u64>().is_ok_and(|count| count > 0) {
            let said = format!("{count} {}", name.replace("_errs", " errors").replace('_', " "));
            match found.iter_mut().find(|(known, _)| known == device) {
                Some((_, all)) => *all = format!("{all}, {said}"),
                None => found.push((device.to_owned(), said)),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::errors;

    #[test]
    fn only_devices_with_errors_are_told() {
        // btrfs-progs 6.2, with two of the counters set.
        let text = "[/dev/loop2].write_io_errs    0\n[/dev/loop2].read_io_errs     0\n[/dev/loop2].corruption_errs  0\n\
            [/dev/lo].op3].write_io_errs    12\n[/dev/lo].op3].flush_io_errs    0\n[/dev/lo].op3].corruption_errs  3\n\
            [devid:2].generation_errs  1\ngarbage\n[x].y\n";
        let expected =
            [("/dev/lo].op3", "12 write io errors, 3 corruption errors"), ("devid:2", "1 generation errors")];
        assert_eq!(errors(text), expected.map(|(device, said)| (device.to_owned(), said.to_owned())));
        assert!(errors("").is_empty());
    }
}
