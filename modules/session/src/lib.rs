//! What the server knows of itself and of the machine that it administers.
#![forbid(unsafe_code)]

mod snapshot;

use linux_sysadmin_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Asked {
    /// Add the sudoers fragment of each module
    #[serde(default)]
    show_sudoers_reference: bool,
    /// Find out anew what the target is, where that has changed since the server started
    #[serde(default)]
    refresh: bool,
}

#[cfg(target_family = "wasm")]
use linux_sysadmin_sdk::system as host;

/// Only the host has what these tell.
#[cfg(not(target_family = "wasm"))]
mod host {
    pub(crate) fn session_snapshot() -> String {
        String::new()
    }

    pub(crate) fn session_refresh() -> linux_sysadmin_sdk::Result<String> {
        Ok(String::new())
    }

    pub(crate) fn sudoers_reference() -> Vec<(String, String)> {
        Vec::new()
    }
}

fn session_info(asked: Asked, _: &Context) -> Result<Single<snapshot::Info>> {
    let snapshot = if asked.refresh { host::session_refresh()? } else { host::session_snapshot() };
    let info = snapshot::info(&snapshot)?;
    Ok(Single(match asked.show_sudoers_reference {
        true => info.with_sudoers(host::sudoers_reference()),
        false => info,
    }))
}

/// The module.
pub fn module() -> Module {
    Module::new(
        "session",
        env!("CARGO_PKG_VERSION"),
        "session",
        "What the server knows of itself and its target",
    )
    .license(env!("CARGO_PKG_LICENSE"))
    .tool(
        Tool::new(
            "sysadmin_session_info",
            "Target host, distribution, privileges, MAC system, services that are known, modules; call it first",
            session_info,
        )
        .instant(),
    )
}

linux_sysadmin_sdk::export!(module);
