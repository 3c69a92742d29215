//! Makes modules by `linux-sysadmin modules new`, as an author does, and builds the components of what it has made. The tests
//! add them.

use crate::build::{self, Profile};
use crate::{cmd, files, python, workspace};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The modules in Rust: the name of each, which is also that of its folder beside the other guests, and the options of its kind.
const RUST: [(&str, &[&str]); 3] = [
    ("new-tools", &[]),
    ("packages-new", &["--domain", "packages"]),
    ("firewall-new", &["--domain", "firewall"]),
];
/// The module in Python.
const PYTHON: (&str, &[&str]) = ("new-python", &["--lang", "python"]);

/// Makes and builds them with this program, and puts the components where the tests look for them.
pub(crate) fn build(profile: Profile, program: &Path) -> Result<()> {
    let work = workspace::target_dir()?.join("new-modules");
    files::make_dir(&work)?;
    let guests = program.with_file_name("test-modules");
    for (name, options) in RUST {
        let folder = make(program, &work, name, options)?;
        build::new_module(profile, &folder, name, &guests.join(name))?;
    }
    let (name, options) = PYTHON;
    let to = guests.join(name);
    match make(program, &work, name, options).and_then(|folder| in_python(&folder)) {
        Ok(component) => {
            fs::remove_file(to.join(python::MISSING)).ok();
            build::place_one(&component, name, &to)
        }
        Err(error) => {
            files::make_dir(&to)?;
            python::leave_out(&to, &error)
        }
    }
}

/// Has the program make a module's folder in `work`, in place of the one that is there.
fn make(program: &Path, work: &Path, name: &str, options: &[&str]) -> Result<PathBuf> {
    let folder = work.join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let mut new = Command::new(program);
    new.env_clear().env("HOME", work).current_dir(work);
    new.args(["modules", "new", name]).args(options).arg("--sdk").arg(workspace::root().join("sdk"));
    cmd::output(&mut new)?;
    Ok(folder)
}

/// Builds the component of a module in Python by the sdk's own command, and gives its path.
fn in_python(folder: &Path) -> Result<PathBuf> {
    let component = folder.join("module.wasm");
    let mut command = Command::new(python::builder(&workspace::target_dir()?));
    command.current_dir(folder).args(["module.py", "-o"]).arg(&component);
    cmd::output(&mut command)?;
    Ok(component)
}
