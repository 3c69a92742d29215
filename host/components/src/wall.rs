//! How long a call may look, by the clock on the wall: it stands still while a plan is on its way.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// The time of one call.
pub(super) struct WallTime {
    allowed: Duration,
    clock: Mutex<Clock>,
    goes_on: Notify,
}

struct Clock {
    /// Since the clock has last gone on; none while it stands still.
    since: Option<Instant>,
    used: Duration,
}

/// While this is held, no time passes.
pub(super) struct Standstill<'a>(&'a WallTime);

impl WallTime {
    /// Begins now.
    pub(super) fn new(allowed: Duration) -> Self {
        let clock = Clock { since: Some(Instant::now()), used: Duration::ZERO };
        Self { allowed, clock: Mutex::new(clock), goes_on: Notify::new() }
    }

    /// Stops the clock.
    pub(super) fn stands_still(&self) -> Standstill<'_> {
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = clock.since.take() {
            clock.used += since.elapsed();
        }
        Standstill(self)
    }

    /// Returns when the time is over.
    pub(super) async fn is_over(&self) {
        loop {
            let goes_on = self.goes_on.notified();
            match self.left() {
                Some(Duration::ZERO) => return,
                Some(left) => tokio::time::sleep(left).await,
                None => goes_on.await,
            }
        }
    }

    /// None while it stands still.
    fn left(&self) -> Option<Duration> {
        let clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        let since = clock.since?;
        Some(self.allowed.saturating_sub(clock.used + since.elapsed()))
    }
}

impl Drop for Standstill<'_> {
    fn drop(&mut self) {
        self.0.clock.lock().unwrap_or_else(PoisonError::into_inner).since = Some(Instant::now());
        self.0.goes_on.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn while_it_stands_still_the_time_is_never_over() {
        let time = WallTime::new(Duration::ZERO);
        assert!(time.is_over().now_or_never().is_some());
        let still = time.stands_still();
        assert!(time.is_over().now_or_never().is_none());
        drop(still);
        assert!(time.is_over().now_or_never().is_some());
    }

    #[tokio::test]
    async fn one_who_waits_hears_when_it_goes_on() {
        let time = WallTime::new(Duration::ZERO);
        let still = time.stands_still();
        tokio::join!(time.is_over(), async { drop(still) });
    }
}
