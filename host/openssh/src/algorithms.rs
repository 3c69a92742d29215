//! The algorithms that a connection may use. They are sound ones only, whatever the configuration, the server and the
//! library would take: no SHA-1, no CBC, no DSA, and no group that is too small.

use std::borrow::Cow;

use russh::keys::{Algorithm, EcdsaCurve, HashAlg};
use russh::{Preferred, cipher, compression, kex, mac};

use super::config::HostConfig;
use host_base::problem::{Category, Problem};

/// The last two announce that this side takes extensions, and that the handshake is strict where the server knows how.
/// The algorithms for the exchange of keys. Without a strict handshake, somebody in between could leave out messages
/// (Terrapin, CVE-2023-48795).
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

/// The entries of [`KEX`] that are not key exchanges. They are always announced.
const EXTENSIONS: &[kex::Name] =
    &[kex::EXTENSION_SUPPORT_AS_CLIENT, kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT];

/// GCM comes first: processors help with it, and it needs no strict handshake.
const CIPHERS: &[cipher::Name] = &[
    cipher::AES_256_GCM,
    cipher::AES_128_GCM,
    cipher::CHACHA20_POLY1305,
    cipher::AES_256_CTR,
    cipher::AES_192_CTR,
    cipher::AES_128_CTR,
];

const MACS: &[mac::Name] = &[mac::HMAC_SHA256_ETM, mac::HMAC_SHA512_ETM, mac::HMAC_SHA256, mac::HMAC_SHA512];

/// The algorithms of host keys, in the order in which OpenSSH prefers them.
const HOST_KEYS: &[Algorithm] = &[
    Algorithm::Ed25519,
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP384 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP521 },
    Algorithm::Rsa { hash: Some(HashAlg::Sha512) },
    Algorithm::Rsa { hash: Some(HashAlg::Sha256) },
];

/// Returns what is offered to a host. The algorithms of its known keys come first, because a key of another kind would
/// look like a stranger's. A server that is asked for certificates shows no bare key if it has a certificate, and so
/// they are asked for only where an authority is known, which means that `certified` isn't empty.
pub(super) fn preferred(
    host: &HostConfig,
    known: &[Algorithm],
    certified: &[Algorithm],
) -> Result<Preferred, Problem> {
    let mut kex = chosen("KexAlgorithms", KEX, host.kex.as_deref())?;
    let missing: Vec<_> = EXTENSIONS.iter().filter(|name| !kex.contains(name)).copied().collect();
    kex.extend(missing);
    let wanted = host.host_key_algorithms.as_deref();
    let others: Vec<Algorithm> = match wanted {
        Some(wanted) => wanted.iter().filter_map(|name| name.parse().ok()).collect(),
        None => HOST_KEYS.to_vec(),
    };
    let keys = host_keys(known.iter().chain(&others), wanted, Algorithm::to_string);
    let certificates = host_keys(certified, wanted, Algorithm::to_certificate_type);
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

/// Returns the sound algorithms that the configuration wants, in its order.
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

/// Returns the sound candidates whose `name` is wanted, each once.
fn host_keys<'a>(
    candidates: impl IntoIterator<Item = &'a Algorithm>,
    wanted: Option<&[String]>,
    name: impl Fn(&Algorithm) -> String,
) -> Vec<Algorithm> {
    let is_wanted = |algorithm: &Algorithm| wanted.is_none_or(|wanted| wanted.contains(&name(algorithm)));
    let mut chosen: Vec<Algorithm> = Vec::new();
    for candidate in candidates {
        for sound in HOST_KEYS.iter().filter(|sound| is_same_key(sound, candidate)) {
            if is_wanted(sound) && !chosen.contains(sound) {
                chosen.push(sound.clone());
            }
        }
    }
    chosen
}

/// An RSA key is the same with every hash of its signatures.
fn is_same_key(one: &Algorithm, other: &Algorithm) -> bool {
    one == other || matches!((one, other), (Algorithm::Rsa { .. }, Algorithm::Rsa { .. }))
}
