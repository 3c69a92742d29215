//! The problems of steps that work on files.

use host_base::Output;
use host_base::problem::{Category, Problem};
use host_target::STALE;
use host_text::redact::excerpt;

/// The error output of a command, or its standard output where there is none.
pub(super) fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let (stderr, stdout) = (text(&output.stderr), text(&output.stdout));
    excerpt(if stderr.is_empty() { &stdout } else { &stderr }, 2000)
}

/// The problem of a step's command that failed.
pub(super) fn failed(program: &str, path: &str, output: &Output) -> Problem {
    let said = said(output);
    let (code, category) = if said.contains("No space left on device") || said.contains("Disk quota exceeded")
    {
        ("OUT_OF_SPACE", Category::Resource)
    } else if said.contains("Permission denied") || said.contains("Operation not permitted") {
        ("PERMISSION_DENIED", Category::Privilege)
    } else if said.contains("Read-only file system") {
        ("READ_ONLY_FILE_SYSTEM", Category::State)
    } else if said.contains("Directory not empty") {
        ("DIRECTORY_NOT_EMPTY", Category::State)
    } else {
        ("COMMAND_FAILED", Category::Other)
    };
    Problem::new(
        code,
        category,
        format!("{path}: {program} ended with exit code {}: {said}", output.exit_code),
    )
}

/// The problem of a file that has changed since the host looked at it.
pub(super) fn changed(path: &str) -> Problem {
    let message = format!("{path} has been changed since it was looked at, so nothing was written to it");
    Problem::new("FILE_CHANGED", Category::State, message)
        .remedy("Call the tool again: it begins with what is there now")
}

/// The first problem, together with the one that came up while the step's copies were removed.
pub(super) fn also(mut problem: Problem, second: &Problem) -> Problem {
    let message =
        format!("{}; and what had been begun could not be taken back: {}", problem.message, second.message);
    if problem.is_uncertain() || second.is_connection_failure() || second.code == STALE {
        return Problem::uncertain(message);
    }
    problem.message = message;
    problem
}

/// The problem where the target gave no answer about a file.
pub(super) fn no_answer() -> Problem {
    Problem::new("NO_ANSWER", Category::Internal, "the target gave no answer")
}
