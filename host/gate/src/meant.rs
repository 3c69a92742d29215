//! The machine that a plan is for. A connection that was lost comes back by name, and a name may lead elsewhere by then:
//! an alias is pointed at another machine, an address is given to another one.

use std::sync::Arc;

use super::Asking;
use host_base::problem::Problem;
pub use host_target::STALE;
use host_target::{Facts, Identity, Target};

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

    /// Which one that is.
    pub fn identity(&self) -> Identity {
        Identity::of(&self.facts, self.host_key.clone())
    }

    /// A problem where another machine answers, or another account is reached. It costs nothing as long as the
    /// connection is the one that the facts are of.
    pub async fn answers(&self, target: &Target) -> Result<(), Problem> {
        let now = target.facts().await?;
        if Arc::ptr_eq(&now, &self.facts) {
            return Ok(());
        }
        self.identity().is(&Identity::of(&now, target.host_key().await), target.name())
    }
}
