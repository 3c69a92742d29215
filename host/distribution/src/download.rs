//! A component that was fetched. It lies in a directory that only this account can enter, and goes away with the value.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::error::DistributionError;

/// A component that was fetched, whose bytes have the digest that was asked for.
pub struct Download {
    file: PathBuf,
    _directory: TempDir,
}

/// The reason why nothing was saved.
pub(crate) enum NotSaved {
    /// The other side stopped.
    Read(io::Error),
    Wrong(DistributionError),
}

impl Download {
    /// The file with the component.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// Saves what a reader gives, which is at most so many bytes and has this SHA-256.
    pub(crate) fn save(mut reader: impl Read, limit: u64, expected: &str) -> Result<Self, NotSaved> {
        let what = "the component";
        let directory = tempfile::tempdir().map_err(|error| not_written(&std::env::temp_dir(), error))?;
        let path = directory.path().join("component.wasm");
        let mut file = File::create_new(&path).map_err(|error| not_written(&path, error))?;
        let mut hasher = Sha256::new();
        let mut size = 0_u64;
        let mut piece = vec![0; 64 << 10];
        loop {
            let count = match reader.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(NotSaved::Read(error)),
            };
            size += count as u64;
            if size > limit {
                return Err(NotSaved::Wrong(DistributionError::TooLarge { what, limit }));
            }
            hasher.update(&piece[..count]);
            file.write_all(&piece[..count]).map_err(|error| not_written(&path, error))?;
        }
        let found = hex::encode(hasher.finalize());
        if found != expected {
            let expected = expected.to_owned();
            return Err(NotSaved::Wrong(DistributionError::Digest { what, expected, found }));
        }
        Ok(Self { file: path, _directory: directory })
    }
}

fn not_written(path: &Path, error: io::Error) -> NotSaved {
    NotSaved::Wrong(DistributionError::File { path: path.to_owned(), error })
}
