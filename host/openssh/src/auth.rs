//! Authenticates this side to a server, by keys only. Each key is proven by a signature, and no password is ever asked
//! for or sent.

mod agent;
mod files;
mod identities;

use std::path::Path;
use std::time::Duration;

use russh::client::AuthResult;
use russh::keys::agent::AgentIdentity;
use russh::keys::signature::Signer as _;
use russh::keys::ssh_encoding::Encode;
use russh::keys::ssh_key::Signature;
use russh::keys::ssh_key::private::KeypairData;
use russh::keys::{Algorithm, HashAlg, PrivateKey};
use russh::{MethodKind, MethodSet};

use super::config::HostConfig;
use super::hop::{EndReason, UnauthenticatedHop};
pub(super) use agent::Agent;
pub(super) use files::{IdentityFile, PrivateKeyState};
use host_base::problem::{Category, Problem};
use identities::{Identities, Key, Offer, Sources};

/// sshd's usual `MaxAuthTries`. The server ends the connection at a further try.
const TRIES: usize = 6;

/// The time limit of the whole authentication, which is half of what sshd grants by itself.
const PATIENCE: Duration = Duration::from_secs(60);

/// The keys that were tried, and the server's answers.
#[derive(Default)]
struct AuthAttempts {
    tried: Vec<String>,
    /// Sentences about problems with some keys.
    notes: Vec<String>,
    /// The methods that the server would take next.
    offers: Option<MethodSet>,
    /// True where a key was right and the server wants more.
    is_partial: bool,
    untried: usize,
}

/// Proves to the other end of the connection that this side may be its user. Returns the fingerprint of the accepted
/// key as `SHA256:…`, or none where the server wanted no key.
pub(super) async fn authenticate(
    hop: &mut UnauthenticatedHop,
    host: &HostConfig,
) -> Result<Option<String>, Problem> {
    match tokio::time::timeout(PATIENCE, try_all(hop, host)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(failed(format!("no answer to the authentication within {} s", PATIENCE.as_secs()))),
    }
}

async fn try_all(hop: &mut UnauthenticatedHop, host: &HostConfig) -> Result<Option<String>, Problem> {
    let mut attempts = AuthAttempts::default();
    let mut agent = match &host.agent {
        Some(socket) => Agent::connect(socket, hop.handle.agent_session_binding()).await,
        None => None,
    };
    let held = match &mut agent {
        Some(agent) => agent.identities().await.unwrap_or_else(|note| {
            attempts.notes.push(note);
            Vec::new()
        }),
        None => Vec::new(),
    };
    let identities = gather(host, held).await?;

    if identities.offered.is_empty() {
        // This only asks which methods the server takes, for the message.
        match hop.handle.authenticate_none(&host.user).await {
            Ok(AuthResult::Success) => return Ok(None),
            Ok(AuthResult::Failure { remaining_methods, .. }) => attempts.offers = Some(remaining_methods),
            Err(_) => {}
        }
    }
    let mut rsa_hash = None;
    for (at, identity) in identities.offered.iter().enumerate() {
        if at >= TRIES {
            attempts.untried = identities.offered.len() - at;
            break;
        }
        let hash = match identity.algorithm() {
            Algorithm::Rsa { .. } => match rsa(hop, &mut rsa_hash).await {
                Some(hash) => Some(hash),
                None => {
                    let shown = identity.shown();
                    attempts
                        .notes
                        .push(format!("{shown} was not offered: the server takes RSA with SHA-1 only"));
                    continue;
                }
            },
            _ => None,
        };
        attempts.tried.push(identity.shown());
        let mut signer = Signer { key: &identity.key, agent: agent.as_mut() };
        let answer = match &identity.offer {
            Offer::Key(key) => {
                hop.handle.authenticate_publickey_with(&host.user, key.clone(), hash, &mut signer).await
            }
            Offer::Certificate(certificate) => {
                let certificate = (**certificate).clone();
                hop.handle.authenticate_certificate_with(&host.user, certificate, hash, &mut signer).await
            }
        };
        match answer {
            Ok(AuthResult::Success) => return Ok(Some(identity.fingerprint())),
            Ok(AuthResult::Failure { remaining_methods, partial_success }) => {
                attempts.is_partial |= partial_success;
                let goes_on = remaining_methods.contains(&MethodKind::PublicKey);
                match remaining_methods.is_empty() {
                    // The server accepts no more tries.
                    true => attempts.untried = identities.offered.len() - at - 1,
                    false => attempts.offers = Some(remaining_methods),
                }
                if !goes_on {
                    break;
                }
            }
            Err(SigningError::Gone) => {
                attempts.untried = identities.offered.len() - at - 1;
                break;
            }
            Err(SigningError::Because(reason)) => {
                attempts.notes.push(format!("{}: {reason}", identity.shown()));
            }
        }
    }
    Err(refused(hop, host, &identities, &attempts).await)
}

async fn gather(host: &HostConfig, agent: Vec<AgentIdentity>) -> Result<Identities, Problem> {
    let (identity_files, certificate_files) = (host.identity_files.clone(), host.certificate_files.clone());
    let identities_only = host.identities_only;
    let gather = move || {
        let sources = Sources {
            identity_files: &identity_files,
            certificate_files: &certificate_files,
            identities_only,
            agent,
        };
        sources.gather()
    };
    tokio::task::spawn_blocking(gather)
        .await
        .map_err(|error| Problem::new("INTERNAL_ERROR", Category::Internal, error.to_string()))
}

/// Returns the hash with which an RSA key signs, which is never SHA-1. The server is asked once, because the library
/// waits long for a server that doesn't answer.
async fn rsa(hop: &UnauthenticatedHop, asked: &mut Option<Option<HashAlg>>) -> Option<HashAlg> {
    if let Some(known) = asked {
        return *known;
    }
    let hash = match hop.handle.best_supported_rsa_hash().await {
        Ok(Some(hash)) => hash,
        // The server doesn't say what it takes. By RFC 8332, every server that knows SHA-2 has this hash.
        Ok(None) | Err(_) => Some(HashAlg::Sha256),
    };
    *asked.insert(hash)
}

/// Signs with the key that belongs to an offer. The key of a certificate may be somewhere else.
struct Signer<'a> {
    key: &'a Key,
    agent: Option<&'a mut Agent>,
}

/// The reason why a key didn't sign.
#[derive(Debug)]
enum SigningError {
    /// The connection was lost.
    Gone,
    Because(String),
}

impl From<russh::SendError> for SigningError {
    fn from(_: russh::SendError) -> Self {
        Self::Gone
    }
}

impl russh::Signer for Signer<'_> {
    type Error = SigningError;

    async fn auth_sign(
        &mut self,
        _: &AgentIdentity,
        hash: Option<HashAlg>,
        mut data: Vec<u8>,
    ) -> Result<Vec<u8>, SigningError> {
        match (self.key, &mut self.agent) {
            (Key::Agent(identity), Some(agent)) => {
                agent.sign(identity, hash, data).await.map_err(SigningError::Because)
            }
            (Key::Agent(_), None) => Err(SigningError::Because("the agent is gone".to_owned())),
            (Key::File(key), _) => {
                let unusable = || SigningError::Because("this key can't sign".to_owned());
                let signature = sign(key, hash, &data).map_err(|_| unusable())?;
                signature.encode_prefixed(&mut data).map_err(|_| unusable())?;
                Ok(data)
            }
        }
    }
}

fn sign(
    key: &PrivateKey,
    hash: Option<HashAlg>,
    data: &[u8],
) -> Result<Signature, russh::keys::signature::Error> {
    match key.key_data() {
        // Without a hash, RSA would sign with SHA-1.
        KeypairData::Rsa(pair) => (pair, Some(hash.unwrap_or(HashAlg::Sha256))).try_sign(data),
        pair => pair.try_sign(data),
    }
}

fn failed(message: String) -> Problem {
    Problem::new("CONNECTION_FAILED", Category::Network, message)
        .remedy("Look into the SSH server's log on that host")
}

async fn refused(
    hop: &UnauthenticatedHop,
    host: &HostConfig,
    identities: &Identities,
    attempts: &AuthAttempts,
) -> Problem {
    // If the server would take nothing more, the connection has ended or is about to.
    let end_reason = match hop.handle.is_closed() {
        true => {
            hop.connection_state.ended().await;
            hop.connection_state.end_reason()
        }
        false => None,
    };
    if let Some(EndReason::Broke(reason)) = end_reason
        && attempts.offers.is_none()
    {
        return failed(format!("it was lost while the authentication went on: {reason}"));
    }
    let mut message = format!("{}@{} did not let us in", host.user, host.hostname);
    match &attempts.tried[..] {
        [] => message.push_str(": there was no key to offer"),
        tried => message.push_str(&format!(": tried {}", tried.join(", "))),
    }
    if attempts.is_partial {
        message.push_str("; a key was right, but the server wants more than that");
    }
    if let Some(offers @ [_, ..]) = attempts.offers.as_deref() {
        let offers: Vec<&str> = offers.iter().map(<&str>::from).collect();
        message.push_str(&format!("; the server still takes {}", offers.join(", ")));
    }
    if let Some(EndReason::ServerMessage(words)) = end_reason
        && !words.is_empty()
    {
        message.push_str(&format!("; it ended the connection with: {words}"));
    }
    for note in attempts.notes.iter().chain(&identities.left_out) {
        message.push_str(&format!("; {note}"));
    }
    if attempts.untried > 0 {
        message.push_str(&format!("; {} more were not tried", attempts.untried));
    }
    remedies(Problem::new("AUTHENTICATION_FAILED", Category::Privilege, message), host, identities, attempts)
}

fn remedies(
    mut problem: Problem,
    host: &HostConfig,
    identities: &Identities,
    attempts: &AuthAttempts,
) -> Problem {
    let takes_keys = attempts.offers.as_ref().is_none_or(|offers| offers.contains(&MethodKind::PublicKey));
    if !takes_keys {
        let why = "Keys are the only way that is used here: ";
        return problem.remedy(format!("{why}the server has to be content with one, or with several"));
    }
    for path in &identities.encrypted {
        problem = problem.remedy(format!("Add it to the agent: ssh-add {}", shown(path)));
    }
    if attempts.untried > 0 {
        problem = problem.remedy("Set IdentitiesOnly yes and name the right IdentityFile for this host");
    }
    problem
        .remedy("Add a key that the host knows to the agent with ssh-add")
        .remedy(format!("Or name its file in ~/.ssh/config: IdentityFile, below Host {}", host.alias))
}

/// Returns the path as a shell would read it.
fn shown(path: &Path) -> String {
    shell_words::quote(&path.to_string_lossy()).into_owned()
}

#[cfg(test)]
mod tests;
