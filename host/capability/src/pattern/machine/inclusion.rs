//! Whether one machine accepts everything that another one does.
//!
//! The other machine is walked, and with each of its states goes the set of all states that this one may be
//! in by then: whatever is read next, one of them has to take. A token counts as taken only where this
//! machine has a single token for all of its arguments, so that a "no" may be wrong and a "yes" isn't.

use std::collections::HashSet;

use super::super::token::{Part, Token};
use super::{HoleType, Machine, State};

/// How many pairs of a state and a set are looked at. Sets can be exponentially many; patterns that people
/// write come to a few dozen.
const MAX_PAIRS: usize = 4096;

/// For each state whether it is in the set.
type States = Vec<bool>;

impl Machine {
    /// Whether every argv that the other one accepts is accepted by this one too. Where that can't be told
    /// within a bounded time, the answer is no.
    pub(in super::super) fn covers(&self, other: &Machine) -> bool {
        let takers: Vec<Vec<usize>> = other.states.iter().map(|state| self.takers(state)).collect();
        let mut seen: HashSet<(usize, States)> = HashSet::new();
        let mut waiting = vec![(other.start, self.closure([self.start]))];
        while let Some((state, own)) = waiting.pop() {
            if !seen.insert((state, own.clone())) {
                continue;
            }
            if seen.len() > MAX_PAIRS {
                return false;
            }
            match &other.states[state] {
                State::End
                    if !self.states.iter().zip(&own).any(|(s, may)| *may && matches!(s, State::End)) =>
                {
                    return false;
                }
                State::End => {}
                State::Split(first, second) => waiting.extend([(*first, own.clone()), (*second, own)]),
                State::Token(_, next) => {
                    let taking = takers[state].iter().filter(|taker| own[**taker]);
                    let after: Vec<usize> = taking.filter_map(|taker| self.after(*taker)).collect();
                    if after.is_empty() {
                        return false;
                    }
                    waiting.push((*next, self.closure(after)));
                }
            }
        }
        true
    }

    /// The states that take every argument which the other machine's state takes.
    fn takers(&self, other: &State) -> Vec<usize> {
        let State::Token(other, _) = other else { return Vec::new() };
        let takes = |state: &State| matches!(state, State::Token(token, _) if token_covers(token, other));
        (0..self.states.len()).filter(|at| takes(&self.states[*at])).collect()
    }

    fn after(&self, state: usize) -> Option<usize> {
        match &self.states[state] {
            State::Token(_, next) => Some(*next),
            _ => None,
        }
    }

    /// These states and all that can be reached from them without reading.
    fn closure(&self, from: impl IntoIterator<Item = usize>) -> States {
        let mut reached = vec![false; self.states.len()];
        let mut waiting: Vec<usize> = from.into_iter().collect();
        while let Some(state) = waiting.pop() {
            if !std::mem::replace(&mut reached[state], true)
                && let State::Split(first, second) = self.states[state]
            {
                waiting.extend([second, first]);
            }
        }
        reached
    }
}

/// Whether every argument that the other token takes is taken by this one: a literal that fits, or holes
/// that cover the other's between the same literals, where the argument is divided at the same places.
///
/// A path that is written out is covered by no hole: a hole's value is asked for again where it leads on the
/// target, a literal never is.
fn token_covers(token: &Token, other: &Token) -> bool {
    if let Some(text) = other.literal() {
        let values = token.values(text);
        return values
            .is_some_and(|values| !values.iter().any(|(hole, _)| matches!(hole, HoleType::Path(_))));
    }
    token.parts().len() == other.parts().len()
        && token.parts().iter().zip(other.parts()).all(|parts| match parts {
            (Part::Literal(text), Part::Literal(other)) => text == other,
            (Part::Hole(hole), Part::Hole(other)) => hole.covers(other),
            _ => false,
        })
}

#[cfg(test)]
mod tests;
