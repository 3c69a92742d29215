//! The machine itself: its hardware and its system.
//!
//! `machine_info` reads `/proc` and `/sys` in at most three rounds of many files each, and runs no command.
#![forbid(unsafe_code)]

mod hardware;
mod tools;

use linux_sysadmin_sdk::prelude::*;

/// The module, with its tools and the files that they read.
pub fn module() -> Module {
    Module::new(
        "machine",
        env!("CARGO_PKG_VERSION"),
        "machine",
        "Hardware, kernel and identity of the machine",
    )
    .license(env!("CARGO_PKG_LICENSE"))
    .grants(grants)
    .tool(Tool::new("machine_info", "Hardware and system; default: all, short", tools::info::info).instant())
}

fn grants(module: Module) -> Module {
    module.paths(hardware::grants())
}

linux_sysadmin_sdk::export!(module);
