//! A pattern as a nondeterministic automaton, after Thompson. It reads one argument at a time and keeps the set of all
//! possible states, so it never has to go back.

mod inclusion;

use super::token::Part;
use super::{HoleType, Item, MAX_STATES, Match, Token};

#[derive(Debug, Clone)]
pub(super) struct Nfa {
    states: Vec<State>,
    start: usize,
}

#[derive(Debug, Clone)]
enum State {
    /// Every argument is accounted for.
    End,
    /// The state reads one argument.
    Token(Token, usize),
    /// The automaton goes on in two states; the first is preferred.
    Split(usize, usize),
}

/// How far arguments can be read, for a message about those that don't match.
pub(crate) struct Progress<'a> {
    /// The number of arguments that some way through the pattern reads.
    pub(crate) read: usize,
    /// The tokens of which one could come next.
    pub(crate) expected: Vec<&'a Token>,
    /// Whether the arguments could end there.
    pub(crate) may_end: bool,
}

/// One way to read the arguments so far: the state that it has reached, and its last step.
struct Thread {
    state: usize,
    last: Option<usize>,
}

/// A step of a thread: the state that took an argument, and the step before it. Threads share their beginnings.
struct Step {
    state: usize,
    before: Option<usize>,
}

impl Nfa {
    /// Builds the automaton from its end backwards; `None` where it would need too many states.
    pub(super) fn new(items: &[Item]) -> Option<Nfa> {
        let mut nfa = Nfa { states: vec![State::End], start: 0 };
        nfa.start = nfa.sequence(items, 0)?;
        debug_assert!(nfa.states.len() <= MAX_STATES);
        Some(nfa)
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

    /// Reads the arguments; the match is the preferred way to read them.
    pub(super) fn run(&self, args: &[String]) -> Option<Match> {
        let mut steps: Vec<Step> = Vec::new();
        let mut seen = vec![usize::MAX; self.states.len()];
        let mut threads = Vec::new();
        self.enter(self.start, None, 0, &mut seen, &mut threads);
        for (at, arg) in args.iter().enumerate() {
            let mut next_threads = Vec::new();
            for Thread { state, last } in threads {
                if let State::Token(token, next) = &self.states[state]
                    && seen[*next] != at + 1
                    && token.matches(arg)
                {
                    steps.push(Step { state, before: last });
                    self.enter(*next, Some(steps.len() - 1), at + 1, &mut seen, &mut next_threads);
                }
            }
            // The time is linear because no state reads the same argument twice.
            debug_assert!(next_threads.len() <= self.states.len());
            debug_assert!(steps.len() <= self.states.len() * (at + 1));
            threads = next_threads;
        }
        let end = threads.into_iter().find(|reading| matches!(self.states[reading.state], State::End))?;
        Some(self.values(args, &steps, end.last))
    }

    /// Reads the arguments up to the first one that no way through the pattern reads.
    pub(super) fn progress(&self, args: &[String]) -> Progress<'_> {
        let mut seen = vec![usize::MAX; self.states.len()];
        let mut threads = Vec::new();
        self.enter(self.start, None, 0, &mut seen, &mut threads);
        let mut read = 0;
        for (at, arg) in args.iter().enumerate() {
            let mut next_threads = Vec::new();
            for thread in &threads {
                if let State::Token(token, next) = &self.states[thread.state]
                    && seen[*next] != at + 1
                    && token.matches(arg)
                {
                    self.enter(*next, None, at + 1, &mut seen, &mut next_threads);
                }
            }
            if next_threads.is_empty() {
                break;
            }
            read = at + 1;
            threads = next_threads;
        }
        let states = threads.iter().map(|thread| &self.states[thread.state]);
        let may_end = states.clone().any(|state| matches!(state, State::End));
        let tokens = states.filter_map(|state| match state {
            State::Token(token, _) => Some(token),
            State::End | State::Split(..) => None,
        });
        Progress { read, expected: tokens.collect(), may_end }
    }

    /// Adds the states that are reachable from one without reading an argument, each at most once per round.
    fn enter(
        &self,
        state: usize,
        last: Option<usize>,
        round: usize,
        seen: &mut [usize],
        threads: &mut Vec<Thread>,
    ) {
        let mut waiting = vec![state];
        while let Some(state) = waiting.pop() {
            if std::mem::replace(&mut seen[state], round) == round {
                continue;
            }
            match self.states[state] {
                State::Split(first, second) => waiting.extend([second, first]),
                _ => threads.push(Thread { state, last }),
            }
        }
    }

    /// Follows a thread from its last step back, and collects the values of its holes.
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

    /// The column of an `<arg>` that can be reached while the program may still read options.
    ///
    /// It propagates what is known on the ways to each state until nothing changes. Each state changes at most twice.
    pub(super) fn arg_before_operand(&self) -> Option<usize> {
        let mut known: Vec<Option<OptionState>> = vec![None; self.states.len()];
        let mut waiting = vec![(self.start, OptionState { operand: false, after_option: false })];
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

/// The facts that hold on every way to a state.
#[derive(Clone, Copy, PartialEq, Eq)]
struct OptionState {
    /// `--` or an operand has come on every way, so the program reads no more options.
    operand: bool,
    /// On some way the last token was an option, and the next one may be its value. `--name=value` has its own value.
    after_option: bool,
}

impl OptionState {
    fn merge(self, other: OptionState) -> OptionState {
        OptionState {
            operand: self.operand && other.operand,
            after_option: self.after_option || other.after_option,
        }
    }

    fn after(self, token: &Token) -> OptionState {
        if token.literal() == Some("--") {
            return OptionState { operand: true, after_option: false };
        }
        let (is_option, has_value) = match token.parts().first() {
            Some(Part::Literal(text)) => (
                text.starts_with('-') && token.literal() != Some("-"),
                text.starts_with("--") && text.contains('='),
            ),
            Some(Part::Hole(hole)) => (hole.may_begin_with_a_dash(), false),
            None => (false, false),
        };
        // A literal may be a subcommand, and options may follow it.
        let is_operand = !is_option && !self.after_option && token.literal().is_none();
        OptionState { operand: self.operand || is_operand, after_option: is_option && !has_value }
    }
}
