//! The name of a component on a registry: `oci://REGISTRY/NAME:TAG@sha256:HEX`.
//!
//! A tag may stand for something else tomorrow; a digest never does. So the digest decides which bytes are meant, and the
//! tag says only what a later update follows.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use host_base::sha256::is_sha256;

use super::error::DistributionError;

/// What a reference begins with.
pub(crate) const SCHEME: &str = "oci://";

const FORM: &str = "`oci://REGISTRY/NAME:TAG`, `oci://REGISTRY/NAME@sha256:HEX`, or both tag and digest";

/// The number of bytes of the longest name, by the specification.
const LONGEST_NAME: usize = 255;
/// The number of bytes of the longest tag, by the specification.
const LONGEST_TAG: usize = 128;

/// The name of a component on a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The registry's name, with its port where it has one.
    pub registry: String,
    /// The name of the repository.
    pub name: String,
    /// The tag.
    pub tag: Option<String>,
    /// The SHA-256 of the manifest, in lower-case hexadecimal digits.
    pub digest: Option<String>,
}

impl Reference {
    /// The same with this digest.
    pub fn at(&self, digest: &str) -> Self {
        Self { digest: Some(digest.to_owned()), ..self.clone() }
    }

    /// What the tag stands for now, whatever the digest was. None where there is no tag.
    pub fn latest(&self) -> Option<Self> {
        self.tag.as_ref().map(|_| Self { digest: None, ..self.clone() })
    }

    /// The server that speaks for the registry. The oldest registry has another one than its name says.
    pub(crate) fn server(&self) -> &str {
        match self.registry.as_str() {
            "docker.io" | "index.docker.io" => "registry-1.docker.io",
            registry => registry,
        }
    }
}

impl Display for Reference {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.registry, self.name)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@sha256:{digest}")?;
        }
        Ok(())
    }
}

impl FromStr for Reference {
    type Err = DistributionError;

    fn from_str(text: &str) -> Result<Self, DistributionError> {
        let wrong = |reason: String| DistributionError::Address { reason, expected: FORM };
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| wrong(format!("{text:?} is no reference")))?;
        let (rest, digest) = match rest.split_once('@') {
            None => (rest, None),
            Some((rest, digest)) => {
                let hex = digest.strip_prefix("sha256:").filter(|hex| is_sha256(hex));
                let hex = hex.ok_or_else(|| wrong(format!("{digest:?} is no digest")))?;
                (rest, Some(hex.to_owned()))
            }
        };
        let (registry, rest) =
            rest.split_once('/').ok_or_else(|| wrong(format!("{text:?} names no registry")))?;
        let (name, tag) = match rest.split_once(':') {
            None => (rest, None),
            Some((name, tag)) => (name, Some(tag)),
        };
        if !is_registry(registry) {
            return Err(wrong(format!("{registry:?} is no registry")));
        }
        if name.len() > LONGEST_NAME || !name.split('/').all(is_part_of_name) {
            return Err(wrong(format!("{name:?} is no name on a registry")));
        }
        if let Some(tag) = tag.filter(|tag| !is_tag(tag)) {
            return Err(wrong(format!("{tag:?} is no tag")));
        }
        Ok(Self {
            registry: registry.to_ascii_lowercase(),
            name: name.to_owned(),
            tag: tag.map(str::to_owned),
            digest,
        })
    }
}

/// A name of a host or an address, with or without a port. A name without a dot is `localhost`, or has a port: otherwise
/// it would be a part of a repository's name, whose registry was left out.
fn is_registry(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, rest)) if address.parse::<std::net::Ipv6Addr>().is_ok() => {
                return rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
            }
            _ => return false,
        },
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let fits = |part: &str| {
        let letters = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (1..=63).contains(&part.len()) && letters && !part.starts_with('-') && !part.ends_with('-')
    };
    let is_complete = host.contains('.') || port.is_some() || host == "localhost";
    host.len() <= 253 && host.split('.').all(fits) && port.is_none_or(is_port) && is_complete
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}

/// A part of a repository's name: small letters and digits, with `.`, `_`, `__` or any number of `-` between them.
fn is_part_of_name(part: &str) -> bool {
    let is_letter = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    let is_separator =
        |run: &str| matches!(run, "" | "." | "_" | "__") || run.bytes().all(|byte| byte == b'-');
    part.starts_with(is_letter) && part.ends_with(is_letter) && part.split(is_letter).all(is_separator)
}

fn is_tag(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=LONGEST_TAG).contains(&text.len()) && text.bytes().all(fits) && !text.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn a_reference_is_read_as_it_is_shown() {
        for (text, registry, name, tag, digest) in [
            ("oci://ghcr.io/ada/pacman:1.0.0", "ghcr.io", "ada/pacman", Some("1.0.0"), false),
            ("oci://localhost/x:latest", "localhost", "x", Some("latest"), false),
            ("oci://127.0.0.1:5000/a_b/c--d:_t", "127.0.0.1:5000", "a_b/c--d", Some("_t"), false),
            ("oci://[::1]:5000/x", "[::1]:5000", "x", None, false),
            (&format!("oci://r.example/x@sha256:{HEX}"), "r.example", "x", None, true),
            (&format!("oci://r.example/x:1.0@sha256:{HEX}"), "r.example", "x", Some("1.0"), true),
        ] {
            let read: Reference = text.parse().unwrap();
            assert_eq!((read.registry.as_str(), read.name.as_str()), (registry, name), "{text}");
            assert_eq!(read.tag.as_deref(), tag, "{text}");
            assert_eq!(read.digest.as_deref(), digest.then_some(HEX), "{text}");
            assert_eq!(read.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_reference_is_refused_with_the_expected_form() {
        for text in [
            "oci://",
            "oci://x",
            "oci://name:tag",
            "oci://ada/pacman:1",
            "oci:///x:1",
            "oci://r.example/",
            "oci://r.example/X:1",
            "oci://r.example/x/../y:1",
            "oci://r.example/x//y:1",
            "oci://r.example/.x:1",
            "oci://r.example/x___y:1",
            "oci://r.example/x?y:1",
            "oci://r.example/x y:1",
            "oci://r.example/x:",
            "oci://r.example/x:-t",
            "oci://r.example/x:t/u",
            "oci://r.example/x:t:u",
            "oci://r.example/x:t@sha256:abc",
            "oci://r.example/x:t@sha512:00",
            "oci://user:password@r.example/x:1",
            "oci://r.example:0/x:1",
            "oci://r.example:99999/x:1",
            "oci://r.example:+1/x:1",
            "oci://-r.example/x:1",
            "oci://r..example/x:1",
            "oci://[::1/x:1",
            "oci://[zz]/x:1",
            "https://r.example/x:1",
        ] {
            let error = text.parse::<Reference>().unwrap_err().to_string();
            assert!(error.contains("oci://REGISTRY/NAME:TAG"), "{text}: {error}");
        }
        let upper = format!("oci://r.example/x@sha256:{}", HEX.to_uppercase());
        assert!(upper.parse::<Reference>().is_err());
        assert!(format!("oci://r.example/{}:1", "x".repeat(256)).parse::<Reference>().is_err());
        assert!(format!("oci://r.example/x:{}", "1".repeat(129)).parse::<Reference>().is_err());
    }

    #[test]
    fn an_update_follows_the_tag_and_not_the_digest() {
        let pinned: Reference = format!("oci://r.example/x:1@sha256:{HEX}").parse().unwrap();
        assert_eq!(pinned.latest().unwrap().to_string(), "oci://r.example/x:1");
        assert_eq!(pinned.latest().unwrap().at(HEX), pinned);
        let without: Reference = format!("oci://r.example/x@sha256:{HEX}").parse().unwrap();
        assert_eq!(without.latest(), None);
    }
}
