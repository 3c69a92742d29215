//! systemd-resolved, as it describes itself on the bus, see org.freedesktop.resolve1(5).
//!
//! `resolvectl status` has JSON only in the newest versions; busctl(1) prints the same properties since version 240. A property
//! that an older version doesn't have ends the output, and therefore the older properties come first.

use std::net::IpAddr;

use linux_sysadmin_sdk::{Output, prelude::*};
use serde_json::Value;

/// Says whether it runs. Asking on the bus would start it.
pub(crate) const IS_ACTIVE: CommandLine = CommandLine::new("systemctl is-active -- systemd-resolved.service");

/// Prints its settings, a line for each.
pub(crate) const MANAGER: CommandLine = CommandLine::new(
    "busctl --json=short get-property org.freedesktop.resolve1 /org/freedesktop/resolve1 \
     org.freedesktop.resolve1.Manager DNS Domains DNSSEC DNSOverTLS FallbackDNS",
);

/// Prints the settings of one link. The bus writes the first digit of its number as `_3` and the digit.
pub(crate) const LINK: CommandLine = CommandLine::new(
    "busctl --json=short get-property org.freedesktop.resolve1 /org/freedesktop/resolve1/link/_3<int> \
     org.freedesktop.resolve1.Link DNSSEC DNSOverTLS DefaultRoute CurrentDNSServer",
);

/// Prints the servers of one link.
pub(crate) const LINK_SERVERS: CommandLine = CommandLine::new(
    "busctl --json=short get-property org.freedesktop.resolve1 /org/freedesktop/resolve1/link/_3<int> \
     org.freedesktop.resolve1.Link DNS",
);

/// The number of the loopback interface. Each server at a loopback address is told under it, whoever has set it.
const LOOPBACK: u64 = 1;

/// The settings for the whole machine, and which link has which servers and domains.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Settings {
    /// Number 0 stands for the machine itself.
    pub(crate) servers: Vec<(u64, String)>,
    /// A `~` stands in front of a domain that only routes queries.
    pub(crate) domains: Vec<(u64, String)>,
    pub(crate) dnssec: Option<String>,
    pub(crate) dns_over_tls: Option<String>,
    pub(crate) fallback: Vec<String>,
}

impl Settings {
    /// The numbers of the links that have servers or domains, each once.
    pub(crate) fn links(&self) -> Vec<u64> {
        let mut links: Vec<u64> = self
            .servers
            .iter()
            .chain(&self.domains)
            .map(|(link, _)| *link)
            .filter(|link| *link > 0)
            .collect();
        links.sort_unstable();
        links.dedup();
        links
    }

    /// Gives the servers at loopback addresses to those of these links that have them, and the others to the machine itself.
    pub(crate) fn placed(mut self, links: &[u64], cx: &Context) -> Self {
        if !self.servers.iter().any(|(number, _)| *number == LOOPBACK) {
            return self;
        }
        let others: Vec<u64> = links.iter().copied().filter(|number| *number != LOOPBACK).collect();
        let outputs =
            cx.run_all(others.iter().map(|number| LINK_SERVERS.with([number.to_string()])).collect());
        let mut own: Vec<(u64, String)> = Vec::new();
        for (number, output) in others.into_iter().zip(outputs) {
            let servers = output.map(|output| link_servers(&output)).unwrap_or_default();
            own.extend(servers.into_iter().map(|server| (number, server)));
        }
        for (number, server) in self.servers.iter_mut().filter(|(number, _)| *number == LOOPBACK) {
            let at = own.iter().position(|(_, other)| other == server);
            *number = at.map_or(0, |at| own.remove(at).0);
        }
        self
    }
}

/// The settings of one link.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct LinkSettings {
    pub(crate) dnssec: Option<String>,
    pub(crate) dns_over_tls: Option<String>,
    pub(crate) default_route: Option<bool>,
    pub(crate) current: Option<String>,
}

/// The value of each line, None for one that isn't there.
fn values<const N: usize>(output: &Output) -> [Option<Value>; N] {
    let text = output.text();
    let mut lines = text.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).ok()?;
        Some(line.get_mut("data")?.take())
    });
    std::array::from_fn(|_| lines.next().flatten())
}

/// Reads the output of [`MANAGER`].
pub(crate) fn settings(output: &Output) -> Settings {
    let [servers, domains, dnssec, dns_over_tls, fallback] = values(output);
    let list = |value: &Option<Value>| value.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
    let server = |item: &Value| Some((item.get(0)?.as_u64()?, address(item.get(2)?)?));
    let domain = |item: &Value| {
        let routes_only = item.get(2)?.as_bool()?;
        let name = item.get(1)?.as_str()?;
        Some((item.get(0)?.as_u64()?, format!("{}{name}", if routes_only { "~" } else { "" })))
    };
    Settings {
        servers: list(&servers).iter().filter_map(server).collect(),
        domains: list(&domains).iter().filter_map(domain).collect(),
        dnssec: text(dnssec),
        dns_over_tls: text(dns_over_tls),
        fallback: list(&fallback).iter().filter_map(server).map(|(_, address)| address).collect(),
    }
}

/// Reads the output of [`LINK`].
pub(crate) fn link(output: &Output) -> LinkSettings {
    let [dnssec, dns_over_tls, default_route, current] = values(output);
    LinkSettings {
        dnssec: text(dnssec),
        dns_over_tls: text(dns_over_tls),
        default_route: default_route.and_then(|value| value.as_bool()),
        current: current.and_then(|value| address(value.get(1)?)),
    }
}

/// Reads the output of [`LINK_SERVERS`].
fn link_servers(output: &Output) -> Vec<String> {
    let [servers] = values(output);
    let list = servers.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
    list.iter().filter_map(|item| address(item.get(1)?)).collect()
}

fn text(value: Option<Value>) -> Option<String> {
    value?.as_str().map(str::to_owned)
}

/// An address as the bus has it, a list of bytes.
fn address(bytes: &Value) -> Option<String> {
    let bytes = bytes.as_array()?.iter().map(|byte| u8::try_from(byte.as_u64()?).ok());
    let bytes: Vec<u8> = bytes.collect::<Option<_>>()?;
    let address = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        16 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
        _ => return None,
    };
    Some(address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::output;

    #[test]
    fn what_an_older_version_lacks_is_unknown() {
        let said = "{\"type\":\"a(iiay)\",\"data\":[[0,2,[192,0,2,53]],[2,10,[32,1,13,184,0,0,0,0,0,0,0,0,0,0,0,83]],[3,2,[1,2]]]}\n\
                    {\"type\":\"a(isb)\",\"data\":[[2,\"corp.example\",false],[3,\".\",true]]}\n{\"type\":\"s\",\"data\":\"allow-downgrade\"}\n";
        let found = settings(&output(1, said, "Failed to get property DNSOverTLS"));
        assert_eq!(found.servers, [(0, "192.0.2.53".to_owned()), (2, "2001:db8::53".to_owned())]);
        assert_eq!(found.domains, [(2, "corp.example".to_owned()), (3, "~.".to_owned())]);
        assert_eq!((found.dnssec.as_deref(), found.dns_over_tls.as_deref()), (Some("allow-downgrade"), None));
        assert_eq!(found.links(), [2, 3]);
        for said in ["", "garbage", "{}\n[]\n", "{\"data\":7}\n"] {
            assert_eq!(settings(&output(0, said, "")), Settings::default(), "{said}");
            assert_eq!(link(&output(0, said, "")), LinkSettings::default(), "{said}");
        }
    }
}
