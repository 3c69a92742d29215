//! Interfaces as `ip -json -details -statistics address show` describes them.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::prelude::*;
use serde_json::Value;

use crate::change::cidr::Cidr;
use crate::ip;

/// Prints interfaces with their addresses, kinds and counters.
pub(crate) const LINKS: CommandLine = CommandLine::new("ip -json -details -statistics address show");

/// An interface.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Link {
    pub(crate) ifindex: u64,
    pub(crate) ifname: String,
    pub(crate) altnames: Vec<String>,
    /// The interface below a VLAN or a macvlan, and the other end of a pair.
    pub(crate) link: Option<String>,
    /// A number where that one is in another network namespace.
    link_netnsid: Option<i64>,
    pub(crate) master: Option<String>,
    flags: Vec<String>,
    pub(crate) mtu: u64,
    operstate: String,
    pub(crate) link_type: String,
    #[serde(rename = "address")]
    pub(crate) mac: Option<String>,
    pub(crate) ifalias: Option<String>,
    linkinfo: Info,
    pub(crate) addr_info: Vec<Address>,
    stats64: Counters,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Info {
    info_kind: Option<String>,
    info_data: BTreeMap<String, Value>,
    info_slave_data: BTreeMap<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Counters {
    rx: BTreeMap<String, Value>,
    tx: BTreeMap<String, Value>,
}

/// An address of an interface.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Address {
    pub(crate) local: String,
    prefixlen: u64,
    scope: String,
    /// The peer's address on a link from point to point.
    pub(crate) address: Option<String>,
    pub(crate) broadcast: Option<String>,
    pub(crate) noprefixroute: bool,
    pub(crate) dynamic: bool,
    temporary: bool,
    deprecated: bool,
    tentative: bool,
    dadfailed: bool,
}

impl Address {
    /// The address with its length.
    pub(crate) fn cidr(&self) -> Option<Cidr> {
        Cidr::read(&format!("{}/{}", self.local, self.prefixlen))
    }
}

/// The counters of one direction that tell of a fault, and the names that they have in an answer.
const FAULTS: [&str; 6] =
    ["errors", "dropped", "over_errors", "missed_errors", "carrier_errors", "collisions"];

/// Reads the output of [`LINKS`]. What has no name is left out.
pub(crate) fn parse(output: linux_sysadmin_sdk::Output) -> Result<Vec<Link>> {
    let mut links = ip::objects::<Link>(output)?.list;
    links.retain(|link| !link.ifname.is_empty());
    Ok(links)
}

impl Link {
    /// The state in the words of administrators: an interface may be switched on and have no carrier.
    pub(crate) fn state(&self) -> &'static str {
        let has = |flag: &str| self.flags.iter().any(|own| own == flag);
        if !has("UP") {
            return "down";
        }
        match self.operstate.as_str() {
            "LOWERLAYERDOWN" => "lower layer down",
            "DORMANT" => "dormant",
            "DOWN" | "NOTPRESENT" => "no carrier",
            _ if has("NO-CARRIER") => "no carrier",
            _ => "up",
        }
    }

    /// `bridge`, `vlan`, `veth` and so on. None for hardware.
    pub(crate) fn kind(&self) -> Option<&str> {
        let is_loopback = self.link_type == "loopback";
        self.linkinfo.info_kind.as_deref().or(is_loopback.then_some("loopback"))
    }

    /// The number of a VLAN.
    pub(crate) fn vlan(&self) -> Option<u64> {
        self.kind().filter(|kind| *kind == "vlan").and_then(|_| self.linkinfo.info_data.get("id")?.as_u64())
    }

    /// What is particular to the kind, such as a bond's mode and the member that it uses.
    pub(crate) fn detail(&self) -> Option<String> {
        let of = |name: &str| self.linkinfo.info_data.get(name)?.as_str().map(str::to_owned);
        match self.kind()? {
            "bond" => {
                let active = of("active_slave").map(|active| format!(", active {active}"));
                Some(format!("{}{}", of("mode")?, active.unwrap_or_default()))
            }
            "veth" if self.link.is_none() && self.link_netnsid.is_some() => {
                Some("its other end is in another network namespace, as of a container".to_owned())
            }
            "vxlan" => Some(format!("id {}", self.linkinfo.info_data.get("id")?.as_u64()?)),
            "vrf" => Some(format!("table {}", self.linkinfo.info_data.get("table")?.as_u64()?)),
            _ => None,
        }
    }

    /// The state of a member of a bond, where it isn't in use as it should be.
    pub(crate) fn member_fault(&self) -> Option<String> {
        let status = self.linkinfo.info_slave_data.get("mii_status")?.as_str()?;
        (status != "UP").then(|| format!("as a member of a bond it is {}", status.to_lowercase()))
    }

    /// The addresses with their lengths, each with a word where it isn't an ordinary one.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let shown = |address: &Address| {
            let mut shown = format!("{}/{}", address.local, address.prefixlen);
            if let Some(peer) = &address.address {
                shown = format!("{} peer {peer}/{}", address.local, address.prefixlen);
            }
            for (is_so, word) in [
                (address.scope == "link", "link-local"),
                (address.dynamic, "dynamic"),
                (address.temporary, "temporary"),
                (address.deprecated, "deprecated"),
                (address.tentative && !address.dadfailed, "tentative"),
                (address.dadfailed, "duplicate"),
            ] {
                if is_so {
                    shown.push(' ');
                    shown.push_str(word);
                }
            }
            shown
        };
        self.addr_info.iter().filter(|address| !address.local.is_empty()).map(shown).collect()
    }

    /// The addresses that another machine has as well, so that the kernel doesn't use them.
    pub(crate) fn duplicates(&self) -> impl Iterator<Item = &str> {
        self.addr_info.iter().filter(|address| address.dadfailed).map(|address| address.local.as_str())
    }

    /// The counters of faults that aren't zero, such as `rx_dropped`.
    pub(crate) fn faults(&self) -> BTreeMap<String, u64> {
        let of = |direction: &'static str, counters: &BTreeMap<String, Value>| {
            let named = |name: &&str| Some((format!("{direction}_{name}"), counters.get(*name)?.as_u64()?));
            FAULTS.iter().filter_map(named).filter(|(_, count)| *count > 0).collect::<Vec<_>>()
        };
        of("rx", &self.stats64.rx).into_iter().chain(of("tx", &self.stats64.tx)).collect()
    }

    /// The networks that it is in by its addresses.
    pub(crate) fn networks(&self) -> impl Iterator<Item = Cidr> {
        self.addr_info.iter().filter_map(Address::cidr).map(|address| address.network())
    }

    /// Says whether this is the interface's name, or another one of it.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.ifname == name || self.altnames.iter().any(|other| other == name)
    }
}
