//! The `net_*` tools: they show interfaces, routes, name servers and connections, and change them.
//!
//! What the kernel knows of the network is asked of `ip -json` and `ss`. Which program has configured an interface is told
//! by that program's own state. A change is made twice: in the kernel, and where that program has it for the next start.
#![forbid(unsafe_code)]

mod change;
mod dns;
mod explain;
mod firewall;
mod ip;
mod links;
mod managers;
mod name;
mod probe;
mod public_files;
mod sockets;
mod target;
mod tools;

use change::owner;
use explain::way;
use linux_sysadmin_sdk::{DurationCategory, prelude::*, processes};
use tools::{
    addresses_modify, connections, dns_modify, dns_show, explain as explain_tool, interfaces, routes_modify,
    routes_show, test, wait,
};

/// The module, with its tools and grants.
pub fn module() -> Module {
    Module::new(
        "network",
        env!("CARGO_PKG_VERSION"),
        "network",
        "Interfaces, routes, name servers, connections",
    )
    .license(env!("CARGO_PKG_LICENSE"))
    .grants(grants)
    .tool(Tool::new(
        "net_interfaces",
        "Interfaces: addresses, state, faults, who manages them",
        interfaces::net_interfaces,
    ))
    .tool(Tool::new(
        "net_routes_show",
        "Routes and policy rules of both families, or the way to an address",
        routes_show::net_routes_show,
    ))
    .tool(Tool::new(
        "net_dns_show",
        "Name servers, search domains, their owner and faults",
        dns_show::net_dns_show,
    ))
    .tool(
        Tool::new(
            "net_connections",
            "Listening ports and connections by process",
            connections::net_connections,
        )
        .argument_alias("unit", "service"),
    )
    .tool(
        Tool::new("net_test", "Ping, trace, connect, TLS, DNS; family: 4 or 6", test::net_test)
            .duration(DurationCategory::Normal),
    )
    .tool(
        Tool::new("net_wait", "Wait until a TCP port answers", wait::net_wait)
            .duration(DurationCategory::Slow),
    )
    .tool(
        Tool::new(
            "net_explain",
            "Why this machine can't reach a target: name, route, neighbour, firewall, port",
            explain_tool::net_explain,
        )
        .duration(DurationCategory::Normal)
        .first(),
    )
    .tool(
        Tool::new(
            "net_routes_modify",
            "Route to a CIDR or default, now and at boot",
            routes_modify::net_routes_modify,
        )
        .risk(Risk::High)
        .argument_alias("destination", "to")
        .argument_alias("gateway", "via")
        .argument_alias("dev", "interface")
        .value_alias("action", "delete", "remove")
        .value_alias("action", "change", "replace"),
    )
    .tool(
        Tool::new(
            "net_addresses_modify",
            "Address of an interface, now and at boot; undone if it cuts the connection",
            addresses_modify::net_addresses_modify,
        )
        .risk(Risk::High)
        .argument_alias("dev", "interface")
        .value_alias("action", "delete", "remove"),
    )
    .tool(
        Tool::new(
            "net_dns_modify",
            "Replace all name servers or search domains, through their owner",
            dns_modify::net_dns_modify,
        )
        .risk(Risk::Moderate)
        .duration(DurationCategory::Normal)
        .argument_alias("nameservers", "servers")
        .argument_alias("domains", "search"),
    )
}

fn grants(module: Module) -> Module {
    module
        .command(links::LINKS.read("interfaces with their addresses and counters"))
        .command(managers::NMCLI_DEVICES.read("which interfaces NetworkManager manages"))
        .command(sockets::SOCKETS.read("sockets, and the processes that have them").as_root_if_available())
        .commands(routes_show::grants())
        .commands(dns_show::command_grants())
        .commands(test::grants())
        .commands(way::grants())
        .commands(firewall::grants())
        .commands(routes_modify::grants())
        .commands(addresses_modify::grants())
        .commands(owner::command_grants())
        .commands(dns_modify::command_grants())
        .paths(interfaces::grants())
        .paths(managers::grants())
        .paths(dns_show::path_grants())
        .paths(owner::path_grants())
        .paths(dns_modify::path_grants())
        .paths(processes::grants())
}

linux_sysadmin_sdk::export!(module);
