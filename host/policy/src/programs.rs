//! The grammars of programs' command lines, which `programs.yaml` has by the programs' names.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::script::Language;

/// The grammar of a program's command line. `programs.yaml` documents the fields.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Grammar {
    names: Vec<String>,
    pub(super) style: Style,
    values: Vec<String>,
    flags: Vec<String>,
    attached: Vec<String>,
    pub(super) abbreviates: bool,
    pub(super) expands: bool,
    pub(super) reads: Vec<Which>,
    pub(super) writes: Vec<Which>,
    pub(super) removes: Vec<Which>,
    pub(super) makes: Vec<Which>,
    /// The program writes only with one of these options.
    pub(super) writes_if: Vec<String>,
    /// The language of the program's scripts.
    pub(super) script: Option<Language>,
    pub(super) runs: Option<Runs>,
}

/// The style of a program's options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Style {
    #[default]
    Gnu,
    Posix,
    Words,
    Bundle,
    None,
}

/// The words of a command line that name files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub(super) enum Which {
    All,
    First,
    Last,
    ButFirst,
    ButLast,
    /// The last operand, and the files in it that have the names of the other operands.
    Into,
    /// The value behind a key such as `of=`.
    Key(String),
    /// The value of an option such as `-o` or `--output`.
    Option(String),
}

impl From<String> for Which {
    fn from(text: String) -> Self {
        match text.as_str() {
            "all" => Self::All,
            "first" => Self::First,
            "last" => Self::Last,
            "but-first" => Self::ButFirst,
            "but-last" => Self::ButLast,
            "into" => Self::Into,
            _ if text.ends_with('=') => Self::Key(text),
            _ => Self::Option(text),
        }
    }
}

/// The way in which a program starts another program.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Runs {
    pub(super) rest: bool,
    pub(super) skip: usize,
    pub(super) assignments: bool,
    pub(super) text: bool,
    pub(super) code: Vec<String>,
    pub(super) split: Vec<String>,
    pub(super) program: Vec<String>,
    pub(super) operand: bool,
    pub(super) exec: Vec<String>,
    pub(super) after: HashMap<String, usize>,
    pub(super) unless: Vec<String>,
    pub(super) directory: Vec<String>,
    pub(super) text_after: Vec<String>,
    pub(super) feeds: bool,
    pub(super) alone: bool,
    pub(super) dialect: bool,
}

static PROGRAMS: LazyLock<Programs> = LazyLock::new(Programs::new);

struct Programs {
    grammars: Vec<Grammar>,
    by_name: HashMap<String, usize>,
}

impl Programs {
    fn new() -> Self {
        // A test reads the same text. Where it is unreadable all the same, `is_broken` says so.
        let grammars: Vec<Grammar> = serde_json::from_str(TABLE).unwrap_or_default();
        let mut by_name = HashMap::new();
        for (number, grammar) in grammars.iter().enumerate() {
            by_name.extend(grammar.names.iter().map(|name| (name.clone(), number)));
        }
        Self { grammars, by_name }
    }
}

/// `programs.yaml` as JSON, which is read faster. build.rs makes it.
const TABLE: &str = include_str!(concat!(env!("OUT_DIR"), "/programs.json"));

/// The grammar of the program that has one of these names.
pub(super) fn grammar(names: &Names) -> Option<&'static Grammar> {
    let number = names.iter().find_map(|name| PROGRAMS.by_name.get(name))?;
    PROGRAMS.grammars.get(*number)
}

const SUFFIXES: [&str; 13] = [
    ".no-molly-guard",
    ".distrib",
    ".real",
    ".orig",
    ".tiny",
    ".basic",
    ".nox",
    ".gtk3",
    ".static",
    ".openbsd",
    ".traditional",
    ".exe",
    "-rs",
];
const PREFIXES: [&str; 3] = ["gnu", "uu_", "uutils-"];

/// Whether the table is unreadable, so that no program is known.
pub(super) fn is_broken() -> bool {
    PROGRAMS.grammars.is_empty()
}

/// The number of grammars.
#[cfg(test)]
pub(super) fn count() -> usize {
    PROGRAMS.grammars.len()
}

/// The name in a program's path, and the plain name without a version, a known prefix or a known suffix.
pub(super) struct Names<'a> {
    full: &'a str,
    plain: Option<&'a str>,
}

impl<'a> Names<'a> {
    /// The names of a program: `/usr/bin/../bin/python3.11` is `python3.11` and `python`.
    pub(super) fn of(program: &'a str) -> Self {
        let full = program.trim_end_matches('/').rsplit('/').next().unwrap_or(program);
        // Distributions keep a program under such a name where a wrapper has its own name.
        let plain = SUFFIXES.iter().find_map(|suffix| full.strip_suffix(suffix)).unwrap_or(full);
        let plain = PREFIXES.iter().find_map(|prefix| plain.strip_prefix(prefix)).unwrap_or(plain);
        // The loader of dynamically linked programs, whose name has the machine and a version.
        let is_loader = plain.starts_with("ld-") && plain.contains(".so");
        let plain = if is_loader { "ld.so" } else { plain };
        let plain = plain.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        let plain = (!plain.is_empty() && plain != full).then_some(plain);
        Self { full, plain }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'a str> {
        std::iter::once(self.full).chain(self.plain)
    }
}

impl Grammar {
    /// The names of the programs with this grammar.
    #[cfg(test)]
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Says what follows this short option.
    pub(super) fn short_takes(&self, short: char) -> Takes {
        let has = |list: &[String]| list.iter().any(|option| is_short(option, short));
        match () {
            () if has(&self.values) => Takes::Value,
            () if has(&self.attached) => Takes::Attached,
            () if has(&self.flags) => Takes::Nothing,
            () => Takes::Unknown,
        }
    }

    /// Whether this is a whole option, and not an abbreviation of another one.
    pub(super) fn knows(&self, option: &str) -> bool {
        [&self.values, &self.flags, &self.attached].into_iter().flatten().any(|known| known == option)
    }

    /// Says what follows a long option, such as `--output` or find's `-name`.
    pub(super) fn long_takes(&self, option: &str) -> Takes {
        let has = |list: &[String]| list.iter().any(|known| known == option);
        // getopt_long(3) accepts abbreviations.
        let begins = |list: &[String]| {
            self.style == Style::Gnu
                && list.iter().any(|known| known.starts_with("--") && known.starts_with(option))
        };
        match () {
            () if has(&self.values) => Takes::Value,
            () if has(&self.flags) || has(&self.attached) => Takes::Nothing,
            () if option.len() > 2 && begins(&self.values) => Takes::Value,
            () if option.len() > 2 && begins(&self.flags) => Takes::Nothing,
            () => Takes::Unknown,
        }
    }
}

fn is_short(option: &str, short: char) -> bool {
    let mut characters = option.chars();
    characters.next() == Some('-') && characters.next() == Some(short) && characters.next().is_none()
}

/// The kind of word that follows an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    Value,
    /// A value only where it is attached to the option.
    Attached,
    Unknown,
}
