//! Reads small files that are trusted, such as configuration, locks and sums. It reads regular files of bounded size
//! only, and never waits for the other end of a pipe.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// The largest size of a file that is read, in bytes.
const LARGEST: u64 = 4 << 20;

/// Reads a file as text. `may` can refuse the file by its metadata; they are those of the opened file.
pub fn read<E: From<io::Error>>(
    path: &Path,
    may: impl FnOnce(&Metadata) -> Result<(), E>,
) -> Result<String, E> {
    let bytes = read_bytes(path, may)?;
    let text =
        String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8"))?;
    Ok(text)
}

/// Reads a file as bytes. `may` can refuse the file by its metadata; they are those of the opened file.
pub fn read_bytes<E: From<io::Error>>(
    path: &Path,
    may: impl FnOnce(&Metadata) -> Result<(), E>,
) -> Result<Vec<u8>, E> {
    // With this flag, opening a pipe doesn't wait for the other end.
    let file = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file").into());
    }
    may(&metadata)?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other(format!("it is larger than {LARGEST} bytes")).into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_any(path: &Path) -> io::Result<String> {
        read(path, |_| io::Result::Ok(()))
    }

    #[test]
    fn only_a_regular_file_of_a_sensible_size_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "text").unwrap();
        assert_eq!(read_any(&path).unwrap(), "text");
        assert!(read::<io::Error>(&path, |_| Err(io::Error::other("no"))).is_err());
        std::fs::File::create(&path).unwrap().set_len(LARGEST + 1).unwrap();
        assert!(read_any(&path).unwrap_err().to_string().contains("larger"));
        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .unwrap();
        for other in [pipe.as_path(), directory.path(), Path::new("/dev/zero")] {
            assert!(read_any(other).unwrap_err().to_string().contains("regular file"), "{other:?}");
        }
        assert_eq!(read_any(&directory.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
