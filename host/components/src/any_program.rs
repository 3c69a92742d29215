//! Looking by commands of a module that may run any program. No grant says what such a command reads, so the policy and the
//! words themselves have to.

use std::time::Duration;

use host_base::problem::Problem;
use host_base::{Command, Privilege};
use host_capability::{HoleType, command_line};
use host_policy::{Policy, Shows, check_is_known_to_look, command_words, needs_plan, unasked_look};
use host_target::{FileKind, Resolved};
use host_text::redact::excerpt;

/// The number of characters of a command line in a problem.
const SHOWN: usize = 300;
/// The bit of a file's mode by which everybody may read it.
const OTHERS_READ: u32 = 0o004;
/// The directory of logs, which an administrator reads all day and which not everybody may read.
const LOGS: &str = "/var/log/";
/// Names of logs in it that aren't called logs.
const LOG_NAMES: [&str; 10] =
    ["messages", "secure", "maillog", "mail", "cron", "spooler", "dmesg", "btmp", "wtmp", "syslog"];

/// Checks that a command only looks, and that its words tell all that it reads. Returns the paths that it names, which are
/// checked again for where they lead.
pub(super) fn check(policy: &Policy, command: &Command) -> Result<Vec<(HoleType, String)>, Problem> {
    check_is_known_to_look(policy, command)?;
    let look = unasked_look(&command_words(command)).map_err(|why| refused(command, &why))?;
    Ok(look.paths)
}

/// Checks that the commands of a pipeline only look together, as the rules read them from a shell's line: what one prints may
/// be code for the next.
pub(super) fn check_together(policy: &Policy, commands: &[Command]) -> Result<(), Problem> {
    let [_, _, ..] = commands else { return Ok(()) };
    let lines: Vec<String> = commands.iter().map(|command| command_line("", command)).collect();
    let script = Command::new("sh", ["-c".to_owned(), lines.join(" | ")], Duration::ZERO);
    check_is_known_to_look(policy, &script)
}

/// Says whether a file is a log, by its place and its name. Other files may lie there as well, such as what sudo records.
fn is_log(path: &str) -> bool {
    let Some(below) = path.strip_prefix(LOGS) else { return false };
    let name = below.rsplit('/').next().unwrap_or_default();
    let first = name.split(['.', '-']).next().unwrap_or_default();
    (name == below && LOG_NAMES.contains(&first)) || name.split(['.', '-', '_']).any(|part| part == "log")
}

/// Checks where a path of such a command has led: to no secret, and for a program that shows contents to a regular file that
/// everybody may read, by all names that mounts give the path. With more rights than an ordinary account's own, everybody has to
/// be able to reach it as well.
pub(super) fn check_resolved(
    command: &Command,
    (hole, path): (&HoleType, &str),
    resolved: &Resolved,
    other_names: Result<Vec<String>, Problem>,
    has_more_rights: bool,
) -> Result<(), Problem> {
    let other_names = other_names.map_err(|problem| refused(command, &problem.message))?;
    if let Some(leads) = std::iter::once(&resolved.path).chain(&other_names).find(|name| !hole.accepts(name))
    {
        let (path, leads) = (excerpt(path, SHOWN), excerpt(leads, SHOWN));
        return Err(refused(command, &format!("names {path}, which leads to {leads} and may hold a secret")));
    }
    let shows = unasked_look(&command_words(command)).map(|look| look.shows);
    let (Ok(Shows::Contents), Some(found)) = (shows, resolved.found()) else { return Ok(()) };
    let path = excerpt(&resolved.path, SHOWN);
    match found.kind {
        FileKind::Directory => Err(refused(command, &format!("reads what is in the directory {path}"))),
        // A program can show a file's contents in a form in which no secret is recognized.
        FileKind::File if is_log(&resolved.path) => Ok(()),
        FileKind::File if found.metadata.mode & OTHERS_READ == 0 => {
            Err(refused(command, &format!("reads {path}, which not everybody may read")))
        }
        FileKind::File if has_more_rights && resolved.is_behind_closed_directory() => {
            Err(refused(command, &format!("reads {path}, in a directory that not everybody may enter")))
        }
        FileKind::File => Ok(()),
        _ => Err(refused(command, &format!("reads {path}, which is no regular file"))),
    }
}

/// The problem of a path of such a command that could not be resolved; none where the command can't reach it either. With a
/// person's yes, the command may look there all the same.
pub(super) fn check_unresolved(command: &Command, problem: Problem) -> Result<(), Problem> {
    match problem.code.as_str() {
        // The path was resolved with the rights that the command has.
        "PERMISSION_DENIED" if command.privilege == Privilege::Caller => Ok(()),
        "UNTRUSTED_DIRECTORY" => {
            Err(refused(command, &format!("looks where others decide: {}", problem.message)))
        }
        "UNRESOLVABLE_PATH" => Err(refused(command, &format!("looks elsewhere: {}", problem.message))),
        _ => Err(problem),
    }
}

/// The problem of a command that a person has to be asked about.
pub(super) fn refused(command: &Command, why: &str) -> Problem {
    needs_plan(&excerpt(&command_line("", command), SHOWN), why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(line: &str) -> String {
        let mut words = line.split_whitespace();
        let program = words.next().unwrap();
        let command = Command::new(program, words, Duration::from_secs(1));
        check(Policy::builtin(), &command).err().map_or(String::new(), |problem| problem.code)
    }

    #[test]
    fn what_changes_or_may_show_a_secret_asks_and_what_is_forbidden_is_refused() {
        for (line, expected) in [
            ("ls /etc", ""),
            ("systemctl status ssh", ""),
            ("cat /etc/hosts", ""),
            ("systemctl restart ssh", "NEEDS_PLAN"),
            ("frobnicate", "NEEDS_PLAN"),
            ("touch /tmp/x", "NEEDS_PLAN"),
            ("python3 -c 1", "NEEDS_PLAN"),
            ("grep -r x /home/ada", "NEEDS_PLAN"),
            ("awk 1 /home/ada/.ssh/id_ed25519", "NEEDS_PLAN"),
            ("cat home/ada/.netrc", "NEEDS_PLAN"),
            ("rm -rf /", "POLICY_BLOCKED"),
        ] {
            assert_eq!(code(line), expected, "{line}");
        }
        let with_variable = Command {
            env: vec![("LESSOPEN".to_owned(), "|cat /etc/shadow".to_owned())],
            ..Command::new("cat", ["/etc/hosts"], Duration::from_secs(1))
        };
        assert_eq!(check(Policy::builtin(), &with_variable).unwrap_err().code, "NEEDS_PLAN");
    }

    #[test]
    fn of_what_is_beside_logs_only_logs_are_logs() {
        for (path, expected) in [
            ("/var/log/auth.log", true),
            ("/var/log/auth.log.1", true),
            ("/var/log/syslog.2.gz", true),
            ("/var/log/messages-20260101", true),
            ("/var/log/httpd/access_log", true),
            ("/var/log/audit/audit.log", true),
            ("/var/log/sudo-io/00/00/01/ttyin", false),
            ("/var/log/backup/messages", false),
            ("/var/log/secure-backup/token", false),
            ("/var/log/mail.d/token", false),
            ("/var/log/shadow.bak", false),
            ("/var/log", false),
            ("/srv/app.log", false),
        ] {
            assert_eq!(is_log(path), expected, "{path}");
        }
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
