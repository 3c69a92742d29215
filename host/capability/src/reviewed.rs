//! Which of the commands that a module asks for are known to be harmless.
//!
//! A list of what is dangerous is never complete, so it is turned round: `reviewed.yaml` says what was looked
//! at and found to change nothing and to show no secret. Everything else may amount to full control of the
//! machine, and whoever installs a module is to be told so.

use std::sync::LazyLock;

use serde::Deserialize;

use super::pattern::{Pattern, PatternError};
use super::request::{CommandRequest, Effect, Place};
use host_base::Privilege;

static REVIEWS: LazyLock<Vec<Review>> = LazyLock::new(|| {
    // Without the list nothing is known to be harmless.
    parse(include_str!("reviewed.yaml")).unwrap_or_else(|error| {
        tracing::error!(%error, "the list of reviewed commands can't be read");
        Vec::new()
    })
});

/// A command line that was reviewed, and what for.
#[derive(Debug)]
pub struct Review {
    pattern: Pattern,
    most: Most,
    effect: Effect,
    reason: String,
}

/// The most rights that a command line was reviewed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Most {
    Caller,
    Root,
}

/// An entry as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    pattern: String,
    most: Most,
    effect: Effect,
    reason: String,
}

#[derive(Debug, thiserror::Error)]
enum ReviewError {
    #[error(transparent)]
    Yaml(#[from] serde_yaml::Error),
    #[error("`{0}`: {1}")]
    Pattern(String, PatternError),
    #[error("`{0}`: expected effect read or dry-run")]
    Change(String),
}

/// The review that what is asked for stays within; `None` where there is none.
pub fn review(request: &CommandRequest) -> Option<&'static Review> {
    review_for(request, rustix::process::geteuid().is_root())
}

/// What is harmless for an ordinary account isn't for a server that runs as root.
fn review_for(request: &CommandRequest, caller_is_root: bool) -> Option<&'static Review> {
    let pattern = Pattern::parse(&request.pattern).ok()?;
    REVIEWS.iter().find(|review| review.allows(&pattern, request, caller_is_root))
}

impl Review {
    /// Why it is harmless.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    fn allows(&self, pattern: &Pattern, request: &CommandRequest, caller_is_root: bool) -> bool {
        let enough_rights = match request.privilege {
            Privilege::Caller => !caller_is_root || self.most == Most::Root,
            Privilege::RootIfAvailable | Privilege::Root => self.most == Most::Root,
            // Who an account is, and what it may see, differs from machine to machine.
            Privilege::User(_) => false,
        };
        // No review has the effect `change`, so no change is within one.
        request.place == Place::Target
            && request.effect <= self.effect
            && enough_rights
            && self.pattern.covers(pattern)
    }
}

fn parse(text: &str) -> Result<Vec<Review>, ReviewError> {
    let entries: Vec<Entry> = serde_yaml::from_str(text)?;
    let review = |Entry { pattern, most, effect, reason }| match Pattern::parse(&pattern) {
        Ok(_) if effect == Effect::Change => Err(ReviewError::Change(pattern)),
        Ok(pattern) => Ok(Review { pattern, most, effect, reason }),
        Err(error) => Err(ReviewError::Pattern(pattern, error)),
    };
    entries.into_iter().map(review).collect()
}

#[cfg(test)]
mod tests;
