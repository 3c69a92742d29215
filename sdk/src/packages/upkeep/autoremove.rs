//! `pkg_autoremove`: removes packages that were installed for others which don't need them any more. The manager says which
//! they are, and the plan removes exactly these.

use serde_json::json;

use super::Upkeep;
use crate::packages::Backend;
use crate::packages::package_change::{Answer, PackageChange};
use crate::packages::types::Request;
use crate::{Context, NoArgs, Noted, Result};

pub(super) fn autoremove<B: Backend>(
    backend: &B,
    upkeep: &dyn Upkeep,
    _: NoArgs,
    cx: &Context,
) -> Result<Answer> {
    let names = upkeep.unneeded(cx)?;
    if names.is_empty() {
        return Ok(Noted { data: json!({}), notes: vec!["every package is needed".to_owned()] });
    }
    let before = backend.installed(cx)?;
    PackageChange { backend, cx, request: Request::Remove(names), before, notes: Vec::new() }.apply()
}
