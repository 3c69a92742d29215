//! Identity files: private keys, the public keys beside them, and certificates.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use russh::keys::ssh_key::certificate::CertType;
use russh::keys::{Algorithm, Certificate, Error, PrivateKey, PublicKey, decode_secret_key};

use crate::config::beside;
use host_base::trusted_file;

/// One of the configuration's `IdentityFile`s.
pub(crate) struct IdentityFile {
    pub(crate) path: PathBuf,
    /// The public key. None where neither the file nor one beside it has it.
    pub(crate) public: Option<PublicKey>,
    pub(crate) private: PrivateKeyState,
}

pub(crate) enum PrivateKeyState {
    Usable(Arc<PrivateKey>),
    /// The key has a passphrase, which isn't known here and which nobody is asked for.
    Encrypted,
    /// The key is in a security key.
    InHardware,
    /// There is no private key. The agent may have it.
    Absent,
    /// The reason why the key isn't used, as the second half of a sentence about the file.
    Refused(String),
}

impl IdentityFile {
    /// Reads an identity file. Returns none where there is neither a private nor a public key: the configuration names
    /// several files that usually don't exist.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let mut found = None;
        let text = trusted_file::read(path, |metadata: &Metadata| {
            found = Some(metadata.clone());
            io::Result::Ok(())
        });
        let (private, public) = match (text, found) {
            (Ok(text), Some(metadata)) if is_private(&text) => private(&text, &metadata),
            (Ok(text), _) => match public(&text) {
                Some(key) => (PrivateKeyState::Absent, Some(key)),
                None => (PrivateKeyState::Refused("is no key that can be read here".to_owned()), None),
            },
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound => (PrivateKeyState::Absent, None),
            (Err(error), _) => (PrivateKeyState::Refused(format!("can't be read: {error}")), None),
        };
        let public = public.or_else(|| self::public(&read(&beside(path, ".pub"))?));
        if public.is_none() && matches!(private, PrivateKeyState::Absent) {
            return None;
        }
        Some(Self { path: path.to_owned(), public, private })
    }

    /// Returns the certificate beside the key, which ssh takes where none is configured.
    pub(super) fn certificate(&self) -> Option<Certificate> {
        certificate(&beside(&self.path, "-cert.pub"))
    }
}

/// Reads a user's certificate. Returns none where the file holds something else.
pub(super) fn certificate(path: &Path) -> Option<Certificate> {
    let certificate = Certificate::from_openssh(read(path)?.trim()).ok()?;
    (certificate.cert_type() == CertType::User).then_some(certificate)
}

fn read(path: &Path) -> Option<String> {
    trusted_file::read(path, |_| io::Result::Ok(())).ok()
}

fn public(text: &str) -> Option<PublicKey> {
    PublicKey::from_openssh(text.trim()).ok()
}

fn is_private(text: &str) -> bool {
    text.contains("PRIVATE KEY-----") || text.starts_with("PuTTY-User-Key-File-")
}

/// Reads a private key. The library's message about a key that it can't read may hold pieces of the key, and so none
/// of it is passed on.
fn private(text: &str, metadata: &Metadata) -> (PrivateKeyState, Option<PublicKey>) {
    // ssh does the same: a file of another account is that account's to protect.
    if metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o077 != 0 {
        let mode = metadata.mode() & 0o777;
        return (
            PrivateKeyState::Refused(format!("has mode {mode:o}, so others may read it: chmod 600 it")),
            None,
        );
    }
    match decode_secret_key(text, None) {
        Ok(key) => {
            let public = Some(key.public_key().clone());
            match key.algorithm() {
                Algorithm::SkEd25519 | Algorithm::SkEcdsaSha2NistP256 => {
                    (PrivateKeyState::InHardware, public)
                }
                Algorithm::Dsa => {
                    (PrivateKeyState::Refused("is a DSA key, which is too weak".to_owned()), public)
                }
                _ => (PrivateKeyState::Usable(Arc::new(key)), public),
            }
        }
        Err(Error::KeyIsEncrypted) => {
            let public = PrivateKey::from_openssh(text).ok().map(|key| key.public_key().clone());
            (PrivateKeyState::Encrypted, public)
        }
        Err(_) if text.contains("ENCRYPTED") => (PrivateKeyState::Encrypted, None),
        Err(_) => (PrivateKeyState::Refused("is no private key that can be read here".to_owned()), None),
    }
}

#[cfg(test)]
mod tests;
