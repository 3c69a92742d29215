//! Matches one token of a pattern against one argument.

use std::fmt;

use super::HoleType;

/// One token: literals and holes in turn, never two literals or two holes side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    parts: Vec<Part>,
    column: usize,
}

/// A part of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Exactly this text.
    Literal(String),
    /// A value of this type.
    Hole(HoleType),
}

impl Token {
    /// Makes a token from its parts. Without parts it is the empty argument.
    pub(super) fn new(parts: Vec<Part>, column: usize) -> Token {
        Token { parts, column }
    }

    /// The parts in order; none for the empty argument.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The column in the pattern at which the token begins, counted in characters from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    /// The text of a token without holes.
    pub fn literal(&self) -> Option<&str> {
        match &self.parts[..] {
            [] => Some(""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether the token has a hole for a secret.
    pub fn takes_secret(&self) -> bool {
        self.parts.contains(&Part::Hole(HoleType::Secret))
    }

    /// A matching argument with `<secret>` in place of each secret; `None` where it has none.
    pub(super) fn without_secrets(&self, arg: &str) -> Option<String> {
        if !self.takes_secret() {
            return None;
        }
        let mut values = self.values(arg)?.into_iter();
        let shown = self.parts.iter().map(|part| match part {
            Part::Literal(text) => text,
            Part::Hole(HoleType::Secret) => values.next().map_or("", |_| "<secret>"),
            Part::Hole(_) => values.next().map_or("", |(_, value)| value),
        });
        Some(shown.collect())
    }

    pub(super) fn is_arg(&self) -> bool {
        self.parts == [Part::Hole(HoleType::Arg)]
    }

    pub(super) fn matches(&self, arg: &str) -> bool {
        match &self.parts[..] {
            // The two most common forms need no list of values.
            [Part::Literal(text)] => text == arg,
            [Part::Hole(hole)] => hole.accepts(arg),
            _ => self.values(arg).is_some(),
        }
    }

    /// The values of the holes in an argument, or `None` where the argument doesn't match.
    ///
    /// The literals at both ends are removed. Between them each separator is searched for from the left and from the
    /// right. Where the two results differ, or a value holds a separator, the argument could be divided in more than
    /// one way, and is refused. Each byte is visited a fixed number of times.
    pub(super) fn values<'a>(&self, arg: &'a str) -> Option<Vec<(&HoleType, &'a str)>> {
        let (parts, middle) = match &self.parts[..] {
            [Part::Literal(text), rest @ ..] => (rest, arg.strip_prefix(text.as_str())?),
            parts => (parts, arg),
        };
        let (parts, middle) = match parts {
            [rest @ .., Part::Literal(text)] => (rest, middle.strip_suffix(text.as_str())?),
            parts => (parts, middle),
        };
        let mut holes = Vec::new();
        let mut separators = Vec::new();
        for part in parts {
            match part {
                Part::Literal(text) => separators.push(text.as_str()),
                Part::Hole(hole) => holes.push(hole),
            }
        }
        if holes.is_empty() {
            return middle.is_empty().then(Vec::new);
        }
        let values = divide_from_left(middle, &separators)?;
        let unique = separators.is_empty()
            || (divide_from_right(middle, &separators)? == values
                && !values.iter().any(|value| separators.iter().any(|separator| value.contains(separator))));
        let fits = unique && holes.iter().zip(&values).all(|(hole, value)| hole.accepts(value));
        fits.then(|| holes.into_iter().zip(values).collect())
    }
}

/// Writes the token as in a pattern, but without quotes.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.parts.is_empty() {
            return f.write_str("''");
        }
        self.parts.iter().try_for_each(|part| match part {
            Part::Literal(text) => f.write_str(text),
            Part::Hole(hole) => write!(f, "<{hole}>"),
        })
    }
}

fn divide_from_left<'a>(mut text: &'a str, separators: &[&str]) -> Option<Vec<&'a str>> {
    let mut values = Vec::with_capacity(separators.len() + 1);
    for separator in separators {
        let (value, rest) = text.split_once(separator)?;
        values.push(value);
        text = rest;
    }
    values.push(text);
    Some(values)
}

fn divide_from_right<'a>(mut text: &'a str, separators: &[&str]) -> Option<Vec<&'a str>> {
    let mut values = Vec::with_capacity(separators.len() + 1);
    for separator in separators.iter().rev() {
        let (rest, value) = text.rsplit_once(separator)?;
        values.push(value);
        text = rest;
    }
    values.push(text);
    values.reverse();
    Some(values)
}
