//! Reads the words of a text for a shell, with their quotes, expansions and wildcards.

use super::super::glob::{ANY, SOME};
use super::{MAX_NESTED, Reader};

impl Reader<'_> {
    /// Reads one word, without its quotes.
    pub(super) fn word(&mut self) -> String {
        let mut word = String::new();
        let (mut bracket, mut brace, mut braces) = (None, 0, 0);
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' => break,
                '<' | '>' if self.rest()[1..].starts_with('(') => {
                    self.deeper(2, Self::substitution);
                    word.push(ANY);
                }
                '<' | '>' => break,
                '\'' => self.quoted(&mut word),
                '"' => self.double_quoted(&mut word),
                '\\' => {
                    self.skip(1);
                    match self.next() {
                        Some('\n') => {}
                        Some(c) => word.push(c),
                        None => self.script.is_unclear = true,
                    }
                }
                '$' | '`' => self.expansion(&mut word, false),
                _ => {
                    self.skip(c.len_utf8());
                    match c {
                        '*' | '?' => word.push(SOME),
                        '[' => {
                            bracket = bracket.or(Some(word.len()));
                            word.push(c);
                        }
                        ']' if bracket.is_some_and(|at| at + 1 < word.len()) => {
                            let begins = bracket.take().unwrap_or_default();
                            // A brace that began within the brackets is part of the pattern.
                            if braces > 0 && brace >= begins {
                                braces = 0;
                                self.script.is_unclear = true;
                            }
                            word.truncate(begins);
                            word.push(SOME);
                        }
                        '{' => {
                            if braces == 0 {
                                brace = word.len();
                            }
                            braces += 1;
                            word.push(c);
                        }
                        '}' if braces > 0 => {
                            braces -= 1;
                            let inner = &word[brace..];
                            match braces == 0 && (inner.contains(',') || inner.contains("..")) {
                                true => {
                                    bracket = bracket.filter(|begins| *begins < brace);
                                    word.truncate(brace);
                                    word.push(ANY);
                                }
                                false => word.push(c),
                            }
                        }
                        _ => word.push(c),
                    }
                }
            }
        }
        word
    }

    fn quoted(&mut self, word: &mut String) {
        self.skip(1);
        let rest = self.rest();
        let end = rest.find('\'');
        self.script.is_unclear |= end.is_none();
        let end = end.unwrap_or(rest.len());
        word.push_str(&rest[..end]);
        self.skip((end + 1).min(rest.len()));
    }

    fn double_quoted(&mut self, word: &mut String) {
        self.skip(1);
        while let Some(c) = self.peek() {
            match c {
                '"' => return self.skip(1),
                '$' | '`' => self.expansion(word, true),
                '\\' => {
                    self.skip(1);
                    match self.next() {
                        Some('\n') => {}
                        Some(c @ ('$' | '`' | '"' | '\\')) => word.push(c),
                        Some(c) => word.extend(['\\', c]),
                        None => {}
                    }
                }
                _ => {
                    self.skip(c.len_utf8());
                    word.push(c);
                }
            }
        }
        self.script.is_unclear = true;
    }

    /// Reads an expansion, which begins with `$` or a backquote.
    pub(super) fn expansion(&mut self, word: &mut String, is_quoted: bool) {
        let rest = self.rest();
        let mut behind = rest.chars().skip(1);
        match behind.next() {
            _ if rest.starts_with('`') => {
                self.skip(1);
                self.backquoted();
            }
            Some('(') => self.in_parentheses(),
            Some('{') => self.deeper(2, Self::parameter),
            Some('[') => {
                self.script.is_unclear = true;
                self.skip(1);
            }
            Some('\'') if !is_quoted => return self.escaped(word),
            // `$"…"` is `"…"` after translation.
            Some('"') if !is_quoted => return self.skip(1),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = rest[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                self.skip(name.map_or(rest.len(), |end| end + 1));
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => self.skip(2),
            _ => {
                self.skip(1);
                return word.push('$');
            }
        }
        word.push(ANY);
    }

    /// Reads `$(…)` or `$((…))`.
    fn in_parentheses(&mut self) {
        match self.rest().starts_with("$((") {
            true => self.deeper(3, Self::arithmetic),
            false => self.deeper(2, Self::substitution),
        }
    }

    /// Reads on behind an opening, unless the nesting is too deep.
    pub(super) fn deeper(&mut self, opening: usize, read: fn(&mut Self)) {
        self.skip(opening);
        if self.depth == MAX_NESTED {
            self.script.is_unclear = true;
            self.at = self.text.len();
            return;
        }
        self.depth += 1;
        read(self);
        self.depth -= 1;
    }

    /// Reads on behind `$(` or `<(`.
    fn substitution(&mut self) {
        let documents = std::mem::take(&mut self.documents);
        self.list(true);
        self.documents = documents;
    }

    fn backquoted(&mut self) {
        let mut text = String::new();
        while let Some(c) = self.next() {
            match c {
                '`' => return self.inner(&text, |inner| inner.list(false)),
                '\\' => match self.next() {
                    Some(c @ ('`' | '\\' | '$')) => text.push(c),
                    Some(c) => text.extend(['\\', c]),
                    None => {}
                },
                c => text.push(c),
            }
        }
        self.script.is_unclear = true;
    }

    /// Reads another text, and adds its commands to this script.
    pub(super) fn inner(&mut self, text: &str, read: impl FnOnce(&mut Reader<'_>)) {
        if self.depth == MAX_NESTED {
            self.script.is_unclear = true;
            return;
        }
        let script = std::mem::take(&mut self.script);
        let mut inner = Reader { text, at: 0, depth: self.depth + 1, script, documents: Vec::new() };
        read(&mut inner);
        self.script = inner.script;
    }

    /// Reads a text in which nothing but expansions has a meaning.
    pub(super) fn expansions(&mut self) {
        while let Some(c) = self.peek() {
            match c {
                '$' | '`' => self.expansion(&mut String::new(), true),
                '\\' => {
                    self.skip(1);
                    self.next();
                }
                _ => self.skip(c.len_utf8()),
            }
        }
    }

    /// Reads on behind `${`.
    fn parameter(&mut self) {
        let mut open = 1;
        while let Some(c) = self.peek() {
            match c {
                '`' => self.expansion(&mut String::new(), true),
                '$' if self.rest().starts_with("$(") => self.in_parentheses(),
                _ => {
                    self.skip(c.len_utf8());
                    match c {
                        '$' if self.peek() == Some('{') => {
                            self.skip(1);
                            open += 1;
                        }
                        '}' => open -= 1,
                        // A quoted text may have a brace in it.
                        '\'' | '"' | '\\' => self.script.is_unclear = true,
                        _ => {}
                    }
                }
            }
            if open == 0 {
                return;
            }
        }
        self.script.is_unclear = true;
    }

    /// Reads on behind `((` or `$((`, where `<` and `>` compare.
    pub(super) fn arithmetic(&mut self) {
        let mut open = 2;
        while let Some(c) = self.peek() {
            match c {
                '`' => self.expansion(&mut String::new(), true),
                '$' if self.rest().starts_with("$(") => self.in_parentheses(),
                '$' if self.rest().starts_with("${") => self.deeper(2, Self::parameter),
                _ => {
                    self.skip(c.len_utf8());
                    match c {
                        '(' => open += 1,
                        ')' => {
                            open -= 1;
                            // `$((a) b)` is no arithmetic but a group in a substitution.
                            self.script.is_unclear |= open == 1 && self.peek() != Some(')');
                        }
                        '\'' | '"' | '\n' => self.script.is_unclear = true,
                        _ => {}
                    }
                }
            }
            if open == 0 {
                return;
            }
        }
        self.script.is_unclear = true;
    }

    /// Reads `$'…'` with the escapes of bash(1).
    fn escaped(&mut self, word: &mut String) {
        self.skip(2);
        while let Some(c) = self.next() {
            match c {
                '\'' => return,
                '\\' => match self.next() {
                    Some('n') => word.push('\n'),
                    Some('t') => word.push('\t'),
                    Some(c @ ('\\' | '\'' | '"' | '?')) => word.push(c),
                    Some('x') => self.coded(word, 16, 2),
                    Some('u') => self.coded(word, 16, 4),
                    Some('U') => self.coded(word, 16, 8),
                    Some('0'..='7') => {
                        self.at -= 1;
                        self.coded(word, 8, 3);
                    }
                    _ => word.push(ANY),
                },
                c => word.push(c),
            }
        }
        self.script.is_unclear = true;
    }

    /// Reads a character that is given by its number, with at most `max_digits` digits.
    fn coded(&mut self, word: &mut String, radix: u32, max_digits: usize) {
        let rest = self.rest();
        let digits = rest.chars().take(max_digits).take_while(|c| c.is_digit(radix)).count();
        let number = u32::from_str_radix(&rest[..digits], radix).ok();
        // A single byte of a longer character is unknown.
        let character = number.filter(|number| *number < 0x80 || max_digits > 3).and_then(char::from_u32);
        word.push(character.unwrap_or(ANY));
        self.skip(digits);
    }
}
