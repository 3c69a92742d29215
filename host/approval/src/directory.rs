//! The directory where an account's servers can be reached: nobody else may enter it.
//!
//! It is opened once and checked by what was opened; everything in it is reached through that handle. So nobody can put
//! another directory in its place in between, and how long its path is doesn't matter: the kernel takes no more than 107
//! bytes for a socket's.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, fstat, open, renameat, unlinkat};
use tokio::net::{UnixListener, UnixStream};

/// Of a socket at which a server listens.
const SUFFIX: &str = ".sock";
/// Sockets that are looked at.
const MOST: usize = 256;

/// Why a directory isn't used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The system's own word.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else put it there.
    #[error("{} belongs to the account {found}: expected it to be {expected}'s", path.display())]
    Foreign {
        /// Which one.
        path: PathBuf,
        /// The owner's uid.
        found: u32,
        /// Whose it should be.
        expected: u32,
    },
    /// Others could enter.
    #[error("{} has mode {mode:04o}: expected 0700, so that nobody else can enter it", path.display())]
    Open {
        /// Which one.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}

/// A directory of mode 0700.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    handle: OwnedFd,
}

impl Directory {
    /// This account's own, made where it isn't there yet.
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

    /// That account's own; none where it isn't there.
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

    /// Listens at a socket of this name. It is only there to be seen once it listens: at one that doesn't yet, the
    /// connection is refused as at a dead server's, and whoever looks would remove it.
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

    /// The names of the sockets; one that is no server's name isn't ours.
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

    /// Connects to the server of this name. None where it is dead; then its socket is removed.
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

    /// What can't be removed stays: it does no harm.
    pub(super) fn remove(&self, name: &str) {
        let _ = unlinkat(&self.handle, format!("{name}{SUFFIX}"), AtFlags::empty());
    }

    /// Short, whatever the directory's own path.
    fn through(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.handle.as_raw_fd()))
    }
}

/// Whether a server could have chosen it: its process, and a random number.
fn is_name(name: &str) -> bool {
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.len() <= 40
        && name.split_once('-').is_some_and(|(pid, random)| pid.parse::<u32>().is_ok() && is_hex(random))
}
