//! `linux-sysadmin modules new`: makes the folder of a new module, which builds, tests and loads as it is.

mod name;
mod sdk;
mod templates;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use host_text::visible::visible;
use name::NewName;
use sdk::Sdk;

#[derive(Args)]
pub(super) struct New {
    /// The module's name, and the folder's: lower-case letters, digits and single dashes, a letter first
    name: NewName,
    /// The language
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    lang: Language,
    /// Begin with the tools that the sdk has for this domain; in Rust only
    #[arg(long, value_enum)]
    domain: Option<Domain>,
    /// The folder of the sdk's sources [default: the one beside this program, or else the sdk that is published]
    #[arg(long, value_name = "DIR")]
    sdk: Option<PathBuf>,
}

/// The language of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    Rust,
    Python,
}

/// A domain whose tools are the same for every program that can do their work. A module has the program's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Domain {
    /// The tools for packages, with another package manager
    Packages,
    /// The tools for a firewall, with another one
    Firewall,
}

impl Domain {
    fn name(self) -> &'static str {
        match self {
            Self::Packages => "packages",
            Self::Firewall => "firewall",
        }
    }
}

/// The reason why no folder was made.
#[derive(Debug, thiserror::Error)]
pub(super) enum NewError {
    #[error(
        "a domain's tools are in the sdk for Rust: expected --lang rust with --domain {0}, or --lang python without it"
    )]
    NotInPython(&'static str),
    #[error(
        "there is a module named {0} already, and the name tells modules apart; \
         `linux-sysadmin modules list` shows those that are there"
    )]
    NameTaken(String),
    #[error("{} is there already; nothing was changed", .0.display())]
    FolderExists(PathBuf),
    #[error("{} can't be made: {}", .0.display(), .1)]
    NotWritten(PathBuf, #[source] io::Error),
    #[error("{} is not the folder of the sdk: expected {} there, which names {}", .0.display(), .1, sdk::NAME)]
    NoSdk(PathBuf, &'static str),
    #[error("{} can't be named in a configuration file: expected a path of UTF-8", .0.display())]
    NotUtf8(PathBuf),
}

impl New {
    /// Makes the folder in the current directory; gives a message about what to do with it. These names are taken.
    pub(super) fn run(&self, taken: &[String]) -> Result<Option<String>, NewError> {
        let name = self.name.as_str();
        if taken.iter().any(|other| other == name) {
            return Err(NewError::NameTaken(name.to_owned()));
        }
        let program = std::env::current_exe().ok();
        let sdk = Sdk::find(self.lang, self.sdk.as_deref(), program.as_deref())?;
        self.make(Path::new(""), &sdk)?;
        Ok(Some(self.done(&sdk)))
    }

    /// Makes the folder in this directory.
    fn make(&self, directory: &Path, sdk: &Sdk) -> Result<(), NewError> {
        if let (Language::Python, Some(domain)) = (self.lang, self.domain) {
            return Err(NewError::NotInPython(domain.name()));
        }
        let files = templates::files(self.lang, self.domain, &self.name, sdk);
        let folder = directory.join(self.name.as_str());
        // A folder that is there is never written to, so that nothing in it is lost.
        fs::create_dir(&folder).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => NewError::FolderExists(folder.clone()),
            _ => NewError::NotWritten(folder.clone(), error),
        })?;
        for (path, text) in files {
            let path = folder.join(path);
            if let Err(error) = write(&path, &text) {
                let _ = fs::remove_dir_all(&folder);
                return Err(NewError::NotWritten(path, error));
            }
        }
        Ok(())
    }

    fn done(&self, sdk: &Sdk) -> String {
        let name = self.name.as_str();
        let from = match sdk {
            Sdk::Folder(folder) => format!("the sdk is taken from {}", visible(folder)),
            Sdk::Published => "the sdk is taken from the registry".to_owned(),
        };
        format!("made {name}; {from}\nnext: `linux-sysadmin modules dev {name}`, or read {name}/README.md")
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests;
