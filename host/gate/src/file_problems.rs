//! What is said of steps on files that didn't go well.

use host_base::Output;
use host_base::problem::{Category, Problem};
use host_target::STALE;
use host_text::redact::excerpt;

/// What a command said: its errors, or else its output.
pub(super) fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let (stderr, stdout) = (text(&output.stderr), text(&output.stdout));
    excerpt(if stderr.is_empty() { &stdout } else { &stderr }, 2000)
}

/// What became of a step's command that didn't succeed.
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

/// A file isn't any more what it was when it was looked at.
pub(super) fn changed(path: &str) -> Problem {
    let message = format!("{path} has been changed since it was looked at, so nothing was written to it");
    Problem::new("FILE_CHANGED", Category::State, message)
        .remedy("Call the tool again: it begins with what is there now")
}

/// The first problem, with what went wrong when its traces were removed.
pub(super) fn also(mut problem: Problem, second: &Problem) -> Problem {
    let message =
        format!("{}; and what had been begun could not be taken back: {}", problem.message, second.message);
    if problem.is_uncertain() || second.is_of_the_line() || second.code == STALE {
        return Problem::uncertain(message);
    }
    problem.message = message;
    problem
}

/// A question about a file came back without an answer.
pub(super) fn no_answer() -> Problem {
    Problem::new("NO_ANSWER", Category::Internal, "the target gave no answer")
}
