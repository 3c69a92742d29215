//! Commands that are run without anybody being asked: those that look, and those that simulate a change.

use host_base::Command;
use host_base::problem::{Category, Problem};
use host_capability::command_line;
use host_text::redact::excerpt;

use crate::{Level, Policy, text};

/// Characters of a command line that an error shows.
const SHOWN: usize = 160;

/// The words of a command as the rules read them: variables stand before it, as env(1) takes them.
pub fn words(command: &Command) -> Vec<String> {
    let mut argv = Vec::new();
    if !command.env.is_empty() {
        argv.push("env".to_owned());
        argv.extend(command.env.iter().map(|(name, value)| format!("{name}={value}")));
    }
    argv.push(command.program.clone());
    argv.extend(command.args.iter().cloned());
    argv
}

/// Refuses a command that a rule takes for a change, or that reads text from which a change would come.
pub fn only_looks(policy: &Policy, command: &Command, shown: &Command) -> Result<(), Problem> {
    let argv = words(command);
    let verdict = policy.verdict(&argv);
    let line = excerpt(&command_line("", shown), SHOWN);
    let refused = |why: String| {
        let message =
            format!("`{line}` is to change nothing, and the policy doesn't take it for that: it {why}");
        Err(Problem::new("POLICY_BLOCKED", Category::Denied, message))
    };
    if verdict.level == Level::Block || verdict.changes() {
        return refused(verdict.because());
    }
    // The operator who granted this very pattern knows how an unknown program uses its input.
    let code = command.stdin.as_deref().and_then(|stdin| text::of_known_stdin(&argv, stdin)).flatten();
    let Some(code) = code else {
        return Ok(());
    };
    let unsafe_line = code.lines.iter().find(|line| text::objection(&line.argv).is_some());
    let power = code.power.first().or(code.unreadable.as_ref());
    match (unsafe_line, power) {
        (Some(line), _) => refused(format!("reads code that isn't harmless ({})", line.at)),
        (None, Some(power)) => refused(format!("reads code that {power}")),
        (None, None) => Ok(()),
    }
}
