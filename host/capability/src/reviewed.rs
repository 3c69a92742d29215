//! The reviewed commands: those that are known to be harmless.
//!
//! A list of what is dangerous is never complete. Therefore `reviewed.yaml` lists the commands that were found to change
//! nothing and to show no secret. Every other command may give full control of the machine, and whoever installs a module
//! that asks for one is told so.

use std::sync::LazyLock;

use serde::Deserialize;

use super::pattern::{Pattern, PatternError};
use super::request::{CommandRequest, Effect, Place};
use host_base::Privilege;

static REVIEWS: LazyLock<Vec<Review>> = LazyLock::new(|| {
    // Without the list no command counts as harmless.
    parse(include_str!("reviewed.yaml")).unwrap_or_else(|error| {
        tracing::error!(%error, "the list of reviewed commands can't be read");
        Vec::new()
    })
});

/// A command line that was reviewed, and for what use.
#[derive(Debug)]
pub struct Review {
    pattern: Pattern,
    most: MaxRights,
    effect: Effect,
    reason: String,
}

/// The most rights for which a command line was reviewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum MaxRights {
    Caller,
    Root,
}

/// An entry of `reviewed.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    pattern: String,
    most: MaxRights,
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

/// The review that covers a request; `None` where there is none. A command that is harmless for an ordinary account may not
/// be harmless for a server that runs as root.
pub fn review_for(request: &CommandRequest, caller_is_root: bool) -> Option<&'static Review> {
    let pattern = Pattern::parse(&request.pattern).ok()?;
    REVIEWS.iter().find(|review| review.allows(&pattern, request, caller_is_root))
}

impl Review {
    /// The reason why the command is harmless.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    fn allows(&self, pattern: &Pattern, request: &CommandRequest, caller_is_root: bool) -> bool {
        let enough_rights = match request.privilege {
            Privilege::Caller => !caller_is_root || self.most == MaxRights::Root,
            Privilege::RootIfAvailable | Privilege::Root => self.most == MaxRights::Root,
            // What an account may see differs from machine to machine.
            Privilege::User(_) => false,
        };
        // No review has the effect `change`, so none covers a change.
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
