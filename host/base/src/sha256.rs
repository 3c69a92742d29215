//! SHA-256 of bytes and of files. A file is read in pieces, as it may be larger than the memory.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of these bytes, in hexadecimal digits.
pub fn of(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Returns the SHA-256 of all that a reader gives.
pub fn digest(mut reader: impl Read) -> io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        match reader.read(&mut piece) {
            Ok(0) => return Ok(hasher.finalize().into()),
            Ok(read) => hasher.update(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Says whether the text is a SHA-256 in lower-case hexadecimal digits.
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
