//! Rich rules (firewalld.richlanguage(5)):
//! `rule family="ipv4" source address="192.0.2.0/24" port port="443" protocol="tcp" accept`.

use linux_sysadmin_sdk::firewall::{Action, Direction, FirewallRule, Listed};

use crate::Ports;

/// A rule that lets a port pass, as firewalld's words `1000-2000` name it.
pub(crate) fn allowed(port: &str, protocol: &str) -> FirewallRule {
    FirewallRule {
        action: Action::Allow,
        direction: Direction::In,
        port: Some(port.replace('-', ":")),
        protocol: protocol.to_owned(),
        source: None,
        destination: None,
        comment: None,
    }
}

/// The service that the rule names.
pub(crate) fn service(rule: &str) -> Option<String> {
    let words = words(rule);
    let at = words.iter().position(|word| word == "service")?;
    words.get(at + 1)?.strip_prefix("name=").map(str::to_owned)
}

/// The rules of a line: one for each port of the service that it names.
pub(crate) fn listed(line: &str, ports: &Ports) -> Vec<Listed> {
    let Some((family, rule, named)) = unified(line) else { return vec![Listed::raw(line)] };
    // Rules with addresses tell their family by them.
    let family = family.filter(|_| rule.source.is_none() && rule.destination.is_none());
    let of = |rule: FirewallRule| Listed { family, ..Listed::of(rule) };
    let Some(service) = named else { return vec![of(rule)] };
    match ports.get(&service).and_then(Option::as_ref) {
        Some(known) => known
            .iter()
            .map(|(port, protocol)| {
                of(FirewallRule {
                    comment: Some(format!("service {service}")),
                    action: rule.action,
                    source: rule.source.clone(),
                    destination: rule.destination.clone(),
                    ..allowed(port, protocol)
                })
            })
            .collect(),
        None => vec![Listed::raw(line)],
    }
}

/// The family, the rule and the service, where the unified words say all of the rule.
fn unified(line: &str) -> Option<(Option<&'static str>, FirewallRule, Option<String>)> {
    let words = words(line);
    let mut words = words.iter().map(String::as_str).peekable();
    words.next().filter(|word| *word == "rule")?;
    let mut rule = FirewallRule { port: None, protocol: "any".to_owned(), ..allowed("", "") };
    let (mut family, mut service, mut has_decided) = (None, None, false);
    while let Some(word) = words.next() {
        let mut value = |key: &str| {
            let word = words.next_if(|word| word.split_once('=').is_some_and(|(name, _)| name == key))?;
            word.split_once('=').map(|(_, value)| value.to_owned())
        };
        match word {
            "family=ipv4" => family = Some("ipv4"),
            "family=ipv6" => family = Some("ipv6"),
            "source" => rule.source = Some(value("address")?),
            "destination" => rule.destination = Some(value("address")?),
            "port" if rule.port.is_none() && service.is_none() && rule.protocol == "any" => {
                rule.port = Some(value("port")?.replace('-', ":"));
                rule.protocol = value("protocol").filter(|name| ["tcp", "udp"].contains(&name.as_str()))?;
            }
            "protocol" if rule.port.is_none() && service.is_none() && rule.protocol == "any" => {
                rule.protocol = value("value").filter(|name| ["tcp", "udp"].contains(&name.as_str()))?;
            }
            "service" if rule.port.is_none() && service.is_none() && rule.protocol == "any" => {
                service = Some(value("name")?)
            }
            "accept" | "drop" | "reject" if !has_decided => {
                has_decided = true;
                rule.action = match word {
                    "accept" => Action::Allow,
                    "drop" => Action::Deny,
                    _ => Action::Reject,
                };
            }
            _ => return None,
        }
    }
    has_decided.then_some((family, rule, service))
}

/// The words without their quotes, which may hold blanks.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            _ => words.last_mut().into_iter().for_each(|word| word.push(c)),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
