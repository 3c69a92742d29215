//! Plans of the changing tools: their lock, their steps, and the problems of their failures.

use linux_sysadmin_sdk::{Category, prelude::*};

/// The lock of all tools that change accounts.
pub(crate) const LOCK: &str = "accounts";

/// A step that isn't killed, because the program holds the locks of /etc/passwd.
pub(crate) fn step(command: Command) -> Step {
    Step::run(command).uninterruptible()
}

/// A plan that takes the lock.
pub(crate) fn new(summary: String) -> Change {
    Change::new(summary).lock(Lock::Named(LOCK.to_owned()))
}

/// Applies a plan. A problem quotes the program that failed.
pub(crate) fn apply(change: Change, cx: &Context) -> Result<Applied> {
    cx.apply(change).map_err(|failure| {
        let last = failure.outputs.last().map(Output::error_text).unwrap_or_default();
        let mut problem = Problem::from(failure);
        // The program itself failed, and the host hasn't quoted it.
        if problem.code == "COMMAND_FAILED" && !last.is_empty() && !problem.message.contains(&last) {
            problem.message = format!("{}: {}", problem.message, last.replace('\n', "; "));
        }
        problem
    })
}

pub(crate) fn state(code: &str, message: String) -> Problem {
    Problem::new(code, Category::State, message)
}
