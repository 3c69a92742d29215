//! Builds the host binary and its modules, and puts the modules where the binary looks for them. The tests' own
//! components go beside them, and are never installed.

use crate::{cmd, files, python, wasm, workspace};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What every component begins with: `\0asm`, version 13, layer 1 (a core module has 1 and 0).
const COMPONENT_MAGIC: [u8; 8] = [0, b'a', b's', b'm', 0x0d, 0, 1, 0];

/// How the host is compiled. Components are always optimized: a host compiles them again, and unoptimized ones are several
/// times larger.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Profile {
    /// With the same dependencies as the tests.
    Dev,
    /// As it ships.
    Release,
}

impl Profile {
    fn of_cargo(self) -> &'static str {
        match self {
            Profile::Dev => "dev",
            Profile::Release => "release",
        }
    }

    /// Where cargo puts what it made.
    fn folder(self) -> &'static str {
        match self {
            Profile::Dev => "debug",
            Profile::Release => "release",
        }
    }
}

/// A finished build.
pub(crate) struct Built {
    pub(crate) binary: PathBuf,
    /// The folder of the components, beside the binary.
    pub(crate) modules: PathBuf,
}

/// Builds all.
pub(crate) fn build(profile: Profile) -> Result<Built> {
    let target = workspace::target_dir()?;
    let (modules, guests) = (workspace::modules()?, workspace::guests()?);
    let out = target.join(profile.folder());

    let components = build_components(&target, &workspace::components()?)?;
    let mut cargo = host(profile);
    // It keeps limits of seconds on a busy machine, which takes more than optimized dependencies.
    cargo.args(["--config", "profile.dev.package.linux-sysadmin.opt-level=2"]);
    cmd::run(&mut cargo)?;

    let built = Built { binary: out.join(workspace::BINARY), modules: out.join("modules") };
    place(&components, "module", &modules, &built.modules)?;
    let test_modules = out.join("test-modules");
    for (kind, guest) in &guests {
        place(&components, kind, std::slice::from_ref(guest), &test_modules.join(guest))?;
    }
    for name in workspace::outside()? {
        let component = build_outside(&target, &name)?;
        place_one(&component, &name, &test_modules.join(&name))?;
    }
    python::build(&target, &test_modules.join(python::NAME))?;
    python::client(&out.join("test-clients"))?;
    eprintln!("xtask: {} with {} modules", built.binary.display(), modules.len());
    Ok(built)
}

/// Builds the host with points where a test can make it fail, and puts it where nothing installs or ships from.
pub(crate) fn faulty(profile: Profile) -> Result<PathBuf> {
    let out = workspace::target_dir()?.join(profile.folder());
    let mut cargo = host(profile);
    cargo.args(["--features", "linux-sysadmin/fault-points"]);
    // A test puts the program on a host, so it is to be small.
    cargo.args(["--config", "profile.dev.debug=false"]);
    cmd::run(&mut cargo)?;
    let folder = out.join("test-faults");
    files::make_dir(&folder)?;
    let faulty = folder.join(workspace::BINARY);
    files::copy(&out.join(workspace::BINARY), &faulty, 0o755)?;
    Ok(faulty)
}

/// What builds the host: what ships with nothing but what it needs, else with the features of dependencies that the whole
/// workspace has, so that the tests have the same ones.
fn host(profile: Profile) -> Command {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--profile", profile.of_cargo(), "--bin", workspace::BINARY]);
    match profile {
        Profile::Dev => cargo.arg("--workspace"),
        Profile::Release => cargo.args(["--package", workspace::BINARY]),
    };
    cargo
}

/// Fills the cache of compiled components in this home, or that of who runs this: the first start compiles them, and no
/// client should wait for that.
pub(crate) fn warm(binary: &Path, home: Option<&Path>) -> Result<()> {
    let mut tools = Command::new(binary);
    if let Some(home) = home {
        files::make_dir(home)?;
        tools.env_clear().env("HOME", home);
    }
    let status = cmd::status(tools.args(["tools", "--json"]).stdout(Stdio::null()))?;
    if !status.success() {
        bail!("`{}` ended with {status}", cmd::describe(&tools));
    }
    Ok(())
}

/// Builds the components in one cargo call, so that they share the sdk; gives the folder with them.
fn build_components(target: &Path, packages: &[String]) -> Result<PathBuf> {
    let toolchain = wasm::find()?;
    let own_target = target.join("modules");
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--profile", "module", "--target-dir"]).arg(&own_target);
    toolchain.apply(&mut cargo);
    for package in packages {
        cargo.args(["--package", package]);
    }
    cmd::run(&mut cargo)?;
    Ok(own_target.join(wasm::TARGET).join("module"))
}

/// A component of a workspace of its own. In the same target directory: with the same profile and versions, what it depends
/// on is there already.
fn build_outside(target: &Path, name: &str) -> Result<PathBuf> {
    let own_target = target.join("modules");
    let mut cargo = workspace::cargo();
    cargo.current_dir(workspace::root().join(workspace::OUTSIDE).join(name));
    cargo.args(["build", "--locked", "--profile", "module", "--target-dir"]).arg(&own_target);
    wasm::find()?.apply(&mut cargo);
    cmd::run(&mut cargo)?;
    Ok(own_target.join(wasm::TARGET).join("module").join(artifact(name)))
}

fn place_one(component: &Path, name: &str, to: &Path) -> Result<()> {
    files::make_dir(to)?;
    check_component(component)?;
    files::copy(component, &to.join(format!("{name}.wasm")), 0o644)?;
    files::write_sums(to)
}

fn place(from: &Path, kind: &str, modules: &[String], to: &Path) -> Result<()> {
    files::make_dir(to)?;
    let mut placed = BTreeSet::new();
    for module in modules {
        let component = from.join(artifact(&workspace::package(kind, module)));
        check_component(&component)?;
        let name = format!("{module}.wasm");
        files::copy(&component, &to.join(&name), 0o644)?;
        placed.insert(name);
    }
    files::remove_components_except(to, &placed)?;
    files::write_sums(to)
}

/// What cargo calls the component of a package.
fn artifact(package: &str) -> String {
    format!("{}.wasm", package.replace('-', "_"))
}

fn check_component(path: &Path) -> Result<()> {
    let mut head = Vec::new();
    File::open(path)
        .and_then(|file| file.take(8).read_to_end(&mut head))
        .with_context(|| format!("cargo made no {}; is the crate a cdylib?", path.display()))?;
    if head != COMPONENT_MAGIC {
        let size = fs::metadata(path).map(|metadata| metadata.len()).unwrap_or_default();
        bail!(
            "{} ({size} bytes) is no WebAssembly component: it begins with {}",
            path.display(),
            hex::encode(head)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_dash_gives_an_artifact_with_an_underscore() {
        assert_eq!(artifact(&workspace::package("module", "hello-world")), "module_hello_world.wasm");
    }

    #[test]
    fn only_components_pass_and_a_core_module_does_not() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("m.wasm");
        for (bytes, expected) in [
            (&b"\0asm\x0d\0\x01\0rest"[..], true),
            (b"\0asm\x01\0\0\0rest", false),
            (b"\0asm\x0d", false),
            (b"(component)", false),
            (b"", false),
        ] {
            fs::write(&file, bytes)?;
            assert_eq!(check_component(&file).is_ok(), expected, "{bytes:?}");
        }
        assert!(check_component(&dir.path().join("none.wasm")).is_err());
        Ok(())
    }
}
