//! Says whether a host key is known, by known_hosts files as under SSH_KNOWN_HOSTS FILE FORMAT of sshd(8). It judges
//! as ssh does, but is stricter in two cases: a key that is revoked for the address, or for the host without its port,
//! is revoked; and a certificate must name the host.

mod line;
mod listed_hosts;
mod record;
mod refusal;

use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use russh::keys::ssh_key::certificate::CertType;
use russh::keys::ssh_key::known_hosts::Marker;
use russh::keys::ssh_key::public::KeyData;
use russh::keys::{Algorithm, Certificate, EcdsaCurve, HashAlg, PublicKey};
use rustix::fs::OFlags;

use super::config::HostConfig;
use host_base::problem::Problem;
use line::Line;
pub use listed_hosts::ListedHosts;
pub use record::record;
pub use refusal::refusal;

/// The largest file that is read.
const LARGEST: u64 = 8 << 20;
/// The longest line that is read.
const LONGEST: usize = 16 << 10;

/// The algorithms, best first, without weak ones.
const PREFERRED: [Algorithm; 6] = [
    Algorithm::Ed25519,
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP384 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP521 },
    Algorithm::Rsa { hash: Some(HashAlg::Sha512) },
    Algorithm::Rsa { hash: Some(HashAlg::Sha256) },
];

/// The names by which a host is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostNames {
    /// The host's name in lower case.
    host: String,
    /// The port. None for a HostKeyAlias, which is known without one.
    port: Option<u16>,
    address: Option<IpAddr>,
    /// The names for reaching the host, where `host` is a HostKeyAlias and no address.
    reached: Option<SshAddress>,
}

/// The names by which ssh and ssh-keyscan reach a host.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SshAddress {
    alias: String,
    hostname: String,
    port: u16,
}

impl HostNames {
    /// Makes the names of a host from its name or address, and the address that the connection went to.
    pub fn new(host: &str, port: u16, address: Option<IpAddr>) -> Self {
        Self { host: host.to_ascii_lowercase(), port: Some(port), address, reached: None }
    }

    /// Makes the names from a host's configuration, which may have a HostKeyAlias.
    pub fn of(config: &HostConfig, address: Option<IpAddr>) -> Self {
        match &config.host_key_alias {
            Some(alias) => {
                let (reached, hostname) = (config.alias.clone(), config.hostname.clone());
                let reached = Some(SshAddress { alias: reached, hostname, port: config.port });
                Self { host: alias.to_ascii_lowercase(), port: None, address, reached }
            }
            None => Self::new(&config.hostname, config.port, address),
        }
    }

    /// Returns the name that stands in known_hosts: `[host]:port` where the port isn't 22.
    pub(super) fn listed(&self) -> String {
        with_port(&self.host, self.port)
    }

    /// Returns the host alone where its port isn't 22. A key that is known for the host is known on each port.
    fn without_port(&self) -> Option<&str> {
        self.port.filter(|port| *port != 22).map(|_| &*self.host)
    }

    /// Returns every name under which a revoked key may be listed.
    fn all(&self) -> Vec<String> {
        let address = self.address.map(|address| address.to_string());
        let mut all = vec![self.listed()];
        all.extend(self.without_port().map(str::to_owned));
        all.extend(address.iter().flat_map(|address| [with_port(address, self.port), address.clone()]));
        all
    }
}

fn with_port(host: &str, port: Option<u16>) -> String {
    match port {
        None | Some(22) => host.to_owned(),
        Some(port) => format!("[{host}]:{port}"),
    }
}

/// A line of a file that lists a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The path of the file.
    pub file: PathBuf,
    /// The line's number, counted from one.
    pub line: usize,
    /// The key's fingerprint, as `SHA256:…`.
    pub fingerprint: String,
    /// The key's algorithm, such as `ssh-ed25519`.
    pub algorithm: String,
}

/// The verdict of the files on a key that a host showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyVerdict {
    /// The key is the host's.
    Known,
    /// The files have no key of the host.
    Unknown,
    /// The files have other keys of the host, of any type; ssh doesn't distinguish the types either.
    Changed {
        /// The keys that are known.
        known: Vec<Entry>,
    },
    /// The key, or the authority that signed it, is revoked.
    Revoked {
        /// The line that revokes it.
        entry: Entry,
    },
    /// The authority of the certificate is known, but the certificate is invalid for this reason, which is the end of
    /// a sentence.
    Invalid(String),
}

/// The known keys of all hosts.
#[derive(Debug, Default)]
pub struct KnownHosts {
    lines: Vec<Line>,
}

impl KnownHosts {
    /// Reads the files that exist. A malformed line is skipped, as ssh does. A file that can't be read is an error and
    /// not empty, because keys that it revokes would be trusted.
    pub fn load(user: &[PathBuf], global: &[PathBuf]) -> Result<Self, Problem> {
        let mut known = Self::default();
        for file in user.iter().chain(global) {
            match read(file) {
                Ok(bytes) => known.add(file, &bytes),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(Problem::io(&format!("known host keys in {}", file.display()), &error));
                }
            }
        }
        Ok(known)
    }

    fn add(&mut self, file: &Path, bytes: &[u8]) {
        for (index, bytes) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let line = index + 1;
            match Line::parse(file, line, bytes) {
                Ok(parsed) => self.lines.extend(parsed),
                Err(reason) => {
                    tracing::warn!(file = %file.display(), line, reason, "a line of known host keys is skipped");
                }
            }
        }
    }

    /// Returns the algorithms of the host's known keys, best first. They are offered before all others, so that the
    /// host doesn't show a key that isn't known.
    pub fn algorithms(&self, host: &HostNames) -> Vec<Algorithm> {
        let name = host.listed();
        let listed = self.plain(&name);
        let without_port = host.without_port().into_iter().flat_map(|bare| self.plain(bare));
        let known: Vec<_> = listed.chain(without_port).map(|line| line.key.algorithm()).collect();
        let is_known = |algorithm: &Algorithm| match algorithm {
            Algorithm::Rsa { .. } => known.contains(&Algorithm::Rsa { hash: None }),
            algorithm => known.contains(algorithm),
        };
        PREFERRED.into_iter().filter(is_known).collect()
    }

    /// Returns the algorithms of keys for which a certificate may be asked for, best first. There are none where no
    /// authority is known for the host.
    pub fn certificate_algorithms(&self, host: &HostNames) -> Vec<Algorithm> {
        if self.authorities(host).next().is_some() { PREFERRED.to_vec() } else { Vec::new() }
    }

    /// Judges a key. What is known of the host without its port holds where nothing is known of the port.
    pub fn judge(&self, host: &HostNames, key: &PublicKey) -> KeyVerdict {
        self.judge_key(host, key.key_data())
    }

    fn judge_key(&self, host: &HostNames, key: &KeyData) -> KeyVerdict {
        if let Some(entry) = self.revoked(host, key) {
            return KeyVerdict::Revoked { entry };
        }
        let known: Vec<_> = self.plain(&host.listed()).collect();
        let known_without_port = || self.plain(host.without_port()?).find(|line| line.key.key_data() == key);
        match known.iter().any(|line| line.key.key_data() == key) {
            true => KeyVerdict::Known,
            false if !known.is_empty() => {
                KeyVerdict::Changed { known: known.into_iter().map(Line::entry).collect() }
            }
            false if known_without_port().is_some() => KeyVerdict::Known,
            false => KeyVerdict::Unknown,
        }
    }

    /// Judges a certificate by the authority that signed it, or else by the key in it.
    pub fn judge_certificate(
        &self,
        host: &HostNames,
        certificate: &Certificate,
        now: SystemTime,
    ) -> KeyVerdict {
        let authority = certificate.signature_key();
        if let Some(entry) = self.revoked(host, authority) {
            return KeyVerdict::Revoked { entry };
        }
        let by_itself = self.judge_key(host, certificate.public_key());
        if by_itself == KeyVerdict::Known || matches!(by_itself, KeyVerdict::Revoked { .. }) {
            return by_itself;
        }
        if !self.authorities(host).any(|line| line.key.key_data() == authority) {
            return by_itself;
        }
        match flaw(host, certificate, now) {
            None => KeyVerdict::Known,
            Some(reason) => KeyVerdict::Invalid(reason),
        }
    }

    /// Returns the fingerprints of the host's known keys, or of those without its port where nothing is known of the
    /// port.
    pub fn fingerprints(&self, host: &HostNames) -> Vec<String> {
        let of = |name: &str| {
            let fingerprint = |line: &Line| line.key.fingerprint(HashAlg::Sha256).to_string();
            self.plain(name).map(fingerprint).collect::<Vec<_>>()
        };
        let listed = of(&host.listed());
        match host.without_port() {
            Some(bare) if listed.is_empty() => of(bare),
            _ => listed,
        }
    }

    /// Returns the fingerprints of the authorities that may sign the host's key.
    pub fn authority_fingerprints(&self, host: &HostNames) -> Vec<String> {
        self.authorities(host).map(|line| line.key.fingerprint(HashAlg::Sha256).to_string()).collect()
    }

    fn plain(&self, name: &str) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(move |line| line.marker.is_none() && line.names(name))
    }

    /// Returns the authorities that may sign the host's key, listed with its port or without.
    fn authorities(&self, host: &HostNames) -> impl Iterator<Item = &Line> {
        let listed = host.listed();
        let names = move |line: &Line| {
            line.names(&listed) || host.without_port().is_some_and(|bare| line.names(bare))
        };
        self.lines.iter().filter(move |line| line.marker == Some(Marker::CertAuthority) && names(line))
    }

    fn revoked(&self, host: &HostNames, key: &KeyData) -> Option<Entry> {
        let names = host.all();
        let revokes = |line: &&Line| {
            line.marker == Some(Marker::Revoked)
                && line.key.key_data() == key
                && names.iter().any(|name| line.names(name))
        };
        self.lines.iter().find(revokes).map(Line::entry)
    }
}

/// Returns why a certificate of a trusted authority doesn't prove that this is the host.
fn flaw(host: &HostNames, certificate: &Certificate, now: SystemTime) -> Option<String> {
    // With a clock before 1970, no certificate is valid yet.
    let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let of = |seconds: u64| {
        let time = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
        time.map_or_else(|| format!("second {seconds}"), |time| time.to_string())
    };
    let principals = certificate.valid_principals();
    if certificate.cert_type() != CertType::Host {
        return Some("is a user's and not a host's".to_owned());
    }
    if now < certificate.valid_after() {
        return Some(format!("isn't valid before {}", of(certificate.valid_after())));
    }
    if now >= certificate.valid_before() {
        return Some(format!("was valid until {}", of(certificate.valid_before())));
    }
    if !principals.iter().any(|principal| principal.eq_ignore_ascii_case(&host.host)) {
        let names = if principals.is_empty() { "no host".to_owned() } else { principals.join(", ") };
        return Some(format!("is for {names} and not for {}", host.host));
    }
    if let Some((option, _)) = certificate.critical_options().iter().next() {
        return Some(format!("has the critical option {option}, which isn't known"));
    }
    let by = certificate.signature().algorithm();
    if matches!(by, Algorithm::Dsa | Algorithm::Rsa { hash: None }) {
        return Some(format!("is signed with {by}, which rests on SHA-1"));
    }
    let authority = certificate.signature_key().fingerprint(HashAlg::Sha256);
    let valid = certificate.validate_at(now, [&authority]);
    valid.is_err().then(|| "has a signature that isn't its authority's".to_owned())
}

/// Reads a file. `/dev/null` is empty; a configuration names it to keep no keys.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if path == Path::new("/dev/null") {
        return Ok(Vec::new());
    }
    // With this flag, opening a pipe doesn't wait for the other end.
    let file = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    read_all(&file)
}

fn read_all(mut file: &File) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.by_ref().take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other(format!("it is larger than {LARGEST} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
