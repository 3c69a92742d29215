//! `ssh_disconnect`: ends a connection.

use linux_sysadmin_sdk::prelude::*;

use crate::connection::typed;
use crate::host;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DisconnectArgs {
    /// Default: the current one
    host: Option<String>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Disconnected {
    host: String,
    was_connected: bool,
    /// The current host; `null` where calls have to name their host.
    current: Option<String>,
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
