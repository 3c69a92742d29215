//! `pkg_remove` and `pkg_purge`: remove packages, and keep or remove their configuration files.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::Backend;
use super::name::Names;
use super::package_change::{Answer, PackageChange, check_known};
use super::types::{Request, State};
use crate::{Context, Noted, Result};

#[derive(Deserialize, JsonSchema)]
pub(super) struct RemoveArgs {
    /// One name or several
    package: Names,
}

pub(super) fn remove<B: Backend>(backend: &B, args: RemoveArgs, cx: &Context) -> Result<Answer> {
    remove_packages(backend, args, cx, Request::Remove, |state| *state != State::ConfigFiles)
}

pub(super) fn purge<B: Backend>(backend: &B, args: RemoveArgs, cx: &Context) -> Result<Answer> {
    remove_packages(backend, args, cx, Request::Purge, |_| true)
}

/// Removes the named packages that `is_there` holds for. A package that isn't there is noted; a name that no package has is a
/// problem.
fn remove_packages<B: Backend>(
    backend: &B,
    args: RemoveArgs,
    cx: &Context,
    request: fn(Vec<String>) -> Request,
    is_there: fn(&State) -> bool,
) -> Result<Answer> {
    let names = args.package.checked(backend)?;
    let before = backend.installed(cx)?;
    let here = |name: &String| before.iter().any(|package| package.name == *name && is_there(&package.state));
    let (here, absent): (Vec<_>, Vec<_>) = names.into_iter().partition(here);
    check_known(backend, &absent, cx)?;
    let notes = absent.iter().map(|name| format!("{name} is not installed")).collect();
    if here.is_empty() {
        return Ok(Noted { data: json!({}), notes });
    }
    PackageChange { backend, cx, request: request(here), before, notes }.apply()
}
