//! Rules of nftables in unified words: those that compare addresses, ports and the protocol, and then decide.

use serde_json::{Value, json};

use super::rule::{Action, Direction, FirewallRule};
use super::ruleset::Rule;
use super::text::expression as in_words;

/// The rule in unified words. `None` where it says more.
pub fn unified(rule: &Rule, direction: Direction) -> Option<FirewallRule> {
    let mut unified = FirewallRule {
        action: Action::Allow,
        direction,
        port: None,
        protocol: "any".to_owned(),
        source: None,
        destination: None,
        comment: rule.comment.clone(),
    };
    let (last, parts) = rule.expr.split_last()?;
    let (verdict, _) = last.as_object()?.iter().next()?;
    unified.action = match verdict.as_str() {
        "accept" => Action::Allow,
        "drop" => Action::Deny,
        "reject" => Action::Reject,
        _ => return None,
    };
    let (mut has_both, mut has_either_port) = (false, false);
    for part in parts.iter().filter(|part| part.get("counter").is_none()) {
        let body = part.get("match").filter(|body| body.get("op").and_then(Value::as_str) == Some("=="))?;
        let (left, right) = (body.get("left")?, body.get("right")?);
        has_both |= is_both(right);
        has_either_port |= left.get("payload").is_some_and(|payload| payload["protocol"] == "th");
        add(&mut unified, left, right)?;
    }
    // A port of any protocol is one of TCP and of UDP.
    (has_both == has_either_port).then_some(unified)
}

fn is_both(right: &Value) -> bool {
    let set = right.get("set").and_then(Value::as_array);
    set.is_some_and(|set| set.len() == 2 && set.contains(&json!("tcp")) && set.contains(&json!("udp")))
}

/// The expressions of a unified rule, in a table that sees both families.
pub(super) fn expressions(rule: &FirewallRule) -> Vec<Value> {
    let is = |left: Value, right: Value| json!({"match": {"op": "==", "left": left, "right": right}});
    let mut parts = Vec::new();
    for (field, address) in [("saddr", &rule.source), ("daddr", &rule.destination)] {
        let Some(address) = address else { continue };
        let family = if address.contains(':') { "ip6" } else { "ip" };
        let right = match address.split_once('/') {
            Some((network, length)) => {
                json!({"prefix": {"addr": network, "len": length.parse::<u8>().unwrap_or_default()}})
            }
            None => json!(address),
        };
        parts.push(is(json!({"payload": {"protocol": family, "field": field}}), right));
    }
    let number = |text: &str| text.parse::<u16>().unwrap_or_default();
    let port = rule.port.as_deref().map(|port| match port.split_once(':') {
        Some((first, last)) => json!({"range": [number(first), number(last)]}),
        None => json!(number(port)),
    });
    let protocol = rule.protocol.as_str();
    match (port, protocol) {
        (Some(port), "any") => {
            parts.push(is(json!({"meta": {"key": "l4proto"}}), json!({"set": ["tcp", "udp"]})));
            parts.push(is(json!({"payload": {"protocol": "th", "field": "dport"}}), port));
        }
        (Some(port), _) => parts.push(is(json!({"payload": {"protocol": protocol, "field": "dport"}}), port)),
        (None, "any") => {}
        (None, _) => parts.push(is(json!({"meta": {"key": "l4proto"}}), json!(protocol))),
    }
    parts.push(match rule.action {
        Action::Allow => json!({"accept": null}),
        Action::Deny => json!({"drop": null}),
        Action::Reject => json!({"reject": null}),
    });
    parts
}

/// Adds what a match compares.
fn add(rule: &mut FirewallRule, left: &Value, right: &Value) -> Option<()> {
    if left.get("meta").and_then(|meta| meta.get("key")).and_then(Value::as_str) == Some("l4proto") {
        return match right.as_str() {
            Some(name) => set_protocol(rule, name),
            None => (rule.protocol == "any" && is_both(right)).then_some(()),
        };
    }
    let payload = left.get("payload")?;
    let word = |key: &str| payload.get(key).and_then(Value::as_str);
    match (word("protocol")?, word("field")?) {
        ("ip" | "ip6", "saddr") => set(&mut rule.source, address(right)?),
        ("ip" | "ip6", "daddr") => set(&mut rule.destination, address(right)?),
        (name @ ("tcp" | "udp"), "dport") => {
            set_protocol(rule, name)?;
            set(&mut rule.port, port(right)?)
        }
        ("th", "dport") => set(&mut rule.port, port(right)?),
        _ => None,
    }
}

fn set(place: &mut Option<String>, value: String) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

fn set_protocol(rule: &mut FirewallRule, name: &str) -> Option<()> {
    let is_known = ["tcp", "udp"].contains(&name) && ["any", name].contains(&rule.protocol.as_str());
    is_known.then(|| rule.protocol = name.to_owned())
}

fn address(right: &Value) -> Option<String> {
    let is_one = right.get("prefix").is_some() || right.as_str().is_some_and(|text| !text.starts_with('@'));
    is_one.then(|| in_words(right))
}

fn port(right: &Value) -> Option<String> {
    match right.get("range").and_then(Value::as_array).map(Vec::as_slice) {
        Some([first, last]) => Some(format!("{first}:{last}")),
        _ => right.as_u64().map(|port| port.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_means_itself_in_the_kernels_words() {
        for port in [None, Some("22"), Some("8000:8010")] {
            for protocol in ["any", "tcp", "udp"] {
                for (source, destination) in [
                    (None, None),
                    (Some("192.0.2.7"), None),
                    (None, Some("2001:db8::1")),
                    (Some("10.0.0.0/8"), Some("192.0.2.0/24")),
                ] {
                    for action in [Action::Allow, Action::Deny, Action::Reject] {
                        let rule = FirewallRule {
                            action,
                            direction: Direction::In,
                            port: port.map(str::to_owned),
                            protocol: protocol.to_owned(),
                            source: source.map(str::to_owned),
                            destination: destination.map(str::to_owned),
                            comment: Some("why".to_owned()),
                        };
                        assert_eq!(unified(&rule.kernel_rule(), Direction::In), Some(rule));
                    }
                }
            }
        }
    }

    #[test]
    fn a_port_of_any_protocol_names_both() {
        let is = |left: Value, right: Value| json!({"match": {"op": "==", "left": left, "right": right}});
        let both = is(json!({"meta": {"key": "l4proto"}}), json!({"set": ["udp", "tcp"]}));
        let port = is(json!({"payload": {"protocol": "th", "field": "dport"}}), json!(53));
        let accept = || json!({"accept": null});
        for (expr, is_unified) in [
            (vec![both.clone(), port.clone(), accept()], true),
            (vec![both, accept()], false),
            (vec![port, accept()], false),
        ] {
            let rule = Rule { expr, ..Rule::default() };
            assert_eq!(unified(&rule, Direction::In).is_some(), is_unified, "{rule:?}");
        }
    }
}
