//! Storage: disks and what fills them, volumes, mounts, and swap.
#![forbid(unsafe_code)]

mod disks;
mod file_system_size;
mod lvm;
mod mounts;
mod size;
mod swap;

use linux_sysadmin_sdk::{mounts as mount_table, prelude::*, processes};

/// The module, with its tools and grants.
pub fn module() -> Module {
    let module = Module::new(
        "storage",
        env!("CARGO_PKG_VERSION"),
        "storage",
        "Disks and what fills them, volumes, mounts, swap",
    )
    .license(env!("CARGO_PKG_LICENSE"))
    .grants(facts);
    let module = disks::tools(module);
    let module = lvm::tools(module);
    swap::tools(mounts::tools(module))
}

/// The files and commands that the tools of several folders read.
fn facts(module: Module) -> Module {
    module
        .paths(mount_table::grants())
        .commands(file_system_size::grants())
        .paths(processes::grants())
        .path(PathGrant::read(swap::areas::SWAPS, "which swap areas are in use"))
}

linux_sysadmin_sdk::export!(module);
