//! The elements of a zone that a unified rule stands for: rich rules, ports, and services.

use linux_sysadmin_sdk::Category;
use linux_sysadmin_sdk::firewall::{Action, FirewallRule};
use linux_sysadmin_sdk::prelude::*;

use crate::{Ports, rich_rule, zone};

/// An element in firewalld's own words.
pub(crate) enum Element {
    Rich(String),
    /// `443/tcp` or `8000-8999/udp`.
    Port(String),
    Service(String),
}

impl Element {
    /// The option that adds or removes it.
    pub(crate) fn option(&self, adds: bool, is_offline: bool) -> String {
        let verb = if adds { "add" } else { "remove" };
        match self {
            Self::Rich(rule) => format!("--{verb}-rich-rule={rule}"),
            Self::Port(port) => format!("--{verb}-port={port}"),
            // The offline program takes `--remove-service` for an option of the old lokkit.
            Self::Service(name) if is_offline && !adds => format!("--remove-service-from-zone={name}"),
            Self::Service(name) => format!("--{verb}-service={name}"),
        }
    }
}

/// The rules that firewalld needs for one: a port of any protocol takes one for each.
pub(crate) fn parts(rule: &FirewallRule) -> Result<Vec<FirewallRule>> {
    let rule = FirewallRule { comment: None, ..rule.clone() };
    if rule.protocol != "any" {
        return Ok(vec![rule]);
    }
    if rule.port.is_some() {
        let of = |protocol: &str| FirewallRule { protocol: protocol.to_owned(), ..rule.clone() };
        return Ok(vec![of("tcp"), of("udp")]);
    }
    if rule.source.is_none() && rule.destination.is_none() {
        let message =
            "firewalld has no rule for every packet: expected a port, a protocol, a source or a destination";
        return Err(Problem::validation("RULE_TOO_WIDE", message));
    }
    Ok(vec![rule])
}

/// The rich rule for a rule of one protocol. Its values were checked: none of them holds a quote.
pub(crate) fn rich_rule(rule: &FirewallRule) -> String {
    let mut words = vec!["rule".to_owned()];
    words.extend(rule.is_v6().map(|is_v6| format!("family=\"ipv{}\"", if is_v6 { 6 } else { 4 })));
    for (name, address) in [("source", &rule.source), ("destination", &rule.destination)] {
        words.extend(address.iter().map(|address| format!("{name} address=\"{address}\"")));
    }
    let protocol = rule.protocol.as_str();
    match &rule.port {
        Some(port) => {
            words.push(format!("port port=\"{}\" protocol=\"{protocol}\"", port.replace(':', "-")));
        }
        None if protocol != "any" => words.push(format!("protocol value=\"{protocol}\"")),
        None => {}
    }
    words.push(
        match rule.action {
            Action::Allow => "accept",
            Action::Deny => "drop",
            Action::Reject => "reject",
        }
        .to_owned(),
    );
    words.join(" ")
}

/// The elements that stand for the rule. A service that stands for more can't be removed for one of its ports.
pub(crate) fn elements(block: &zone::Block, rule: &FirewallRule, ports: &Ports) -> Result<Vec<Element>> {
    let mut found = Vec::new();
    for line in block.lines("rich rules") {
        let listed = rich_rule::listed(line, ports);
        if listed.iter().any(|known| known.is(rule)) {
            check_whole(listed.len(), line, rule)?;
            found.push(Element::Rich(line.to_owned()));
        }
    }
    let is_of = |port: &str, protocol: &str| rich_rule::allowed(port, protocol).is_same(rule);
    for word in block.words("ports") {
        if word.split_once('/').is_some_and(|(port, protocol)| is_of(port, protocol)) {
            found.push(Element::Port(word));
        }
    }
    for name in block.words("services") {
        let Some(Some(known)) = ports.get(&name) else { continue };
        if known.iter().any(|(port, protocol)| is_of(port, protocol)) {
            check_whole(known.len(), &format!("the service {name}"), rule)?;
            found.push(Element::Service(name));
        }
    }
    Ok(found)
}

fn check_whole(ports: usize, of: &str, rule: &FirewallRule) -> Result<()> {
    if ports == 1 {
        return Ok(());
    }
    let message = format!(
        "`{}` is one of {ports} ports of {of} in zone: removing that would close the others too",
        rule.in_words()
    );
    Err(Problem::new("PART_OF_SERVICE", Category::State, message)
        .remedy("Add rules for the ports that are to stay open, then remove the service with firewall-cmd"))
}
