//! The problems that refuse a host for its key.

use russh::keys::{Algorithm, HashAlg, PublicKey};
use serde_json::json;
use shell_words::quote;

use super::{Entry, HostNames, KeyVerdict};
use crate::config::Strict;
use host_base::problem::{Category, Problem};

/// Returns why the host is refused, or none where it is accepted. Only [`Strict::AcceptNew`] accepts an unknown key,
/// and nothing accepts a changed one.
pub fn refusal(host: &HostNames, key: &PublicKey, verdict: &KeyVerdict, strict: Strict) -> Option<Problem> {
    let fingerprint = key.fingerprint(HashAlg::Sha256).to_string();
    let problem = match verdict {
        KeyVerdict::Known => return None,
        KeyVerdict::Unknown if strict == Strict::AcceptNew => return None,
        KeyVerdict::Unknown => unknown(host, key, &fingerprint, strict),
        KeyVerdict::Changed { known } => changed(host, key, &fingerprint, known),
        KeyVerdict::Revoked { entry } => revoked(host, entry),
        KeyVerdict::Invalid(reason) => {
            let message = format!(
                "The certificate of {}'s host key {reason}, and the key itself ({fingerprint}) isn't known",
                host.listed()
            );
            Problem::new("HOST_KEY_INVALID", Category::Denied, message).remedy(
                "Have the host's key signed again by its authority: for this host's name, and valid today",
            )
        }
    };
    Some(problem.detail("host", json!(host.listed())).detail("fingerprint", json!(fingerprint)))
}

fn unknown(host: &HostNames, key: &PublicKey, fingerprint: &str, strict: Strict) -> Problem {
    let asked = match strict {
        Strict::Yes => "StrictHostKeyChecking yes lets no unknown host in",
        Strict::Ask | Strict::AcceptNew => "there is nobody to show it to",
    };
    let listed = host.listed();
    let message = format!(
        "The host key of {listed} is not known, and {asked}. It is {} {fingerprint}",
        key.algorithm()
    );
    let place = |name: &str, port| match port {
        None | Some(22) => quote(name).into_owned(),
        Some(port) => format!("-p {port} {}", quote(name)),
    };
    let (seen, asked_for) = match &host.reached {
        Some(reached) => {
            let place = |name: &str| place(name, Some(reached.port));
            (place(&reached.hostname), place(&reached.alias))
        }
        None => (place(&host.host, host.port), place(&host.host, host.port)),
    };
    Problem::new("HOST_KEY_UNKNOWN", Category::Denied, message)
        .remedy(format!(
            "Compare the fingerprint with the host's own, from its console or its administrator: `ssh-keygen -lf \
             /etc/ssh/ssh_host_{0}_key.pub` there; `ssh-keyscan -t {0} {seen} | ssh-keygen -lf -` shows what this \
             machine sees",
            kind(&key.algorithm())
        ))
        .remedy(format!("If they are the same, accept it in a terminal: `ssh {asked_for}`"))
        .remedy(format!(
            "Or let ssh and this server accept hosts that are new: `StrictHostKeyChecking accept-new` for {} in \
             ~/.ssh/config",
            host.reached.as_ref().map_or(&*listed, |reached| &*reached.alias)
        ))
}

fn changed(host: &HostNames, key: &PublicKey, fingerprint: &str, known: &[Entry]) -> Problem {
    let listed = host.listed();
    let places: Vec<_> = known
        .iter()
        .map(|Entry { file, line, fingerprint, algorithm }| {
            format!("{algorithm} {fingerprint} ({}:{line})", file.display())
        })
        .collect();
    let message = format!(
        "THE HOST KEY OF {listed} HAS CHANGED. Somebody may be in between, reading and changing all that is sent; or \
         the host was installed anew. It shows {} {fingerprint}; what is known is {}",
        key.algorithm(),
        places.join(", ")
    );
    let mut problem = Problem::new("HOST_KEY_CHANGED", Category::Denied, message)
        .remedy("Don't connect before the host's administrator has said why its key is another one")
        .remedy(format!(
            "Compare the fingerprint with the host's own, on its console: `ssh-keygen -lf \
             /etc/ssh/ssh_host_{}_key.pub`",
            kind(&key.algorithm())
        ));
    let mut files: Vec<_> = known.iter().map(|entry| &entry.file).collect();
    files.dedup();
    for file in files {
        problem = problem.remedy(format!(
            "Only if it is the host's new key, forget the old one: `ssh-keygen -f {} -R {}`",
            quote(&file.to_string_lossy()),
            quote(&listed)
        ));
    }
    let known: Vec<_> = known
        .iter()
        .map(|entry| {
            json!({
                "file": entry.file.display().to_string(),
                "line": entry.line,
                "algorithm": entry.algorithm,
                "fingerprint": entry.fingerprint,
            })
        })
        .collect();
    problem.detail("known", json!(known))
}

fn revoked(host: &HostNames, entry: &Entry) -> Problem {
    let Entry { file, line, fingerprint, algorithm } = entry;
    let place = format!("{}:{line}", file.display());
    let message = format!(
        "A KEY BY WHICH {} PROVES WHO IT IS IS REVOKED: {algorithm} {fingerprint}, in {place}. A stolen key may be in \
         use to pass for this host",
        host.listed()
    );
    Problem::new("HOST_KEY_REVOKED", Category::Denied, message)
        .remedy("Don't connect; ask the host's administrator for its new key")
        .detail("revoked_in", json!(place))
}

/// Returns the name that ssh-keyscan(1) and the files in /etc/ssh use.
fn kind(algorithm: &Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Rsa { .. } => "rsa",
        Algorithm::Ecdsa { .. } => "ecdsa",
        Algorithm::Dsa => "dsa",
        _ => "ed25519",
    }
}
