//! Checks formatting and lints, for this machine's target and for the target of components.

use crate::{cmd, wasm, workspace};
use anyhow::{Result, bail};

/// The manifest of the fuzz targets, which are a workspace of their own.
pub(crate) const FUZZ: &str = "fuzz/Cargo.toml";

/// Checks that all sources are formatted, also in the workspaces beside this one.
pub(crate) fn formatting() -> Result<()> {
    let mut manifests = vec!["Cargo.toml".to_owned(), FUZZ.to_owned()];
    manifests.extend(workspace::outside()?.into_iter().map(|folder| format!("{folder}/Cargo.toml")));
    let calls =
        manifests.iter().map(|manifest| vec!["fmt", "--all", "--manifest-path", manifest, "--", "--check"]);
    all_clean(calls.collect())
}

/// Checks formatting, and runs clippy for this machine's target and for the target of components.
pub(crate) fn lint() -> Result<()> {
    formatting()?;
    let mut calls = vec![vec!["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]];
    let packages = workspace::components()?;
    if wasm::rustup_target_is_installed() {
        let mut call = vec!["clippy", "--target", wasm::TARGET];
        call.extend(packages.iter().flat_map(|package| ["--package", package]));
        call.extend(["--", "-D", "warnings"]);
        calls.push(call);
    } else {
        eprintln!("xtask: no clippy for {} without rustup's target", wasm::TARGET);
    }
    // The fuzz targets are a workspace of their own, which nothing else builds.
    if cmd::find_program("c++").is_some() {
        calls.push(vec!["clippy", "--manifest-path", FUZZ, "--bins", "--", "-D", "warnings"]);
    } else {
        eprintln!("xtask: no clippy for fuzz/ without a C++ compiler");
    }
    all_clean(calls)
}

/// Runs each cargo call, and says which ones failed.
fn all_clean(calls: Vec<Vec<&str>>) -> Result<()> {
    let mut failed = Vec::new();
    for call in calls {
        let mut cargo = workspace::cargo();
        cargo.args(&call);
        eprintln!("xtask: cargo {}", call.join(" "));
        if !cmd::status(&mut cargo)?.success() {
            failed.push(format!("cargo {}", call.join(" ")));
        }
    }
    if !failed.is_empty() {
        bail!("not clean: {}", failed.join("; "));
    }
    Ok(())
}
