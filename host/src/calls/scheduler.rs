//! Decides which call runs next. A limited number of calls run at once over all targets, and many calls to one target
//! don't keep the few calls to another one waiting.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use host_base::problem::{Category, Problem};

/// Gives slots to calls. The number of calls that run is limited, and so is the number of those that wait.
///
/// A free slot goes to the target with the fewest calls that run; among several such targets to the one that was served
/// longest ago; within a target to the call that came first.
#[derive(Clone)]
pub struct Scheduler(Arc<Shared>);

/// The right to run, until it is dropped.
#[derive(Debug)]
pub struct Slot {
    shared: Arc<Shared>,
    target: Arc<str>,
}

/// The error of a call that finds too many calls waiting already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at_once} calls are being worked on and {waiting} wait; this one doesn't")]
pub struct SchedulerFull {
    at_once: usize,
    waiting: usize,
}

impl SchedulerFull {
    /// The error as the caller gets it.
    pub fn into_problem(self) -> Problem {
        Problem::new("SERVER_BUSY", Category::Resource, self.to_string())
    }
}

#[derive(Debug)]
struct Shared {
    limits: SchedulerFull,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    waiting: usize,
    /// Counts arrivals and starts alike, so that each has a number of its own.
    clock: u64,
    /// The targets that have calls. While any call waits, targets without calls stay as well: a target that came back
    /// as one never served would be served before the others again and again.
    targets: HashMap<Arc<str>, TargetQueue>,
}

#[derive(Debug, Default)]
struct TargetQueue {
    running: usize,
    last_served: u64,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    /// Carries the slot. Where nobody receives it any more, the slot is dropped, and so goes to the next call.
    sender: oneshot::Sender<Slot>,
}

impl Scheduler {
    /// Lets `at_once` calls run and `waiting` more calls wait.
    pub fn new(at_once: usize, waiting: usize) -> Self {
        Self(Arc::new(Shared { limits: SchedulerFull { at_once, waiting }, state: Mutex::default() }))
    }

    /// Waits for a slot, unless too many calls wait already. Dropping the future leaves the queue.
    pub async fn acquire(&self, target: &str) -> Result<Slot, SchedulerFull> {
        let limits = self.0.limits;
        self.acquire_within(target, limits.waiting).await.ok_or(limits)
    }

    /// Waits for a slot for a call that had one before, however many calls wait.
    pub async fn reacquire(&self, target: &str) -> Option<Slot> {
        self.acquire_within(target, usize::MAX).await
    }

    async fn acquire_within(&self, target: &str, max_waiting: usize) -> Option<Slot> {
        let shared = &self.0;
        let target: Arc<str> = target.into();
        let mut position = {
            let mut state = shared.state();
            if state.running < shared.limits.at_once {
                state.start(&target);
                return Some(Slot { shared: shared.clone(), target });
            }
            if state.waiting >= max_waiting {
                return None;
            }
            let (sender, receiver) = oneshot::channel();
            let number = state.enqueue(&target, sender);
            QueuePosition { shared, target, number, receiver }
        };
        // The sender is never dropped without sending.
        (&mut position.receiver).await.ok()
    }
}

/// A call's position in the queue. Dropping it leaves the queue; a slot that came in that moment is dropped with the
/// receiver.
struct QueuePosition<'a> {
    shared: &'a Shared,
    target: Arc<str>,
    number: u64,
    receiver: oneshot::Receiver<Slot>,
}

impl Drop for QueuePosition<'_> {
    fn drop(&mut self) {
        self.shared.state().dequeue(&self.target, self.number);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let next = {
            let mut state = self.shared.state();
            state.finish(&self.target);
            state.start_next()
        };
        // Sent while the lock is free: a slot that nobody receives is dropped right here, which takes the lock.
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
        let queue = self.targets.entry(target.clone()).or_default();
        queue.running += 1;
        queue.last_served = now;
    }

    fn enqueue(&mut self, target: &Arc<str>, sender: oneshot::Sender<Slot>) -> u64 {
        let number = self.tick();
        self.waiting += 1;
        self.targets.entry(target.clone()).or_default().waiting.push_back(Waiter { number, sender });
        number
    }

    /// Takes a call out of the queue, if it is still there.
    fn dequeue(&mut self, target: &str, number: u64) {
        let Some(queue) = self.targets.get_mut(target) else { return };
        let before = queue.waiting.len();
        queue.waiting.retain(|waiter| waiter.number != number);
        self.waiting -= before - queue.waiting.len();
        self.forget_idle_targets();
    }

    fn finish(&mut self, target: &str) {
        self.running -= 1;
        if let Some(queue) = self.targets.get_mut(target) {
            queue.running -= 1;
        }
        self.forget_idle_targets();
    }

    /// Takes the next call out of the queue, and counts it as running.
    fn start_next(&mut self) -> Option<(Arc<str>, oneshot::Sender<Slot>)> {
        let candidates = self.targets.iter().filter_map(|(target, queue)| {
            let first = queue.waiting.front()?;
            Some(((queue.running, queue.last_served, first.number), target))
        });
        let target = candidates.min().map(|(_, target)| target.clone())?;
        let waiter = self.targets.get_mut(&target)?.waiting.pop_front()?;
        self.waiting -= 1;
        self.start(&target);
        self.forget_idle_targets();
        Some((target, waiter.sender))
    }

    /// Forgets the targets that run no call, unless a call waits: their order doesn't matter then.
    fn forget_idle_targets(&mut self) {
        if self.waiting == 0 {
            self.targets.retain(|_, queue| queue.running > 0);
        }
    }
}

#[cfg(test)]
mod tests;
