//! The second and the third step: a route leads to the address, and the next machine on it is there.

use std::net::IpAddr;

use linux_sysadmin_sdk::prelude::*;

use super::Step;
use crate::ip;
use crate::links::{self, LINKS, Link};
use crate::tools::routes_show::{GET, Raw, way_of};

const ROUTE: &str = "route";
const NEIGHBOUR: &str = "neighbour";

/// Prints how the kernel sends a packet of a connection, which rules for ports may change.
const GET_PORT: CommandLine = CommandLine::new("ip -json route get <address> ipproto tcp dport <port>");

/// Prints what the kernel knows of a machine on an own network.
const NEIGHBOURS: CommandLine = CommandLine::new("ip -json neighbour show to <address>");

/// The exit code of ip where the kernel refused, and not its own parser, as in versions that don't know the words.
const REFUSED_BY_KERNEL: i32 = 2;

pub(crate) fn grants() -> [CommandGrant; 2] {
    [
        GET_PORT.read("how a packet to a port is sent"),
        NEIGHBOURS.read("whether the next machine on the way answers"),
    ]
}

/// The way of a packet.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) dev: Option<String>,
    pub(crate) via: Option<IpAddr>,
    pub(crate) src: Option<IpAddr>,
    /// The address is this machine's own.
    pub(crate) is_local: bool,
}

/// The step, and the way where there is one.
pub(crate) fn route(to: IpAddr, port: Option<u16>, cx: &Context) -> Result<(Step, Option<Way>)> {
    let text = to.to_string();
    let asked = match port {
        Some(port) => GET_PORT.with([text.clone(), port.to_string()]),
        None => GET.with([&text]),
    };
    let [output, links] = cx.run_each([asked, LINKS.command()]);
    let output = match output? {
        output if port.is_none() || matches!(output.exit_code, 0 | REFUSED_BY_KERNEL) => output,
        _ => cx.run(GET.with([&text]))?,
    };
    // They only tell whether the interface of the route is up.
    let links = links.and_then(links::parse).unwrap_or_default();
    let raw = match way_of(output)? {
        Ok(raw) => raw,
        Err(problem) => {
            let step = Step::fails(ROUTE, format!("no packet leaves for {to}: {problem}"));
            return Ok((explained(step, to, &links), None));
        }
    };
    let way = way(&raw);
    if way.is_local {
        return Ok((Step::ok(ROUTE, format!("{to} is this machine's own address")), Some(way)));
    }
    let dev = way.dev.clone().unwrap_or_default();
    let words = match way.via {
        Some(via) => format!("to {to} by the gateway {via} on {dev}"),
        None => format!("{to} is on the network of {dev}"),
    };
    let words = match way.src {
        Some(src) => format!("{words}, from {src}"),
        None => words,
    };
    let link = links.iter().find(|link| link.is_named(&dev));
    if let Some(state) = link.map(Link::state).filter(|state| *state != "up") {
        let step = Step::fails(ROUTE, format!("{words}, and {dev} {}", in_words(state)));
        return Ok((
            step.next(format!("net_interfaces(name={dev}) tells more; check its cable or its other end")),
            None,
        ));
    }
    Ok((Step::ok(ROUTE, words), Some(way)))
}

fn way(raw: &Raw) -> Way {
    let address = |text: Option<String>| text.and_then(|text| text.parse().ok());
    Way {
        dev: raw.dev.clone(),
        via: address(raw.next_hop()),
        src: address(raw.prefsrc.clone()),
        is_local: raw.is_local(),
    }
}

fn in_words(state: &str) -> String {
    match state {
        "no carrier" => "has no carrier".to_owned(),
        "lower layer down" => "has no carrier below it".to_owned(),
        state => format!("is {state}"),
    }
}

/// What may be the reason that no route leads there: no interface is up that has an address of the family.
fn explained(step: Step, to: IpAddr, links: &[Link]) -> Step {
    let is_of_family = |address: &str| address.contains(':') == to.is_ipv6();
    let has_address = |link: &&Link| {
        link.kind() != Some("loopback")
            && link
                .addr_info
                .iter()
                .any(|address| is_of_family(&address.local) && !address.local.starts_with("fe80:"))
    };
    let family = if to.is_ipv6() { "IPv6" } else { "IPv4" };
    let with: Vec<&Link> = links.iter().filter(has_address).collect();
    let down: Vec<String> = with
        .iter()
        .filter(|link| link.state() != "up")
        .map(|link| format!("{} {}", link.ifname, in_words(link.state())))
        .collect();
    let step = match (with.is_empty(), down.is_empty()) {
        (true, _) => step.with(format!("no interface has an address of {family}")),
        (false, false) => step.with(down.join(", ")),
        (false, true) => step,
    };
    step.next("net_routes_show lists the routes and rules, and which of them is missing")
}

/// The step, None where the link needs no neighbours, as a tunnel. It is asked after an attempt to connect, which makes the
/// kernel look for the neighbour.
pub(crate) fn neighbour(to: IpAddr, way: &Way, cx: &Context) -> Result<Option<Step>> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Neighbour {
        dst: String,
        lladdr: Option<String>,
        state: Vec<String>,
    }
    let next_hop = way.via.unwrap_or(to);
    let output = cx.run(NEIGHBOURS.with([next_hop.to_string()]))?;
    let mut found = ip::objects::<Neighbour>(output)?.list;
    found.retain(|neighbour| !neighbour.dst.is_empty());
    let Some(neighbour) = found.pop() else { return Ok(None) };
    let dev = way.dev.as_deref().unwrap_or_default();
    let is_missing = neighbour.state.iter().any(|state| matches!(state.as_str(), "FAILED" | "INCOMPLETE"));
    if !is_missing {
        let mac = neighbour.lladdr.map(|mac| format!(" ({mac})")).unwrap_or_default();
        return Ok(Some(Step::ok(NEIGHBOUR, format!("{next_hop}{mac} is there on {dev}"))));
    }
    let state = format!("the kernel's entry for {next_hop} on {dev} is {}", neighbour.state.join(" "));
    let step = match way.via {
        Some(via) => Step::fails(NEIGHBOUR, format!("the gateway {via} doesn't answer on {dev}: it is the wrong address, or the router is off"))
            .next(format!("net_routes_show(to={to}) tells what made the route and who manages {dev}")),
        None => Step::fails(NEIGHBOUR, format!("no machine on the network of {dev} has {to}: it is off, in another network, or the address is wrong"))
            .next(format!("check the address and the length of the prefix on {dev}: net_interfaces(name={dev})")),
    };
    Ok(Some(step.with(state)))
}
