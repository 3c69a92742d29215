//! A pattern's arguments as one expression over the text that sudo compares: all of them, joined by blanks.
//!
//! A blank stands between two arguments and nowhere else, so it belongs to one of them, and to which one depends
//! on what must be there: what is optional brings its own, before it where something comes first, after it
//! where something follows. So one argument that can't be left out is the anchor, which brings none.
//! Where all can be left out, the first that is there is the anchor.

use regex_syntax::hir::Hir;

use super::expression::{literal, may_hold_a_blank, repeated, texts, without};
use super::{Bound, Refusal, holes};
use crate::HoleType;
use crate::pattern::{Item, Part, Pattern, Token};

/// With more tokens, even of one letter, no expression is short enough to be of use.
const MAX_TOKENS: usize = 256;
/// How many items that can all be left out may stand side by side: there is a copy for each that may be first.
const MAX_ALL_OPTIONAL: usize = 16;

/// What the arguments of a command may be.
pub(super) struct Arguments {
    /// As in a sudoers file, any of them: `""` for none, or expressions.
    pub(super) texts: Vec<String>,
    /// What the operator should know about them.
    pub(super) notes: Vec<&'static str>,
}

/// Translates what follows the program.
pub(super) fn arguments(pattern: &Pattern, bound: Bound) -> Result<Arguments, Refusal> {
    let items = pattern.items();
    let mut tokens = Vec::new();
    collect(items, &mut tokens);
    if tokens.len() > MAX_TOKENS {
        return Err(Refusal::TooLong);
    }
    // It takes every operand for what its name says, in any order: `if=/a of=/b` as one path would be two orders.
    if pattern.program() == "dd" {
        for token in &tokens {
            if may_hold_a_blank(&argument(token, bound)?) {
                return Err(Refusal::Blank);
            }
        }
    }
    let mut all = Vec::new();
    if items.iter().all(may_be_left_out) {
        // As an expression, it would match one empty argument too.
        all.push("\"\"".to_owned());
    }
    if !items.is_empty() {
        let expression = joined(items, bound)?;
        if expression.properties().minimum_len() == Some(0) {
            return Err(Refusal::EmptyArgument);
        }
        all.extend(texts(&expression).ok_or(Refusal::TooLong)?);
    }
    Ok(Arguments { texts: all, notes: notes(&tokens, bound)? })
}

fn collect<'a>(items: &'a [Item], tokens: &mut Vec<&'a Token>) {
    for item in items {
        match item {
            Item::Token(token) => tokens.push(token),
            Item::Optional(items) => collect(items, tokens),
            Item::Alternatives(ways) => ways.iter().for_each(|way| collect(way, tokens)),
            Item::Repeat(item) => collect(std::slice::from_ref(item), tokens),
        }
    }
}

fn notes(tokens: &[&Token], bound: Bound) -> Result<Vec<&'static str>, Refusal> {
    let mut notes = Vec::new();
    for token in tokens {
        let note = if may_hold_a_blank(&argument(token, bound)?) {
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

/// On which side of an argument its blank is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blank {
    Before,
    After,
}

/// At least one argument, with blanks only between them.
fn joined(items: &[Item], bound: Bound) -> Result<Hir, Refusal> {
    let from = |anchor: usize| -> Result<Hir, Refusal> {
        Ok(Hir::concat(vec![
            joined_item(&items[anchor], bound)?,
            sequence(&items[anchor + 1..], Blank::Before, bound)?,
        ]))
    };
    if let Some(anchor) = items.iter().position(|item| !may_be_left_out(item)) {
        return Ok(Hir::concat(vec![sequence(&items[..anchor], Blank::After, bound)?, from(anchor)?]));
    }
    if items.len() > MAX_ALL_OPTIONAL {
        return Err(Refusal::TooLong);
    }
    Ok(Hir::alternation((0..items.len()).map(from).collect::<Result<_, _>>()?))
}

fn joined_item(item: &Item, bound: Bound) -> Result<Hir, Refusal> {
    match item {
        Item::Token(token) => argument(token, bound),
        Item::Optional(items) => joined(items, bound),
        Item::Alternatives(ways) => {
            Ok(Hir::alternation(ways.iter().map(|way| joined(way, bound)).collect::<Result<_, _>>()?))
        }
        Item::Repeat(item) => {
            Ok(Hir::concat(vec![joined_item(item, bound)?, times(item, 0, Blank::Before, bound)?]))
        }
    }
}

/// Arguments that each bring a blank; perhaps none.
fn sequence(items: &[Item], blank: Blank, bound: Bound) -> Result<Hir, Refusal> {
    Ok(Hir::concat(items.iter().map(|item| beside(item, blank, bound)).collect::<Result<_, _>>()?))
}

fn beside(item: &Item, blank: Blank, bound: Bound) -> Result<Hir, Refusal> {
    Ok(match item {
        Item::Token(token) => match blank {
            Blank::Before => Hir::concat(vec![literal(" "), argument(token, bound)?]),
            Blank::After => Hir::concat(vec![argument(token, bound)?, literal(" ")]),
        },
        Item::Optional(items) => repeated(sequence(items, blank, bound)?, 0, Some(1)),
        Item::Alternatives(ways) => {
            Hir::alternation(ways.iter().map(|way| sequence(way, blank, bound)).collect::<Result<_, _>>()?)
        }
        Item::Repeat(item) => times(item, 1, blank, bound)?,
    })
}

fn times(item: &Item, min: u32, blank: Blank, bound: Bound) -> Result<Hir, Refusal> {
    Ok(match item {
        Item::Optional(items) => repeated(sequence(items, blank, bound)?, 0, None),
        item => repeated(beside(item, blank, bound)?, min, None),
    })
}

/// One argument. Where several holes share it, no value may hold what a separator begins with: so there is
/// one way to divide it, as the grant demands.
fn argument(token: &Token, bound: Bound) -> Result<Hir, Refusal> {
    let between = token.parts().windows(3).filter_map(|parts| match parts {
        [Part::Hole(_), Part::Literal(text), Part::Hole(_)] => text.chars().next(),
        _ => None,
    });
    let separators: Vec<char> = between.collect();
    let part = |part: &Part| match part {
        Part::Literal(text) => Ok(literal(text)),
        Part::Hole(hole) => {
            without(&holes::expression(hole, bound)?, &separators).ok_or(Refusal::Inseparable)
        }
    };
    Ok(Hir::concat(token.parts().iter().map(part).collect::<Result<_, _>>()?))
}
