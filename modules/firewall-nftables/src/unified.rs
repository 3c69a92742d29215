//! Rules of nftables in unified words: those that compare addresses, ports and the protocol, and then decide.

use linux_sysadmin_sdk::firewall::{Action, Direction, FirewallRule, Rule, in_words};
use serde_json::Value;

/// The rule in unified words. `None` where it says more.
pub(crate) fn rule(rule: &Rule, direction: Direction) -> Option<FirewallRule> {
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
    for part in parts.iter().filter(|part| part.get("counter").is_none()) {
        let body = part.get("match").filter(|body| body.get("op").and_then(Value::as_str) == Some("=="))?;
        add(&mut unified, body.get("left")?, body.get("right")?)?;
    }
    Some(unified)
}

/// Adds what a match compares.
fn add(rule: &mut FirewallRule, left: &Value, right: &Value) -> Option<()> {
    if left.get("meta").and_then(|meta| meta.get("key")).and_then(Value::as_str) == Some("l4proto") {
        let name = right.as_str()?;
        return set_protocol(rule, name);
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
