//! Logical volumes: what there is, and how they are made, resized and kept as they are.

mod commands;
mod create;
mod filesystem;
mod list;
mod names;
mod report;
mod resize;
mod rows;
mod snapshot;
mod uses;

use linux_sysadmin_sdk::prelude::*;

use report::{Kind, Lvm};

/// The bytes that the group of a volume has left for it, and the volume's path. Nothing for what is no plain volume.
pub(crate) fn room(device: &str, cx: &Context) -> Option<(u64, String)> {
    let lvm = Lvm::read(cx).ok()?;
    let (group, volume) = lvm.volume(device).ok()?;
    let bytes = group.bytes(group.usable_extents());
    (bytes > 0 && volume.kind() == Kind::Plain).then(|| (bytes, volume.path.clone()))
}

/// Adds the tools of this folder, with their grants.
pub(crate) fn tools(module: Module) -> Module {
    let list =
        Tool::new("lvm_list", "Volume groups and volumes: free, full, mounted, what to do", list::list)
            .alias("lvm_status")
            .argument_alias("vg", "vg_name");
    let create = Tool::new("lvm_create_lv", "New volume, by default ext4", create::create)
        .risk(Risk::High)
        .argument_alias("name", "lv_name")
        .argument_alias("vg", "vg_name");
    let resize =
        Tool::new("lvm_resize", "Resize a volume and its file system; shrinks ext4 only", resize::resize)
            .risk(Risk::Critical)
            .argument_alias("resize_fs", "resize_filesystem")
            .argument_alias("lv", "lv_path");
    let snapshot = Tool::new("lvm_snapshot", "Snapshot of a volume", snapshot::snapshot)
        .loses_nothing()
        .risk(Risk::Moderate)
        .argument_alias("name", "snapshot_name")
        .argument_alias("lv", "lv_path");
    module.grants(commands::grants).tool(list).tool(create).tool(resize).tool(snapshot)
}
