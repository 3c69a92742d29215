//! OpenPGP public keys (RFC 9580, RFC 4880): their fingerprints, and until when they say that they are valid.
//!
//! No signature is verified here: apt and rpm do that. A fingerprint is a hash of the key itself, so that nobody can forge
//! it. An expiry or a revocation can be left out of a copy of the key, and so is only a reason to refuse it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha1::{Digest, Sha1};
use sha2::Sha256;

/// A primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PublicKey {
    /// The fingerprint in upper case: 40 digits, or 64 for newer versions of keys.
    pub(super) fingerprint: String,
    /// The end of its validity, in seconds since the epoch.
    pub(super) expires: Option<i64>,
    pub(super) is_revoked: bool,
    created: i64,
    /// The time of the signature that says when the key expires.
    signed: i64,
}

/// The reason why a text or file holds no public keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It holds a private key.
    Private,
    /// It can't be read.
    Malformed(&'static str),
}

use Refusal::Malformed;

/// The beginning of any armor.
const MARK: &str = "-----BEGIN";
const BEGIN: &str = "-----BEGIN PGP ";
const PUBLIC_KEY: u8 = 6;
const SIGNATURE: u8 = 2;
const SECRET_KEYS: [u8; 2] = [5, 7];
/// Packets that may stand in a certificate besides keys and signatures: marker, trust, user id, subkey, user attribute,
/// padding. A program that imports keys would look for more keys in compressed data.
const HARMLESS: [u8; 6] = [10, 12, 13, 14, 17, 21];

/// The keys in the contents of a key file, armored or not.
pub(super) fn keys(contents: &[u8]) -> Result<Vec<PublicKey>, Refusal> {
    let packets = packets(contents)?;
    if packets.get(8..12) == Some(b"KBXf") {
        return Err(Malformed("it is GnuPG's keybox, and not exported keys"));
    }
    let keys = of_packets(&packets)?;
    if keys.is_empty() { Err(Malformed("it holds no public key")) } else { Ok(keys) }
}

/// The contents without armor.
///
/// A key file that the host has stays as it is, and other programs read it: apt looks for any line with `-----BEGIN`, also in
/// a binary file, and takes what follows the next empty line. So a file is refused in which they could find other keys.
fn packets(contents: &[u8]) -> Result<Vec<u8>, Refusal> {
    let marks = contents.windows(MARK.len()).filter(|part| *part == MARK.as_bytes()).count();
    // The first byte of a packet isn't ASCII.
    let is_binary = contents.first().is_some_and(|byte| !byte.is_ascii());
    match marks {
        0 => Ok(contents.to_vec()),
        _ if is_binary => Err(Malformed("it has armor within binary keys")),
        _ => unarmored(&String::from_utf8_lossy(contents)),
    }
}

/// The bytes of all armored blocks.
fn unarmored(text: &str) -> Result<Vec<u8>, Refusal> {
    let (mut bytes, mut blocks) = (Vec::new(), 0);
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix(BEGIN) else { continue };
        if kind.contains("PRIVATE") || kind.contains("SECRET") {
            return Err(Refusal::Private);
        }
        if !kind.starts_with("PUBLIC KEY BLOCK") {
            return Err(Malformed("its armor isn't that of a public key"));
        }
        let (mut encoded, mut checksum) = (String::new(), None);
        let (mut has_gap, mut has_end) = (false, false);
        // Headers such as `Version: …` end with an empty line, also where there is none.
        for line in lines.by_ref().take_while(|line| !line.is_empty()) {
            if !line.contains(": ") && !line.ends_with(':') {
                return Err(Malformed("its armor has no empty line before the key"));
            }
        }
        for line in lines.by_ref() {
            if line.starts_with("-----END PGP ") {
                has_end = true;
                break;
            }
            match line.strip_prefix('=').filter(|rest| rest.len() == 4) {
                Some(sum) => checksum = Some(sum.to_owned()),
                None if line.is_empty() => has_gap = !encoded.is_empty(),
                None if has_gap => return Err(Malformed("its armor has an empty line within the key")),
                None => encoded.push_str(line),
            }
        }
        if !has_end {
            return Err(Malformed("its armor has no end"));
        }
        let block = BASE64_STANDARD.decode(&encoded).map_err(|_| Malformed("its armor isn't base64"))?;
        if let Some(sum) = checksum {
            let sum =
                BASE64_STANDARD.decode(sum).map_err(|_| Malformed("its armor's checksum isn't base64"))?;
            if sum != crc24(&block).to_be_bytes()[1..] {
                return Err(Malformed("its armor's checksum is wrong, so that it is damaged"));
            }
        }
        bytes.extend(block);
        blocks += 1;
    }
    if text.matches(MARK).count() != blocks {
        return Err(Malformed("it has other armor than that of public keys"));
    }
    Ok(bytes)
}

/// The same keys in new armor, without comments and headers: other programs read exactly what was read here.
pub(super) fn armored_anew(contents: &[u8]) -> Result<String, Refusal> {
    let packets = packets(contents)?;
    let mut text = format!("{BEGIN}PUBLIC KEY BLOCK-----\n\n");
    for line in BASE64_STANDARD.encode(&packets).as_bytes().chunks(64) {
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
    }
    let checksum = BASE64_STANDARD.encode(&crc24(&packets).to_be_bytes()[1..]);
    text.push_str(&format!("={checksum}\n-----END PGP PUBLIC KEY BLOCK-----\n"));
    Ok(text)
}

/// The checksum of armor: RFC 9580, section 6.1.
fn crc24(bytes: &[u8]) -> u32 {
    let shifted = |crc: u32, _| if crc & 0x80_0000 == 0 { crc << 1 } else { (crc << 1) ^ 0x86_4CFB };
    bytes.iter().fold(0xB7_04CE, |crc, byte| (0..8).fold(crc ^ (u32::from(*byte) << 16), shifted) & 0xFF_FFFF)
}

/// Reads numbers and parts from the front of bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<u32> {
        Some(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    fn byte(&mut self) -> Option<u8> {
        Some(*self.take(1)?.first()?)
    }

    fn sized(&mut self, count: u32) -> Option<&'a [u8]> {
        self.take(usize::try_from(count).ok()?)
    }

    /// A length of one, two or five bytes. `None` also where it is a partial length, which no key has.
    fn length(&mut self, two_until: u32) -> Option<u32> {
        match u32::from(self.byte()?) {
            first @ 0..192 => Some(first),
            first if first < two_until => Some(((first - 192) << 8) + self.number(1)? + 192),
            255 => self.number(4),
            _ => None,
        }
    }

    /// A packet: its tag and its body.
    fn packet(&mut self) -> Option<(u8, &'a [u8])> {
        let first = self.byte()?;
        if first & 0x80 == 0 {
            return None;
        }
        if first & 0x40 != 0 {
            let length = self.length(224)?;
            return Some((first & 0x3F, self.sized(length)?));
        }
        let length = match first & 3 {
            3 => return None,
            size => self.number(1 << size)?,
        };
        Some((first >> 2 & 0xF, self.sized(length)?))
    }
}

fn of_packets(packets: &[u8]) -> Result<Vec<PublicKey>, Refusal> {
    let (mut reader, mut keys) = (Reader(packets), Vec::<PublicKey>::new());
    while !reader.0.is_empty() {
        let (tag, body) = reader.packet().ok_or(Malformed("it is no sequence of OpenPGP packets"))?;
        if SECRET_KEYS.contains(&tag) {
            return Err(Refusal::Private);
        }
        if tag != PUBLIC_KEY && tag != SIGNATURE && !HARMLESS.contains(&tag) {
            return Err(Malformed("it holds something else than public keys"));
        }
        if tag == PUBLIC_KEY {
            keys.push(public_key(body).ok_or(Malformed("it holds a key of an unknown version"))?);
        } else if tag == SIGNATURE
            && let Some(key) = keys.last_mut()
            && let Some(signature) = signature(body)
        {
            signature.applied(key);
        }
    }
    Ok(keys)
}

/// The key without what its signatures say.
fn public_key(body: &[u8]) -> Option<PublicKey> {
    let mut reader = Reader(body);
    let version = reader.byte()?;
    let created = i64::from(reader.number(4)?);
    let long = u32::try_from(body.len()).ok()?.to_be_bytes();
    let hash = match version {
        4 => Sha1::new()
            .chain_update([0x99])
            .chain_update(long.get(2..)?)
            .chain_update(body)
            .finalize()
            .to_vec(),
        5 | 6 => {
            let mark = if version == 5 { 0x9A } else { 0x9B };
            Sha256::new().chain_update([mark]).chain_update(long).chain_update(body).finalize().to_vec()
        }
        _ => return None,
    };
    if version == 4 && body.len() > 0xFFFF {
        return None;
    }
    let fingerprint = hash.iter().map(|byte| format!("{byte:02X}")).collect();
    Some(PublicKey { fingerprint, expires: None, is_revoked: false, created, signed: i64::MIN })
}

/// The parts of a signature that say something about its key.
#[derive(Default)]
struct Signature {
    kind: u8,
    created: i64,
    /// Seconds after the creation of the key.
    key_expires: Option<i64>,
    /// The last digits of the signer's fingerprint, or all of it.
    issuer: Option<String>,
}

fn signature(body: &[u8]) -> Option<Signature> {
    let mut reader = Reader(body);
    let version = reader.byte()?;
    let mut found = Signature { kind: reader.byte()?, ..Signature::default() };
    reader.take(2)?;
    let size = match version {
        4 | 5 => 2,
        6 => 4,
        _ => return None,
    };
    let hashed = reader.number(size)?;
    let hashed = reader.sized(hashed)?;
    let unhashed = reader.number(size)?;
    let unhashed = reader.sized(unhashed)?;
    for (mut part, is_hashed) in [(Reader(hashed), true), (Reader(unhashed), false)] {
        while !part.0.is_empty() {
            let length = part.length(255)?;
            let mut subpacket = Reader(part.sized(length)?);
            match subpacket.byte()? & 0x7F {
                2 if is_hashed => found.created = i64::from(subpacket.number(4)?),
                9 if is_hashed => found.key_expires = Some(i64::from(subpacket.number(4)?)),
                16 => found.issuer = found.issuer.or(Some(hex(subpacket.0))),
                33 => found.issuer = Some(hex(subpacket.0.get(1..)?)),
                _ => {}
            }
        }
    }
    Some(found)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

impl Signature {
    /// Notes what the signature says about the key. A signature without an issuer counts as the key's own.
    fn applied(self, key: &mut PublicKey) {
        let is_own = self.issuer.as_ref().is_none_or(|issuer| {
            key.fingerprint.ends_with(issuer)
                || key.fingerprint.len() == 64 && key.fingerprint.starts_with(issuer)
        });
        match self.kind {
            0x20 if is_own => key.is_revoked = true,
            0x10..=0x13 | 0x1F if is_own && self.created >= key.signed => {
                key.signed = self.created;
                key.expires = self.key_expires.filter(|span| *span > 0).map(|span| key.created + span);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Five keys that gpg 2.2.40 made and exported, in the order of `all.asc`.
    const ALL: &str = include_str!("keys/all.asc");
    const SECRET: &str = include_str!("keys/secret.asc");

    /// The keys as `gpg --with-colons --show-keys` tells them: fingerprint, expiry, and whether the key is revoked.
    const SAID: [(&str, Option<i64>, bool); 5] = [
        ("4BEBBC1013BA745C96D1136A809E4947E4034791", Some(2_111_100_136), false),
        ("8D4EA5CB47985EE943AFE069CFA937B303FB7B7E", Some(2_111_100_136), false),
        ("007700DC89B9E79F01EA75FE0F4B4D70296F1E06", Some(1_609_502_400), false),
        ("EFA82D8667F06B9F694B42E32B58CEF5BE2862A2", Some(1_797_468_137), false),
        ("3A83B21DAED57F23E410BAE78868F0296B85B300", None, true),
    ];

    fn told(contents: &[u8]) -> Vec<(String, Option<i64>, bool)> {
        let keys = keys(contents).unwrap().into_iter();
        keys.map(|key| (key.fingerprint, key.expires, key.is_revoked)).collect()
    }

    #[test]
    fn keys_are_what_gpg_says_armored_or_not() {
        let said = SAID.map(|(fingerprint, expires, revoked)| (fingerprint.to_owned(), expires, revoked));
        assert_eq!(told(ALL.as_bytes()), said);
        assert_eq!(told(&unarmored(ALL).unwrap()), said);
        assert_eq!(
            told(format!("a comment of the makers\r\n{}", ALL.replace('\n', "\r\n")).as_bytes()),
            said
        );
        // Armor may go on in a second block.
        assert_eq!(told(format!("{ALL}\n{ALL}").as_bytes()).len(), 10);
    }

    #[test]
    fn new_armor_holds_the_same_and_nothing_else() {
        let headers = ALL.replacen("\n\n", "\nVersion: GnuPG v2\nComment: https://a.example\n\n", 1);
        for text in [ALL.to_owned(), headers, format!("a comment\n{ALL}another")] {
            assert_eq!(armored_anew(text.as_bytes()).unwrap(), ALL);
        }
        // A program that skips the first line would read another key.
        let hidden = ALL.replacen("\n\n", "\n", 1);
        assert!(matches!(keys(hidden.as_bytes()), Err(Malformed(_))));
        // Compressed data may hold keys as well.
        let compressed = [unarmored(ALL).unwrap(), vec![0xC8, 2, 0, 0]].concat();
        assert!(matches!(keys(&compressed), Err(Malformed(_))));
    }

    /// apt 2.6.1 takes the other key from each of these files.
    #[test]
    fn a_file_that_other_programs_read_otherwise_is_refused() {
        const GOOD: &str = include_str!("keys/good.asc");
        const OTHER: &str = include_str!("keys/other.asc");
        let good = unarmored(GOOD).unwrap();
        let user_id = |body: &[u8]| [&[0xCD, 0xFF], &(body.len() as u32).to_be_bytes()[..], body].concat();
        let renamed = format!("{}{GOOD}", OTHER.replace("PGP PUBLIC KEY BLOCK", "X"));
        let within = [good.clone(), user_id(OTHER.as_bytes())].concat();
        // A user id whose text is the other key, behind lines of base64 that end where it begins.
        let other = unarmored(OTHER).unwrap();
        let head = |fill: usize| {
            let mut head = [good.clone(), user_id(&vec![b'x'; fill]), user_id(&other)].concat();
            head.truncate(head.len() - other.len());
            head
        };
        let head = (0..3).map(head).find(|head| head.len() % 3 == 0).unwrap();
        let [head, rest] = [&head, &other].map(|part| BASE64_STANDARD.encode(part));
        let parted = format!(
            "{BEGIN}PUBLIC KEY BLOCK-----\n \n{head}\n\n{rest}\n-----END PGP PUBLIC KEY BLOCK-----\n"
        );
        for contents in [renamed.as_bytes(), &within, parted.as_bytes()] {
            assert!(matches!(keys(contents), Err(Malformed(_))), "{}", String::from_utf8_lossy(contents));
        }
        // An empty line before the checksum hides nothing.
        let spaced = GOOD.replacen("\n=", "\n\n=", 1);
        assert_eq!(keys(spaced.as_bytes()), keys(GOOD.as_bytes()));
    }

    #[test]
    fn a_key_of_version_6_has_the_fingerprint_of_rfc_9580() {
        // The sample certificate of RFC 9580, appendix A.3.
        let armored = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n\
            xioGY4d/4xsAAAAg+U2nu0jWCmHlZ3BqZYfQMxmZu52JGggkLq2EVD34laPCsQYf\n\
            GwoAAABCBYJjh3/jAwsJBwUVCg4IDAIWAAKbAwIeCSIhBssYbE8GCaaX5NUt+mxy\n\
            KwwfHifBilZwj2Ul7Ce62azJBScJAgcCAAAAAK0oIBA+LX0ifsDm185Ecds2v8lw\n\
            gyU2kCcUmKfvBXbAf6rhRYWzuQOwEn7E/aLwIwRaLsdry0+VcallHhSu4RN6HWaE\n\
            QsiPlR4zxP/TP7mhfVEe7XWPxtnMUMtf15OyA51YBM4qBmOHf+MZAAAAIIaTJINn\n\
            +eUBXbki+PSAld2nhJh/LVmFsS+60WyvXkQ1wpsGGBsKAAAALAWCY4d/4wKbDCIh\n\
            BssYbE8GCaaX5NUt+mxyKwwfHifBilZwj2Ul7Ce62azJAAAAAAQBIKbpGG2dWTX8\n\
            j+VjFM21J0hqWlEg+bdiojWnKfA5AQpWUWtnNwDEM0g12vYxoWM8Y81W+bHBw805\n\
            I8kWVkXU6vFOi+HWvv/ira7ofJu16NnoUkhclkUrk0mXubZvyl4GBg==\n\
            -----END PGP PUBLIC KEY BLOCK-----\n";
        let keys = keys(armored.as_bytes()).unwrap();
        assert_eq!(keys[0].fingerprint, "CB186C4F0609A697E4D52DFA6C722B0C1F1E27C18A56708F6525EC27BAD9ACC9");
        assert_eq!((keys.len(), keys[0].expires), (1, None));
    }

    #[test]
    fn what_is_no_public_key_is_refused() {
        assert_eq!(keys(SECRET.as_bytes()), Err(Refusal::Private));
        let secret = SECRET.replace("PRIVATE", "PUBLIC");
        assert_eq!(keys(secret.as_bytes()), Err(Refusal::Private), "also in another armor");
        let at = ALL.find("\n\n").unwrap() + 30;
        let mut damaged = ALL.to_owned();
        let other = if damaged.as_bytes()[at] == b'A' { "B" } else { "A" };
        damaged.replace_range(at..=at, other);
        let end = ALL.rfind("-----END").unwrap();
        for contents in [
            damaged.as_bytes(),
            &ALL.as_bytes()[..end],
            b"",
            b"\n",
            b"not a key",
            b"\x99\x01",
            b"\x99\xff\xff\x04",
            b"-----BEGIN PGP SIGNATURE-----\n\nAAAA\n-----END PGP SIGNATURE-----\n",
            b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n-----END PGP PUBLIC KEY BLOCK-----\n",
            b"\0\0\0\x20\x01\x01\0\x02KBXf\0\0\0\0",
        ] {
            assert!(matches!(keys(contents), Err(Malformed(_))), "{:?}", String::from_utf8_lossy(contents));
        }
        // A key that is cut off anywhere is no key.
        let packets = unarmored(ALL).unwrap();
        for end in 1..400 {
            let _ = keys(&packets[..end]);
        }
    }
}
