//! The other machine that a tool is asked about, and the addresses that its name has for this machine.

use std::net::IpAddr;

use linux_sysadmin_sdk::{Output, prelude::*};

use crate::name;

/// Prints the addresses of a name as programs of this machine get them. A server that doesn't answer keeps it waiting.
pub(crate) const ADDRESSES: CommandLine = CommandLine::new("timeout 8 getent ahosts -- <host>");

/// The exit code of timeout(1) where the time was up.
pub(crate) const TIME_IS_UP: i32 = 124;

/// The exit code of timeout(1) where it can't find the program.
pub(crate) const PROGRAM_IS_MISSING: i32 = 127;

/// The exit code of `getent` where there is no such name.
const NOT_FOUND: i32 = 2;

/// So many addresses of a name are tried.
pub(crate) const MOST: usize = 4;

/// A name, or an address.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Target {
    Name(String),
    Address(IpAddr),
}

/// The family of addresses that a caller wants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Family {
    Any,
    V4,
    V6,
}

impl Family {
    /// Problems: `INVALID_FAMILY` for anything but 4 and 6.
    pub(crate) fn of(asked: Option<i64>) -> Result<Self> {
        match asked {
            None => Ok(Self::Any),
            Some(4) => Ok(Self::V4),
            Some(6) => Ok(Self::V6),
            Some(other) => {
                let message = format!("family is {other}: expected 4 or 6, or no such argument for both");
                Err(Problem::validation("INVALID_FAMILY", message))
            }
        }
    }

    fn admits(self, address: &IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
        }
    }
}

/// What came of asking for the addresses of a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Found {
    Addresses(Vec<IpAddr>),
    /// The name has no address, as far as the sources of this machine know.
    Nothing,
    /// No answer came in time.
    NoAnswer,
}

impl Target {
    /// Reads a target. Brackets around an IPv6 address are taken off.
    ///
    /// Problems: `INVALID_NAME` for anything else.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let bare = text.trim();
        let bare = bare.strip_prefix('[').and_then(|bare| bare.strip_suffix(']')).unwrap_or(bare);
        match bare.parse() {
            Ok(address) => Ok(Self::Address(address)),
            Err(_) => name::check(bare).map(|name| Self::Name(name.to_owned())),
        }
    }

    /// The name, for a certificate.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Address(_) => None,
        }
    }

    /// The addresses that programs of this machine would use.
    pub(crate) fn find(&self, family: Family, cx: &Context) -> Result<Found> {
        match self {
            Self::Address(address) if family.admits(address) => Ok(Found::Addresses(vec![*address])),
            Self::Address(address) => {
                let message = format!("{address} isn't of the family that is asked for");
                Err(Problem::validation("INVALID_FAMILY", message))
            }
            // getent takes no underscores, which only records of services have.
            Self::Name(name) if name.contains('_') => Ok(Found::Nothing),
            Self::Name(name) => found(cx.run(ADDRESSES.with([name]))?, family),
        }
    }

    /// The addresses, or a problem where there are none: `NAME_NOT_FOUND`, `NAME_NO_ANSWER`.
    pub(crate) fn addresses(&self, family: Family, cx: &Context) -> Result<Vec<IpAddr>> {
        let name = self.name().unwrap_or_default();
        match self.find(family, cx)? {
            Found::Addresses(addresses) => Ok(addresses),
            Found::Nothing => {
                let message = format!("this machine finds no such address of {name}");
                Err(Problem::not_found("NAME_NOT_FOUND", message).remedy(next(name)))
            }
            Found::NoAnswer => {
                let message =
                    format!("no answer came within 8 s when this machine asked for the address of {name}");
                let problem = Problem::new("NAME_NO_ANSWER", linux_sysadmin_sdk::Category::Network, message);
                Err(problem.remedy(next(name)))
            }
        }
    }
}

fn next(name: &str) -> String {
    format!("net_explain(target={name}) tells which server, search domain or source is at fault")
}

fn found(output: Output, family: Family) -> Result<Found> {
    match output.exit_code {
        TIME_IS_UP => return Ok(Found::NoAnswer),
        NOT_FOUND => return Ok(Found::Nothing),
        _ => {}
    }
    let output = output.success("getent")?;
    let mut addresses: Vec<IpAddr> = Vec::new();
    // Each address stands there once for every type of socket.
    for line in output.text().lines() {
        let Some(Ok(address)) = line.split_whitespace().next().map(str::parse::<IpAddr>) else { continue };
        if family.admits(&address) && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses.truncate(MOST);
    Ok(if addresses.is_empty() { Found::Nothing } else { Found::Addresses(addresses) })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::output;

    #[test]
    fn each_address_counts_once_and_in_the_order_in_which_programs_try_them() {
        // Recorded with getent of glibc 2.36, and an address with a zone.
        let said = "2001:db8::7     STREAM db.example\n2001:db8::7     DGRAM  \n192.0.2.7       STREAM \n192.0.2.7       RAW\nfe80::1%eth0 STREAM\n";
        let of = |family| found(output(0, said, ""), family).unwrap();
        let [v6, v4] = ["2001:db8::7", "192.0.2.7"].map(|text| text.parse::<IpAddr>().unwrap());
        assert_eq!(of(Family::Any), Found::Addresses(vec![v6, v4]));
        assert_eq!(of(Family::V4), Found::Addresses(vec![v4]));
        assert_eq!(found(output(2, "", ""), Family::Any).unwrap(), Found::Nothing);
        assert_eq!(found(output(124, "", ""), Family::Any).unwrap(), Found::NoAnswer);
        assert_eq!(found(output(0, "", ""), Family::Any).unwrap(), Found::Nothing);
        assert_eq!(found(output(1, "", "x"), Family::Any).unwrap_err().code, "COMMAND_FAILED");
    }

    #[test]
    fn a_target_is_a_name_or_an_address() {
        assert_eq!(Target::parse("[2001:db8::7]").unwrap(), Target::Address("2001:db8::7".parse().unwrap()));
        assert_eq!(Target::parse(" 192.0.2.7 ").unwrap(), Target::Address("192.0.2.7".parse().unwrap()));
        assert_eq!(Target::parse("db.example.").unwrap(), Target::Name("db.example".to_owned()));
        for text in ["192.0.2.7/24", "192.0.2.7:80", "http://db", "", "-c1", "127.1", "fe80::1%eth0"] {
            assert_eq!(Target::parse(text).unwrap_err().code, "INVALID_NAME", "{text}");
        }
    }
}
