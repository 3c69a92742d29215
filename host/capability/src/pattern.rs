//! A grant is a command line with typed holes.
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
//! Items stand apart by blanks. `...` means "one or more", so `[x]...` means any number. A group stands
//! around whole tokens, never within one: `--color=(a|b)` is written `(--color=a|--color=b)`.
//!
//! Bare text is printable ASCII without `< > [ ] ( ) | '` (the grammar's own) and without `" \ $ ; & * ?`
//! and the backtick: elsewhere those mean something, here they would stand for themselves, and who reads
//! a grant shouldn't have to guess. In quotes they may stand. `''` is the empty argument.
//!
//! # What a match means
//!
//! Every token of the argv is accounted for by one token of the pattern, in order. A literal is exactly its
//! text, and a hole takes what its [type](HoleType) accepts. Nothing is joined, split or expanded.
//!
//! Where an argv can be read in two ways, the reading that takes optional and repeated items first is the
//! one that a [`Match`] reports.
//!
//! Several holes may share a token with literals between them (`<user>:<group>`). Such a token is divided
//! only where that can be done in one way, and no value may hold one of the separators: the program divides
//! by rules of its own, from the left or from the right, and would otherwise see other values than those
//! that were checked.
//!
//! `<arg>` is a token by itself and stands only where the program has stopped reading options: after `--`,
//! or after an operand that is a hole. A hole behind an option isn't one, since it may be the option's value
//! (`--user <user>`; `--user=<user>` leaves no doubt).
//!
//! # Cost
//!
//! Patterns have at most [`MAX_PATTERN`] bytes, [`MAX_DEPTH`] groups in each other, [`MAX_STATES`] states
//! and [`MAX_HOLES`] holes in a token. Matching walks the set of states that are possible, so it takes
//! time linear in the argv, whatever the pattern.

mod machine;
mod parse;
#[cfg(any(test, feature = "fuzzing"))]
pub mod sample;
mod token;

use std::fmt;

use super::hole::{HoleError, HoleType};
use machine::Machine;
pub use token::{Part, Token};

/// The longest pattern, in bytes.
pub const MAX_PATTERN: usize = 4096;
/// How many groups may stand in each other.
pub const MAX_DEPTH: usize = 8;
/// How many states a pattern may come to; a token is one, a group one for each way through it.
pub const MAX_STATES: usize = 1024;
/// How many holes may share a token.
pub const MAX_HOLES: usize = 4;
/// The longest argv that is looked at, in arguments.
pub const MAX_ARGS: usize = 4096;

/// A command line with typed holes.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    variables: Vec<(String, String)>,
    program: String,
    items: Vec<Item>,
    stdin: bool,
    machine: Machine,
}

/// What a pattern says after its program, as a tree: for those who show it or translate it (into a sudoers
/// rule, say).
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
    /// Reads a pattern. Takes time linear in the text.
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        let parsed = parse::parse(text)?;
        let machine =
            Machine::new(&parsed.items).ok_or(PatternError { column: 1, fault: Fault::TooManyStates })?;
        if let Some(column) = machine.arg_before_operand() {
            return Err(PatternError { column, fault: Fault::ArgBeforeOperand });
        }
        Ok(Pattern {
            text: text.to_owned(),
            variables: parsed.variables,
            program: parsed.program,
            items: parsed.items,
            stdin: parsed.stdin,
            machine,
        })
    }

    /// The pattern as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The program: a bare name to be found in the fixed PATH, or an absolute path.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// The variables in front of the program, each with the one value it must have.
    pub fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    /// Whether standard input is allowed.
    pub fn stdin(&self) -> bool {
        self.stdin
    }

    /// What follows the program.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Every hole, wherever it stands.
    pub fn holes(&self) -> impl Iterator<Item = &HoleType> {
        fn collect<'a>(items: &'a [Item], holes: &mut Vec<&'a HoleType>) {
            for item in items {
                match item {
                    Item::Token(token) => holes.extend(token.parts().iter().filter_map(|part| match part {
                        Part::Hole(hole) => Some(hole),
                        Part::Literal(_) => None,
                    })),
                    Item::Optional(items) => collect(items, holes),
                    Item::Alternatives(ways) => ways.iter().for_each(|items| collect(items, holes)),
                    Item::Repeat(item) => collect(std::slice::from_ref(item), holes),
                }
            }
        }
        let mut holes = Vec::new();
        collect(&self.items, &mut holes);
        holes.into_iter()
    }

    /// Whether every whole command that the other pattern allows is allowed by this one too.
    ///
    /// A yes is certain. A no may mean that it is beyond what is looked into: an argument for which several
    /// tokens of this pattern would be needed, or more combinations than can be tried in a bounded time.
    pub fn covers(&self, other: &Pattern) -> bool {
        let same_env = self.variables.len() == other.variables.len()
            && other.variables.iter().all(|variable| self.variables.contains(variable));
        let may = self.program == other.program && same_env && (self.stdin || !other.stdin);
        may && (self.text == other.text || self.machine.covers(&other.machine))
    }

    /// Matches the arguments after the program. The program, the environment and standard input are the
    /// caller's to compare; [`Pattern::allows`] does it all.
    pub fn matches(&self, args: &[String]) -> Option<Match> {
        (args.len() <= MAX_ARGS).then(|| self.machine.run(args)).flatten()
    }

    /// Matches a whole command: this program by this name, these arguments, just these variables in any
    /// order, and standard input only where the pattern ends in `< stdin`.
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

/// What an argv put into a pattern's holes.
#[derive(Clone, PartialEq, Eq)]
pub struct Match {
    /// Every value with its hole, in the order of the argv.
    pub holes: Vec<(HoleType, String)>,
    /// The arguments that have a secret in them: which of the argv, and how it may be shown.
    pub redacted: Vec<(usize, String)>,
}

impl Match {
    /// The values of path holes. They were checked as text; after symlinks are resolved on the target, what
    /// they lead to is to be checked again by [`HoleType::accepts`].
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

/// Why a text is no pattern, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {fault}")]
pub struct PatternError {
    /// Where in the text, counted in characters from 1.
    pub column: usize,
    /// What was expected there.
    pub fault: Fault,
}

/// What was expected at some place in a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Longer than [`MAX_PATTERN`].
    #[error("expected at most {MAX_PATTERN} bytes")]
    TooLong,
    /// More than [`MAX_STATES`].
    #[error("expected fewer tokens and groups: this pattern has more than {MAX_STATES} states")]
    TooManyStates,
    /// Deeper than [`MAX_DEPTH`].
    #[error("expected at most {MAX_DEPTH} groups in each other")]
    TooDeep,
    /// A control, bidirectional or invisible character.
    #[error("expected visible text, found {}", .0.escape_unicode())]
    Hidden(char),
    /// A character that is literal only in quotes.
    #[error("expected `{0}` in single quotes, since it stands for itself here and nothing more")]
    Unquoted(char),
    /// A quote without its end.
    #[error("expected a closing `'`")]
    UnclosedQuote,
    /// A hole without its end.
    #[error("expected a closing `>`")]
    UnclosedHole,
    /// Something between angle brackets that is no hole.
    #[error(transparent)]
    Hole(#[from] HoleError),
    /// `<` with anything else behind it.
    #[error(
        "expected a hole as in `<unit>`, or `< stdin` at the very end; a literal `<` is written in quotes"
    )]
    BareAngle,
    /// `<a><b>`
    #[error("expected literal text between two holes")]
    AdjacentHoles,
    /// More than [`MAX_HOLES`].
    #[error("expected at most {MAX_HOLES} holes in a token")]
    TooManyHoles,
    /// `x=<arg>`
    #[error("expected `<arg>` to be a token by itself")]
    ArgInToken,
    /// `<arg>` where the program still reads options.
    #[error(
        "expected `--`, or a hole that follows no option, before `<arg>`: it could be read as an option here"
    )]
    ArgBeforeOperand,
    /// No program, or a hole or a group in its place.
    #[error("expected a program: a name of letters, digits, `.`, `_`, `+`, `-`, or an absolute path")]
    Program,
    /// `NAME=<hole>`, or with `...`.
    #[error("expected the one value that `{0}` has, without holes or `...`")]
    VariableValue(String),
    /// The same name twice.
    #[error("expected `{0}` once")]
    VariableTwice(String),
    /// A variable that decides which code runs.
    #[error("expected no `{0}`: it decides which code a program loads")]
    VariablePower(String),
    /// `[]`, `(|a)`
    #[error("expected at least one token in a group")]
    EmptyGroup,
    /// A group that isn't closed.
    #[error("expected a closing `{0}`")]
    UnclosedGroup(char),
    /// `]`, `)` or `|` without its beginning.
    #[error("expected no `{0}` here; in single quotes it is literal (alternatives are written `(a|b)`)")]
    Unopened(char),
    /// `a[b]`, `[a]b`
    #[error(
        "expected a blank: groups and `...` stand around whole tokens; a literal bracket or `...` is written in quotes"
    )]
    NoBlank,
    /// `...` with nothing before it.
    #[error("expected a token or a group right before `...`")]
    NothingToRepeat,
}

#[cfg(test)]
mod tests;
