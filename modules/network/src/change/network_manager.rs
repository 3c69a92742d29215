//! A connection of NetworkManager, see nm-settings-nmcli(5). nmcli changes what the connection has for the next time that it is
//! brought up, and has the device take it over at once without going down.

use std::collections::BTreeMap;
use std::net::IpAddr;

use linux_sysadmin_sdk::{Category, prelude::*};

use super::cidr::Cidr;
use super::edit::Dns;
use super::setting::{Route, Setting};
use crate::managers;

const UUID: CommandLine = CommandLine::new("nmcli --terse --fields GENERAL.CON-UUID device show <interface>");
const SHOW: CommandLine =
    CommandLine::new("nmcli --terse --fields connection.id,ipv4,ipv6 connection show uuid <text>");
const REAPPLY: CommandLine = CommandLine::new("nmcli device reapply <interface>");

/// Sets lists as a whole, or adds one route or takes it away.
const MODIFY: &str = "nmcli connection modify uuid <text> \
     (ipv4.addresses|ipv6.addresses|ipv4.gateway|ipv6.gateway|ipv4.dns|ipv6.dns|ipv4.dns-search|ipv6.dns-search|\
     +ipv4.routes|-ipv4.routes|+ipv6.routes|-ipv6.routes) (<text>|'')";

/// The active connection of a device, with its settings of both families.
pub(crate) struct Connection {
    uuid: String,
    /// The settings by their names, such as `ipv4.addresses`.
    values: BTreeMap<String, String>,
}

impl Connection {
    pub(crate) fn grants() -> Vec<CommandGrant> {
        vec![
            UUID.read("which connection of NetworkManager a device has"),
            SHOW.read("what a connection sets"),
            REAPPLY.change(Risk::High, "to have a device take over what its connection says"),
            CommandGrant::change(MODIFY, Risk::High, "to make addresses, routes and name servers last"),
        ]
    }

    pub(crate) fn of(device: &str, cx: &Context) -> Result<Self> {
        let output = cx.run(UUID.with([device]))?.success("nmcli")?;
        let text = output.text();
        let uuid = text.lines().find_map(|line| line.strip_prefix("GENERAL.CON-UUID:"));
        let uuid = uuid.filter(|uuid| !uuid.is_empty()).ok_or_else(|| {
            let message = format!("{device} has no active connection of NetworkManager");
            Problem::new("NOT_CONFIGURED", Category::State, message)
        })?;
        let output = cx.run(SHOW.with([uuid]))?.success("nmcli")?;
        Ok(Self { uuid: uuid.to_owned(), values: values(&output.text()) })
    }

    /// How an answer names it.
    pub(crate) fn name(&self) -> String {
        format!("connection {:?}", self.value("connection.id"))
    }

    fn value(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    fn list(&self, name: &str) -> Vec<String> {
        let parts = self.value(name).split([',', ' ', ';']).filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    }

    /// The routes, each with the words by which nmcli knows it.
    fn routes(&self, family: &str) -> Vec<(Route, String)> {
        routes(self.value(&format!("{family}.routes")))
    }

    fn is_gateway(&self, route: &Route) -> bool {
        let gateway = self.value(&format!("{}.gateway", family(route.to.is_v6()))).parse::<IpAddr>().ok();
        route.to.is_everything() && route.table.is_none() && gateway.is_some() && gateway == route.via
    }

    pub(crate) fn has(&self, setting: &Setting) -> bool {
        match setting {
            Setting::Address(address) => {
                let list = self.list(&format!("{}.addresses", family(address.is_v6())));
                list.iter().any(|own| Cidr::read(own) == Some(*address))
            }
            Setting::Route(route) => {
                self.is_gateway(route)
                    || self.routes(family(route.to.is_v6())).iter().any(|(own, _)| own.has_set(route))
            }
        }
    }

    fn modify(&self, property: &str, value: &str) -> Command {
        let words = ["connection", "modify", "uuid", &self.uuid, property, value];
        Command::new("nmcli").args(words).as_root()
    }

    /// A step that sets a list, and sets the former one again.
    fn set(&self, property: &str, values: &[String]) -> Option<Step> {
        let old = self.list(property);
        let step = || Step::run(self.modify(property, &values.join(","))).uninterruptible();
        (old != values).then(|| step().undo(self.modify(property, &old.join(","))))
    }

    /// The steps that take settings away and add others. What is so already takes no step.
    pub(crate) fn steps(&self, removed: &[Setting], added: &[Setting]) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut gateways: [Option<String>; 2] = [None, None];
        for (settings, is_added) in [(removed, false), (added, true)] {
            for setting in settings.iter().filter(|setting| self.has(setting) != is_added) {
                match setting {
                    Setting::Address(address) => {
                        let property = format!("{}.addresses", family(address.is_v6()));
                        let mut list = self.list(&property);
                        match is_added {
                            true => list.push(address.to_string()),
                            false => list.retain(|own| Cidr::read(own) != Some(*address)),
                        }
                        steps.extend(self.set(&property, &list));
                    }
                    Setting::Route(route) => {
                        let family = family(route.to.is_v6());
                        let gateway = &mut gateways[usize::from(route.to.is_v6())];
                        let property = format!("{family}.gateway");
                        let is_free = self.value(&property).is_empty() || gateway.is_some();
                        // The metric of a gateway that is replaced is NetworkManager's own.
                        let has_metric = route.metric.is_some() && gateway.is_none();
                        let is_plain = !has_metric && route.table.is_none() && route.to.is_everything();
                        if !is_added && self.is_gateway(route) {
                            *gateway = Some(String::new());
                        } else if let Some(via) = route.via.filter(|_| {
                            is_added
                                && is_free
                                && is_plain
                                && !self.list(&format!("{family}.addresses")).is_empty()
                        }) {
                            *gateway = Some(via.to_string());
                        } else {
                            steps.push(self.route_step(family, route, is_added));
                        }
                    }
                }
            }
        }
        for (number, gateway) in gateways.into_iter().enumerate() {
            let property = format!("{}.gateway", family(number == 1));
            steps.extend(gateway.and_then(|via| {
                self.set(&property, &Vec::from_iter(Some(via).filter(|via| !via.is_empty())))
            }));
        }
        steps
    }

    fn route_step(&self, family: &str, route: &Route, is_added: bool) -> Step {
        // What is taken away is named as the connection has it.
        let own = self.routes(family).into_iter().find(|(own, _)| own.has_set(route) && !is_added);
        let value = own.map_or_else(|| in_nmcli(route), |(_, value)| value);
        let [add, remove] = ["+", "-"].map(|sign| self.modify(&format!("{sign}{family}.routes"), &value));
        let (step, undo) = if is_added { (add, remove) } else { (remove, add) };
        Step::run(step).uninterruptible().undo(undo)
    }

    pub(crate) fn dns(&self) -> Dns {
        let of = |name: &str| ["ipv4", "ipv6"].map(|family| self.list(&format!("{family}.{name}"))).concat();
        let mut search = of("dns-search");
        search.dedup();
        Dns { servers: of("dns"), search }
    }

    /// The steps that set servers, each in its family, and domains in the first family that is in use.
    pub(crate) fn dns_steps(&self, dns: &Dns) -> Result<Vec<Step>> {
        let is_v6 = |server: &&String| server.contains(':');
        let (v6, v4): (Vec<&String>, Vec<&String>) = dns.servers.iter().partition(is_v6);
        let off = |family: &str| matches!(self.value(&format!("{family}.method")), "disabled" | "ignore");
        let mut steps = Vec::new();
        for (family, servers) in [("ipv4", v4), ("ipv6", v6)] {
            let servers: Vec<String> = servers.into_iter().cloned().collect();
            if off(family) && !servers.is_empty() {
                let message =
                    format!("{} has {family} turned off, and takes no {family} server", self.name());
                return Err(Problem::new("FAMILY_OFF", Category::State, message)
                    .remedy("Name servers of the other family"));
            }
            steps.extend(self.set(&format!("{family}.dns"), &servers));
            let has_domains = family == if off("ipv4") { "ipv6" } else { "ipv4" };
            let domains = if has_domains { dns.search.as_slice() } else { &[] };
            steps.extend(self.set(&format!("{family}.dns-search"), domains));
        }
        Ok(steps)
    }

    /// Has the device take over what its connection says now, without going down.
    pub(crate) fn reapply(device: &str) -> Command {
        REAPPLY.with([device]).as_root()
    }
}

fn family(is_v6: bool) -> &'static str {
    if is_v6 { "ipv6" } else { "ipv4" }
}

/// The settings that nmcli prints, one a line. Some versions put a `\` in front of the colons in a value, others don't.
fn values(text: &str) -> BTreeMap<String, String> {
    let line = |line: &str| {
        let fields = managers::terse(line);
        let (name, value) = fields.split_first()?;
        Some((name.clone(), value.join(":")))
    };
    text.lines().filter_map(line).collect()
}

/// The route as nmcli takes it: destination, gateway, metric and attributes.
fn in_nmcli(route: &Route) -> String {
    let mut words = vec![route.to.to_string()];
    words.extend(route.via.map(|via| via.to_string()));
    words.extend(route.metric.map(|metric| metric.to_string()));
    words.extend(route.table.map(|table| format!("table={table}")));
    words.extend(route.src.map(|src| format!("src={src}")));
    if route.is_onlink {
        words.push("onlink=true".to_owned());
    }
    words.join(" ")
}

/// Reads routes as nmcli prints them: `10.8.0.0/16 192.0.2.1 50 table=7, …`, and with names,
/// `ip = 10.8.0.0/16, nh = 192.0.2.1, mt = 50; …`, with or without braces. What can't be read is left out.
fn routes(text: &str) -> Vec<(Route, String)> {
    let one = |words: &mut dyn Iterator<Item = &str>| {
        let mut route: Option<Route> = None;
        for word in words {
            let Some(route) = &mut route else {
                let to = Cidr::read(word)?;
                let (dev, none) = (String::new(), None);
                let (src, table, metric) = (None, None, None);
                route =
                    Some(Route { to, via: none, dev, src, metric, table, protocol: None, is_onlink: false });
                continue;
            };
            match word.split_once('=') {
                None if word.contains(['.', ':']) => route.via = word.parse().ok(),
                None => route.metric = word.parse().ok(),
                Some(("table", table)) => route.table = table.parse().ok().filter(|table| *table != 254),
                Some(("src", src)) => route.src = src.parse().ok(),
                Some(("onlink", value)) => route.is_onlink = value == "true",
                Some(_) => {}
            }
        }
        route
    };
    if text.contains("ip = ") {
        let inner = text.split(';').map(|part| part.trim_matches([' ', '{', '}']));
        let read = |part: &str| {
            let pairs = part.split(',').filter_map(|pair| pair.split_once('=')).map(|(name, value)| {
                let (name, value) = (name.trim(), value.trim());
                match name {
                    "ip" | "nh" | "mt" => value.to_owned(),
                    _ => format!("{name}={value}"),
                }
            });
            let pairs: Vec<String> = pairs.collect();
            Some((one(&mut pairs.iter().map(String::as_str))?, pairs.join(" ")))
        };
        return inner.filter_map(read).collect();
    }
    let parts = text.split([',', ';']).map(str::trim);
    parts.filter_map(|part| Some((one(&mut part.split_whitespace())?, part.to_owned()))).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn connection(text: &str) -> Connection {
        Connection { uuid: "u-1".into(), values: values(text) }
    }

    /// A connection written by hand, in the format of `nmcli --terse`.
    const STATIC: &str = "connection.id:Wired 1\nipv4.method:manual\nipv4.dns:192.0.2.53\nipv4.dns-search:\n\
        ipv4.addresses:192.0.2.10/24, 192.0.2.11/24\nipv4.gateway:192.0.2.1\nipv4.routes:10.8.0.0/16 192.0.2.7 50\n\
        ipv6.method:auto\nipv6.dns:\nipv6.addresses:2001\\:db8\\:\\:10/64\nipv6.gateway:\nipv6.routes:\n";

    fn route(to: &str, via: &str, metric: Option<u32>) -> Setting {
        let (to, via) = (Cidr::read(to).unwrap(), Some(via.parse().unwrap()));
        let (src, table) = (None, None);
        Setting::Route(Route {
            to,
            via,
            dev: "eth0".into(),
            src,
            metric,
            table,
            protocol: None,
            is_onlink: false,
        })
    }

    fn address(text: &str) -> Setting {
        Setting::Address(Cidr::read(text).unwrap())
    }

    /// The command and the undo of each step, from the property on.
    fn shown(steps: &[Step]) -> Vec<String> {
        let change = steps.iter().cloned().fold(Change::new("x"), Change::step);
        let text = format!("{:?}", change.steps());
        let words: Vec<&str> = text.split('"').collect();
        let starts = words.iter().enumerate().filter(|(_, word)| **word == "u-1");
        starts.map(|(at, _)| format!("{} {}", words[at + 2], words[at + 4])).collect()
    }

    #[test]
    fn each_change_of_a_connection_has_its_exact_undo() {
        let connection = connection(STATIC);
        for (removed, added, expected) in [
            (
                vec![],
                vec![route("10.9.0.0/16", "192.0.2.7", None)],
                vec!["+ipv4.routes 10.9.0.0/16 192.0.2.7", "-ipv4.routes 10.9.0.0/16 192.0.2.7"],
            ),
            // It is taken away as the connection has it, with its metric.
            (
                vec![route("10.8.0.0/16", "192.0.2.7", Some(50))],
                vec![],
                vec!["-ipv4.routes 10.8.0.0/16 192.0.2.7 50", "+ipv4.routes 10.8.0.0/16 192.0.2.7 50"],
            ),
            (
                vec![route("0.0.0.0/0", "192.0.2.1", Some(100))],
                vec![route("0.0.0.0/0", "192.0.2.2", None)],
                vec!["ipv4.gateway 192.0.2.2", "ipv4.gateway 192.0.2.1"],
            ),
            (
                vec![route("0.0.0.0/0", "192.0.2.1", None)],
                vec![],
                vec!["ipv4.gateway ", "ipv4.gateway 192.0.2.1"],
            ),
            (
                vec![],
                vec![route("::/0", "2001:db8::1", None)],
                vec!["ipv6.gateway 2001:db8::1", "ipv6.gateway "],
            ),
            (
                vec![address("192.0.2.10/24")],
                vec![],
                vec!["ipv4.addresses 192.0.2.11/24", "ipv4.addresses 192.0.2.10/24,192.0.2.11/24"],
            ),
            (
                vec![],
                vec![address("2001:db8::11/64")],
                vec!["ipv6.addresses 2001:db8::10/64,2001:db8::11/64", "ipv6.addresses 2001:db8::10/64"],
            ),
            // What is so already.
            (
                vec![address("192.0.2.12/24")],
                vec![address("192.0.2.11/24"), route("10.8.0.0/16", "192.0.2.7", Some(50))],
                vec![],
            ),
        ] {
            assert_eq!(shown(&connection.steps(&removed, &added)), expected);
        }
    }

    #[test]
    fn servers_go_to_their_family() {
        let connection = connection(STATIC);
        let dns = Dns {
            servers: vec!["2001:db8::53".into(), "192.0.2.54".into()],
            search: vec!["a.example".into()],
        };
        let expected = [
            "ipv4.dns 192.0.2.54",
            "ipv4.dns 192.0.2.53",
            "ipv4.dns-search a.example",
            "ipv4.dns-search ",
            "ipv6.dns 2001:db8::53",
            "ipv6.dns ",
        ];
        assert_eq!(shown(&connection.dns_steps(&dns).unwrap()), expected);
        assert_eq!(connection.dns().servers, ["192.0.2.53"]);
        let off = super::tests::connection("ipv4.method:manual\nipv6.method:disabled\n");
        assert_eq!(off.dns_steps(&dns).unwrap_err().code, "FAMILY_OFF");
    }

    #[test]
    fn routes_are_read_in_both_forms() {
        let expected = [("10.8.0.0/16", Some(50), Some(7)), ("10.9.0.0/16", None, None)];
        for text in [
            "10.8.0.0/16 192.0.2.7 50 table=7, 10.9.0.0/16 192.0.2.7 src=192.0.2.10",
            "{ ip = 10.8.0.0/16, nh = 192.0.2.7, mt = 50, table=7 }; { ip = 10.9.0.0/16, nh = 192.0.2.7 }",
            "ip = 10.8.0.0/16, nh = 192.0.2.7, mt = 50, table=7; ip = 10.9.0.0/16, nh = 192.0.2.7",
        ] {
            let found = routes(text);
            let found: Vec<_> =
                found.iter().map(|(route, _)| (route.to.to_string(), route.metric, route.table)).collect();
            let expected: Vec<_> =
                expected.iter().map(|(to, metric, table)| ((*to).to_owned(), *metric, *table)).collect();
            assert_eq!(found, expected, "{text}");
        }
        // Attributes that aren't read here stay with the route.
        assert_eq!(routes("10.9.0.0/16 192.0.2.7 mtu=1400")[0].1, "10.9.0.0/16 192.0.2.7 mtu=1400");
        assert!(routes("").is_empty() && routes("garbage, { x }").is_empty());
    }
}
