//! What the server knows of itself and of the machine that it administers.
#![forbid(unsafe_code)]

mod snapshot;

use linux_sysadmin_sdk::prelude::*;

fn session_info(_: NoArgs, _: &Context) -> Result<Single<snapshot::Info>> {
    #[cfg(target_family = "wasm")]
    let snapshot = linux_sysadmin_sdk::system::session_snapshot();
    // Only the host has one.
    #[cfg(not(target_family = "wasm"))]
    let snapshot = String::new();
    Ok(Single(snapshot::info(&snapshot)?))
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
            "Target host, distribution, privileges, MAC system, modules; call it first",
            session_info,
        )
        .instant(),
    )
}

linux_sysadmin_sdk::export!(module);
