//! One command line taken apart by its program's grammar: options with their values, operands, and where the command
//! line of another program begins.

use super::programs::{Grammar, Names, Style, Takes};

/// A command line.
pub(super) struct Argv<'a> {
    pub(super) names: Names<'a>,
    pub(super) grammar: Option<&'static Grammar>,
    /// ASCII letters and digits that stand as options without a value, alone or in a cluster.
    shorts: u128,
    options: Vec<(Name<'a>, Option<&'a str>)>,
    pub(super) operands: Vec<Operand<'a>>,
    /// The words that another program gets, for one that runs it.
    pub(super) rest: &'a [&'a str],
    /// Whether an option before them may take one more of them.
    pub(super) is_rest_unsure: bool,
}

/// A word that is no option.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a> {
    pub(super) word: &'a str,
    /// Its place among the words.
    pub(super) at: usize,
    /// It follows an option of which nobody knows whether it takes a value: so it may be that.
    pub(super) is_maybe_value: bool,
}

/// An option's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name<'a> {
    Short(char),
    Long(&'a str),
}

impl<'a> Argv<'a> {
    /// Takes time linear in the words that are its own; of what another program gets, nothing is read.
    pub(super) fn read(words: &'a [&'a str]) -> Self {
        let names = Names::of(words.first().copied().unwrap_or_default());
        let grammar = super::programs::grammar(&names);
        let rest = &words[words.len()..];
        let mut argv = Self {
            names,
            grammar,
            shorts: 0,
            options: Vec::new(),
            operands: Vec::new(),
            rest,
            is_rest_unsure: false,
        };
        argv.take(words);
        argv
    }

    fn take(&mut self, words: &'a [&'a str]) {
        let style = self.grammar.map_or(Style::Gnu, |grammar| grammar.style);
        let runs = self.grammar.and_then(|grammar| grammar.runs.as_ref());
        let mut skipped = 0;
        let mut at = 1;
        let mut is_maybe_value = false;
        let mut are_options_over = style == Style::None;
        while let Some(&word) = words.get(at) {
            at += 1;
            if !are_options_over && word == "--" {
                (are_options_over, is_maybe_value) = (true, false);
                continue;
            }
            let is_option = word.starts_with('-') || style == Style::Posix && word.starts_with('+');
            if !are_options_over && is_option && word.len() > 1 {
                let next = words.get(at).copied();
                match self.option(word, next, style) {
                    Takes::Value => (at, is_maybe_value) = (at + 1, false),
                    Takes::Unknown => is_maybe_value = true,
                    Takes::Nothing | Takes::Attached => is_maybe_value = false,
                }
                continue;
            }
            are_options_over |= style == Style::Posix;
            self.is_rest_unsure |= is_maybe_value;
            if let Some(runs) = runs.filter(|runs| runs.rest) {
                let is_own = skipped < runs.skip
                    || (word == "-" && runs.skip == 0)
                    || runs.assignments && is_assignment(word);
                if !is_own {
                    self.rest = &words[at - 1..];
                    return;
                }
                skipped += usize::from(!is_assignment(word) || !runs.assignments);
            }
            if style == Style::Bundle && at == 2 {
                word.chars().for_each(|short| self.short(short));
            }
            self.operands.push(Operand { word, at: at - 1, is_maybe_value });
            is_maybe_value = false;
        }
    }

    /// Takes an option, and says whether the next word is its value.
    fn option(&mut self, word: &'a str, next: Option<&'a str>, style: Style) -> Takes {
        if word.starts_with("--") || style == Style::Words {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            let takes = match value {
                Some(_) => Takes::Attached,
                None => self.grammar.map_or(Takes::Unknown, |grammar| grammar.long_takes(name)),
            };
            let value = value.or(next.filter(|_| takes == Takes::Value));
            self.options.push((Name::Long(name), value));
            return takes;
        }
        let mut takes = Takes::Unknown;
        for (place, short) in word.char_indices().skip(1) {
            takes = self.grammar.map_or(Takes::Unknown, |grammar| grammar.short_takes(short));
            let behind = &word[place + short.len_utf8()..];
            match takes {
                Takes::Value if behind.is_empty() => {
                    self.options.push((Name::Short(short), next));
                    return Takes::Value;
                }
                Takes::Value | Takes::Attached => {
                    self.options.push((Name::Short(short), Some(behind.strip_prefix('=').unwrap_or(behind))));
                    return Takes::Attached;
                }
                // What looks like a path is attached to the option before it.
                Takes::Unknown if behind.starts_with(['/', '=', '~']) => {
                    self.options.push((Name::Short(short), Some(behind.strip_prefix('=').unwrap_or(behind))));
                    return Takes::Attached;
                }
                Takes::Nothing | Takes::Unknown => self.short(short),
            }
        }
        takes
    }

    fn short(&mut self, short: char) {
        if short.is_ascii() {
            self.shorts |= 1 << (short as u32);
        }
    }

    /// The values of an option, in the order of the words; `None` for one that has none.
    pub(super) fn values(&self, option: &Wanted<'_>) -> impl Iterator<Item = Option<&'a str>> {
        let (exact, short) = (option.exact, option.short());
        let whole = option.name;
        let is_it = move |name: Name<'a>| match name {
            Name::Short(own) => short == Some(own),
            Name::Long(own) if exact => own == whole,
            // getopt_long(3) takes every beginning that is unambiguous.
            Name::Long(own) => {
                own == whole || own.len() > 2 && own.starts_with("--") && whole.starts_with(own)
            }
        };
        let alone = short.filter(|short| short.is_ascii() && self.shorts & (1 << (*short as u32)) != 0);
        let of_options = self.options.iter().filter(move |(name, _)| is_it(*name)).map(|(_, value)| *value);
        alone.map(|_| None).into_iter().chain(of_options)
    }

    /// Whether one of these options is there, by its very name.
    pub(super) fn has_any(&self, options: &[String]) -> bool {
        options.iter().any(|name| self.values(&Wanted { name, exact: true }).next().is_some())
    }

    /// All values of options that are words of their own or stand behind `=`.
    pub(super) fn all_values(&self) -> impl Iterator<Item = &'a str> {
        self.options.iter().filter_map(|(_, value)| *value)
    }
}

/// An option that is asked for.
pub(super) struct Wanted<'a> {
    pub(super) name: &'a str,
    /// Whether an abbreviation isn't enough.
    pub(super) exact: bool,
}

impl Wanted<'_> {
    fn short(&self) -> Option<char> {
        let mut characters = self.name.strip_prefix('-')?.chars();
        let short = characters.next()?;
        (short != '-' && characters.next().is_none()).then_some(short)
    }
}

/// `NAME=value`, as env(1), sudo(8) and shells take it before a command.
pub(super) fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
