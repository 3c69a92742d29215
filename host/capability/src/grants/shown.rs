//! Commands as they may be shown: without their secrets and their standard input.

use std::fmt::Write as _;

use crate::hole::HoleType;
use crate::pattern::{Item, Match, Part, Pattern, Token};
use host_base::Command;

/// What stands in a secret's place.
const SECRET: &str = "<secret>";

/// Of a command that looks: with what a `<secret>` took replaced, wherever it stands. Where nothing is changed, it is
/// worse to show a secret than to show too little.
pub(super) fn without_secrets(command: &Command, bound: &Match) -> Command {
    let mut shown = Command { stdin: None, ..command.clone() };
    let secrets = bound.holes.iter().filter(|(hole, value)| *hole == HoleType::Secret && !value.is_empty());
    for (_, secret) in secrets {
        for arg in &mut shown.args {
            *arg = arg.replace(secret, SECRET);
        }
    }
    shown
}

/// Of a command that a plan runs: with what a `<secret>` took replaced, there and nowhere else. Were it replaced
/// wherever it stands, a module could choose a secret that hides from a person what else the command does. Where
/// several grants match, a secret of one is none to show.
pub(super) fn without_certain_secrets(command: &Command, bounds: &[&Match]) -> Command {
    let mut shown = Command { stdin: None, ..command.clone() };
    for (at, redacted) in bounds.iter().flat_map(|bound| &bound.redacted) {
        let (Some(given), Some(arg)) = (command.args.get(*at), shown.args.get_mut(*at)) else { continue };
        // Two grants that find different secrets in one argument leave nothing of it.
        let is_first = arg == given || arg == redacted;
        *arg = if is_first { redacted.clone() } else { SECRET.to_owned() };
    }
    shown
}

/// Of a command that no grant matches: which of its arguments are secrets isn't known, so every one is replaced that
/// could be by some pattern for its program.
pub(super) fn without_likely_secrets<'a>(
    command: &Command,
    patterns: impl Iterator<Item = &'a Pattern>,
) -> Command {
    let mut tokens = Vec::new();
    for pattern in patterns.filter(|pattern| pattern.program() == command.program) {
        collect(pattern.items(), &mut tokens);
    }
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

fn collect<'a>(items: &'a [Item], tokens: &mut Vec<&'a Token>) {
    for item in items {
        match item {
            Item::Token(token) => tokens.push(token),
            Item::Optional(items) => collect(items, tokens),
            Item::Alternatives(ways) => ways.iter().for_each(|way| collect(way, tokens)),
            Item::Repeat(item) => collect(std::slice::from_ref(item), tokens),
        }
    }
}

/// For people: what it runs as, variables, tokens quoted where a shell would need it.
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
