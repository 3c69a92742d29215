//! `ssh_test_connection`: tries a connection, and ends it again.

use linux_sysadmin_sdk::prelude::*;
use serde_json::Number;

use crate::connection::{HostArgs, typed};
use crate::host;

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

pub(crate) fn ssh_test_connection(args: HostArgs, _: &Context) -> Result<Single<Tested>> {
    let (host, given) = args.given();
    Ok(Single(typed(&host::test(&host, &given)?)?))
}
