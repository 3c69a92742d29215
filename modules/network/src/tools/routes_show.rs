//! `net_routes_show`: the policy rules and the routes of the tables that they use, or the way to one address.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use linux_sysadmin_sdk::{Output, prelude::*, text};
use serde_json::Value;

use crate::ip;
use crate::links::{self, LINKS};
use crate::managers::{Managers, NMCLI_DEVICES};

const RULES_4: CommandLine = CommandLine::new("ip -json -4 rule show");
const RULES_6: CommandLine = CommandLine::new("ip -json -6 rule show");
pub(crate) const ROUTES_4: CommandLine = CommandLine::new("ip -json -4 route show table all");
pub(crate) const ROUTES_6: CommandLine = CommandLine::new("ip -json -6 route show table all");

/// Prints how the kernel sends a packet to an address.
pub(crate) const GET: CommandLine = CommandLine::new("ip -json route get <address>");

/// Prints the route that it uses for that.
pub(crate) const MATCH: CommandLine = CommandLine::new("ip -json route get fibmatch <address>");

#[derive(Deserialize, JsonSchema)]
pub(crate) struct RoutesArgs {
    /// Address: only its way
    to: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Item {
    Rule(Rule),
    Route(Box<Route>),
}

/// A policy rule besides the three that each machine has.
#[derive(Debug, Serialize)]
pub(crate) struct Rule {
    /// The priority and what the rule says, as ip-rule(8) writes it.
    rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    family: Option<&'static str>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Route {
    to: String,
    /// None for IPv4.
    #[serde(skip_serializing_if = "Option::is_none")]
    family: Option<&'static str>,
    /// The kind of a route that leads nowhere, and `local` for the machine's own addresses.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dev: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    src: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric: Option<u64>,
    /// What made the route: `kernel`, `dhcp`, `ra`, `static`, `boot` (a person or a script) or a routing daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
    /// None for the table `main`.
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nexthops: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flags: Vec<String>,
    /// The route that decided, of the way to an address.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_route: Option<String>,
    /// The reason why no packet leaves for an address.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    managed_by: Option<String>,
}

/// A route as ip prints it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Raw {
    #[serde(rename = "type")]
    kind: Option<String>,
    pub(crate) dst: String,
    pub(crate) gateway: Option<String>,
    /// The next hop of an IPv4 route that has an IPv6 address.
    via: Option<Via>,
    pub(crate) dev: Option<String>,
    pub(crate) prefsrc: Option<String>,
    metric: Option<u64>,
    protocol: Option<String>,
    table: Option<String>,
    flags: Vec<String>,
    nexthops: Vec<Hop>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Via {
    host: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Hop {
    gateway: Option<String>,
    via: Option<Via>,
    dev: Option<String>,
    weight: Option<u64>,
    flags: Vec<String>,
}

impl Raw {
    /// The address to which the packet is handed, None on the own link.
    pub(crate) fn next_hop(&self) -> Option<String> {
        self.gateway.clone().or_else(|| self.via.as_ref()?.host.clone())
    }

    /// Says whether the address is the machine's own.
    pub(crate) fn is_local(&self) -> bool {
        self.kind.as_deref() == Some("local")
    }
}

pub(crate) fn grants() -> [CommandGrant; 6] {
    [
        RULES_4.read("policy rules for IPv4"),
        RULES_6.read("policy rules for IPv6"),
        ROUTES_4.read("routes for IPv4"),
        ROUTES_6.read("routes for IPv6"),
        GET.read("how a packet to an address is sent"),
        MATCH.read("which route decides about an address"),
    ]
}

pub(crate) fn net_routes_show(args: RoutesArgs, cx: &Context) -> Result<Listing<Item>> {
    match args.to {
        Some(to) => way_to(address(&to)?, cx),
        None => all(cx),
    }
}

fn address(text: &str) -> Result<IpAddr> {
    text.trim().parse().map_err(|_| {
        let message = format!(
            "to is {:?}: expected one address such as 192.0.2.7 or 2001:db8::7; net_explain takes names",
            text::excerpt(text, 60)
        );
        Problem::validation("INVALID_ADDRESS", message)
    })
}

fn way_to(to: IpAddr, cx: &Context) -> Result<Listing<Item>> {
    let text = to.to_string();
    let [way, route, links, nmcli] =
        cx.run_each([GET.with([&text]), MATCH.with([&text]), LINKS.command(), NMCLI_DEVICES.command()]);
    let family = to.is_ipv6().then_some("ipv6");
    let way = match way_of(way?)? {
        Ok(way) => way,
        Err(problem) => {
            let route = Route { to: text, family, problem: Some(problem), ..Route::default() };
            return Ok(vec![Item::Route(Box::new(route))].into());
        }
    };
    let managers = managers(links, nmcli, cx);
    let by_route = route.ok().filter(|output| output.exit_code == 0);
    let by_route = by_route.and_then(|output| ip::objects::<Raw>(output).ok()?.list.pop());
    let mut shown = shown(way, family, &managers);
    if let Some(route) = by_route {
        shown.metric = route.metric;
        shown.protocol = route.protocol;
        shown.table = route.table.or(shown.table);
        shown.by_route = Some(route.dst);
    }
    Ok(vec![Item::Route(Box::new(shown))].into())
}

/// The way in the output of [`GET`], or the reason why there is none.
pub(crate) fn way_of(output: Output) -> Result<std::result::Result<Raw, String>> {
    if output.exit_code == 2 {
        return Ok(Err(why_none(&output.error_text())));
    }
    let mut list = ip::objects::<Raw>(output)?.list;
    list.retain(|way| !way.dst.is_empty());
    list.pop().map(Ok).ok_or_else(|| Problem::unexpected("the output of ip route get", ""))
}

/// The meaning of the kernel's refusal, see the types of routes in ip-route(8).
fn why_none(said: &str) -> String {
    let meanings = [
        ("Network is unreachable", "no route leads there"),
        ("No route to host", "a route or a rule of the type unreachable is for it"),
        (
            "Invalid argument",
            "a route or a rule of the type blackhole is for it, and packets are dropped silently",
        ),
        ("Permission denied", "a route or a rule of the type prohibit is for it"),
    ];
    let meaning = meanings.iter().find(|(kernel, _)| said.contains(kernel)).map(|(_, meaning)| *meaning);
    match meaning {
        Some(meaning) => format!("{meaning} ({})", said.trim_start_matches("RTNETLINK answers: ")),
        None => text::of_line(said),
    }
}

fn all(cx: &Context) -> Result<Listing<Item>> {
    let commands = [RULES_4, RULES_6, ROUTES_4, ROUTES_6, LINKS, NMCLI_DEVICES].map(CommandLine::command);
    let [rules_4, rules_6, routes_4, routes_6, links, nmcli] = cx.run_each(commands);
    let managers = managers(links, nmcli, cx);
    let mut items = Vec::new();
    let mut routes = Vec::new();
    let mut notes = Vec::new();
    for (family, rules, of_family) in [(None, rules_4, routes_4), (Some("ipv6"), rules_6, routes_6)] {
        let name = family.unwrap_or("ipv4");
        // A kernel without IPv6, or without policy rules, refuses the question.
        let rules = match rules.and_then(ip::objects::<BTreeMap<String, Value>>) {
            Ok(rules) => rules.list,
            Err(problem) if family.is_some() => {
                notes.push(format!("nothing is known of IPv6: {}", problem.message));
                continue;
            }
            Err(problem) => return Err(problem),
        };
        items.extend(rules.iter().filter_map(|rule| said(rule, family)).map(Item::Rule));
        let found = ip::objects::<Raw>(of_family?)?;
        if !found.is_complete {
            let note = format!(
                "there are more {name} routes than can be read at once; ask for the way to one address with `to`"
            );
            notes.push(note);
        }
        let mut list: Vec<Raw> = found.list.into_iter().filter(is_told).collect();
        let used = Used::of(&rules);
        let unused: BTreeSet<&str> =
            list.iter().filter_map(|raw| raw.table.as_deref()).filter(|table| !used.has(table)).collect();
        if !unused.is_empty() {
            let tables: Vec<_> = unused.iter().collect();
            notes.push(format!(
                "no {name} rule uses these tables, whose routes are without effect: {}",
                text::list(&tables, 8)
            ));
        }
        let used_only = |raw: &Raw| raw.table.as_deref().is_none_or(|table| used.has(table));
        list.retain(used_only);
        list.sort_by_key(|raw| (used.rank(raw.table.as_deref()), raw.dst != "default"));
        routes.extend(list.into_iter().map(|raw| shown(raw, family, &managers)));
    }
    let has_default = |family| {
        routes.iter().any(|one: &Route| one.to == "default" && one.family == family && one.table.is_none())
    };
    if !has_default(None) {
        notes.push("there is no default route for IPv4 in the table main".to_owned());
    }
    items.extend(routes.into_iter().map(|route| Item::Route(Box::new(route))));
    Ok(Listing { items, total: None, notes })
}

fn managers(links: Result<Output>, nmcli: Result<Output>, cx: &Context) -> Managers {
    let links = links.and_then(links::parse).unwrap_or_default();
    let numbers: Vec<(u64, &str)> = links.iter().map(|link| (link.ifindex, link.ifname.as_str())).collect();
    Managers::look(cx, nmcli, &numbers)
}

/// The kernel makes the routes of the table `local` from the addresses.
fn is_told(raw: &Raw) -> bool {
    !raw.dst.is_empty()
        && raw.table.as_deref() != Some("local")
        && !matches!(raw.kind.as_deref(), Some("local" | "broadcast" | "multicast" | "anycast"))
}

/// The tables that rules use, in the order of the rules.
struct Used {
    tables: Vec<String>,
    /// A rule sends the packets of each VRF to its own table.
    has_vrf: bool,
}

impl Used {
    fn of(rules: &[BTreeMap<String, Value>]) -> Self {
        let table = |rule: &BTreeMap<String, Value>| rule.get("table")?.as_str().map(str::to_owned);
        Self {
            tables: rules.iter().filter_map(table).collect(),
            has_vrf: rules.iter().any(|rule| rule.contains_key("l3mdev")),
        }
    }

    fn has(&self, table: &str) -> bool {
        self.has_vrf || self.tables.iter().any(|used| used == table)
    }

    fn rank(&self, table: Option<&str>) -> usize {
        let table = table.unwrap_or("main");
        self.tables.iter().position(|used| used == table).unwrap_or(self.tables.len())
    }
}

/// What a rule says, None for the three that each machine has.
fn said(rule: &BTreeMap<String, Value>, family: Option<&'static str>) -> Option<Rule> {
    let text = |name: &str| match rule.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let priority = text("priority")?;
    let source = text("src")?;
    let table = text("table").unwrap_or_default();
    let is_given = matches!(
        (priority.as_str(), table.as_str()),
        ("0", "local") | ("32766", "main") | ("32767", "default")
    );
    if is_given && source == "all" && !rule.contains_key("iif") && !rule.contains_key("fwmark") {
        return None;
    }
    let mut words = vec![format!("{priority}:")];
    if rule.contains_key("not") {
        words.push("not".to_owned());
    }
    let with_length = |address: String, length: &str| match text(length) {
        Some(length) => format!("{address}/{length}"),
        None => address,
    };
    words.push(format!("from {}", with_length(source, "srclen")));
    words.extend(text("dst").map(|to| format!("to {}", with_length(to, "dstlen"))));
    const KNOWN: [&str; 10] =
        ["priority", "not", "src", "srclen", "dst", "dstlen", "table", "action", "l3mdev", "protocol"];
    for (name, value) in rule.iter().filter(|(name, _)| !KNOWN.contains(&name.as_str())) {
        let value = text(name).unwrap_or_else(|| value.to_string());
        words.push(if value == "null" { name.clone() } else { format!("{name} {value}") });
    }
    if rule.contains_key("l3mdev") {
        words.push("lookup the table of the VRF".to_owned());
    }
    words.extend(text("table").map(|table| format!("lookup {table}")));
    words.extend(text("action"));
    Some(Rule { rule: words.join(" "), family })
}

fn shown(raw: Raw, family: Option<&'static str>, managers: &Managers) -> Route {
    let hop = |hop: Hop| {
        let via = hop.gateway.or(hop.via.and_then(|via| via.host)).unwrap_or_default();
        let dev = hop.dev.map(|dev| format!("dev {dev}")).unwrap_or_default();
        let weight = hop.weight.map(|weight| format!("weight {weight}")).unwrap_or_default();
        let words = [via, dev, weight, hop.flags.join(" ")];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let managed_by = raw.dev.as_ref().and_then(|dev| managers.names(dev));
    Route {
        via: raw.next_hop(),
        to: raw.dst,
        family,
        kind: raw.kind,
        dev: raw.dev,
        src: raw.prefsrc,
        metric: raw.metric.filter(|metric| *metric > 0),
        protocol: raw.protocol,
        table: raw.table.filter(|table| table != "main"),
        nexthops: raw.nexthops.into_iter().map(hop).collect(),
        flags: raw.flags,
        managed_by,
        ..Route::default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_told_as_ip_writes_it_and_those_of_each_machine_are_not() {
        for (rule, expected) in [
            (r#"{"priority":0,"src":"all","table":"local"}"#, None),
            (r#"{"priority":32766,"src":"all","table":"main"}"#, None),
            (r#"{"priority":32767,"src":"all","table":"default"}"#, None),
            (
                r#"{"priority":32766,"src":"10.0.0.0","srclen":8,"table":"main"}"#,
                Some("32766: from 10.0.0.0/8 lookup main"),
            ),
            (
                r#"{"priority":5,"not":null,"src":"all","dst":"192.0.2.0","dstlen":24,"fwmark":"0x1","table":"51820"}"#,
                Some("5: not from all to 192.0.2.0/24 fwmark 0x1 lookup 51820"),
            ),
            (
                r#"{"priority":1000,"src":"all","l3mdev":null}"#,
                Some("1000: from all lookup the table of the VRF"),
            ),
            (
                r#"{"priority":7,"src":"all","ipproto":"tcp","dport":25,"action":"prohibit"}"#,
                Some("7: from all dport 25 ipproto tcp prohibit"),
            ),
        ] {
            let parsed = serde_json::from_str(rule).unwrap();
            assert_eq!(said(&parsed, None).map(|rule| rule.rule).as_deref(), expected, "{rule}");
        }
    }

    #[test]
    fn a_refusal_of_the_kernel_has_a_meaning() {
        for (said, meaning) in [
            ("RTNETLINK answers: Network is unreachable", "no route leads there (Network is unreachable)"),
            (
                "RTNETLINK answers: Permission denied",
                "a route or a rule of the type prohibit is for it (Permission denied)",
            ),
            ("something else", "something else"),
        ] {
            assert_eq!(why_none(said), meaning);
        }
    }
}
