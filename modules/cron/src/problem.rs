//! What is wrong with an expression.

use crate::expression::Unit;

/// How much of a refused value an error repeats, in characters.
const MAX_ECHO: usize = 40;

/// What is wrong, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// None for what concerns all of the expression.
    pub field: Option<Unit>,
    /// Of the value's first character in the expression as given, counted in characters from 1.
    pub column: usize,
    /// The value, cut at 40 characters, what can't be printed escaped.
    pub value: String,
    /// Why it is refused.
    pub message: String,
    /// What the field takes.
    pub expected: String,
    /// What to write in the value's place, where that can be guessed.
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

/// A value as an answer repeats it: what can't be printed escaped, and not too much of it.
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

/// How many characters to insert, drop or replace to get from one text to the other.
pub fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

/// An expression as an answer repeats it: whole, unless it is none.
pub fn shown(text: &str) -> String {
    if text.len() > crate::parse::MAX_LENGTH { echo(text) } else { text.to_owned() }
}
