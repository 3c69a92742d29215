//! The command lines, and what each is for.

use linux_sysadmin_sdk::prelude::*;

/// Without `--readonly`, since that hides how full snapshots and pools are, which only the kernel knows. LVM from 2.03 on
/// repairs nothing in a report.
pub(super) const PVS: CommandLine = CommandLine::new(concat!(
    "pvs --reportformat=json --units=b --nosuffix ",
    "--options=pv_name,vg_name,vg_uuid,pv_size,pv_free,pv_attr,pv_missing"
));
pub(super) const VGS: CommandLine = CommandLine::new(concat!(
    "vgs --reportformat=json --units=b --nosuffix ",
    "--options=vg_name,vg_uuid,vg_attr,vg_extent_size,vg_extent_count,vg_free_count,vg_missing_pv_count"
));
pub(super) const LVS: CommandLine = CommandLine::new(concat!(
    "lvs --reportformat=json --units=b --nosuffix ",
    "--options=vg_name,vg_uuid,lv_name,lv_attr,lv_size,lv_path,lv_dm_path,lv_layout,origin,pool_lv,",
    "data_percent,metadata_percent,lv_kernel_minor"
));
/// Old versions have neither the column PATH nor MOUNTPOINTS, so that it is asked for names as paths alone.
pub(super) const LSBLK: CommandLine = CommandLine::new("lsblk --json --paths --list --output=NAME,FSTYPE");
/// Asked for the mount points of volumes only, which lie on disks of this machine.
pub(super) const DF: CommandLine =
    CommandLine::new("df --block-size=1 --output=used,avail,target -- <path>...");

/// Reads the device itself: the caches of blkid and udev may be older than what is on it.
pub(super) const PROBE: CommandLine = CommandLine::new("blkid --probe --output export -- <disk>");
pub(super) const EXT_LEAST: CommandLine = CommandLine::new("resize2fs -P -- <disk>");

/// The space of a new volume may hold what a removed one left there. A file system whose signature is left would be found
/// again by blkid, and mounted by its old UUID. So lvcreate looks for signatures. Since it is asked without `--yes` and its
/// input is empty, it wipes none that it finds: it fails, and makes no volume.
pub(super) const CREATE: CommandLine =
    CommandLine::new("lvcreate --zero=y --wipesignatures=y --extents=<int> --name=<volume> -- <volume>");
/// The same for a caller who wants old signatures wiped.
pub(super) const CREATE_WIPED: CommandLine = CommandLine::new(
    "lvcreate --yes --zero=y --wipesignatures=y --extents=<int> --name=<volume> -- <volume>",
);
pub(super) const SNAPSHOT: CommandLine =
    CommandLine::new("lvcreate --snapshot --extents=<int> --name=<volume> -- <volume>");
pub(super) const THIN_SNAPSHOT: CommandLine =
    CommandLine::new("lvcreate --snapshot --name=<volume> -- <volume>");
/// Asks otherwise whether it is meant, where the volume is active.
pub(super) const REMOVE: CommandLine = CommandLine::new("lvremove --yes -- <volume>");
pub(super) const EXTEND: CommandLine = CommandLine::new("lvextend --extents=<int> -- <volume>");
pub(super) const REDUCE: CommandLine = CommandLine::new("lvreduce --yes --extents=<int> -- <volume>");

/// Without `-F` and `-f`: xfs and btrfs refuse a device that holds something.
pub(super) const MAKE_EXT4: CommandLine = CommandLine::new("mkfs.ext4 -q -- <disk>");
pub(super) const MAKE_XFS: CommandLine = CommandLine::new("mkfs.xfs -q -- <disk>");
pub(super) const MAKE_BTRFS: CommandLine = CommandLine::new("mkfs.btrfs -q -- <disk>");
/// resize2fs wants a check before it resizes what isn't mounted.
pub(super) const EXT_CHECK: CommandLine = CommandLine::new("e2fsck -f -p -- <disk>");
pub(super) const EXT_FILL: CommandLine = CommandLine::new("resize2fs -- <disk>");
pub(super) const EXT_RESIZE: CommandLine = CommandLine::new("resize2fs -- <disk> <int>K");
pub(super) const XFS_FILL: CommandLine = CommandLine::new("xfs_growfs -- <path>");
/// Names the device by its number, because a bare `max` means device 1, which may be another one.
pub(super) const BTRFS_FILL: CommandLine = CommandLine::new("btrfs filesystem resize -- <int>:max <path>");

/// Has the sectors that were written since the boot, for how soon a snapshot is full.
pub(super) const WRITTEN: &str = "/sys/devices/virtual/block/dm-*/stat";
pub(super) const UPTIME: &str = "/proc/uptime";

/// Adds the grants.
pub(super) fn grants(module: Module) -> Module {
    let reports = [
        (PVS, "physical volumes"),
        (VGS, "volume groups"),
        (LVS, "logical volumes, and how full snapshots and pools are"),
    ];
    let looks = [(PROBE, "what is on a volume"), (EXT_LEAST, "how small the file system can get")];
    let high = [
        (CREATE, "to make a volume"),
        (CREATE_WIPED, "to make a volume where old signatures may be wiped"),
        (REMOVE, "to take away what a failed plan made"),
        (MAKE_EXT4, "to make a file system on a new volume"),
        (MAKE_XFS, "to make a file system on a new volume"),
        (MAKE_BTRFS, "to make a file system on a new volume"),
    ];
    let critical = [
        (EXTEND, "to grow a volume"),
        (REDUCE, "to shrink a volume after its file system"),
        (EXT_CHECK, "to check a file system before it is resized"),
        (EXT_FILL, "to let a file system fill its volume"),
        (EXT_RESIZE, "to shrink a file system before its volume"),
        (XFS_FILL, "to let a file system fill its volume"),
        (BTRFS_FILL, "to let a file system fill its volume"),
    ];
    module
        // Not as root alone: a machine without LVM says so to everybody.
        .commands(reports.map(|(line, why)| line.read(why).as_root_if_available()))
        .commands(looks.map(|(line, why)| line.read(why).as_root()))
        .command(LSBLK.read("which file systems volumes hold"))
        .command(DF.read("how full the file systems of volumes are"))
        .commands(high.map(|(line, why)| line.change(Risk::High, why)))
        .commands(critical.map(|(line, why)| line.change(Risk::Critical, why)))
        .commands([SNAPSHOT, THIN_SNAPSHOT].map(|line| line.change(Risk::Moderate, "to make a snapshot")))
        .paths([WRITTEN, UPTIME].map(|path| PathGrant::read(path, "how much is written to volumes")))
}
