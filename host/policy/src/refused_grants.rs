//! Holds a module's command grants against the rules before any of them is used. A grant that the rules never let run helps
//! nobody: whoever adds or tests the module learns of it there, and not by a call that fails.

use std::time::Duration;

use host_base::Command;
use host_capability::{CommandRequest, Effect, Pattern, Requests, command_line};
use host_text::redact::excerpt;

use crate::{Level, Policy, check_only_looks, command_words};

/// The number of characters of a command line that is shown.
const MAX_LINE: usize = 160;

/// A command grant that the rules refuse, as a whole or in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedGrant {
    /// The pattern of the grant, as the module wrote it.
    pub pattern: String,
    /// The use that the grant is for.
    pub effect: Effect,
    /// True where the rules refuse every example of the pattern, so that the grant never has an effect. False where they
    /// refuse some.
    pub is_always: bool,
    /// The first command line that is refused. Its holes have plain values.
    pub example: String,
    /// The reason with the rule, as the module's call would be told.
    pub reason: String,
}

/// The command grants among these requests that the rules don't let run for the use that they are for: looks and
/// simulations that the rules take for a change, and changes that they forbid. Other values in a pattern's holes may be
/// refused as well.
pub fn refused_grants(policy: &Policy, requests: &Requests) -> Vec<RefusedGrant> {
    requests.commands.iter().filter_map(|request| refused(policy, request)).collect()
}

fn refused(policy: &Policy, request: &CommandRequest) -> Option<RefusedGrant> {
    // A pattern that can't be parsed is refused for that.
    let pattern = Pattern::parse(&request.pattern).ok()?;
    let examples = pattern.examples();
    let count = examples.len();
    let commands = examples.into_iter().map(|args| Command {
        env: pattern.variables().to_vec(),
        privilege: request.privilege.clone(),
        ..Command::new(pattern.program(), args, Duration::ZERO)
    });
    let refused: Vec<(String, String)> = commands
        .filter_map(|command| {
            let reason = objection(policy, &command, request.effect)?;
            Some((excerpt(&command_line("", &command), MAX_LINE), reason))
        })
        .collect();
    let is_always = refused.len() == count;
    let (example, reason) = refused.into_iter().next()?;
    let (pattern, effect) = (request.pattern.clone(), request.effect);
    Some(RefusedGrant { pattern, effect, is_always, example, reason })
}

/// The reason why the rules refuse a command for this use.
fn objection(policy: &Policy, command: &Command, effect: Effect) -> Option<String> {
    match effect {
        Effect::Read | Effect::DryRun => {
            check_only_looks(policy, command, command).err().map(|problem| problem.message)
        }
        Effect::Change => {
            let verdict = policy.verdict(&command_words(command));
            (verdict.level == Level::Block).then(|| {
                let line = excerpt(&command_line("", command), MAX_LINE);
                format!("the policy forbids `{line}`: it {}", verdict.reason_with_rule())
            })
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use host_base::{Privilege, Risk};
    use host_capability::Place;

    fn found(pattern: &str, effect: Effect) -> Option<RefusedGrant> {
        let requests = Requests {
            commands: vec![CommandRequest {
                pattern: pattern.to_owned(),
                effect,
                privilege: Privilege::Root,
                place: Place::Target,
                risk: Risk::ReadOnly,
                reason: String::new(),
            }],
            ..Requests::default()
        };
        refused_grants(Policy::builtin(), &requests).pop()
    }

    #[test]
    fn a_look_that_never_runs_is_found_with_the_reason() {
        for pattern in
            ["systemctl restart -- <unit>", "rm -- <path>", "apt-get install --yes -- <package>..."]
        {
            for effect in [Effect::Read, Effect::DryRun] {
                let found = found(pattern, effect).unwrap();
                assert!(found.is_always, "{found:?}");
                assert_eq!((found.pattern.as_str(), found.effect), (pattern, effect));
                assert!(
                    found.reason.contains("(rule ") && found.reason.contains(&found.example),
                    "{found:?}"
                );
            }
        }
    }

    #[test]
    fn a_pattern_of_which_a_part_is_refused_is_found_with_that_part() {
        let found = found("systemctl (show|stop) -- <unit>", Effect::Read).unwrap();
        assert!(!found.is_always, "{found:?}");
        assert_eq!(found.example, "systemctl stop -- example.service");
    }

    #[test]
    fn what_the_rules_let_run_is_not_found() {
        for (pattern, effect) in [
            ("systemctl show --property=Id -- <unit>...", Effect::Read),
            ("apt-get --simulate install -- <package>...", Effect::DryRun),
            ("ip -j address show dev <interface>", Effect::Read),
            // No rule knows the program: the operator decides about it.
            ("frobnicate --status", Effect::Read),
            ("systemctl restart -- <unit>", Effect::Change),
            // A pattern that is none is refused elsewhere.
            ("x <a", Effect::Read),
        ] {
            assert_eq!(found(pattern, effect), None, "{pattern}");
        }
    }

    #[test]
    fn a_change_that_the_rules_forbid_is_found() {
        let found = found("rm --recursive --force -- /", Effect::Change).unwrap();
        assert!(found.is_always && found.reason.starts_with("the policy forbids `rm "), "{found:?}");
    }
}
