//! Patterns: command lines with typed holes, as grants have them.
//!
//! ```text
//! DEBIAN_FRONTEND=noninteractive apt-get install --yes -- <package>...
//! systemctl (start|stop|restart) -- <unit>
//! journalctl --output=json [--unit=<unit>]... [--since=<time>] --lines=<int>
//! crontab -u <user> - < stdin
//! ```
//!
//! # Grammar
//!
//! ```text
//! pattern      = { variable } program { item } [ "<" "stdin" ]
//! variable     = NAME "=" [ literal ]
//! program      = a bare name or an absolute path
//! item         = ( token | optional | alternatives ) [ "..." ]
//! optional     = "[" item { item } "]"
//! alternatives = "(" item { item } { "|" item { item } } ")"
//! token        = ( literal | hole ) { literal | hole }
//! literal      = ( bare | "'" { any character but ' } "'" ) { ... }
//! hole         = "<" type [ ":" glob ] ">"
//! ```
//!
//! Blanks separate items. `...` means "one or more", so `[x]...` means any number. A group encloses whole tokens, never a
//! part of one: `--color=(a|b)` is written `(--color=a|--color=b)`.
//!
//! Bare text is printable ASCII without `< > [ ] ( ) | '` (the grammar's own) and without `" \ $ ; & * ?` and the backtick.
//! The latter have a meaning elsewhere and would be literal here, and the reader of a grant should not have to guess.
//! They may stand in quotes. `''` is the empty argument.
//!
//! # What a match means
//!
//! Each argument matches one token of the pattern, in order. A literal matches exactly its text, and a hole matches what its
//! [type](HoleType) accepts. Nothing is joined, split or expanded.
//!
//! Where an argument list matches in two ways, a [`Match`] reports the way that takes optional and repeated items first.
//!
//! Several holes may share a token with literals between them (`<user>:<group>`). Such a token is divided only where there
//! is one way to do it, and no value may hold one of the separators. The program divides by rules of its own, from the left
//! or from the right, and would otherwise see other values than those that were checked.
//!
//! `<arg>` is a token by itself and stands only where the program has stopped reading options: after `--`, or after an
//! operand that is a hole. A hole behind an option doesn't count as an operand, because it may be the option's value
//! (`--user <user>`; with `--user=<user>` there is no doubt).
//!
//! # Cost
//!
//! A pattern has at most [`MAX_PATTERN`] bytes, [`MAX_DEPTH`] levels of groups, [`MAX_STATES`] states, and [`MAX_HOLES`]
//! holes in a token. Matching keeps the set of possible states, so it takes time linear in the arguments, whatever the
//! pattern.

mod examples;
mod nfa;
mod parse;
#[cfg(any(test, feature = "fuzzing"))]
pub mod sample;
mod token;

use std::fmt;

use super::hole::{HoleError, HoleType};
use nfa::Nfa;
pub(crate) use nfa::Progress;
pub use token::{Part, Token};

/// The greatest length of a pattern in bytes.
pub const MAX_PATTERN: usize = 4096;
/// The greatest depth of groups within groups.
pub const MAX_DEPTH: usize = 8;
/// The greatest number of states of a pattern. A token is one state; a group has one for each way through it.
pub const MAX_STATES: usize = 1024;
/// The greatest number of holes in a token.
pub const MAX_HOLES: usize = 4;
/// The greatest number of arguments that a pattern matches.
pub const MAX_ARGS: usize = 4096;
/// The greatest number of [examples](Pattern::examples) of a pattern.
pub const MAX_EXAMPLES: usize = 256;

/// A command line with typed holes.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    variables: Vec<(String, String)>,
    program: String,
    items: Vec<Item>,
    stdin: bool,
    nfa: Nfa,
}

/// A part of what follows the program in a pattern. The parts are a tree, for code that shows or translates them, such
/// as into a sudoers rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// One argument.
    Token(Token),
    /// `[x]`
    Optional(Vec<Item>),
    /// `(a|b)`
    Alternatives(Vec<Vec<Item>>),
    /// `x...`
    Repeat(Box<Item>),
}

impl Pattern {
    /// Parses a pattern, in time linear in the text.
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        let parsed = parse::parse(text)?;
        let nfa = Nfa::new(&parsed.items)
            .ok_or(PatternError { column: 1, kind: PatternErrorKind::TooManyStates })?;
        if let Some(column) = nfa.arg_before_operand() {
            return Err(PatternError { column, kind: PatternErrorKind::ArgBeforeOperand });
        }
        Ok(Pattern {
            text: text.to_owned(),
            variables: parsed.variables,
            program: parsed.program,
            items: parsed.items,
            stdin: parsed.stdin,
            nfa,
        })
    }

    /// The pattern as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The program: a bare name, which is searched in the fixed PATH, or an absolute path.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// The variables in front of the program, each with the one value that it must have.
    pub fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    /// Whether standard input is allowed.
    pub fn stdin(&self) -> bool {
        self.stdin
    }

    /// The items after the program.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Every token after the program, wherever it stands.
    pub fn tokens(&self) -> impl Iterator<Item = &Token> {
        fn collect<'a>(items: &'a [Item], tokens: &mut Vec<&'a Token>) {
            for item in items {
                match item {
                    Item::Token(token) => tokens.push(token),
                    Item::Optional(items) => collect(items, tokens),
                    Item::Alternatives(ways) => ways.iter().for_each(|items| collect(items, tokens)),
                    Item::Repeat(item) => collect(std::slice::from_ref(item), tokens),
                }
            }
        }
        let mut tokens = Vec::new();
        collect(&self.items, &mut tokens);
        tokens.into_iter()
    }

    /// Every hole, wherever it stands.
    pub fn holes(&self) -> impl Iterator<Item = &HoleType> {
        self.tokens().flat_map(Token::parts).filter_map(|part| match part {
            Part::Hole(hole) => Some(hole),
            Part::Literal(_) => None,
        })
    }

    /// Whether this pattern allows every whole command that the other one allows.
    ///
    /// A yes is certain. A no may also mean that the comparison gave up: where several tokens of this pattern would be
    /// needed for one argument, or where there are more combinations than can be tried in a bounded time.
    pub fn covers(&self, other: &Pattern) -> bool {
        let same_env = self.variables.len() == other.variables.len()
            && other.variables.iter().all(|variable| self.variables.contains(variable));
        let may = self.program == other.program && same_env && (self.stdin || !other.stdin);
        may && (self.text == other.text || self.nfa.covers(&other.nfa))
    }

    /// Matches the arguments after the program. The caller compares the program, the environment and standard input;
    /// [`Pattern::allows`] does everything.
    pub fn matches(&self, args: &[String]) -> Option<Match> {
        (args.len() <= MAX_ARGS).then(|| self.nfa.run(args)).flatten()
    }

    /// Says how far the arguments after the program can be read, for a message about those that don't match.
    pub(crate) fn progress(&self, args: &[String]) -> Progress<'_> {
        self.nfa.progress(args.get(..MAX_ARGS).unwrap_or(args))
    }

    /// Argument lists that this pattern allows, at most [`MAX_EXAMPLES`]. Together they have each token of the pattern, as
    /// far as that number allows, and a plain value in each hole. They show what the pattern is meant for, and never that it
    /// is harmless: other values may do more.
    pub fn examples(&self) -> Vec<Vec<String>> {
        examples::argument_lists(&self.items)
    }

    /// Matches a whole command: this program by this name, these arguments, exactly these variables in any order, and
    /// standard input only where the pattern ends in `< stdin`.
    pub fn allows(
        &self,
        program: &str,
        args: &[String],
        env: &[(String, String)],
        stdin: bool,
    ) -> Option<Match> {
        let same_env =
            env.len() == self.variables.len() && self.variables.iter().all(|wanted| env.contains(wanted));
        (program == self.program && same_env && (self.stdin || !stdin)).then(|| self.matches(args)).flatten()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The values that an argument list puts into the holes of a pattern.
#[derive(Clone, PartialEq, Eq)]
pub struct Match {
    /// Every value with its hole, in the order of the arguments.
    pub holes: Vec<(HoleType, String)>,
    /// The arguments that hold a secret: the index of each, and the text that may be shown for it.
    pub redacted: Vec<(usize, String)>,
}

impl Match {
    /// The values of path holes. They were checked as text. After symlinks are resolved on the target, the caller
    /// checks the resulting path with [`HoleType::accepts`].
    pub fn paths(&self) -> impl Iterator<Item = &(HoleType, String)> {
        self.holes.iter().filter(|(hole, _)| matches!(hole, HoleType::Path(_)))
    }
}

/// Shows no secret.
impl fmt::Debug for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(hole, value): &(HoleType, String)| match hole {
            HoleType::Secret => format!("<{hole}>"),
            _ => format!("<{hole}> {value:?}"),
        };
        f.debug_list().entries(self.holes.iter().map(shown)).finish()
    }
}

/// The reason why a text isn't a pattern, and the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {kind}")]
pub struct PatternError {
    /// The column in the text, counted in characters from 1.
    pub column: usize,
    /// The kind of the error at that column.
    pub kind: PatternErrorKind,
}

/// The kind of an error in a pattern. Its message says what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternErrorKind {
    /// The text is longer than [`MAX_PATTERN`].
    #[error("expected at most {MAX_PATTERN} bytes")]
    TooLong,
    /// The pattern has more states than [`MAX_STATES`].
    #[error("expected fewer tokens and groups: this pattern has more than {MAX_STATES} states")]
    TooManyStates,
    /// The groups are deeper than [`MAX_DEPTH`].
    #[error("expected at most {MAX_DEPTH} groups in each other")]
    TooDeep,
    /// There is a control, bidirectional or invisible character.
    #[error("expected visible text, found {}", .0.escape_unicode())]
    Hidden(char),
    /// There is a character that is literal only in quotes.
    #[error("expected `{0}` in single quotes, since it stands for itself here and nothing more")]
    Unquoted(char),
    /// A quote has no end.
    #[error("expected a closing `'`")]
    UnclosedQuote,
    /// A hole has no end.
    #[error("expected a closing `>`")]
    UnclosedHole,
    /// The text between angle brackets is not a hole.
    #[error(transparent)]
    Hole(#[from] HoleError),
    /// `<` is followed by something else than a hole or ` stdin`.
    #[error(
        "expected a hole as in `<unit>`, or `< stdin` at the very end; a literal `<` is written in quotes"
    )]
    BareAngle,
    /// Two holes stand side by side, as in `<a><b>`.
    #[error("expected literal text between two holes")]
    AdjacentHoles,
    /// A token has more holes than [`MAX_HOLES`].
    #[error("expected at most {MAX_HOLES} holes in a token")]
    TooManyHoles,
    /// `<arg>` is only a part of a token, as in `x=<arg>`.
    #[error("expected `<arg>` to be a token by itself")]
    ArgInToken,
    /// `<arg>` stands where the program still reads options.
    #[error(
        "expected `--`, or a hole that follows no option, before `<arg>`: it could be read as an option here"
    )]
    ArgBeforeOperand,
    /// There is no program, or a hole or a group stands in its place.
    #[error("expected a program: a name of letters, digits, `.`, `_`, `+`, `-`, or an absolute path")]
    Program,
    /// The value of a variable has a hole or `...`.
    #[error("expected the one value that `{0}` has, without holes or `...`")]
    VariableValue(String),
    /// A variable is there twice.
    #[error("expected `{0}` once")]
    VariableTwice(String),
    /// The variable decides which code runs.
    #[error("expected no `{0}`: it decides which code a program loads")]
    VariablePower(String),
    /// A group is empty, as `[]` or `(|a)`.
    #[error("expected at least one token in a group")]
    EmptyGroup,
    /// A group has no end.
    #[error("expected a closing `{0}`")]
    UnclosedGroup(char),
    /// A `]`, `)` or `|` has no beginning.
    #[error("expected no `{0}` here; in single quotes it is literal (alternatives are written `(a|b)`)")]
    Unopened(char),
    /// A group touches a token, as in `a[b]` or `[a]b`.
    #[error(
        "expected a blank: groups and `...` stand around whole tokens; a literal bracket or `...` is written in quotes"
    )]
    NoBlank,
    /// There is no item before `...`.
    #[error("expected a token or a group right before `...`")]
    NothingToRepeat,
}

#[cfg(test)]
mod tests;
