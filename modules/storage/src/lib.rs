//! Storage: disks and what fills them, volumes, mounts, and swap.
#![forbid(unsafe_code)]

mod disks;
mod lvm;
mod mounts;
mod swap;

use linux_sysadmin_sdk::prelude::*;

/// The module, with its tools and grants.
pub fn module() -> Module {
    let module = Module::new(
        "storage",
        env!("CARGO_PKG_VERSION"),
        "storage",
        "Disks and what fills them, volumes, mounts, swap",
    )
    .license(env!("CARGO_PKG_LICENSE"));
    let module = disks::tools(module);
    let module = lvm::tools(module);
    swap::tools(mounts::tools(module))
}

linux_sysadmin_sdk::export!(module);
