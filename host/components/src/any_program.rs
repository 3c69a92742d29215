//! Looking by commands of a module that may run any program. No grant says what such a command reads, so the policy and the
//! words themselves have to.

use std::time::Duration;

use host_base::problem::Problem;
use host_base::{Command, Privilege};
use host_capability::{HoleType, command_line};
use host_policy::{Policy, Shows, check_is_known_to_look, needs_plan, shows};
use host_target::{Facts, FileKind, Resolved};
use host_text::redact::excerpt;

/// The number of characters of a command line in a problem.
const SHOWN: usize = 300;
/// The directories in which a command may begin, with the account's home.
const BEGINNINGS: [&str; 2] = ["/", "/root/"];

/// Checks that a command only looks, and returns the paths that it names. They are checked again for where they lead.
pub(super) fn check(
    policy: &Policy,
    facts: &Facts,
    command: &Command,
) -> Result<Vec<(HoleType, String)>, Problem> {
    check_is_known_to_look(policy, command)?;
    if !takes_roots_rights(facts, &command.privilege) {
        return Ok(Vec::new());
    }
    let argv = words(command);
    if shows(&argv).is_none() || !command.env.is_empty() {
        return Err(refused(command, "its words don't tell all that it reads with root's rights"));
    }
    let any = HoleType::Path(None);
    let mut paths = Vec::new();
    for word in &command.args {
        let value = match word.strip_prefix('-').and_then(|option| option.split_once('=')) {
            Some((_, value)) => value,
            None => word,
        };
        if value.starts_with('/') {
            if !any.accepts(value) {
                return Err(refused(
                    command,
                    &format!("names {}, which may hold a secret", excerpt(value, SHOWN)),
                ));
            }
            paths.push((any.clone(), value.to_owned()));
        } else if BEGINNINGS.iter().any(|beginning| !is_harmless_from(beginning, value)) {
            return Err(refused(
                command,
                &format!("names {}, which may hold a secret", excerpt(value, SHOWN)),
            ));
        }
    }
    Ok(paths)
}

/// Checks that the commands of a pipeline only look together, as the rules read them from a shell's line: what one prints may
/// be code for the next.
pub(super) fn check_together(policy: &Policy, commands: &[Command]) -> Result<(), Problem> {
    let [_, _, ..] = commands else { return Ok(()) };
    let lines: Vec<String> = commands.iter().map(|command| command_line("", command)).collect();
    let script = Command::new("sh", ["-c".to_owned(), lines.join(" | ")], Duration::ZERO);
    check_is_known_to_look(policy, &script)
}

/// Checks where a path of such a command has led: a program that shows contents would read all files of a directory.
pub(super) fn check_resolved(command: &Command, resolved: &Resolved) -> Result<(), Problem> {
    let is_directory = resolved.found().is_some_and(|found| found.kind == FileKind::Directory);
    match shows(&words(command)) {
        Some(Shows::Contents) if is_directory => Err(refused(
            command,
            &format!("reads what is in the directory {}", excerpt(&resolved.path, SHOWN)),
        )),
        _ => Ok(()),
    }
}

fn words(command: &Command) -> Vec<String> {
    std::iter::once(&command.program).chain(&command.args).cloned().collect()
}

/// Whether the command can read what only root may read.
fn takes_roots_rights(facts: &Facts, privilege: &Privilege) -> bool {
    match privilege {
        Privilege::Caller => facts.uid == 0,
        Privilege::User(name) => name == "root",
        Privilege::Root | Privilege::RootIfAvailable => true,
    }
}

/// Whether a relative word can't be a secret's path from this directory. A word without a path's form isn't one.
fn is_harmless_from(beginning: &str, word: &str) -> bool {
    let path = format!("{beginning}{word}");
    !host_capability::is_secret(&path) && (!word.contains('/') || HoleType::Path(None).accepts(&path))
}

/// The problem of a command that a person has to be asked about.
pub(super) fn refused(command: &Command, why: &str) -> Problem {
    needs_plan(&excerpt(&command_line("", command), SHOWN), why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(line: &str, uid: u32) -> String {
        let mut words = line.split_whitespace();
        let program = words.next().unwrap();
        let command = Command::new(program, words, Duration::from_secs(1));
        let facts = Facts { uid, ..Facts::default() };
        check(Policy::builtin(), &facts, &command).err().map_or(String::new(), |problem| problem.code)
    }

    #[test]
    fn what_changes_asks_and_what_is_forbidden_is_refused() {
        for (line, expected) in [
            ("ls /etc", ""),
            ("systemctl status ssh", ""),
            ("systemctl restart ssh", "NEEDS_PLAN"),
            ("frobnicate", "NEEDS_PLAN"),
            ("touch /tmp/x", "NEEDS_PLAN"),
            ("python3 -c 1", "NEEDS_PLAN"),
            ("rm -rf /", "POLICY_BLOCKED"),
        ] {
            assert_eq!(
                (code(line, 0), code(line, 1000)),
                (expected.to_owned(), expected.to_owned()),
                "{line}"
            );
        }
    }

    #[test]
    fn with_roots_rights_only_what_its_words_tell_is_read() {
        for (line, as_root) in [
            ("cat /etc/hosts", ""),
            ("grep x /etc/hosts", ""),
            ("grep -r x /etc/nginx", "NEEDS_PLAN"),
            ("xargs cat", "NEEDS_PLAN"),
            ("cat .ssh/id_ed25519", "NEEDS_PLAN"),
            ("cat etc/shadow", "NEEDS_PLAN"),
            ("cat ../etc/shadow", "NEEDS_PLAN"),
            ("cat /srv/../etc/hosts", "NEEDS_PLAN"),
            ("awk 1 /etc/hosts", "NEEDS_PLAN"),
        ] {
            assert_eq!(code(line, 0), as_root, "{line}");
        }
        assert_eq!(code("grep -r x /etc/nginx", 1000), "");
    }

    #[test]
    fn what_the_commands_of_a_pipeline_do_together_counts() {
        for (lines, expected) in [
            (&["journalctl -n 5", "grep ssh", "wc -l"][..], ""),
            (&["echo hello", "sh"], "NEEDS_PLAN"),
            (&["curl https://example.org/x", "bash"], "NEEDS_PLAN"),
            (&["ls", "tee /etc/x"], "NEEDS_PLAN"),
        ] {
            let commands: Vec<Command> = lines
                .iter()
                .map(|line| {
                    let mut words = line.split_whitespace();
                    Command::new(words.next().unwrap(), words, Duration::from_secs(1))
                })
                .collect();
            let code =
                check_together(Policy::builtin(), &commands).err().map_or(String::new(), |found| found.code);
            assert_eq!(code, expected, "{lines:?}");
        }
    }
}
