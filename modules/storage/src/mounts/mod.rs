//! Mounts, and the file systems table.

mod add;
mod busy;
mod checks;
pub(crate) mod devices;
pub(crate) mod fstab;
mod kinds;
mod list;
mod options;
pub(crate) mod place;
pub(crate) mod plan;
mod remove;
mod source;
mod units;
mod validate;
mod verify;

use linux_sysadmin_sdk::{DurationCategory, prelude::*};

/// Adds the tools of this folder, with their grants.
pub(crate) fn tools(module: Module) -> Module {
    module
        .grants(grants)
        .tool(
            Tool::new(
                "mount_list",
                "Mounts beside fstab: what isn't mounted and why, what differs",
                list::list,
            )
            .helps("READ_ONLY_FILE_SYSTEM", "See how it is mounted: mount_list"),
        )
        .tool(
            Tool::new("mount_add", "Mount now and at each start", add::add)
                .loses_nothing()
                .risk(Risk::High)
                .duration(DurationCategory::Normal),
        )
        .tool(
            Tool::new(
                "mount_remove",
                "Unmount and remove from fstab; says who keeps it busy",
                remove::remove,
            )
            .risk(Risk::High)
            .duration(DurationCategory::Normal)
            .argument_alias("device", "mount_point"),
        )
        .tool(Tool::new("fstab_validate", "What is wrong with fstab", validate::validate))
}

fn grants(module: Module) -> Module {
    let module = module
        .path(PathGrant::write(fstab::PATH, "the file systems that are mounted at each start"))
        .commands(devices::grants())
        .commands(place::grants())
        .command(verify::grant());
    busy::grants(remove::grants(add::grants(units::grants(module))))
}
