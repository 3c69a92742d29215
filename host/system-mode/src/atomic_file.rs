//! Puts files in place so that nobody ever sees a half-written one: they are written beside the place, and then
//! renamed.
//!
//! The file that was there is kept beside it as well, until it isn't needed any more. Both names have a dot in them,
//! and sudo ignores such files in its directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use sha2::{Digest, Sha256};

/// The running program. The link leads to the very file that runs, and not to what has its name by now.
pub const RUNNING: &str = "/proc/self/exe";

/// Opens a file that another account may replace at any time. No link is followed, no pipe is waited for, and only a
/// regular file is opened.
pub fn open(path: &Path) -> io::Result<File> {
    let is_running = path == Path::new(RUNNING);
    let flags = OFlags::NONBLOCK | if is_running { OFlags::empty() } else { OFlags::NOFOLLOW };
    let opened = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => io::Error::other("it is a link, and no link is followed here"),
        _ => error,
    })?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Copies a file. The copy has the SHA-256 that was shown, or there is no copy.
pub fn copy(from: &Path, staged: &Path, mode: u32, sha256: &str) -> io::Result<()> {
    let source = open(from)?;
    let mut to = staged_file(staged)?;
    pour(source, &mut to, sha256)?;
    finish(&to, mode)
}

/// Copies bytes and returns their number. On an error because of another SHA-256, the copied bytes must not be used.
pub fn pour(mut source: impl Read, to: &mut File, sha256: &str) -> io::Result<u64> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut all = 0;
    loop {
        let read = source.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        digest.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
        all += read as u64;
    }
    let found = hex::encode(digest.finalize());
    match found == sha256 {
        true => Ok(all),
        false => Err(io::Error::other(format!(
            "its SHA-256 is {found}, and it should be {sha256}: somebody has changed it"
        ))),
    }
}

/// Writes a file of root's with this mode.
pub fn stage(staged: &Path, contents: &[u8], mode: u32) -> io::Result<()> {
    let mut file = staged_file(staged)?;
    file.write_all(contents)?;
    finish(&file, mode)
}

/// Removes a file that an earlier run left there when it was killed.
fn staged_file(staged: &Path) -> io::Result<File> {
    remove_if_there(staged)?;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(staged)
}

fn finish(file: &File, mode: u32) -> io::Result<()> {
    std::os::unix::fs::fchown(file, Some(0), Some(0))?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.sync_all()
}

/// Renames the new file over a file. Returns the path at which the old one is kept, if there was one.
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

/// Returns a name beside a file's own.
pub fn beside(path: &Path, what: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_itself_is_opened_and_nothing_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "text").unwrap();
        assert_eq!(io::read_to_string(open(&at("file")).unwrap()).unwrap(), "text");
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        assert!(open(&at("link")).unwrap_err().to_string().contains("it is a link"));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        for other in [at("pipe").as_path(), directory.path(), Path::new("/dev/zero")] {
            assert!(open(other).unwrap_err().to_string().contains("regular file"), "{other:?}");
        }
    }

    #[test]
    fn the_running_program_is_the_file_that_runs() {
        use std::os::unix::fs::MetadataExt;
        let running = open(Path::new(RUNNING)).unwrap().metadata().unwrap();
        let named = fs::metadata(std::env::current_exe().unwrap()).unwrap();
        assert_eq!((running.dev(), running.ino()), (named.dev(), named.ino()));
    }
}
