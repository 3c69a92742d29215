//! Command lines that are written once and used twice: for the grant, and for the command that it allows.

use crate::{Command, CommandGrant, Risk};

/// A command line of fixed words and holes, in the form of a grant's pattern:
/// `TZ=UTC systemctl show --property=Id -- <unit>...`.
///
/// It has no optional parts, alternatives or stdin. A command line with those needs a [`CommandGrant`] and a [`Command`]
/// that are written apart.
#[derive(Clone, Copy, Debug)]
pub struct CommandLine(&'static str);

impl CommandLine {
    /// Makes a command line from its pattern.
    pub const fn new(pattern: &'static str) -> Self {
        Self(pattern)
    }

    /// A grant to look by the command line, as the account that the target is reached as.
    pub fn read(self, reason: &str) -> CommandGrant {
        CommandGrant::read(self.0, reason)
    }

    /// A grant to use the command line as a program's own simulation of a change.
    pub fn dry_run(self, reason: &str) -> CommandGrant {
        CommandGrant::dry_run(self.0, reason)
    }

    /// A grant to use the command line as a step of a plan, or as its undo, with root's rights. `risk` is the least risk of
    /// such a plan.
    pub fn change(self, risk: Risk, reason: &str) -> CommandGrant {
        CommandGrant::change(self.0, risk, reason)
    }

    /// The command of a line without holes.
    pub fn command(self) -> Command {
        self.with::<[&str; 0]>([])
    }

    /// The command with a value for each hole, in order. A last `<type>...` takes all values that are left. With too few or
    /// too many values the command doesn't match the grant, and the host refuses it.
    pub fn with<I: IntoIterator<Item: Into<String>>>(self, values: I) -> Command {
        let mut values = values.into_iter().map(Into::into);
        let mut command = Command::new("");
        for token in tokens(self.0) {
            if !command.program.is_empty() && token.repeats {
                command = command.args(values.by_ref());
                continue;
            }
            let text = token.filled(&mut values);
            if !command.program.is_empty() {
                command = command.arg(text);
            } else if let Some((name, value)) = variable(&text) {
                command = command.env(name, value);
            } else {
                command.program = text;
            }
        }
        command.args(values)
    }
}

/// Splits `NAME=value`. Only words in front of the program are variables.
fn variable(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_name && !name.is_empty()).then_some((name, value))
}

/// A token of the pattern.
#[derive(Default)]
struct Token {
    /// The texts around the holes: one more than there are holes.
    texts: Vec<String>,
    repeats: bool,
}

impl Token {
    fn push(&mut self, text: &str) {
        match self.texts.last_mut() {
            Some(last) => last.push_str(text),
            None => self.texts.push(text.to_owned()),
        }
    }

    fn filled(self, values: &mut impl Iterator<Item = String>) -> String {
        let mut texts = self.texts.into_iter();
        let mut filled = texts.next().unwrap_or_default();
        for text in texts {
            filled.extend(values.next());
            filled.push_str(&text);
        }
        filled
    }
}

/// Splits a pattern at blanks outside of quotes. Quotes may stand anywhere in a token.
fn tokens(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut token = Token::default();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let behind = &rest[first.len_utf8()..];
        if first == ' ' {
            tokens.push(std::mem::take(&mut token));
            rest = behind;
        } else if let Some((quoted, after)) = behind.split_once('\'').filter(|_| first == '\'') {
            token.push(quoted);
            rest = after;
        } else if let Some((_type, after)) = behind.split_once('>').filter(|_| first == '<') {
            token.push("");
            token.texts.push(String::new());
            rest = after;
        } else if let Some(after) = rest.strip_prefix("...") {
            token.repeats = true;
            rest = after;
        } else {
            token.push(&rest[..first.len_utf8()]);
            rest = behind;
        }
    }
    tokens.push(token);
    tokens.retain(|token| !token.texts.is_empty());
    tokens
}

#[cfg(test)]
mod tests {
    use super::CommandLine;

    #[test]
    fn each_hole_takes_the_next_value_and_the_last_one_the_rest() {
        let none: &[&str] = &[];
        let table: [(&str, &[&str], &str, &[&str]); 8] = [
            ("date '+%s'", none, "date", &["+%s"]),
            ("printf '%s  %s' x", none, "printf", &["%s  %s", "x"]),
            (
                "systemctl show --property=A,B -- <unit>...",
                &["a", "b"],
                "systemctl",
                &["show", "--property=A,B", "--", "a", "b"],
            ),
            ("systemctl show -- '*.timer'", none, "systemctl", &["show", "--", "*.timer"]),
            ("x --a='<b> ...'c  ''", none, "x", &["--a=<b> ...c", ""]),
            ("chown <user>:<group> -- <path>", &["u", "g", "/x"], "chown", &["u:g", "--", "/x"]),
            ("ls --depth=<int> <path>", &["2", "<a>"], "ls", &["--depth=2", "<a>"]),
            // A value without a hole becomes a token that no grant matches.
            ("true", &["x"], "true", &["x"]),
        ];
        for (pattern, values, program, args) in table {
            let command = CommandLine::new(pattern).with(values.iter().copied());
            assert_eq!(command.program, program);
            assert_eq!(command.args, args, "{pattern}");
        }
    }

    #[test]
    fn variables_stand_in_front_of_the_program_only() {
        let command = CommandLine::new("TZ=UTC A_1=x env B=y").command();
        assert_eq!(command.env, [("TZ".to_owned(), "UTC".to_owned()), ("A_1".to_owned(), "x".to_owned())]);
        assert_eq!((command.program.as_str(), command.args), ("env", vec!["B=y".to_owned()]));
    }
}
