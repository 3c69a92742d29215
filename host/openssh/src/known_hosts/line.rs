//! One line of known_hosts: `[@marker] hosts keytype base64-key [comment]`.

use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use russh::keys::ssh_key::known_hosts::{HostPatterns, Marker};
use russh::keys::{HashAlg, PublicKey};
use sha1::Sha1;

use super::{Entry, LONGEST};

/// The length of an HMAC-SHA1, and of the salts that ssh makes and takes.
pub(super) const SALT: usize = 20;

/// A key, and the hosts that it belongs to.
#[derive(Debug)]
pub(super) struct Line {
    file: PathBuf,
    number: usize,
    pub(super) marker: Option<Marker>,
    hosts: HostPatterns,
    pub(super) key: PublicKey,
}

impl Line {
    /// Parses a line. Returns none for a comment or an empty line, and the reason for a malformed one.
    pub(super) fn parse(file: &Path, number: usize, bytes: &[u8]) -> Result<Option<Self>, &'static str> {
        let Some((marker, hosts, mut words)) = begin(bytes)? else { return Ok(None) };
        // The crate's own reading of a line isn't used: it doesn't know tabs, and takes a # in a comment for the
        // line's end.
        let (Some(algorithm), Some(key)) = (words.next(), words.next()) else { return Err(NO_KEY) };
        let key =
            PublicKey::from_openssh(&format!("{algorithm} {key}")).map_err(|_| "its key can't be read")?;
        Ok(Some(Self { file: file.to_owned(), number, marker, hosts, key }))
    }

    /// Says whether the line is about a host of this name, as `host` or `[host]:port`, in lower case.
    pub(super) fn names(&self, name: &str) -> bool {
        match &self.hosts {
            HostPatterns::Patterns(patterns) => {
                host_ssh_syntax::matches_list(patterns.iter().map(String::as_str), name)
            }
            HostPatterns::HashedName { salt, hash } => hashed(name, salt) == *hash,
        }
    }

    pub(super) fn entry(&self) -> Entry {
        Entry {
            file: self.file.clone(),
            line: self.number,
            fingerprint: self.key.fingerprint(HashAlg::Sha256).to_string(),
            algorithm: self.key.algorithm().to_string(),
        }
    }
}

const NO_KEY: &str = "it has no key";

/// The parts before the key, and the words from there on. None for a comment or an empty line.
type Begin<'a, Words> = Option<(Option<Marker>, HostPatterns, Words)>;

fn begin(bytes: &[u8]) -> Result<Begin<'_, impl Iterator<Item = &str>>, &'static str> {
    if bytes.len() > LONGEST {
        return Err("it is too long");
    }
    let start = bytes.trim_ascii_start();
    if start.is_empty() || start.starts_with(b"#") {
        return Ok(None);
    }
    let text = std::str::from_utf8(start).map_err(|_| "it is no UTF-8")?;
    let mut words = text.split([' ', '\t', '\r']).filter(|word| !word.is_empty()).peekable();
    let marker = match words.next_if(|word| word.starts_with('@')) {
        Some(marker) => Some(marker.parse().map_err(|_| "its marker isn't known")?),
        None => None,
    };
    let hosts = hosts(words.next().ok_or("it names no host")?)?;
    Ok(Some((marker, hosts, words)))
}

/// Parses the hosts of a line without its key. Reading a key takes long, and a file may have thousands.
pub(super) fn of_hosts(bytes: &[u8]) -> Result<Option<(Option<Marker>, HostPatterns)>, &'static str> {
    let Some((marker, hosts, words)) = begin(bytes)? else { return Ok(None) };
    if words.take(2).count() < 2 { Err(NO_KEY) } else { Ok(Some((marker, hosts))) }
}

fn hosts(text: &str) -> Result<HostPatterns, &'static str> {
    if !text.starts_with('|') {
        return text.to_ascii_lowercase().parse().map_err(|_| "it names no host");
    }
    let hosts: HostPatterns = text.parse().map_err(|_| "its hashed name can't be read")?;
    // The crate reads a hash that is too short as one that ends in zeros.
    let whole = matches!(&hosts, HostPatterns::HashedName { salt, .. } if salt.len() == SALT);
    if whole && hosts.to_string() == text { Ok(hosts) } else { Err("its hashed name can't be read") }
}

/// Returns the hash that stands for a name in a file that hides its hosts.
pub(super) fn hashed(name: &str, salt: &[u8]) -> [u8; 20] {
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(salt) else {
        unreachable!("HMAC takes a key of every length, RFC 2104")
    };
    mac.update(name.as_bytes());
    mac.finalize().into_bytes().into()
}
