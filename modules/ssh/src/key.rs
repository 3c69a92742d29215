//! Public keys as files have them: an algorithm and, in base64, the same once more and the key's numbers (RFC 4253
//! section 6.6, RFC 5656, RFC 8709, OpenSSH's PROTOCOL.u2f).

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

/// One key.
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
        let (algorithm, rest) = word(text)?;
        if !is_algorithm(algorithm) {
            return None;
        }
        let (encoded, rest) = word(rest)?;
        let blob = STANDARD.decode(encoded).ok()?;
        let bits = bits(algorithm, &blob)?;
        let comment = rest.trim_matches([' ', '\t', '\r', '\n']);
        Some((Self { algorithm: algorithm.to_owned(), bits, blob }, comment))
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

/// Whether sshd knows the word as one that a key begins with.
pub(crate) fn is_algorithm(word: &str) -> bool {
    let known = |name: &str| ALGORITHMS.contains(&name);
    known(word)
        || word.strip_suffix(CERTIFICATE).is_some_and(|of| known(of) || known(&format!("{of}@openssh.com")))
}

/// Up to a blank, and what is behind it.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches([' ', '\t']);
    let end = text.find([' ', '\t', '\r', '\n']).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// How long the key is; none where its numbers aren't those of the algorithm.
fn bits(algorithm: &str, blob: &[u8]) -> Option<usize> {
    let mut rest = blob;
    if field(&mut rest)? != algorithm.as_bytes() {
        return None;
    }
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
