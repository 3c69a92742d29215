//! Identity files: private keys, the public keys beside them, and certificates.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use russh::keys::ssh_key::certificate::CertType;
use russh::keys::{Algorithm, Certificate, Error, PrivateKey, PublicKey, decode_secret_key};

use host_base::small_file;

/// One of the configuration's `IdentityFile`s.
pub(crate) struct IdentityFile {
    pub(crate) path: PathBuf,
    /// Nothing, where neither the file nor one beside it says.
    pub(crate) public: Option<PublicKey>,
    pub(crate) private: Private,
}

pub(crate) enum Private {
    Usable(Arc<PrivateKey>),
    /// Nothing is known of its passphrase here, and nobody is asked for it.
    Encrypted,
    /// It is in a security key.
    InHardware,
    /// Not there: the agent may have it.
    Absent,
    /// Why it isn't used, as the second half of a sentence about the file.
    Refused(String),
}

impl IdentityFile {
    /// Nothing, where there is nothing: the configuration names several that usually aren't there.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let mut found = None;
        let text = small_file::read(path, |metadata: &Metadata| {
            found = Some(metadata.clone());
            io::Result::Ok(())
        });
        let (private, public) = match (text, found) {
            (Ok(text), Some(metadata)) if is_private(&text) => private(&text, &metadata),
            (Ok(text), _) => match public(&text) {
                Some(key) => (Private::Absent, Some(key)),
                None => (Private::Refused("is no key that can be read here".to_owned()), None),
            },
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound => (Private::Absent, None),
            (Err(error), _) => (Private::Refused(format!("can't be read: {error}")), None),
        };
        let public = public.or_else(|| self::public(&read(&beside(path, ".pub"))?));
        if public.is_none() && matches!(private, Private::Absent) {
            return None;
        }
        Some(Self { path: path.to_owned(), public, private })
    }

    /// The certificate that ssh takes where none is configured.
    pub(super) fn certificate(&self) -> Option<Certificate> {
        certificate(&beside(&self.path, "-cert.pub"))
    }
}

/// One for users; nothing, where the file holds nothing of the kind.
pub(super) fn certificate(path: &Path) -> Option<Certificate> {
    let certificate = Certificate::from_openssh(read(path)?.trim()).ok()?;
    (certificate.cert_type() == CertType::User).then_some(certificate)
}

fn read(path: &Path) -> Option<String> {
    small_file::read(path, |_| io::Result::Ok(())).ok()
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn public(text: &str) -> Option<PublicKey> {
    PublicKey::from_openssh(text.trim()).ok()
}

fn is_private(text: &str) -> bool {
    text.contains("PRIVATE KEY-----") || text.starts_with("PuTTY-User-Key-File-")
}

/// What the library says of a key that it can't read may hold pieces of it, so none of that is passed on.
fn private(text: &str, metadata: &Metadata) -> (Private, Option<PublicKey>) {
    // As in ssh: where it is somebody else's, it was that one's to protect it.
    if metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o077 != 0 {
        let mode = metadata.mode() & 0o777;
        return (Private::Refused(format!("has mode {mode:o}, so others may read it: chmod 600 it")), None);
    }
    match decode_secret_key(text, None) {
        Ok(key) => {
            let public = Some(key.public_key().clone());
            match key.algorithm() {
                Algorithm::SkEd25519 | Algorithm::SkEcdsaSha2NistP256 => (Private::InHardware, public),
                Algorithm::Dsa => (Private::Refused("is a DSA key, which is too weak".to_owned()), public),
                _ => (Private::Usable(Arc::new(key)), public),
            }
        }
        Err(Error::KeyIsEncrypted) => {
            let public = PrivateKey::from_openssh(text).ok().map(|key| key.public_key().clone());
            (Private::Encrypted, public)
        }
        Err(_) if text.contains("ENCRYPTED") => (Private::Encrypted, None),
        Err(_) => (Private::Refused("is no private key that can be read here".to_owned()), None),
    }
}

#[cfg(test)]
mod tests;
