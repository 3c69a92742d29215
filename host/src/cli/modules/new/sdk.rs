//! Where a new module takes the sdk from: a folder with its sources, or the registry of its language.

use std::fs;
use std::path::Path;

use super::{Language, NewError};

/// The name of the sdk in both registries.
pub(super) const NAME: &str = "linux-sysadmin-sdk";

/// The places of the sdk's sources from the folder of this program: as installed, and in the project's own tree of sources.
const BESIDE: [&str; 2] = ["../share/linux-sysadmin/sdk", "../../sdk"];

/// The source of the sdk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sdk {
    /// The absolute path of the folder with the sources for the module's language.
    Folder(String),
    /// The registry of the language.
    Published,
}

impl Sdk {
    /// The folder that is named, or else the one beside the program. Without either, the published sdk.
    pub(super) fn find(
        language: Language,
        named: Option<&Path>,
        program: Option<&Path>,
    ) -> Result<Self, NewError> {
        if let Some(named) = named {
            let refused = || NewError::NoSdk(named.to_owned(), manifest(language));
            return of_folder(language, named)?.ok_or_else(refused);
        }
        let folder = program.and_then(Path::parent);
        for candidate in folder.into_iter().flat_map(|folder| BESIDE.map(|path| folder.join(path))) {
            if let Some(found) = of_folder(language, &candidate)? {
                return Ok(found);
            }
        }
        Ok(Self::Published)
    }
}

/// The file that names the sdk, in the folder of the whole sdk.
fn manifest(language: Language) -> &'static str {
    match language {
        Language::Rust => "Cargo.toml",
        Language::Python => "python/pyproject.toml",
    }
}

/// The sdk in this folder. `None` where another thing is there, or nothing.
fn of_folder(language: Language, folder: &Path) -> Result<Option<Sdk>, NewError> {
    let Ok(manifest) = folder.join(manifest(language)).canonicalize() else { return Ok(None) };
    let Ok(text) = fs::read_to_string(&manifest) else { return Ok(None) };
    let names_it = |line: &str| line.replace(' ', "") == format!("name=\"{NAME}\"");
    let Some(folder) = manifest.parent().filter(|_| text.lines().any(names_it)) else { return Ok(None) };
    match folder.to_str() {
        Some(folder) => Ok(Some(Sdk::Folder(folder.to_owned()))),
        None => Err(NewError::NotUtf8(folder.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sdk_is_taken_from_a_folder_only_where_it_is_the_sdk() {
        let home = tempfile::tempdir().unwrap();
        let program = home.path().join("bin/linux-sysadmin");
        let find = |named: Option<&Path>| Sdk::find(Language::Rust, named, Some(&program));
        let folder =
            |path: &str| Sdk::Folder(home.path().join(path).canonicalize().unwrap().to_str().unwrap().into());
        let make = |path: &str, name: &str| {
            fs::create_dir_all(home.path().join(path)).unwrap();
            let text = format!("[package]\nname = \"{name}\"\n");
            fs::write(home.path().join(path).join("Cargo.toml"), text).unwrap();
        };
        fs::create_dir(home.path().join("bin")).unwrap();
        assert_eq!(find(None).unwrap(), Sdk::Published);
        make("share/linux-sysadmin/sdk", "something-else");
        assert_eq!(find(None).unwrap(), Sdk::Published);
        make("share/linux-sysadmin/sdk", NAME);
        assert_eq!(find(None).unwrap(), folder("share/linux-sysadmin/sdk"));
        make("other", NAME);
        assert_eq!(find(Some(&home.path().join("other"))).unwrap(), folder("other"));
        let refused = find(Some(home.path())).unwrap_err().to_string();
        assert!(refused.contains("is not the folder of the sdk: expected Cargo.toml"), "{refused}");
    }

    #[test]
    fn the_projects_own_sources_are_an_sdk() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
        let named = Sdk::find(Language::Rust, Some(&root.join("sdk")), None).unwrap();
        assert_eq!(named, Sdk::Folder(root.join("sdk").to_str().unwrap().to_owned()));
    }
}
