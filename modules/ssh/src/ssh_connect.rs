//! `ssh_connect`: connects to a host.

use linux_sysadmin_sdk::prelude::*;
use serde_json::Value;

use crate::connection::{HostArgs, typed};
use crate::host;

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
