//! Says which of a module's grants its calls use. A grant that nothing uses is asked of an operator for nothing.

use host_base::Command;
use host_capability::{CommandRequest, Effect, Grants, PathRequest, Place, Requests};
use host_target::recorded::{Asked, PathUse};

/// A request of a module, with the reason why nothing uses it. The reason is empty where something does.
pub struct UsedGrant {
    /// The request as an operator reads it.
    pub request: String,
    /// Why nothing uses it.
    pub reasons: Vec<String>,
}

/// Looks for the use of each command line and each path that a module asks for.
pub fn used(requests: &Requests, asked: &[Asked]) -> Vec<UsedGrant> {
    let commands = requests.commands.iter().map(|request| of_command(request, asked));
    let paths = requests.paths.iter().filter(|request| request.place == Place::Target);
    commands.chain(paths.map(|request| of_path(request, asked))).collect()
}

fn of_command(request: &CommandRequest, asked: &[Asked]) -> UsedGrant {
    let purpose = match request.effect {
        Effect::Read => "to look",
        Effect::DryRun => "to simulate",
        Effect::Change => "to change",
    };
    let mut grants = Grants::default();
    // A pattern that can't be granted is told when the component is examined.
    let is_granted = grants.command(request).is_ok();
    let allows = |command: &Command| match request.effect {
        Effect::Change => grants.may_change(command).is_ok(),
        Effect::Read | Effect::DryRun => {
            grants.may_look(command).is_ok() || grants.may_simulate(command).is_ok()
        }
    };
    let is_used = is_granted && asked.iter().flat_map(|asked| &asked.allowed).any(allows);
    UsedGrant {
        request: format!("`{}` {purpose}", request.pattern),
        reasons: reasons(is_used, "runs a command that it allows"),
    }
}

fn of_path(request: &PathRequest, asked: &[Asked]) -> UsedGrant {
    let mut grants = Grants::default();
    let is_granted = grants.path(request).is_ok();
    let is_used = asked.iter().flat_map(|asked| &asked.paths).any(|(used, path, privilege)| match used {
        PathUse::Read if !request.write => grants.may_read(path, path, privilege).is_ok(),
        PathUse::List if !request.write => grants.may_list(path, path, privilege).is_ok(),
        PathUse::Write if request.write => grants.may_write(path, path, privilege).is_ok(),
        _ => false,
    });
    let (purpose, need) = match request.write {
        true => ("to write", "makes a plan that writes there"),
        false => ("to read", "reads or lists anything there"),
    };
    UsedGrant {
        request: format!("{} {purpose}", request.glob),
        reasons: reasons(is_granted && is_used, need),
    }
}

fn reasons(is_used: bool, need: &str) -> Vec<String> {
    match is_used {
        true => Vec::new(),
        false => vec![format!("no call {need}: add one that does, or don't ask for it")],
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use host_base::{Privilege, Risk};

    fn command_request(pattern: &str, effect: Effect, privilege: Privilege) -> CommandRequest {
        let (pattern, reason) = (pattern.to_owned(), String::new());
        CommandRequest { pattern, effect, privilege, place: Place::Target, risk: Risk::Low, reason }
    }

    fn path_request(glob: &str, write: bool) -> PathRequest {
        let (glob, reason) = (glob.to_owned(), String::new());
        PathRequest { glob, write, privilege: Privilege::Root, place: Place::Target, reason }
    }

    fn command(words: &[&str], privilege: Privilege) -> Command {
        let command = Command::new(words[0], words[1..].iter().copied(), Duration::from_secs(1));
        Command { privilege, ..command }
    }

    #[test]
    fn a_grant_is_used_by_a_command_that_it_allows_for_its_own_purpose() {
        let requests = Requests {
            commands: vec![
                command_request("toy list", Effect::Read, Privilege::Caller),
                command_request("toy add -- <package>...", Effect::Change, Privilege::Root),
                command_request("toy add --try -- <package>...", Effect::DryRun, Privilege::Caller),
                command_request("toy remove -- <package>...", Effect::Change, Privilege::Root),
            ],
            ..Requests::default()
        };
        let asked = Asked {
            allowed: vec![
                command(&["toy", "list"], Privilege::Caller),
                command(&["toy", "add", "--", "a"], Privilege::Root),
                command(&["toy", "add", "--try", "--", "a"], Privilege::Caller),
            ],
            ..Asked::default()
        };
        let used = used(&requests, &[asked]);
        let unused: Vec<&str> =
            used.iter().filter(|used| !used.reasons.is_empty()).map(|used| used.request.as_str()).collect();
        assert_eq!(unused, ["`toy remove -- <package>...` to change"]);
    }

    #[test]
    fn a_path_is_used_for_reading_or_for_writing() {
        let requests = Requests {
            paths: vec![
                path_request("/etc/toy/**", false),
                path_request("/etc/toy/*", true),
                path_request("/srv/toy", false),
            ],
            ..Requests::default()
        };
        let asked = |used, path: &str| Asked {
            paths: vec![(used, path.to_owned(), Privilege::Root)],
            ..Asked::default()
        };
        let unused = |asked: &[Asked]| -> Vec<bool> {
            used(&requests, asked).iter().map(|used| used.reasons.is_empty()).collect()
        };
        assert_eq!(unused(&[asked(PathUse::Read, "/etc/toy/a")]), [true, false, false]);
        assert_eq!(unused(&[asked(PathUse::List, "/etc/toy")]), [true, false, false]);
        assert_eq!(unused(&[asked(PathUse::Write, "/etc/toy/a")]), [false, true, false]);
        assert_eq!(unused(&[]), [false, false, false]);
    }
}
