//! Builds the test binaries once, together with the program under test, and asks them for the names of their tests.

use crate::build::{self, Profile, TEST_FEATURES};
use crate::{cmd, workspace};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A test binary.
#[derive(Debug, Clone)]
pub(super) struct Binary {
    pub(super) package: String,
    /// The name of the cargo target: a library, or a folder of integration tests.
    pub(super) target: String,
    pub(super) file: PathBuf,
    /// The package's folder, in which cargo runs tests.
    pub(super) folder: PathBuf,
}

/// Builds all test binaries and the program under test. In the dev profile one call of cargo builds both, so that each
/// crate is compiled once and no core waits for the last crate of one of them.
pub(super) fn build(profile: Profile, environment: &[(&str, String)]) -> Result<Vec<Binary>> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--tests"]).args(crates(profile));
    match profile {
        Profile::Dev => cargo.args(["--bin", workspace::BINARY]),
        Profile::Release => {
            cmd::run(&mut build::host(profile)?)?;
            &mut cargo
        }
    };
    cargo.envs(environment.iter().cloned());
    let mut binaries = Vec::new();
    messages(&mut cargo, |message| binaries.extend(parse(message)))?;
    binaries.sort_by(|a, b| (&a.package, &a.target).cmp(&(&b.package, &b.target)));
    Ok(binaries)
}

/// The crates that are built for the tests, with their features. What else uses them says the same, or cargo builds them anew.
pub(super) fn crates(profile: Profile) -> &'static [&'static str] {
    match profile {
        Profile::Dev => &["--workspace", "--features", TEST_FEATURES],
        Profile::Release => &["--workspace"],
    }
}

/// Runs cargo to its end, and passes its messages on. The compiler's own messages are printed as usual.
fn messages(cargo: &mut Command, mut each: impl FnMut(&Value)) -> Result<()> {
    cargo.arg("--message-format=json").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = cargo.spawn().with_context(|| format!("cannot start `{}`", cmd::describe(cargo)))?;
    for line in BufReader::new(child.stdout.take().context("cargo has no stdout")?).lines() {
        // Build scripts may print other lines.
        let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
        if let Some(said) = message["message"]["rendered"].as_str() {
            eprint!("{said}");
        }
        each(&message);
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("`{}` ended with {status}", cmd::describe(cargo));
    }
    Ok(())
}

/// The test binary that a `compiler-artifact` message of cargo is about, where it is about one.
fn parse(message: &Value) -> Option<Binary> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    Some(Binary {
        package: package_name(&folder, message["package_id"].as_str()?),
        target: message["target"]["name"].as_str()?.to_owned(),
        file: PathBuf::from(message["executable"].as_str()?),
        folder,
    })
}

/// The name in a package id: `path+file:///w/xtask#0.1.0`, or `path+file:///w/host#linux-sysadmin@0.1.0` where the folder
/// has another name than the package.
fn package_name(folder: &Path, id: &str) -> String {
    let after = id.rsplit_once('#').map_or("", |(_, after)| after);
    match after.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    }
}

impl Binary {
    /// The names of its tests.
    pub(super) fn tests(&self) -> Result<Vec<String>> {
        let text = cmd::output(
            Command::new(&self.file).args(["--list", "--format", "terse"]).current_dir(&self.folder),
        )?;
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_program_of_tests_is_told_from_other_artifacts() {
        let message = |test: bool, executable: Value| {
            json!({
                "reason": "compiler-artifact", "package_id": "path+file:///w/host#linux-sysadmin@0.1.0",
                "manifest_path": "/w/host/Cargo.toml", "target": {"name": "linux_sysadmin"},
                "profile": {"test": test}, "executable": executable,
            })
        };
        let binary = parse(&message(true, json!("/w/target/debug/deps/x"))).expect("a program");
        assert_eq!((binary.package.as_str(), binary.target.as_str()), ("linux-sysadmin", "linux_sysadmin"));
        assert_eq!(binary.folder, Path::new("/w/host"));
        assert!(parse(&message(false, json!("/w/x"))).is_none());
        assert!(parse(&message(true, Value::Null)).is_none());
        assert!(parse(&json!({"reason": "build-finished", "success": true})).is_none());
    }

    #[test]
    fn a_package_of_its_folders_name_has_no_name_in_its_id() {
        assert_eq!(package_name(Path::new("/w/xtask"), "path+file:///w/xtask#0.1.0"), "xtask");
    }
}
