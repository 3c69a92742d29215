//! Looking again where that may help. What changes something is never done twice by the host.
//!
//! Only what passes by itself is tried again: what the network did, with a longer wait each time, and what took too long,
//! once, with twice the time.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use host_base::Attempt;
use host_base::problem::{Category, Problem};
use host_components::Progress;

/// However often a wait was doubled.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// What the operator decided.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Looks after the first; 0 for none.
    pub most: u32,
    /// Before the first of them. Each next wait is twice the one before.
    pub backoff: Duration,
    /// Whether a connection that was lost is had back within the call that misses it.
    pub reconnects: bool,
}

/// How often a call looked again, and why.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tried {
    /// Looks after the first.
    pub retries: u32,
    /// Those that failed. Empty where the first was the only one.
    pub failed: Vec<Attempt>,
}

/// The same while a call is on its way.
#[derive(Default)]
pub struct Tries(Mutex<Tried>);

impl Tries {
    /// So far.
    pub fn so_far(&self) -> Tried {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn with(&self, change: impl FnOnce(&mut Tried)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Looks, and looks again as long as the rules allow it and `may` says that nothing was changed. Each look is told how
/// many times its usual time it may take. Dropping the future ends it, and a wait as well.
pub async fn retrying<T, F: Future<Output = Result<T, Problem>>>(
    rules: Rules,
    may: impl Fn() -> bool,
    tries: &Tries,
    progress: &Progress,
    look: impl Fn(u32) -> F,
) -> Result<T, Problem> {
    let began = Instant::now();
    let Rules { most: retries, backoff: wait, reconnects } = rules;
    let mut left = Left { retries, wait, reconnects, at_once: true, longer: true };
    let mut times = 1;
    loop {
        let problem = match look(times).await {
            Ok(found) => return Ok(found),
            Err(problem) => problem,
        };
        let again = if may() { left.after(&problem) } else { None };
        let attempt = Attempt::of(&problem, began.elapsed());
        let Some(again) = again else {
            // Where it was the only one, the envelope says it already.
            tries.with(|tried| {
                if !tried.failed.is_empty() {
                    tried.failed.push(attempt);
                }
            });
            return Err(problem);
        };
        tries.with(|tried| tried.failed.push(attempt));
        tracing::info!(code = problem.code, wait = again.wait.as_secs_f64(), "looking again");
        times = times.max(again.times);
        progress(None, &format!("{}: {}", again.shown(), problem.message));
        tokio::time::sleep(again.wait).await;
        tries.with(|tried| tried.retries += 1);
    }
}

/// Another look.
#[derive(Debug, PartialEq)]
struct Again {
    wait: Duration,
    /// How much longer it may take.
    times: u32,
}

impl Again {
    fn shown(&self) -> String {
        match (self.wait, self.times) {
            (Duration::ZERO, 1) => "trying again".to_owned(),
            (Duration::ZERO, _) => "trying again with more time".to_owned(),
            (wait, _) => format!("trying again in {} s", wait.as_secs()),
        }
    }
}

/// What may be tried yet.
struct Left {
    retries: u32,
    /// The next one.
    wait: Duration,
    /// As in the rules.
    reconnects: bool,
    /// A connection that was lost comes back by itself: asked for once without a wait.
    at_once: bool,
    /// With more time.
    longer: bool,
}

impl Left {
    fn after(&mut self, problem: &Problem) -> Option<Again> {
        let left = self.retries.checked_sub(1)?;
        let again = match (problem.category, problem.code.as_str()) {
            // It was tried already by whoever says so.
            (_, "CONNECTION_FAILED") => return None,
            (_, "CONNECTION_LOST") if !self.reconnects => return None,
            (Category::Network, "CONNECTION_LOST") if std::mem::take(&mut self.at_once) => {
                Again { wait: Duration::ZERO, times: 1 }
            }
            (Category::Network, _) => {
                let wait = self.wait.min(LONGEST_WAIT);
                self.wait = wait.saturating_mul(2);
                Again { wait, times: 1 }
            }
            (Category::Timeout, _) if std::mem::take(&mut self.longer) => {
                Again { wait: Duration::ZERO, times: 2 }
            }
            _ => return None,
        };
        self.retries = left;
        Some(again)
    }
}

#[cfg(test)]
mod tests;
