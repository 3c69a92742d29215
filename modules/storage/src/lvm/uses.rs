//! What volumes are used for: where they are mounted, which are swap, and which file systems they hold.

use std::collections::HashMap;

use linux_sysadmin_sdk::prelude::*;
use serde_json::Value;

use super::commands::LSBLK;
use super::report::Volume;
use crate::mount_table::{MOUNTINFO, Mount, MountTable};
use crate::swap::areas::{self, Area, SWAPS};

/// The mounts, the active swap areas, and the file systems that udev knows.
pub(super) struct Uses {
    mounts: MountTable,
    swaps: Vec<Area>,
    kinds: HashMap<String, String>,
}

impl Uses {
    /// Without lsblk only the file systems that are mounted are known.
    pub(super) fn read(cx: &Context) -> Result<Self> {
        let mut texts = cx.read_all(&[MOUNTINFO, SWAPS]).into_iter();
        let mounts = texts.next().unwrap_or_else(|| Ok(String::new()))?;
        // A kernel without swap has no such file.
        let swaps = texts.next().and_then(Result::ok).unwrap_or_default();
        let devices = cx.run(LSBLK.command()).and_then(|output| output.success("lsblk"));
        Ok(Self {
            mounts: MountTable::checked(&mounts)?,
            swaps: areas::parse(&swaps),
            kinds: devices.map(|output| kinds(&output.text())).unwrap_or_default(),
        })
    }

    /// The mounts of a volume, the whole file system first. btrfs shows a device number of its own for each mount, so that
    /// mounts are known by the name of their device.
    pub(super) fn mounts(&self, volume: &Volume) -> Vec<&Mount> {
        let all = self.mounts.all().iter();
        let mut found: Vec<_> = all.filter(|mount| volume.is_called(&mount.source)).collect();
        found.sort_by_key(|mount| (mount.root.len(), mount.point.len()));
        found
    }

    /// Whether the kernel swaps to the volume.
    pub(super) fn is_swap(&self, volume: &Volume) -> bool {
        self.swaps.iter().any(|area| volume.is_called(&area.path))
    }

    /// The file system, as its mount or udev tells it.
    pub(super) fn kind(&self, volume: &Volume) -> Option<&str> {
        let mounted = self.mounts(volume).first().map(|mount| mount.kind.as_str());
        mounted.or_else(|| self.kinds.get(&volume.mapper).map(String::as_str))
    }
}

/// The file systems by the paths of their devices.
fn kinds(text: &str) -> HashMap<String, String> {
    let report: Value = serde_json::from_str(text).unwrap_or_default();
    let devices = report["blockdevices"].as_array().into_iter().flatten();
    let kind =
        |device: &Value| Some((device["name"].as_str()?.to_owned(), device["fstype"].as_str()?.to_owned()));
    devices.filter_map(kind).collect()
}
