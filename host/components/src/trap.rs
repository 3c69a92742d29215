//! The problem of a call that a trap ended.

use super::store::State;
use host_base::problem::{Category, Problem};
use host_text::{redact, visible};

/// The number of characters of the trap's own reason in the problem.
const REASON: usize = 300;
/// The number of characters of what the guest printed last.
const LAST_WORDS: usize = 500;

/// The problem for the caller. Where the module itself is at fault, it has what the module printed last: a panic or a
/// traceback says more than the name of a trap.
pub(super) fn problem(module: &str, trap: &wasmtime::Error, state: &State) -> Problem {
    if let Some(problem) = trap.downcast_ref::<Problem>() {
        // The caller is told the reason, which is no fault of the module.
        tracing::debug!(module, reason = problem.message, "a call was ended");
        return problem.clone();
    }
    if let Some(limit) = state.exceeded_limit(trap) {
        tracing::warn!(module, stopped = %limit, "a module was stopped");
        return limit.problem(module);
    }
    tracing::warn!(module, trap = visible::excerpt(&format!("{trap:#}"), 2000), "a module trapped");
    let reason = visible::excerpt(&trap.root_cause().to_string(), REASON);
    let last_words = state.call.as_ref().and_then(|call| call.log.last_words());
    let message = match last_words {
        Some(words) => format!("module {module} failed: {reason}; it printed last: {}", quoted(&words)),
        None => format!("module {module} failed: {reason}"),
    };
    Problem::new("MODULE_TRAPPED", Category::Internal, message)
}

/// What a guest printed, on one line and in quotes that it can't close, without secrets.
fn quoted(words: &str) -> String {
    let shown = redact::excerpt(words, LAST_WORDS);
    let lines: Vec<&str> = shown.lines().collect();
    format!("\"{}\"", lines.join(" | ").replace('"', "'"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::LazyEngine;
    use crate::instance;
    use crate::log::Stream;
    use crate::store::CallContext;

    /// The problem of a call whose guest printed this, and then trapped.
    fn after(printed: &[(Stream, &str)]) -> Problem {
        let engine = LazyEngine::default();
        let (shared, time) = (engine.get().unwrap(), Duration::from_secs(1));
        let store =
            instance::for_call(shared, (time, time), &"probe".into(), CallContext::of_a_test()).unwrap();
        let call = store.data().call.as_ref().unwrap();
        printed.iter().for_each(|(stream, text)| call.log.printed(*stream, text.as_bytes()));
        let trap = wasmtime::Error::from(wasmtime::Trap::UnreachableCodeReached);
        problem("probe", &trap, store.data())
    }

    #[test]
    fn a_trap_tells_what_the_guest_printed_last() {
        let nothing: &[(Stream, &str)] = &[];
        for (printed, expected) in [
            (nothing, None),
            (&[(Stream::Stderr, "one\ntwo\nthree\nfour\n")], Some("\"two | three | four\"")),
            // The last line may have no end, and empty lines say nothing.
            (&[(Stream::Stderr, "\npanicked at x.rs:1\n\nboom")], Some("\"panicked at x.rs:1 | boom\"")),
            // Output is what it printed last only where it reported no error.
            (&[(Stream::Stderr, "boom\n"), (Stream::Stdout, "bye\n")], Some("\"boom\"")),
            (&[(Stream::Stdout, "bye\n")], Some("\"bye\"")),
            // It stays within its quotes and shows no secret.
            (&[(Stream::Stderr, "a \"b\"; \u{1b}[2J\n")], Some("\"a 'b'; \\u{1b}[2J\"")),
            (&[(Stream::Stderr, "password=hunter2\n")], Some("\"password=[redacted]\"")),
        ] {
            let problem = after(printed);
            assert_eq!(problem.code, "MODULE_TRAPPED");
            assert!(problem.message.starts_with("module probe failed: "), "{}", problem.message);
            let said = problem.message.split_once("; it printed last: ").map(|(_, said)| said);
            assert_eq!(said, expected, "{}", problem.message);
        }
        let long = "x".repeat(100_000);
        assert!(after(&[(Stream::Stderr, long.as_str())]).message.len() < 2000);
    }
}
