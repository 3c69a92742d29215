//! Block devices, as lsblk(8) prints them as JSON.
//!
//! The columns are those that util-linux 2.32 and later have. Older ones print each value as a text. Where udev isn't there, as in
//! containers, lsblk knows no file system, and blkid(8) reads it from the device.

use linux_sysadmin_sdk::{Privilege, prelude::*};
use serde_json::Value;

use crate::mount_table::MountTable;

pub(crate) const LSBLK: CommandLine = CommandLine::new(
    "lsblk --json --bytes --paths --output=NAME,KNAME,PKNAME,TYPE,SIZE,RO,RM,FSTYPE,LABEL,UUID,MOUNTPOINT,MODEL,TRAN,MAJ:MIN",
);

/// Reads signatures from the devices, and neither reads nor writes its cache.
const BLKID: CommandLine = CommandLine::new("blkid -c /dev/null -o export");

pub(crate) fn grants() -> [CommandGrant; 2] {
    [
        LSBLK.read("disks, partitions and volumes").as_root_if_available(),
        BLKID.read("file systems, labels and UUIDs where udev doesn't know them").as_root_if_available(),
    ]
}

/// A block device.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BlockDevice {
    pub(crate) path: String,
    /// The kernel's own name, as in `/proc/mdstat` and below `/sys/block`.
    pub(crate) kernel_name: String,
    /// The devices that it is a part of or lies on.
    pub(crate) parents: Vec<String>,
    /// The type, such as `disk`, `part`, `lvm` and `raid1`.
    pub(crate) kind: String,
    pub(crate) size: u64,
    pub(crate) is_read_only: bool,
    pub(crate) is_removable: bool,
    pub(crate) fs: Option<String>,
    pub(crate) label: Option<String>,
    pub(crate) uuid: Option<String>,
    pub(crate) model: Option<String>,
    /// The bus, such as `sata`, `nvme` and `usb`.
    pub(crate) transport: Option<String>,
    /// The mount points, or `[SWAP]`.
    pub(crate) mounts: Vec<String>,
    /// `major:minor`.
    numbers: String,
}

impl BlockDevice {
    /// Whether it has no content of its own: it is one of several devices with one content, or a layer below another device.
    pub(crate) fn is_member(&self) -> bool {
        self.fs.as_deref().is_some_and(|fs| fs.ends_with("_member") || fs == "btrfs" || fs == "bcache")
    }
}

/// All block devices, each once, a disk before what lies on it.
pub(crate) fn all(table: Option<&MountTable>, cx: &Context) -> Result<Vec<BlockDevice>> {
    let output = cx.run(LSBLK.command().privilege(Privilege::RootIfAvailable))?;
    // A disk that vanishes meanwhile makes lsblk fail, which has printed the others.
    let text = output.text();
    let mut devices = parse(&text).ok_or_else(|| Problem::unexpected("lsblk", &text))?;
    let has_content = |device: &BlockDevice| {
        device.fs.is_none()
            && device.size > 0
            && !devices.iter().any(|other| other.parents.contains(&device.path))
    };
    if devices.iter().any(has_content)
        && let Ok(output) = cx.run(BLKID.command().privilege(Privilege::RootIfAvailable))
    {
        complete(&mut devices, &output.text());
    }
    if let Some(table) = table {
        add_mounts(&mut devices, table);
    }
    Ok(devices)
}

fn parse(text: &str) -> Option<Vec<BlockDevice>> {
    // A machine without block devices prints nothing.
    if text.trim().is_empty() {
        return Some(Vec::new());
    }
    let root: Value = serde_json::from_str(text).ok()?;
    let mut devices = Vec::new();
    for device in root.get("blockdevices")?.as_array()? {
        add(&mut devices, device, None);
    }
    Some(devices)
}

fn add(devices: &mut Vec<BlockDevice>, value: &Value, above: Option<&str>) {
    let text = |name: &str| {
        let text = value.get(name)?.as_str()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let number = |name: &str| {
        let value = value.get(name)?;
        value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
    };
    let flag = |name: &str| value.get(name).and_then(Value::as_bool).unwrap_or(number(name) == Some(1));
    let Some(path) = text("name") else { return };
    let above = above.map(str::to_owned).or_else(|| text("pkname"));
    match devices.iter_mut().find(|known| known.path == path) {
        // An array is printed below each of its members.
        Some(known) => known.parents.extend(above.filter(|above| !known.parents.contains(above))),
        None => devices.push(BlockDevice {
            kernel_name: text("kname").unwrap_or_default().trim_start_matches("/dev/").to_owned(),
            parents: above.into_iter().collect(),
            kind: text("type").unwrap_or_default(),
            size: number("size").unwrap_or(0),
            is_read_only: flag("ro"),
            is_removable: flag("rm"),
            fs: text("fstype"),
            label: text("label"),
            uuid: text("uuid"),
            model: text("model"),
            transport: text("tran"),
            mounts: text("mountpoint").into_iter().collect(),
            numbers: text("maj:min").unwrap_or_default(),
            path: path.clone(),
        }),
    }
    for child in value.get("children").and_then(Value::as_array).into_iter().flatten() {
        add(devices, child, Some(&path));
    }
}

/// Adds what blkid knows: blocks of `NAME=value` lines, in which a backslash stands before special characters.
fn complete(devices: &mut [BlockDevice], export: &str) {
    for block in export.split("\n\n") {
        let value = |name: &str| {
            let value = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
            Some(unescaped(value))
        };
        let Some(path) = value("DEVNAME") else { continue };
        for device in devices.iter_mut().filter(|device| device.path == path && device.fs.is_none()) {
            device.fs = value("TYPE");
            device.label = device.label.take().or_else(|| value("LABEL"));
            device.uuid = device.uuid.take().or_else(|| value("UUID"));
        }
    }
}

fn unescaped(text: &str) -> String {
    let mut chars = text.chars();
    let mut plain = String::new();
    while let Some(c) = chars.next() {
        plain.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    plain
}

/// lsblk tells one mount point of each device, and the table has all of them.
fn add_mounts(devices: &mut [BlockDevice], table: &MountTable) {
    for mount in table.visible() {
        let sources: Vec<(Option<String>, Option<String>)> = devices
            .iter()
            .filter(|device| device.numbers == mount.device || device.path == mount.source)
            .map(|device| (device.fs.clone(), device.uuid.clone()))
            .collect();
        let Some((fs, uuid)) = sources.first() else { continue };
        for device in devices.iter_mut() {
            let is_it = device.numbers == mount.device || device.path == mount.source;
            // A btrfs of several devices is mounted by one of them.
            let is_part = fs.as_deref() == Some("btrfs") && uuid.is_some() && device.uuid == *uuid;
            if (is_it || is_part) && !device.mounts.contains(&mount.point) {
                device.mounts.push(mount.point.clone());
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_old_lsblk_says_numbers_and_flags_as_texts() {
        // util-linux 2.32 prints texts only (its libsmartcols has no other type).
        let old = r#"{"blockdevices": [{"name": "/dev/sda", "kname": "/dev/sda", "pkname": null, "type": "disk",
            "size": "1000", "ro": "0", "rm": "1", "fstype": "", "model": "  QEMU  ", "maj:min": "  8:0 ",
            "children": [{"name": "/dev/sda1", "kname": "/dev/sda1", "type": "part", "size": "900", "ro": "1"}]}]}"#;
        let devices = parse(old).unwrap();
        let [disk, part] = &devices[..] else { panic!("{devices:?}") };
        assert_eq!((disk.size, disk.is_read_only, disk.is_removable), (1000, false, true));
        assert_eq!(
            (disk.model.as_deref(), disk.fs.as_deref(), disk.numbers.as_str()),
            (Some("QEMU"), None, "8:0")
        );
        assert_eq!(
            (part.size, part.is_read_only, &part.parents[..]),
            (900, true, &["/dev/sda".to_owned()][..])
        );
    }

    #[test]
    fn what_isnt_lsblks_form_is_none_and_no_device_is_no_problem() {
        assert!(parse("lsblk: unknown column").is_none() && parse("[]").is_none() && parse("{}").is_none());
        assert!(parse("\n").unwrap().is_empty());
        assert!(parse(r#"{"blockdevices": [{"size": 5}, 7]}"#).unwrap().is_empty());
    }

    #[test]
    fn a_label_comes_back_as_it_was_written() {
        for (escaped, plain) in
            [(r"two\ words", "two words"), (r"a\\b", r"a\b"), (r"end\", "end"), ("x", "x")]
        {
            assert_eq!(unescaped(escaped), plain);
        }
    }
}
