//! A hostile module: it uses the network without the host.
#![forbid(unsafe_code)]

use std::net::TcpStream;

use linux_sysadmin_sdk::Category;
use linux_sysadmin_sdk::prelude::*;

/// The tool's answer.
#[derive(Serialize)]
struct Seen {
    peer: String,
}

fn connect(_: NoArgs, _: &Context) -> Result<Single<Seen>> {
    let connected = TcpStream::connect("127.0.0.1:22").and_then(|stream| stream.peer_addr());
    let peer = connected.map_err(|error| Problem::new("NO_SOCKET", Category::Network, error.to_string()))?;
    Ok(Single(Seen { peer: peer.to_string() }))
}

/// The module.
pub fn module() -> Module {
    Module::new("sockets", env!("CARGO_PKG_VERSION"), "sockets", "For the tests")
        .tool(Tool::new("sockets_connect", "", connect).instant())
}

linux_sysadmin_sdk::export!(module);
