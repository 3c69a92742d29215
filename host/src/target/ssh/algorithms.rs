//! What a connection may be made with: sound algorithms only, whatever the configuration, the server and the library
//! would take. So no SHA-1, no CBC, no group that is too small, and nothing of DSA's.

use std::borrow::Cow;

use russh::keys::{Algorithm, EcdsaCurve, HashAlg};
use russh::{Preferred, cipher, compression, kex, mac};

use super::config::HostConfig;
use crate::problem::{Category, Problem};

/// The last two say that we take extensions, and that the handshake is strict where the server knows how: without it
/// somebody in between could leave out messages (Terrapin, CVE-2023-48795).
const KEX: &[kex::Name] = &[
    kex::MLKEM768X25519_SHA256,
    kex::CURVE25519,
    kex::CURVE25519_PRE_RFC_8731,
    kex::ECDH_SHA2_NISTP256,
    kex::ECDH_SHA2_NISTP384,
    kex::ECDH_SHA2_NISTP521,
    kex::DH_GEX_SHA256,
    kex::DH_G16_SHA512,
    kex::DH_G18_SHA512,
    kex::DH_G14_SHA256,
    kex::EXTENSION_SUPPORT_AS_CLIENT,
    kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT,
];

/// Those of [`KEX`] that are no key exchange, and are always said.
const EXTENSIONS: &[kex::Name] =
    &[kex::EXTENSION_SUPPORT_AS_CLIENT, kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT];

/// GCM first: processors help with it, and it needs no strict handshake.
const CIPHERS: &[cipher::Name] = &[
    cipher::AES_256_GCM,
    cipher::AES_128_GCM,
    cipher::CHACHA20_POLY1305,
    cipher::AES_256_CTR,
    cipher::AES_192_CTR,
    cipher::AES_128_CTR,
];

const MACS: &[mac::Name] = &[mac::HMAC_SHA256_ETM, mac::HMAC_SHA512_ETM, mac::HMAC_SHA256, mac::HMAC_SHA512];

/// Of host keys, in the order that OpenSSH prefers them.
const HOST_KEYS: &[Algorithm] = &[
    Algorithm::Ed25519,
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP384 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP521 },
    Algorithm::Rsa { hash: Some(HashAlg::Sha512) },
    Algorithm::Rsa { hash: Some(HashAlg::Sha256) },
];

/// How the name of a certificate's algorithm ends.
const CERTIFICATE: &str = "-cert-v01@openssh.com";

/// What is offered to a host of which keys of the `known` algorithms are known: those first, since a key of another
/// kind could not be told from a stranger's. Certificates are asked for only where an authority is known: their names
/// are among `known` then.
pub(super) fn preferred(host: &HostConfig, known: &[Algorithm]) -> Result<Preferred, Problem> {
    let mut kex = chosen("KexAlgorithms", KEX, host.kex.as_deref())?;
    let missing: Vec<_> = EXTENSIONS.iter().filter(|name| !kex.contains(name)).copied().collect();
    kex.extend(missing);
    let (keys, certificates) = host_keys(known, host.host_key_algorithms.as_deref());
    if keys.is_empty() && certificates.is_empty() {
        return Err(nothing_left("HostKeyAlgorithms", HOST_KEYS));
    }
    Ok(Preferred {
        kex: Cow::Owned(kex),
        key: Cow::Owned(keys),
        host_key_certificates: Cow::Owned(certificates),
        cipher: Cow::Owned(chosen("Ciphers", CIPHERS, host.ciphers.as_deref())?),
        mac: Cow::Owned(chosen("MACs", MACS, host.macs.as_deref())?),
        compression: Cow::Borrowed(&[compression::NONE]),
    })
}

/// What is sound of what the configuration wants, in its order.
fn chosen<N: AsRef<str> + Copy>(
    option: &str,
    sound: &[N],
    wanted: Option<&[String]>,
) -> Result<Vec<N>, Problem> {
    let Some(wanted) = wanted else { return Ok(sound.to_vec()) };
    let find = |name: &String| sound.iter().find(|one| one.as_ref() == name).copied();
    let chosen: Vec<N> = wanted.iter().filter_map(find).collect();
    if chosen.is_empty() { Err(nothing_left(option, sound)) } else { Ok(chosen) }
}

fn nothing_left<N: AsRef<str>>(option: &str, sound: &[N]) -> Problem {
    let sound: Vec<&str> = sound.iter().map(AsRef::as_ref).filter(|name| !is_extension(name)).collect();
    let message = format!(
        "SSH's configuration sets {option} to nothing that is both sound and known here; that would be one of {}",
        sound.join(", ")
    );
    Problem::new("SSH_CONFIG_INVALID", Category::Validation, message)
        .remedy(format!("Take {option} out of the configuration of this host, or add one of these to it"))
}

fn is_extension(name: &str) -> bool {
    EXTENSIONS.iter().any(|extension| extension.as_ref() == name)
}

/// Of keys, and of certificates.
fn host_keys(known: &[Algorithm], wanted: Option<&[String]>) -> (Vec<Algorithm>, Vec<Algorithm>) {
    let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted.iter().any(|one| one == name));
    let (mut keys, mut certificates) = (Vec::new(), Vec::new());
    let mut add = |to_keys: bool, algorithm: &Algorithm| {
        for sound in HOST_KEYS.iter().filter(|sound| is_same_key(sound, algorithm)) {
            let name = if to_keys { sound.to_string() } else { sound.to_certificate_type() };
            let list = if to_keys { &mut keys } else { &mut certificates };
            if is_wanted(&name) && !list.contains(sound) {
                list.push(sound.clone());
            }
        }
    };
    for algorithm in known {
        let certified = algorithm.as_str().strip_suffix(CERTIFICATE).and_then(|name| name.parse().ok());
        match certified {
            Some(certified) => add(false, &certified),
            None => add(true, algorithm),
        }
    }
    let others: Vec<Algorithm> = match wanted {
        Some(wanted) => wanted.iter().filter_map(|name| name.parse().ok()).collect(),
        None => HOST_KEYS.to_vec(),
    };
    others.iter().for_each(|algorithm| add(true, algorithm));
    (keys, certificates)
}

/// An RSA key is the same whatever its signatures are hashed with.
fn is_same_key(one: &Algorithm, other: &Algorithm) -> bool {
    one == other || matches!((one, other), (Algorithm::Rsa { .. }, Algorithm::Rsa { .. }))
}
