//! The tools for the machine itself: restarting it and turning it off.
#![forbid(unsafe_code)]

mod power;
mod tools;

use linux_sysadmin_sdk::prelude::*;

/// The module, with its tools and grants.
pub fn module() -> Module {
    let module =
        Module::new("machine", env!("CARGO_PKG_VERSION"), "machine", "The machine itself: its power state")
            .license(env!("CARGO_PKG_LICENSE"));
    tools::power::tools(module.grants(power::grants))
}

linux_sysadmin_sdk::export!(module);
