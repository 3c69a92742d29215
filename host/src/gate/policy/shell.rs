//! The simple commands in a text that sh(1) or bash(1) would read: at the beginning, behind `;`, `&&`, `||`, `|`, `&` and
//! newlines, in `$(…)`, backquotes, `<(…)`, groups, loops and functions.
//!
//! Nothing is expanded. What an expansion may become is left open in its word ([`glob`](super::glob)); what can't be read for
//! certain makes the script unclear, and is read as far as possible all the same. Takes time linear in the text.

mod words;

use super::argv::is_assignment;

/// Substitutions within each other.
const MOST_NESTED: usize = 16;

/// What a text does.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) commands: Vec<Command>,
    /// A part of it can't be read here.
    pub(super) is_unclear: bool,
}

/// A simple command. An assignment is `export NAME=value`, the definition of a function is `function NAME`.
#[derive(Debug, Default)]
pub(super) struct Command {
    pub(super) words: Vec<String>,
    pub(super) redirects: Vec<Redirect>,
}

/// `> file` or `< file`.
#[derive(Debug)]
pub(super) struct Redirect {
    pub(super) writes: bool,
    pub(super) file: String,
}

/// Reads a text.
pub(super) fn read(text: &str) -> Script {
    let mut reader = Reader { text, at: 0, depth: 0, script: Script::default(), documents: Vec::new() };
    reader.list(false);
    reader.script
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    script: Script,
    /// Delimiters of here-documents that begin at the next newline, and whether their text is taken as it stands.
    documents: Vec<(String, bool)>,
}

impl<'t> Reader<'t> {
    /// Reads commands up to the end, or, within `$(`, up to its `)`.
    fn list(&mut self, is_within: bool) {
        let mut command = Command::default();
        let mut groups = 0;
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' => self.skip(1),
                '\\' if self.rest().starts_with("\\\n") => self.skip(2),
                '#' => self.comment(),
                '\n' => {
                    self.skip(1);
                    self.end(&mut command);
                    self.documents();
                }
                ';' | '|' => {
                    self.skip(1);
                    self.end(&mut command);
                }
                '&' if self.rest().starts_with("&>") => {
                    self.skip(1);
                    self.redirect(&mut command);
                }
                '&' => {
                    self.skip(1);
                    self.end(&mut command);
                }
                '(' if self.rest().starts_with("((") && command.words.is_empty() => {
                    // Two groups for a shell that has no such arithmetic.
                    self.script.is_unclear = true;
                    self.deeper(2, Self::arithmetic);
                }
                '(' => {
                    self.skip(1);
                    groups += 1;
                    self.group(&mut command);
                }
                ')' => {
                    self.skip(1);
                    self.end(&mut command);
                    if groups == 0 && is_within {
                        return;
                    }
                    groups = usize::saturating_sub(groups, 1);
                }
                '<' | '>' if !self.rest()[1..].starts_with('(') => self.redirect(&mut command),
                _ => {
                    let start = self.at;
                    let word = self.word();
                    let is_number = self.text[start..self.at].bytes().all(|byte| byte.is_ascii_digit());
                    // `2>file`, `{name}>file`
                    let is_descriptor = is_number || word.starts_with('{') && word.ends_with('}');
                    if !(is_descriptor && matches!(self.peek(), Some('<' | '>'))) {
                        command.words.push(word);
                    }
                }
            }
        }
        self.end(&mut command);
        // A `)` or `}` is missing.
        self.script.is_unclear |= is_within;
    }

    /// Behind a `(`: a function's, an array's, a group's, or one that isn't understood.
    fn group(&mut self, command: &mut Command) {
        let is_attached =
            self.at > 1 && !self.text[..self.at - 1].ends_with([' ', '\t', '\n', ';', '|', '&', '(', ')']);
        match &command.words[..] {
            [.., name] if self.rest().trim_start_matches([' ', '\t']).starts_with(')') => {
                let definition = vec!["function".to_owned(), name.clone()];
                self.script.commands.push(Command { words: definition, redirects: Vec::new() });
                command.words.clear();
            }
            // `name=(`: what is in it is read as if it were a command.
            [.., name] if is_attached && is_assignment(name) => self.end(command),
            // `@(a|b)` becomes what matches it.
            [_, ..] if is_attached => {
                self.script.is_unclear = true;
                self.end(command);
            }
            _ => self.end(command),
        }
    }

    /// The command is complete.
    fn end(&mut self, command: &mut Command) {
        let Command { words, redirects } = std::mem::take(command);
        let mut words = words.into_iter().peekable();
        let mut is_loop = false;
        while let Some(word) = words.peek() {
            match word.as_str() {
                "if" | "then" | "else" | "elif" | "fi" | "do" | "done" | "while" | "until" | "esac" | "!"
                | "{" | "}" | "coproc" => {}
                "for" | "case" | "select" => {
                    is_loop = true;
                    break;
                }
                "function" => {
                    words.next();
                    let definition = std::iter::once("function".to_owned()).chain(words.next());
                    self.script.commands.push(Command { words: definition.collect(), redirects: Vec::new() });
                    continue;
                }
                word if is_assignment(word) => {
                    let assignment = vec!["export".to_owned(), word.to_owned()];
                    self.script.commands.push(Command { words: assignment, redirects: Vec::new() });
                }
                _ => break,
            }
            words.next();
        }
        let words: Vec<String> = if is_loop { Vec::new() } else { words.collect() };
        if !(words.is_empty() && redirects.is_empty()) {
            self.script.commands.push(Command { words, redirects });
        }
    }

    fn redirect(&mut self, command: &mut Command) {
        let rest = self.rest();
        let sign_end = rest.find(|c| !matches!(c, '<' | '>')).unwrap_or(rest.len());
        let sign = &rest[..sign_end];
        let writes = sign.contains('>');
        let here = matches!(sign, "<<" | "<<<");
        self.skip(sign.len());
        let after = self.rest();
        let strips = sign == "<<" && after.starts_with('-');
        // `>&2` is another name for a descriptor, `>|` and `>&file` a file.
        let names_descriptor =
            after.starts_with('&') && after[1..].starts_with(|c: char| c.is_ascii_digit() || c == '-');
        if strips || after.starts_with('&') || writes && after.starts_with('|') {
            self.skip(1);
        }
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.skip(1);
        }
        if matches!(self.peek(), None | Some('\n' | ';' | '&' | '|' | ')')) {
            self.script.is_unclear = true;
            return;
        }
        let start = self.at;
        let file = self.word();
        if sign == "<<" {
            let is_quoted = self.text[start..self.at].contains(['\'', '"', '\\']);
            self.documents.push((file, is_quoted));
        } else if !here && !names_descriptor {
            command.redirects.push(Redirect { writes, file });
        }
    }

    /// The here-documents that were announced on the line before.
    fn documents(&mut self) {
        for (delimiter, is_quoted) in std::mem::take(&mut self.documents) {
            let start = self.at;
            let mut end = None;
            while end.is_none() && self.at < self.text.len() {
                let rest = self.rest();
                let line = rest.split('\n').next().unwrap_or(rest);
                if line.trim_start_matches('\t') == delimiter {
                    end = Some(self.at);
                }
                self.skip((line.len() + 1).min(rest.len()));
            }
            self.script.is_unclear |= end.is_none();
            if !is_quoted {
                let text = &self.text[start..end.unwrap_or(self.at)];
                self.inner(text, |inner| inner.expansions());
            }
        }
    }

    fn comment(&mut self) {
        let rest = self.rest();
        self.skip(rest.find('\n').unwrap_or(rest.len()));
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.skip(c.len_utf8());
        Some(c)
    }

    fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }
}
