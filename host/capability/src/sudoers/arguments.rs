//! Translates a pattern's arguments into one expression over the text that sudo compares: all arguments joined by blanks.
//!
//! A blank stands between two arguments and nowhere else, so the expression of one of the two includes it. One argument
//! that can't be left out is the anchor, which includes no blank. Arguments before the anchor include the blank after them,
//! and arguments behind it the blank before them. Where all arguments can be left out, the first that is there is the anchor.

use regex_syntax::hir::Hir;

use super::expression::{literal, may_hold_a_blank, pieces, repeated, united, without};
use super::{Exactness, Refusal, holes};
use crate::HoleType;
use crate::pattern::{Item, Part, Pattern, Token};

/// The greatest number of tokens. With more of them, even of one letter, the expression would be too long for sudo.
const MAX_TOKENS: usize = 256;
/// The greatest number of items side by side that can all be left out. The expression has a copy for each item that may
/// be the first.
const MAX_ALL_OPTIONAL: usize = 16;

/// The arguments of a command in sudoers.
#[derive(Default)]
pub(super) struct Arguments {
    /// True where a command without arguments is allowed. An expression for it would match one empty argument as well.
    may_be_none: bool,
    /// The expressions for at least one argument, none of them too long.
    expressions: Vec<Hir>,
    /// Remarks for the operator.
    pub(super) notes: Vec<&'static str>,
}

impl Arguments {
    /// Allows what other arguments of the same program allow. Their notes stay with them.
    pub(super) fn extend(&mut self, other: Self) {
        self.may_be_none |= other.may_be_none;
        self.expressions.extend(other.expressions);
    }

    /// The alternatives as they stand in a sudoers file: `""` for no arguments, or expressions.
    pub(super) fn texts(&self) -> Vec<String> {
        let none = self.may_be_none.then(|| "\"\"".to_owned());
        none.into_iter().chain(united(&self.expressions)).collect()
    }
}

/// Translates what follows the program in a pattern.
pub(super) fn arguments(pattern: &Pattern, exactness: Exactness) -> Result<Arguments, Refusal> {
    let items = pattern.items();
    let tokens: Vec<&Token> = pattern.tokens().collect();
    if tokens.len() > MAX_TOKENS {
        return Err(Refusal::TooLong);
    }
    // dd takes operands by their names, in any order: a path `/a of=/b` behind `if=` would be two operands.
    if pattern.program() == "dd" {
        for token in &tokens {
            if may_hold_a_blank(&argument(token, exactness)?) {
                return Err(Refusal::Blank);
            }
        }
    }
    let mut expressions = Vec::new();
    if !items.is_empty() {
        let expression = joined(items, exactness)?;
        if expression.properties().minimum_len() == Some(0) {
            return Err(Refusal::EmptyArgument);
        }
        expressions = pieces(&expression).ok_or(Refusal::TooLong)?;
    }
    let may_be_none = items.iter().all(may_be_left_out);
    Ok(Arguments { may_be_none, expressions, notes: notes(&tokens, exactness)? })
}

fn notes(tokens: &[&Token], exactness: Exactness) -> Result<Vec<&'static str>, Refusal> {
    let mut notes = Vec::new();
    for token in tokens {
        let note = if may_hold_a_blank(&argument(token, exactness)?) {
            "not exact: what has a blank in it may also be given as several arguments"
        } else if token.parts().iter().any(is_free_text) {
            "narrower than the grant: no text with blanks, since those would let further arguments in"
        } else {
            continue;
        };
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    Ok(notes)
}

fn is_free_text(part: &Part) -> bool {
    matches!(part, Part::Hole(HoleType::Text | HoleType::Secret | HoleType::Arg))
}

fn may_be_left_out(item: &Item) -> bool {
    match item {
        Item::Token(_) => false,
        Item::Optional(_) => true,
        Item::Alternatives(ways) => ways.iter().any(|way| way.iter().all(may_be_left_out)),
        Item::Repeat(item) => may_be_left_out(item),
    }
}

/// The side of an argument on which its blank is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blank {
    Before,
    After,
}

/// An expression for at least one argument, with blanks only between arguments.
fn joined(items: &[Item], exactness: Exactness) -> Result<Hir, Refusal> {
    let from = |anchor: usize| -> Result<Hir, Refusal> {
        Ok(Hir::concat(vec![
            joined_item(&items[anchor], exactness)?,
            sequence(&items[anchor + 1..], Blank::Before, exactness)?,
        ]))
    };
    if let Some(anchor) = items.iter().position(|item| !may_be_left_out(item)) {
        return Ok(Hir::concat(vec![sequence(&items[..anchor], Blank::After, exactness)?, from(anchor)?]));
    }
    if items.len() > MAX_ALL_OPTIONAL {
        return Err(Refusal::TooLong);
    }
    Ok(Hir::alternation((0..items.len()).map(from).collect::<Result<_, _>>()?))
}

fn joined_item(item: &Item, exactness: Exactness) -> Result<Hir, Refusal> {
    match item {
        Item::Token(token) => argument(token, exactness),
        Item::Optional(items) => joined(items, exactness),
        Item::Alternatives(ways) => {
            Ok(Hir::alternation(ways.iter().map(|way| joined(way, exactness)).collect::<Result<_, _>>()?))
        }
        Item::Repeat(item) => {
            Ok(Hir::concat(vec![joined_item(item, exactness)?, times(item, 0, Blank::Before, exactness)?]))
        }
    }
}

/// An expression for arguments that each bring a blank; there may be none.
fn sequence(items: &[Item], blank: Blank, exactness: Exactness) -> Result<Hir, Refusal> {
    Ok(Hir::concat(items.iter().map(|item| beside(item, blank, exactness)).collect::<Result<_, _>>()?))
}

fn beside(item: &Item, blank: Blank, exactness: Exactness) -> Result<Hir, Refusal> {
    Ok(match item {
        Item::Token(token) => match blank {
            Blank::Before => Hir::concat(vec![literal(" "), argument(token, exactness)?]),
            Blank::After => Hir::concat(vec![argument(token, exactness)?, literal(" ")]),
        },
        Item::Optional(items) => repeated(sequence(items, blank, exactness)?, 0, Some(1)),
        Item::Alternatives(ways) => Hir::alternation(
            ways.iter().map(|way| sequence(way, blank, exactness)).collect::<Result<_, _>>()?,
        ),
        Item::Repeat(item) => times(item, 1, blank, exactness)?,
    })
}

fn times(item: &Item, min: u32, blank: Blank, exactness: Exactness) -> Result<Hir, Refusal> {
    Ok(match item {
        Item::Optional(items) => repeated(sequence(items, blank, exactness)?, 0, None),
        item => repeated(beside(item, blank, exactness)?, min, None),
    })
}

/// An expression for one argument. Where several holes share it, no value may hold the first character of a separator,
/// so that there is only one way to divide the argument, as the grant demands.
fn argument(token: &Token, exactness: Exactness) -> Result<Hir, Refusal> {
    let between = token.parts().windows(3).filter_map(|parts| match parts {
        [Part::Hole(_), Part::Literal(text), Part::Hole(_)] => text.chars().next(),
        _ => None,
    });
    let separators: Vec<char> = between.collect();
    let part = |part: &Part| match part {
        Part::Literal(text) => Ok(literal(text)),
        Part::Hole(hole) => {
            without(&holes::expression(hole, exactness)?, &separators).ok_or(Refusal::Inseparable)
        }
    };
    Ok(Hir::concat(token.parts().iter().map(part).collect::<Result<_, _>>()?))
}
