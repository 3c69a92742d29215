//! A cache of compiled components and their descriptions, so that a server starts fast.
//!
//! Native code that is loaded can do anything, so only code that this program wrote may be loaded. The cache is used
//! only where its directory is the user's own with mode 0700. Every entry ends with the SHA-256 of its name and
//! contents, which is checked over the same open file that the engine gets. An entry's name holds the component's hash
//! and the engine's settings, so that no entry can stand for another. Entries are replaced and never written to, so an
//! open file doesn't change. An entry that doesn't fit is no error: it is made anew. Whoever can write to the directory
//! can forge an entry. Only this user can, who could as well replace the program.
//!
//! What the user's own directory lacks is looked for in [`SHARED`], which root fills where the program is installed for all
//! accounts. It is read only where root alone can write to it and to every directory above it.
//!
//! Only this file may use `unsafe`, because deserializing compiled code needs it.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::description::Description;
use host_base::{atomic_file, sha256};

const DIGEST_BYTES: usize = 32;
/// The directory of the entries that root makes for all accounts.
pub(super) const SHARED: &str = "/var/cache/linux-sysadmin";

/// The entry of the list of tools. All servers of this account share it, since most of them have the same tools.
const LIST: &str = "tools";

/// The description of a component at the time when its bytes were last read. It is enough to list the component's
/// tools. No code runs by it, see [`super::module::Module::ready`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CachedDescription {
    /// The description that the component gave of itself.
    pub(super) description: Description,
    /// The metadata of the component's file, where they can show that the file hasn't changed.
    pub(super) file: Option<FileStamp>,
}

/// The metadata that change when somebody writes to a file or replaces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    /// The coarsest clock of a file system. Two changes within that time can have the same timestamp.
    const COARSEST: Duration = Duration::from_secs(2);

    /// The metadata of a file now. None where the file can't be looked at.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        Some(Self {
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        })
    }

    /// Whether a later change would show. It may not where the file has changed just now.
    pub(super) fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let changed = Duration::from_secs(self.changed.0.try_into().unwrap_or(u64::MAX));
        changed.checked_add(Self::COARSEST).is_some_and(|settled| settled < now)
    }
}

/// The directories of the cache.
#[derive(Default)]
pub(super) struct Cache {
    /// The directory that entries are written to, and read from first. None where there is no safe directory.
    own: Option<Directory>,
    /// The directory that is read as well, and never written to.
    shared: Option<Directory>,
}

/// A directory of entries.
struct Directory {
    path: PathBuf,
    /// The account that has to own each entry. It is the only one that may write to them.
    owner: u32,
    /// The mode of new entries.
    mode: u32,
}

impl Cache {
    /// Opens the cache in the user's cache directory.
    pub(super) fn open(directory: Option<PathBuf>) -> Self {
        let shared = Path::new(SHARED);
        let shared = is_only(ROOT, shared.ancestors()).then(|| Directory {
            path: shared.to_owned(),
            owner: ROOT,
            mode: 0o644,
        });
        Self { own: directory.and_then(Directory::of_user), shared }
    }

    /// Opens root's directory for writing, without any entry in it. All accounts read what is kept there.
    pub(super) fn for_everyone(directory: &Path) -> io::Result<Self> {
        let owner = rustix::process::geteuid().as_raw();
        fs::DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
        if !is_only(owner, [directory].into_iter()) {
            return Err(io::Error::other("it must be a directory that only this account may write to"));
        }
        for entry in fs::read_dir(directory)? {
            fs::remove_file(entry?.path())?;
        }
        let path = directory.to_owned();
        Ok(Self { own: Some(Directory { path, owner, mode: 0o644 }), shared: None })
    }

    /// The compiled code of the component with this SHA-256, for an engine with the same settings. The code is mapped
    /// from the cache's file, so that only the part that runs takes memory. Where mapping isn't allowed, the code is
    /// read.
    pub(super) fn code(&self, engine: &Engine, sha256: &str, compatibility: &str) -> Option<Component> {
        let name = code_name(sha256, compatibility);
        self.directories().find_map(|directory| directory.code(engine, &name))
    }

    /// The bytes of the compiled code in the cache, for a comparison.
    pub(super) fn kept_code(&self, sha256: &str, compatibility: &str) -> Option<Vec<u8>> {
        self.read(&code_name(sha256, compatibility))
    }

    /// Keeps compiled code. A failure is no error: the next start is only slower.
    pub(super) fn keep_code(&self, code: &[u8], sha256: &str, compatibility: &str) {
        self.write(&code_name(sha256, compatibility), code);
    }

    /// The kept description of the component with this SHA-256.
    pub(super) fn known(&self, sha256: &str) -> Option<CachedDescription> {
        let entry = self.read(&known_name(sha256))?;
        serde_json::from_slice(&entry).ok()
    }

    /// Keeps a description.
    pub(super) fn keep_known(&self, known: &CachedDescription, sha256: &str) {
        match serde_json::to_vec(known) {
            Ok(text) => self.write(&known_name(sha256), &text),
            Err(error) => tracing::warn!(sha256, %error, "a description could not be kept"),
        }
    }

    /// The list of tools that was last kept.
    pub(super) fn list(&self) -> Option<Vec<u8>> {
        self.read(LIST)
    }

    /// Keeps a list of tools, and replaces the former one.
    pub(super) fn keep_list(&self, list: &[u8]) {
        self.write(LIST, list);
    }

    /// Removes a kept description.
    pub(super) fn forget_known(&self, sha256: &str) {
        let Some(directory) = &self.own else { return };
        match fs::remove_file(directory.path.join(known_name(sha256))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(sha256, %error, "a cache entry could not be removed");
            }
            _ => {}
        }
    }

    /// Removes all entries of the component with this SHA-256.
    pub(super) fn forget(&self, sha256: &str) {
        let Some(directory) = &self.own else { return };
        let entries = fs::read_dir(&directory.path).into_iter().flatten().flatten();
        let of_it = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(sha256));
        of_it.for_each(|entry| {
            if let Err(error) = fs::remove_file(entry.path()) {
                tracing::warn!(path = %entry.path().display(), %error, "a cache entry could not be removed");
            }
        });
    }

    fn directories(&self) -> impl Iterator<Item = &Directory> {
        self.own.iter().chain(&self.shared)
    }

    /// The contents of an entry, where its digest is right.
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.directories().find_map(|directory| directory.read(name))
    }

    fn write(&self, name: &str, contents: &[u8]) {
        let Some(directory) = &self.own else { return };
        let written = atomic_file::replace(&directory.path.join(name), directory.mode, |file| {
            // A strict umask must not hide from others what is for everyone.
            file.set_permissions(fs::Permissions::from_mode(directory.mode))?;
            file.write_all(contents)?;
            file.write_all(&entry_digest(name, contents))
        });
        if let Err(error) = written {
            tracing::warn!(directory = %directory.path.display(), %error, "a cache entry could not be written");
        }
    }
}

impl Directory {
    /// The user's cache directory, where it is safe.
    fn of_user(path: PathBuf) -> Option<Self> {
        match own_directory(&path) {
            Ok(()) => Some(Self { path, owner: rustix::process::geteuid().as_raw(), mode: 0o600 }),
            Err(error) => {
                tracing::warn!(directory = %path.display(), %error, "the compile cache is not used");
                None
            }
        }
    }

    /// Loads the compiled code of an entry.
    fn code(&self, engine: &Engine, name: &str) -> Option<Component> {
        let path = self.path.join(name);
        let mut file = self.opened(&path)?;
        let is_whole = is_whole(&mut file, name).inspect_err(|error| unread(&path, error)).ok()?;
        if !is_whole {
            damaged(&path);
            return None;
        }
        // `keep_code` wrote the file: its digest is right, and only the directory's owner can write to the directory. That
        // is this user, who could as well change this program, or root.
        let component = mapped(engine, &file).or_else(|_| {
            let entry = self.read(name).unwrap_or_default();
            compiled(engine, &entry)
        });
        component.inspect_err(|error| tracing::warn!(name, %error, "a compiled component is made anew")).ok()
    }

    /// The contents of an entry, where its digest is right.
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        let path = self.path.join(name);
        let mut entry = Vec::new();
        self.opened(&path)?.read_to_end(&mut entry).inspect_err(|error| unread(&path, error)).ok()?;
        let whole = entry
            .split_last_chunk::<DIGEST_BYTES>()
            .filter(|(contents, digest)| entry_digest(name, contents) == **digest);
        let Some((contents, _)) = whole else {
            damaged(&path);
            return None;
        };
        let length = contents.len();
        entry.truncate(length);
        Some(entry)
    }

    /// Opens an entry's file. None where there is no such entry, or another account could have written it.
    fn opened(&self, path: &Path) -> Option<File> {
        let opened = File::open(path).and_then(|file| match file.metadata()? {
            metadata if is_only_of(self.owner, &metadata) => Ok(file),
            _ => Err(io::Error::other("another account may write to it")),
        });
        match opened {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                unread(path, &error);
                None
            }
        }
    }
}

/// The number of root's account.
const ROOT: u32 = 0;

/// Whether each of these is a directory, and no link to one, that nobody but this account may write to.
fn is_only<'a>(owner: u32, mut directories: impl Iterator<Item = &'a Path>) -> bool {
    directories.all(|directory| {
        fs::symlink_metadata(directory)
            .is_ok_and(|metadata| metadata.is_dir() && is_only_of(owner, &metadata))
    })
}

fn is_only_of(owner: u32, metadata: &fs::Metadata) -> bool {
    metadata.uid() == owner && metadata.mode() & 0o022 == 0
}

/// Loads code that this program has compiled. [`Cache::code`] has read it from the cache, or a child process has just
/// written it to a pipe.
pub(super) fn compiled(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: both callers pass what a wasmtime of this program made, see above, and nobody else could have changed it
    // since. wasmtime itself checks that the code fits its version, its settings and this processor.
    unsafe { Component::deserialize(engine, code) }
}

/// Maps the code in a file of the cache.
fn mapped(engine: &Engine, file: &File) -> wasmtime::Result<Component> {
    // Another file may have replaced the one of this name since it was checked.
    let this_very_file = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: as above; and a file that has been put into the cache is never written to again.
    unsafe { Component::deserialize_file(engine, this_very_file) }
}

/// The digest that an entry with this name and these contents ends with.
fn entry_digest(name: &str, contents: &[u8]) -> [u8; DIGEST_BYTES] {
    Sha256::new().chain_update(name).chain_update(contents).finalize().into()
}

/// Whether the file of an entry ends with its digest. The file is large, so it is read in pieces.
fn is_whole(file: &mut File, name: &str) -> io::Result<bool> {
    let Some(length) = file.metadata()?.len().checked_sub(DIGEST_BYTES as u64) else { return Ok(false) };
    let found = sha256::digest(name.as_bytes().chain(file.take(length)))?;
    let mut digest = [0; DIGEST_BYTES];
    file.read_exact(&mut digest)?;
    Ok(found == digest)
}

fn unread(path: &Path, error: &io::Error) {
    tracing::warn!(path = %path.display(), %error, "a cache entry could not be read");
}

fn damaged(path: &Path) {
    tracing::warn!(path = %path.display(), "a cache entry is damaged and is made anew");
}

fn code_name(sha256: &str, compatibility: &str) -> String {
    format!("{sha256}-{compatibility}.cwasm")
}

fn known_name(sha256: &str) -> String {
    // The name holds the host's version, because each version may store and check descriptions in another way.
    format!("{sha256}-{}.json", env!("CARGO_PKG_VERSION"))
}

/// Makes the directory, or checks that it belongs to this user alone.
fn own_directory(directory: &PathBuf) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let metadata = fs::symlink_metadata(directory)?;
    let own = metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
    if !own || metadata.mode() & 0o077 != 0 {
        return Err(io::Error::other("it must be a directory of this user's with mode 0700"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> (tempfile::TempDir, Cache) {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(directory.path().join("cache")));
        (directory, cache)
    }

    #[test]
    fn an_entry_comes_back_as_it_was_and_a_damaged_one_does_not() {
        let (directory, cache) = cache();
        cache.write("entry", b"contents");
        assert_eq!(cache.read("entry").unwrap(), b"contents");
        let path = directory.path().join("cache/entry");
        let is_whole = || is_whole(&mut File::open(&path).unwrap(), "entry");
        assert!(is_whole().unwrap());
        let good = fs::read(&path).unwrap();
        for length in [0, 10, DIGEST_BYTES, good.len() - 1] {
            fs::write(&path, &good[..length]).unwrap();
            assert!(cache.read("entry").is_none(), "cut to {length}");
            assert!(!is_whole().unwrap(), "cut to {length}");
        }
        for flipped in 0..good.len() {
            let mut entry = good.clone();
            entry[flipped] ^= 1;
            fs::write(&path, entry).unwrap();
            assert!(cache.read("entry").is_none(), "byte {flipped} is another one");
            assert!(!is_whole().unwrap(), "byte {flipped} is another one");
        }
    }

    #[test]
    fn an_entry_under_the_name_of_another_one_is_not_used() {
        let (directory, cache) = cache();
        let engine = super::super::engine::new_engine().unwrap();
        let code = engine.precompile_component(b"\0asm\x0d\0\x01\0").unwrap();
        cache.keep_code(&code, "00", "compatible");
        cache.keep_code(&code, "01", "compatible");
        cache.write("entry", b"contents");
        let directory = directory.path().join("cache");
        let copy = |from: &str, to: &str| fs::copy(directory.join(from), directory.join(to)).unwrap();
        for (sha256, compatibility) in [("01", "compatible"), ("00", "other")] {
            copy(&code_name("00", "compatible"), &code_name(sha256, compatibility));
            assert!(cache.code(&engine, sha256, compatibility).is_none(), "{sha256} {compatibility}");
        }
        copy("entry", "other");
        assert!(cache.read("other").is_none());
        assert!(cache.read("entry").is_some());
    }

    #[test]
    fn compiled_code_is_used_from_where_it_is_kept_and_a_damaged_one_is_not() {
        let (directory, cache) = cache();
        let engine = super::super::engine::new_engine().unwrap();
        let code = engine.precompile_component(b"\0asm\x0d\0\x01\0").unwrap();
        cache.keep_code(&code, "00", "compatible");
        assert!(cache.code(&engine, "00", "compatible").is_some());
        assert!(cache.code(&engine, "00", "other").is_none());
        let path = directory.path().join("cache").join(code_name("00", "compatible"));
        assert!(mapped(&engine, &File::open(&path).unwrap()).is_ok());
        // The digest is right, but the contents are no code.
        cache.keep_code(b"contents", "00", "compatible");
        assert!(cache.code(&engine, "00", "compatible").is_none());
        fs::write(&path, &code).unwrap();
        assert!(cache.code(&engine, "00", "compatible").is_none(), "without a digest");
    }

    #[test]
    fn a_description_that_lacks_a_member_of_a_tool_is_made_anew() {
        let (_directory, cache) = cache();
        let mut kept = serde_json::json!({"file": null, "description": {
            "name": "test", "version": "1.0.0", "summary": "", "domain": "test", "serves": [], "imports": [],
            "requests": {"commands": [], "paths": []}, "sha256": "",
            "tools": [{
                "name": "tool", "summary": "", "input_schema": {"type": "object"}, "risk": "read-only",
                "shape": "single", "duration": "quick",
            }],
        }});
        let mut read = |member: Option<(&str, serde_json::Value)>| {
            let tool = kept["description"]["tools"][0].as_object_mut().unwrap();
            tool.extend(member.map(|(name, value)| (name.to_owned(), value)));
            cache.write(&known_name("00"), kept.to_string().as_bytes());
            cache.known("00")
        };
        assert!(read(None).is_none());
        assert!(read(Some(("aliases", serde_json::json!({})))).is_none());
        assert!(read(Some(("first", serde_json::json!(false)))).is_some());
    }

    #[test]
    fn a_file_that_was_written_to_or_replaced_has_another_stamp() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("a.wasm"), directory.path().join("b.wasm"));
        fs::write(&path, b"first").unwrap();
        let past = SystemTime::now() - Duration::from_secs(3600);
        fs::File::options().write(true).open(&path).unwrap().set_modified(past).unwrap();
        let before = FileStamp::of(&path).unwrap();
        assert_eq!(FileStamp::of(&path).unwrap(), before);
        fs::write(&path, b"longer than the first").unwrap();
        assert_ne!(FileStamp::of(&path).unwrap(), before);
        assert!(!before.is_settled(), "when it was changed is now, whatever it says of its bytes");
        assert!(FileStamp { changed: (0, 0), ..before.clone() }.is_settled());
        assert!(!FileStamp { changed: (i64::MAX, 0), ..before.clone() }.is_settled());
        fs::write(&other, b"other").unwrap();
        fs::File::options().write(true).open(&other).unwrap().set_modified(past).unwrap();
        fs::rename(&other, &path).unwrap();
        assert_ne!(FileStamp::of(&path).unwrap(), before);
        fs::remove_file(&path).unwrap();
        assert_eq!(FileStamp::of(&path), None);
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_not_used() {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o770)).unwrap();
        let cache = Cache::open(Some(directory.path().to_owned()));
        cache.write("entry", b"contents");
        assert!(cache.read("entry").is_none());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    /// A user's cache that also reads what an account of this number keeps in `directory`.
    fn beside(directory: &Path, owner: u32) -> Cache {
        let path = directory.join("shared");
        Cache {
            own: Directory::of_user(directory.join("own")),
            shared: Some(Directory { path, owner, mode: 0o644 }),
        }
    }

    #[test]
    fn what_root_keeps_for_everyone_is_used_and_never_changed() {
        let directory = tempfile::tempdir().unwrap();
        let shared = directory.path().join("shared");
        let everyone = Cache::for_everyone(&shared).unwrap();
        everyone.write("entry", b"of all");
        assert_eq!(fs::metadata(shared.join("entry")).unwrap().mode() & 0o777, 0o644);
        let own = rustix::process::geteuid().as_raw();
        let cache = beside(directory.path(), own);
        assert_eq!(cache.read("entry").unwrap(), b"of all");
        cache.write("entry", b"of one");
        assert_eq!(cache.read("entry").unwrap(), b"of one");
        cache.forget("entry");
        assert_eq!(cache.read("entry").unwrap(), b"of all");
        // Entries of an earlier version are gone when the directory is filled again.
        assert!(Cache::for_everyone(&shared).unwrap().read("entry").is_none());
    }

    #[test]
    fn what_another_account_could_have_written_is_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let shared = directory.path().join("shared");
        Cache::for_everyone(&shared).unwrap().write("entry", b"contents");
        let own = rustix::process::geteuid().as_raw();
        assert!(beside(directory.path(), own + 1).read("entry").is_none());
        for mode in [0o664, 0o646] {
            fs::set_permissions(shared.join("entry"), fs::Permissions::from_mode(mode)).unwrap();
            assert!(beside(directory.path(), own).read("entry").is_none(), "{mode:o}");
        }
        assert!(is_only(own, [shared.as_path()].into_iter()));
        assert!(!is_only(own + 1, [shared.as_path()].into_iter()));
        for mode in [0o775, 0o757] {
            fs::set_permissions(&shared, fs::Permissions::from_mode(mode)).unwrap();
            assert!(!is_only(own, [shared.as_path()].into_iter()), "{mode:o}");
        }
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&shared, &link).unwrap();
        assert!(!is_only(own, [link.as_path()].into_iter()));
    }
}
