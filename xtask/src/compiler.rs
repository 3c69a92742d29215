//! The compiler of the dev profile, as cargo calls it for the workspace's own crates: this program under another name.
//!
//! It doesn't optimize what only tests run, which cargo can't be told to do: that takes four times as long to compile, and each
//! test runs once. Where lints are asked for, clippy's driver compiles, which is the same compiler: a separate `cargo clippy`
//! would check every dependency once more.

use crate::{cmd, files, workspace};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The names by which cargo calls this program. What one of them has compiled isn't fresh for the other.
const COMPILER: &str = "rustc-for-tests";
const LINTER: &str = "clippy-for-tests";

/// The variables of an environment.
pub(crate) type Environment = Vec<(&'static str, String)>;

/// The environment that makes cargo call this program. With `lints`, a warning is an error.
pub(crate) fn environment(lints: bool) -> Result<Environment> {
    let name = if lints { LINTER } else { COMPILER };
    let link = stand_in(name)?;
    let mut environment = vec![("RUSTC_WORKSPACE_WRAPPER", link.display().to_string())];
    if lints {
        driver()?;
        // `cargo clippy -- ARGUMENTS` gives arguments to the driver in this form.
        let arguments = ["-D", "warnings"].map(|argument| format!("{argument}__CLIPPY_HACKERY__")).concat();
        environment.push(("CLIPPY_ARGS", arguments));
    }
    Ok(environment)
}

/// A path by which this program is called under another name.
pub(crate) fn stand_in(name: &str) -> Result<PathBuf> {
    let tools = workspace::target_dir()?.join("tools");
    files::make_dir(&tools)?;
    let (link, this) = (tools.join(name), std::env::current_exe().context("this program has no path")?);
    if fs::read_link(&link).ok().as_ref() != Some(&this) {
        fs::remove_file(&link).ok();
        symlink(&this, &link).with_context(|| format!("cannot make {}", link.display()))?;
    }
    Ok(link)
}

/// Compiles in place of everything else, where cargo has called this program. It only returns where it can't.
pub(crate) fn called_by_cargo() -> Option<anyhow::Error> {
    let mut words = std::env::args_os();
    let name = PathBuf::from(words.next()?);
    let lints = match name.file_name()?.to_str()? {
        LINTER => true,
        COMPILER => false,
        _ => return None,
    };
    let compiler = words.next()?;
    let mut command = Command::new(&compiler);
    if lints {
        match driver() {
            Ok(driver) => command = Command::new(driver),
            Err(error) => return Some(error),
        }
        command.arg(&compiler);
    }
    let error = command.args(as_for_tests(words.collect())).exec();
    Some(anyhow::Error::new(error).context(format!("cannot start {}", command.get_program().display())))
}

fn driver() -> Result<PathBuf> {
    cmd::find_program("clippy-driver")
        .or_else(|| {
            let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
            home.map(|home| home.join("bin/clippy-driver")).filter(|driver| driver.exists())
        })
        .context("there is no clippy-driver; `rustup component add clippy` brings it")
}

/// The words for the compiler, without optimization where only tests run the crate: a program of tests, or a module that isn't
/// a component.
fn as_for_tests(mut words: Vec<OsString>) -> Vec<OsString> {
    let follows = |option: &str, is_it: fn(&str) -> bool| {
        words.windows(2).any(|pair| pair[0] == option && pair[1].to_str().is_some_and(is_it))
    };
    let is_component = words.iter().any(|word| word == "--target");
    let is_of_tests = words.iter().any(|word| word == "--test");
    if is_of_tests || !is_component && follows("--crate-name", |name| name.starts_with("module_")) {
        for word in &mut words {
            match word.to_str().and_then(|word| word.split_once('=')) {
                Some(("opt-level", _)) => *word = "opt-level=0".into(),
                // One unit takes longer on several processors, and is for the optimizer.
                Some(("codegen-units", _)) => *word = "codegen-units=16".into(),
                _ => {}
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_tests_run_is_not_optimized_and_all_else_is_as_cargo_has_it() {
        let said = |words: &str| {
            let words = as_for_tests(words.split(' ').map(OsString::from).collect());
            words.join(std::ffi::OsStr::new(" ")).into_string().unwrap()
        };
        let same = |words: &str| assert_eq!(said(words), words);
        same("--crate-name host_gate --crate-type lib -C opt-level=2 -C codegen-units=1");
        same("--crate-name module_cron -C opt-level=s --target wasm32-wasip2");
        same("--crate-name xtask --crate-type bin -C debug-assertions=on");
        assert_eq!(
            said("--crate-name host_gate --test -C opt-level=2 -C codegen-units=1 -C debug-assertions=on"),
            "--crate-name host_gate --test -C opt-level=0 -C codegen-units=16 -C debug-assertions=on"
        );
        assert_eq!(
            said("--crate-name module_cron -C opt-level=1"),
            "--crate-name module_cron -C opt-level=0"
        );
    }
}
