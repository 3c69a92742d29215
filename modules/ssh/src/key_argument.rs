//! The key that a caller means: by a whole line, by its fingerprint, or one of the controller's own keys.

use linux_sysadmin_sdk::{prelude::*, text::excerpt};

use crate::host::PublicKey;
use crate::key_options;
use crate::keys_file::COMMENT;
use linux_sysadmin_sdk::authorized_keys::Authorized;

/// The longest line that is added. An RSA key of 16384 bits takes a third of it.
const LONGEST: usize = 8192;
/// The shortest RSA key that is added: twice as long as OpenSSH 9.1 and later require.
const SHORTEST_RSA: usize = 2048;

/// Parses and checks a line with a key. No message repeats anything of an invalid key, because it may be a private one.
pub(crate) fn read_key(text: &str) -> Result<Authorized> {
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    let invalid = |why: &str| {
        let message = format!(
            "key {why}: expected one line of an algorithm, base64 and a comment, as a .pub file has it"
        );
        Err(Problem::validation("INVALID_KEY", message))
    };
    if text.contains("PRIVATE KEY") {
        return invalid("is a private key, which belongs to nobody but its owner");
    }
    if text.len() > LONGEST {
        return invalid("is too long");
    }
    if text.chars().any(|character| character.is_control() && character != '\t') {
        return invalid("has several lines or control characters");
    }
    Authorized::read(text).map_or_else(|| invalid("is no public key"), Ok)
}

/// Parses a key that is to be added, and refuses it where sshd doesn't accept it.
pub(crate) fn new_key(text: &str) -> Result<Authorized> {
    let new = read_key(text)?;
    let weak = |why: String| {
        Err(Problem::validation(
            "KEY_NOT_TAKEN",
            format!("{why}: expected ed25519, ECDSA, or RSA of 3072 bits"),
        )
        .remedy("Make another one: ssh_key_generate"))
    };
    key_options::must_be_harmless(&new.options)?;
    if new.key.is_certificate() {
        return weak("it is a certificate, which sshd doesn't take here".to_owned());
    }
    match new.key.algorithm.as_str() {
        "ssh-dss" => weak("DSA keys are taken no longer".to_owned()),
        "ssh-rsa" if new.key.bits < SHORTEST_RSA => {
            weak(format!("an RSA key of {} bits is too short", new.key.bits))
        }
        _ => Ok(new),
    }
}

pub(crate) fn must_be_fingerprint(text: &str) -> Result<()> {
    let digest = text.strip_prefix("SHA256:").unwrap_or_default();
    let is_digest = digest.len() == 43
        && digest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte));
    if is_digest {
        return Ok(());
    }
    let message = format!(
        "{:?} is no fingerprint: expected SHA256: and 43 characters, as a list shows it",
        excerpt(text, 80)
    );
    Err(Problem::validation("INVALID_FINGERPRINT", message))
}

/// The key that is meant, by its path or fingerprint. Without either, it must be the only one.
pub(crate) fn chosen(keys: Vec<PublicKey>, wanted: Option<&str>) -> Result<PublicKey> {
    let listed: Vec<String> = keys.iter().map(listed).collect();
    let is_meant = |key: &PublicKey| match wanted {
        None => true,
        Some(wanted) => {
            key.fingerprint == wanted || key.path.as_deref().is_some_and(|path| is_at(path, wanted))
        }
    };
    // A key may be in a file and in the agent.
    let mut meant: Vec<PublicKey> = Vec::new();
    for key in keys.into_iter().filter(is_meant) {
        if meant.iter().all(|known| known.fingerprint != key.fingerprint) {
            meant.push(key);
        }
    }
    if let [key] = &meant[..] {
        return Ok(key.clone());
    }
    let problem = match (wanted, meant.len()) {
        (_, 0) if listed.is_empty() => {
            Problem::not_found("NO_KEYS", "the server's account has no public keys")
        }
        (Some(wanted), 0) => {
            let message = format!("the server's account has no key {:?}", excerpt(wanted, 200));
            Problem::not_found("KEY_NOT_FOUND", message)
        }
        _ => Problem::validation(
            "KEY_NOT_CHOSEN",
            "the server's account has several keys: expected key, to say which",
        ),
    };
    if listed.is_empty() {
        return Err(problem.remedy("Make one: ssh_key_generate"));
    }
    Err(problem.remedy(format!("Name one by path or fingerprint: {}", listed.join("; "))))
}

/// Whether both paths mean the same key: each with or without `.pub`, and with the home or `~` in front.
fn is_at(path: &str, wanted: &str) -> bool {
    let [path, wanted] = [path, wanted].map(|path| path.strip_suffix(".pub").unwrap_or(path));
    let is_below = |absolute: &str, short: &str| {
        let below = short.strip_prefix('~').filter(|below| below.starts_with('/'));
        let home = below.and_then(|below| absolute.strip_suffix(below));
        home.is_some_and(|home| home.starts_with('/') && !home.ends_with("/.ssh"))
    };
    path == wanted || is_below(path, wanted) || is_below(wanted, path)
}

fn listed(key: &PublicKey) -> String {
    let path = key.path.as_deref().unwrap_or("in the agent");
    format!("{path} {} {}", key.fingerprint, excerpt(&key.comment, COMMENT)).trim_end().to_owned()
}
