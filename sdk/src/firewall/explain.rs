//! `fw_explain`: whether the first packet of a connection gets in, and by which rule.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::evaluate::{Answer, Decision, End, Verdict};
use super::interfaces::{self, Interface};
use super::packet::{Packet, Protocol};
use super::{Backend, kernel};
use crate::{Context, Noted, Problem, Result, text};

/// The most ends that an answer shows.
const MOST_ENDS: usize = 6;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ExplainArgs {
    /// Port of this machine
    #[schemars(range(min = 1, max = 65535))]
    port: u32,
    /// Default: tcp
    #[serde(default)]
    protocol: Asked,
    /// Sender; default: anybody
    from: Option<String>,
    /// Own address
    to: Option<String>,
    /// Incoming one, as eth0
    interface: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Asked {
    #[default]
    Tcp,
    Udp,
}

#[derive(Serialize)]
pub(super) struct Explained {
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<Decision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_to: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ends: Vec<End>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<IpAddr>,
}

pub(super) fn explain<B: Backend>(backend: &B, args: ExplainArgs, cx: &Context) -> Result<Noted<Explained>> {
    let port = u16::try_from(args.port).ok().filter(|port| *port > 0);
    let port = port.ok_or_else(|| {
        Problem::validation("INVALID_PORT", format!("{} is no port: expected 1 to 65535", args.port))
    })?;
    let from = address("from", args.from.as_deref())?;
    let to = address("to", args.to.as_deref())?;
    if let (Some(from), Some(to)) = (from, to)
        && from.is_ipv6() != to.is_ipv6()
    {
        let message =
            format!("{from} and {to} are of different families: expected two of IPv4 or two of IPv6");
        return Err(Problem::validation("MIXED_FAMILIES", message));
    }
    let mut looks = vec![interfaces::look()];
    looks.extend(from.map(interfaces::route_look));
    let (kernel, outputs) = kernel::read(cx, looks)?;
    let mut outputs = outputs.into_iter();
    let interfaces = interfaces::read(outputs.next())?;
    let route = outputs.next().and_then(|output| interfaces::route(output.ok()?));
    let mut notes = kernel.notes;
    if let (Some(from), None) = (from, &route) {
        notes.push(format!("this machine has no route to {from}, so that no answer gets there"));
    }
    let interface = interface(args.interface, &interfaces)?;
    let own: Vec<IpAddr> = interfaces.iter().flat_map(|interface| &interface.addresses).copied().collect();
    if let Some(to) = to.filter(|to| !own.contains(to)) {
        let known: Vec<String> = own.iter().map(IpAddr::to_string).collect();
        let message = format!("{to} is none of this machine's addresses: {}", text::list(&known, 12));
        return Err(Problem::not_found("ADDRESS_NOT_FOUND", message));
    }
    let (device, near) = route.unzip();
    let protocol = match args.protocol {
        Asked::Tcp => Protocol::Tcp,
        Asked::Udp => Protocol::Udp,
    };
    let is_on_route = device.as_ref().map(|device| interface.as_ref().is_none_or(|chosen| chosen == device));
    let packet = Packet {
        source: from,
        destination: to.or(near.flatten()),
        interface: interface.or(device),
        is_on_route,
        own,
        ..Packet::to_port(protocol, port, from.or(to).is_some_and(|address| address.is_ipv6()))
    };
    let answer = kernel.ruleset.evaluate(&packet);
    if from.is_none() && to.is_none() {
        let other = kernel.ruleset.evaluate(&Packet { is_v6: true, ..packet.clone() });
        if other.verdict != answer.verdict {
            notes.push(format!("over IPv6: {}", in_words(&other)));
        }
    }
    if answer.ends.iter().any(|end| end.verdict == Verdict::Accepted && end.sent_to.is_some())
        && kernel.ruleset.has_containers()
    {
        notes.push(format!(
            "a published port: {}'s rules for the machine itself don't see it",
            backend.name()
        ));
    }
    Ok(Noted { data: explained(answer, packet), notes })
}

fn explained(answer: Answer, packet: Packet) -> Explained {
    let Packet { interface, destination: to, .. } = packet;
    let mut ends = answer.ends;
    let first = if answer.verdict == Verdict::Unknown {
        ends.truncate(MOST_ENDS);
        None
    } else {
        // The end that needs no condition is the ordinary one.
        ends.sort_by_key(|end| end.when.len());
        ends.drain(..).next()
    };
    let (by, sent_to) = first.map_or((None, None), |end| (end.by, end.sent_to));
    Explained { verdict: answer.verdict, by, sent_to, ends, interface, to }
}

fn in_words(answer: &Answer) -> String {
    let verdict = match answer.verdict {
        Verdict::Accepted => "accepted",
        Verdict::Dropped => "dropped",
        Verdict::Rejected => "rejected",
        Verdict::Unknown => "unknown",
    };
    match answer.ends.first().and_then(|end| end.by.as_ref()) {
        Some(by) => format!("{verdict} by {} {}: {}", by.table, by.chain, by.rule),
        None => verdict.to_owned(),
    }
}

fn address(name: &str, text: Option<&str>) -> Result<Option<IpAddr>> {
    let Some(text) = text.filter(|text| *text != "any") else { return Ok(None) };
    match text.parse::<IpAddr>() {
        Ok(address) => Ok(Some(address.to_canonical())),
        Err(_) => {
            let shown = text::excerpt(text, 60);
            let message =
                format!("{name}={shown:?} is no address: expected one of IPv4 or IPv6, such as 192.0.2.7");
            Err(Problem::validation("INVALID_ADDRESS", message))
        }
    }
}

fn interface(name: Option<String>, known: &[Interface]) -> Result<Option<String>> {
    let Some(name) = name else { return Ok(None) };
    if known.iter().any(|interface| interface.name == name) {
        return Ok(Some(name));
    }
    let names: Vec<&str> = known.iter().map(|interface| interface.name.as_str()).collect();
    let shown = text::excerpt(&name, 60);
    let message = format!("there is no interface {shown:?}; there are {}", text::list(&names, 12));
    Err(Problem::not_found("INTERFACE_NOT_FOUND", message))
}
