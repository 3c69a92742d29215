//! Validators of what a machine talks to: interfaces, addresses, hosts, URLs and images.

use std::net::{IpAddr, Ipv6Addr};

use super::{all_digits, all_of, begins_with_alphanumeric, ends_with_alphanumeric, quantity};

/// The kernel's `dev_valid_name` refuses slashes, blanks, `.` and `..` and more than 15 bytes. This accepts only the
/// characters that names have in practice. It refuses `+`, which iptables(8) reads as a wildcard.
pub(super) fn is_interface(value: &str) -> bool {
    value.len() <= 15
        && value.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && all_of(value, "_.:@-")
}

pub(super) fn is_port(value: &str) -> bool {
    quantity::is_int(value) && value.parse::<u16>().is_ok_and(|port| port > 0)
}

#[rustfmt::skip]
pub(super) const PROTOCOLS: &[&str] = &[
    "ah", "dccp", "esp", "gre", "icmp", "icmpv6", "igmp", "ipcomp", "ipip", "ipv6-icmp", "l2tp", "ospf",
    "pim", "sctp", "tcp", "udp", "udplite", "vrrp",
];

pub(super) fn is_protocol(value: &str) -> bool {
    PROTOCOLS.contains(&value)
}

pub(super) fn is_address(value: &str) -> bool {
    value.parse::<IpAddr>().is_ok()
}

pub(super) fn is_cidr(value: &str) -> bool {
    let Some((address, prefix)) = value.split_once('/') else { return false };
    let longest = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    quantity::is_int(prefix) && prefix.parse::<u8>().is_ok_and(|prefix| prefix <= longest)
}

/// RFC 1123 section 2.1: labels of letters, digits and inner dashes, 63 each, 253 in all. A name whose last
/// label is a number is refused: inet_aton(3) reads `127.1`, `2130706433` and `0x7f.1` as addresses.
pub(super) fn is_host(value: &str) -> bool {
    if is_address(value) {
        return true;
    }
    let is_label = |label: &str| {
        label.len() <= 63
            && begins_with_alphanumeric(label)
            && ends_with_alphanumeric(label)
            && all_of(label, "-")
    };
    let last = value.rsplit('.').next().unwrap_or(value);
    let is_number = all_digits(last) || last.starts_with("0x") || last.starts_with("0X");
    value.len() <= 253 && !is_number && value.split('.').all(is_label)
}

/// RFC 3986, but only `http` and `https`: every other scheme that curl(1) or dnf(8) know reads files or speaks another
/// protocol. User information is refused, because it would put a password on a command line.
pub(super) fn is_url(value: &str) -> bool {
    let Some(rest) = value.strip_prefix("https://").or_else(|| value.strip_prefix("http://")) else {
        return false;
    };
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    value.len() <= 2048 && is_authority(authority) && is_url_text(rest)
}

fn is_authority(value: &str) -> bool {
    if let Some(bracketed) = value.strip_prefix('[') {
        let Some((address, port)) = bracketed.split_once(']') else { return false };
        return address.parse::<Ipv6Addr>().is_ok()
            && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    match value.split_once(':') {
        Some((host, port)) => is_host(host) && is_port(port),
        None => is_host(value),
    }
}

/// Path, query and fragment: unreserved, sub-delims, `:@/?#`, and percent-encoded bytes that are no control
/// characters. Brackets and braces are refused, because curl expands them.
fn is_url_text(value: &str) -> bool {
    let mut bytes = value.bytes();
    let hex = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => match (hex(bytes.next()), hex(bytes.next())) {
                (Some(high), Some(low)) if high >= 2 && (high, low) != (7, 15) => {}
                _ => return false,
            },
            _ if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?#".contains(&byte) => {}
            _ => return false,
        }
    }
    true
}

/// Words in front of a colon that podman(1) and skopeo(1) read as "the image lies there",
/// containers-transports(5).
#[rustfmt::skip]
const TRANSPORTS: &[&str] = &[
    "atomic", "containers-storage", "dir", "docker", "docker-archive", "docker-daemon", "oci", "oci-archive",
    "ostree", "sif", "tarball",
];

/// `[host[:port]/]name[/name]...[:tag][@algorithm:digest]`, the reference grammar of the distribution project.
pub(super) fn is_image(value: &str) -> bool {
    let (rest, digest) = match value.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (value, None),
    };
    let (name, tag) = match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (rest, None),
    };
    let path = match name.split_once('/') {
        // Only a dot, a port or `localhost` makes the first part a registry.
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => {
            if !is_authority(host) {
                return false;
            }
            path
        }
        _ => name,
    };
    name.len() <= 255
        && !(tag.is_some() && TRANSPORTS.contains(&name))
        && path.split('/').all(is_image_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest)
}

/// Lower-case letters and digits, with `.`, `_`, `__` or dashes between them.
fn is_image_component(value: &str) -> bool {
    value.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b))
        && begins_with_alphanumeric(value)
        && ends_with_alphanumeric(value)
        && value
            .split(|c: char| c.is_ascii_alphanumeric())
            .all(|between| matches!(between, "" | "." | "_" | "__") || between.bytes().all(|b| b == b'-'))
}

fn is_tag(value: &str) -> bool {
    (1..=128).contains(&value.len()) && !value.starts_with(['.', '-']) && all_of(value, "_.-")
}

fn is_digest(value: &str) -> bool {
    value.split_once(':').is_some_and(|(algorithm, hex)| {
        begins_with_alphanumeric(algorithm)
            && all_of(algorithm, "+._-")
            && (32..=256).contains(&hex.len())
            && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}
