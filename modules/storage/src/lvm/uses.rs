//! What volumes are used for: where they are mounted, which are swap, and which file systems they hold.

use std::collections::HashMap;

use linux_sysadmin_sdk::prelude::*;
use serde_json::Value;

use super::commands::{LSBLK, MOUNTINFO, SWAPS};
use super::report::Volume;

/// A mount of a device's file system.
#[derive(Debug, PartialEq)]
pub(super) struct Mount {
    /// The device as the mount names it, such as `/dev/mapper/vg0-data`.
    source: String,
    /// The directory of the file system that is mounted: `/`, unless it is a bind mount or a subvolume.
    root: String,
    pub(super) point: String,
    pub(super) kind: String,
    pub(super) is_read_only: bool,
}

/// The mounts, the active swap areas, and the file systems that udev knows.
pub(super) struct Uses {
    mounts: Vec<Mount>,
    swaps: Vec<String>,
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
            mounts: mounts.lines().filter_map(mount).collect(),
            swaps: swaps.lines().skip(1).filter_map(|line| line.split(' ').next()).map(unescaped).collect(),
            kinds: devices.map(|output| kinds(&output.text())).unwrap_or_default(),
        })
    }

    /// The mounts of a volume, the whole file system first. btrfs shows a device number of its own for each mount, so that
    /// mounts are known by the name of their device.
    pub(super) fn mounts(&self, volume: &Volume) -> Vec<&Mount> {
        let mut found: Vec<_> = self.mounts.iter().filter(|mount| volume.is_called(&mount.source)).collect();
        found.sort_by_key(|mount| (mount.root.len(), mount.point.len()));
        found
    }

    /// Whether the kernel swaps to the volume.
    pub(super) fn is_swap(&self, volume: &Volume) -> bool {
        self.swaps.iter().any(|swap| volume.is_called(swap))
    }

    /// The file system, as its mount or udev tells it.
    pub(super) fn kind(&self, volume: &Volume) -> Option<&str> {
        let mounted = self.mounts(volume).first().map(|mount| mount.kind.as_str());
        mounted.or_else(|| self.kinds.get(&volume.mapper).map(String::as_str))
    }
}

/// A line of mountinfo, see proc_pid_mountinfo(5).
fn mount(line: &str) -> Option<Mount> {
    let (first, second) = line.split_once(" - ")?;
    let mut words = first.split(' ').skip(3);
    let (root, point, options) = (words.next()?, words.next()?, words.next()?);
    let mut words = second.split(' ');
    let (kind, source) = (words.next()?, words.next()?);
    let all = options.split(',').chain(words.next().unwrap_or_default().split(','));
    Some(Mount {
        source: unescaped(source),
        root: unescaped(root),
        point: unescaped(point),
        kind: kind.to_owned(),
        is_read_only: all.into_iter().any(|option| option == "ro"),
    })
}

/// The kernel writes blanks, tabs, newlines and backslashes in octal.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain))
}

/// The file systems by the paths of their devices.
fn kinds(text: &str) -> HashMap<String, String> {
    let report: Value = serde_json::from_str(text).unwrap_or_default();
    let devices = report["blockdevices"].as_array().into_iter().flatten();
    let kind =
        |device: &Value| Some((device["name"].as_str()?.to_owned(), device["fstype"].as_str()?.to_owned()));
    devices.filter_map(kind).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_has_its_names_as_they_are() {
        let line = r"43 27 0:39 /sub /srv/a\040b rw,relatime shared:1 master:2 - btrfs /dev/mapper/vg0-data ro,subvol=/sub";
        let expected = Mount {
            source: "/dev/mapper/vg0-data".into(),
            root: "/sub".into(),
            point: "/srv/a b".into(),
            kind: "btrfs".into(),
            is_read_only: true,
        };
        assert_eq!(mount(line).unwrap(), expected);
        assert_eq!(mount("nonsense"), None);
        assert_eq!(kinds("no JSON"), HashMap::new());
    }
}
