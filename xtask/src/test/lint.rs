//! Lints while the tests are built: cargo compiles the workspace's own crates by clippy's driver, which is the same compiler.
//! A separate `cargo clippy` would check every dependency once more.

use anyhow::{Context, Result};

/// The environment that makes cargo do so. A warning is an error.
pub(super) fn environment() -> Result<Vec<(&'static str, String)>> {
    let driver = crate::cmd::find_program("clippy-driver")
        .or_else(|| {
            let home = std::env::var_os("CARGO_HOME").map(std::path::PathBuf::from);
            home.map(|home| home.join("bin/clippy-driver")).filter(|driver| driver.exists())
        })
        .context("there is no clippy-driver; `rustup component add clippy` brings it")?;
    // `cargo clippy -- ARGUMENTS` gives arguments to the driver in this form.
    let arguments = ["-D", "warnings"].map(|argument| format!("{argument}__CLIPPY_HACKERY__")).concat();
    Ok(vec![("RUSTC_WORKSPACE_WRAPPER", driver.display().to_string()), ("CLIPPY_ARGS", arguments)])
}
