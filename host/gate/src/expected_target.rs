//! The machine and account that a plan was made for. A lost connection is made again by name, and the name may lead to
//! another machine by then: an alias may have been changed, or an address given to another machine.

use std::sync::Arc;

use super::PlanRequest;
use host_base::problem::Problem;
pub use host_target::STALE;
use host_target::{Facts, Identity, Target};

/// The machine and account that a plan was made for.
pub struct ExpectedTarget {
    facts: Arc<Facts>,
    host_key: Option<String>,
}

impl ExpectedTarget {
    /// The machine and account at the beginning of the call.
    pub fn of(request: &PlanRequest) -> Self {
        let used = request.origin.target.as_ref();
        let host_key = used.and_then(|used| used.host_key.clone());
        Self { facts: request.facts.clone(), host_key }
    }

    /// The machine and account that answer now.
    #[cfg(test)]
    pub async fn now(target: &Target) -> Self {
        Self { facts: target.facts().await.unwrap(), host_key: target.host_key().await }
    }

    /// The facts about the machine.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The identity of the machine and the account.
    pub fn identity(&self) -> Identity {
        Identity::of(&self.facts, self.host_key.clone())
    }

    /// Checks that the same machine answers, as the same account. The check costs nothing as long as the connection is
    /// the one that the facts came by.
    pub async fn check(&self, target: &Target) -> Result<(), Problem> {
        let now = target.facts().await?;
        if Arc::ptr_eq(&now, &self.facts) {
            return Ok(());
        }
        self.identity().is(&Identity::of(&now, target.host_key().await), target.name())
    }
}
