//! The tools about the server itself: `sysadmin_session_info` shows the server, its modules, and the machine that it
//! administers, and `sysadmin_find_tools` finds tools.
#![forbid(unsafe_code)]

mod find;
mod snapshot;

use linux_sysadmin_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// Module whose fragment to add
    #[serde(default)]
    show_sudoers_reference: Option<String>,
    /// All modules, with their hashes
    #[serde(default)]
    show_modules: bool,
    /// Look at the target anew
    #[serde(default)]
    refresh: bool,
}

#[cfg(target_family = "wasm")]
use linux_sysadmin_sdk::system as host;

/// A stand-in for the host in native builds.
#[cfg(not(target_family = "wasm"))]
mod host;

fn session_info(args: Args, _: &Context) -> Result<Single<snapshot::Info>> {
    let snapshot = if args.refresh { host::session_refresh()? } else { host::session_snapshot() };
    let info = snapshot::info(&snapshot, args.show_modules)?;
    Ok(Single(match args.show_sudoers_reference {
        Some(module) => info.with_sudoers(&module, host::sudoers_reference(&module))?,
        None => info,
    }))
}

/// The module, with its tools.
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
            "Target host, distribution, privileges, MAC system, services that are known; call it first",
            session_info,
        )
        .first(),
    )
    .tool(
        Tool::new("sysadmin_find_tools", "Find tools for a need, and have them listed", find::find_tools)
            .instant()
            .on_controller()
            .first(),
    )
}

linux_sysadmin_sdk::export!(module);
