//! Backups: made, listed, checked and restored by rsync or restic, and scheduled with a retention.
//!
//! One script does it all, [`engine::TEXT`]: the tools run it, and so do timers and cron. Plans install it; tools that look need
//! it to be there. The module only checks arguments, finds configured destinations, and reads what the script prints.
#![forbid(unsafe_code)]

mod answer;
mod destination;
pub mod engine;
mod schedule;
mod tools;

use linux_sysadmin_sdk::prelude::*;

/// The module, with its tools and grants.
pub fn module() -> Module {
    let module = Module::new("backup", env!("CARGO_PKG_VERSION"), "backup", "Backups by rsync and restic")
        .license(env!("CARGO_PKG_LICENSE"))
        .grants(engine::grants)
        .grants(schedule::grants);
    tools::all(module)
}

linux_sysadmin_sdk::export!(module);
