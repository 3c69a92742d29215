//! Makes what the tests need from Python: a component, built by componentize-py, and the official client of MCP, each in a
//! virtual environment of its own. Where one of them can't be made, as without a network, a file with the reason takes its
//! place, and the tests that need it are skipped.

use crate::apt::{self, Need};
use crate::{cmd, files, workspace};
use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name of the component and of its folder beside the other guests.
pub(crate) const NAME: &str = "python";
/// The package on PyPI that builds the component. Another version builds another component.
const COMPONENTIZE: &str = "componentize-py==0.25.1";
/// The client's package on PyPI. This version has elicitation in every generation of the protocol.
const CLIENT: &str = "mcp==2.3.0";
/// The component's source.
const APP: &str = "tests/guests-python/hello/app.py";
const WIT: &str = "wit";
/// The name of the file that says why there is no component or no client. The tests read it.
pub(crate) const MISSING: &str = "missing.txt";

/// Builds the component where its sources have changed, and puts it into `to`.
pub(crate) fn build(target: &Path, to: &Path) -> Result<()> {
    let work = target.join("python");
    let (component, stamp) = (work.join("python.wasm"), work.join("stamp"));
    files::make_dir(&work)?;
    files::make_dir(to)?;
    let wanted = digest()?;
    if !component.is_file() || fs::read_to_string(&stamp).ok().as_deref() != Some(&wanted) {
        let tool = match tool(&work.join("venv")) {
            Ok(tool) => tool,
            Err(error) => return leave_out(to, &error),
        };
        componentize(&tool, &work, &component)?;
        files::write(&stamp, &wanted, 0o644)?;
    }
    fs::remove_file(to.join(MISSING)).ok();
    files::copy(&component, &to.join(format!("{NAME}.wasm")), 0o644)?;
    files::write_sums(to)
}

/// The digest of everything that the component is made from.
fn digest() -> Result<String> {
    let root = workspace::root();
    let mut sources: Vec<PathBuf> = fs::read_dir(root.join(WIT))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    sources.push(root.join(APP));
    sources.sort();
    let mut hasher = Sha256::new_with_prefix(COMPONENTIZE);
    for source in sources {
        let bytes = fs::read(&source).with_context(|| format!("cannot read {}", source.display()))?;
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    }
    Ok(hex::encode(hasher.finalize()))
}

/// Gives the path of componentize-py of the pinned version, and installs it where it is missing.
fn tool(venv: &Path) -> Result<PathBuf> {
    install(venv, COMPONENTIZE)?;
    Ok(venv.join("bin/componentize-py"))
}

/// The Python that has componentize-py of the pinned version.
pub(crate) fn interpreter(target: &Path) -> Result<PathBuf> {
    let venv = target.join("python/venv");
    install(&venv, COMPONENTIZE)?;
    Ok(venv.join("bin/python3"))
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
    let mut install = Command::new(venv.join("bin/pip"));
    install.args(["install", "--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "20"]);
    cmd::output(install.arg(package))?;
    anyhow::ensure!(is_there(), "{} doesn't hold {package}", venv.display());
    Ok(())
}

fn make_venv(venv: &Path) -> Result<()> {
    cmd::output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(venv)).map(drop)
}

fn componentize(tool: &Path, work: &Path, component: &Path) -> Result<()> {
    // The sources are copied, since Python leaves its bytecode beside the files that it reads.
    let sources = work.join("app");
    files::make_dir(&sources)?;
    files::copy(&workspace::root().join(APP), &sources.join("app.py"), 0o644)?;
    let mut command = Command::new(tool);
    command.current_dir(workspace::root()).args(["-d", WIT, "-w", "tool-module", "componentize"]);
    // Without this option the component imports sockets, which no module gets.
    command.args(["--stub-wasi", "app", "-p"]).arg(sources).arg("-o").arg(component);
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
