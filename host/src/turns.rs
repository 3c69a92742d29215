//! Whose call is worked on next: so many at once over all targets, and no target's flood before another's few.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use host_base::problem::{Category, Problem};

/// Turns for calls: a bounded number at once, and a bounded number that wait.
///
/// A free turn goes to the target with the fewest calls running; of several to the one served longest ago; within a
/// target to the call that came first.
#[derive(Clone)]
pub struct Turns(Arc<Shared>);

/// The right to be worked on, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    shared: Arc<Shared>,
    target: Arc<str>,
}

/// Too many wait already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at_once} calls are being worked on and {waiting} wait; this one doesn't")]
pub struct Busy {
    at_once: usize,
    waiting: usize,
}

impl Busy {
    /// For whoever called.
    pub fn into_problem(self) -> Problem {
        Problem::new("SERVER_BUSY", Category::Resource, self.to_string())
    }
}

#[derive(Debug)]
struct Shared {
    most: Busy,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    waiting: usize,
    /// Counts arrivals and services alike, so that each has a number of its own.
    clock: u64,
    /// Those with calls. While anybody waits those without stay, too: a target that came back as one never served
    /// would pass by who waits, again and again.
    targets: HashMap<Arc<str>, OfTarget>,
}

#[derive(Debug, Default)]
struct OfTarget {
    running: usize,
    served: u64,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    /// Takes the turn itself: where nobody is left to receive it, it is dropped, and so given on.
    turn: oneshot::Sender<Turn>,
}

impl Turns {
    /// `at_once` calls run, `waiting` more wait.
    pub fn new(at_once: usize, waiting: usize) -> Self {
        Self(Arc::new(Shared { most: Busy { at_once, waiting }, state: Mutex::default() }))
    }

    /// Waits for a turn, where not too many wait already. Dropping the future gives up the place.
    pub async fn take(&self, target: &str) -> Result<Turn, Busy> {
        let most = self.0.most;
        self.take_where(target, most.waiting).await.ok_or(most)
    }

    /// The same for a call that had one before: it doesn't hear that too many wait.
    pub async fn take_again(&self, target: &str) -> Option<Turn> {
        self.take_where(target, usize::MAX).await
    }

    async fn take_where(&self, target: &str, most_waiting: usize) -> Option<Turn> {
        let shared = &self.0;
        let target: Arc<str> = target.into();
        let mut place = {
            let mut state = shared.state();
            if state.running < shared.most.at_once {
                state.start(&target);
                return Some(Turn { shared: shared.clone(), target });
            }
            if state.waiting >= most_waiting {
                return None;
            }
            let (turn, receiver) = oneshot::channel();
            let number = state.queue(&target, turn);
            Place { shared, target, number, receiver }
        };
        // The sender goes nowhere without sending.
        (&mut place.receiver).await.ok()
    }
}

/// In the queue. Dropped, it leaves: a turn that came in that moment is dropped with the receiver.
struct Place<'a> {
    shared: &'a Shared,
    target: Arc<str>,
    number: u64,
    receiver: oneshot::Receiver<Turn>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.shared.state().leave(&self.target, self.number);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = {
            let mut state = self.shared.state();
            state.end(&self.target);
            state.next()
        };
        // Sent when the lock is free: a turn that nobody takes is dropped right here.
        if let Some((target, waiter)) = next {
            let _ = waiter.send(Self { shared: self.shared.clone(), target });
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn start(&mut self, target: &Arc<str>) {
        let now = self.tick();
        self.running += 1;
        let of_target = self.targets.entry(target.clone()).or_default();
        of_target.running += 1;
        of_target.served = now;
    }

    fn queue(&mut self, target: &Arc<str>, turn: oneshot::Sender<Turn>) -> u64 {
        let number = self.tick();
        self.waiting += 1;
        self.targets.entry(target.clone()).or_default().waiting.push_back(Waiter { number, turn });
        number
    }

    /// Takes a call out of the queue, where it still is in it.
    fn leave(&mut self, target: &str, number: u64) {
        let Some(of_target) = self.targets.get_mut(target) else { return };
        let before = of_target.waiting.len();
        of_target.waiting.retain(|waiter| waiter.number != number);
        self.waiting -= before - of_target.waiting.len();
        self.forget();
    }

    fn end(&mut self, target: &str) {
        self.running -= 1;
        if let Some(of_target) = self.targets.get_mut(target) {
            of_target.running -= 1;
        }
        self.forget();
    }

    /// The call whose turn it is; it counts as running from here on.
    fn next(&mut self) -> Option<(Arc<str>, oneshot::Sender<Turn>)> {
        let waits = self.targets.iter().filter_map(|(target, of_target)| {
            let first = of_target.waiting.front()?;
            Some(((of_target.running, of_target.served, first.number), target))
        });
        let target = waits.min().map(|(_, target)| target.clone())?;
        let waiter = self.targets.get_mut(&target)?.waiting.pop_front()?;
        self.waiting -= 1;
        self.start(&target);
        self.forget();
        Some((target, waiter.turn))
    }

    /// Where nobody waits, nobody can be passed by.
    fn forget(&mut self) {
        if self.waiting == 0 {
            self.targets.retain(|_, of_target| of_target.running > 0);
        }
    }
}

#[cfg(test)]
mod tests;
