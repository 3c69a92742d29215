//! The machine itself: its hardware, its system, and its power state.
//!
//! `machine_info` reads `/proc` and `/sys` in at most three rounds of many files each, and runs no command.
#![forbid(unsafe_code)]

mod hardware;
mod near;
mod power;
mod settings;
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
    .grants(settings::grants)
    .grants(sysctl::grants)
    .tool(Tool::new("machine_info", "Hardware and system; default: all, short", tools::info::info).instant())
    .tool(Tool::new("machine_time", "Clock: time zone, NTP, why it is off", tools::time::time))
    .tool(
        Tool::new("machine_set", "Set hostname, time zone, locale, NTP", tools::set::set)
            .idempotent()
            .argument_alias("name", "hostname")
            .risk(Risk::Moderate),
    );
    tools::sysctl::tools(tools::power::tools(module))
}

fn hardware(module: Module) -> Module {
    module.paths(hardware::grants())
}

linux_sysadmin_sdk::export!(module);
