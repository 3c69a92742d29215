//! Repositories as their files define them.

use crate::Command;

/// A repository: one line or stanza of apt, or one section of dnf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// The name by which the tools know it. A backend makes it unique where it can.
    pub id: String,
    /// The name for people, where it has one.
    pub name: String,
    /// True where the package manager reads it.
    pub enabled: bool,
    /// `deb`, `deb-src`, or both. Empty for dnf.
    pub types: Vec<String>,
    /// The addresses, with credentials if the file has some: answers leave them out.
    pub urls: Vec<String>,
    /// The address of a list of mirrors.
    pub mirrors: String,
    /// The suites, and exact paths such as `./`.
    pub suites: Vec<String>,
    /// The components, such as `main`.
    pub components: Vec<String>,
    /// The keys of which one must have signed it. Where there is none, any key that the manager trusts may have.
    pub keys: Vec<KeySource>,
    /// The settings that turn off a check of signatures, such as `trusted=yes`.
    pub unsigned: Vec<String>,
    /// True where anybody may answer in the server's place: its certificate isn't checked.
    pub unverified: bool,
    /// The priority, where it isn't the default.
    pub priority: Option<i64>,
    /// A restriction to some packages, as the file writes it: `includepkgs=…`.
    pub restricted: Vec<String>,
    /// The file that defines it.
    pub file: String,
    /// The first and the last line in the file, counted from 1.
    pub lines: (usize, usize),
    /// True where it belongs to the distribution itself, which needs it for its updates.
    pub is_base: bool,
    /// The time of the last successful reading, in seconds since the epoch, where it is known.
    pub refreshed: Option<i64>,
    /// True where the machine has nothing of an enabled repository: it was never read successfully.
    pub never_read: bool,
}

impl Definition {
    /// The file and the line, as messages of package managers write them.
    pub fn at(&self) -> String {
        format!("{}:{}", self.file, self.lines.0)
    }
}

/// A key as a definition names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The path of a key file.
    File(String),
    /// The fingerprint of a key that the package manager has.
    Fingerprint(String),
    /// The key itself, armored, in the definition.
    Inline(String),
    /// An address from which the package manager gets the key.
    Url(String),
}

/// All definitions of the target.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// The definitions, in the order in which the package manager reads them.
    pub items: Vec<Definition>,
    /// Sentences on what can't be read, each with its file, its line where there is one, and the reason.
    pub malformed: Vec<String>,
}

/// A repository that is to be added.
#[derive(Clone, Debug)]
pub struct NewRepository {
    /// The name of its files.
    pub id: String,
    /// The address, without credentials.
    pub url: String,
    /// The suites; empty where the package manager has none.
    pub suites: Vec<String>,
    /// The components.
    pub components: Vec<String>,
    /// The key that signs it.
    pub key: KeyFile,
    /// True where its index is signed, and not only its packages. An index of apt always is.
    pub is_index_signed: bool,
    /// The priority, where it isn't the default.
    pub priority: Option<i64>,
}

/// The key of a new repository.
#[derive(Clone, Debug)]
pub enum KeyFile {
    /// The armored key, for a file of its own.
    New(String),
    /// A key file that the target has.
    Existing(String),
}

/// The files that define a new repository.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The paths and contents of the files, first the one that defines the repository. The key's own file isn't among them.
    pub files: Vec<(String, String)>,
    /// The file that holds the key.
    pub key_file: String,
    /// The directories that the files need, the outermost first. Those that are missing are made.
    pub directories: Vec<&'static str>,
    /// The command that reads only this repository, with root's rights. Its failure undoes the files.
    pub refresh: Command,
}

/// An edit of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Edit {
    Remove,
    Disable,
    Enable,
}
