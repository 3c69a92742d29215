//! Which block devices there are, with what is on them. lsblk knows their kind; blkid looks at their contents where udev
//! doesn't, as in a container.

use linux_sysadmin_sdk::{Privilege, prelude::*};
use serde_json::Value;

const LSBLK: CommandLine = CommandLine::new(
    "lsblk --json --list --bytes --paths \
     --output=NAME,KNAME,PKNAME,MAJ:MIN,TYPE,FSTYPE,UUID,LABEL,PARTUUID,PARTLABEL,RM,HOTPLUG,TRAN,RO,SIZE",
);
/// A cache would show devices that are gone, and root would write it.
const BLKID: CommandLine = CommandLine::new("blkid --cache-file /dev/null --output export");
const REALPATH: CommandLine = CommandLine::new("realpath --canonicalize-existing -- <text>");

/// The tags that a source of fstab may have in place of a device's name.
const TAGS: [&str; 4] = ["UUID", "LABEL", "PARTUUID", "PARTLABEL"];

/// The names of devices that another one may have after a start.
const UNSTABLE: [&str; 10] = ["sd", "hd", "vd", "xvd", "nvme", "mmcblk", "loop", "dm-", "md", "sr"];

pub(crate) fn grants() -> [CommandGrant; 3] {
    [
        LSBLK.read("which devices there are, and what is on them"),
        BLKID.read("what is on devices that udev doesn't know").as_root_if_available(),
        REALPATH.read("which device a name stands for").as_root_if_available(),
    ]
}

/// A block device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) name: String,
    /// The kernel's name, such as `/dev/dm-0`.
    kernel: String,
    /// The kernel's names of the devices that it lies on.
    parents: Vec<String>,
    /// The number, as `8:1`.
    pub(crate) number: String,
    pub(crate) fs_type: Option<String>,
    pub(crate) is_removable: bool,
    pub(crate) is_read_only: bool,
    /// Whether there is a table of partitions on it, by blkid.
    pub(crate) has_table: bool,
    pub(crate) size: u64,
    /// The values of [`TAGS`].
    tags: [Option<String>; 4],
}

impl Device {
    fn of_lsblk(row: &Value) -> Option<Self> {
        let text = |name: &str| row[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        // Old versions print `"0"` and `"1"`.
        let is = |name: &str| row[name].as_bool().unwrap_or_else(|| row[name] == "1");
        let size = row["size"].as_u64().or_else(|| row["size"].as_str()?.parse().ok());
        Some(Self {
            name: text("name")?,
            kernel: text("kname")?,
            parents: text("pkname").map(with_directory).into_iter().collect(),
            number: text("maj:min").unwrap_or_default().trim().to_owned(),
            fs_type: text("fstype"),
            is_removable: is("rm") || is("hotplug") || row["tran"] == "usb",
            is_read_only: is("ro"),
            has_table: false,
            size: size.unwrap_or_default(),
            tags: ["uuid", "label", "partuuid", "partlabel"].map(text),
        })
    }

    /// Takes what blkid found and lsblk doesn't know.
    fn complete(&mut self, block: &[(&str, String)]) {
        let value = |name: &str| block.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone());
        self.fs_type = self.fs_type.take().or_else(|| value("TYPE"));
        self.has_table |= value("PTTYPE").is_some();
        for (own, name) in self.tags.iter_mut().zip(TAGS) {
            *own = own.take().or_else(|| value(name));
        }
    }

    pub(crate) fn uuid(&self) -> Option<&str> {
        self.tags[0].as_deref()
    }

    pub(crate) fn label(&self) -> Option<&str> {
        self.tags[1].as_deref()
    }

    /// Whether the path is a name of it.
    pub(crate) fn is_called(&self, path: &str) -> bool {
        self.name == path || self.kernel == path
    }

    /// Whether it lies on the other one, as a partition or a volume does.
    pub(crate) fn is_part_of(&self, other: &Self) -> bool {
        self.parents.contains(&other.kernel)
    }

    /// Whether it is only a part of something that has the same UUID, as the members of an array have.
    fn is_member(&self) -> bool {
        self.fs_type.as_deref().is_some_and(|kind| kind == "btrfs" || kind.ends_with("_member"))
    }
}

/// All block devices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Devices(pub(crate) Vec<Device>);

impl Devices {
    pub(crate) fn commands() -> [Command; 2] {
        [LSBLK.command(), BLKID.command().privilege(Privilege::RootIfAvailable)]
    }

    /// Reads the outputs of [`Devices::commands`]. A machine that shows no device has none.
    pub(crate) fn of([lsblk, blkid]: [Result<Output>; 2]) -> Self {
        let rows = lsblk.ok().and_then(|output| serde_json::from_slice::<Value>(&output.stdout).ok());
        let mut devices: Vec<Device> = Vec::new();
        for row in rows.iter().flat_map(|rows| rows["blockdevices"].as_array()).flatten() {
            // A device of several others, such as an array, is printed for each of them.
            let Some(mut device) = Device::of_lsblk(row) else { continue };
            match devices.iter_mut().find(|known| known.kernel == device.kernel) {
                Some(known) => known.parents.append(&mut device.parents),
                None => devices.push(device),
            }
        }
        let text = blkid.map(|output| output.text().into_owned()).unwrap_or_default();
        for block in text.split("\n\n") {
            let pair =
                |line| str::split_once(line, '=').map(|(name, value)| (name, without_backslashes(value)));
            let block: Vec<_> = block.lines().filter_map(pair).collect();
            let Some((_, name)) = block.iter().find(|(key, _)| *key == "DEVNAME") else { continue };
            let known = devices.iter_mut().find(|device| device.name == *name || device.kernel == *name);
            match known {
                Some(device) => device.complete(&block),
                None => {
                    let mut device = Device { name: name.clone(), kernel: name.clone(), ..Device::default() };
                    device.complete(&block);
                    devices.push(device);
                }
            }
        }
        Self(devices)
    }

    pub(crate) fn read(cx: &Context) -> Self {
        Self::of(cx.run_each(Self::commands()))
    }

    /// Whether it would be known if a source stood for a device. Without udev and without root's rights, no UUID is.
    pub(crate) fn could_tell(&self, source: &str) -> bool {
        match tag(source) {
            Some(_) => self.0.iter().any(|device| device.tags.iter().any(Option::is_some)),
            None => !self.0.is_empty(),
        }
    }

    /// The devices that a source stands for: none where there is no such device, and several where they have one tag in
    /// common. `None` for a source that names no block device.
    pub(crate) fn named(&self, source: &str) -> Option<Vec<&Device>> {
        let Some((tag, value)) = tag(source) else {
            let is_name = |device: &&Device| device.is_called(source);
            return source.starts_with("/dev/").then(|| self.0.iter().filter(is_name).collect());
        };
        let has_it = |device: &&Device| device.tags[tag].as_deref() == Some(value);
        let found: Vec<&Device> = self.0.iter().filter(has_it).collect();
        let whole: Vec<&Device> = found.iter().copied().filter(|device| !device.is_member()).collect();
        // The members of an array are one file system.
        Some(if whole.is_empty() { found.into_iter().take(1).collect() } else { whole })
    }

    /// [`Devices::named`], where other names of a device, as those of volumes, are followed.
    pub(crate) fn resolved(&self, source: &str, cx: &Context) -> Option<Vec<&Device>> {
        let named = self.named(source)?;
        if !named.is_empty() || tag(source).is_some() {
            return Some(named);
        }
        let output = cx.run(REALPATH.with([source]).privilege(Privilege::RootIfAvailable));
        let path =
            output.ok().filter(|output| output.exit_code == 0).map(|output| output.text().trim().to_owned());
        Some(path.and_then(|path| self.named(&path)).unwrap_or_default())
    }
}

/// The number of a source's tag in [`TAGS`], and its value. The links below /dev/disk are the same.
fn tag(source: &str) -> Option<(usize, &str)> {
    let number = |name: &str| TAGS.iter().position(|tag| *tag == name);
    if let Some((name, value)) = source.split_once('=') {
        return Some((number(name)?, value));
    }
    let (name, value) = source.strip_prefix("/dev/disk/by-")?.split_once('/')?;
    Some((number(&name.to_uppercase())?, value))
}

/// Whether another device may have the name after a start.
pub(crate) fn is_unstable(source: &str) -> bool {
    let name = source.strip_prefix("/dev/").unwrap_or_default();
    let of = |prefix: &str| {
        // An array with a name lies in /dev/md/.
        name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
    };
    UNSTABLE.into_iter().any(of)
}

/// Some versions of lsblk leave out the directory of the device below.
fn with_directory(name: String) -> String {
    if name.starts_with('/') { name } else { format!("/dev/{name}") }
}

/// blkid writes a backslash in front of characters that a shell would read.
fn without_backslashes(text: &str) -> String {
    let mut is_escaped = false;
    let mut plain = String::new();
    for character in text.chars() {
        is_escaped = character == '\\' && !is_escaped;
        if !is_escaped {
            plain.push(character);
        }
    }
    plain
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::output;

    fn devices(lsblk: &str, blkid: &str) -> Devices {
        Devices::of([Ok(output(0, lsblk, "")), Ok(output(0, blkid, ""))])
    }

    /// util-linux 2.38.1 without udev, and a row as 2.32 writes it.
    fn some() -> Devices {
        devices(
            r#"{"blockdevices": [
                {"name":"/dev/loop2","kname":"/dev/loop2","maj:min":"7:2","type":"loop","fstype":null,"uuid":null,"label":null,"partuuid":null,"partlabel":null,"rm":false,"hotplug":false,"tran":null,"ro":false,"size":419430400},
                {"name":"/dev/mapper/vg-a","kname":"/dev/dm-0","maj:min":"252:0","type":"lvm","fstype":"xfs","uuid":"x-1","label":null,"partuuid":null,"partlabel":null,"rm":"1","hotplug":"0","tran":null,"ro":"0","size":"1024"},
                {"name":"/dev/mapper/vg-a","kname":"/dev/dm-0","maj:min":"252:0","type":"lvm","fstype":"xfs","uuid":"x-1","rm":"1"},
                {"name":"/dev/sdc","kname":"/dev/sdc","fstype":"linux_raid_member","uuid":"m"},
                {"name":"/dev/sdd","kname":"/dev/sdd","fstype":"btrfs","uuid":"b"},
                {"name":"/dev/sde","kname":"/dev/sde","fstype":"btrfs","uuid":"b"}
            ]}"#,
            "DEVNAME=/dev/loop2\nLABEL=data\\ disk\\\\x\nUUID=7608cc09\nBLOCK_SIZE=1024\nTYPE=ext4\n\nDEVNAME=/dev/sdx\nUUID=x-1\nTYPE=xfs\n",
        )
    }

    #[test]
    fn a_source_stands_for_devices() {
        let devices = some();
        let named = |source: &str| {
            devices
                .named(source)
                .map(|found| found.iter().map(|device| device.name.as_str()).collect::<Vec<_>>())
        };
        for (source, expected) in [
            ("UUID=7608cc09", Some(vec!["/dev/loop2"])),
            ("LABEL=data disk\\x", Some(vec!["/dev/loop2"])),
            ("/dev/disk/by-uuid/7608cc09", Some(vec!["/dev/loop2"])),
            ("/dev/dm-0", Some(vec!["/dev/mapper/vg-a"])),
            ("UUID=x-1", Some(vec!["/dev/mapper/vg-a", "/dev/sdx"])),
            ("UUID=b", Some(vec!["/dev/sdd"])),
            ("UUID=none", Some(vec![])),
            ("/dev/none", Some(vec![])),
            ("host:/x", None),
            ("tmpfs", None),
            ("ID=x", None),
        ] {
            assert_eq!(named(source), expected, "{source}");
        }
        assert_eq!(devices.0.len(), 6);
        assert!(devices.0[1].is_removable && !devices.0[1].is_read_only && devices.0[1].size == 1024);
    }

    #[test]
    fn a_machine_that_shows_nothing_has_no_devices() {
        assert!(devices("", "").0.is_empty() && devices("{}", "x\n\n=\n").0.is_empty());
        let missing = || Err(Problem::not_found("PROGRAM_NOT_FOUND", "no such program"));
        assert!(Devices::of([missing(), missing()]).0.is_empty());
    }

    #[test]
    fn names_that_the_kernel_counts_are_unstable() {
        for name in ["/dev/sda1", "/dev/nvme0n1p2", "/dev/md0", "/dev/dm-3", "/dev/loop0"] {
            assert!(is_unstable(name), "{name}");
        }
        for name in [
            "/dev/mapper/vg-a",
            "/dev/vg0/a",
            "/dev/md/home",
            "UUID=sda",
            "/dev/disk/by-path/x",
            "sda",
            "/sda1",
        ] {
            assert!(!is_unstable(name), "{name}");
        }
    }
}
