//! Finds the simple commands in a text for sh(1) or bash(1): at the beginning, behind `;`, `&&`, `||`, `|`, `&` and newlines,
//! in `$(…)`, backquotes, `<(…)`, groups, loops and functions.
//!
//! It expands nothing: an expansion is an unknown part of its word, see [`glob`](super::glob). A part that can't be read for
//! certain makes the script unclear, and the rest is read all the same. The time is linear in the text.

mod words;

use super::argv::is_assignment;

/// The number of nested substitutions.
const MAX_NESTED: usize = 16;

/// Reserved words behind which a command begins.
const RESERVED: [&str; 14] =
    ["coproc", "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "esac", "!", "{", "}"];

/// The commands in a text.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) commands: Vec<Command>,
    /// True where a part of the text can't be read.
    pub(super) is_unclear: bool,
}

/// A simple command. An assignment is `export NAME=value`, the definition of a function is `function NAME`.
#[derive(Debug, Default)]
pub(super) struct Command {
    pub(super) words: Vec<String>,
    pub(super) redirects: Vec<Redirect>,
}

/// A here-document.
struct Document {
    delimiter: String,
    /// True where nothing in the text is expanded.
    is_quoted: bool,
    /// True where leading tabs are removed from the lines.
    is_indented: bool,
}

/// A redirection, `> file` or `< file`.
#[derive(Debug)]
pub(super) struct Redirect {
    pub(super) writes: bool,
    pub(super) file: String,
}

/// Reads a text for a shell.
pub(super) fn read(text: &str) -> Script {
    let mut reader = Reader { text, at: 0, depth: 0, script: Script::default(), documents: Vec::new() };
    reader.list(false);
    reader.script
}

/// Whether the command before a `)` is a `case` with its pattern.
fn is_case(command: &Command) -> bool {
    command.words.iter().find(|word| !RESERVED.contains(&word.as_str())).is_some_and(|word| word == "case")
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    script: Script,
    /// The here-documents that begin at the next newline.
    documents: Vec<Document>,
}

impl<'t> Reader<'t> {
    /// Reads commands up to the end of the text, or within `$(` up to its `)`.
    fn list(&mut self, is_within: bool) {
        let mut command = Command::default();
        let (mut groups, mut cases) = (0, 0);
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
                '(' => {
                    // `((` is arithmetic for some shells, and two groups for others.
                    self.script.is_unclear |= self.rest().starts_with("((");
                    self.skip(1);
                    groups += 1;
                    self.group(&mut command);
                }
                ')' => {
                    self.skip(1);
                    cases += usize::from(is_case(&command));
                    self.end(&mut command);
                    if groups == 0 && cases == 0 && is_within {
                        return;
                    }
                    groups = usize::saturating_sub(groups, 1);
                }
                '<' | '>' if !self.rest()[1..].starts_with('(') => self.redirect(&mut command),
                _ => {
                    let start = self.at;
                    let word = self.word();
                    let is_number = self.text[start..self.at].bytes().all(|byte| byte.is_ascii_digit());
                    // The descriptor of a redirection: `2>file`, `{name}>file`.
                    let is_descriptor = is_number || word.starts_with('{') && word.ends_with('}');
                    if !(is_descriptor && matches!(self.peek(), Some('<' | '>'))) {
                        cases = usize::saturating_sub(
                            cases,
                            usize::from(command.words.is_empty() && word == "esac"),
                        );
                        command.words.push(word);
                    }
                }
            }
        }
        self.end(&mut command);
        // A `)` or `}` is missing.
        self.script.is_unclear |= is_within;
    }

    /// Reads on behind a `(`, which begins a function, an array or a group, or is not understood.
    fn group(&mut self, command: &mut Command) {
        let is_attached =
            self.at > 1 && !self.text[..self.at - 1].ends_with([' ', '\t', '\n', ';', '|', '&', '(', ')']);
        match &command.words[..] {
            [.., name] if self.rest().trim_start_matches([' ', '\t']).starts_with(')') => {
                let definition = vec!["function".to_owned(), name.clone()];
                self.script.commands.push(Command { words: definition, redirects: Vec::new() });
                command.words.clear();
            }
            // The values of an array, `name=(…)`, are read as if they were a command.
            [.., name] if is_attached && is_assignment(name) => self.end(command),
            // The pattern `@(a|b)` becomes the names that match it.
            [_, ..] if is_attached => {
                self.script.is_unclear = true;
                self.end(command);
            }
            _ => self.end(command),
        }
    }

    /// Takes the complete command into the script.
    fn end(&mut self, command: &mut Command) {
        let Command { mut words, redirects } = std::mem::take(command);
        let mut begins = 0;
        while let Some(word) = words.get(begins) {
            let next = words.get(begins + 1).map(String::as_str);
            let after = words.get(begins + 2).map(String::as_str);
            begins += match word.as_str() {
                "time" if next == Some("-p") => 2,
                "time" if next.is_some_and(|next| !next.starts_with('-')) => 1,
                "coproc" if after == Some("{") => 2,
                "for" | "select" if after == Some("do") => 3,
                // These words are the list of the loop, or the first pattern.
                "for" | "select" | "case" => words.len() - begins,
                "function" => {
                    let definition = std::iter::once("function").chain(next).map(str::to_owned).collect();
                    self.script.commands.push(Command { words: definition, redirects: Vec::new() });
                    2
                }
                word if RESERVED.contains(&word) => 1,
                word if is_assignment(word) => {
                    let assignment = vec!["export".to_owned(), word.to_owned()];
                    self.script.commands.push(Command { words: assignment, redirects: Vec::new() });
                    1
                }
                _ => break,
            };
        }
        // bash(1) runs substitutions in the subscript of a variable's name that it gets as text.
        let is_subscript = |word: &String| {
            word.split_once('[').is_some_and(|(_, rest)| rest.contains("$(") || rest.contains('`'))
        };
        self.script.is_unclear |= words.iter().any(is_subscript);
        words.drain(..begins.min(words.len()));
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
        // The operator may go on in the next line.
        self.script.is_unclear |= after.starts_with("\\\n");
        let strips = sign == "<<" && after.starts_with('-');
        // `>&2` names a descriptor, `>|file` and `>&file` name a file.
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
            self.documents.push(Document { delimiter: file, is_quoted, is_indented: strips });
        } else if !here && !names_descriptor {
            command.redirects.push(Redirect { writes, file });
        }
    }

    /// Reads the here-documents that the line before has begun.
    fn documents(&mut self) {
        for Document { delimiter, is_quoted, is_indented } in std::mem::take(&mut self.documents) {
            let start = self.at;
            let (mut end, mut is_continued) = (None, false);
            while end.is_none() && self.at < self.text.len() {
                let rest = self.rest();
                let line = rest.split('\n').next().unwrap_or(rest);
                let own = if is_indented { line.trim_start_matches('\t') } else { line };
                if own == delimiter && !is_continued {
                    end = Some(self.at);
                }
                let backslashes = line.len() - line.trim_end_matches('\\').len();
                is_continued = !is_quoted && backslashes % 2 == 1;
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
