//! Tries again where a tool that only looks has failed. The host never makes a change twice.
//!
//! Only two kinds of failures are tried again, because they may pass by themselves: a failure of the network, with a longer
//! wait each time, and a timeout, once, with twice the time.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use host_base::Attempt;
use host_base::problem::{Category, Problem};
use host_gate::ProgressReporter;

/// The longest wait, however often it was doubled.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The rules by which the host tries again, as the operator configured them.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// The number of attempts after the first; 0 for none.
    pub max_retries: u32,
    /// The wait before the second attempt. Each next wait is twice as long.
    pub backoff: Duration,
    /// Whether the host reconnects within the call that finds the connection lost.
    pub reconnects: bool,
}

/// The number of times that the host tried again in one call, and the reason.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RetrySummary {
    /// The number of attempts after the first.
    pub retries: u32,
    /// The attempts that failed. Empty where the first attempt was the only one.
    pub failed: Vec<Attempt>,
}

/// The summary of a call that still runs.
#[derive(Default)]
pub struct RetryLog(Mutex<RetrySummary>);

impl RetryLog {
    /// The attempts so far.
    pub fn summary(&self) -> RetrySummary {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn update(&self, change: impl FnOnce(&mut RetrySummary)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Calls `look`, and calls it again as long as the policy allows it and `may_retry` says that nothing was changed. `look`
/// gets the factor by which it may take longer than usual. Dropping the future ends the attempt or the wait.
pub async fn with_retries<T, F: Future<Output = Result<T, Problem>>>(
    policy: RetryPolicy,
    may_retry: impl Fn() -> bool,
    log: &RetryLog,
    progress: &ProgressReporter,
    look: impl Fn(u32) -> F,
) -> Result<T, Problem> {
    let started = Instant::now();
    let RetryPolicy { max_retries: retries, backoff: wait, reconnects } = policy;
    let mut left = RetriesLeft { retries, wait, reconnects, at_once: true, longer: true };
    let mut times = 1;
    loop {
        let problem = match look(times).await {
            Ok(found) => return Ok(found),
            Err(problem) => problem,
        };
        let next = if may_retry() { left.after(&problem) } else { None };
        let attempt = Attempt::of(&problem, started.elapsed());
        let Some(next) = next else {
            // The envelope already has the problem of an only attempt.
            log.update(|summary| {
                if !summary.failed.is_empty() {
                    summary.failed.push(attempt);
                }
            });
            return Err(problem);
        };
        log.update(|summary| summary.failed.push(attempt));
        tracing::info!(code = problem.code, wait = next.wait.as_secs_f64(), "looking again");
        times = times.max(next.times);
        progress(None, &format!("{}: {}", next.message(), problem.message));
        tokio::time::sleep(next.wait).await;
        log.update(|summary| summary.retries += 1);
    }
}

/// The next attempt.
#[derive(Debug, PartialEq)]
struct NextAttempt {
    wait: Duration,
    /// The factor by which it may take longer than usual.
    times: u32,
}

impl NextAttempt {
    fn message(&self) -> String {
        match (self.wait, self.times) {
            (Duration::ZERO, 1) => "trying again".to_owned(),
            (Duration::ZERO, _) => "trying again with more time".to_owned(),
            (wait, _) => format!("trying again in {} s", wait.as_secs()),
        }
    }
}

/// The attempts that a call may still make.
struct RetriesLeft {
    retries: u32,
    /// The next wait.
    wait: Duration,
    reconnects: bool,
    /// Whether one attempt without a wait is left, for a lost connection.
    at_once: bool,
    /// Whether one attempt with more time is left.
    longer: bool,
}

impl RetriesLeft {
    fn after(&mut self, problem: &Problem) -> Option<NextAttempt> {
        let left = self.retries.checked_sub(1)?;
        let next = match (problem.category, problem.code.as_str()) {
            // Connecting was tried several times already.
            (_, "CONNECTION_FAILED") => return None,
            (_, "CONNECTION_LOST") if !self.reconnects => return None,
            (Category::Network, "CONNECTION_LOST") if std::mem::take(&mut self.at_once) => {
                NextAttempt { wait: Duration::ZERO, times: 1 }
            }
            (Category::Network, _) => {
                let wait = self.wait.min(LONGEST_WAIT);
                self.wait = wait.saturating_mul(2);
                NextAttempt { wait, times: 1 }
            }
            (Category::Timeout, _) if std::mem::take(&mut self.longer) => {
                NextAttempt { wait: Duration::ZERO, times: 2 }
            }
            _ => return None,
        };
        self.retries = left;
        Some(next)
    }
}

#[cfg(test)]
mod tests;
