//! The problems of commands that didn't end by themselves, or that weren't run.

use std::time::Duration;

use host_base::problem::{Category, PRIVILEGE_REQUIRED, Problem};
use host_text::visible::excerpt;

/// The time that the host waits for output after the command itself has ended. A process that the command left behind may
/// hold the pipe.
pub(super) const LEFTOVER: Duration = Duration::from_millis(250);

pub(super) fn no_root() -> Problem {
    Problem::new(PRIVILEGE_REQUIRED, Category::Privilege, "this needs the rights of another account")
}

/// Returns sudo's message where sudo refused to run the program. sudo writes its messages untranslated here.
pub(super) fn refused_by_sudo(exit_code: i32, said_anything: bool, stderr: &[u8]) -> Option<String> {
    let said = String::from_utf8_lossy(stderr);
    let is_sudos = |line: &str| {
        let refusal = line.strip_prefix("sudo: ").is_some_and(|rest| {
            ["a password is required", "a terminal is required", "sorry, you must have a tty"]
                .iter()
                .any(|refusal| rest.starts_with(refusal))
        });
        let words: Vec<&str> = line.split(' ').collect();
        let of_user = matches!(words[..], ["Sorry,", "user", _, "is" | "may", "not", ..])
            || matches!(words[..], [_, "is", "not", "in", "the", "sudoers", ..])
            || matches!(words[..], [_, "is", "not", "allowed", "to", "run", "sudo", ..]);
        refusal || of_user
    };
    let refused = exit_code == 1 && !said_anything && said.lines().any(is_sudos);
    refused.then(|| excerpt(said.trim(), 300))
}

/// Takes sudo's own warnings off what a command wrote to stderr, such as of an include that isn't there or of a line
/// of sudoers that it doesn't understand: sudo ran the command all the same. They stay where the command failed and nothing else says why.
pub(super) fn without_warnings_of_sudo(exit_code: i32, stderr: &mut Vec<u8>) {
    let is_warning = |line: &&[u8]| line.starts_with(b"sudo: ");
    let mut own: Vec<&[u8]> =
        stderr.split_inclusive(|byte| *byte == b'\n').filter(|line| !is_warning(line)).collect();
    // Before the command runs, sudo reports each syntax error in three lines: the place, the text, and a caret below it.
    while let [place, _, caret, ..] = own[..]
        && place.starts_with(b"/etc/sudoers")
        && place.trim_ascii_end().ends_with(b": syntax error")
        && caret.trim_ascii().starts_with(b"^")
    {
        own.drain(..3);
    }
    if exit_code == 0 || own.iter().any(|line| !line.trim_ascii().is_empty()) {
        *stderr = own.concat();
    }
}

/// The problem where sudo, which allows certain commands only, doesn't allow this one.
pub(super) fn not_allowed() -> Problem {
    let mut problem = no_root();
    problem.message.push_str(", and sudo doesn't allow it");
    problem
}

pub(super) fn refused(program: &str, said: &str) -> Problem {
    let mut problem = no_root();
    problem.message = format!("{}, and {program} was not run: {said}", problem.message);
    problem
}

pub(super) fn cancelled(program: &str) -> Problem {
    Problem::new("CANCELLED", Category::Other, format!("{program} was stopped"))
}

/// The problem of a change whose outcome isn't known, because the connection was lost while it ran.
pub(super) fn uncertain(program: &str, lost: &Problem) -> Problem {
    let message = format!(
        "{} in the middle of {program}: whether that was done, in part or not at all, isn't known, and it isn't repeated",
        lost.message
    );
    Problem::uncertain(message)
}

/// `left` says whether processes of the command may still run.
pub(super) fn timed_out(program: &str, limit: Duration, left: bool) -> Problem {
    stopped(&format!("{program} took longer than {} s", limit.as_secs_f64()), left)
}

pub(super) fn stopped(why: &str, left: bool) -> Problem {
    let ended = match left {
        false => "was stopped",
        true => "was told to stop; processes that it started may still run, which this account can't end",
    };
    Problem::new("COMMAND_TIMEOUT", Category::Timeout, format!("{why} and {ended}"))
}
