//! The disks, their file systems, and what fills them.

mod block_devices;
mod btrfs;
mod cause;
mod cleaning;
mod deleted;
mod growable;
mod growth;
mod health;
mod largest;
mod list;
mod mdstat;
mod owners;
mod place;
mod services;
mod smart;
mod space;
mod top;
mod usage;
mod walk;

use linux_sysadmin_sdk::{DurationCategory, prelude::*};

/// Adds the tools of this folder, with their grants.
pub(crate) fn tools(module: Module) -> Module {
    module
        .grants(devices)
        .grants(usage_of)
        .tool(Tool::new(
            "disk_list",
            "Disks, partitions, volumes: size, file system, UUID, mounts, RAID",
            list::list,
        ))
        .tool(
            Tool::new("disk_health", "SMART, RAID and file system errors, what they mean", health::health)
                .helps("READ_ONLY_FILE_SYSTEM", "See whether its disk has errors: disk_health"),
        )
        .tool(
            Tool::new(
                "disk_usage",
                "Room on file systems, and the cause where one is nearly full",
                usage::usage,
            )
            .helps("OUT_OF_SPACE", "See which file system is full, and what fills it: disk_usage")
            .duration(DurationCategory::Normal)
            .first(),
        )
        .tool(
            Tool::new("disk_usage_top", "Largest directories and files, what may go", top::top)
                .helps("OUT_OF_SPACE", "See what takes the space: disk_usage_top")
                .duration(DurationCategory::Normal),
        )
}

fn devices(module: Module) -> Module {
    module
        .path(PathGrant::read(mdstat::MDSTAT, "state of software RAID"))
        .path(PathGrant::read(health::EXT4, "which ext4 file systems there are"))
        .path(PathGrant::read(health::EXT4_ERRORS, "errors that ext4 has met"))
        .commands(block_devices::grants())
        .commands(smart::grants())
        .commands(btrfs::grants())
}

fn usage_of(module: Module) -> Module {
    module
        .paths(cleaning::grants())
        .commands(space::grants())
        .commands(walk::grants())
        .commands(growth::grants())
        .commands(growable::grants())
        .commands(place::grants())
        .commands(deleted::grants())
        .commands(services::grants())
}
