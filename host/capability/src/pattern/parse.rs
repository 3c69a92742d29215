//! Parses the text of a pattern.

use super::token::{Part, Token};
use super::{HoleType, Item, MAX_DEPTH, MAX_HOLES, MAX_PATTERN, PatternError, PatternErrorKind};
use crate::path::is_lexically_safe;
use host_text::characters::is_hidden;

/// Variables that make any program load or run other code, whatever its arguments are: ld.so(8), iconv(1), bash(1),
/// sh(1). The host sets PATH itself.
const CODE_LOADING: &[&str] =
    &["BASH_ENV", "ENV", "GCONV_PATH", "GLIBC_TUNABLES", "IFS", "PATH", "SHELLOPTS"];

pub(super) struct Parsed {
    pub(super) variables: Vec<(String, String)>,
    pub(super) program: String,
    pub(super) items: Vec<Item>,
    pub(super) stdin: bool,
}

pub(super) fn parse(text: &str) -> Result<Parsed, PatternError> {
    if text.len() > MAX_PATTERN {
        return Err(PatternError { column: 1, kind: PatternErrorKind::TooLong });
    }
    let mut reader = Reader { chars: text.chars().collect(), at: 0 };
    if let Some(at) = reader.chars.iter().position(|c| is_hidden(*c)) {
        return Err(PatternError { column: at + 1, kind: PatternErrorKind::Hidden(reader.chars[at]) });
    }
    let variables = reader.variables()?;
    let program = reader.program()?;
    let items = reader.sequence(0)?;
    let stdin = reader.stdin();
    match reader.peek() {
        None => Ok(Parsed { variables, program, items, stdin }),
        Some('<') => Err(reader.error(PatternErrorKind::BareAngle)),
        Some(c) => Err(reader.error(PatternErrorKind::Unopened(c))),
    }
}

struct Reader {
    chars: Vec<char>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn sees(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(i, c)| self.chars.get(self.at + i) == Some(&c))
    }

    fn skip_blanks(&mut self) {
        while self.peek() == Some(' ') {
            self.at += 1;
        }
    }

    fn error(&self, kind: PatternErrorKind) -> PatternError {
        error_at(self.at, kind)
    }

    fn variables(&mut self) -> Result<Vec<(String, String)>, PatternError> {
        let mut variables: Vec<(String, String)> = Vec::new();
        loop {
            self.skip_blanks();
            let begin = self.at;
            let Some(name) = self.variable_name() else { return Ok(variables) };
            if CODE_LOADING.contains(&name.as_str()) || name.starts_with("LD_") {
                return Err(error_at(begin, PatternErrorKind::VariablePower(name)));
            }
            if variables.iter().any(|(other, _)| *other == name) {
                return Err(error_at(begin, PatternErrorKind::VariableTwice(name)));
            }
            let value = self.at;
            let token = if self.at_boundary() { Token::new(Vec::new(), value + 1) } else { self.token()? };
            match token.literal() {
                Some(text) if matches!(self.peek(), None | Some(' ')) => {
                    variables.push((name, text.to_owned()))
                }
                _ => return Err(error_at(value, PatternErrorKind::VariableValue(name))),
            }
        }
    }

    /// Reads `NAME=`, or nothing.
    fn variable_name(&mut self) -> Option<String> {
        let rest = &self.chars[self.at..];
        let length = rest.iter().position(|c| !c.is_ascii_alphanumeric() && *c != '_')?;
        if length == 0 || rest[0].is_ascii_digit() || rest[length] != '=' {
            return None;
        }
        let name = rest[..length].iter().collect();
        self.at += length + 1;
        Some(name)
    }

    fn program(&mut self) -> Result<String, PatternError> {
        let begin = self.at;
        if matches!(self.peek(), None | Some('<' | '[' | ']' | '(' | ')' | '|' | '.')) {
            return Err(self.error(PatternErrorKind::Program));
        }
        let token = self.token()?;
        let is_name = |name: &str| {
            !name.is_empty()
                && !name.starts_with('-')
                && !matches!(name, "." | "..")
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
        };
        let is_program = |text: &str| match text.strip_prefix('/') {
            Some(path) => is_lexically_safe(text) && path.split('/').all(is_name),
            None => is_name(text),
        };
        match token.literal() {
            Some(text) if is_program(text) && matches!(self.peek(), None | Some(' ')) => Ok(text.to_owned()),
            _ => Err(error_at(begin, PatternErrorKind::Program)),
        }
    }

    /// Reads items up to the end, to a `]`, `)` or `|`, or to `< stdin`.
    fn sequence(&mut self, depth: usize) -> Result<Vec<Item>, PatternError> {
        let mut items = Vec::new();
        loop {
            self.skip_blanks();
            let item = match self.peek() {
                None | Some(']' | ')' | '|') => return Ok(items),
                Some('<') if depth == 0 && self.sees("< ") => return Ok(items),
                Some('[') => self.optional(depth + 1)?,
                Some('(') => self.alternatives(depth + 1)?,
                Some(_) if self.sees("...") => return Err(self.error(PatternErrorKind::NothingToRepeat)),
                Some(_) => Item::Token(self.token()?),
            };
            let item = if self.sees("...") {
                self.at += 3;
                Item::Repeat(Box::new(item))
            } else {
                item
            };
            if !self.at_boundary() {
                return Err(self.error(PatternErrorKind::NoBlank));
            }
            items.push(item);
        }
    }

    fn at_boundary(&self) -> bool {
        matches!(self.peek(), None | Some(' ' | ']' | ')' | '|'))
    }

    fn optional(&mut self, depth: usize) -> Result<Item, PatternError> {
        let items = self.group(depth)?;
        match self.peek() {
            Some(']') => self.at += 1,
            Some(c @ (')' | '|')) => return Err(self.error(PatternErrorKind::Unopened(c))),
            _ => return Err(self.error(PatternErrorKind::UnclosedGroup(']'))),
        }
        Ok(Item::Optional(items))
    }

    fn alternatives(&mut self, depth: usize) -> Result<Item, PatternError> {
        let mut ways = vec![self.group(depth)?];
        loop {
            match self.peek() {
                Some('|') => ways.push(self.group(depth)?),
                Some(')') => break,
                Some(']') => return Err(self.error(PatternErrorKind::Unopened(']'))),
                _ => return Err(self.error(PatternErrorKind::UnclosedGroup(')'))),
            }
        }
        self.at += 1;
        Ok(Item::Alternatives(ways))
    }

    /// Reads what follows a `[`, `(` or `|`.
    fn group(&mut self, depth: usize) -> Result<Vec<Item>, PatternError> {
        if depth > MAX_DEPTH {
            return Err(self.error(PatternErrorKind::TooDeep));
        }
        self.at += 1;
        let items = self.sequence(depth)?;
        if items.is_empty() && self.peek().is_some() {
            return Err(self.error(PatternErrorKind::EmptyGroup));
        }
        Ok(items)
    }

    /// Reads a token up to a blank, a bracket or `...`.
    fn token(&mut self) -> Result<Token, PatternError> {
        let begin = self.at;
        let mut parts = Vec::new();
        let mut holes = 0;
        while let Some(c) = self.peek() {
            match c {
                ' ' | ']' | ')' | '|' => break,
                '[' | '(' => return Err(self.error(PatternErrorKind::NoBlank)),
                '.' if self.sees("...") => break,
                '\'' => {
                    let text = self.quoted()?;
                    push_literal(&mut parts, &text);
                }
                '<' => {
                    let at = self.at;
                    let hole = self.hole()?;
                    holes += 1;
                    if let Some(Part::Hole(_)) = parts.last() {
                        return Err(error_at(at, PatternErrorKind::AdjacentHoles));
                    }
                    if holes > MAX_HOLES {
                        return Err(error_at(at, PatternErrorKind::TooManyHoles));
                    }
                    parts.push(Part::Hole(hole));
                }
                '>' | '"' | '\\' | '$' | '`' | ';' | '&' | '*' | '?' => {
                    return Err(self.error(PatternErrorKind::Unquoted(c)));
                }
                c if !c.is_ascii() => return Err(self.error(PatternErrorKind::Unquoted(c))),
                c => {
                    push_literal(&mut parts, c.encode_utf8(&mut [0; 4]));
                    self.at += 1;
                }
            }
        }
        let token = Token::new(parts, begin + 1);
        if token.parts().contains(&Part::Hole(HoleType::Arg)) && !token.is_arg() {
            return Err(error_at(begin, PatternErrorKind::ArgInToken));
        }
        Ok(token)
    }

    fn quoted(&mut self) -> Result<String, PatternError> {
        let Some(length) = self.chars[self.at + 1..].iter().position(|c| *c == '\'') else {
            return Err(self.error(PatternErrorKind::UnclosedQuote));
        };
        let text = self.chars[self.at + 1..self.at + 1 + length].iter().collect();
        self.at += length + 2;
        Ok(text)
    }

    fn hole(&mut self) -> Result<HoleType, PatternError> {
        let inside = &self.chars[self.at + 1..];
        if !inside.first().is_some_and(char::is_ascii_alphabetic) {
            return Err(self.error(PatternErrorKind::BareAngle));
        }
        let Some(length) = inside.iter().position(|c| *c == '>') else {
            return Err(self.error(PatternErrorKind::UnclosedHole));
        };
        let name: String = inside[..length].iter().collect();
        let hole = HoleType::parse(&name).map_err(|error| self.error(error.into()))?;
        self.at += length + 2;
        Ok(hole)
    }

    /// Reads `< stdin` and the blanks after it, or nothing.
    fn stdin(&mut self) -> bool {
        let begin = self.at;
        if self.sees("< ") {
            self.at += 1;
            self.skip_blanks();
            if self.sees("stdin") {
                self.at += "stdin".len();
                self.skip_blanks();
                if self.peek().is_none() {
                    return true;
                }
            }
        }
        self.at = begin;
        false
    }
}

/// Adds to a literal, so that neighbouring literals become one: `a'b'` is `ab`. Empty quotes add nothing.
fn push_literal(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        Some(Part::Literal(before)) => before.push_str(text),
        _ if text.is_empty() => {}
        _ => parts.push(Part::Literal(text.to_owned())),
    }
}

fn error_at(at: usize, kind: PatternErrorKind) -> PatternError {
    PatternError { column: at + 1, kind }
}
