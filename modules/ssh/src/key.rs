//! Public keys as files have them: an algorithm and, in base64, the same once more and the key's numbers (RFC 4253
//! section 6.6, RFC 5656, RFC 8709, OpenSSH's PROTOCOL.u2f).
//!
//! sshd reads more than it writes: other names of an algorithm, zeros in front of numbers, blanks within base64. All
//! that is read here too, as the key that sshd makes of it: whatever passed for no key would stay when that key is
//! removed.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use sha2::{Digest, Sha256};

/// What the name of a certificate's algorithm ends with.
const CERTIFICATE: &str = "-cert-v01@openssh.com";

/// Of certificates those that these have.
const ALGORITHMS: [&str; 8] = [
    "ssh-ed25519",
    "ssh-rsa",
    "ssh-dss",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];

/// Names of signatures that sshd takes for one of the key they are made with.
const SIGNATURES: [(&str, &str); 3] = [
    ("rsa-sha2-256", "ssh-rsa"),
    ("rsa-sha2-512", "ssh-rsa"),
    ("webauthn-sk-ecdsa-sha2-nistp256@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"),
];

/// Short names, which sshd knows within base64 only, of either case. An ECDSA key's would not say its curve.
const SHORT: [(&str, &str); 4] = [
    ("RSA", "ssh-rsa"),
    ("DSA", "ssh-dss"),
    ("ED25519", "ssh-ed25519"),
    ("ED25519-SK", "sk-ssh-ed25519@openssh.com"),
];

/// One key, as sshd would write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) algorithm: String,
    /// As `ssh-keygen -l` counts them; 0 of a certificate.
    pub(crate) bits: usize,
    blob: Vec<u8>,
}

impl Key {
    /// From the beginning of a text, with what follows the key: its comment, or nothing. None where no whole key is
    /// there.
    pub(crate) fn read(text: &str) -> Option<(Self, &str)> {
        let (name, rest) = word(text)?;
        let algorithm = algorithm(name)?;
        let (encoded, rest) = word(rest)?;
        // C's isspace().
        let encoded: String = encoded.chars().filter(|c| !matches!(c, '\t'..='\r')).collect();
        let blob = canonical(&algorithm, &STANDARD.decode(encoded).ok()?)?;
        let bits = bits(&algorithm, &blob)?;
        let comment = rest.trim_matches([' ', '\t', '\r', '\n']);
        Some((Self { algorithm, bits, blob }, comment))
    }

    /// As `ssh-keygen -l` has it: `SHA256:…`.
    pub(crate) fn fingerprint(&self) -> String {
        format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(&self.blob)))
    }

    /// Algorithm and base64.
    pub(crate) fn text(&self) -> String {
        format!("{} {}", self.algorithm, STANDARD.encode(&self.blob))
    }

    /// Not a key, but what an authority says of one.
    pub(crate) fn is_certificate(&self) -> bool {
        self.algorithm.ends_with(CERTIFICATE)
    }

    /// What is wrong with it.
    pub(crate) fn finding(&self) -> Option<String> {
        finding(&self.algorithm, self.bits)
    }
}

/// Below this an RSA key isn't what it should be: NIST SP 800-57 wants 3072 bits for beyond 2030.
const STRONG_RSA: usize = 3072;

/// What is wrong with a key of this kind.
pub(crate) fn finding(algorithm: &str, bits: usize) -> Option<String> {
    match algorithm {
        "ssh-dss" => Some("DSA: OpenSSH takes it no longer".to_owned()),
        "ssh-rsa" if bits < STRONG_RSA => Some(format!("RSA of {bits} bits, expected {STRONG_RSA} or more")),
        _ => None,
    }
}

/// What sshd takes the word for that a key begins with.
fn algorithm(word: &str) -> Option<String> {
    let named = |name: &str| ALGORITHMS.into_iter().find(|known| *known == name);
    let plain = |name: &str| named(name).or_else(|| meant(&SIGNATURES, |signature| signature == name));
    let Some(of) = word.strip_suffix(CERTIFICATE) else { return plain(word).map(str::to_owned) };
    let of = plain(of).or_else(|| named(&format!("{of}@openssh.com")))?;
    Some(format!("{}{CERTIFICATE}", of.strip_suffix("@openssh.com").unwrap_or(of)))
}

fn meant(names: &[(&str, &'static str)], is_it: impl Fn(&str) -> bool) -> Option<&'static str> {
    names.iter().find(|(name, _)| is_it(name)).map(|(_, algorithm)| *algorithm)
}

/// As sshd writes it, and takes the fingerprint of it; none where it is of another algorithm.
fn canonical(algorithm: &str, blob: &[u8]) -> Option<Vec<u8>> {
    let mut rest = blob;
    let name = std::str::from_utf8(field(&mut rest)?).ok()?;
    let short = meant(&SHORT, |short| short.eq_ignore_ascii_case(name)).map(str::to_owned);
    if short.or_else(|| self::algorithm(name))? != algorithm {
        return None;
    }
    let mut own = Vec::new();
    put(&mut own, algorithm.as_bytes())?;
    if !["ssh-rsa", "ssh-dss"].contains(&algorithm) {
        own.extend(rest);
        return Some(own);
    }
    while !rest.is_empty() {
        put(&mut own, &number(field(&mut rest)?)?)?;
    }
    Some(own)
}

/// Up to a blank or a tab, and what is behind it.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches([' ', '\t']);
    let end = text.find([' ', '\t']).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// How long the key is; none where its numbers aren't those of the algorithm.
fn bits(algorithm: &str, blob: &[u8]) -> Option<usize> {
    let mut rest = blob;
    field(&mut rest)?;
    if algorithm.ends_with(CERTIFICATE) {
        return Some(0);
    }
    let bits = match algorithm {
        "ssh-ed25519" => ed25519(&mut rest)?,
        "ssh-rsa" => {
            field(&mut rest)?;
            length(field(&mut rest)?)
        }
        "ssh-dss" => {
            let bits = length(field(&mut rest)?);
            (0..3).try_for_each(|_| field(&mut rest).map(drop))?;
            bits
        }
        "sk-ssh-ed25519@openssh.com" => {
            let bits = ed25519(&mut rest)?;
            field(&mut rest)?;
            bits
        }
        "sk-ecdsa-sha2-nistp256@openssh.com" => {
            let bits = ecdsa(&mut rest, "nistp256")?;
            field(&mut rest)?;
            bits
        }
        _ => ecdsa(&mut rest, algorithm.strip_prefix("ecdsa-sha2-")?)?,
    };
    (rest.is_empty() && bits > 0).then_some(bits)
}

fn ed25519(rest: &mut &[u8]) -> Option<usize> {
    (field(rest)?.len() == 32).then_some(256)
}

/// A point, not compressed: two coordinates.
fn ecdsa(rest: &mut &[u8], curve: &str) -> Option<usize> {
    let bits: usize = curve.strip_prefix("nistp")?.parse().ok()?;
    let is_curve = field(rest)? == curve.as_bytes();
    (is_curve && field(rest)?.len() == 1 + 2 * bits.div_ceil(8)).then_some(bits)
}

/// Its length in 4 bytes, then itself.
fn field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, behind) = rest.split_first_chunk::<4>()?;
    let (field, behind) = behind.split_at_checked(u32::from_be_bytes(*length).try_into().ok()?)?;
    *rest = behind;
    Some(field)
}

fn put(blob: &mut Vec<u8>, field: &[u8]) -> Option<()> {
    blob.extend(u32::try_from(field.len()).ok()?.to_be_bytes());
    blob.extend(field);
    Some(())
}

/// RFC 4251, mpint: without zeros in front, but for the one that keeps it from being negative. Negative ones sshd
/// doesn't take.
fn number(field: &[u8]) -> Option<Vec<u8>> {
    if field.first().is_some_and(|first| *first >= 0x80) {
        return None;
    }
    let digits: Vec<u8> = field.iter().copied().skip_while(|byte| *byte == 0).collect();
    let sign = digits.first().filter(|first| **first >= 0x80).map(|_| 0);
    Some(sign.into_iter().chain(digits).collect())
}

/// Of a number, in bits.
fn length(number: &[u8]) -> usize {
    let number = match number.iter().position(|byte| *byte != 0) {
        Some(first) => &number[first..],
        None => return 0,
    };
    number.len() * 8 - number.first().map_or(0, |first| first.leading_zeros() as usize)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
