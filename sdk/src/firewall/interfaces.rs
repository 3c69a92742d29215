//! The machine's interfaces with their addresses, and the interface by which another machine is reached.

use std::net::IpAddr;

use serde_json::Value;

use crate::{Command, CommandLine, Context, Module, Output, Problem, Result};

const ADDRESSES: CommandLine = CommandLine::new("ip -j address show");
const ROUTE: CommandLine = CommandLine::new("ip -j route get <address>");
const DEFAULT_ROUTE: CommandLine = CommandLine::new("ip -j route show default");

/// Asks for the commands that tell the interface of a packet.
pub(super) fn granted(module: Module) -> Module {
    module
        .command(ADDRESSES.read("which addresses the machine has"))
        .command(ROUTE.read("by which interface a packet comes from there"))
        .command(DEFAULT_ROUTE.read("by which interface packets come from elsewhere"))
}

/// An interface with its addresses.
pub(super) struct Interface {
    pub name: String,
    pub addresses: Vec<IpAddr>,
}

/// The command that shows the addresses.
pub(super) fn look() -> Command {
    ADDRESSES.command()
}

/// The command that shows the route to an address.
pub(super) fn route_look(address: IpAddr) -> Command {
    ROUTE.with([address.to_string()])
}

/// The interface by which packets from this address come; without an address, the one of the default route.
pub fn interface_towards(address: Option<IpAddr>, cx: &Context) -> Option<String> {
    let look = address.map_or_else(|| DEFAULT_ROUTE.command(), route_look);
    route(cx.run(look).ok()?).map(|(interface, _)| interface)
}

/// `[{"ifname":"lo","addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8}]}]`
pub(super) fn read(output: Option<Result<Output>>) -> Result<Vec<Interface>> {
    let output =
        output.unwrap_or_else(|| Err(Problem::unexpected("ip address", "")))?.success("ip address")?;
    let text = output.text();
    let parsed: Vec<Value> =
        serde_json::from_str(&text).map_err(|_| Problem::unexpected("ip -j address show", &text))?;
    let addresses = |interface: &Value| {
        let all = interface.get("addr_info").and_then(Value::as_array).into_iter().flatten();
        all.filter_map(|one| one.get("local")?.as_str()?.parse().ok()).collect()
    };
    let read = |interface: &Value| {
        Some(Interface {
            name: interface.get("ifname")?.as_str()?.to_owned(),
            addresses: addresses(interface),
        })
    };
    Ok(parsed.iter().filter_map(read).collect())
}

/// The interface of the route, and the machine's own address on it: `[{"dst":"10.0.0.5","dev":"eth0","prefsrc":"10.0.0.1"}]`.
pub(super) fn route(output: Output) -> Option<(String, Option<IpAddr>)> {
    let output = output.success("ip route").ok()?;
    let parsed: Vec<Value> = serde_json::from_str(&output.text()).ok()?;
    let first = parsed.first()?;
    let near = first.get("prefsrc").and_then(Value::as_str).and_then(|address| address.parse().ok());
    Some((first.get("dev")?.as_str()?.to_owned(), near))
}
