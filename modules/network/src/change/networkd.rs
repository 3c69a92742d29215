//! Files of systemd-networkd for one interface, see systemd.network(5).

use std::net::IpAddr;
use std::ops::Range;

use linux_sysadmin_sdk::prelude::*;

use super::cidr::Cidr;
use super::edit::{Dns, Format, text_of};
use super::setting::{Route, Setting};

/// The files that belong to one `.network` file: each of them configures the same interface.
pub(crate) struct Networkd;

/// A section: its name, and the lines from its head to the next one's.
struct Section<'a> {
    name: &'a str,
    lines: Range<usize>,
}

fn sections<'a>(lines: &[&'a str]) -> Vec<Section<'a>> {
    let mut found: Vec<Section<'a>> = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let name = line.trim().strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        match (name, found.last_mut()) {
            (Some(name), _) => found.push(Section { name, lines: number..number + 1 }),
            // Comments and blanks in front of the next head stay where they are.
            (None, Some(last)) if entry(line).is_some() => last.lines.end = number + 1,
            _ => {}
        }
    }
    found
}

/// The name and the value in a line.
fn entry(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let (name, value) = line.split_once('=').filter(|_| !line.starts_with(['#', ';']))?;
    Some((name.trim(), value.trim()))
}

/// The lines of sections of a name that have this setting, with its values.
fn entries<'a>(lines: &[&'a str], section: &str, name: &str) -> Vec<(usize, &'a str)> {
    let within = sections(lines).into_iter().filter(|found| found.name == section);
    let lines_of = within.flat_map(|found| found.lines);
    lines_of
        .filter_map(|number| Some((number, entry(lines[number]).filter(|(own, _)| *own == name)?.1)))
        .collect()
}

/// The route of a section, None where it has none that could be meant.
fn route(lines: &[&str]) -> Option<Route> {
    let value = |name: &str| lines.iter().filter_map(|line| entry(line)).rfind(|(own, _)| *own == name);
    let value = |name: &str| value(name).map(|(_, value)| value).filter(|value| !value.is_empty());
    let via: Option<IpAddr> = match value("Gateway") {
        // The gateway of a lease isn't known here.
        Some(via) => Some(via.parse().ok()?),
        None => None,
    };
    let to = match value("Destination") {
        Some(to) => Cidr::read(to)?,
        None => Cidr::everything(via?.is_ipv6()),
    };
    Some(Route {
        to,
        via,
        dev: String::new(),
        src: None,
        metric: value("Metric").map(str::parse).transpose().ok()?,
        table: value("Table").filter(|table| *table != "main").map(str::parse).transpose().ok()?,
        protocol: None,
        is_onlink: false,
    })
}

/// The lines that set this.
fn found(lines: &[&str], setting: &Setting) -> Option<Range<usize>> {
    let whole = |name: &str, is_it: &dyn Fn(&[&str]) -> bool| {
        let mut of_name = sections(lines).into_iter().filter(|section| section.name == name);
        of_name.find(|section| is_it(&lines[section.lines.clone()])).map(|section| {
            // The blank line in front of a section goes with it.
            let start = section.lines.start;
            let is_blank = start > 0 && lines[start - 1].trim().is_empty();
            start - usize::from(is_blank)..section.lines.end
        })
    };
    let line = |found: Option<usize>| found.map(|number| number..number + 1);
    match setting {
        Setting::Route(wanted) => {
            let gateways = entries(lines, "Network", "Gateway").into_iter();
            let is_gateway = |value: &str| {
                let via = value.parse::<IpAddr>().ok();
                wanted.to.is_everything() && via.is_some() && via == wanted.via && wanted.table.is_none()
            };
            line(gateways.filter(|(_, value)| is_gateway(value)).map(|(number, _)| number).next())
                .or_else(|| whole("Route", &|lines| route(lines).is_some_and(|route| route.has_set(wanted))))
        }
        Setting::Address(wanted) => {
            let is_it = |value: &str| Cidr::read(value) == Some(*wanted);
            let of_network = entries(lines, "Network", "Address").into_iter();
            let of_network = of_network.filter(|(_, value)| is_it(value)).map(|(number, _)| number).next();
            line(of_network).or_else(|| {
                whole("Address", &|lines| {
                    lines
                        .iter()
                        .filter_map(|line| entry(line))
                        .any(|(name, value)| name == "Address" && is_it(value))
                })
            })
        }
    }
}

/// Puts lines into the section `Network`, behind the last one of the same name.
fn into_network(lines: &mut Vec<String>, name: &str, values: &[String]) {
    let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
    let last = entries(&texts, "Network", name).last().map(|(number, _)| number + 1);
    let at = last.or_else(|| {
        sections(&texts).iter().find(|section| section.name == "Network").map(|section| section.lines.end)
    });
    let at = at.unwrap_or_else(|| {
        if lines.last().is_some_and(|line| !line.trim().is_empty()) {
            lines.push(String::new());
        }
        lines.push("[Network]".to_owned());
        lines.len()
    });
    lines.splice(at..at, values.iter().map(|value| format!("{name}={value}")));
}

impl Format for Networkd {
    fn holds(&self, _text: &str) -> bool {
        true
    }

    fn add(&self, text: &str, setting: &Setting) -> Result<String> {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        match setting {
            Setting::Address(address) => into_network(&mut lines, "Address", &[address.to_string()]),
            Setting::Route(route) => {
                if lines.last().is_some_and(|line| !line.trim().is_empty()) {
                    lines.push(String::new());
                }
                lines.extend(["[Route]".to_owned(), format!("Destination={}", route.to)]);
                for (name, value) in [
                    ("Gateway", route.via.map(|via| via.to_string())),
                    ("GatewayOnLink", route.is_onlink.then(|| "yes".to_owned())),
                    ("PreferredSource", route.src.map(|src| src.to_string())),
                    ("Metric", route.metric.map(|metric| metric.to_string())),
                    ("Table", route.table.map(|table| table.to_string())),
                ] {
                    lines.extend(value.map(|value| format!("{name}={value}")));
                }
            }
        }
        Ok(text_of(&lines))
    }

    fn remove(&self, text: &str, setting: &Setting) -> Result<Option<String>> {
        let mut lines: Vec<&str> = text.lines().collect();
        let Some(range) = found(&lines, setting) else { return Ok(None) };
        lines.drain(range);
        Ok(Some(text_of(&lines)))
    }

    fn dns(&self, text: &str) -> Dns {
        let lines: Vec<&str> = text.lines().collect();
        let of = |name: &str| {
            let mut all: Vec<String> = Vec::new();
            for (_, value) in entries(&lines, "Network", name) {
                // An empty value takes back those before it.
                if value.is_empty() {
                    all.clear();
                }
                all.extend(value.split_whitespace().map(str::to_owned));
            }
            all
        };
        Dns { servers: of("DNS"), search: of("Domains") }
    }

    fn set_dns(&self, text: &str, dns: &Dns) -> Result<String> {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (name, values) in [("DNS", &dns.servers), ("Domains", &dns.search)] {
            let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
            let old: Vec<usize> =
                entries(&texts, "Network", name).into_iter().map(|(number, _)| number).collect();
            let new = format!("{name}={}", values.join(" "));
            match old.split_first() {
                Some((first, rest)) if !values.is_empty() => {
                    lines[*first] = new;
                    for number in rest.iter().rev() {
                        lines.remove(*number);
                    }
                }
                _ => {
                    for number in old.iter().rev() {
                        lines.remove(*number);
                    }
                    if !values.is_empty() {
                        into_network(&mut lines, name, &[values.join(" ")]);
                    }
                }
            }
        }
        Ok(text_of(&lines))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Written by hand after the examples of systemd.network(5) of systemd 252.
    const TEXT: &str = "\
# the office
[Match]
Name=eth0

[Network]
Address=192.0.2.10/24
Gateway=192.0.2.1
DNS=192.0.2.53
DNS=192.0.2.54
Domains=a.example ~b.example

# the branch
[Route]
Destination=10.8.0.0/16
Gateway=192.0.2.7
Metric=50

[Address]
Address=2001:db8::10/64
PreferredLifetime=0

[DHCPv4]
UseDNS=no
";

    fn route(to: &str, via: Option<&str>, metric: Option<u32>) -> Setting {
        Setting::Route(Route {
            to: Cidr::read(to).unwrap(),
            via: via.map(|via| via.parse().unwrap()),
            dev: "eth0".into(),
            src: None,
            metric,
            table: None,
            protocol: None,
            is_onlink: false,
        })
    }

    fn address(text: &str) -> Setting {
        Setting::Address(Cidr::read(text).unwrap())
    }

    #[test]
    fn what_was_added_is_removed_again_byte_for_byte() {
        for setting in [
            route("172.16.0.0/12", Some("192.0.2.9"), None),
            route("0.0.0.0/0", Some("192.0.2.2"), Some(7)),
            route("2001:db8:9::/48", None, None),
            address("192.0.2.11/24"),
            address("2001:db8::11/64"),
        ] {
            for text in [TEXT, "[Match]\nName=eth0\n\n[Network]\nDHCP=yes\n"] {
                let added = Networkd.add(text, &setting).unwrap();
                assert_ne!(added, text);
                assert_eq!(Networkd.remove(&added, &setting).unwrap().unwrap(), text, "{setting:?}");
            }
            assert_eq!(Networkd.remove(TEXT, &setting).unwrap(), None, "{setting:?}");
        }
        let added = Networkd.add("", &route("10.0.0.0/8", Some("192.0.2.1"), Some(9))).unwrap();
        assert_eq!(added, "[Route]\nDestination=10.0.0.0/8\nGateway=192.0.2.1\nMetric=9\n");
        assert_eq!(Networkd.add("", &address("192.0.2.7/24")).unwrap(), "[Network]\nAddress=192.0.2.7/24\n");
    }

    #[test]
    fn a_setting_is_found_in_each_of_its_spellings() {
        for (setting, gone) in [
            (route("0.0.0.0/0", Some("192.0.2.1"), Some(100)), "Gateway=192.0.2.1\n"),
            (
                route("10.8.0.0/16", Some("192.0.2.7"), Some(50)),
                "\n# the branch\n[Route]\nDestination=10.8.0.0/16\nGateway=192.0.2.7\nMetric=50\n",
            ),
            (address("192.0.2.10/24"), "Address=192.0.2.10/24\n"),
            (address("2001:db8::10/64"), "\n[Address]\nAddress=2001:db8::10/64\nPreferredLifetime=0\n"),
        ] {
            let left = Networkd.remove(TEXT, &setting).unwrap().unwrap();
            let expected = TEXT.replacen(gone, if gone.contains('#') { "\n# the branch\n" } else { "" }, 1);
            assert_eq!(left, expected, "{setting:?}");
        }
        for other in [
            route("10.8.0.0/16", Some("192.0.2.7"), None),
            route("10.8.0.0/16", Some("192.0.2.8"), Some(50)),
            route("0.0.0.0/0", Some("192.0.2.3"), None),
            address("192.0.2.10/25"),
        ] {
            assert_eq!(Networkd.remove(TEXT, &other).unwrap(), None, "{other:?}");
        }
        assert_eq!(Networkd.remove("garbage [Route]\n=\n[", &address("192.0.2.1/24")).unwrap(), None);
    }

    #[test]
    fn servers_are_replaced_where_they_stand() {
        let now = Networkd.dns(TEXT);
        assert_eq!(now.servers, ["192.0.2.53", "192.0.2.54"]);
        assert_eq!(now.search, ["a.example", "~b.example"]);
        let new = Dns { servers: vec!["192.0.2.9".into(), "2001:db8::9".into()], search: Vec::new() };
        let text = Networkd.set_dns(TEXT, &new).unwrap();
        let old = "DNS=192.0.2.53\nDNS=192.0.2.54\nDomains=a.example ~b.example\n";
        assert_eq!(text, TEXT.replace(old, "DNS=192.0.2.9 2001:db8::9\n"));
        assert_eq!(Networkd.dns(&text), new);
        let text = Networkd.set_dns("[Match]\nName=x\n", &new).unwrap();
        assert_eq!(text, "[Match]\nName=x\n\n[Network]\nDNS=192.0.2.9 2001:db8::9\n");
        assert_eq!(Networkd.dns("[Network]\nDNS=1.1.1.1\nDNS=\nDNS=2.2.2.2\n").servers, ["2.2.2.2"]);
        assert_eq!(Networkd.dns("[Link]\nDNS=1.1.1.1\n"), Dns::default());
    }
}
