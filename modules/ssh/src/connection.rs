//! `ssh_connect`, `ssh_disconnect`, `ssh_session_info` and `ssh_test_connection`: what the host says of its
//! connections, as far as the contract names it.

use linux_sysadmin_sdk::{Category, prelude::*};
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

use crate::host::{self, Given};

/// A host, and what goes before its configuration.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct HostArgs {
    /// Alias of ~/.ssh/config, name or address
    host: String,
    #[schemars(range(min = 1))]
    port: Option<u16>,
    user: Option<String>,
    /// On the server's machine; absolute or ~/…
    identity_file: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DisconnectArgs {
    /// Default the current one
    host: Option<String>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Connected {
    host: String,
    current: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hostname: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    distro: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sudo: Option<Value>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Disconnected {
    host: String,
    was_connected: bool,
    /// None where calls have to name their host.
    current: Option<String>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Connection {
    host: String,
    connected: bool,
    current: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    jumps: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cipher: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_exchange: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host_key_algorithm: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    round_trip_ms: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uptime_seconds: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channels: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keepalive_interval_seconds: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sftp: Option<Value>,
    /// How often the connection was lost and had back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    restored: Option<Number>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// The names that `host` takes, by group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    known: Option<Value>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Tested {
    host: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host_key_algorithm: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    jumps: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    connect_ms: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    round_trip_ms: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server_version: Option<String>,
}

pub(crate) fn ssh_connect(args: HostArgs, _: &Context) -> Result<Noted<Connected>> {
    let (host, given) = args.given();
    let connected: Connected = typed(&host::connect(&host, &given)?)?;
    let name = &connected.host;
    let note = match connected.current {
        true => format!("calls without host look at {name} from now on; a change names it: host={name}"),
        false => format!("calls reach it where they name it: host={name}"),
    };
    Ok(Noted { data: connected, notes: vec![note] })
}

pub(crate) fn ssh_disconnect(args: DisconnectArgs, _: &Context) -> Result<Noted<Disconnected>> {
    let ended = host::disconnect(args.host.as_deref()).map_err(|problem| match problem.code.as_str() {
        "NOT_CONNECTED" => problem.remedy("Call ssh_session_info, which names the hosts"),
        _ => problem,
    })?;
    let ended: Disconnected = typed(&ended)?;
    let mut notes = vec![match &ended.current {
        Some(current) => format!("calls without host work on {current} from now on"),
        None => "calls have to name their host: several were connected to".to_owned(),
    }];
    if !ended.was_connected {
        notes.insert(0, format!("there was no connection to {}", ended.host));
    }
    Ok(Noted { data: ended, notes })
}

pub(crate) fn ssh_session_info(_: NoArgs, _: &Context) -> Result<Single<Connection>> {
    Ok(Single(typed(&host::connection()?)?))
}

pub(crate) fn ssh_test_connection(args: HostArgs, _: &Context) -> Result<Single<Tested>> {
    let (host, given) = args.given();
    Ok(Single(typed(&host::test(&host, &given)?)?))
}

impl HostArgs {
    fn given(self) -> (String, Given) {
        let Self { host, port, user, identity_file } = self;
        (host, Given { port, user, identity_file })
    }
}

/// Members that a later host adds are left out.
fn typed<T: DeserializeOwned>(said: &str) -> Result<T> {
    serde_json::from_str(said).map_err(|error| {
        Problem::new(
            "INVALID_ANSWER",
            Category::Internal,
            format!("what the host says of a connection: {error}"),
        )
    })
}
