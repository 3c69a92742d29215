//! The names of a log's files, and how they are opened. Somebody else may have put something under one of these names, so
//! opening follows no link, waits for nothing, and accepts only a regular file.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use super::AuditError;

/// The file that records are added to.
pub const CURRENT_FILE: &str = "audit.jsonl";
/// The file that holds the last record's number and hash.
pub const HEAD_FILE: &str = "audit.head";
/// The lock file, which a writer holds.
pub const LOCK_FILE: &str = "audit.lock";

/// A full file that was put aside, with the numbers of its name `audit-FIRST-LAST.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RotatedFile {
    /// The number of its first record.
    pub first: u64,
    /// The number of its last record.
    pub last: u64,
}

impl RotatedFile {
    /// The name of the file.
    pub fn name(&self) -> String {
        format!("audit-{}-{}.jsonl", self.first, self.last)
    }

    fn parse(name: &str) -> Option<Self> {
        let (first, last) = name.strip_prefix("audit-")?.strip_suffix(".jsonl")?.split_once('-')?;
        let full = Self { first: first.parse().ok()?, last: last.parse().ok()? };
        // Each file has exactly one name: a name with `+1` or `01` is refused.
        (full.name() == name).then_some(full)
    }
}

/// Lists the full files of a directory, the oldest first; none where there is no directory.
pub fn rotated_files(directory: &Path) -> Result<Vec<RotatedFile>, AuditError> {
    let failed = |source| AuditError::io("read", directory, source);
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        files.extend(entry.map_err(failed)?.file_name().to_str().and_then(RotatedFile::parse));
    }
    files.sort();
    Ok(files)
}

/// The mode in which a file is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// The file is read, and must exist.
    Read,
    /// The file is read, and written at its end. A missing file is made.
    Append,
    /// The file is read, and written anywhere. A missing file is made.
    ReadWrite,
}

/// Opens a regular file. A file to write to must belong to this account, and nobody else may write to it.
pub fn open(path: &Path, purpose: OpenMode) -> Result<File, AuditError> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = File::options();
    options.read(true).custom_flags(flags).mode(0o600);
    match purpose {
        OpenMode::Read => {}
        OpenMode::Append => _ = options.append(true).create(true),
        OpenMode::ReadWrite => _ = options.write(true).create(true),
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
    if purpose != OpenMode::Read {
        is_ours(path, &metadata)?;
    }
    Ok(file)
}

const NOT_REGULAR: &str = "it is not a regular file";

/// Makes the directory where it is missing, for this account alone, and checks that nobody else can write to it.
pub fn create_directory(directory: &Path) -> Result<(), AuditError> {
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

/// The identity and the length of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    /// The length in bytes.
    pub length: u64,
}

impl Stamp {
    /// Takes the stamp from a file's metadata.
    pub fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino(), length: metadata.len() }
    }

    /// Whether both stamps are of the same file.
    pub fn same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// The stamp of the file at this path; `None` where there is none.
pub fn stamp(path: &Path) -> Result<Option<Stamp>, AuditError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(Stamp::of(&metadata))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(AuditError::io("open", path, source)),
    }
}

/// Writes the names in a directory through to the disk.
pub fn sync_directory(directory: &Path) -> Result<(), AuditError> {
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(|source| AuditError::io("write", directory, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_has_one_name() {
        let full = RotatedFile { first: 1, last: 20 };
        assert_eq!(RotatedFile::parse(&full.name()), Some(full));
        for name in
            ["audit.jsonl", "audit-1.jsonl", "audit-01-20.jsonl", "audit-+1-20.jsonl", "audit-1-20.jsonl.bak"]
        {
            assert_eq!(RotatedFile::parse(name), None, "{name}");
        }
    }

    #[test]
    fn full_files_are_sorted_by_number() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["audit-10-12.jsonl", "audit-1-9.jsonl", "audit.jsonl", "other"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let names: Vec<String> =
            rotated_files(directory.path()).unwrap().iter().map(RotatedFile::name).collect();
        assert_eq!(names, ["audit-1-9.jsonl", "audit-10-12.jsonl"]);
        assert_eq!(rotated_files(&directory.path().join("none")).unwrap(), []);
    }
}
