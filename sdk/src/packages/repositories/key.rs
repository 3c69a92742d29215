//! The keys that repositories name: their fingerprints, and the warnings about them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::openpgp::{self, PublicKey, Refusal};
use super::types::{Definition, KeySource};
use crate::{Context, Problem, Result, time};

/// The seconds before a key's end from which it is called near.
const SOON: i64 = 30 * 86_400;

/// The keys of a repository in an answer.
#[derive(Default, Serialize)]
pub(super) struct SignedBy {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
    /// Addresses from which the package manager itself gets a key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    urls: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fingerprints: Vec<String>,
}

impl SignedBy {
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.urls.is_empty() && self.fingerprints.is_empty()
    }
}

/// The key files that definitions name, read once.
pub(super) struct KeyFiles(BTreeMap<String, std::result::Result<Vec<PublicKey>, String>>);

impl KeyFiles {
    pub(super) fn read(definitions: &[Definition], cx: &Context) -> Self {
        let mut paths: Vec<_> = definitions.iter().flat_map(|known| &known.keys).filter_map(file).collect();
        paths.sort_unstable();
        paths.dedup();
        let contents = if paths.is_empty() { Vec::new() } else { cx.read_all_bytes(&paths) };
        let keys = contents.into_iter().map(|contents| {
            contents.map_err(|problem| problem.message).and_then(|contents| {
                openpgp::keys(&contents).map_err(|refusal| match refusal {
                    Refusal::Private => "it holds a private key".to_owned(),
                    Refusal::Malformed(reason) => reason.to_owned(),
                })
            })
        });
        Self(paths.into_iter().map(str::to_owned).zip(keys).collect())
    }

    /// The keys of a definition, and warnings about them.
    pub(super) fn of(&self, definition: &Definition, now: i64) -> (SignedBy, Vec<String>) {
        let (mut signed_by, mut warnings) = (SignedBy::default(), Vec::new());
        for source in &definition.keys {
            let inline;
            let keys = match source {
                KeySource::Url(url) => {
                    signed_by.urls.push(super::url::shown(url).0);
                    continue;
                }
                KeySource::Fingerprint(fingerprint) => {
                    signed_by.fingerprints.push(fingerprint.clone());
                    continue;
                }
                KeySource::File(path) => {
                    signed_by.files.push(path.clone());
                    self.0
                        .get(path)
                        .map_or(Err("it wasn't read"), |keys| keys.as_deref().map_err(String::as_str))
                }
                KeySource::Inline(text) => {
                    inline = openpgp::keys(text.as_bytes());
                    inline.as_deref().map_err(|_| "it is damaged")
                }
            };
            match keys {
                Ok(keys) => {
                    signed_by.fingerprints.extend(keys.iter().map(|key| key.fingerprint.clone()));
                    warnings.extend(keys.iter().filter_map(|key| warning(key, now)));
                }
                Err(reason) => warnings.push(match source {
                    KeySource::File(path) => format!("key file {path}: {reason}"),
                    _ => format!("key in the definition: {reason}"),
                }),
            }
        }
        (signed_by, warnings)
    }
}

fn file(source: &KeySource) -> Option<&str> {
    match source {
        KeySource::File(path) => Some(path),
        _ => None,
    }
}

/// Says what is wrong with the key, or soon will be.
fn warning(key: &PublicKey, now: i64) -> Option<String> {
    let id = &key.fingerprint;
    if key.is_revoked {
        return Some(format!("key {id} is revoked"));
    }
    let at = key.expires.filter(|at| at - SOON <= now)?;
    let date: String = time::rfc3339(at).chars().take(10).collect();
    Some(format!("key {id} {} {date}", if at <= now { "has expired on" } else { "expires on" }))
}

/// Checks the key of a new repository against the fingerprints that the caller expects. The result is the key in armor of
/// its own, and warnings.
pub(super) fn check(contents: &[u8], expected: &[String], now: i64) -> Result<(String, Vec<String>)> {
    let invalid = |message: String| Problem::validation("INVALID_KEY", message);
    let refused = |refusal| match refusal {
        Refusal::Private => invalid(
            "the key is a private one, which doesn't belong here: its public key is expected".to_owned(),
        )
        .remedy("Consider a private key that was passed around as known to others, and replace it"),
        Refusal::Malformed(reason) => {
            invalid(format!("the key can't be read: {reason}; armored OpenPGP is expected"))
        }
    };
    let keys = openpgp::keys(contents).map_err(refused)?;
    let mut found: Vec<_> = keys.iter().map(|key| key.fingerprint.clone()).collect();
    found.sort();
    found.dedup();
    if found != expected {
        let message = format!(
            "the key has another fingerprint: expected {}, and it has {}",
            expected.join(", "),
            found.join(", ")
        );
        let problem = Problem::new("REPOSITORY_UNTRUSTED", crate::Category::State, message);
        return Err(problem.remedy(if found.len() > 1 {
            "Each key in the file could sign packages: name the fingerprints of all, or give a file with one key"
        } else {
            "Get the key again from the repository's makers, and compare its fingerprint with the one on their page"
        }));
    }
    let is_over = |key: &&PublicKey| key.is_revoked || key.expires.is_some_and(|at| at <= now);
    if let Some(over) = keys.iter().find(is_over) {
        let reason = warning(over, now).unwrap_or_default();
        return Err(invalid(format!("{reason}, so that the package manager doesn't trust what it signs"))
            .remedy("Get the key's present form from the repository's makers"));
    }
    let warnings = keys.iter().filter_map(|key| warning(key, now)).collect();
    Ok((openpgp::armored_anew(contents).map_err(refused)?, warnings))
}
