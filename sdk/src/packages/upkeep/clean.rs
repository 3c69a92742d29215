//! `pkg_clean`: removes downloads that the package manager keeps.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Cached, Upkeep};
use crate::packages::Backend;
use crate::packages::package_change::{Answer, explained};
use crate::{Category, Change, Context, Lock, Noted, Problem, Result, Step};

#[derive(Deserialize, JsonSchema)]
pub(super) struct CleanArgs {
    /// Default: packages
    #[serde(default)]
    what: Cached,
}

pub(super) fn clean<B: Backend>(
    backend: &B,
    upkeep: &dyn Upkeep,
    args: CleanArgs,
    cx: &Context,
) -> Result<Answer> {
    let Some(command) = upkeep.clean(args.what, cx) else {
        let message =
            "this package manager has a command for packages only, and none that removes its metadata";
        return Err(Problem::new("NOT_SUPPORTED", Category::State, message));
    };
    let before = upkeep.cached_bytes(cx)?;
    let what = match args.what {
        Cached::Packages => "packages",
        Cached::Metadata => "metadata of repositories",
        Cached::All => "packages and metadata of repositories",
    };
    let change = Change::new(format!("Remove downloaded {what}"))
        .step(Step::run(command).uninterruptible())
        .lock(Lock::PackageDatabase);
    let applied = cx.apply(change).map_err(|failure| explained(backend, failure, cx))?;
    if applied.dry_run {
        return Ok(Noted { data: json!({"cached_bytes": before}), notes: Vec::new() });
    }
    let after = upkeep.cached_bytes(cx)?;
    let notes = (args.what != Cached::Packages)
        .then(|| "`pkg_update` with refresh_only reads the repositories, which searches need".to_owned());
    let data = json!({"freed_bytes": before.saturating_sub(after), "cached_bytes": after});
    Ok(Noted { data, notes: notes.into_iter().collect() })
}
