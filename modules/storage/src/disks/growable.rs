//! A device, a disk or a volume group that has more room than the file system takes, as after a virtual disk was made larger,
//! and the call that gives it to the file system.

use linux_sysadmin_sdk::prelude::*;
use serde_json::Value;

use super::space::Space;
use crate::file_system_size;
use crate::lvm;
use crate::mount_table::Mount;
use crate::size::shown;

/// Asks for one device, or for a disk with its partitions. The columns are those that util-linux 2.32 and later have.
const DEVICE: CommandLine =
    CommandLine::new("lsblk --json --bytes --paths --list --nodeps --output=NAME,TYPE,SIZE,PKNAME -- <disk>");
const DISK: CommandLine =
    CommandLine::new("lsblk --json --bytes --paths --list --output=NAME,TYPE,SIZE,PKNAME -- <disk>");

/// The share of a device that is worth telling, in percent.
const SHARE: u64 = 2;
/// A smaller rest is what a file system can't take, in bytes.
const LEAST: u64 = 4 << 20;
/// Between partitions, a smaller part of a disk stays free, in bytes.
const LEAST_OF_A_DISK: u64 = 256 << 20;

pub(crate) fn grants() -> [CommandGrant; 2] {
    let reason = "whether a full file system could get larger on its disk";
    [DEVICE.read(reason), DISK.read(reason)]
}

/// What a file system could have besides what it has.
#[derive(Serialize)]
pub(crate) struct Growable {
    pub(crate) more: String,
    /// The call that gives it.
    pub(crate) next: String,
}

/// A row of lsblk.
struct Row {
    name: String,
    kind: String,
    size: u64,
    parent: Option<String>,
}

/// The room that a mounted file system could get on its device. Nothing where root's rights are missing to know it.
pub(crate) fn of(mount: &Mount, space: &Space, cx: &Context) -> Option<Growable> {
    let is_growable = mount.kind.starts_with("ext") || ["xfs", "btrfs"].contains(&mount.kind.as_str());
    if !is_growable || mount.is_read_only() || !mount.source.starts_with("/dev/") {
        return None;
    }
    let device = rows(DEVICE, &mount.source, cx).into_iter().next()?;
    let (source, point) = (&mount.source, &mount.point);
    let (size, fill) = match mount.kind.as_str() {
        "xfs" => (file_system_size::xfs(point, cx)?, vec!["xfs_growfs", "--", point]),
        "btrfs" => {
            let (number, size) = file_system_size::btrfs(point, |path| path == source, cx).ok()?;
            // Of several devices, nobody can tell which one should grow.
            if number != "1" || size != space.size {
                return None;
            }
            (size, vec!["btrfs", "filesystem", "resize", "--", "1:max", point])
        }
        _ => (file_system_size::ext(source, cx)?, vec!["resize2fs", "--", source]),
    };
    let fill = command(&fill);
    let rest = device.size.saturating_sub(size);
    if rest >= LEAST.max(device.size / 100 * SHARE) {
        return Some(Growable { more: shown(rest), next: fill });
    }
    if device.kind == "lvm" {
        let (rest, path) = lvm::room(source, cx)?;
        let next = format!(r#"lvm_resize {{"lv_path": "{path}", "size": "+100%FREE"}}"#);
        return Some(Growable { more: shown(rest), next });
    }
    let (rest, grow) = beside(&device, cx)?;
    Some(Growable { more: shown(rest), next: format!("{grow}, then {fill}") })
}

/// The part of a disk that no partition takes, and the command that gives it to this partition.
fn beside(partition: &Row, cx: &Context) -> Option<(u64, String)> {
    let parent = partition.parent.as_deref().filter(|_| partition.kind == "part")?;
    let number = partition.name.strip_prefix(parent)?.trim_start_matches('p');
    let rows = rows(DISK, parent, cx);
    let disk = rows.iter().find(|row| row.name == *parent && row.kind == "disk")?;
    let taken: u64 = rows.iter().filter(|row| row.kind == "part").map(|row| row.size).sum();
    let rest = disk.size.saturating_sub(taken);
    // It changes nothing where the free part doesn't follow the partition.
    let grow = command(&["growpart", parent, number]);
    (rest >= LEAST_OF_A_DISK.max(disk.size / 100 * SHARE)).then_some((rest, grow))
}

fn command(argv: &[&str]) -> String {
    format!(r#"command_run {{"argv": {}, "as_root": true}}"#, serde_json::json!(argv))
}

/// The devices that lsblk tells, each once. Old versions print numbers as texts.
fn rows(line: CommandLine, device: &str, cx: &Context) -> Vec<Row> {
    let output = cx.run(line.with([device]));
    let report: Option<Value> = output.ok().and_then(|output| serde_json::from_slice(&output.stdout).ok());
    let row = |row: &Value| {
        let text = |name: &str| row[name].as_str().map(str::to_owned);
        Some(Row {
            name: text("name")?,
            kind: text("type")?,
            size: row["size"].as_u64().or_else(|| row["size"].as_str()?.parse().ok())?,
            parent: text("pkname"),
        })
    };
    report.iter().flat_map(|report| report["blockdevices"].as_array()).flatten().filter_map(row).collect()
}
