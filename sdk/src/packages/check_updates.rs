//! `pkg_check_updates`: the newer versions of installed packages.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Backend;
use super::types::Update;
use crate::{Context, Listing, Result};

/// The age in seconds from which the lists of the repositories are called old.
const STALE_SECONDS: f64 = 7.0 * 24.0 * 3600.0;

#[derive(Deserialize, JsonSchema)]
pub(super) struct UpdatesArgs {
    /// Security updates alone
    #[serde(default)]
    security_only: bool,
}

pub(super) fn check_updates<B: Backend>(
    backend: &B,
    args: UpdatesArgs,
    cx: &Context,
) -> Result<Listing<Update>> {
    let mut updates = backend.updates(cx)?;
    if args.security_only {
        updates.items.retain(|update| update.security);
    }
    updates.items.sort_by(|a, b| (!a.security, &a.name).cmp(&(!b.security, &b.name)));
    updates.notes.extend(updates.refreshed.and_then(|refreshed| staleness_note(refreshed, cx.now())));
    Ok(Listing { items: updates.items, total: None, notes: updates.notes })
}

/// A note where the repositories were read long ago.
pub(super) fn staleness_note(refreshed: f64, now: f64) -> Option<String> {
    let old = now - refreshed;
    let days = (old / 86400.0).floor();
    (old > STALE_SECONDS).then(|| {
        format!("the repositories were read {days} days ago: `pkg_update` with refresh_only reads them anew")
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn knowledge_is_old_after_a_week() {
        assert_eq!(staleness_note(0.0, STALE_SECONDS), None);
        assert!(staleness_note(0.0, STALE_SECONDS + 1.0).unwrap().contains("7 days"));
    }
}
