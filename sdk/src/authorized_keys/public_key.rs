//! Public keys in files: an algorithm, and in base64 the algorithm again and the key's numbers (RFC 4253 section 6.6, RFC
//! 5656, RFC 8709, OpenSSH's PROTOCOL.u2f).
//!
//! sshd reads more forms than it writes: other names of an algorithm, zeros before numbers, blanks within base64. They
//! are all read here, as the key that sshd reads. Otherwise a line would stay when its key is removed.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use sha2::{Digest, Sha256};

/// The end of the name of a certificate's algorithm.
const CERTIFICATE: &str = "-cert-v01@openssh.com";

/// The algorithms of keys. A certificate has one of them with another ending.
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

/// Names of signature algorithms that sshd accepts for the key's algorithm.
const SIGNATURES: [(&str, &str); 3] = [
    ("rsa-sha2-256", "ssh-rsa"),
    ("rsa-sha2-512", "ssh-rsa"),
    ("webauthn-sk-ecdsa-sha2-nistp256@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"),
];

/// Short names that sshd accepts within base64 only, in upper or lower case. An ECDSA key has none, because it wouldn't
/// say its curve.
const SHORT: [(&str, &str); 4] = [
    ("RSA", "ssh-rsa"),
    ("DSA", "ssh-dss"),
    ("ED25519", "ssh-ed25519"),
    ("ED25519-SK", "sk-ssh-ed25519@openssh.com"),
];

/// A key in the form in which sshd writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The name of the algorithm, such as `ssh-ed25519`.
    pub algorithm: String,
    /// The length in bits, as `ssh-keygen -l` counts it; 0 for a certificate.
    pub bits: usize,
    blob: Vec<u8>,
}

impl Key {
    /// Parses a key at the beginning of a text. Returns the key and its comment. `None` where there is no whole key.
    pub fn read(text: &str) -> Option<(Self, &str)> {
        let (name, rest) = word(text)?;
        let algorithm = algorithm(name)?;
        let (encoded, rest) = word(rest)?;
        // These characters are blanks for C's isspace().
        let encoded: String = encoded.chars().filter(|c| !matches!(c, '\t'..='\r')).collect();
        let blob = canonical(&algorithm, &STANDARD.decode(encoded).ok()?)?;
        let bits = bits(&algorithm, &blob)?;
        let comment = rest.trim_matches([' ', '\t', '\r', '\n']);
        Some((Self { algorithm, bits, blob }, comment))
    }

    /// The fingerprint as `ssh-keygen -l` prints it: `SHA256:…`.
    pub fn fingerprint(&self) -> String {
        format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(&self.blob)))
    }

    /// The algorithm and the key in base64.
    pub fn text(&self) -> String {
        format!("{} {}", self.algorithm, STANDARD.encode(&self.blob))
    }

    /// Whether this is a certificate, which an authority has signed for a key.
    pub fn is_certificate(&self) -> bool {
        self.algorithm.ends_with(CERTIFICATE)
    }

    /// A weakness of the key.
    pub fn finding(&self) -> Option<String> {
        finding(&self.algorithm, self.bits)
    }
}

/// The least length of an RSA key without a finding: NIST SP 800-57 asks for 3072 bits beyond 2030.
const STRONG_RSA: usize = 3072;

/// A weakness of keys with this algorithm and length.
pub fn finding(algorithm: &str, bits: usize) -> Option<String> {
    match algorithm {
        "ssh-dss" => Some("DSA: OpenSSH takes it no longer".to_owned()),
        "ssh-rsa" if bits < STRONG_RSA => Some(format!("RSA of {bits} bits, expected {STRONG_RSA} or more")),
        _ => None,
    }
}

/// The algorithm that sshd reads from the first word of a key.
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

/// The key in the form of which sshd takes the fingerprint. `None` where the key has another algorithm.
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

/// The text up to a blank or a tab, and the text after it.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches([' ', '\t']);
    let end = text.find([' ', '\t']).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The length of the key in bits. `None` where its numbers don't fit the algorithm.
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

/// Reads an uncompressed point, which has two coordinates.
fn ecdsa(rest: &mut &[u8], curve: &str) -> Option<usize> {
    let bits: usize = curve.strip_prefix("nistp")?.parse().ok()?;
    let is_curve = field(rest)? == curve.as_bytes();
    (is_curve && field(rest)?.len() == 1 + 2 * bits.div_ceil(8)).then_some(bits)
}

/// Reads a field: its length in 4 bytes, then its contents.
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

/// A number (RFC 4251, mpint) without zeros before it, except the one that keeps it from being negative. sshd refuses
/// negative numbers.
fn number(field: &[u8]) -> Option<Vec<u8>> {
    if field.first().is_some_and(|first| *first >= 0x80) {
        return None;
    }
    let digits: Vec<u8> = field.iter().copied().skip_while(|byte| *byte == 0).collect();
    let sign = digits.first().filter(|first| **first >= 0x80).map(|_| 0);
    Some(sign.into_iter().chain(digits).collect())
}

/// The length of a number in bits.
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
