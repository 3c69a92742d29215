//! `pkg_install`: installs packages.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Backend;
use super::name::Names;
use super::package_change::{Answer, PackageChange, check_known, installed_whole, is_installed};
use super::types::Request;
use crate::{Context, Result};

#[derive(Deserialize, JsonSchema)]
pub(super) struct InstallArgs {
    /// One name or several
    package: Names,
}

pub(super) fn install<B: Backend>(backend: &B, args: InstallArgs, cx: &Context) -> Result<Answer> {
    let names = args.package.checked(backend)?;
    let before = backend.installed(cx)?;
    // An installed package may be in no repository any more.
    let absent: Vec<_> = names.iter().filter(|name| !is_installed(&before, name)).cloned().collect();
    check_known(backend, &absent, cx)?;
    let already = names.iter().filter_map(|name| installed_whole(&before, name));
    let notes = already.map(|package| format!("{} {} is installed already", package.name, package.version));
    let notes = notes.collect();
    // A manager may take a broken package for an installed one.
    let is_broken = |name: &String| is_installed(&before, name) && installed_whole(&before, name).is_none();
    let request = if names.iter().any(is_broken) {
        Request::Reinstall(
            names.into_iter().filter(|name| installed_whole(&before, name).is_none()).collect(),
        )
    } else {
        Request::Install(names)
    };
    PackageChange { backend, cx, request, before, notes }.apply()
}
