//! Builds the host binary and its modules, and puts the modules where the binary looks for them. The tests' own
//! components go beside them, and are never installed.

use crate::{cmd, compiler, files, order, python, wasm, workspace};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Every component begins with this: `\0asm`, version 13, layer 1. A core module has version 1 and layer 0.
const COMPONENT_MAGIC: [u8; 8] = [0, b'a', b's', b'm', 0x0d, 0, 1, 0];

/// The cargo profile with which the host and its components are compiled.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Profile {
    /// The profile of the tests: little is optimized, and the host has the points where a test can make it fail.
    Dev,
    /// The profile of what ships.
    Release,
}

impl Profile {
    fn of_cargo(self) -> &'static str {
        match self {
            Profile::Dev => "dev",
            Profile::Release => "release",
        }
    }

    /// The profile of components. A host compiles the components that ship once more, so size matters more than speed.
    fn of_components(self) -> &'static str {
        match self {
            Profile::Dev => "dev",
            Profile::Release => "module",
        }
    }

    /// The folder into which cargo puts what it has built.
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

/// Builds the server and its modules.
pub(crate) fn build(profile: Profile) -> Result<Built> {
    let modules = workspace::modules()?;
    let packages: Vec<_> = modules.iter().map(|name| workspace::package("module", name)).collect();
    let components = build_components(profile, &packages)?;
    let built = program(profile)?;
    place(&components, "module", &modules, &built.modules)?;
    eprintln!("xtask: {} with {} modules", built.binary.display(), modules.len());
    Ok(built)
}

/// Builds the modules and the tests' own components, and puts them where the tests look for them.
pub(crate) fn components(profile: Profile) -> Result<()> {
    let (modules, guests) = (workspace::modules()?, workspace::guests()?);
    let from = build_components(profile, &workspace::components()?)?;
    let out = workspace::target_dir()?.join(profile.folder());
    place(&from, "module", &modules, &out.join("modules"))?;
    let test_modules = out.join("test-modules");
    for (kind, guest) in &guests {
        place(&from, kind, std::slice::from_ref(guest), &test_modules.join(guest))?;
    }
    for folder in workspace::outside()? {
        let name = folder.rsplit('/').next().unwrap_or(&folder);
        let component = build_outside(profile, &folder, name)?;
        place_one(&component, name, &test_modules.join(name))?;
    }
    Ok(())
}

/// Builds one of the tests' own components; gives its file.
pub(crate) fn guest(profile: Profile, name: &str) -> Result<PathBuf> {
    let package = workspace::package("guest", name);
    let component = build_components(profile, std::slice::from_ref(&package))?.join(artifact(&package));
    check_component(&component)?;
    Ok(component)
}

/// Builds the components in Python and installs the client in Python that the tests use.
pub(crate) fn python(profile: Profile) -> Result<()> {
    let target = workspace::target_dir()?;
    let out = target.join(profile.folder());
    python::build(&target, &out.join("test-modules"))?;
    python::client(&out.join("test-clients"))
}

/// Builds the server, the modules and the tests' own components.
pub(crate) fn with_guests(profile: Profile) -> Result<Built> {
    components(profile)?;
    program(profile)
}

fn program(profile: Profile) -> Result<Built> {
    cmd::run(&mut host(profile)?)?;
    let out = workspace::target_dir()?.join(profile.folder());
    let built = Built { binary: out.join(workspace::BINARY), modules: out.join("modules") };
    if profile == Profile::Release {
        order::tell(&built.binary)?;
    }
    Ok(built)
}

/// The cargo call that builds the host. What ships is built with the features that it needs. In the dev profile the
/// workspace's crates and their dependencies have the features that they have for the tests, which use the same builds.
pub(crate) fn host(profile: Profile) -> Result<Command> {
    let mut cargo = workspace::cargo();
    let subcommand = if profile == Profile::Dev { "build" } else { "rustc" };
    if profile == Profile::Release {
        cargo.args(release_flags());
    }
    cargo.args([subcommand, "--profile", profile.of_cargo(), "--bin", workspace::BINARY]);
    match profile {
        Profile::Dev => {
            cargo.envs(compiler::environment(false)?).args(["--workspace", "--features", TEST_FEATURES]);
        }
        Profile::Release => order::in_order(cargo.args(["--package", workspace::BINARY]), "cc")?,
    };
    Ok(cargo)
}

/// The arguments of each call of cargo that builds in the release profile, so that calls share what they build.
pub(crate) fn release_flags() -> [String; 2] {
    ["--config".to_owned(), format!("build.rustflags=['{}']", order::SYMBOLS)]
}

/// The features with the points where a test can end the host or make a step fail, and with the connections that tests
/// make up. Nothing that ships has them.
pub(crate) const TEST_FEATURES: &str =
    "linux-sysadmin/fault-points,host-gate/test-support,host-target/test-support";

/// Fills the cache of compiled components in this home, or in the home of the account that runs this: the first start
/// compiles them, and no client should wait for that.
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

/// Does the same for the tests' own components. Some of them are there to be refused.
pub(crate) fn warm_guests(binary: &Path, home: &Path) -> Result<()> {
    let folder = binary.with_file_name("test-modules");
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let mut tools = Command::new(binary);
        tools.env_clear().env("HOME", home).arg("tools").arg("--modules").arg(entry?.path());
        cmd::succeeds(&mut tools);
    }
    Ok(())
}

/// Builds the components in one cargo call, so that they share the sdk; gives the folder with them.
fn build_components(profile: Profile, packages: &[String]) -> Result<PathBuf> {
    let toolchain = wasm::find()?;
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--profile", profile.of_components()]);
    let out = toolchain_and_folder(profile, &toolchain, &mut cargo)?;
    for package in packages {
        cargo.args(["--package", package]);
    }
    cmd::run(&mut cargo)?;
    Ok(out)
}

/// Builds the modules that ship below a target directory of their own, with further flags of the compiler; puts them into `to`.
pub(crate) fn shipped_components(target: &Path, flags: &[String], to: &Path) -> Result<()> {
    let modules = workspace::modules()?;
    let profile = Profile::Release.of_components();
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--locked", "--profile", profile]);
    // The flags of the environment would make other components.
    cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    wasm::find()?.apply(&mut cargo, flags);
    cargo.arg("--target-dir").arg(target);
    for module in &modules {
        cargo.args(["--package", &workspace::package("module", module)]);
    }
    cmd::run(&mut cargo)?;
    place(&target.join(wasm::TARGET).join(profile), "module", &modules, to)
}

/// Builds a component of a workspace of its own. It uses the same target directory, where its dependencies are built
/// already, since their versions and the profile are the same.
fn build_outside(profile: Profile, folder: &str, name: &str) -> Result<PathBuf> {
    let mut cargo = workspace::cargo();
    cargo.current_dir(workspace::root().join(folder));
    cargo.args(["build", "--locked", "--profile", profile.of_components()]);
    let out = toolchain_and_folder(profile, &wasm::find()?, &mut cargo)?;
    cmd::run(&mut cargo)?;
    Ok(out.join(artifact(name)))
}

/// Builds the component of a crate that `modules new` has made, with the dependencies that the workspace has, and puts it into
/// `to`. Nothing is fetched.
pub(crate) fn new_module(profile: Profile, folder: &Path, name: &str, to: &Path) -> Result<()> {
    files::copy(&workspace::root().join("Cargo.lock"), &folder.join("Cargo.lock"), 0o644)?;
    let mut cargo = workspace::cargo();
    cargo.current_dir(folder).args(["build", "--offline", "--profile", profile.of_cargo()]);
    // As the tests are built, so that what it depends on is there already.
    cargo.args(["--config", "profile.dev.debug=false"]);
    let out = toolchain_and_folder(profile, &wasm::find()?, &mut cargo)?.with_file_name(profile.folder());
    cmd::run(&mut cargo)?;
    place_one(&out.join(artifact(&workspace::package("module", name))), name, to)
}

/// Gives cargo the toolchain and the target directory; gives the folder of the components. In the dev profile the macros
/// and build scripts are those of the tests, so both are built in one directory where one compiler builds both.
fn toolchain_and_folder(
    profile: Profile,
    toolchain: &wasm::Toolchain,
    cargo: &mut Command,
) -> Result<PathBuf> {
    toolchain.apply(cargo, &[]);
    let target = workspace::target_dir()?;
    if profile == Profile::Dev {
        // Modules have to answer within seconds, as those that ship do. Macros and build scripts stay as they are.
        cargo.args([
            "--config",
            "profile.dev.opt-level='s'",
            "--config",
            "profile.dev.debug-assertions=false",
        ]);
    }
    let shared = profile == Profile::Dev && matches!(toolchain, wasm::Toolchain::Rustup);
    let own = if shared { target } else { target.join("modules") };
    cargo.arg("--target-dir").arg(&own);
    let folder = if profile == Profile::Dev { "debug" } else { profile.of_components() };
    Ok(own.join(wasm::TARGET).join(folder))
}

pub(crate) fn place_one(component: &Path, name: &str, to: &Path) -> Result<()> {
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

/// The file name that cargo gives to the component of a package.
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
