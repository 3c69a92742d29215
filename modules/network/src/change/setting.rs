//! Routes and addresses: as the kernel has them, as a caller wants them, and as `ip` sets them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use linux_sysadmin_sdk::prelude::*;
use serde_json::Value;

use super::cidr::Cidr;

/// The commands that add, remove and replace a route.
pub(crate) const ROUTE_PATTERN: &str = "ip route (add|del|replace) <cidr> [via <address>] [dev <interface>] [src <address>] \
     [proto <text>] [metric <int>] [table <int>] [onlink]";

/// The commands that add and remove an address, and put it back.
pub(crate) const ADDRESS_PATTERN: &str =
    "ip address (add|del|replace) <cidr> [broadcast <address>] dev <interface> [noprefixroute]";

/// A route with at most one gateway.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Route {
    pub(crate) to: Cidr,
    pub(crate) via: Option<IpAddr>,
    pub(crate) dev: String,
    pub(crate) src: Option<IpAddr>,
    pub(crate) metric: Option<u32>,
    /// None for the table `main`.
    pub(crate) table: Option<u32>,
    /// What made it, such as `dhcp`.
    pub(crate) protocol: Option<String>,
    /// True if the gateway counts as reachable on the link, whatever the addresses say.
    pub(crate) is_onlink: bool,
}

/// A setting of an interface that lasts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Setting {
    Route(Route),
    Address(Cidr),
}

impl Route {
    /// The command that does `verb` to the route.
    pub(crate) fn command(&self, verb: &str) -> Command {
        let mut words = vec!["route".to_owned(), verb.to_owned(), self.to.to_string()];
        let mut say = |name: &str, value: Option<String>| {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        };
        say("via", self.via.map(|via| via.to_string()));
        say("dev", Some(self.dev.clone()));
        say("src", self.src.map(|src| src.to_string()));
        say("proto", self.protocol.clone());
        say("metric", self.metric.map(|metric| metric.to_string()));
        say("table", self.table.map(|table| table.to_string()));
        if self.is_onlink {
            words.push("onlink".to_owned());
        }
        Command::new("ip").args(words).as_root()
    }

    /// The route in the words of ip-route(8).
    pub(crate) fn in_words(&self) -> String {
        let mut words = self.to.in_words();
        for (name, value) in [
            ("via", self.via.map(|via| via.to_string())),
            ("dev", Some(self.dev.clone())),
            ("metric", self.metric.map(|metric| metric.to_string())),
            ("table", self.table.map(|table| table.to_string())),
        ] {
            words.extend(value.map(|value| format!(" {name} {value}")));
        }
        words
    }

    /// True if both are one route for the kernel, which tells those to one destination apart by their metrics.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.is_for(other) && self.via == other.via && self.dev == other.dev
    }

    /// True if both are for one destination, and one of them would take the other's place.
    pub(crate) fn is_for(&self, other: &Self) -> bool {
        self.to == other.to && self.table == other.table && self.rank() == other.rank()
    }

    /// True if a file that has `self` has set the other one: the metric of a file counts only where it has one, since programs
    /// have defaults of their own.
    pub(crate) fn has_set(&self, other: &Self) -> bool {
        let is_metric = self.metric.is_none() || self.rank() == other.rank();
        self.to == other.to && self.via == other.via && self.table == other.table && is_metric
    }

    /// The metric, and the one that the kernel takes where none is given.
    fn rank(&self) -> u32 {
        match self.metric {
            Some(metric) if metric > 0 || !self.to.is_v6() => metric,
            _ if self.to.is_v6() => 1024,
            _ => 0,
        }
    }
}

/// A route as ip prints it, with whatever else it has.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Printed {
    #[serde(rename = "type")]
    kind: Option<String>,
    dst: String,
    gateway: Option<String>,
    dev: Option<String>,
    prefsrc: Option<String>,
    metric: Option<u32>,
    protocol: Option<String>,
    table: Option<String>,
    flags: Vec<String>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

impl Printed {
    /// True if the kernel itself made it from an address.
    pub(crate) fn is_kernels(&self) -> bool {
        self.protocol.as_deref() == Some("kernel")
    }

    /// True if it leads through the interface, by itself or by one of several gateways.
    pub(crate) fn is_through(&self, name: &str) -> bool {
        let hops = self.rest.get("nexthops").and_then(Value::as_array);
        self.dev.as_deref() == Some(name)
            || hops.is_some_and(|hops| hops.iter().any(|hop| hop.get("dev").is_some_and(|dev| dev == name)))
    }

    /// The destination, None for what isn't an ordinary route.
    pub(crate) fn to(&self, is_v6: bool) -> Option<Cidr> {
        match self.dst.as_str() {
            _ if self.kind.is_some() => None,
            "default" => Some(Cidr::everything(is_v6)),
            dst => Cidr::read(dst),
        }
    }

    /// The number of its table, None for the table `main`, and an error for a table that has a name only.
    pub(crate) fn table(&self) -> std::result::Result<Option<u32>, ()> {
        match self.table.as_deref() {
            None | Some("main") => Ok(None),
            Some(table) => table.parse().map(Some).map_err(drop),
        }
    }

    /// The route, where a command can put it back as it is. Otherwise what stands in the way.
    pub(crate) fn route(&self, is_v6: bool) -> std::result::Result<Route, String> {
        let to = self.to(is_v6).ok_or_else(|| format!("it is of the type {:?}", self.kind))?;
        let address = |text: &Option<String>| {
            let address = text.as_ref().map(|text| text.parse::<IpAddr>()).transpose();
            address.map_err(|_| "its addresses aren't plain ones".to_owned())
        };
        let harmless = |(name, value): &(&String, &Value)| match name.as_str() {
            "scope" | "cache" => true,
            "pref" => *value == "medium",
            _ => false,
        };
        if let Some((name, value)) = self.rest.iter().find(|entry| !harmless(entry)) {
            return Err(match name.as_str() {
                "nexthops" => "it has several gateways".to_owned(),
                _ => format!("it has {name} {value}"),
            });
        }
        let odd = ["linkdown", "dead", "onlink", "offload", "rt_offload"];
        if let Some(flag) = self.flags.iter().find(|flag| !odd.contains(&flag.as_str())) {
            return Err(format!("it has the flag {flag}"));
        }
        Ok(Route {
            to,
            via: address(&self.gateway)?,
            dev: self.dev.clone().ok_or("it has no interface")?,
            src: address(&self.prefsrc)?,
            metric: self.metric.filter(|metric| *metric > 0),
            table: self.table().map_err(|()| "its table has no number".to_owned())?,
            protocol: self.protocol.clone(),
            is_onlink: self.flags.iter().any(|flag| flag == "onlink"),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn printed(json: &str) -> std::result::Result<Route, String> {
        serde_json::from_str::<Printed>(json).unwrap().route(false)
    }

    #[test]
    fn a_route_that_was_removed_comes_back_by_a_command() {
        // Written by hand after routes that iproute2 6.1.0 printed.
        for (json, command) in [
            (
                r#"{"dst":"default","gateway":"192.0.2.1","dev":"eth0","protocol":"dhcp","prefsrc":"192.0.2.10","metric":100,"flags":[]}"#,
                "route add 0.0.0.0/0 via 192.0.2.1 dev eth0 src 192.0.2.10 proto dhcp metric 100",
            ),
            (
                r#"{"dst":"172.16.0.0/12","gateway":"10.8.0.2","dev":"br0","flags":["onlink","linkdown"]}"#,
                "route add 172.16.0.0/12 via 10.8.0.2 dev br0 onlink",
            ),
            (
                r#"{"dst":"10.9.0.0/16","dev":"eth0","table":"100","scope":"link","flags":[]}"#,
                "route add 10.9.0.0/16 dev eth0 table 100",
            ),
        ] {
            assert_eq!(printed(json).unwrap().command("add").args.join(" "), command);
        }
        for (json, why) in [
            (
                r#"{"dst":"198.18.0.0/15","flags":[],"nexthops":[{"gateway":"192.0.2.2"}]}"#,
                "several gateways",
            ),
            (r#"{"type":"blackhole","dst":"203.0.113.0/24","flags":[]}"#, "blackhole"),
            (r#"{"dst":"10.0.0.0/8","dev":"eth0","flags":[],"metrics":[{"mtu":1400}]}"#, "mtu"),
            (r#"{"dst":"10.0.0.0/8","dev":"eth0","flags":["pervasive"]}"#, "pervasive"),
            (r#"{"dst":"10.0.0.0/8","gateway":"x","dev":"eth0"}"#, "addresses"),
            (r#"{"dst":"10.0.0.0/8","dev":"eth0","table":"vpn"}"#, "table"),
            (r#"{"dst":"10.0.0.0/8"}"#, "no interface"),
        ] {
            let said = printed(json).unwrap_err();
            assert!(said.contains(why), "{json}: {said}");
        }
    }

    #[test]
    fn routes_are_told_apart_by_their_metrics() {
        let of = |to: &str, metric| Route {
            to: Cidr::read(to).unwrap(),
            via: None,
            dev: "eth0".into(),
            src: None,
            metric,
            table: None,
            protocol: None,
            is_onlink: false,
        };
        assert!(of("10.0.0.0/8", None).is_for(&of("10.0.0.0/8", Some(0))));
        assert!(!of("10.0.0.0/8", None).is_for(&of("10.0.0.0/8", Some(100))));
        assert!(of("2001:db8::/32", None).is_for(&of("2001:db8::/32", Some(1024))));
        // A file without a metric may have set a route with one.
        assert!(of("10.0.0.0/8", None).has_set(&of("10.0.0.0/8", Some(100))));
        assert!(!of("10.0.0.0/8", Some(5)).has_set(&of("10.0.0.0/8", Some(100))));
    }
}
