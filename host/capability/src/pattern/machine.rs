//! A pattern as a machine that reads one argument at a time, after Thompson: it keeps the set of all states
//! that are possible, so that no argv makes it go back.

mod inclusion;

use super::token::Part;
use super::{HoleType, Item, MAX_STATES, Match, Token};

#[derive(Debug, Clone)]
pub(super) struct Machine {
    states: Vec<State>,
    start: usize,
}

#[derive(Debug, Clone)]
enum State {
    /// Everything is accounted for.
    End,
    /// Reads one argument.
    Token(Token, usize),
    /// Goes on in two places; the first is preferred.
    Split(usize, usize),
}

/// A reading of the argv so far: the state it has come to, and the last of its steps.
struct Reading {
    state: usize,
    last: Option<usize>,
}

/// A step of a reading: which state took an argument, and the step before it. Readings share their
/// beginnings.
struct Step {
    state: usize,
    before: Option<usize>,
}

impl Machine {
    /// Builds the machine from its end backwards; `None` where it would need too many states.
    pub(super) fn new(items: &[Item]) -> Option<Machine> {
        let mut machine = Machine { states: vec![State::End], start: 0 };
        machine.start = machine.sequence(items, 0)?;
        debug_assert!(machine.states.len() <= MAX_STATES);
        Some(machine)
    }

    fn push(&mut self, state: State) -> Option<usize> {
        self.states.push(state);
        (self.states.len() <= MAX_STATES).then_some(self.states.len() - 1)
    }

    fn sequence(&mut self, items: &[Item], next: usize) -> Option<usize> {
        items.iter().rev().try_fold(next, |next, item| self.item(item, next))
    }

    fn item(&mut self, item: &Item, next: usize) -> Option<usize> {
        match item {
            Item::Token(token) => self.push(State::Token(token.clone(), next)),
            Item::Optional(items) => {
                let body = self.sequence(items, next)?;
                self.push(State::Split(body, next))
            }
            Item::Alternatives(ways) => {
                let mut ways = ways.iter().rev();
                let mut start = self.sequence(ways.next()?, next)?;
                for way in ways {
                    let way = self.sequence(way, next)?;
                    start = self.push(State::Split(way, start))?;
                }
                Some(start)
            }
            Item::Repeat(item) => {
                let again = self.push(State::Split(next, next))?;
                let body = self.item(item, again)?;
                self.states[again] = State::Split(body, next);
                Some(body)
            }
        }
    }

    /// Reads an argv; the match is the preferred reading.
    pub(super) fn run(&self, args: &[String]) -> Option<Match> {
        let mut steps: Vec<Step> = Vec::new();
        let mut seen = vec![usize::MAX; self.states.len()];
        let mut readings = Vec::new();
        self.enter(self.start, None, 0, &mut seen, &mut readings);
        for (at, arg) in args.iter().enumerate() {
            let mut next_readings = Vec::new();
            for Reading { state, last } in readings {
                if let State::Token(token, next) = &self.states[state]
                    && seen[*next] != at + 1
                    && token.matches(arg)
                {
                    steps.push(Step { state, before: last });
                    self.enter(*next, Some(steps.len() - 1), at + 1, &mut seen, &mut next_readings);
                }
            }
            // What makes the time linear: for one argument no state is read from twice.
            debug_assert!(next_readings.len() <= self.states.len());
            debug_assert!(steps.len() <= self.states.len() * (at + 1));
            readings = next_readings;
        }
        let end = readings.into_iter().find(|reading| matches!(self.states[reading.state], State::End))?;
        Some(self.values(args, &steps, end.last))
    }

    /// Adds the states that can be reached from one without reading, each once in a round.
    fn enter(
        &self,
        state: usize,
        last: Option<usize>,
        round: usize,
        seen: &mut [usize],
        readings: &mut Vec<Reading>,
    ) {
        let mut waiting = vec![state];
        while let Some(state) = waiting.pop() {
            if std::mem::replace(&mut seen[state], round) == round {
                continue;
            }
            match self.states[state] {
                State::Split(first, second) => waiting.extend([second, first]),
                _ => readings.push(Reading { state, last }),
            }
        }
    }

    /// Follows a reading from its last step back, and collects what its holes took.
    fn values(&self, args: &[String], steps: &[Step], mut last: Option<usize>) -> Match {
        let mut holes: Vec<(HoleType, String)> = Vec::new();
        let mut redacted = Vec::new();
        let mut args = args.iter().enumerate().rev();
        while let (Some(step), Some((at, arg))) = (last, args.next()) {
            let Step { state, before } = &steps[step];
            if let State::Token(token, _) = &self.states[*state] {
                redacted.extend(token.without_secrets(arg).map(|shown| (at, shown)));
                let values = token.values(arg).unwrap_or_default();
                holes.extend(values.into_iter().rev().map(|(hole, value)| (hole.clone(), value.to_owned())));
            }
            last = *before;
        }
        holes.reverse();
        redacted.reverse();
        Match { holes, redacted }
    }

    /// The column of an `<arg>` that some argv reaches while the program may still be reading options.
    ///
    /// Walks the states with what is known on the way to each until nothing changes, which it does at most
    /// twice for a state.
    pub(super) fn arg_before_operand(&self) -> Option<usize> {
        let mut known: Vec<Option<Known>> = vec![None; self.states.len()];
        let mut waiting = vec![(self.start, Known { operand: false, after_option: false })];
        while let Some((state, now)) = waiting.pop() {
            let merged = known[state].map_or(now, |before| before.merge(now));
            if known[state] == Some(merged) {
                continue;
            }
            known[state] = Some(merged);
            match &self.states[state] {
                State::End => {}
                State::Split(first, second) => waiting.extend([(*first, merged), (*second, merged)]),
                State::Token(token, next) => {
                    if token.is_arg() && !merged.operand {
                        return Some(token.column());
                    }
                    waiting.push((*next, merged.after(token)));
                }
            }
        }
        None
    }
}

/// What holds on every way to a state.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Known {
    /// `--` or an operand has come on every way: the program reads no more options.
    operand: bool,
    /// On some way the last token was an option whose value the next one may be; `--name=value` has its own.
    after_option: bool,
}

impl Known {
    fn merge(self, other: Known) -> Known {
        Known {
            operand: self.operand && other.operand,
            after_option: self.after_option || other.after_option,
        }
    }

    fn after(self, token: &Token) -> Known {
        if token.literal() == Some("--") {
            return Known { operand: true, after_option: false };
        }
        let (is_option, has_value) = match token.parts().first() {
            Some(Part::Literal(text)) => (
                text.starts_with('-') && token.literal() != Some("-"),
                text.starts_with("--") && text.contains('='),
            ),
            Some(Part::Hole(hole)) => (hole.may_begin_with_a_dash(), false),
            None => (false, false),
        };
        // A literal alone may be a subcommand, which options may follow.
        let is_operand = !is_option && !self.after_option && token.literal().is_none();
        Known { operand: self.operand || is_operand, after_option: is_option && !has_value }
    }
}
