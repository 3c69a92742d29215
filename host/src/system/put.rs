//! Puts files in place so that nobody ever sees a half-written one: staged beside the place, then renamed.
//!
//! What was there is kept beside it as well, until that isn't needed any more. Both names have a dot in them, which sudo
//! passes over in its directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The copy's bytes are those that were shown, or there is none.
pub fn copy(from: &Path, staged: &Path, mode: u32, sha256: &str) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut to = staged_file(staged)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = source.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        digest.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
    }
    let found = hex::encode(digest.finalize());
    if found != sha256 {
        return Err(io::Error::other(format!(
            "it was changed meanwhile: SHA-256 {found} instead of {sha256}"
        )));
    }
    finish(&to, mode)
}

/// Of root's, with this mode.
pub fn stage(staged: &Path, contents: &[u8], mode: u32) -> io::Result<()> {
    let mut file = staged_file(staged)?;
    file.write_all(contents)?;
    finish(&file, mode)
}

/// What an earlier run left there when it was killed is no use to anybody.
fn staged_file(staged: &Path) -> io::Result<File> {
    remove_if_there(staged)?;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(staged)
}

fn finish(file: &File, mode: u32) -> io::Result<()> {
    std::os::unix::fs::fchown(file, Some(0), Some(0))?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.sync_all()
}

/// Renames over a file; gives where what was there is kept, if anything was.
pub fn replace(staged: &Path, path: &Path) -> io::Result<Option<PathBuf>> {
    let before = beside(path, "before");
    let replaced = keep(path, &before).and_then(|kept| fs::rename(staged, path).map(|()| kept));
    replaced.inspect_err(|_| {
        let _ = fs::remove_file(staged);
        let _ = fs::remove_file(&before);
    })
}

fn keep(path: &Path, before: &Path) -> io::Result<Option<PathBuf>> {
    remove_if_there(before)?;
    match fs::hard_link(path, before) {
        Ok(()) => Ok(Some(before.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A name beside a file's own.
pub fn beside(path: &Path, what: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{what}"))
}
