//! The machine that a plan is for. A connection that was lost comes back by name, and a name may lead elsewhere by then:
//! an alias is pointed at another machine, an address is given to another one.

use std::sync::Arc;

use super::Asking;
use crate::problem::{Category, Problem};
use crate::target::{Facts, Target};

/// What was made for one target isn't done to another.
pub const STALE: &str = "PLAN_STALE";

/// Which machine, and as whom.
pub struct Meant {
    facts: Arc<Facts>,
    host_key: Option<String>,
}

impl Meant {
    /// As it was when the call began.
    pub fn of(asking: &Asking) -> Self {
        let used = asking.origin.target.as_ref();
        let host_key = used.and_then(|used| used.host_key.clone());
        Self { facts: asking.facts.clone(), host_key }
    }

    /// Whoever answers now.
    #[cfg(test)]
    pub async fn now(target: &Target) -> Self {
        Self { facts: target.facts().await.unwrap(), host_key: target.host_key().await }
    }

    /// What is known of it.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// A problem where another machine answers, or another account is reached. It costs nothing as long as the
    /// connection is the one that the facts are of.
    pub async fn answers(&self, target: &Target) -> Result<(), Problem> {
        let now = target.facts().await?;
        if Arc::ptr_eq(&now, &self.facts) {
            return Ok(());
        }
        let (before, host_key) = (&self.facts, target.host_key().await);
        let said = |said: &Option<String>| said.clone().unwrap_or_else(|| "none".to_owned());
        for (what, before, now) in [
            ("machine id", said(&before.machine_id), said(&now.machine_id)),
            ("host key", said(&self.host_key), said(&host_key)),
            ("account", before.uid.to_string(), now.uid.to_string()),
        ] {
            if before != now {
                let message = format!(
                    "{} is another machine by now than the one that the plan was made for: expected {what} {before}, \
                     found {now}",
                    target.name()
                );
                return Err(Problem::new(STALE, Category::State, message)
                    .remedy("Call again: the plan is made anew, for the machine that answers now"));
            }
        }
        Ok(())
    }
}
