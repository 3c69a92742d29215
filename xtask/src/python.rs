//! Makes what the tests need from Python: components, built by componentize-py, and the official client of MCP, each in a
//! virtual environment of its own. Where one of them can't be made, as without a network, a file with the reason takes its
//! place, and the tests that need it are skipped.
//!
//! One component uses the contract alone. The others are examples for authors, made by the sdk for Python as pip makes it
//! from its folder.

use crate::apt::{self, Need};
use crate::{cmd, files, workspace};
use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name of the component that uses the contract alone, and of its folder beside the other guests.
const ALONE: &str = "python";
/// That component's source.
const APP: &str = "tests/guests-python/hello/app.py";
const WIT: &str = "wit";
/// The sdk for Python. It says which version of componentize-py makes components.
const SDK: &str = "sdk/python";
/// The folder of examples for authors. Those in Python have no Cargo.toml.
const EXAMPLES: &str = "sdk/examples";
/// The package on PyPI that pip builds the sdk with.
const BACKEND: &str = "hatchling==1.33.0";
/// The client's package on PyPI. This version has elicitation in every generation of the protocol.
const CLIENT: &str = "mcp==2.3.0";
/// The name of the file that says why there is no component or no client. The tests read it.
pub(crate) const MISSING: &str = "missing.txt";

/// A component that is made from Python.
struct Guest {
    name: String,
    /// The file that has its tools.
    file: PathBuf,
}

/// Builds the components whose sources have changed, and puts each into a folder of its own below `modules`.
pub(crate) fn build(target: &Path, modules: &Path) -> Result<()> {
    let (work, sources) = (target.join("python"), sdk_sources()?);
    let python = interpreter(target);
    let alone = Guest { name: ALONE.to_owned(), file: workspace::root().join(APP) };
    for guest in std::iter::once(alone).chain(examples()?) {
        let to = modules.join(&guest.name);
        files::make_dir(&to)?;
        let python = match &python {
            Ok(python) => python,
            Err(error) => {
                leave_out(&to, error)?;
                continue;
            }
        };
        let folder = guest.file.parent().context("a component's file is in a folder")?;
        let component = work.join(format!("{}.wasm", guest.name));
        let stamp = work.join(format!("{}.stamp", guest.name));
        let wanted = format!("{sources} {}", digest(&[folder.to_owned()])?);
        if !component.is_file() || fs::read_to_string(&stamp).ok().as_deref() != Some(&wanted) {
            make(&guest, python, &work, &component)?;
            files::write(&stamp, &wanted, 0o644)?;
        }
        fs::remove_file(to.join(MISSING)).ok();
        files::copy(&component, &to.join(format!("{}.wasm", guest.name)), 0o644)?;
        files::write_sums(&to)?;
    }
    Ok(())
}

/// The examples in Python: each has one file that is no test.
fn examples() -> Result<Vec<Guest>> {
    let mut guests = Vec::new();
    for folder in entries(&workspace::root().join(EXAMPLES))? {
        let Some(name) = folder.file_name().and_then(|name| name.to_str()) else { continue };
        if !folder.is_dir() || folder.join("Cargo.toml").is_file() {
            continue;
        }
        let is_source = |path: &&PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".py") && !name.starts_with("test_")
        };
        let found = entries(&folder)?;
        let [file] = found.iter().filter(is_source).collect::<Vec<_>>()[..] else {
            anyhow::bail!("{} has not one file of Python that is no test", folder.display());
        };
        guests.push(Guest { name: name.to_owned(), file: file.clone() });
    }
    Ok(guests)
}

/// What is in a folder, in the order of names.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// The digest of all files in these folders of the workspace, except Python's bytecode.
fn digest(sources: &[PathBuf]) -> Result<String> {
    fn add(path: &Path, hasher: &mut Sha256) -> Result<()> {
        if path.is_dir() {
            let sources = entries(path)?;
            let mut sources = sources.iter().filter(|path| !path.ends_with("__pycache__"));
            return sources.try_for_each(|path| add(path, hasher));
        }
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.to_string_lossy();
        for part in [name.as_bytes(), &bytes] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Ok(())
    }
    let mut hasher = Sha256::new();
    sources.iter().try_for_each(|path| add(&workspace::root().join(path), &mut hasher))?;
    Ok(hex::encode(hasher.finalize()))
}

/// The digest of all that the sdk is made from.
fn sdk_sources() -> Result<String> {
    digest(&[SDK.into(), WIT.into(), "xtask/src/python.rs".into()])
}

/// The Python that has the sdk, which is installed where its sources have changed. The version of componentize-py that it asks
/// for comes with it.
pub(crate) fn interpreter(target: &Path) -> Result<PathBuf> {
    let work = target.join("python");
    files::make_dir(&work)?;
    let (venv, stamp, sources) = (work.join("venv"), work.join("sdk.stamp"), sdk_sources()?);
    let python = venv.join("bin/python3");
    let is_there = || cmd::succeeds(Command::new(venv.join("bin/linux-sysadmin-build")).arg("--help"));
    if fs::read_to_string(&stamp).ok().as_ref() == Some(&sources) && is_there() {
        return Ok(python);
    }
    install(&venv, BACKEND)?;
    cmd::output(pip_install(&venv).arg("--no-build-isolation").arg(workspace::root().join(SDK)))?;
    anyhow::ensure!(is_there(), "{} doesn't hold the sdk for Python", venv.display());
    files::write(&stamp, sources, 0o644)?;
    Ok(python)
}

/// The sdk's command that makes components, where [`build`] has installed it.
pub(crate) fn builder(target: &Path) -> PathBuf {
    target.join("python/venv/bin/linux-sysadmin-build")
}

/// Installs the client of the pinned version into `to`.
pub(crate) fn client(to: &Path) -> Result<()> {
    files::make_dir(to)?;
    let missing = to.join(MISSING);
    match install(&to.join("python"), CLIENT) {
        Ok(()) => {
            fs::remove_file(missing).ok();
            Ok(())
        }
        Err(error) => leave_reason(&missing, &format!("no client in Python could be installed: {error:#}")),
    }
}

/// Makes a virtual environment with this package in this version, where there is none.
pub(crate) fn install(venv: &Path, package: &str) -> Result<()> {
    let (name, version) = package.split_once("==").context("a package has a version")?;
    let says = format!("import importlib.metadata as m; print(m.version('{name}'))");
    let python = venv.join("bin/python3");
    let is_there =
        || cmd::output(Command::new(&python).args(["-c", &says])).is_ok_and(|said| said.trim() == version);
    if is_there() {
        return Ok(());
    }
    if make_venv(venv).is_err() {
        // Debian's python3 has the module `venv`, but not the files that the module unpacks.
        apt::ensure(package, &[Need::new("/usr/share/doc/python3-venv", "python3-venv")])?;
        make_venv(venv)?;
    }
    cmd::output(pip_install(venv).arg(package))?;
    anyhow::ensure!(is_there(), "{} doesn't hold {package}", venv.display());
    Ok(())
}

fn pip_install(venv: &Path) -> Command {
    let mut install = Command::new(venv.join("bin/pip"));
    install.args(["install", "--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "20"]);
    install
}

fn make_venv(venv: &Path) -> Result<()> {
    cmd::output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(venv)).map(drop)
}

/// Makes the component in a folder outside of the sources, since Python leaves its bytecode beside the files that it reads.
fn make(guest: &Guest, python: &Path, work: &Path, component: &Path) -> Result<()> {
    let folder = work.join("sources").join(&guest.name);
    files::make_dir(&folder)?;
    let file = folder.join(guest.file.file_name().context("a component's file has a name")?);
    files::copy(&guest.file, &file, 0o644)?;
    if guest.name != ALONE {
        let mut build = Command::new(python.with_file_name("linux-sysadmin-build"));
        return cmd::output(build.arg(&file).arg("--output").arg(component)).map(drop);
    }
    let mut command = Command::new(python.with_file_name("componentize-py"));
    command.current_dir(workspace::root()).args(["-d", WIT, "-w", "tool-module", "componentize"]);
    // Without this option the component imports sockets, which no module gets.
    command.args(["--stub-wasi", "app", "-p"]).arg(folder).arg("-o").arg(component);
    cmd::output(&mut command).map(drop)
}

/// Leaves the reason why there is no component, in its place.
pub(crate) fn leave_out(to: &Path, error: &anyhow::Error) -> Result<()> {
    files::remove_components_except(to, &Default::default())?;
    files::write_sums(to)?;
    leave_reason(&to.join(MISSING), &format!("no component in Python could be built: {error:#}"))
}

fn leave_reason(file: &Path, reason: &str) -> Result<()> {
    eprintln!("xtask: {reason}");
    files::write(file, reason.replace('\n', " "), 0o644)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sdk_for_python_has_the_version_of_the_other_crates_and_pins_what_makes_components() {
        let file = workspace::root().join(SDK).join("pyproject.toml");
        let text = fs::read_to_string(file).expect("the package's description");
        let version = concat!("version = \"", env!("CARGO_PKG_VERSION"), "\"");
        assert!(text.lines().any(|line| line == version), "{version} is not in {text}");
        assert!(text.contains("\"componentize-py=="), "{text}");
    }

    #[test]
    fn each_example_in_python_has_one_file_with_its_tools() {
        let examples = examples().expect("examples");
        let names: Vec<&str> = examples.iter().map(|example| example.name.as_str()).collect();
        assert!(!names.is_empty() && !names.contains(&ALONE), "{names:?}");
    }
}
