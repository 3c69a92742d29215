//! `pkg_info`: everything about one package.

use schemars::JsonSchema;
use serde::Deserialize;

use super::types::Info;
use super::{Backend, not_found};
use crate::{Context, Noted, Result};

#[derive(Deserialize, JsonSchema)]
pub(super) struct InfoArgs {
    /// Its name
    package: String,
}

pub(super) fn info<B: Backend>(backend: &B, args: InfoArgs, cx: &Context) -> Result<Noted<Info>> {
    backend.check_name(&args.package)?;
    match backend.info(&args.package, cx)? {
        Some(data) => Ok(Noted { data, notes: Vec::new() }),
        None => Err(not_found(backend, &[args.package], cx)),
    }
}
