//! Builds a module's component by the tools of its language, which print what is wrong as they always do.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use serde_json::Value;
use tokio::process::Command;

/// The file that makes a folder a module in Rust.
const RUST: &str = "Cargo.toml";
/// The file that makes a folder a module in Python.
const PYTHON: &str = "module.py";
/// The program of the sdk for Python that makes a component, in the folder's own environment.
const PYTHON_BUILD: &str = ".venv/bin/linux-sysadmin-build";
/// The component of a module in Python.
const PYTHON_COMPONENT: &str = "module.wasm";

/// A module's folder, in its language.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Project {
    Rust(PathBuf),
    Python(PathBuf),
}

/// The reason why there is no component.
#[derive(Debug, thiserror::Error)]
pub(super) enum BuildError {
    #[error(
        "{} is no module's folder: expected {} for a module in Rust or {} for one in Python there; \
         `linux-sysadmin modules new` makes such a folder",
        .0.display(), RUST, PYTHON
    )]
    NoModule(PathBuf),
    #[error("cargo can't be started ({0}); rustup installs it")]
    NoCargo(#[source] io::Error),
    #[error(
        "{} can't be started ({}); `python3 -m venv .venv` and `.venv/bin/pip install -r requirements.txt` in that \
         folder install it",
        .0.display(), .1
    )]
    NoPythonBuild(PathBuf, #[source] io::Error),
    #[error("the build ended with {0}")]
    Failed(ExitStatus),
    #[error(
        "the build made no component: expected `crate-type = [\"cdylib\"]`, or that beside others, below [lib] in {}",
        .0.display()
    )]
    NoComponent(PathBuf),
    #[error("the build made several components ({0}): expected the folder of one")]
    SeveralComponents(String),
}

impl Project {
    /// Finds out in which language the module of this folder is.
    pub(super) fn of(folder: &Path) -> Result<Self, BuildError> {
        if folder.join(RUST).is_file() {
            Ok(Self::Rust(folder.to_owned()))
        } else if folder.join(PYTHON).is_file() {
            Ok(Self::Python(folder.to_owned()))
        } else {
            Err(BuildError::NoModule(folder.to_owned()))
        }
    }

    /// Builds the component, and gives its path.
    pub(super) async fn build(&self) -> Result<PathBuf, BuildError> {
        match self {
            Self::Rust(folder) => cargo(folder).await,
            Self::Python(folder) => python(folder).await,
        }
    }
}

async fn cargo(folder: &Path) -> Result<PathBuf, BuildError> {
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "--target", "wasm32-wasip2"]);
    // Messages for people go to stderr, and what was made to stdout.
    command.arg("--message-format=json-render-diagnostics");
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let child = command.spawn().map_err(BuildError::NoCargo)?;
    let output = child.wait_with_output().await.map_err(BuildError::NoCargo)?;
    if !output.status.success() {
        return Err(BuildError::Failed(output.status));
    }
    component(folder, &String::from_utf8_lossy(&output.stdout))
}

/// The component that cargo made of a crate in this folder, by its messages: one JSON object in each line.
fn component(folder: &Path, messages: &str) -> Result<PathBuf, BuildError> {
    let mut found: Vec<PathBuf> = Vec::new();
    for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let manifest = message["manifest_path"].as_str().map(Path::new);
        // Other crates' components, as those of dependencies, lie elsewhere.
        if message["reason"] != "compiler-artifact" || !manifest.is_some_and(|path| path.starts_with(folder))
        {
            continue;
        }
        let files = message["filenames"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let components = files.map(PathBuf::from).filter(|file| file.extension() == Some(OsStr::new("wasm")));
        found.extend(components);
    }
    found.dedup();
    match found.as_slice() {
        [] => Err(BuildError::NoComponent(folder.join(RUST))),
        [component] => Ok(component.clone()),
        several => {
            let names = several.iter().filter_map(|path| Some(path.file_name()?.to_string_lossy()));
            let names: Vec<_> = names.collect();
            Err(BuildError::SeveralComponents(names.join(", ")))
        }
    }
}

async fn python(folder: &Path) -> Result<PathBuf, BuildError> {
    let (program, component) = (folder.join(PYTHON_BUILD), folder.join(PYTHON_COMPONENT));
    let mut command = Command::new(&program);
    command.arg(PYTHON).arg("-o").arg(&component);
    command.current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
    match command.status().await {
        Ok(status) if status.success() => Ok(component),
        Ok(status) => Err(BuildError::Failed(status)),
        Err(error) => Err(BuildError::NoPythonBuild(program, error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn artifact(manifest: &str, files: &[&str]) -> String {
        let artifact = json!({"reason": "compiler-artifact", "manifest_path": manifest, "filenames": files});
        format!("{artifact}\n")
    }

    #[test]
    fn the_component_is_the_one_of_the_folders_own_crate() {
        let folder = Path::new("/srv/x");
        let other = artifact("/root/.cargo/registry/src/y/Cargo.toml", &["/srv/x/target/y.wasm"]);
        let of_host = artifact("/srv/xy/Cargo.toml", &["/srv/x/target/xy.wasm"]);
        let own = artifact("/srv/x/Cargo.toml", &["/srv/x/target/x.wasm", "/srv/x/target/libx.rlib"]);
        let end = "{\"reason\": \"build-finished\", \"success\": true}\nnot JSON\n";
        let all = [other.as_str(), &of_host, &own, end].concat();
        assert_eq!(component(folder, &all).unwrap(), Path::new("/srv/x/target/x.wasm"));
        let refused = component(folder, &other).unwrap_err().to_string();
        assert!(
            refused.contains("crate-type = [\"cdylib\"]") && refused.contains("/srv/x/Cargo.toml"),
            "{refused}"
        );
        let second = artifact("/srv/x/more/Cargo.toml", &["/srv/x/target/more.wasm"]);
        let refused = component(folder, &[all, second].concat()).unwrap_err().to_string();
        assert!(refused.contains("(x.wasm, more.wasm): expected the folder of one"), "{refused}");
    }

    #[test]
    fn a_folder_is_of_the_language_that_its_files_say() {
        let home = tempfile::tempdir().unwrap();
        let of = || Project::of(home.path());
        let refused = of().unwrap_err().to_string();
        assert!(refused.contains("expected Cargo.toml for a module in Rust or module.py"), "{refused}");
        fs::write(home.path().join("module.py"), "").unwrap();
        assert_eq!(of().unwrap(), Project::Python(home.path().to_owned()));
        fs::write(home.path().join("Cargo.toml"), "").unwrap();
        assert_eq!(of().unwrap(), Project::Rust(home.path().to_owned()));
    }

    #[tokio::test]
    async fn a_folder_without_the_builder_of_its_language_says_how_to_get_it() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("module.py"), "").unwrap();
        let refused = Project::of(home.path()).unwrap().build().await.unwrap_err().to_string();
        assert!(refused.contains(".venv/bin/pip install -r requirements.txt"), "{refused}");
    }
}
