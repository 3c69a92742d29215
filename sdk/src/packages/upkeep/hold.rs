//! `pkg_hold` and `pkg_unhold`: keep packages at their version, and release them.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Upkeep;
use crate::packages::Backend;
use crate::packages::name::Names;
use crate::packages::package_change::{Answer, explained, is_installed};
use crate::packages::types::Installed;
use crate::{Category, Change, Context, Lock, Noted, Problem, Result, Step, text};

#[derive(Deserialize, JsonSchema)]
pub(super) struct HoldArgs {
    /// One name or several
    package: Names,
}

pub(super) fn hold<B: Backend>(
    backend: &B,
    upkeep: &dyn Upkeep,
    args: HoldArgs,
    cx: &Context,
) -> Result<Answer> {
    set(backend, upkeep, args, cx, true)
}

pub(super) fn unhold<B: Backend>(
    backend: &B,
    upkeep: &dyn Upkeep,
    args: HoldArgs,
    cx: &Context,
) -> Result<Answer> {
    set(backend, upkeep, args, cx, false)
}

fn set<B: Backend>(
    backend: &B,
    upkeep: &dyn Upkeep,
    args: HoldArgs,
    cx: &Context,
    held: bool,
) -> Result<Answer> {
    let names = args.package.checked(backend)?;
    let before = backend.installed(cx)?;
    let absent: Vec<_> = names.iter().filter(|name| !is_installed(&before, name)).cloned().collect();
    if !absent.is_empty() {
        let message = format!("these packages aren't installed: {}", absent.join(", "));
        return Err(Problem::new("PACKAGE_NOT_INSTALLED", Category::State, message));
    }
    let word = if held { "held" } else { "released" };
    let (already, names): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| is_held(&before, name) == held);
    let notes: Vec<_> = already
        .iter()
        .map(|name| if held { format!("{name} is held already") } else { format!("{name} isn't held") })
        .collect();
    if names.is_empty() {
        return Ok(Noted { data: json!({}), notes });
    }
    let [run, undo] = match held {
        true => [upkeep.hold(&names, cx)?, upkeep.unhold(&names, cx)?],
        false => [upkeep.unhold(&names, cx)?, upkeep.hold(&names, cx)?],
    };
    let listed = text::list(&names, 10);
    let summary = if held {
        format!("Hold {listed} at the installed version")
    } else {
        format!("Release {listed} for updates")
    };
    let mut change =
        Change::new(summary).step(Step::run(run).uninterruptible().undo(undo)).lock(Lock::PackageDatabase);
    if held {
        change = change.warning("a held package gets no updates, and no fixes of security flaws either");
    }
    let applied = cx.apply(change).map_err(|failure| explained(backend, failure, cx))?;
    if applied.dry_run {
        let key = if held { "would_hold" } else { "would_release" };
        return Ok(Noted { data: json!({key: names}), notes });
    }
    let after = backend.installed(cx)?;
    let left: Vec<_> = names.iter().filter(|name| is_held(&after, name) != held).cloned().collect();
    if !left.is_empty() {
        let message = format!(
            "the package manager says that it has succeeded, but these aren't {word}: {}",
            left.join(", ")
        );
        return Err(Problem::new("TRANSACTION_INCOMPLETE", Category::Other, message));
    }
    let packages = names.iter().filter_map(|name| {
        let package = after.iter().find(|package| package.name == *name)?;
        Some(json!({"name": name, "version": package.version}))
    });
    Ok(Noted { data: json!({word: packages.collect::<Vec<Value>>()}), notes })
}

fn is_held(installed: &[Installed], name: &str) -> bool {
    installed.iter().any(|package| package.name == name && package.held)
}
