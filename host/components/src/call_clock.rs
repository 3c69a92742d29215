//! The time that a call may take to look at the target. The clock is paused while a plan waits or runs.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// The clock of one call.
pub(super) struct CallClock {
    allowed: Duration,
    clock: Mutex<Clock>,
    resumed: Notify,
}

struct Clock {
    /// The moment at which the clock was last started. None while it is paused.
    since: Option<Instant>,
    used: Duration,
}

/// Keeps the clock paused until it is dropped.
pub(super) struct PausedClock<'a>(&'a CallClock);

impl CallClock {
    /// Starts a clock with this much time.
    pub(super) fn new(allowed: Duration) -> Self {
        let clock = Clock { since: Some(Instant::now()), used: Duration::ZERO };
        Self { allowed, clock: Mutex::new(clock), resumed: Notify::new() }
    }

    /// Pauses the clock.
    pub(super) fn pause(&self) -> PausedClock<'_> {
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = clock.since.take() {
            clock.used += since.elapsed();
        }
        PausedClock(self)
    }

    /// Waits until the time has run out.
    pub(super) async fn has_run_out(&self) {
        loop {
            let resumed = self.resumed.notified();
            match self.left() {
                Some(Duration::ZERO) => return,
                Some(left) => tokio::time::sleep(left).await,
                None => resumed.await,
            }
        }
    }

    /// The time that is left. None while the clock is paused.
    fn left(&self) -> Option<Duration> {
        let clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        let since = clock.since?;
        Some(self.allowed.saturating_sub(clock.used + since.elapsed()))
    }
}

impl Drop for PausedClock<'_> {
    fn drop(&mut self) {
        self.0.clock.lock().unwrap_or_else(PoisonError::into_inner).since = Some(Instant::now());
        self.0.resumed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn while_it_stands_still_the_time_is_never_over() {
        let time = CallClock::new(Duration::ZERO);
        assert!(time.has_run_out().now_or_never().is_some());
        let still = time.pause();
        assert!(time.has_run_out().now_or_never().is_none());
        drop(still);
        assert!(time.has_run_out().now_or_never().is_some());
    }

    #[tokio::test]
    async fn one_who_waits_hears_when_it_goes_on() {
        let time = CallClock::new(Duration::ZERO);
        let still = time.pause();
        tokio::join!(time.has_run_out(), async { drop(still) });
    }
}
