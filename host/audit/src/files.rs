//! The files of a log: what they are called, and how they are opened. What has one of these names may have been put
//! there by somebody else, so no link is followed, nothing is waited for, and only a regular file is one.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use super::AuditError;

/// Where records are added.
pub const CURRENT: &str = "audit.jsonl";
/// The last record's number and hash.
pub const HEAD: &str = "audit.head";
/// Held by whoever writes.
pub const LOCK: &str = "audit.lock";

/// A file that is full, by its name `audit-FIRST-LAST.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Full {
    /// Its first record.
    pub first: u64,
    /// Its last record.
    pub last: u64,
}

impl Full {
    /// Its name.
    pub fn name(&self) -> String {
        format!("audit-{}-{}.jsonl", self.first, self.last)
    }

    fn parse(name: &str) -> Option<Self> {
        let (first, last) = name.strip_prefix("audit-")?.strip_suffix(".jsonl")?.split_once('-')?;
        let full = Self { first: first.parse().ok()?, last: last.parse().ok()? };
        // One name each, so that no file can pass for another by `+1` or `01`.
        (full.name() == name).then_some(full)
    }
}

/// All full files of a directory, the oldest first; none where there is no directory.
pub fn full_files(directory: &Path) -> Result<Vec<Full>, AuditError> {
    let failed = |source| AuditError::io("read", directory, source);
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        files.extend(entry.map_err(failed)?.file_name().to_str().and_then(Full::parse));
    }
    files.sort();
    Ok(files)
}

/// What a file is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// Reading; it must exist.
    Reading,
    /// Reading and writing, at its end; made where there is none.
    Adding,
    /// Reading and writing, anywhere; made where there is none.
    Writing,
}

/// Opens a regular file. For writing it must be this account's and nobody else's to write.
pub fn open(path: &Path, purpose: For) -> Result<File, AuditError> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = File::options();
    options.read(true).custom_flags(flags).mode(0o600);
    match purpose {
        For::Reading => {}
        For::Adding => _ = options.append(true).create(true),
        For::Writing => _ = options.write(true).create(true),
    }
    let file = options.open(path).map_err(|source| match rustix::io::Errno::from_io_error(&source) {
        Some(rustix::io::Errno::LOOP) => untrusted(path, "it is a symbolic link"),
        Some(rustix::io::Errno::ISDIR | rustix::io::Errno::NXIO) => untrusted(path, NOT_REGULAR),
        _ => AuditError::io("open", path, source),
    })?;
    let metadata = file.metadata().map_err(|source| AuditError::io("open", path, source))?;
    if !metadata.is_file() {
        return Err(untrusted(path, NOT_REGULAR));
    }
    if purpose != For::Reading {
        is_ours(path, &metadata)?;
    }
    Ok(file)
}

const NOT_REGULAR: &str = "it is not a regular file";

/// Makes the directory where there is none, for this account alone.
pub fn prepare(directory: &Path) -> Result<(), AuditError> {
    let failed = |source| AuditError::io("create", directory, source);
    let metadata = match fs::metadata(directory) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
            fs::metadata(directory).map_err(failed)?
        }
        Err(error) => return Err(failed(error)),
    };
    if !metadata.is_dir() {
        return Err(untrusted(directory, "it is not a directory"));
    }
    is_ours(directory, &metadata)
}

fn is_ours(path: &Path, metadata: &Metadata) -> Result<(), AuditError> {
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(untrusted(path, "it belongs to another account"));
    }
    match metadata.mode() & 0o022 {
        0 => Ok(()),
        _ => Err(untrusted(path, "others than its owner can write to it")),
    }
}

fn untrusted(path: &Path, reason: &'static str) -> AuditError {
    AuditError::Untrusted { path: path.to_owned(), reason }
}

/// Which file it is, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    /// Bytes.
    pub length: u64,
}

impl Stamp {
    /// Of an open file, or of one at a path.
    pub fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino(), length: metadata.len() }
    }

    /// Whether both are one file.
    pub fn same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// Of what has this name; `None` where nothing has.
pub fn stamp(path: &Path) -> Result<Option<Stamp>, AuditError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(Stamp::of(&metadata))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(AuditError::io("open", path, source)),
    }
}

/// Writes a directory's names through.
pub fn sync_names(directory: &Path) -> Result<(), AuditError> {
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(|source| AuditError::io("write", directory, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_has_one_name() {
        let full = Full { first: 1, last: 20 };
        assert_eq!(Full::parse(&full.name()), Some(full));
        for name in
            ["audit.jsonl", "audit-1.jsonl", "audit-01-20.jsonl", "audit-+1-20.jsonl", "audit-1-20.jsonl.bak"]
        {
            assert_eq!(Full::parse(name), None, "{name}");
        }
    }

    #[test]
    fn full_files_are_sorted_by_number() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["audit-10-12.jsonl", "audit-1-9.jsonl", "audit.jsonl", "other"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let names: Vec<String> = full_files(directory.path()).unwrap().iter().map(Full::name).collect();
        assert_eq!(names, ["audit-1-9.jsonl", "audit-10-12.jsonl"]);
        assert_eq!(full_files(&directory.path().join("none")).unwrap(), []);
    }
}
