//! Frees the memory of modules that aren't called. The code of such a module is dropped, and its next call loads it
//! again.
//!
//! Memory grows when a module's code is loaded, so the other modules are checked at that time, and no timer is needed.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use host_base::faults;

/// The time without a call after which a module's code is dropped. Loading it again takes milliseconds.
const IDLE: Duration = Duration::from_secs(10);
/// The number of modules whose code is held at once. Of more, those go that were called least recently. Each takes some 3 MB,
/// and most sessions are about few of them.
const MOST: usize = 3;

/// Holds what a module needs to run.
pub(super) struct Slot<T>(Mutex<Option<Held<T>>>);

struct Held<T> {
    value: Arc<T>,
    used: Instant,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Slot<T> {
    /// The value, which counts as used now.
    pub(super) fn get(&self, now: Instant) -> Option<Arc<T>> {
        let mut held = self.lock();
        let held = held.as_mut()?;
        held.used = now;
        Some(held.value.clone())
    }

    /// Puts a value into the slot.
    pub(super) fn put(&self, value: T, now: Instant) -> Arc<T> {
        let value = Arc::new(value);
        *self.lock() = Some(Held { value: value.clone(), used: now });
        value
    }

    /// Drops a value that has not been used for a while. A running call keeps it until the call has ended.
    fn let_go_if_idle(&self, now: Instant) {
        let is_idle = |held: &Held<T>| now.saturating_duration_since(held.used) >= IDLE;
        // A fault point lets a test treat every value as idle.
        self.lock().take_if(|held| is_idle(held) || faults::pass(format_args!("keep-idle")).is_err());
    }

    fn used(&self) -> Option<Instant> {
        self.lock().as_ref().map(|held| held.used)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Held<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slots of all modules.
pub(super) struct Slots<T>(Mutex<Vec<Weak<Slot<T>>>>);

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Slots<T> {
    /// Adds a slot for one more module.
    pub(super) fn add(&self) -> Arc<Slot<T>> {
        let slot = Arc::new(Slot::default());
        self.lock().push(Arc::downgrade(&slot));
        slot
    }

    /// Drops the values that no call has used for a while, and as many others as it takes to make room for one more.
    pub(super) fn let_go_of_idle(&self, now: Instant) {
        let mut slots = self.lock();
        slots.retain(|slot| slot.upgrade().inspect(|slot| slot.let_go_if_idle(now)).is_some());
        let held = slots.iter().filter_map(Weak::upgrade).filter_map(|slot| Some((slot.used()?, slot)));
        let mut held: Vec<_> = held.collect();
        held.sort_by_key(|(used, _)| Reverse(*used));
        for (_, slot) in held.into_iter().skip(MOST - 1) {
            slot.lock().take();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Slot<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_used_for_a_while_is_let_go_and_what_is_in_use_stays() {
        let (slots, begin) = (Slots::default(), Instant::now());
        let (idle, used, gone) = (slots.add(), slots.add(), slots.add());
        idle.put("idle", begin);
        used.put("used", begin);
        drop(gone);
        let in_a_call = idle.get(begin).unwrap();
        slots.let_go_of_idle(begin + IDLE - Duration::from_secs(1));
        assert!(used.get(begin + IDLE).is_some());
        slots.let_go_of_idle(begin + IDLE);
        assert!(idle.get(begin + IDLE).is_none());
        assert!(used.get(begin + IDLE).is_some());
        assert_eq!(*in_a_call, "idle");
        assert_eq!(slots.lock().len(), 2, "a module that is gone has no slot");
        idle.put("again", begin + IDLE);
        slots.let_go_of_idle(begin + IDLE);
        assert!(idle.get(begin + IDLE).is_some());
    }

    #[test]
    fn of_too_many_those_go_that_were_used_least_recently() {
        let (slots, begin) = (Slots::default(), Instant::now());
        let all: Vec<_> = (0..MOST + 2).map(|_| slots.add()).collect();
        for (slot, after) in all.iter().zip(0..) {
            slot.put("held", begin + Duration::from_millis(after));
        }
        let later = begin + Duration::from_secs(1);
        assert!(all[0].get(later).is_some());
        slots.let_go_of_idle(later);
        let held: Vec<_> = all.iter().map(|slot| slot.used().is_some()).collect();
        let expected: Vec<_> = (0..MOST + 2).map(|number| number == 0 || number > 3).collect();
        assert_eq!(held, expected, "the one that was used again stays, and there is room for one more");
    }
}
