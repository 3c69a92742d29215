//! Parses a command line by its program's grammar: into options with their values, operands, and the command line of another
//! program.

use super::programs::{Grammar, Names, Style, Takes};
use super::script::Language;

/// A parsed command line.
pub(super) struct Argv<'a> {
    pub(super) names: Names<'a>,
    pub(super) grammar: Option<&'static Grammar>,
    /// A bit for each ASCII character that is a short option without a value, alone or in a cluster.
    shorts: u128,
    options: Vec<(Name<'a>, Option<&'a str>)>,
    /// Words behind an unknown option, which may be its value rather than options.
    doubtful: Vec<&'a str>,
    pub(super) operands: Vec<Operand<'a>>,
    /// The command line of the program that this one runs.
    pub(super) rest: &'a [&'a str],
    /// Whether an unknown option before `rest` may take its first word.
    pub(super) is_rest_unsure: bool,
}

/// A word that is no option.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a> {
    pub(super) word: &'a str,
    /// The operand's index among the words.
    pub(super) at: usize,
    /// True where the word follows an unknown option, whose value it may be.
    pub(super) is_maybe_value: bool,
}

/// An option's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name<'a> {
    Short(char),
    Long(&'a str),
}

impl<'a> Argv<'a> {
    /// Parses a command line. The time is linear in the program's own words; the command line of another program is not read.
    pub(super) fn read(words: &'a [&'a str]) -> Self {
        let names = Names::of(words.first().copied().unwrap_or_default());
        let grammar = super::programs::grammar(&names);
        let rest = &words[words.len()..];
        let mut argv = Self {
            names,
            grammar,
            shorts: 0,
            options: Vec::new(),
            doubtful: Vec::new(),
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
                // find(1) reads its expression behind it all the same.
                (are_options_over, is_maybe_value) = (style != Style::Words, false);
                continue;
            }
            let is_option = word.starts_with('-') || style == Style::Posix && word.starts_with('+');
            if !are_options_over && is_option && word.len() > 1 {
                if runs.is_some_and(|runs| runs.exec.iter().any(|exec| exec == word)) {
                    at += end_of_exec(&words[at..]);
                    continue;
                }
                let next = words.get(at).copied();
                // The word may be the value of the option before it.
                if is_maybe_value && words[at - 2].starts_with("--") {
                    self.doubtful.push(word);
                }
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
                    || runs.assignments && is_variable(word);
                if !is_own {
                    self.rest = &words[at - 1..];
                    return;
                }
                skipped += usize::from(!(runs.assignments && is_variable(word)));
            }
            if style == Style::Bundle && at == 2 {
                word.chars().for_each(|short| self.short(short));
            }
            self.operands.push(Operand { word, at: at - 1, is_maybe_value });
            is_maybe_value = false;
        }
    }

    /// Reads an option, and says whether the next word is its value.
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
                // A text that looks like a path is the option's value.
                Takes::Unknown if behind.starts_with(['/', '=', '~']) => {
                    self.options.push((Name::Short(short), Some(behind.strip_prefix('=').unwrap_or(behind))));
                    return Takes::Attached;
                }
                // apt-get(8) accepts `-s=no` and `-s-`.
                Takes::Nothing if behind.starts_with(['=', '-']) => {
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

    /// The values of an option in the order of the words; `None` where the option stands without a value.
    pub(super) fn values(&self, option: &Wanted<'_>) -> impl Iterator<Item = Option<&'a str>> {
        let (exact, short) = (option.exact, option.short());
        let whole = option.name;
        let grammar = self.grammar;
        // getopt_long(3) accepts every abbreviation that is not another option.
        let is_abbreviation = move |own: &str| {
            let is_beginning = own.len() > 2 && own.starts_with("--") && whole.starts_with(own);
            is_beginning && !grammar.is_some_and(|grammar| grammar.knows(own))
        };
        let is_it = move |name: Name<'a>| match name {
            Name::Short(own) => short == Some(own),
            Name::Long(own) if exact => own == whole,
            Name::Long(own) => own == whole || is_abbreviation(own),
        };
        let alone = short.filter(|short| short.is_ascii() && self.shorts & (1 << (*short as u32)) != 0);
        let of_options = self.options.iter().filter(move |(name, _)| is_it(*name)).map(|(_, value)| *value);
        alone.map(|_| None).into_iter().chain(of_options)
    }

    /// The text of a script for sed or awk, and the place of its word where that is the first operand.
    pub(super) fn script(&self, language: Language) -> (String, Option<usize>) {
        let (given, _) = language.options();
        let mut texts: Vec<&str> = Vec::new();
        for name in given {
            texts.extend(self.values(&Wanted { name, exact: false }).flatten());
        }
        match (texts.is_empty(), self.operands.first()) {
            (true, Some(operand)) => (operand.word.to_owned(), Some(operand.at)),
            _ => (texts.join("\n"), None),
        }
    }

    /// Whether one of these options is given by its whole name.
    pub(super) fn has_any(&self, options: &[String]) -> bool {
        options.iter().any(|name| self.values(&Wanted { name, exact: true }).next().is_some())
    }

    /// Whether the option may be the value of an unknown option before it.
    pub(super) fn doubts(&self, option: &str) -> bool {
        let short = option.strip_prefix('-').filter(|short| short.len() == 1);
        self.doubtful.iter().any(|word| {
            word.split('=').next() == Some(option)
                || !word.starts_with("--") && short.is_some_and(|short| word.contains(short))
        })
    }

    /// Whether the option takes a value.
    pub(super) fn takes_value(&self, option: &str) -> bool {
        let takes = self.grammar.map_or(Takes::Unknown, |grammar| {
            let mut characters = option.chars().skip(1);
            match (characters.next(), characters.next()) {
                (Some(short), None) => grammar.short_takes(short),
                _ => grammar.long_takes(option),
            }
        });
        matches!(takes, Takes::Value | Takes::Attached)
    }

    /// The names of all options.
    pub(super) fn given(&self) -> impl Iterator<Item = String> {
        let alone = ('\0'..='\x7f').filter(|short| self.shorts & (1 << (*short as u32)) != 0);
        let with_values = self.options.iter().map(|(name, _)| match name {
            Name::Short(short) => format!("-{short}"),
            Name::Long(name) => (*name).to_owned(),
        });
        alone.map(|short| format!("-{short}")).chain(with_values)
    }

    /// The names of the long options.
    pub(super) fn long_names(&self) -> impl Iterator<Item = &'a str> {
        self.options.iter().filter_map(|(name, _)| match name {
            Name::Long(name) => Some(*name),
            Name::Short(_) => None,
        })
    }

    /// The values of all options.
    pub(super) fn all_values(&self) -> impl Iterator<Item = &'a str> {
        self.options.iter().filter_map(|(_, value)| *value)
    }
}

/// An option to look for.
pub(super) struct Wanted<'a> {
    pub(super) name: &'a str,
    /// Whether an abbreviation does not count.
    pub(super) exact: bool,
}

impl Wanted<'_> {
    fn short(&self) -> Option<char> {
        let mut characters = self.name.strip_prefix('-')?.chars();
        let short = characters.next()?;
        (short != '-' && characters.next().is_none()).then_some(short)
    }
}

/// Whether env(1) and sudo(8) take the word for a variable: it has a `=`.
fn is_variable(word: &str) -> bool {
    word.find('=').is_some_and(|at| at > 0)
}

/// The end of the command of find(1)'s `-exec`: `;`, or the `+` behind `{}`.
pub(super) fn end_of_exec(words: &[&str]) -> usize {
    let ends = |at: usize| words[at] == ";" || words[at] == "+" && at > 0 && words[at - 1] == "{}";
    (0..words.len()).find(|at| ends(*at)).unwrap_or(words.len())
}

/// Whether a shell takes the word for an assignment, `NAME=value`.
pub(super) fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
