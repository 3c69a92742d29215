//! `/etc/network/interfaces` and the files that it includes, see interfaces(5).

use std::net::IpAddr;
use std::ops::Range;

use linux_sysadmin_sdk::prelude::*;

use super::cidr::Cidr;
use super::edit::{Dns, Format, text_of};
use super::setting::{Route, Setting};

/// The paragraphs for one interface.
pub(crate) struct Ifupdown {
    pub(crate) name: String,
}

/// A paragraph `iface NAME FAMILY METHOD` with its options.
struct Stanza<'a> {
    is_v6: bool,
    method: &'a str,
    /// From its first line to its last option.
    lines: Range<usize>,
}

/// The words that begin something else than an option.
fn begins(word: &str) -> bool {
    matches!(word, "iface" | "auto" | "mapping" | "source" | "source-directory" | "template" | "rename")
        || word.starts_with("allow-")
        || word.starts_with("no-auto-down")
        || word.starts_with("no-scripts")
}

fn words(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    Some(line.split_once([' ', '\t']).map_or((line, ""), |(name, rest)| (name, rest.trim())))
}

impl Ifupdown {
    fn stanzas<'a>(&self, lines: &[&'a str]) -> Vec<Stanza<'a>> {
        let mut found: Vec<Stanza<'a>> = Vec::new();
        let mut is_within = false;
        for (number, line) in lines.iter().enumerate() {
            let Some((word, rest)) = words(line) else { continue };
            if begins(word) {
                let mut of_iface = rest.split_whitespace();
                is_within = word == "iface" && of_iface.next() == Some(&self.name);
                if is_within {
                    let is_v6 = of_iface.next() == Some("inet6");
                    let method = of_iface.next().unwrap_or_default();
                    found.push(Stanza { is_v6, method, lines: number..number + 1 });
                }
            } else if let Some(last) = found.last_mut().filter(|_| is_within) {
                last.lines.end = number + 1;
            }
        }
        found
    }

    /// The lines that set this.
    fn found(&self, lines: &[&str], setting: &Setting) -> Result<Option<Range<usize>>> {
        for stanza in self.stanzas(lines) {
            match setting {
                Setting::Route(wanted) => {
                    for number in stanza.lines.clone().skip(1) {
                        let Some((name, value)) = words(lines[number]) else { continue };
                        let is_it = match name {
                            "gateway" => {
                                let via = value.parse::<IpAddr>().ok();
                                wanted.to.is_everything() && via.is_some() && via == wanted.via
                            }
                            "up" | "post-up" => self.route(value).is_some_and(|route| route.has_set(wanted)),
                            _ => false,
                        };
                        if is_it {
                            return Ok(Some(number..number + 1));
                        }
                    }
                }
                Setting::Address(wanted) => {
                    if address(&lines[stanza.lines.clone()]) == Some(*wanted) {
                        return self.whole(lines, &stanza).map(Some);
                    }
                    let is_it = |number: &usize| match words(lines[*number]) {
                        Some(("up" | "post-up", command)) => self.address(command) == Some(*wanted),
                        _ => false,
                    };
                    if let Some(number) = stanza.lines.clone().skip(1).find(is_it) {
                        return Ok(Some(number..number + 1));
                    }
                }
            }
        }
        Ok(None)
    }

    /// The lines of a stanza that has nothing but an address.
    fn whole(&self, lines: &[&str], stanza: &Stanza) -> Result<Range<usize>> {
        let own = stanza.lines.clone().skip(1).filter_map(|number| words(lines[number]));
        let others: Vec<&str> = own
            .map(|(name, _)| name)
            .filter(|name| !matches!(*name, "address" | "netmask" | "broadcast" | "network"))
            .collect();
        if !others.is_empty() {
            let message = format!(
                "the paragraph of {} with this address also sets {}, which would go with it",
                self.name,
                others.join(", ")
            );
            return Err(Problem::new("SHARED_STANZA", linux_sysadmin_sdk::Category::State, message)
                .remedy("Add the new address first, and edit that paragraph of /etc/network/interfaces with file_edit"));
        }
        let start = stanza.lines.start;
        let is_blank = start > 0 && lines[start - 1].trim().is_empty();
        Ok(start - usize::from(is_blank)..stanza.lines.end)
    }

    /// The route of a command `ip route add …`, None for any other command.
    fn route(&self, command: &str) -> Option<Route> {
        let mut words = added_by_ip(command, &["route", "ro", "r"])?.into_iter();
        let to = words.next()?;
        let mut route = Route {
            to: Cidr::everything(false),
            via: None,
            dev: self.name.clone(),
            src: None,
            metric: None,
            table: None,
            protocol: None,
            is_onlink: false,
        };
        while let Some(word) = words.next() {
            match word {
                "via" => route.via = Some(words.next()?.parse().ok()?),
                "dev" => {
                    if !self.is_own(words.next()?) {
                        return None;
                    }
                }
                "src" => route.src = Some(words.next()?.parse().ok()?),
                "metric" => route.metric = Some(words.next()?.parse().ok()?),
                "table" => {
                    let table = words.next()?;
                    route.table = if table == "main" { None } else { Some(table.parse().ok()?) };
                }
                "proto" => route.protocol = Some(words.next()?.to_owned()),
                "onlink" => route.is_onlink = true,
                _ => return None,
            }
        }
        route.to = match to {
            "default" => Cidr::everything(route.via.is_some_and(|via| via.is_ipv6())),
            to => Cidr::read(to)?,
        };
        Some(route)
    }

    /// The address of a command `ip address add …`, None for any other command.
    fn address(&self, command: &str) -> Option<Cidr> {
        let words = added_by_ip(command, &["address", "addr", "a"])?;
        let dev = words.iter().position(|word| *word == "dev")?;
        let address = words.first().and_then(|address| Cidr::read(address))?;
        self.is_own(words.get(dev + 1)?).then_some(address)
    }

    /// True if a command means this interface by the word.
    fn is_own(&self, dev: &str) -> bool {
        ["$IFACE", "${IFACE}", self.name.as_str()].contains(&dev)
    }
}

/// The words behind the verb, where the command has ip(8) add one of these objects.
fn added_by_ip<'a>(command: &'a str, objects: &[&str]) -> Option<Vec<&'a str>> {
    let command = command.split("||").next()?.trim();
    let mut words = command.split_whitespace().filter(|word| !matches!(*word, "-4" | "-6"));
    let is_ip = matches!(words.next()?, "ip" | "/sbin/ip" | "/usr/sbin/ip" | "/bin/ip");
    let is_object = objects.contains(&words.next()?);
    let is_added = matches!(words.next()?, "add" | "a" | "replace" | "append");
    (is_ip && is_object && is_added).then(|| words.collect())
}

/// The address of a stanza, with the length of its netmask.
fn address(lines: &[&str]) -> Option<Cidr> {
    let value = |wanted: &str| {
        lines.iter().filter_map(|line| words(line)).find(|(name, _)| *name == wanted).map(|(_, value)| value)
    };
    let text = value("address")?;
    if text.contains('/') {
        return Cidr::read(text);
    }
    let length = match value("netmask")? {
        mask if mask.contains('.') => {
            let mask: u32 = mask.parse::<std::net::Ipv4Addr>().ok()?.into();
            u8::try_from(mask.leading_ones())
                .ok()
                .filter(|_| mask.leading_ones() + mask.trailing_zeros() == 32)?
        }
        length => length.parse().ok()?,
    };
    Cidr::read(&format!("{text}/{length}"))
}

/// The blanks in front of an option in a stanza.
fn indent<'a>(lines: &[&'a str], stanza: &Stanza) -> &'a str {
    let first = lines.get(stanza.lines.start + 1).filter(|_| stanza.lines.len() > 1);
    first.map_or("    ", |line| &line[..line.len() - line.trim_start().len()])
}

impl Format for Ifupdown {
    fn holds(&self, text: &str) -> bool {
        !self.stanzas(&text.lines().collect::<Vec<_>>()).is_empty()
    }

    fn add(&self, text: &str, setting: &Setting) -> Result<String> {
        let lines: Vec<&str> = text.lines().collect();
        let stanzas = self.stanzas(&lines);
        let Some(last) = stanzas.last() else {
            return Err(Problem::unexpected(&format!("a paragraph of {}", self.name), text));
        };
        let mut new: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let is_v6 = match setting {
            Setting::Address(address) => address.is_v6(),
            Setting::Route(route) => route.to.is_v6(),
        };
        let stanza = stanzas.iter().find(|stanza| stanza.is_v6 == is_v6).unwrap_or(last);
        let line = match setting {
            // For a paragraph of its own, the script of resolvconf would run once more, and put no name servers in the place of
            // those that another paragraph has.
            Setting::Address(address) => {
                let broadcast = if !is_v6 && address.length < 31 { " broadcast +" } else { "" };
                format!("up ip address replace {address}{broadcast} dev $IFACE")
            }
            Setting::Route(route) => {
                let has_gateway = lines[stanza.lines.clone()]
                    .iter()
                    .filter_map(|line| words(line))
                    .any(|(name, _)| name == "gateway");
                let is_plain = route.metric.is_none() && route.table.is_none() && !route.is_onlink;
                match route.via {
                    Some(via)
                        if route.to.is_everything()
                            && is_plain
                            && stanza.method == "static"
                            && stanza.is_v6 == is_v6
                            && !has_gateway =>
                    {
                        format!("gateway {via}")
                    }
                    // ifupdown takes an error of the command for its own, which a route that is there already must not be.
                    _ => {
                        let command = Route { dev: "$IFACE".to_owned(), ..route.clone() }.command("replace");
                        format!("up ip {}", command.args.join(" "))
                    }
                }
            }
        };
        new.insert(stanza.lines.end, format!("{}{line}", indent(&lines, stanza)));
        Ok(text_of(&new))
    }

    fn remove(&self, text: &str, setting: &Setting) -> Result<Option<String>> {
        let mut lines: Vec<&str> = text.lines().collect();
        let Some(range) = self.found(&lines, setting)? else { return Ok(None) };
        lines.drain(range);
        // The command that takes it away goes with the one that adds it.
        let numbers = self.stanzas(&lines).into_iter().flat_map(|stanza| stanza.lines);
        let undoes = |number: &usize| {
            let Some(("down" | "pre-down", command)) = words(lines[*number]) else { return false };
            let added = command.replace(" del ", " add ").replace(" delete ", " add ");
            match setting {
                Setting::Route(wanted) => self.route(&added).is_some_and(|route| {
                    route.to == wanted.to && (route.via.is_none() || route.via == wanted.via)
                }),
                Setting::Address(wanted) => self.address(&added) == Some(*wanted),
            }
        };
        let undoing: Vec<usize> = numbers.filter(undoes).collect();
        for number in undoing.into_iter().rev() {
            lines.remove(number);
        }
        Ok(Some(text_of(&lines)))
    }

    fn dns(&self, text: &str) -> Dns {
        let lines: Vec<&str> = text.lines().collect();
        let numbers = self.stanzas(&lines).into_iter().flat_map(|stanza| stanza.lines);
        let mut dns = Dns::default();
        for (name, value) in numbers.filter_map(|number| words(lines[number])) {
            let into = match name {
                "dns-nameservers" | "dns-nameserver" => &mut dns.servers,
                "dns-search" | "dns-domain" => &mut dns.search,
                _ => continue,
            };
            into.extend(value.split_whitespace().map(str::to_owned));
        }
        dns
    }

    fn set_dns(&self, text: &str, dns: &Dns) -> Result<String> {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (names, values) in [
            (["dns-nameservers", "dns-nameserver"], &dns.servers),
            (["dns-search", "dns-domain"], &dns.search),
        ] {
            let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
            let stanzas = self.stanzas(&texts);
            let Some(first) = stanzas.first() else {
                return Err(Problem::unexpected(&format!("a paragraph of {}", self.name), text));
            };
            let new = format!("{}{} {}", indent(&texts, first), names[0], values.join(" "));
            let old: Vec<usize> = stanzas
                .iter()
                .flat_map(|stanza| stanza.lines.clone())
                .filter(|number| words(texts[*number]).is_some_and(|(name, _)| names.contains(&name)))
                .collect();
            let at = old.first().copied().unwrap_or(first.lines.end);
            for number in old.into_iter().rev() {
                lines.remove(number);
            }
            if !values.is_empty() {
                lines.insert(at, new);
            }
        }
        Ok(text_of(&lines))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Written by hand after interfaces(5) and the examples of ifupdown 0.8.41.
    const TEXT: &str = "\
source /etc/network/interfaces.d/*

auto lo eth0
iface lo inet loopback

# The primary network interface
iface eth0 inet static
\taddress 192.0.2.10
\tnetmask 255.255.255.0
\tgateway 192.0.2.1
\tdns-nameservers 192.0.2.53 192.0.2.54
\tup ip route add 10.8.0.0/16 via 192.0.2.7 onlink dev $IFACE
\tdown ip route del 10.8.0.0/16 via 192.0.2.7 onlink dev $IFACE
\tup /etc/local/up-script eth0

iface eth0 inet static
\taddress 192.0.2.11/24

iface eth0 inet6 auto

allow-hotplug eth1
iface eth1 inet static
\taddress 192.0.2.12/24
";

    fn eth0() -> Ifupdown {
        Ifupdown { name: "eth0".into() }
    }

    fn route(to: &str, via: &str, metric: Option<u32>) -> Setting {
        Setting::Route(Route {
            to: Cidr::read(to).unwrap(),
            via: Some(via.parse().unwrap()),
            dev: "eth0".into(),
            src: None,
            metric,
            table: None,
            protocol: Some("static".into()),
            is_onlink: false,
        })
    }

    fn address(text: &str) -> Setting {
        Setting::Address(Cidr::read(text).unwrap())
    }

    #[test]
    fn what_was_added_is_removed_again_byte_for_byte() {
        for setting in [
            route("172.16.0.0/12", "192.0.2.9", None),
            route("0.0.0.0/0", "192.0.2.2", Some(7)),
            route("2001:db8:9::/48", "2001:db8::1", None),
            address("192.0.2.15/24"),
            address("2001:db8::15/64"),
        ] {
            let added = eth0().add(TEXT, &setting).unwrap();
            assert_ne!(added, TEXT);
            assert_eq!(eth0().remove(&added, &setting).unwrap().unwrap(), TEXT, "{setting:?}");
            assert_eq!(eth0().remove(TEXT, &setting).unwrap(), None, "{setting:?}");
        }
        let text = "iface eth0 inet static\n  address 192.0.2.10/24\n";
        let added = eth0().add(text, &route("0.0.0.0/0", "192.0.2.1", None)).unwrap();
        assert_eq!(added, format!("{text}  gateway 192.0.2.1\n"));
        let added = eth0().add(text, &route("10.0.0.0/8", "192.0.2.1", Some(5))).unwrap();
        let line = "  up ip route replace 10.0.0.0/8 via 192.0.2.1 dev $IFACE proto static metric 5\n";
        assert_eq!(added, format!("{text}{line}"));
    }

    #[test]
    fn a_setting_is_found_in_each_of_its_spellings() {
        for (setting, gone) in [
            (route("0.0.0.0/0", "192.0.2.1", None), "\tgateway 192.0.2.1\n"),
            (
                route("10.8.0.0/16", "192.0.2.7", None),
                "\tup ip route add 10.8.0.0/16 via 192.0.2.7 onlink dev $IFACE\n\tdown ip route del 10.8.0.0/16 via 192.0.2.7 onlink dev $IFACE\n",
            ),
            (address("192.0.2.11/24"), "\niface eth0 inet static\n\taddress 192.0.2.11/24\n"),
        ] {
            assert_eq!(
                eth0().remove(TEXT, &setting).unwrap().unwrap(),
                TEXT.replacen(gone, "", 1),
                "{setting:?}"
            );
        }
        let dhcp = "iface eth0 inet dhcp\n\tmtu 1400\n";
        for verb in ["addr add", "address replace"] {
            let up = format!("\tup ip {verb} 192.0.2.20/24 broadcast + dev eth0 || true\n");
            let down = "\tdown ip addr del 192.0.2.20/24 dev $IFACE\n";
            let text = format!("{dhcp}{up}{down}");
            assert_eq!(eth0().remove(&text, &address("192.0.2.20/24")).unwrap().unwrap(), dhcp);
            assert_eq!(eth0().remove(&text, &address("192.0.2.21/24")).unwrap(), None);
            let others = text.replace("dev eth0", "dev eth9");
            assert_eq!(eth0().remove(&others, &address("192.0.2.20/24")).unwrap(), None);
        }
        // Another interface's address, and one whose paragraph has more than the address.
        assert_eq!(eth0().remove(TEXT, &address("192.0.2.12/24")).unwrap(), None);
        let problem = eth0().remove(TEXT, &address("192.0.2.10/24")).unwrap_err();
        assert_eq!(problem.code, "SHARED_STANZA");
        assert!(problem.message.contains("gateway, dns-nameservers, up"), "{problem:?}");
        for command in [
            "ip route add x via y",
            "route add default gw 192.0.2.1",
            "ip link set eth0 up",
            "ip route add 10.0.0.0/8 dev eth9",
            "",
        ] {
            assert_eq!(eth0().route(command), None, "{command}");
        }
    }

    #[test]
    fn an_address_gets_no_paragraph_of_its_own() {
        let text = "iface eth0 inet static\n  address 192.0.2.10/24\n  dns-nameservers 192.0.2.53\n";
        for (added, line) in [
            ("192.0.2.15/24", "  up ip address replace 192.0.2.15/24 broadcast + dev $IFACE\n"),
            ("192.0.2.15/32", "  up ip address replace 192.0.2.15/32 dev $IFACE\n"),
            ("2001:db8::15/64", "  up ip address replace 2001:db8::15/64 dev $IFACE\n"),
        ] {
            assert_eq!(eth0().add(text, &address(added)).unwrap(), format!("{text}{line}"));
        }
    }

    #[test]
    fn servers_are_replaced_where_they_stand() {
        assert_eq!(eth0().dns(TEXT).servers, ["192.0.2.53", "192.0.2.54"]);
        let new = Dns { servers: vec!["192.0.2.9".into()], search: vec!["a.example".into()] };
        let text = eth0().set_dns(TEXT, &new).unwrap();
        assert_eq!(eth0().dns(&text), new);
        let expected =
            TEXT.replace("\tdns-nameservers 192.0.2.53 192.0.2.54\n", "\tdns-nameservers 192.0.2.9\n");
        let expected = expected.replace(
            "\tup /etc/local/up-script eth0\n",
            "\tup /etc/local/up-script eth0\n\tdns-search a.example\n",
        );
        assert_eq!(text, expected);
        assert_eq!(eth0().dns(&eth0().set_dns(TEXT, &Dns::default()).unwrap()), Dns::default());
        assert!(eth0().holds(TEXT) && !eth0().holds("iface eth1 inet dhcp\n") && !eth0().holds(""));
    }
}
