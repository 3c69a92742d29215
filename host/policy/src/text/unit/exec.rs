//! Reads the command lines of a unit, as `config_parse_exec` and `extract_first_word` of systemd's sources do.

use std::collections::HashMap;

use super::specifiers::expand;
use super::{Entry, Unit};
use crate::text::programs::name;
use crate::text::{Code, shown};

/// The number of bytes that variables may add. A variable can be named any number of times.
const MAX_ADDED: usize = 1 << 20;

/// The variables that the unit itself sets. Others are unknown.
pub struct Environment {
    variables: HashMap<String, String>,
    /// The number of bytes that may still be added.
    left: usize,
}

impl Environment {
    /// All variables that the unit sets.
    pub fn of(unit: &Unit) -> Self {
        let set = unit.entries.iter().filter(|entry| entry.key == "Environment");
        let variables = set.flat_map(|entry| assignments(&entry.value, &unit.name)).collect();
        Self { variables, left: MAX_ADDED }
    }

    fn get(&mut self, name: &str) -> Option<&str> {
        let value = self.variables.get(name)?;
        self.left = self.left.saturating_sub(value.len());
        (self.left > 0).then_some(value)
    }
}

/// The assignments of an `Environment=`.
pub fn assignments(value: &str, unit: &str) -> Vec<(String, String)> {
    let mut rest = value;
    let mut found = Vec::new();
    while let Ok(Some(word)) = first_word(&mut rest) {
        if let Some((name, value)) = expand(&word, unit).split_once('=') {
            found.push((name.to_owned(), value.to_owned()));
        }
    }
    found
}

/// The prefixes before a program.
#[derive(Default)]
struct Prefixes {
    names_itself: bool,
    literal: bool,
    privileged: bool,
    by_shell: bool,
}

/// Whether a command of the assignment has a prefix that gives it more rights than its account has.
pub fn has_privileged_command(value: &str) -> bool {
    let mut rest = value;
    let mut is_program = true;
    loop {
        let next = rest.trim_start_matches(BLANK);
        let separator =
            next.strip_prefix(';').filter(|behind| behind.is_empty() || behind.starts_with(BLANK));
        if let Some(behind) = separator.filter(|_| !is_program) {
            rest = behind;
            is_program = true;
            continue;
        }
        match first_word(&mut rest) {
            Ok(Some(word)) if is_program && prefixes(&word).0.privileged => return true,
            Ok(Some(_)) => is_program = false,
            Ok(None) => return false,
            // Such a command can't be read, which asks.
            Err(OpenQuote) => return false,
        }
    }
}

/// Reads all commands of one assignment.
pub fn read(unit: &Unit, entry: &Entry, environment: &mut Environment, at: &str, code: &mut Code) {
    let mut rest = entry.value.as_str();
    loop {
        let first = match first_word(&mut rest) {
            Ok(Some(first)) => first,
            Ok(None) => return,
            Err(OpenQuote) => {
                return code.cannot_read(format!("a command with a quote that stays open, {at}"));
            }
        };
        let (prefixes, program) = prefixes(&first);
        let mut argv = vec![expand(program, &unit.name)];
        let separated = loop {
            // A `;` alone separates commands, and an escaped one is a word.
            let next = rest.trim_start_matches(BLANK);
            let ends = |text: &str| text.is_empty() || text.starts_with(BLANK);
            if let Some(behind) = next.strip_prefix(';').filter(|behind| ends(behind)) {
                rest = behind;
                break true;
            }
            if let Some(behind) = next.strip_prefix("\\;").filter(|behind| ends(behind)) {
                rest = behind;
                argv.push(";".to_owned());
                continue;
            }
            match first_word(&mut rest) {
                Ok(Some(word)) => argv.push(expand(&word, &unit.name)),
                Ok(None) => break false,
                Err(OpenQuote) => {
                    return code.cannot_read(format!("a command with a quote that stays open, {at}"));
                }
            }
        };
        run(unit, entry, (prefixes, argv), environment, at, code);
        if !separated {
            return;
        }
    }
}

fn run(
    unit: &Unit,
    entry: &Entry,
    (prefixes, mut argv): (Prefixes, Vec<String>),
    environment: &mut Environment,
    at: &str,
    code: &mut Code,
) {
    if !prefixes.literal {
        argv = substituted(argv, environment);
        if environment.left == 0 {
            return code.cannot_read(format!("a command made long by its variables, {at}"));
        }
    }
    let own = unit.user(&entry.section).filter(|_| !prefixes.privileged);
    let user = own.as_deref();
    let Some(program) = argv.first().filter(|program| !program.is_empty()) else {
        return code.cannot_read(format!("a command without a program, {at}"));
    };
    if program.contains('%') {
        code.add_power(format_args!(
            "runs `{}`: which program that is, isn't known before, {at}",
            shown(program)
        ));
    }
    if prefixes.names_itself && argv.len() > 1 {
        // With `@` the first argument is the program's name, by which some programs choose what to do.
        let named = argv.split_off(1);
        let program = argv[0].clone();
        if name(&named[0]) != name(&program) && !named[0].is_empty() {
            code.run(named.clone(), format_args!("{at}, by the name it is given"), user);
        }
        argv.extend(named.into_iter().skip(1));
    }
    if prefixes.by_shell {
        return code.shell(&argv.join(" "), at, user);
    }
    // With a prefix, root would signal a process that another account names.
    let names_anothers = prefixes.privileged && unit.user(&entry.section).is_some();
    if signals_itself(&argv) && !names_anothers {
        return;
    }
    code.run(argv, at, user);
}

/// Whether the command is `kill -HUP $MAINPID`, by which many units reload. It signals no other process.
fn signals_itself(argv: &[String]) -> bool {
    let Some((program, arguments)) = argv.split_first() else { return false };
    let Some((process, options)) = arguments.split_last() else { return false };
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '+')
    };
    // Another operand would be another process.
    let is_signal = match options {
        [] => true,
        [option] => option.strip_prefix('-').is_some_and(is_name),
        [option, name] => option == "-s" && is_name(name),
        _ => false,
    };
    ["/bin/kill", "/usr/bin/kill"].contains(&program.as_str())
        && matches!(process.as_str(), "$MAINPID" | "${MAINPID}")
        && is_signal
}

/// Reads the prefixes `@-:+!|`, which may stand in any order.
fn prefixes(word: &str) -> (Prefixes, &str) {
    let mut prefixes = Prefixes::default();
    let program = word.trim_start_matches(['@', '-', ':', '+', '!', '|']);
    for prefix in word[..word.len() - program.len()].chars() {
        match prefix {
            '@' => prefixes.names_itself = true,
            ':' => prefixes.literal = true,
            '+' | '!' => prefixes.privileged = true,
            '|' => prefixes.by_shell = true,
            _ => {}
        }
    }
    (prefixes, program)
}

/// Replaces known variables: `$A` as a word becomes the words of its value, `${A}` anywhere becomes its value, and `$$` a
/// dollar sign.
fn substituted(argv: Vec<String>, environment: &mut Environment) -> Vec<String> {
    let mut found = Vec::with_capacity(argv.len());
    for word in argv {
        let variable = word.strip_prefix('$').filter(|rest| !rest.starts_with(['{', '$']));
        match variable.and_then(|variable| environment.get(variable)) {
            Some(value) => {
                let mut rest = value;
                // The end of the value closes an open quote.
                loop {
                    match first_word(&mut rest) {
                        Ok(Some(word)) => found.push(word),
                        Ok(None) => break,
                        Err(OpenQuote) => {
                            found.push(rest.to_owned());
                            break;
                        }
                    }
                }
            }
            None => found.push(within(&word, environment)),
        }
    }
    found
}

fn within(word: &str, environment: &mut Environment) -> String {
    let mut found = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.find('$') {
        found.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let braced = behind.strip_prefix('{').and_then(|inner| {
            let end = inner.find(|character: char| !character.is_ascii_alphanumeric() && character != '_')?;
            inner[end..].strip_prefix('}').map(|after| (&inner[..end], after))
        });
        rest = match (behind.strip_prefix('$'), braced) {
            (Some(after), _) => {
                found.push('$');
                after
            }
            (None, Some((name, after))) => {
                match environment.get(name) {
                    Some(value) => found.push_str(value),
                    None => found.push_str(&rest[at..rest.len() - after.len()]),
                }
                after
            }
            (None, None) => {
                found.push('$');
                behind
            }
        };
    }
    found + rest
}

/// The characters that separate words.
const BLANK: [char; 4] = [' ', '\t', '\n', '\r'];

/// The error for a quote that stays open.
pub struct OpenQuote;

/// Takes the next word, with quotes removed and C escapes replaced. An unknown escape stays as it is.
pub fn first_word(rest: &mut &str) -> Result<Option<String>, OpenQuote> {
    next_word(rest, true)
}

/// Takes the next word of a list of names, with quotes removed. A backslash is part of the name, as in `my\x2dapp.service`.
pub fn first_name(rest: &mut &str) -> Result<Option<String>, OpenQuote> {
    next_word(rest, false)
}

fn next_word(rest: &mut &str, has_escapes: bool) -> Result<Option<String>, OpenQuote> {
    let text = rest.trim_start_matches(BLANK);
    if text.is_empty() {
        *rest = "";
        return Ok(None);
    }
    let mut word = String::new();
    let mut quote: Option<char> = None;
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        at += character.len_utf8();
        match character {
            '\\' if has_escapes => {
                let (escaped, length) = unescaped(&text[at..]);
                match escaped {
                    Some(escaped) => word.push(escaped),
                    None => {
                        word.push('\\');
                        word.push_str(&text[at..at + length]);
                    }
                }
                at += length;
            }
            _ if quote == Some(character) => quote = None,
            '\'' | '"' if quote.is_none() => quote = Some(character),
            _ if quote.is_none() && BLANK.contains(&character) => {
                *rest = &text[at..];
                return Ok(Some(word));
            }
            other => word.push(other),
        }
    }
    *rest = "";
    if quote.is_some() { Err(OpenQuote) } else { Ok(Some(word)) }
}

/// Reads the text behind a backslash: the character, if it is an escape, and the length of the escape.
fn unescaped(text: &str) -> (Option<char>, usize) {
    let number = |start: usize, digits: usize, radix: u32| {
        let digits =
            text.get(start..start + digits).filter(|text| text.chars().all(|digit| digit.is_digit(radix)));
        let value = digits.and_then(|digits| u32::from_str_radix(digits, radix).ok());
        value.and_then(char::from_u32).filter(|character| *character != '\0')
    };
    let Some(first) = text.chars().next() else { return (None, 0) };
    let simple = match first {
        'a' => Some('\u{7}'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\u{b}'),
        's' => Some(' '),
        '\\' | '"' | '\'' => Some(first),
        _ => None,
    };
    let numbered = match first {
        'x' => number(1, 2, 16).map(|character| (character, 3)),
        'u' => number(1, 4, 16).map(|character| (character, 5)),
        'U' => number(1, 8, 16).map(|character| (character, 9)),
        '0'..='7' => number(0, 3, 8).map(|character| (character, 3)),
        _ => None,
    };
    match (simple, numbered) {
        (Some(character), _) => (Some(character), 1),
        (None, Some((character, length))) => (Some(character), length),
        (None, None) => (None, first.len_utf8()),
    }
}
