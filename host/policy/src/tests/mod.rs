mod engine;
mod families;
mod limits;
mod rules;

use std::sync::Arc;

use super::*;

/// The verdict of the built-in rules on words without quotes.
fn verdict(line: &str) -> Verdict {
    let argv: Vec<&str> = line.split(' ').collect();
    Policy::builtin().verdict(&argv)
}

/// The verdict of the built-in rules on a text for a shell.
fn of_text(text: &str) -> Verdict {
    Policy::builtin().verdict(&["sh", "-c", text])
}

/// A policy of these rules alone.
fn policy(rules: &str) -> Arc<Policy> {
    let rules = load::parse(rules, &rule::Sets::new()).map_err(|(line, reason)| format!("{line}: {reason}"));
    Arc::new(Policy::of(rules.unwrap()))
}
