//! The directory with the sockets of an account's servers, which nobody else may enter.
//!
//! The directory is opened once, and the checks and all later steps use that handle. Nobody can put another directory
//! in its place meanwhile. The length of its path doesn't matter either, although the kernel takes only 107 bytes for a
//! socket's path.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, fstat, open, renameat, unlinkat};
use tokio::net::{UnixListener, UnixStream};

/// The end of a socket's name.
const SUFFIX: &str = ".sock";
/// The number of sockets that are used.
const MOST: usize = 256;

/// The reason why a directory isn't used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// An error of the system.
    #[error("{}: {source}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The directory belongs to another account.
    #[error("{} belongs to the account {found}: expected it to be {expected}'s", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The owner's uid.
        found: u32,
        /// The uid that the owner should have.
        expected: u32,
    },
    /// Other accounts can enter the directory.
    #[error("{} has mode {mode:04o}: expected 0700, so that nobody else can enter it", path.display())]
    Open {
        /// The directory.
        path: PathBuf,
        /// The permission bits.
        mode: u32,
    },
}

/// An open directory with mode 0700.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    handle: OwnedFd,
}

impl Directory {
    /// Opens this account's directory, and makes it where it doesn't exist.
    pub(super) fn create(path: PathBuf) -> Result<Self, DirectoryError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        if let Err(source) = made {
            return Err(DirectoryError::Io { path, source });
        }
        match Self::open(path.clone(), rustix::process::geteuid().as_raw())? {
            Some(directory) => Ok(directory),
            None => Err(DirectoryError::Io { path, source: io::ErrorKind::NotFound.into() }),
        }
    }

    /// Opens a directory of the account `owner`. None where it doesn't exist.
    pub(super) fn open(path: PathBuf, owner: u32) -> Result<Option<Self>, DirectoryError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = open(&path, flags, Mode::empty()).and_then(|handle| Ok((fstat(&handle)?, handle)));
        let (stat, handle) = match found {
            Ok(found) => found,
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(error) => return Err(DirectoryError::Io { path, source: error.into() }),
        };
        let mode = stat.st_mode & 0o7777;
        if stat.st_uid != owner {
            return Err(DirectoryError::Foreign { path, found: stat.st_uid, expected: owner });
        }
        if mode & 0o077 != 0 {
            return Err(DirectoryError::Open { path, mode });
        }
        Ok(Some(Self { path, handle }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Listens at a socket with this name. The socket gets its name only when it listens. Before that, it would refuse
    /// connections like the socket of a dead server, and others would remove it.
    pub(super) fn listen(&self, name: &str) -> io::Result<UnixListener> {
        let hidden = format!(".{name}");
        let listener = UnixListener::bind(self.through(&hidden))?;
        let renamed = renameat(&self.handle, &hidden, &self.handle, format!("{name}{SUFFIX}"));
        if let Err(error) = renamed {
            let _ = unlinkat(&self.handle, &hidden, AtFlags::empty());
            return Err(error.into());
        }
        Ok(listener)
    }

    /// The names of the servers' sockets. Other files are ignored.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            let name = entry.file_name().to_str().ok().and_then(|name| name.strip_suffix(SUFFIX));
            names.extend(name.filter(|name| is_name(name)).map(str::to_owned));
        }
        names.sort();
        names.truncate(MOST);
        Ok(names)
    }

    /// Connects to the server with this name. None where the server is dead; its socket is removed then.
    pub(super) async fn connect(&self, name: &str) -> io::Result<Option<UnixStream>> {
        match UnixStream::connect(self.through(&format!("{name}{SUFFIX}"))).await {
            Ok(stream) => Ok(Some(stream)),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                self.remove(name);
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes a socket. One that can't be removed does no harm.
    pub(super) fn remove(&self, name: &str) {
        let _ = unlinkat(&self.handle, format!("{name}{SUFFIX}"), AtFlags::empty());
    }

    /// A short path of a file in the directory, whatever the directory's own path.
    fn through(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.handle.as_raw_fd()))
    }
}

/// Whether a name has the form of a server's: a process number and a random number.
fn is_name(name: &str) -> bool {
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.len() <= 40
        && name.split_once('-').is_some_and(|(pid, random)| pid.parse::<u32>().is_ok() && is_hex(random))
}
