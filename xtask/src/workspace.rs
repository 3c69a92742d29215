//! Finds the workspace, its target directory and its modules.

use crate::apt::Need;
use crate::cmd;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The binary's name, in the target directory and where it is installed.
pub(crate) const BINARY: &str = "linux-sysadmin";
/// The name under which clients register the server.
pub(crate) const SERVER: &str = "linux-sysadmin-mcp";

/// The workspace's root. xtask runs from where it was built, so the compile-time path holds.
pub(crate) fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

/// A cargo call at the workspace's root, by the cargo that runs xtask. It isn't told of xtask's own package, as xtask is: a
/// build script that watches such a variable would run again at every change between xtask and a bare cargo.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    for (name, _) in std::env::vars_os() {
        let of_xtask = name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"));
        if of_xtask {
            command.env_remove(name);
        }
    }
    command
}

/// The rustc that belongs to that cargo.
pub(crate) fn rustc() -> Command {
    let mut command = Command::new("rustc");
    command.current_dir(root());
    command
}

/// The workspace's packages as cargo describes them, without their dependencies.
pub(crate) fn metadata() -> Result<Value> {
    let text = cmd::output(cargo().args(["metadata", "--no-deps", "--format-version=1"]))?;
    serde_json::from_str(&text).context("cargo metadata answers no JSON")
}

/// cargo's target directory, wherever the environment or a configuration puts it.
pub(crate) fn target_dir() -> Result<PathBuf> {
    let metadata = metadata()?;
    let dir = metadata["target_directory"].as_str().context("cargo metadata names no target_directory")?;
    Ok(PathBuf::from(dir))
}

/// The programs that tests run. Each crate names those of its own in its Cargo.toml, under `package.metadata.tests.programs`.
pub(crate) fn programs_of_tests() -> Result<Vec<Need>> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let programs = packages.iter().filter_map(|package| package["metadata"]["tests"]["programs"].as_object());
    let need = |(program, package): (&String, &Value)| {
        let package =
            package.as_str().with_context(|| format!("the package that brings {program} is no string"))?;
        Ok(Need::named(program.clone(), package.to_owned()))
    };
    programs.flatten().map(need).collect()
}

/// The modules: every folder under modules/ with a Cargo.toml, by name.
pub(crate) fn modules() -> Result<Vec<String>> {
    crates("modules")
}

/// The components that only the tests use: every folder with a Cargo.toml, by its kind and its name.
pub(crate) fn guests() -> Result<Vec<(&'static str, String)>> {
    let mut guests = Vec::new();
    for (kind, folder) in [("guest", "tests/guests"), ("hostile", "tests/hostile")] {
        guests.extend(crates(folder)?.into_iter().map(|name| (kind, name)));
    }
    Ok(guests)
}

/// The folders of modules as a third party writes them: workspaces of their own, which depend on the sdk and nothing else.
const OUTSIDE: [&str; 2] = ["sdk/examples", "tests/outside"];

/// The folders of these modules, from the workspace's root. Each has its package's name.
pub(crate) fn outside() -> Result<Vec<String>> {
    let mut folders = Vec::new();
    for folder in OUTSIDE {
        folders.extend(crates(folder)?.into_iter().map(|name| format!("{folder}/{name}")));
    }
    Ok(folders)
}

/// The name of a component's package: `module-cron` for the folder `modules/cron`, and `guest-…` or `hostile-…` for the
/// tests' own components.
pub(crate) fn package(kind: &str, folder: &str) -> String {
    format!("{kind}-{folder}")
}

/// The packages of all components.
pub(crate) fn components() -> Result<Vec<String>> {
    let (modules, guests) = (modules()?, guests()?);
    let modules = modules.iter().map(|name| package("module", name));
    Ok(modules.chain(guests.iter().map(|(kind, name)| package(kind, name))).collect())
}

fn crates(folder: &str) -> Result<Vec<String>> {
    let dir = root().join(folder);
    let mut names = Vec::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        if path.join("Cargo.toml").is_file()
            && let Some(name) = path.file_name().and_then(|name| name.to_str())
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The text that says how to register the server with clients. `run` and `install` end with it.
pub(crate) fn registration(binary: &Path) -> String {
    let json = serde_json::json!({"mcpServers": {SERVER: {"command": binary, "args": ["serve"]}}});
    format!(
        "Claude Code:\n    claude mcp add {SERVER} -- {} serve\n\nOther clients (their mcpServers setting):\n    {json}\n",
        binary.display()
    )
}
