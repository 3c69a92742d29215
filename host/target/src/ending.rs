//! How commands end that don't end by themselves, and what is said of those that weren't run.

use std::time::Duration;

use host_base::problem::{Category, PRIVILEGE_REQUIRED, Problem};
use host_text::visible::excerpt;

/// How long output is waited for once the command itself has ended: a process that it left behind may hold the pipe.
pub(super) const LEFTOVER: Duration = Duration::from_millis(250);

pub(super) fn no_root() -> Problem {
    Problem::new(PRIVILEGE_REQUIRED, Category::Privilege, "this needs the rights of another account")
}

/// What sudo said, where it was sudo that ended and not the program: its messages as they read without translation.
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

pub(super) fn refused(program: &str, said: &str) -> Problem {
    let mut problem = no_root();
    problem.message = format!("{}, and {program} was not run: {said}", problem.message);
    problem
}

/// `left`: whether processes of it may be.
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
