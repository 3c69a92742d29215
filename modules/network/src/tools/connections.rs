//! `net_connections`: who listens where, and who is connected with whom, one item for each process.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use linux_sysadmin_sdk::knowledge::Profile;
use linux_sysadmin_sdk::processes::{self, Found, Process, cgroup};
use linux_sysadmin_sdk::{prelude::*, text, units};

use crate::name;
use crate::sockets::{self, Socket};

/// So many connections of one process are told one by one. More of them are counted by the other end.
const NAMED: usize = 20;

/// So many other ends are counted by themselves.
const NAMED_REMOTES: usize = 10;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ConnectionsArgs {
    /// Port of either end
    port: Option<i64>,
    /// As listen, established
    state: Option<String>,
    /// Name or PID
    process: Option<String>,
    /// Unit of the process
    service: Option<String>,
    /// Address or CIDR
    remote: Option<String>,
}

/// A process with its sockets.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Item {
    /// None for sockets of the kernel, and for those whose process this account can't see.
    #[serde(flatten)]
    process: Option<Process>,
    /// Other processes that share a listening socket with it.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    shared_with: BTreeSet<u32>,
    /// The program that made the container, and the container's id or name.
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    /// The service that is known by a profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    listens: BTreeSet<String>,
    /// Protocol, state and both ends. An arrow to the left is a connection that was accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    connections: Vec<String>,
    /// In place of `connections` where they are many.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    by_state: BTreeMap<&'static str, usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    by_remote: Vec<String>,
}

pub(crate) fn net_connections(args: ConnectionsArgs, cx: &Context) -> Result<Listing<Item>> {
    let wanted = Wanted::of(args)?;
    let all = sockets::all(cx)?;
    // What a machine listens on tells which of two ends was accepted.
    let served: BTreeSet<(bool, u16)> = all
        .iter()
        .filter(|socket| socket.is_listening())
        .map(|socket| (socket.local.is_udp, socket.local.port))
        .collect();
    let mut notes = Vec::new();
    let total = all.len();
    let matching: Vec<Socket> = all.into_iter().filter(|socket| wanted.matches(socket)).collect();
    let mut by_pid = processes::by_pid(cx, matching.iter().flat_map(Socket::pids));
    let mut groups: BTreeMap<Option<u32>, Vec<Socket>> = BTreeMap::new();
    let mut states: BTreeMap<&'static str, usize> = BTreeMap::new();
    for socket in matching {
        let pids = socket.pids();
        if !wanted.matches_process(&pids, &socket, &by_pid) {
            continue;
        }
        *states.entry(socket.state).or_default() += 1;
        // A connection that nobody has any more waits until stray packets can't reach a new one.
        if socket.state == "time-wait" && wanted.state.is_none() {
            continue;
        }
        groups.entry(pids.first().copied()).or_default().push(socket);
    }
    let profiles = cx.detected();
    let mut items: Vec<(usize, Item)> = groups
        .into_iter()
        .map(|(pid, sockets)| {
            let count = sockets.len();
            (count, item(pid.and_then(|pid| by_pid.remove(&pid)), pid, sockets, &served, &profiles))
        })
        .collect();
    // Those that listen come first, then those with the most connections, and those without a process last.
    items.sort_by_key(|(count, item)| {
        (item.process.is_none(), item.listens.is_empty(), std::cmp::Reverse(*count))
    });
    let items: Vec<Item> = items.into_iter().map(|(_, item)| item).collect();
    notes.extend(counted(&states, total, &items));
    if items.iter().any(|item| item.process.is_none()) {
        notes.push(
            "sockets without a process belong to the kernel, or to a process that only root can see"
                .to_owned(),
        );
    }
    Ok(Listing { items, total: None, notes })
}

/// The sockets that are asked for.
#[derive(Default)]
struct Wanted {
    port: Option<u16>,
    state: Option<&'static str>,
    process: Option<String>,
    unit: Option<String>,
    remote: Option<(IpAddr, u8)>,
}

impl Wanted {
    fn of(args: ConnectionsArgs) -> Result<Self> {
        for (argument, value) in [("process", &args.process), ("service", &args.service)] {
            if value.as_ref().is_some_and(|value| value.trim().is_empty()) {
                let message = format!("{argument} is empty: expected a {argument}, or no such argument");
                return Err(Problem::validation("INVALID_ARGUMENTS", message));
            }
        }
        Ok(Self {
            port: args.port.map(name::check_port).transpose()?,
            state: args.state.as_deref().map(sockets::state).transpose()?,
            process: args.process.map(|process| process.trim().to_lowercase()),
            unit: args.service.map(|unit| units::with_type(unit.trim())),
            remote: args.remote.as_deref().map(network).transpose()?,
        })
    }

    fn matches(&self, socket: &Socket) -> bool {
        let has_port =
            |port: u16| socket.local.port == port || socket.remote.is_some_and(|(_, own)| own == port);
        self.port.is_none_or(has_port)
            && self.state.is_none_or(|state| state == socket.state)
            && self.remote.is_none_or(|of| socket.remote.is_some_and(|(address, _)| is_within(address, of)))
    }

    fn matches_process(&self, pids: &[u32], socket: &Socket, found: &BTreeMap<u32, Found>) -> bool {
        let is_named = |name: &String| {
            let names = socket.local.processes.iter().map(|(name, _)| name.to_lowercase());
            pids.iter().any(|pid| pid.to_string() == *name) || names.into_iter().any(|own| own.contains(name))
        };
        let is_of = |unit: &String| {
            pids.iter().filter_map(|pid| found.get(pid)).any(|found| cgroup::is_below(&found.cgroup, unit))
        };
        self.process.as_ref().is_none_or(is_named) && self.unit.as_ref().is_none_or(is_of)
    }
}

/// An address, or a network with the length of its prefix.
fn network(asked: &str) -> Result<(IpAddr, u8)> {
    let refused = || {
        let shown = text::excerpt(asked, 60);
        let message = format!(
            "remote is {shown:?}: expected an address such as 192.0.2.7, or a network such as 192.0.2.0/24"
        );
        Problem::validation("INVALID_REMOTE", message)
    };
    let (address, length) = match asked.trim().split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (asked.trim(), None),
    };
    let address: IpAddr = address.parse().map_err(|_| refused())?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let length = match length {
        Some(length) => length.parse().ok().filter(|length| *length <= longest).ok_or_else(refused)?,
        None => longest,
    };
    Ok((address.to_canonical(), length))
}

fn is_within(address: IpAddr, (network, length): (IpAddr, u8)) -> bool {
    let (bits, network, width) = match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            (u128::from(address.to_bits()), u128::from(network.to_bits()), 32)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => (address.to_bits(), network.to_bits(), 128),
        _ => return false,
    };
    let shift = width - u32::from(length);
    bits.checked_shr(shift).unwrap_or(0) == network.checked_shr(shift).unwrap_or(0)
}

fn item(
    found: Option<Found>,
    pid: Option<u32>,
    sockets: Vec<Socket>,
    served: &BTreeSet<(bool, u16)>,
    profiles: &[Profile],
) -> Item {
    let mut item = Item::default();
    if let Some(found) = &found {
        item.container = cgroup::container(&found.cgroup).map(|(by, name)| format!("{by} {name}"));
        let unit = found.process.unit.as_deref();
        let is_its = |profile: &&Profile| unit.is_some_and(|unit| profile.unit(unit).is_some());
        item.service = profiles.iter().find(is_its).map(|profile| profile.id.clone());
    }
    // A process that has ended meanwhile is told by its number and name.
    let named = || {
        let name =
            sockets.iter().flat_map(|socket| &socket.local.processes).map(|(name, _)| name.clone()).next();
        pid.map(|pid| Process {
            pid,
            started: None,
            command: format!("[{}]", name.unwrap_or_default()),
            unit: None,
            user: None,
        })
    };
    item.process = found.map(|found| found.process).or_else(named);
    let mut remotes: BTreeMap<IpAddr, usize> = BTreeMap::new();
    let count = sockets.iter().filter(|socket| !socket.is_listening()).count();
    for socket in &sockets {
        let protocol = socket.local.protocol();
        let local = socket.local.shown();
        item.shared_with.extend(socket.pids().into_iter().skip(1));
        let Some((address, port)) = socket.remote.filter(|_| !socket.is_listening()) else {
            item.listens.insert(format!("{protocol} {local}"));
            continue;
        };
        let arrow = if served.contains(&(socket.local.is_udp, socket.local.port)) { "<-" } else { "->" };
        if count <= NAMED {
            let remote = std::net::SocketAddr::from((address, port));
            item.connections.push(format!("{protocol} {} {local} {arrow} {remote}", socket.state));
        } else {
            *item.by_state.entry(socket.state).or_default() += 1;
            *remotes.entry(address).or_default() += 1;
        }
    }
    item.by_remote = most(remotes);
    item
}

/// The other ends with the most connections.
fn most(remotes: BTreeMap<IpAddr, usize>) -> Vec<String> {
    let mut remotes: Vec<_> = remotes.into_iter().collect();
    remotes.sort_by_key(|(address, count)| (std::cmp::Reverse(*count), *address));
    let more = remotes.len().saturating_sub(NAMED_REMOTES);
    let named = remotes.iter().take(NAMED_REMOTES).map(|(address, count)| format!("{address}: {count}"));
    let others: usize = remotes.iter().skip(NAMED_REMOTES).map(|(_, count)| count).sum();
    named.chain((more > 0).then(|| format!("{more} others: {others}"))).collect()
}

/// The sockets by their states, where the items don't show each of them.
fn counted(states: &BTreeMap<&'static str, usize>, total: usize, items: &[Item]) -> Option<String> {
    let matching: usize = states.values().sum();
    let is_hidden = states.contains_key("time-wait") || items.iter().any(|item| !item.by_state.is_empty());
    if matching == 0 {
        return Some(format!(
            "none of {total} sockets is as asked for, in the machine's own network namespace"
        ));
    }
    let parts: Vec<String> = states.iter().map(|(state, count)| format!("{count} {state}")).collect();
    is_hidden.then(|| format!("{matching} sockets: {}", parts.join(", ")))
}
