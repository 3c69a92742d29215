//! Installs the binary and its modules under a prefix. A server that runs from there goes on running.

use crate::build::{self, Profile};
use crate::{files, workspace};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Builds and installs into `prefix`, or ~/.local.
pub(crate) fn install(prefix: Option<&Path>) -> Result<()> {
    let prefix = match prefix {
        Some(prefix) => std::path::absolute(prefix)?,
        None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set; say --prefix DIR")?)
            .join(".local"),
    };
    let built = build::build(Profile::Release)?;
    let (bin, modules) = (prefix.join("bin"), prefix.join("lib").join(workspace::BINARY).join("modules"));
    files::make_dir(&bin)?;
    // The modules come first, so a new binary never starts with old modules. A server that runs keeps the modules that it
    // has.
    files::sync_components(&built.modules, &modules)?;
    let binary = bin.join(workspace::BINARY);
    files::copy(&built.binary, &binary, 0o755)?;
    build::warm(&binary, None)?;
    println!("installed {} and {}\n", binary.display(), modules.display());
    println!("{}", workspace::registration(&binary));
    Ok(())
}
