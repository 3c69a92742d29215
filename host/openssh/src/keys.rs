//! The public side of the keys of the account that this program runs as.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use russh::keys::ssh_key::public::KeyData;
use russh::keys::{Algorithm, EcdsaCurve, HashAlg, PublicKey};

use super::auth::{Agent, IdentityFile, PrivateKeyState};
use super::config::{beside, home};
use host_base::problem::{Category, Problem};

/// The most names of the directory that are looked at. No user has more.
const MOST: usize = 1000;
/// The files that ssh looks for by default.
const USUAL: [&str; 5] = ["id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk"];

/// The public side of a key pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnKey {
    /// The file of the public half, or that of the private half where there is no such file. None for a key that only
    /// the agent has.
    pub path: Option<PathBuf>,
    /// The algorithm, such as `ssh-ed25519`.
    pub algorithm: String,
    /// The size in bits, as `ssh-keygen -l` counts it.
    pub bits: u32,
    /// The fingerprint, as `SHA256:…`.
    pub fingerprint: String,
    /// The comment that its owner gave it.
    pub comment: String,
    /// The line for authorized_keys.
    pub line: String,
    /// Whether the private half lies beside it.
    pub has_private: bool,
    /// Whether the private half needs a passphrase, as far as this can be told.
    pub encrypted: Option<bool>,
    /// Whether the agent has it.
    pub in_agent: bool,
    /// The mode of the private half's file.
    pub mode: Option<u32>,
}

/// Returns the keys in files, followed by those that only the agent has.
pub async fn own_keys() -> Result<Vec<OwnKey>, Problem> {
    let of_agent = match std::env::var_os("SSH_AUTH_SOCK").filter(|socket| !socket.is_empty()) {
        Some(socket) => match Agent::connect(Path::new(&socket), None).await {
            Some(mut agent) => agent.identities().await.unwrap_or_default(),
            None => Vec::new(),
        },
        None => Vec::new(),
    };
    let of_agent: Vec<(PublicKey, String)> = of_agent
        .iter()
        .map(|identity| (identity.public_key().into_owned(), identity.comment().to_owned()))
        .collect();
    let directory = home().join(".ssh");
    let mut keys = tokio::task::spawn_blocking(move || in_directory(&directory))
        .await
        .map_err(|error| Problem::new("INTERNAL_ERROR", Category::Internal, error.to_string()))??;
    for (key, comment) in of_agent {
        let fingerprint = key.fingerprint(HashAlg::Sha256).to_string();
        match keys.iter_mut().find(|known| known.fingerprint == fingerprint) {
            Some(known) => known.in_agent = true,
            None => keys.extend(own(&key, Some(&comment), None).map(|key| OwnKey { in_agent: true, ..key })),
        }
    }
    Ok(keys)
}

fn in_directory(directory: &Path) -> Result<Vec<OwnKey>, Problem> {
    let names = match fs::read_dir(directory) {
        Ok(names) => names,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Problem::io(&directory.display().to_string(), &error)),
    };
    let names = names.flatten().take(MOST).filter_map(|entry| entry.file_name().into_string().ok());
    let private: BTreeSet<String> = names
        .filter_map(|name| match name.strip_suffix(".pub") {
            // A certificate belongs to a key that has a file of its own.
            Some(private) if !private.ends_with("-cert") => Some(private.to_owned()),
            _ => USUAL.contains(&name.as_str()).then_some(name),
        })
        .collect();
    Ok(private.iter().filter_map(|name| of_file(&directory.join(name))).collect())
}

fn of_file(path: &Path) -> Option<OwnKey> {
    let file = IdentityFile::read(path)?;
    let key = file.public.as_ref()?;
    let public = Some(beside(path, ".pub")).filter(|public| public.is_file());
    let (has_private, encrypted) = match &file.private {
        PrivateKeyState::Usable(_) => (true, Some(false)),
        PrivateKeyState::Encrypted => (true, Some(true)),
        PrivateKeyState::InHardware | PrivateKeyState::Refused(_) => (true, None),
        PrivateKeyState::Absent => (false, None),
    };
    let mode = fs::symlink_metadata(path).ok().filter(|_| has_private).map(|found| found.mode() & 0o7777);
    // The comment of an encrypted key is encrypted as well.
    let line = public.as_ref().and_then(|public| PublicKey::read_openssh_file(public).ok());
    let comment =
        line.filter(|line| line.key_data() == key.key_data()).map(|line| line.comment().to_string());
    let key = own(key, comment.as_deref(), Some(public.unwrap_or_else(|| path.to_owned())))?;
    Some(OwnKey { has_private, encrypted, mode, ..key })
}

fn own(key: &PublicKey, comment: Option<&str>, path: Option<PathBuf>) -> Option<OwnKey> {
    let comment = comment.map_or_else(|| key.comment().to_string(), str::to_owned);
    let mut plain = key.clone();
    plain.set_comment("");
    let line = plain.to_openssh().ok()?.trim_end().to_owned();
    Some(OwnKey {
        path,
        algorithm: key.algorithm().to_string(),
        bits: bits(key),
        fingerprint: key.fingerprint(HashAlg::Sha256).to_string(),
        line: if comment.is_empty() { line } else { format!("{line} {comment}") },
        comment,
        has_private: false,
        encrypted: None,
        in_agent: false,
        mode: None,
    })
}

fn bits(key: &PublicKey) -> u32 {
    match (key.key_data(), key.algorithm()) {
        (KeyData::Rsa(key), _) => key.key_size(),
        (_, Algorithm::Dsa) => 1024,
        (_, Algorithm::Ecdsa { curve: EcdsaCurve::NistP384 }) => 384,
        (_, Algorithm::Ecdsa { curve: EcdsaCurve::NistP521 }) => 521,
        _ => 256,
    }
}
