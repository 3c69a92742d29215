//! Whether a host key is known: known_hosts files, as sshd(8) has them under SSH_KNOWN_HOSTS FILE FORMAT, judged as ssh
//! judges. Where the two differ, this is the stricter one: a key that is revoked for the address, or for the host without
//! its port, is revoked, and a certificate must name the host.

mod line;
mod listed;
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
pub use listed::Listed;
pub use record::record;
pub use refusal::refusal;

/// The largest file that is read.
const LARGEST: u64 = 8 << 20;
/// The longest line that is read.
const LONGEST: usize = 16 << 10;

/// Best first, and none that is weak.
const PREFERRED: [Algorithm; 6] = [
    Algorithm::Ed25519,
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP384 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP521 },
    Algorithm::Rsa { hash: Some(HashAlg::Sha512) },
    Algorithm::Rsa { hash: Some(HashAlg::Sha256) },
];

/// By which a host is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// In lower case.
    host: String,
    /// None for a HostKeyAlias, which is known without one.
    port: Option<u16>,
    address: Option<IpAddr>,
    /// Where the name is a HostKeyAlias, by which nobody can be reached.
    reached: Option<Reached>,
}

/// By what ssh and ssh-keyscan reach a host.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reached {
    alias: String,
    hostname: String,
    port: u16,
}

impl Names {
    /// Of a host by its name or address, and the address that the connection went to.
    pub fn new(host: &str, port: u16, address: Option<IpAddr>) -> Self {
        Self { host: host.to_ascii_lowercase(), port: Some(port), address, reached: None }
    }

    /// As its configuration says: by its HostKeyAlias, where it has one.
    pub fn of(config: &HostConfig, address: Option<IpAddr>) -> Self {
        match &config.host_key_alias {
            Some(alias) => {
                let (reached, hostname) = (config.alias.clone(), config.hostname.clone());
                let reached = Some(Reached { alias: reached, hostname, port: config.port });
                Self { host: alias.to_ascii_lowercase(), port: None, address, reached }
            }
            None => Self::new(&config.hostname, config.port, address),
        }
    }

    /// What stands in known_hosts: `[host]:port` where the port isn't 22.
    pub(super) fn listed(&self) -> String {
        with_port(&self.host, self.port)
    }

    /// The host alone, where its port isn't 22: a key that is known for it is known on each port.
    fn without_port(&self) -> Option<&str> {
        self.port.filter(|port| *port != 22).map(|_| &*self.host)
    }

    /// Every name that a revoked key may be listed under.
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

/// What a line of a file says of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The file.
    pub file: PathBuf,
    /// Counted from one.
    pub line: usize,
    /// `SHA256:…`
    pub fingerprint: String,
    /// As `ssh-ed25519`.
    pub algorithm: String,
}

/// What the files say of a key that a host showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It is the host's.
    Known,
    /// Nothing is known of the host.
    Unknown,
    /// Other keys are known of the host, of whatever type: ssh sees no difference either.
    Changed {
        /// Those.
        known: Vec<Entry>,
    },
    /// It, or the authority that signed it, is no longer to be trusted.
    Revoked {
        /// Where that is said.
        entry: Entry,
    },
    /// A certificate of an authority that is known, which doesn't hold: why, as the end of a sentence.
    Invalid(String),
}

/// What is known, of all hosts.
#[derive(Debug, Default)]
pub struct KnownHosts {
    lines: Vec<Line>,
}

impl KnownHosts {
    /// Reads the files that are there. A line that is none is skipped, as ssh does; a file that can't be read is no
    /// empty one, for what it revokes would be trusted.
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

    /// Of the keys that are known of the host, best first: to be offered before all others, or the host might show one
    /// that isn't known.
    pub fn algorithms(&self, host: &Names) -> Vec<Algorithm> {
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

    /// Of the keys that a certificate may be asked for, best first: none where no authority is known for the host.
    pub fn certificate_algorithms(&self, host: &Names) -> Vec<Algorithm> {
        if self.authorities(host).next().is_some() { PREFERRED.to_vec() } else { Vec::new() }
    }

    /// What is known of a key. What is known of a host without its port holds for a port of which nothing is known.
    pub fn judge(&self, host: &Names, key: &PublicKey) -> Judged {
        self.judge_key(host, key.key_data())
    }

    fn judge_key(&self, host: &Names, key: &KeyData) -> Judged {
        if let Some(entry) = self.revoked(host, key) {
            return Judged::Revoked { entry };
        }
        let known: Vec<_> = self.plain(&host.listed()).collect();
        let known_without_port = || self.plain(host.without_port()?).find(|line| line.key.key_data() == key);
        match known.iter().any(|line| line.key.key_data() == key) {
            true => Judged::Known,
            false if !known.is_empty() => {
                Judged::Changed { known: known.into_iter().map(Line::entry).collect() }
            }
            false if known_without_port().is_some() => Judged::Known,
            false => Judged::Unknown,
        }
    }

    /// What is known of a certificate: by the authority that signed it, or else as of the key in it.
    pub fn judge_certificate(&self, host: &Names, certificate: &Certificate, now: SystemTime) -> Judged {
        let authority = certificate.signature_key();
        if let Some(entry) = self.revoked(host, authority) {
            return Judged::Revoked { entry };
        }
        let by_itself = self.judge_key(host, certificate.public_key());
        if by_itself == Judged::Known || matches!(by_itself, Judged::Revoked { .. }) {
            return by_itself;
        }
        if !self.authorities(host).any(|line| line.key.key_data() == authority) {
            return by_itself;
        }
        match flaw(host, certificate, now) {
            None => Judged::Known,
            Some(reason) => Judged::Invalid(reason),
        }
    }

    /// The host's own keys, by one of its names.
    /// Fingerprints of the keys that are known of the host; of it without its port, where nothing is known of that.
    pub fn fingerprints(&self, host: &Names) -> Vec<String> {
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

    fn plain(&self, name: &str) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(move |line| line.marker.is_none() && line.names(name))
    }

    /// The authorities that may sign the host's key, listed with its port or without.
    fn authorities(&self, host: &Names) -> impl Iterator<Item = &Line> {
        let listed = host.listed();
        let names = move |line: &Line| {
            line.names(&listed) || host.without_port().is_some_and(|bare| line.names(bare))
        };
        self.lines.iter().filter(move |line| line.marker == Some(Marker::CertAuthority) && names(line))
    }

    fn revoked(&self, host: &Names, key: &KeyData) -> Option<Entry> {
        let names = host.all();
        let revokes = |line: &&Line| {
            line.marker == Some(Marker::Revoked)
                && line.key.key_data() == key
                && names.iter().any(|name| line.names(name))
        };
        self.lines.iter().find(revokes).map(Line::entry)
    }
}

/// Why a certificate of an authority that is trusted for the host doesn't prove that this is the host.
fn flaw(host: &Names, certificate: &Certificate, now: SystemTime) -> Option<String> {
    // A clock before 1970 makes every certificate one that isn't valid yet.
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

/// The bytes of a file; none of `/dev/null`, by which a configuration says that it keeps none.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if path == Path::new("/dev/null") {
        return Ok(Vec::new());
    }
    // Never waits for a pipe's other end.
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
