//! The machine itself: its hardware, its system, and its power state.
//!
//! `machine_info` reads `/proc` and `/sys` in at most three rounds of many files each, and runs no command.
#![forbid(unsafe_code)]

mod hardware;
mod power;
mod sysctl;
mod tools;

use linux_sysadmin_sdk::prelude::*;

/// The module, with its tools and grants.
pub fn module() -> Module {
    let module = Module::new(
        "machine",
        env!("CARGO_PKG_VERSION"),
        "machine",
        "Hardware, kernel, identity and power state of the machine",
    )
    .license(env!("CARGO_PKG_LICENSE"))
    .grants(hardware)
    .grants(power::grants)
    .grants(sysctl::grants)
    .tool(Tool::new("machine_info", "Hardware and system; default: all, short", tools::info::info).instant());
    tools::sysctl::tools(tools::power::tools(module))
}

fn hardware(module: Module) -> Module {
    module.paths(hardware::grants())
}

linux_sysadmin_sdk::export!(module);
