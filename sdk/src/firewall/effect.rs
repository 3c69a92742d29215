//! What a rule does to packets: the whole rule set is evaluated before the change and after it, with packets that the rule
//! concerns.

use std::net::IpAddr;

use super::evaluate::{Answer, Decision, Verdict};
use super::packet::{Packet, Protocol};
use super::rule::{Action, Direction, FirewallRule};
use super::ruleset::Ruleset;
use crate::{Category, Problem, Result};

/// Packets that the rule concerns: the first and the last port, each protocol, and each family.
pub(super) fn packets(rule: &FirewallRule, interface: Option<&str>, own: &[IpAddr]) -> Vec<Packet> {
    if rule.direction == Direction::Out {
        return Vec::new();
    }
    let ports = match rule.port.as_deref().map(|port| port.split_once(':').unwrap_or((port, port))) {
        Some((first, last)) => [first, last].map(|port| port.parse().unwrap_or(1)),
        None => [1, u16::MAX],
    };
    let families = rule.is_v6().map_or_else(|| vec![false, true], |is_v6| vec![is_v6]);
    let protocols = match rule.protocol.as_str() {
        "tcp" => &[Protocol::Tcp][..],
        "udp" => &[Protocol::Udp],
        _ => &[Protocol::Tcp, Protocol::Udp],
    };
    let mut packets = Vec::new();
    for is_v6 in families {
        for protocol in protocols {
            for port in ports {
                packets.push(Packet {
                    source: rule.first_source(),
                    destination: rule.first_destination(),
                    interface: interface.map(str::to_owned),
                    // Packets with a forged source are no concern of the rule.
                    is_on_route: Some(true),
                    own: own.to_vec(),
                    ..Packet::to_port(*protocol, port, is_v6)
                });
            }
        }
    }
    packets.dedup();
    packets
}

/// The answers to packets, in their order.
pub(super) struct Answers(Vec<(Packet, Answer)>);

impl Answers {
    pub(super) fn of(ruleset: &Ruleset, packets: &[Packet]) -> Self {
        Self(packets.iter().map(|packet| (packet.clone(), ruleset.evaluate(packet))).collect())
    }

    /// The fate of all packets, and what has decided. `None` where there are none.
    pub(super) fn verdict(&self) -> Option<(Verdict, Option<&Decision>)> {
        let (_, first) = self.0.first()?;
        let verdict = match self.0.iter().all(|(_, answer)| answer.verdict == first.verdict) {
            true => first.verdict,
            false => Verdict::Unknown,
        };
        let by = first.ends.first().and_then(|end| end.by.as_ref()).filter(|_| verdict != Verdict::Unknown);
        Some((verdict, by))
    }

    fn of_fate(&self, is_let_in: bool) -> Vec<&(Packet, Answer)> {
        let is_it = |answer: &Answer| match answer.verdict {
            Verdict::Accepted => is_let_in,
            Verdict::Dropped | Verdict::Rejected => !is_let_in,
            Verdict::Unknown => false,
        };
        self.0.iter().filter(|(_, answer)| is_it(answer)).collect()
    }
}

/// What is to be said of a new rule. A rule that is to let packets in and can't is refused.
pub(super) fn of_new_rule(rule: &FirewallRule, before: &Answers, after: &Answers) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    let lets_in = rule.action == Action::Allow;
    let (against, all) = (after.of_fate(!lets_in), after.0.len());
    if lets_in && all > 0 && against.len() == all {
        let by = decided(against[0]);
        let message = format!("`{}` would have no effect: {by} stands in its way", rule.in_words());
        return Err(Problem::new("RULE_WITHOUT_EFFECT", Category::State, message)
            .remedy("Remove or change that rule first; fw_explain shows it"));
    }
    if let Some(one) = against.first() {
        let part = if against.len() == all { "" } else { " for a part of its packets" };
        let does = if lets_in { "stands in its way" } else { "comes first and lets them in" };
        notes.push(format!("the rule has no effect{part} ({}): {} {does}", of_packet(&one.0), decided(one)));
    }
    let known = before.of_fate(lets_in);
    if all > 0 && known.len() == all && against.is_empty() {
        let fate = if lets_in { "let in" } else { "kept out" };
        notes.push(format!("such packets were {fate} already, by {}", decided(known[0])));
    }
    Ok(notes)
}

fn decided((_, answer): &(Packet, Answer)) -> String {
    match answer.ends.first().and_then(|end| end.by.as_ref()) {
        Some(by) => format!("`{}` in {} {}", by.rule, by.table, by.chain),
        None => "no rule at all".to_owned(),
    }
}

fn of_packet(packet: &Packet) -> String {
    let family = if packet.is_v6 { "IPv6" } else { "IPv4" };
    let protocol = if packet.protocol == Protocol::Udp { "udp" } else { "tcp" };
    format!("{}/{protocol} over {family}", packet.port)
}
