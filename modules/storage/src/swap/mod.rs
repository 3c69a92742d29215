//! Swap areas.

mod add;
pub(crate) mod areas;
mod commands;
mod list;
mod remove;

use linux_sysadmin_sdk::{DurationCategory, prelude::*};

/// Looks at a device itself, past every cache. It ends with 2 where nothing is on it.
const PROBE: CommandLine = CommandLine::new("blkid --probe --output export -- <disk>");

/// Adds the tools of this folder, with their grants.
pub(crate) fn tools(module: Module) -> Module {
    module
        .grants(grants)
        .tool(Tool::new("swap_list", "Swap areas, fstab, and whose memory is in them", list::list))
        .tool(
            Tool::new("swap_add", "Swap on a new file (size) or a blank partition (device)", add::add)
                .risk(Risk::High)
                .duration(DurationCategory::Normal),
        )
        .tool(
            Tool::new("swap_remove", "Swap off and out of fstab, where memory has room", remove::remove)
                .risk(Risk::High)
                .duration(DurationCategory::Normal)
                .argument_alias("device", "path"),
        )
}

fn grants(module: Module) -> Module {
    let module = module
        .path(PathGrant::read(areas::MEMORY, "how much memory is available"))
        .path(PathGrant::read(list::ZSWAP, "whether swap is compressed"))
        .path(PathGrant::read(list::SWAPPINESS, "how readily the kernel swaps"))
        .command(PROBE.read("whether a device has anything on it").as_root());
    add::grants(commands::grants(module))
}
