//! Processes: signals to them, and their end.
#![forbid(unsafe_code)]

mod tools;

use linux_sysadmin_sdk::SignalGrant;
use linux_sysadmin_sdk::prelude::*;

/// The module, with its tools and grants.
pub fn module() -> Module {
    Module::new("processes", env!("CARGO_PKG_VERSION"), "processes", "Processes")
        .license(env!("CARGO_PKG_LICENSE"))
        .grants(signals)
        .tool(
            Tool::new(
                "proc_signal",
                "End processes (SIGTERM, then SIGKILL), or send a signal",
                tools::signal::proc_signal,
            )
            .risk(Risk::Moderate),
        )
}

/// The grants of `proc_signal`.
fn signals(module: Module) -> Module {
    module
        .signals(SignalGrant::new("end processes, stop them, and let them go on"))
        .command(tools::signal::MAIN_PROCESSES.read("main process of a unit, which is for systemd to end"))
        .paths(tools::signal::FILES.map(|(path, reason)| PathGrant::read(path, reason)))
}

linux_sysadmin_sdk::export!(module);
