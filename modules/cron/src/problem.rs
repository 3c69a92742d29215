//! Problems of an expression.

use crate::expression::Unit;

/// The number of characters of a refused value that a message repeats.
const MAX_ECHO: usize = 40;

/// A problem of an expression: its place, its reason, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field; `None` for a problem of the whole expression.
    pub field: Option<Unit>,
    /// The column of the value's first character in the expression as given, in characters from 1.
    pub column: usize,
    /// The value, cut at 40 characters, with control characters escaped.
    pub value: String,
    /// The reason why the value is refused.
    pub message: String,
    /// The values that the field takes.
    pub expected: String,
    /// A text to write in place of the value, where one can be guessed.
    pub suggestion: Option<String>,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let field = self.field.map_or("expression", Unit::name);
        write!(f, "{field} (column {}): {}, expected {}", self.column, self.message, self.expected)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, ", did you mean `{suggestion}`?"),
            None => Ok(()),
        }
    }
}

/// A value as an answer repeats it: shortened, and with control characters escaped.
pub fn echo(text: &str) -> String {
    let mut shown = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == MAX_ECHO {
            shown.push('…');
            break;
        }
        if c.is_control() { shown.extend(c.escape_debug()) } else { shown.push(c) }
    }
    shown
}

/// An expression as an answer repeats it: shortened only where it is too long to be one.
pub fn shown(text: &str) -> String {
    if text.len() > crate::parse::MAX_LENGTH { echo(text) } else { text.to_owned() }
}
