//! `ssh_session_info`: the connection in use, with its latency, ciphers and channels.

use linux_sysadmin_sdk::prelude::*;
use serde_json::{Number, Value};

use crate::connection::typed;
use crate::host;

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
    /// The number of times that the connection was lost and restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    restored: Option<Number>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// The names that `host` takes, by group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    known: Option<Value>,
}

pub(crate) fn ssh_session_info(_: NoArgs, _: &Context) -> Result<Single<Connection>> {
    Ok(Single(typed(&host::connection()?)?))
}
