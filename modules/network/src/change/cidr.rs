//! Networks and addresses with a length, as callers and files write them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linux_sysadmin_sdk::{prelude::*, text};

/// An address and the length of its network. The address of a network has no bits behind that length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) length: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl Serialize for Cidr {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Cidr {
    /// The network that holds every address of the family.
    pub(crate) fn everything(is_v6: bool) -> Self {
        let address = if is_v6 { Ipv6Addr::UNSPECIFIED.into() } else { IpAddr::from(Ipv4Addr::UNSPECIFIED) };
        Self { address, length: 0 }
    }

    /// The network of the one address.
    pub(crate) fn host(address: IpAddr) -> Self {
        Self { address, length: longest(address) }
    }

    /// Reads `192.0.2.0/24`, and an address alone as the network of itself. None for anything else.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let Some((address, length)) = text.split_once('/') else { return text.parse().ok().map(Self::host) };
        let address = address.parse().ok()?;
        let is_number = length.bytes().all(|byte| byte.is_ascii_digit());
        let length = length.parse().ok().filter(|length| is_number && *length <= longest(address))?;
        Some(Self { address, length })
    }

    pub(crate) fn is_v6(&self) -> bool {
        self.address.is_ipv6()
    }

    /// True if it holds every address, as a default route's destination does.
    pub(crate) fn is_everything(&self) -> bool {
        self.length == 0
    }

    /// The network that the address is in.
    pub(crate) fn network(&self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
                IpAddr::from(Ipv4Addr::from(u32::from(address) & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0);
                IpAddr::from(Ipv6Addr::from(u128::from(address) & mask))
            }
        };
        Self { address, length: self.length }
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv6() == self.is_v6()
            && Self { address, length: self.length }.network().address == self.network().address
    }

    /// How messages and files name a destination: `default` for everything.
    pub(crate) fn in_words(&self) -> String {
        match self.is_everything() {
            true => "default".to_owned(),
            false => self.to_string(),
        }
    }
}

fn longest(address: IpAddr) -> u8 {
    if address.is_ipv6() { 128 } else { 32 }
}

/// The destination of a route: a network, an address, or `default`, which `any` and `all` mean as well. The gateway tells the
/// family of `default`, which is IPv4 without one.
///
/// Problems: `INVALID_NETWORK`.
pub(crate) fn destination(asked: &str, via: Option<IpAddr>) -> Result<Cidr> {
    let bare = asked.trim();
    if matches!(bare.to_ascii_lowercase().as_str(), "default" | "any" | "all") {
        return Ok(Cidr::everything(via.is_some_and(|via| via.is_ipv6())));
    }
    let found = Cidr::read(bare).ok_or_else(|| {
        let message = format!(
            "to is {:?}: expected a network such as 10.8.0.0/16 or 2001:db8::/32, one address, or default",
            text::excerpt(asked, 60)
        );
        Problem::validation("INVALID_NETWORK", message)
    })?;
    if found != found.network() {
        let message = format!("{found} has bits behind its length: expected the network {}", found.network());
        return Err(Problem::validation("INVALID_NETWORK", message));
    }
    Ok(found)
}

/// An address with the length of its network.
///
/// Problems: `INVALID_ADDRESS` for anything else, and for an address that no interface can have.
pub(crate) fn interface_address(asked: &str) -> Result<Cidr> {
    let bare = asked.trim();
    let refused = |expected: &str| {
        let message = format!("address is {:?}: expected {expected}", text::excerpt(asked, 60));
        Err(Problem::validation("INVALID_ADDRESS", message))
    };
    let Some(found) = Cidr::read(bare).filter(|_| bare.contains('/')) else {
        return refused("an address with its length, such as 192.0.2.7/24 or 2001:db8::7/64");
    };
    if found.length == 0 || found.address.is_unspecified() || found.address.is_multicast() {
        return refused("the address of one machine, with a length of at least 1");
    }
    let IpAddr::V4(address) = found.address else { return Ok(found) };
    let rest = u32::MAX.checked_shr(u32::from(found.length)).unwrap_or(0);
    let number = u32::from(address) & rest;
    // A network of two addresses or one has no broadcast address, see RFC 3021.
    if found.length < 31 && (number == 0 || number == rest) {
        return refused("the address of one machine, and this is its network's own or its broadcast address");
    }
    Ok(found)
}

/// One address, of a gateway or a server.
///
/// Problems: `INVALID_ADDRESS`.
pub(crate) fn one_address(argument: &str, asked: &str) -> Result<IpAddr> {
    let found = asked.trim().parse::<IpAddr>().ok();
    found.filter(|address| !address.is_unspecified() && !address.is_multicast()).ok_or_else(|| {
        let message = format!(
            "{argument} is {:?}: expected the address of one machine, such as 192.0.2.1 or 2001:db8::1",
            text::excerpt(asked, 60)
        );
        Problem::validation("INVALID_ADDRESS", message)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_a_network_without_further_bits() {
        let v6: IpAddr = "2001:db8::1".parse().unwrap();
        for (asked, via, expected) in [
            ("10.8.0.0/16", None, "10.8.0.0/16"),
            ("192.0.2.7", None, "192.0.2.7/32"),
            ("2001:db8::/32", None, "2001:db8::/32"),
            ("::1", None, "::1/128"),
            ("default", None, "0.0.0.0/0"),
            (" ANY ", None, "0.0.0.0/0"),
            ("default", Some(v6), "::/0"),
            ("::/0", None, "::/0"),
            ("0.0.0.0/0", None, "0.0.0.0/0"),
        ] {
            assert_eq!(destination(asked, via).unwrap().to_string(), expected, "{asked}");
        }
        for asked in [
            "",
            "10.8.0.1/16",
            "2001:db8::1/32",
            "10.8.0.0/33",
            "10.8.0.0/-1",
            "10.8.0.0/+8",
            "10.8.0.0/",
            "10.8/16",
            "db.example",
            "-4",
            "10.8.0.0/16 via 192.0.2.1",
            "0",
            "10.8.0.0/255.255.0.0",
        ] {
            assert_eq!(destination(asked, None).unwrap_err().code, "INVALID_NETWORK", "{asked}");
        }
        assert!(destination("10.8.0.1/16", None).unwrap_err().message.contains("10.8.0.0/16"));
    }

    #[test]
    fn an_interface_has_the_address_of_one_machine() {
        for good in
            ["192.0.2.7/24", "2001:db8::7/64", "192.0.2.6/31", "192.0.2.0/31", "192.0.2.0/32", "fe80::1/64"]
        {
            assert_eq!(interface_address(good).unwrap().to_string(), good);
        }
        for bad in [
            "192.0.2.7",
            "192.0.2.0/24",
            "192.0.2.255/24",
            "0.0.0.0/0",
            "192.0.2.7/0",
            "224.0.0.1/24",
            "ff02::1/64",
            "::/64",
            "any",
            "-4",
            "",
        ] {
            assert_eq!(interface_address(bad).unwrap_err().code, "INVALID_ADDRESS", "{bad}");
        }
        for bad in ["", "0.0.0.0", "::", "ff02::1", "192.0.2.1/24", "gw", "fe80::1%eth0", "-1"] {
            assert_eq!(one_address("via", bad).unwrap_err().code, "INVALID_ADDRESS", "{bad}");
        }
    }

    #[test]
    fn a_network_holds_the_addresses_of_its_family() {
        let of = |text: &str| Cidr::read(text).unwrap();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(of("192.0.2.0/24").contains(address("192.0.2.255")));
        assert!(!of("192.0.2.0/24").contains(address("192.0.3.0")));
        assert!(of("0.0.0.0/0").contains(address("203.0.113.9")));
        assert!(!of("0.0.0.0/0").contains(address("::1")));
        assert!(of("::/0").contains(address("2001:db8::1")));
        assert!(of("192.0.2.7/32").contains(address("192.0.2.7")));
    }
}
