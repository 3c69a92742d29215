//! The last steps: no firewall stops the connection, and something listens on the port.

use std::net::IpAddr;

use linux_sysadmin_sdk::prelude::*;

use super::Step;
use super::way::Way;
use crate::firewall::{self, Packet, Verdict};
use crate::probe::tcp::Outcome;
use crate::probe::{ping, trace};
use crate::sockets::{self, Socket};

const FIREWALL: &str = "firewall";
const PORT: &str = "port";

/// The step for the rules of this machine.
pub(crate) fn own_firewall(to: IpAddr, port: Option<u16>, way: &Way, cx: &Context) -> Step {
    let packet = Packet { to, from: way.src, port, out: way.dev.as_deref() };
    match firewall::verdict(&packet, cx) {
        Verdict::Passes => Step::ok(FIREWALL, "no rule of this machine stops it"),
        Verdict::Blocked(rule) => {
            Step::fails(FIREWALL, format!("a rule of this machine's own firewall stops it: {rule}"))
                .next("allow it where that rule comes from: ufw, firewalld, or the file that nft or iptables is loaded from")
        }
        Verdict::MayBeBlocked(rule) => {
            Step::ok(FIREWALL, "no rule of this machine stops it for certain").with(format!("this rule may stop it: {rule}"))
        }
        Verdict::Unknown(reason) => {
            Step::ok(FIREWALL, "the rules of this machine aren't known").with(reason)
        }
    }
}

/// The step for a port of this machine: who listens on it, and at which address.
pub(crate) fn own_port(to: IpAddr, port: u16, outcome: Outcome, cx: &Context) -> Result<Step> {
    let all = sockets::all(cx)?;
    let on_port =
        |socket: &&Socket| socket.is_listening() && !socket.local.is_udp && socket.local.port == port;
    let listeners: Vec<&Socket> = all.iter().filter(on_port).collect();
    let shown = |socket: &&&Socket| {
        let names = socket.local.names().join(", ");
        let pids: Vec<String> = socket.pids().iter().map(u32::to_string).collect();
        match names.is_empty() {
            true => socket.local.shown(),
            false => format!("{} ({names}, PID {})", socket.local.shown(), pids.join(", ")),
        }
    };
    let told: Vec<String> = listeners.iter().map(|socket| shown(&socket)).collect();
    let takes = |socket: &&Socket| match socket.local.address {
        None => true,
        Some(own) if own.is_unspecified() => own.is_ipv6() || to.is_ipv4(),
        Some(own) => own.to_canonical() == to,
    };
    if listeners.is_empty() {
        let step = Step::fails(PORT, format!("nothing listens on TCP port {port} of this machine"));
        return Ok(step.next("svc_status of the service tells whether it runs, svc_troubleshoot why not"));
    }
    let takes_it = listeners.iter().any(takes);
    if takes_it && outcome == Outcome::Untried {
        let found = format!("this machine listens on it: {}", told.join(", "));
        return Ok(Step::ok(PORT, found).with(outcome.meaning()));
    }
    if takes_it {
        return Ok(Step::fails(
            PORT,
            format!("something listens, and connections to {to} fail: {}", told.join(", ")),
        ));
    }
    let is_loopback = listeners
        .iter()
        .all(|socket| socket.local.address.is_some_and(|own| own.to_canonical().is_loopback()));
    let what = if is_loopback { "only on the loopback" } else { "only on other addresses" };
    let step = Step::fails(PORT, format!("the service listens {what}, and not on {to}: {}", told.join(", ")));
    Ok(step.next(format!("let it listen on {to} or on every address (bind, listen or listen_addresses in its configuration), and restart it")))
}

/// The step for a port of another machine, from what became of the connection.
pub(crate) fn other_port(to: IpAddr, port: u16, outcome: Outcome, way: &Way, cx: &Context) -> Step {
    let there =
        format!("net_connections(port={port}) on that machine tells who listens, and on which address");
    match outcome {
        Outcome::Open => Step::ok(PORT, format!("{to} accepts connections on port {port}")),
        Outcome::Refused => Step::fails(
            PORT,
            format!("{to} is reached and refuses port {port}: nothing listens there, or only on its loopback, or its firewall rejects it"),
        )
        .next(there),
        Outcome::Forbidden => Step::fails(FIREWALL, "this machine's own kernel forbids it: a rule or a route of the type prohibit or blackhole, or a firewall")
            .next("net_routes_show lists the policy rules"),
        Outcome::HostUnreachable | Outcome::NetworkUnreachable => Step::fails(
            FIREWALL,
            format!("a router or a firewall on the way says that {to} can't be reached ({})", outcome.meaning()),
        )
        .next(format!("net_test(test=trace, target={to}) tells which one")),
        Outcome::TimedOut | Outcome::Unknown | Outcome::Untried => silent(to, port, outcome, way, cx),
    }
}

/// Nobody answers: whether the machine itself does tells a firewall from a machine that is off.
fn silent(to: IpAddr, port: u16, outcome: Outcome, way: &Way, cx: &Context) -> Step {
    let ping = ping::ping(&[to], cx).ok().and_then(|mut answers| answers.pop()).map(|(_, ping)| ping);
    if let Some(ping) = ping.as_ref().filter(|ping| ping.received > 0) {
        let received = format!("{} of {} echo requests are answered", ping.received, ping.sent);
        if outcome == Outcome::Untried {
            let found = format!(
                "{to} answers echo requests, and whether port {port} accepts connections isn't known"
            );
            return Step::ok(PORT, found).with(received).with(outcome.meaning());
        }
        return Step::fails(
            FIREWALL,
            format!(
                "{to} answers echo requests and not port {port}: a firewall there, or on the way, drops it"
            ),
        )
        .with(received)
        .next(format!("allow TCP port {port} in the firewall of {to}, and of the network between"));
    }
    let pinged = match &ping {
        Some(_) => "echo requests aren't answered either",
        None => "echo requests couldn't be sent, since there is no ping",
    };
    let step = |found: String| Step::fails(FIREWALL, found).with(pinged);
    let hops = trace::trace(to, cx).map(|trace| trace.hops).unwrap_or_default();
    let last =
        hops.iter().rev().find_map(|hop| hop.address.as_ref().map(|address| (hop.hop, address.clone())));
    match (last, way.via) {
        (Some((_, address)), _) if address == to.to_string() => {
            step(format!("{to} is there and doesn't answer port {port}: a firewall there, or on the way, drops it"))
                .next(format!("allow TCP port {port} in the firewall of {to}"))
        }
        (Some((hop, address)), _) => {
            step(format!("packets get as far as {address} (hop {hop}) and no farther: {to} is off, a firewall drops them, or the way back is missing"))
                .next(format!("look at {to} itself, and at {address}"))
        }
        (None, Some(via)) if !hops.is_empty() => Step::fails(
            "neighbour",
            format!("the gateway {via} is there, and nothing comes back through it: it is the wrong gateway, or it forwards nothing"),
        )
        .with(pinged)
        .with(format!("no router on the way answers a trace; some never do, and then {to} may be off, or a firewall drop everything"))
        .next(format!("net_explain to another address beyond {via} tells whether it forwards; net_routes_show(to={to}) tells what made the route")),
        _ => step(format!("{to} doesn't answer port {port}: it is off, a firewall drops it, or the way back is missing"))
            .next(format!("look at {to} itself; net_test(test=trace, target={to}) tells how far packets get")),
    }
}

/// The step where no port was asked for: whether the machine answers at all.
pub(crate) fn any_answer(to: IpAddr, cx: &Context) -> Result<Step> {
    let ping = ping::ping(&[to], cx)?.pop().map(|(_, ping)| ping).unwrap_or_default();
    if ping.received > 0 {
        let found = format!("{to} answers {} of {} echo requests", ping.received, ping.sent);
        return Ok(Step::ok(PORT, found).next("name a port to learn whether a service answers"));
    }
    Ok(Step::fails(
        FIREWALL,
        format!("{to} doesn't answer echo requests: it is off, or a firewall drops them"),
    )
    .next("name a port: many machines answer connections and no echo requests"))
}
