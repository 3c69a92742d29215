//! The keys that are offered to a server, in ssh's order: the configured certificates; the agent's keys that the
//! configuration names; the agent's other keys, unless only configured ones are wanted; then keys that are only in
//! files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use russh::keys::agent::AgentIdentity;
use russh::keys::ssh_key::public::KeyData;
use russh::keys::{Algorithm, Certificate, HashAlg, PrivateKey, PublicKey};

use super::files::{self, IdentityFile, PrivateKeyState};
use host_text::redact::excerpt;

/// A key or certificate that a server may know.
pub(super) struct Identity {
    pub(super) offer: Offer,
    pub(super) key: Key,
    /// The source of the key, such as `the agent` or `/root/.ssh/id_ed25519`.
    from: String,
}

pub(super) enum Offer {
    Key(PublicKey),
    Certificate(Box<Certificate>),
}

/// The key that signs.
#[derive(Clone)]
pub(super) enum Key {
    Agent(Box<AgentIdentity>),
    File(Arc<PrivateKey>),
}

/// The keys to offer, and those that were left out.
#[derive(Default)]
pub(super) struct Identities {
    pub(super) offered: Vec<Identity>,
    /// A sentence about each file that couldn't be used.
    pub(super) left_out: Vec<String>,
    /// Files whose keys would work if the agent had them.
    pub(super) encrypted: Vec<PathBuf>,
}

impl Identity {
    pub(super) fn algorithm(&self) -> Algorithm {
        match &self.offer {
            Offer::Key(key) => key.algorithm(),
            Offer::Certificate(certificate) => certificate.algorithm(),
        }
    }

    /// Returns the fingerprint as `SHA256:…`. That of a certificate is its key's.
    pub(super) fn fingerprint(&self) -> String {
        let key = match &self.offer {
            Offer::Key(key) => key.key_data(),
            Offer::Certificate(certificate) => certificate.public_key(),
        };
        key.fingerprint(HashAlg::Sha256).to_string()
    }

    /// Returns the fingerprint, kind and origin.
    pub(super) fn shown(&self) -> String {
        let kind = match &self.offer {
            Offer::Key(key) => key.algorithm().to_string(),
            Offer::Certificate(certificate) => certificate.algorithm().to_certificate_type(),
        };
        format!("{} ({kind}, from {})", self.fingerprint(), self.from)
    }
}

/// The files and the agent that hold keys.
pub(super) struct Sources<'a> {
    pub(super) identity_files: &'a [PathBuf],
    pub(super) certificate_files: &'a [PathBuf],
    pub(super) identities_only: bool,
    pub(super) agent: Vec<AgentIdentity>,
}

impl Sources<'_> {
    /// Reads the files. DSA keys are never offered.
    pub(super) fn gather(mut self) -> Identities {
        self.agent.retain(|identity| !matches!(identity.public_key().algorithm(), Algorithm::Dsa));
        let files: Vec<IdentityFile> =
            self.identity_files.iter().filter_map(|path| IdentityFile::read(path)).collect();
        let mut found = Identities::default();

        for path in self.certificate_files {
            match files::certificate(path) {
                Some(certificate) => self.add_certificate(certificate, path, &files, &mut found),
                None => found.left_out.push(format!("{} is no certificate for a user", path.display())),
            }
        }
        // ssh looks beside the keys only where no certificate is configured.
        let mut beside: Vec<(PathBuf, Certificate)> = match self.certificate_files {
            [] => files.iter().filter_map(|file| Some((file.path.clone(), file.certificate()?))).collect(),
            _ => Vec::new(),
        };

        let mut others = Vec::new();
        for identity in &self.agent {
            let file = files.iter().find(|file| is_in(identity, file)).map(|file| file.path.clone());
            let certificate = match identity {
                AgentIdentity::Certificate { certificate, .. } => {
                    let at = beside.iter().position(|(_, beside)| beside == certificate);
                    at.map(|at| beside.remove(at).0)
                }
                AgentIdentity::PublicKey { .. } => None,
            };
            let is_offered = found.offered.iter().any(|one| is_same(&one.offer, identity));
            match file.or(certificate) {
                _ if is_offered => {}
                Some(path) => {
                    found.offered.push(of_agent(identity, format!("the agent, as {}", path.display())));
                }
                None if self.identities_only => {}
                None => others.push(of_agent(identity, describe(identity))),
            }
        }
        found.offered.append(&mut others);

        for file in &files {
            let is_offered = |public: &PublicKey| {
                let is_it = |one: &Identity| matches!(&one.offer, Offer::Key(key) if is_equal(key, public));
                found.offered.iter().any(is_it)
            };
            if !file.public.as_ref().is_some_and(is_offered) {
                add_file(file, &mut found);
            }
            if let Some(at) = beside.iter().position(|(path, _)| *path == file.path) {
                let (path, certificate) = beside.remove(at);
                self.add_certificate(certificate, &path, &files, &mut found);
            }
        }
        found
    }

    /// Adds a certificate with the key that it is for, from the agent or a file.
    fn add_certificate(
        &self,
        certificate: Certificate,
        path: &Path,
        files: &[IdentityFile],
        found: &mut Identities,
    ) {
        let by_agent = self.agent.iter().find(|identity| match identity {
            AgentIdentity::PublicKey { key, .. } => key.key_data() == certificate.public_key(),
            AgentIdentity::Certificate { certificate: one, .. } => *one == certificate,
        });
        let by_file = || {
            files.iter().find_map(|file| match &file.private {
                PrivateKeyState::Usable(key) if key.public_key().key_data() == certificate.public_key() => {
                    Some(Key::File(key.clone()))
                }
                _ => None,
            })
        };
        match by_agent.map(|identity| Key::Agent(Box::new(identity.clone()))).or_else(by_file) {
            Some(key) => found.offered.push(Identity {
                offer: Offer::Certificate(Box::new(certificate)),
                key,
                from: path.display().to_string(),
            }),
            None => {
                found.left_out.push(format!("the key of the certificate {} was not found", path.display()))
            }
        }
    }
}

fn add_file(file: &IdentityFile, found: &mut Identities) {
    let path = file.path.display();
    match &file.private {
        PrivateKeyState::Usable(key) => found.offered.push(Identity {
            offer: Offer::Key(key.public_key().clone()),
            key: Key::File(key.clone()),
            from: path.to_string(),
        }),
        PrivateKeyState::Encrypted => {
            found.left_out.push(format!("{path} is encrypted"));
            found.encrypted.push(file.path.clone());
        }
        PrivateKeyState::InHardware => {
            found.left_out.push(format!("{path} is in a security key, which only the agent can use"));
            found.encrypted.push(file.path.clone());
        }
        PrivateKeyState::Absent => {
            found.left_out.push(format!("the private key of {path} is not in the agent"))
        }
        PrivateKeyState::Refused(reason) => found.left_out.push(format!("{path} {reason}")),
    }
}

fn of_agent(identity: &AgentIdentity, from: String) -> Identity {
    let offer = match identity {
        AgentIdentity::PublicKey { key, .. } => Offer::Key(key.clone()),
        AgentIdentity::Certificate { certificate, .. } => Offer::Certificate(Box::new(certificate.clone())),
    };
    Identity { offer, key: Key::Agent(Box::new(identity.clone())), from }
}

/// Describes a key of the agent. Its comment may be any text.
fn describe(identity: &AgentIdentity) -> String {
    match identity.comment() {
        "" => "the agent".to_owned(),
        comment => format!("the agent, {}", excerpt(comment, 60)),
    }
}

fn is_in(identity: &AgentIdentity, file: &IdentityFile) -> bool {
    match (identity, &file.public) {
        (AgentIdentity::PublicKey { key, .. }, Some(public)) => is_equal(key, public),
        _ => false,
    }
}

fn is_same(offer: &Offer, identity: &AgentIdentity) -> bool {
    match (offer, identity) {
        (Offer::Key(one), AgentIdentity::PublicKey { key, .. }) => is_equal(one, key),
        (Offer::Certificate(one), AgentIdentity::Certificate { certificate, .. }) => **one == *certificate,
        _ => false,
    }
}

/// Compares two keys without their comments.
fn is_equal(one: &PublicKey, other: &PublicKey) -> bool {
    let (one, other): (&KeyData, &KeyData) = (one.key_data(), other.key_data());
    one == other
}

#[cfg(test)]
mod tests;
