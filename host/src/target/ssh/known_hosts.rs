//! Whether a host key is known.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use russh::keys::{Algorithm, Certificate, HashAlg, PublicKey};

use super::config::Strict;
use crate::problem::{Category, Problem};

pub struct Names {
    pub host: String,
    pub port: u16,
    pub address: Option<IpAddr>,
}

impl Names {
    fn shown(&self) -> String {
        if self.port == 22 { self.host.clone() } else { format!("[{}]:{}", self.host, self.port) }
    }
}

pub struct Entry {
    pub file: PathBuf,
    pub line: usize,
    pub fingerprint: String,
    pub algorithm: String,
}

pub enum Judged {
    Known,
    Unknown,
    Changed { known: Vec<Entry> },
    Revoked { entry: Entry },
    Invalid(String),
}

pub struct KnownHosts(Vec<(String, String, PublicKey)>);

impl KnownHosts {
    pub fn load(user: &[PathBuf], global: &[PathBuf]) -> Result<Self, Problem> {
        let mut all = Vec::new();
        for file in user.iter().chain(global) {
            for line in std::fs::read_to_string(file).unwrap_or_default().lines() {
                let (mark, line) = match line.split_once(' ') {
                    Some((mark, rest)) if mark.starts_with('@') => (mark, rest),
                    _ => ("", line),
                };
                if let Some((name, key)) = line.split_once(' ')
                    && let Ok(key) = PublicKey::from_openssh(key)
                {
                    all.push((mark.to_owned(), name.to_owned(), key));
                }
            }
        }
        Ok(Self(all))
    }

    pub fn algorithms(&self, host: &Names) -> Vec<Algorithm> {
        let mut all = Vec::new();
        for (mark, name, key) in &self.0 {
            if mark == "@cert-authority" {
                all.push("ssh-ed25519-cert-v01@openssh.com".parse().unwrap());
            } else if *name == host.shown() {
                all.push(key.algorithm());
            }
        }
        all
    }

    pub fn judge(&self, host: &Names, key: &PublicKey) -> Judged {
        let ours: Vec<_> = self.0.iter().filter(|(_, name, _)| *name == host.shown()).collect();
        let entry = |known: &PublicKey| Entry {
            file: PathBuf::new(),
            line: 0,
            fingerprint: known.fingerprint(HashAlg::Sha256).to_string(),
            algorithm: known.algorithm().to_string(),
        };
        if let Some((_, _, known)) =
            self.0.iter().find(|(mark, _, known)| mark == "@revoked" && known.key_data() == key.key_data())
        {
            return Judged::Revoked { entry: entry(known) };
        }
        if ours.is_empty() {
            return Judged::Unknown;
        }
        if ours.iter().any(|(_, _, known)| known.key_data() == key.key_data()) {
            return Judged::Known;
        }
        Judged::Changed { known: ours.iter().map(|(_, _, known)| entry(known)).collect() }
    }

    pub fn judge_certificate(&self, _: &Names, certificate: &Certificate, _: SystemTime) -> Judged {
        let is_known = |(mark, _, key): &(String, String, PublicKey)| {
            mark == "@cert-authority" && key.key_data() == certificate.signature_key()
        };
        if self.0.iter().any(is_known) { Judged::Known } else { Judged::Unknown }
    }
}

pub fn record(file: &Path, host: &Names, key: &PublicKey, _hashed: bool) -> Result<(), Problem> {
    let line = format!("{} {}\n", host.shown(), key.to_openssh().unwrap());
    let before = std::fs::read_to_string(file).unwrap_or_default();
    std::fs::write(file, before + &line).map_err(|error| Problem::io("known_hosts", &error))
}

pub fn refusal(host: &Names, _: &PublicKey, judged: &Judged, strict: Strict) -> Option<Problem> {
    let code = match (judged, strict) {
        (Judged::Known, _) | (Judged::Unknown, Strict::AcceptNew) => return None,
        (Judged::Unknown, _) => "HOST_KEY_UNKNOWN",
        (Judged::Changed { .. }, _) => "HOST_KEY_CHANGED",
        (Judged::Revoked { .. }, _) => "HOST_KEY_REVOKED",
        (Judged::Invalid(_), _) => "HOST_KEY_INVALID",
    };
    Some(Problem::new(code, Category::Denied, host.shown()))
}
