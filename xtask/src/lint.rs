//! Formatting and lints, for the machine's target and for the components' own.

use crate::{cmd, wasm, workspace};
use anyhow::{Result, bail};

pub(crate) fn lint() -> Result<()> {
    let mut calls = vec![vec!["fmt", "--all", "--", "--check"]];
    calls.push(vec!["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    let packages = workspace::components()?;
    if wasm::rustup_target_is_installed() {
        let mut call = vec!["clippy", "--target", wasm::TARGET];
        call.extend(packages.iter().flat_map(|package| ["--package", package]));
        call.extend(["--", "-D", "warnings"]);
        calls.push(call);
    } else {
        eprintln!("xtask: no clippy for {} without rustup's target", wasm::TARGET);
    }
    let outside =
        workspace::outside()?.into_iter().map(|name| format!("{}/{name}/Cargo.toml", workspace::OUTSIDE));
    let outside: Vec<_> = outside.collect();
    for manifest in &outside {
        calls.push(vec!["fmt", "--manifest-path", manifest, "--", "--check"]);
    }
    // A workspace of its own, which nothing else builds.
    calls.push(vec!["fmt", "--manifest-path", "fuzz/Cargo.toml", "--", "--check"]);
    if cmd::find_program("c++").is_some() {
        calls.push(vec!["clippy", "--manifest-path", "fuzz/Cargo.toml", "--bins", "--", "-D", "warnings"]);
    } else {
        eprintln!("xtask: no clippy for fuzz/ without a C++ compiler");
    }
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
