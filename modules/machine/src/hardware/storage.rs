//! Disks: whole block devices that hardware or a hypervisor provides.

use super::{Files, Listings};
use linux_sysadmin_sdk::prelude::*;

pub(crate) const BLOCK: &str = "/sys/block";
const OF_DISK: &[&str] = &["size", "queue/rotational", "device/model"];
pub(crate) const GLOBS: &[&str] =
    &["/sys/block/*/size", "/sys/block/*/queue/rotational", "/sys/block/*/device/model"];

#[derive(Serialize)]
pub(crate) struct Disk {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// In GiB, as lsblk counts.
    size_gb: f64,
    /// True where the disk says that it rotates. It is left out where it doesn't.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    rotational: bool,
}

/// Says whether a device is a disk. It is none where it is made of files, memory or other disks, or has its medium put in:
/// an empty CD drive claims a size.
fn is_disk(name: &str) -> bool {
    !["loop", "ram", "zram", "dm-", "md", "nbd", "drbd", "bcache", "sr", "fd"]
        .iter()
        .any(|kind| name.starts_with(kind))
}

pub(crate) fn paths(listings: &Listings) -> Vec<String> {
    listings.files_of(BLOCK, is_disk, OF_DISK)
}

/// The disks that hold something. A card reader without a card has the size 0.
pub(crate) fn disks(files: &Files, listings: &Listings) -> Option<Vec<Disk>> {
    let disks = listings.names(BLOCK).iter().filter(|name| is_disk(name)).filter_map(|name| {
        let path = |file: &str| format!("{BLOCK}/{name}/{file}");
        // The kernel counts in sectors of 512 bytes, whatever the disk's own are.
        let sectors = files.number(&path("size")).filter(|sectors| *sectors > 0)?;
        Some(Disk {
            // A `!` in sysfs stands for a `/` in `/dev`.
            name: name.replace('!', "/"),
            model: files.line(&path("device/model")),
            size_gb: (sectors as f64 / 209_715.2).round() / 10.0,
            rotational: files.number(&path("queue/rotational")) == Some(1),
        })
    });
    let disks: Vec<_> = disks.collect();
    (!disks.is_empty()).then_some(disks)
}
