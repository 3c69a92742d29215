//! `pkg_list_installed`: the packages that are installed.

use super::Backend;
use super::types::{Installed, State};
use crate::{Context, Listing, NoArgs, Result};

pub(super) fn list_installed<B: Backend>(backend: &B, _: NoArgs, cx: &Context) -> Result<Listing<Installed>> {
    let mut items = backend.installed(cx)?;
    items.retain(|package| package.state != State::ConfigFiles);
    items.sort_by(|a, b| (&a.name, &a.arch).cmp(&(&b.name, &b.arch)));
    Ok(items.into())
}
