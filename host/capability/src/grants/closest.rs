//! Names the grant that comes closest to a refused command, and where the two differ first. A module's author sees by it
//! which word to correct, and an operator which grant to look at.

use super::redaction::without_likely_secrets;
use super::{CommandGrant, Grants, covers};
use crate::pattern::Progress;
use host_base::Command;
use host_text::visible::excerpt;

/// The greatest length of a pattern in the message.
const MAX_SHOWN: usize = 200;
/// The greatest length of a word in the message.
const MAX_WORD: usize = 60;
/// The number of tokens of which the message says that one was expected.
const MAX_TOKENS: usize = 4;

impl Grants {
    /// Says which grant is the closest to a command that none matches, and where they differ. The text goes on from a
    /// sentence. It shows no secret, because the command's words are shown without likely ones.
    pub(super) fn closest(&self, command: &Command) -> String {
        let of_program = self.commands.iter().filter(|grant| grant.pattern.program() == command.program);
        let all = of_program.map(|grant| (grant, grant.pattern.progress(&command.args)));
        // Of grants that are equally close, the last one of the reversed list is the module's first.
        let closest = all.rev().max_by_key(|(grant, progress)| {
            let is_whole = progress.may_end && progress.read == command.args.len();
            (is_whole, progress.read, covers(&grant.request.privilege, &command.privilege))
        });
        let Some((grant, progress)) = closest else {
            return format!(", and none is for {}", excerpt(&command.program, MAX_WORD));
        };
        let difference = match progress.may_end && progress.read == command.args.len() {
            true => beside_the_arguments(grant, command),
            false => {
                let patterns = self.commands.iter().map(|grant| &grant.pattern);
                argument(&progress, &without_likely_secrets(command, patterns).args)
            }
        };
        format!("; the closest is `{}`, which {difference}", excerpt(grant.pattern.text(), MAX_SHOWN))
    }
}

/// Says which argument is the first that differs.
fn argument(progress: &Progress<'_>, shown: &[String]) -> String {
    let mut expected: Vec<String> = Vec::new();
    for token in &progress.expected {
        let shown = format!("`{}`", excerpt(&token.to_string(), MAX_WORD));
        if !expected.contains(&shown) {
            expected.push(shown);
        }
    }
    let more = expected.len().saturating_sub(MAX_TOKENS);
    expected.truncate(MAX_TOKENS);
    if more > 0 {
        expected.push(format!("{more} others"));
    }
    if progress.may_end {
        expected.push("nothing".to_owned());
    }
    let (expected, number) = (expected.join(" or "), progress.read + 1);
    match shown.get(progress.read) {
        Some(word) => format!("has {expected} as argument {number} and not `{}`", excerpt(word, MAX_WORD)),
        None => format!("has {expected} as argument {number}, where the command ends"),
    }
}

/// Says what differs where the arguments match.
fn beside_the_arguments(grant: &CommandGrant, command: &Command) -> String {
    let (pattern, granted) = (&grant.pattern, &grant.request.privilege);
    if !covers(granted, &command.privilege) {
        let (granted, asked) = (String::from(granted.clone()), String::from(command.privilege.clone()));
        return format!("is for the rights {granted} and not {asked}");
    }
    if command.stdin.is_some() && !pattern.stdin() {
        return "takes no standard input".to_owned();
    }
    let names: Vec<String> =
        pattern.variables().iter().map(|(name, value)| format!("{name}={value}")).collect();
    match names.is_empty() {
        true => "has no variables".to_owned(),
        false => format!("has exactly the variables {}", excerpt(&names.join(" "), MAX_SHOWN)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{CommandRequest, Effect, Place};
    use host_base::{Privilege, Risk};

    fn grants() -> Grants {
        let mut grants = Grants::new("test");
        for (pattern, privilege) in [
            ("pacman --query [--info] -- <package>...", Privilege::Caller),
            ("pacman --sync --search -- <text>", Privilege::Caller),
            ("systemctl (start|stop) -- <unit>", Privilege::Root),
            ("LANG=C sort --key=<int>", Privilege::Caller),
            ("login --password=<secret> -- <user>", Privilege::Caller),
            ("pick (a|b|c|d|e|f)", Privilege::Caller),
        ] {
            let (pattern, effect, place) = (pattern.to_owned(), Effect::Read, Place::Target);
            let (risk, reason) = (Risk::ReadOnly, String::new());
            grants.command(&CommandRequest { pattern, effect, privilege, place, risk, reason }).unwrap();
        }
        grants
    }

    fn refusal(line: &str, privilege: Privilege) -> String {
        let mut words = line.split(' ');
        let mut command = Command::new(words.next().unwrap(), words, Duration::from_secs(1));
        command.privilege = privilege;
        let problem = grants().may_look(&command).unwrap_err();
        assert_eq!(problem.code, "CAPABILITY_DENIED");
        problem.message
    }

    #[test]
    fn the_closest_grant_is_named_with_the_first_argument_that_differs() {
        for (line, privilege, expected) in [
            (
                "pacman --query vim",
                Privilege::Caller,
                "`pacman --query [--info] -- <package>...`, which has `--info` or `--` as argument 2 and not `vim`",
            ),
            (
                "pacman --query --info",
                Privilege::Caller,
                "which has `--` as argument 3, where the command ends",
            ),
            (
                "pacman --sync --info -- vim",
                Privilege::Caller,
                "`pacman --sync --search -- <text>`, which has `--search` as argument 2 and not `--info`",
            ),
            // The module's first grant is named where several are equally close.
            (
                "pacman --remove",
                Privilege::Caller,
                "`pacman --query [--info] -- <package>...`, which has `--query`",
            ),
            ("systemctl stop -- -x", Privilege::Root, "has `<unit>` as argument 3 and not `-x`"),
            ("systemctl stop -- nginx extra", Privilege::Root, "has nothing as argument 4 and not `extra`"),
            (
                "pacman --query -- vim -y",
                Privilege::Caller,
                "has `<package>` or nothing as argument 4 and not `-y`",
            ),
            (
                "pick x",
                Privilege::Caller,
                "has `a` or `b` or `c` or `d` or 2 others as argument 1 and not `x`",
            ),
            // Everything but the arguments.
            ("pacman --query -- vim", Privilege::Root, "which is for the rights caller and not root"),
            ("sort --key=1", Privilege::Caller, "which has exactly the variables LANG=C"),
            ("uptime -p", Privilege::Caller, "none of its grants matches, and none is for uptime"),
        ] {
            let refusal = refusal(line, privilege);
            assert!(refusal.contains("none of its grants matches"), "{line}: {refusal}");
            assert!(refusal.contains(expected), "{line}: {refusal}");
        }
    }

    #[test]
    fn a_likely_secret_is_not_in_the_message() {
        for line in ["login --password=hunter2 ada", "login --password=hunter2 -- hunter2 x", "login hunter2"]
        {
            let refusal = refusal(line, Privilege::Caller);
            assert!(
                !refusal.contains("--password=hunter2") && refusal.contains("the closest is"),
                "{refusal}"
            );
        }
    }

    #[test]
    fn a_refusal_stays_short_whatever_the_command_is() {
        let long = format!("pacman --query -- vim {}", "-x".repeat(50_000));
        assert!(refusal(&long, Privilege::Caller).len() < 1000);
    }
}
