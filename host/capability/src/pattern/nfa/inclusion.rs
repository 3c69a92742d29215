//! Whether one automaton accepts everything that another one accepts.
//!
//! The search walks the other automaton. With each of its states it keeps the set of all states that this one may be in, one
//! of which has to take whatever is read next. A token counts as taken only where a single token of this automaton takes all
//! of its arguments. Therefore a "no" may be wrong, and a "yes" never is.

use std::collections::HashSet;

use super::super::token::{Part, Token};
use super::{HoleType, Nfa, State};

/// The greatest number of pairs of a state and a set that are examined. There can be exponentially many sets; the
/// patterns that people write have a few dozen.
const MAX_PAIRS: usize = 4096;

/// A set of states: one bool for each state, true where the set has it.
type States = Vec<bool>;

impl Nfa {
    /// Whether every argument list that the other automaton accepts is accepted by this one as well. Where that can't
    /// be determined within a bounded time, the answer is no.
    pub(in super::super) fn covers(&self, other: &Nfa) -> bool {
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

    /// The states that take every argument which the other automaton's state takes.
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

    /// These states, and all that are reachable from them without reading an argument.
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

/// Whether this token takes every argument that the other token takes. The other one is a literal that fits, or its
/// holes are covered by this token's holes between the same literals, so that the argument is divided at the same
/// places.
///
/// No hole covers a path that is written out: for a hole's value the host checks again where it leads on the target,
/// for a literal never.
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
