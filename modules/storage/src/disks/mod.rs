//! The disks, their file systems, and what fills them.

mod cause;
mod cleaning;
mod deleted;
mod growth;
mod largest;
mod mount_table;
mod owners;
mod place;
mod space;
mod top;
mod usage;
mod walk;

use linux_sysadmin_sdk::{DurationCategory, prelude::*, processes};

/// Adds the tools of this folder, with their grants.
pub(crate) fn tools(module: Module) -> Module {
    module
        .grants(looking)
        .tool(
            Tool::new(
                "disk_usage",
                "Room on file systems, and the cause where one is nearly full",
                usage::usage,
            )
            .duration(DurationCategory::Normal),
        )
        .tool(
            Tool::new(
                "disk_usage_top",
                "Largest directories and files below a path, and what may go",
                top::top,
            )
            .duration(DurationCategory::Normal),
        )
}

fn looking(module: Module) -> Module {
    module
        .path(PathGrant::read(mount_table::MOUNTINFO, "what is mounted"))
        .paths(processes::grants())
        .paths(cleaning::grants())
        .commands(space::grants())
        .commands(walk::grants())
        .commands(growth::grants())
        .commands(place::grants())
        .commands(deleted::grants())
}
