//! `sysadmin_session_info`: shows the server, its modules, and the machine that it administers.
#![forbid(unsafe_code)]

mod snapshot;

use linux_sysadmin_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// Module whose fragment to add
    #[serde(default)]
    show_sudoers_reference: Option<String>,
    /// Look at the target anew
    #[serde(default)]
    refresh: bool,
}

#[cfg(target_family = "wasm")]
use linux_sysadmin_sdk::system as host;

/// A stand-in for the host in native builds, where nothing of this is known.
#[cfg(not(target_family = "wasm"))]
mod host {
    pub(crate) fn session_snapshot() -> String {
        String::new()
    }

    pub(crate) fn session_refresh() -> linux_sysadmin_sdk::Result<String> {
        Ok(String::new())
    }

    pub(crate) fn sudoers_reference(_: &str) -> Option<String> {
        None
    }
}

fn session_info(args: Args, _: &Context) -> Result<Single<snapshot::Info>> {
    let snapshot = if args.refresh { host::session_refresh()? } else { host::session_snapshot() };
    let info = snapshot::info(&snapshot)?;
    Ok(Single(match args.show_sudoers_reference {
        Some(module) => info.with_sudoers(&module, host::sudoers_reference(&module))?,
        None => info,
    }))
}

/// The module, with its tool.
pub fn module() -> Module {
    Module::new(
        "session",
        env!("CARGO_PKG_VERSION"),
        "session",
        "What the server knows of itself and its target",
    )
    .license(env!("CARGO_PKG_LICENSE"))
    .tool(Tool::new(
        "sysadmin_session_info",
        "Target host, distribution, privileges, MAC system, services that are known, modules; call it first",
        session_info,
    ))
}

linux_sysadmin_sdk::export!(module);
