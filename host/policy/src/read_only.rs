//! Checks commands that run without a confirmation: commands that look, and commands that simulate a change.

use host_base::Command;
use host_base::problem::{Category, Problem};
use host_capability::command_line;
use host_text::redact::excerpt;

use crate::{Level, Policy, text};

/// The number of characters of a command line in an error.
const MAX_LINE: usize = 160;

/// The words of a command as the rules read them. Variables stand before it, as for env(1).
pub fn command_words(command: &Command) -> Vec<String> {
    let mut argv = Vec::new();
    if !command.env.is_empty() {
        argv.push("env".to_owned());
        argv.extend(command.env.iter().map(|(name, value)| format!("{name}={value}")));
    }
    argv.push(command.program.clone());
    argv.extend(command.args.iter().cloned());
    argv
}

/// The variables at the front of a command line as it is typed, such as `LANG=C ls`, and the words behind them.
pub fn split_variables(words: &[String]) -> (Vec<(String, String)>, &[String]) {
    let variable = |word: &String| {
        let (name, value) = word.split_once('=')?;
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        is_name.then(|| (name.to_owned(), value.to_owned()))
    };
    let variables: Vec<_> = words.iter().map_while(variable).collect();
    let command = &words[variables.len()..];
    (variables, command)
}

/// The code of the problem of a command that may run only as a step of a plan.
pub const NEEDS_PLAN: &str = "NEEDS_PLAN";

/// Refuses a command that isn't known to change nothing. Such a command may run as a step of a plan, which a person is
/// asked about, unless the policy forbids it.
pub fn check_is_known_to_look(policy: &Policy, command: &Command) -> Result<(), Problem> {
    let verdict = policy.verdict(&command_words(command));
    let line = excerpt(&command_line("", command), MAX_LINE);
    match verdict.level {
        Level::Safe if !verdict.changes() => check_only_looks(policy, command, command),
        Level::Safe | Level::Confirm => Err(needs_plan(&line, &verdict.reason_with_rule())),
        Level::Block => {
            let message = format!("the policy forbids `{line}`: it {}", verdict.reason_with_rule());
            Err(Problem::new("POLICY_BLOCKED", Category::Denied, message))
        }
    }
}

/// The problem of a command that isn't known to show only what the caller may see, or to change nothing.
pub fn needs_plan(line: &str, why: &str) -> Problem {
    let message = format!("`{line}` is no command that only looks: it {why}");
    Problem::new(NEEDS_PLAN, Category::Denied, message)
}

/// Refuses a command that changes something by the rules, or that reads text which makes it change something.
pub fn check_only_looks(policy: &Policy, command: &Command, shown: &Command) -> Result<(), Problem> {
    let argv = command_words(command);
    let verdict = policy.verdict(&argv);
    let line = excerpt(&command_line("", shown), MAX_LINE);
    let refused = |why: String| {
        let message =
            format!("`{line}` is to change nothing, and the policy doesn't take it for that: it {why}");
        Err(Problem::new("POLICY_BLOCKED", Category::Denied, message))
    };
    if verdict.level == Level::Block || verdict.changes() {
        return refused(verdict.reason_with_rule());
    }
    // The operator who granted this pattern knows what an unknown program does with its input.
    let code = command.stdin.as_deref().and_then(|stdin| text::code_on_known_stdin(&argv, stdin)).flatten();
    let Some(code) = code else {
        return Ok(());
    };
    let unsafe_line = code.lines.iter().find(|line| text::objection(&line.argv).is_some());
    let effect = code.effects.first().map(|(_, effect)| effect);
    let power = code.power.first().or(code.unreadable.as_ref()).or(effect);
    match (unsafe_line, power) {
        (Some(line), _) => refused(format!("reads code that isn't harmless ({})", line.at)),
        (None, Some(power)) => refused(format!("reads code that {power}")),
        (None, None) => Ok(()),
    }
}
