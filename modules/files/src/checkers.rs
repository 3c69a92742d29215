//! Programs that check a file of the system before it takes its place. Those of services with a profile are that profile's.

use linux_sysadmin_sdk::knowledge::config_paths::covers;
use linux_sysadmin_sdk::prelude::*;

/// The checkers, each with the files that it reads.
const CHECKERS: [(&str, &str); 3] = [
    ("/etc/sudoers", "visudo --check --file=<path:/etc/sudoers>"),
    ("/etc/sudoers.d/*", "visudo --check --file=<path:/etc/sudoers.d/*>"),
    ("/etc/systemd/system/*", "systemd-analyze verify --man=no -- <path:/etc/systemd/system/*>"),
];

pub(crate) fn grants() -> Vec<CommandGrant> {
    let reason = "to check a file before it takes its place";
    CHECKERS.iter().map(|(_, pattern)| CommandGrant::read(pattern, reason).as_root()).collect()
}

/// The command that checks the new file at a path, with `{}` in its place.
pub(crate) fn of(path: &str) -> Option<Command> {
    let (_, pattern) = CHECKERS.iter().find(|(glob, _)| covers(glob, path))?;
    let mut words = pattern.split(' ');
    let command = Command::new(words.next()?);
    let word = |word: &str| match word.split_once("<path:") {
        Some((before, _)) => format!("{before}{{}}"),
        None => word.to_owned(),
    };
    Some(command.args(words.map(word)).as_root())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_sudo_and_a_unit_are_checked_before_they_take_their_place() {
        let line =
            |path: &str| of(path).map(|command| format!("{} {}", command.program, command.args.join(" ")));
        for (path, expected) in [
            ("/etc/sudoers", Some("visudo --check --file={}")),
            ("/etc/sudoers.d/web", Some("visudo --check --file={}")),
            ("/etc/systemd/system/x.service", Some("systemd-analyze verify --man=no -- {}")),
            ("/etc/systemd/system/x.service.d/y.conf", None),
            ("/etc/hosts", None),
        ] {
            assert_eq!(line(path).as_deref(), expected, "{path}");
        }
    }
}
