//! `modules.lock`: the third parties' modules of a directory, with their bytes' hashes and their grants.
//!
//! The operator writes it through `linux-sysadmin modules`; a server only reads it. It decides what is trusted, so it
//! is used only where nobody but its owner can write to it. If it can't be read as a whole, none of its modules is
//! loaded.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::config::{Disabled, is_module_name};
use host_base::sha256::is_sha256;
use host_base::{atomic_file, trusted_file};
use host_capability::Requests;

/// The file's name, in the directory of the components.
pub const NAME: &str = "modules.lock";

const HEAD: &str = "\
# Modules of third parties: which bytes each one is, and what of its requests was accepted.
# Written by `linux-sysadmin modules add`, `update`, `enable`, `disable` and `remove`; a running server follows it.
";

/// The version of the file's format.
const VERSION: u32 = 1;

/// The contents of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    version: u32,
    /// Modules that are never loaded: names of the host's own modules, and components as `sha256:HEX`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disabled: Vec<Disabled>,
    /// The modules, in the order of their names.
    #[serde(default)]
    pub modules: Vec<Entry>,
}

impl Default for Lock {
    fn default() -> Self {
        Self { version: VERSION, disabled: Vec::new(), modules: Vec::new() }
    }
}

/// The entry of one module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The module's name.
    pub name: String,
    /// The module's version.
    pub version: String,
    /// Where it was added from: the path of a file, or an address. One on a registry has the digest that was pinned, and
    /// the tag that an update follows.
    pub source: String,
    /// The SHA-256 of the component.
    pub sha256: String,
    /// The SHA-256 of the component's description.
    pub description: String,
    /// True where the module is loaded.
    pub enabled: bool,
    /// Tools of the host's own modules that this module replaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<String>,
    /// The requests that the operator accepted.
    #[serde(default)]
    pub grants: Requests,
}

impl Entry {
    /// The name of the component's file. It is made of the hash, so that an update never overwrites a file that a
    /// server may be reading.
    pub fn file(&self) -> String {
        format!("{}-{}.wasm", self.name, self.sha256.get(..12).unwrap_or(&self.sha256))
    }
}

/// The reason why a lock isn't used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// A file can't be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or the directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The contents are invalid.
    #[error(
        "{}, line {line}: {reason}. Correct that line, or move the file away and add the modules again",
        path.display()
    )]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The finding, and the expected form.
        reason: String,
    },
    /// Others than the owner can write to it.
    #[error("{} can be written to by others than its owner, who must be {owner}: nothing in it is trusted", path.display())]
    Untrusted {
        /// The file or the directory.
        path: PathBuf,
        /// The account that should own it.
        owner: &'static str,
    },
}

impl Lock {
    /// Reads a directory's lock. A directory without one has an empty lock.
    pub fn read(directory: &Path, owner: Owner) -> Result<Self, LockError> {
        let path = directory.join(NAME);
        let text = match trusted_file::read(&path, |metadata| {
            owner.check(&path, metadata).map_err(Refusal::Lock)
        }) {
            Ok(text) => text,
            Err(Refusal::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(Refusal::Io(source)) => return Err(LockError::Io { path, source }),
            Err(Refusal::Lock(error)) => return Err(error),
        };
        owner.check_path(directory)?;
        let invalid = |line, reason| LockError::Invalid { path: path.clone(), line, reason };
        let lock: Self = serde_yaml::from_str(&text)
            .map_err(|error| invalid(error.location().map_or(1, |place| place.line()), error.to_string()))?;
        if lock.version != VERSION {
            return Err(invalid(1, format!("version {}; this host knows version {VERSION}", lock.version)));
        }
        // The name becomes part of a path.
        let is_right = |entry: &&Entry| is_module_name(&entry.name) && is_sha256(&entry.sha256);
        if let Some(entry) = lock.modules.iter().find(|entry| !is_right(entry)) {
            let reason = format!("{:?} with sha256 {:?} is no module's entry", entry.name, entry.sha256);
            return Err(invalid(1, reason));
        }
        Ok(lock)
    }

    /// The modules that a lock disables although it is invalid. None where even that can't be read.
    pub fn disabled_by_broken(directory: &Path) -> Option<Vec<Disabled>> {
        #[derive(Deserialize)]
        struct Part {
            /// Every lock has it. A file without it was emptied or cut, and the rest is missing as well.
            #[serde(rename = "version")]
            _version: serde::de::IgnoredAny,
            #[serde(default)]
            disabled: Vec<Disabled>,
            #[serde(default)]
            modules: Vec<EntryPart>,
        }
        #[derive(Deserialize)]
        struct EntryPart {
            name: Disabled,
            #[serde(default)]
            enabled: serde_yaml::Value,
        }
        let text = trusted_file::read(&directory.join(NAME), |_| io::Result::Ok(())).ok()?;
        let Part { mut disabled, modules, .. } = serde_yaml::from_str(&text).ok()?;
        let not_enabled = modules.into_iter().filter(|entry| entry.enabled != serde_yaml::Value::Bool(true));
        disabled.extend(not_enabled.map(|entry| entry.name));
        Some(disabled)
    }

    /// The entry of the module with this name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.modules.iter().find(|entry| entry.name == name)
    }

    /// Replaces the file as a whole, or not at all.
    fn write(&self, directory: &Path) -> Result<(), LockError> {
        let path = directory.join(NAME);
        let io = |source| LockError::Io { path: path.clone(), source };
        let text = serde_yaml::to_string(self).map_err(|error| io(io::Error::other(error)))?;
        put(&path, format!("{HEAD}{text}").as_bytes()).map_err(io)
    }
}

/// The only account that may write to a directory of modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The account that the server runs as.
    Caller,
    /// Root.
    Root,
}

/// The reason why a lock isn't read.
enum Refusal {
    Io(io::Error),
    Lock(LockError),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Owner {
    fn check_path(self, path: &Path) -> Result<(), LockError> {
        match fs::metadata(path) {
            Ok(metadata) => self.check(path, &metadata),
            Err(source) => Err(LockError::Io { path: path.to_owned(), source }),
        }
    }

    fn check(self, path: &Path, metadata: &fs::Metadata) -> Result<(), LockError> {
        let (uid, owner) = match self {
            Self::Caller => (rustix::process::geteuid().as_raw(), "this account"),
            Self::Root => (0, "root"),
        };
        match metadata.uid() == uid && metadata.mode() & 0o022 == 0 {
            true => Ok(()),
            false => Err(LockError::Untrusted { path: path.to_owned(), owner }),
        }
    }
}

/// A directory of modules that is locked for a change.
pub struct Editing {
    directory: PathBuf,
    /// The lock as it was read, for the caller to change.
    pub lock: Lock,
    /// The components that the lock named before.
    before: Vec<String>,
    _held: File,
}

impl Editing {
    /// Waits until nobody else changes the directory, and locks it. The directory is made where it doesn't exist.
    pub fn begin(directory: &Path, owner: Owner) -> Result<Self, LockError> {
        let io = |source| LockError::Io { path: directory.to_owned(), source };
        let mode = if owner == Owner::Root { 0o755 } else { 0o700 };
        fs::DirBuilder::new().recursive(true).mode(mode).create(directory).map_err(io)?;
        let held = File::open(directory).map_err(io)?;
        rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive)
            .map_err(|error| io(error.into()))?;
        owner.check_path(directory)?;
        let lock = Lock::read(directory, owner)?;
        let before = lock.modules.iter().map(Entry::file).collect();
        Ok(Self { directory: directory.to_owned(), lock, before, _held: held })
    }

    /// Writes a component under the file name of its entry.
    pub fn put(&self, entry: &Entry, bytes: &[u8]) -> Result<(), LockError> {
        let path = self.directory.join(entry.file());
        put(&path, bytes).map_err(|source| LockError::Io { path, source })
    }

    /// Writes the lock, and then removes the components that it doesn't name any more. By this order a server finds
    /// every component that the lock names at any moment.
    pub fn commit(mut self) -> Result<(), LockError> {
        self.lock.modules.sort_by(|left, right| left.name.cmp(&right.name));
        self.lock.write(&self.directory)?;
        let named: Vec<String> = self.lock.modules.iter().map(Entry::file).collect();
        for gone in self.before.iter().filter(|file| !named.contains(file)) {
            match fs::remove_file(self.directory.join(gone)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(file = gone, %error, "a component that is no longer used stays");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Every `*.wasm` file of a directory, in the order of names. Empty where there is no directory.
pub fn components(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "wasm"))
        .collect();
    files.sort();
    Ok(files)
}

/// Writes a file as a whole or not at all, so that it survives a power failure.
fn put(path: &Path, contents: &[u8]) -> io::Result<()> {
    atomic_file::replace(path, 0o644, |file| {
        file.write_all(contents)?;
        file.sync_all()
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn entry(name: &str, sha256: char) -> Entry {
        Entry {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            source: "/tmp/x.wasm".to_owned(),
            sha256: sha256.to_string().repeat(64),
            description: "d".repeat(64),
            enabled: true,
            replaces: Vec::new(),
            grants: Requests::default(),
        }
    }

    #[test]
    fn what_is_written_is_what_is_read_and_only_named_components_stay() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("a/modules");
        let mut editing = Editing::begin(&directory, Owner::Caller).unwrap();
        for (name, sha256) in [("zebra", 'a'), ("ant", 'b')] {
            editing.put(&entry(name, sha256), name.as_bytes()).unwrap();
            editing.lock.modules.push(entry(name, sha256));
        }
        editing.lock.disabled.push("cron".to_owned().try_into().unwrap());
        editing.commit().unwrap();
        let read = Lock::read(&directory, Owner::Caller).unwrap();
        assert_eq!(read.modules, [entry("ant", 'b'), entry("zebra", 'a')]);
        assert!(read.disabled[0].names("cron", ""));
        assert_eq!(components(&directory).unwrap().len(), 2);

        let mut editing = Editing::begin(&directory, Owner::Caller).unwrap();
        editing.lock.modules.retain(|entry| entry.name == "ant");
        editing.commit().unwrap();
        assert_eq!(components(&directory).unwrap(), [directory.join(entry("ant", 'b').file())]);
    }

    #[test]
    fn a_lock_that_is_not_understood_in_full_is_none() {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let entry = serde_yaml::to_string(&entry("ant", 'b')).unwrap();
        let with = |from: &str, to: &str| {
            format!("version: 1\nmodules:\n- {}\n", entry.replace(from, to).trim().replace('\n', "\n  "))
        };
        assert!(with("", "").contains("name: ant"));
        for (text, word) in [
            ("version: 2\n".to_owned(), "version 2"),
            ("modules: []\n".to_owned(), "version"),
            ("version: 1\nmodule: []\n".to_owned(), "module"),
            ("version: [\n".to_owned(), ""),
            (with("enabled", "enable"), "enable"),
            (with("name: ant", "name: ../ant"), "../ant"),
            (with("sha256: b", "sha256: B"), "sha256"),
        ] {
            fs::write(directory.path().join(NAME), &text).unwrap();
            let error = Lock::read(directory.path(), Owner::Caller).unwrap_err();
            assert!(matches!(error, LockError::Invalid { .. }), "{text}: {error}");
            assert!(error.to_string().contains(word), "{text}: {error}");
        }
        fs::write(directory.path().join(NAME), with("", "")).unwrap();
        assert_eq!(Lock::read(directory.path(), Owner::Caller).unwrap().modules.len(), 1);
    }

    #[test]
    fn a_lock_that_others_can_write_is_not_trusted() {
        let directory = tempfile::tempdir().unwrap();
        let lock = directory.path().join(NAME);
        fs::write(&lock, "version: 1\n").unwrap();
        for (of_directory, of_lock, trusted) in
            [(0o700, 0o644, true), (0o770, 0o644, false), (0o700, 0o666, false), (0o755, 0o664, false)]
        {
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(of_directory)).unwrap();
            fs::set_permissions(&lock, fs::Permissions::from_mode(of_lock)).unwrap();
            let read = Lock::read(directory.path(), Owner::Caller);
            assert_eq!(read.is_ok(), trusted, "{of_directory:o} {of_lock:o}");
            assert!(trusted || matches!(read, Err(LockError::Untrusted { .. })));
        }
    }

    #[test]
    fn no_lock_is_an_empty_one() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Lock::read(&directory.path().join("none"), Owner::Caller).unwrap(), Lock::default());
    }
}
