//! Redacts commands for showing: without their secrets and their standard input.

use std::fmt::Write as _;

use crate::hole::HoleType;
use crate::pattern::{Match, Part, Pattern, Token};
use host_base::Command;

/// The text that stands in place of a secret.
const SECRET: &str = "<secret>";

/// Redacts a command that looks: it replaces the values of `<secret>` holes wherever they stand in the command. Where
/// nothing is changed, showing a secret would be worse than showing too little.
pub(super) fn without_secrets(command: &Command, matched: &Match) -> Command {
    let mut shown = Command { stdin: None, ..command.clone() };
    let secrets = matched.holes.iter().filter(|(hole, value)| *hole == HoleType::Secret && !value.is_empty());
    for (_, secret) in secrets {
        for arg in &mut shown.args {
            *arg = arg.replace(secret, SECRET);
        }
    }
    shown
}

/// Redacts a command of a plan: it replaces the values of `<secret>` holes, but only at the holes. Otherwise a module
/// could choose a secret that hides from a person what else the command does. Where several grants match, a value is
/// hidden if any of them calls it a secret.
pub(super) fn without_certain_secrets(command: &Command, matches: &[&Match]) -> Command {
    let mut shown = Command { stdin: None, ..command.clone() };
    for (at, redacted) in matches.iter().flat_map(|matched| &matched.redacted) {
        let (Some(given), Some(arg)) = (command.args.get(*at), shown.args.get_mut(*at)) else { continue };
        // Where two grants find different secrets in one argument, the whole argument is hidden.
        let is_first = arg == given || arg == redacted;
        *arg = if is_first { redacted.clone() } else { SECRET.to_owned() };
    }
    shown
}

/// Redacts a command that no grant matches. Which of its arguments are secrets isn't known, so it replaces each
/// argument that could be a secret by some pattern for the program.
pub(super) fn without_likely_secrets<'a>(
    command: &Command,
    patterns: impl Iterator<Item = &'a Pattern>,
) -> Command {
    let patterns = patterns.filter(|pattern| pattern.program() == command.program);
    let tokens: Vec<&Token> = patterns.flat_map(Pattern::tokens).collect();
    let mut shown = Command { stdin: None, ..command.clone() };
    if !tokens.iter().any(|token| token.takes_secret()) {
        return shown;
    }
    for arg in &mut shown.args {
        if tokens.iter().any(|token| token.literal() == Some(arg.as_str())) {
            continue;
        }
        for token in tokens.iter().filter(|token| token.takes_secret()) {
            match token.parts().first() {
                Some(Part::Literal(head)) if arg.starts_with(head.as_str()) => {
                    *arg = format!("{head}{SECRET}")
                }
                Some(Part::Literal(_)) | None => {}
                Some(Part::Hole(_)) => *arg = SECRET.to_owned(),
            }
        }
    }
    shown
}

/// The command line for people: a prefix, the variables, and the words, quoted where a shell would need it.
pub fn command_line(prefix: &str, command: &Command) -> String {
    let mut line = prefix.to_owned();
    for (name, value) in &command.env {
        let _ = write!(line, "{name}={} ", quoted(value));
    }
    line.push_str(&quoted(&command.program));
    for arg in &command.args {
        line.push(' ');
        line.push_str(&quoted(arg));
    }
    line
}

fn quoted(token: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=+,.:/@%".contains(&byte);
    if !token.is_empty() && token.bytes().all(plain) {
        return token.to_owned();
    }
    format!("'{}'", token.replace('\'', "'\\''"))
}
