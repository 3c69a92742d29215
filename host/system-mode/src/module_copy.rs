//! A copy of modules that only root can change. What is hashed and read is then what is put in place.
//!
//! The modules come from a directory that others may change, and root can read files that others can't. Only
//! components are copied whose SHA-256 stands in the `SHA256SUMS` beside them, so that whoever pinned them must have
//! known their bytes.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{SystemError, atomic_file};
use host_components::{SUMS, read_sums};

/// The most bytes of the copy, which takes memory in `/run`.
const LARGEST: u64 = 512 << 20;
/// The most bytes of `SHA256SUMS`, which has a line for each component.
const LARGEST_SUMS: u64 = 1 << 20;

/// The copy, which is removed when this is dropped.
pub struct ModuleCopy {
    /// The directory of the copy.
    pub directory: PathBuf,
    /// Sentences for the operator about components that nothing pins, which aren't copied.
    pub left_out: Vec<String>,
}

impl ModuleCopy {
    /// Copies the modules in a directory.
    pub fn new(modules: &Path) -> Result<Self, SystemError> {
        Self::at(format!("/run/linux-sysadmin-install-{}", std::process::id()).into(), modules, LARGEST)
    }

    fn at(directory: PathBuf, modules: &Path, mut room: u64) -> Result<Self, SystemError> {
        let made = DirBuilder::new().mode(0o700).create(&directory);
        made.map_err(|error| SystemError::io(&directory, error))?;
        let mut staged = Self { directory, left_out: Vec::new() };
        let names = names(modules)?;
        let mut sums = Default::default();
        if names.contains(SUMS) {
            let (from, to) = (modules.join(SUMS), staged.directory.join(SUMS));
            sums_copied(&from, &to).map_err(|error| SystemError::io(&from, error))?;
            sums = read_sums(&to).map_err(SystemError::Refused)?;
        }
        for name in names.iter().filter(|name| *name != SUMS) {
            let Some(sha256) = sums.get(name) else {
                staged.left_out.push(format!("{name} is left out: no {SUMS} beside it names it"));
                continue;
            };
            let (from, to) = (modules.join(name), staged.directory.join(name));
            let copied = copied(&from, &to, sha256, room);
            room -= copied.map_err(|error| SystemError::io(&from, error))?;
        }
        Ok(staged)
    }
}

impl Drop for ModuleCopy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Copies a file, and returns the number of its bytes.
fn copied(from: &Path, to: &Path, sha256: &str, room: u64) -> io::Result<u64> {
    let source = atomic_file::open(from)?;
    if source.metadata()?.len() > room {
        return Err(io::Error::other(format!("with it the modules are larger than {LARGEST} bytes")));
    }
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    // If the file grows meanwhile, its SHA-256 is another one.
    atomic_file::pour(source.take(room), &mut to, sha256)
}

fn sums_copied(from: &Path, to: &Path) -> io::Result<()> {
    let mut text = Vec::new();
    atomic_file::open(from)?.take(LARGEST_SUMS + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LARGEST_SUMS {
        return Err(io::Error::other(format!("it is larger than {LARGEST_SUMS} bytes")));
    }
    fs::write(to, text)
}

/// Returns the components of a directory, and the file that pins them.
pub fn names(directory: &Path) -> Result<BTreeSet<String>, SystemError> {
    let wrong = |error| SystemError::io(directory, error);
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(directory).map_err(wrong)? {
        let name = entry.map_err(wrong)?.file_name().to_string_lossy().into_owned();
        if name == SUMS || Path::new(&name).extension().is_some_and(|extension| extension == "wasm") {
            names.insert(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use sha2::{Digest, Sha256};

    use super::*;

    struct Setting(tempfile::TempDir);

    impl Setting {
        /// Makes a pinned module.
        fn new() -> Self {
            let setting = Self(tempfile::tempdir().unwrap());
            fs::create_dir(setting.at("modules")).unwrap();
            setting.write("cron.wasm", "cron");
            setting.pins("cron.wasm", "cron");
            setting
        }

        fn at(&self, below: &str) -> PathBuf {
            self.0.path().join(below)
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.at("modules").join(name), text).unwrap();
        }

        fn pins(&self, name: &str, text: &str) {
            let path = self.at("modules").join(SUMS);
            let before = fs::read_to_string(&path).unwrap_or_default();
            let line = format!("{}  {name}\n", hex::encode(Sha256::digest(text)));
            fs::write(path, before + &line).unwrap();
        }

        fn staged(&self) -> Result<ModuleCopy, SystemError> {
            ModuleCopy::at(self.at("staged"), &self.at("modules"), 100)
        }

        #[track_caller]
        fn is_refused(&self, reason: &str) {
            let refused = self.staged().err().unwrap().to_string();
            assert!(refused.contains(reason), "{refused}");
            assert!(!self.at("staged").exists(), "{reason}");
        }
    }

    #[test]
    fn what_is_pinned_is_copied_and_nothing_else() {
        let setting = Setting::new();
        setting.write("notes.txt", "x");
        setting.write(".wasm", "x");
        setting.write("extra.wasm", "x");
        setting.pins("notes.txt", "x");
        let staged = setting.staged().unwrap();
        let found: Vec<_> = names(&staged.directory).unwrap().into_iter().collect();
        assert_eq!(found, [SUMS, "cron.wasm"]);
        assert_eq!(fs::read_dir(&staged.directory).unwrap().count(), 2);
        assert_eq!(fs::read_to_string(staged.directory.join("cron.wasm")).unwrap(), "cron");
        assert_eq!(staged.left_out, ["extra.wasm is left out: no SHA256SUMS beside it names it"]);
        drop(staged);
        assert!(!setting.at("staged").exists());
    }

    #[test]
    fn a_link_to_a_file_that_only_root_reads_is_not_followed() {
        for name in ["cron.wasm", SUMS] {
            let setting = Setting::new();
            let path = setting.at("modules").join(name);
            fs::rename(&path, setting.at("elsewhere")).unwrap();
            symlink(setting.at("elsewhere"), &path).unwrap();
            setting.is_refused(&format!("{name}: it is a link"));
        }
    }

    #[test]
    fn other_bytes_than_those_that_are_pinned_are_not_copied() {
        let setting = Setting::new();
        setting.write("cron.wasm", "root:$y$j9T$x:19000::::::");
        setting.is_refused("cron.wasm: its SHA-256 is");
        setting.write(SUMS, "root:$y$j9T$x:19000::::::");
        setting.is_refused("line 1: expected `SHA-256  name.wasm`");
    }

    #[test]
    fn what_has_no_end_is_not_waited_for() {
        for name in ["cron.wasm", SUMS] {
            let setting = Setting::new();
            let path = setting.at("modules").join(name);
            fs::remove_file(&path).unwrap();
            let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
            rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, mode, 0).unwrap();
            setting.is_refused("it is not a regular file");
        }
    }

    #[test]
    fn all_of_them_together_have_a_limit() {
        let setting = Setting::new();
        for name in ["a.wasm", "b.wasm"] {
            setting.write(name, &"x".repeat(50));
            setting.pins(name, &"x".repeat(50));
        }
        setting.is_refused("cron.wasm: with it the modules are larger");
        let setting = Setting::new();
        setting.write(SUMS, &"x".repeat(LARGEST_SUMS as usize + 1));
        setting.is_refused("SHA256SUMS: it is larger");
    }
}
