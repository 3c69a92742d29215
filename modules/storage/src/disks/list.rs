//! `disk_list`: disks, partitions and volumes, what is on them, and where they are mounted.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::{prelude::*, text};

use super::block_devices::{self, BlockDevice};
use super::mdstat::{self, Array, MDSTAT};
use crate::mount_table::MountTable;
use crate::size::shown;

/// The number of mount points of one device that are told.
const MOUNTS: usize = 4;

#[derive(Serialize)]
pub(crate) struct Row {
    path: String,
    #[serde(rename = "type")]
    kind: String,
    /// The devices that it is a part of or lies on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    on: Vec<String>,
    size: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fs: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uuid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mounted: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    read_only: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    removable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bus: Option<String>,
    /// The state of a software RAID.
    #[serde(skip_serializing_if = "Option::is_none")]
    raid: Option<String>,
}

pub(crate) fn list(_: NoArgs, cx: &Context) -> Result<Listing<Row>> {
    let table = MountTable::read(cx).ok();
    let devices = block_devices::all(table.as_ref(), cx)?;
    // A kernel without RAID has no such file.
    let arrays = cx.read(MDSTAT).map(|text| mdstat::parse(&text)).unwrap_or_default();
    let notes = notes(&devices, &arrays);
    let is_told = |device: &BlockDevice| device.size > 0 && device.fs.as_deref() != Some("squashfs");
    let items = devices.into_iter().filter(is_told).map(|device| row(device, &arrays)).collect();
    Ok(Listing { items, total: None, notes })
}

fn row(device: BlockDevice, arrays: &[Array]) -> Row {
    let raid = arrays.iter().find(|array| array.name == device.kernel_name).map(Array::state);
    Row {
        path: device.path,
        kind: device.kind,
        on: device.parents,
        size: shown(device.size),
        fs: device.fs,
        label: device.label,
        uuid: device.uuid,
        mounted: (!device.mounts.is_empty()).then(|| text::list(&device.mounts, MOUNTS)),
        read_only: device.is_read_only,
        removable: device.is_removable,
        model: device.model,
        bus: device.transport,
        raid,
    }
}

fn notes(devices: &[BlockDevice], arrays: &[Array]) -> Vec<String> {
    let by_uuid = same(devices, |device| device.uuid.as_deref());
    let by_label = same(devices, |device| device.label.as_deref());
    // Those with one UUID are copies, whose labels are the same anyway.
    let is_new = |(_, paths): &(&str, Vec<&str>)| !by_uuid.iter().any(|(_, copies)| copies == paths);
    let uuids = by_uuid.iter().map(|(uuid, paths)| {
        format!("{} have the same UUID {uuid}: mounting by it takes either", paths.join(" and "))
    });
    let labels = by_label.iter().filter(|one| is_new(one)).map(|(label, paths)| {
        format!("{} have the same label {label:?}: mounting by it takes either", paths.join(" and "))
    });
    let raid = arrays.iter().filter(|array| array.is_degraded() || !array.is_active);
    let raid = raid.map(|array| format!("/dev/{} is {}", array.name, array.state()));
    raid.chain(uuids).chain(labels).collect()
}

/// The values that several devices have which don't lie on each other, with these devices.
fn same<'a>(
    devices: &'a [BlockDevice],
    value: impl Fn(&'a BlockDevice) -> Option<&'a str>,
) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut by_value: BTreeMap<&str, Vec<&BlockDevice>> = BTreeMap::new();
    for device in devices.iter().filter(|device| !device.is_member()) {
        if let Some(value) = value(device) {
            by_value.entry(value).or_default().push(device);
        }
    }
    let unrelated = |found: &Vec<&'a BlockDevice>| {
        let is_above = |device: &BlockDevice| found.iter().any(|other| is_on(other, device, devices));
        found.iter().filter(|device| !is_above(device)).map(|device| device.path.as_str()).collect::<Vec<_>>()
    };
    let groups = by_value.into_iter().map(|(value, found)| (value, unrelated(&found)));
    groups.filter(|(_, paths)| paths.len() > 1).collect()
}

/// Whether a device lies on another one, such as a mirror on its parts.
fn is_on(device: &BlockDevice, other: &BlockDevice, all: &[BlockDevice]) -> bool {
    let mut above: Vec<&str> = device.parents.iter().map(String::as_str).collect();
    // Each device is looked at once at most, even if the parents went in a circle.
    for _ in 0..=all.len() {
        if above.contains(&other.path.as_str()) {
            return true;
        }
        let next = all.iter().filter(|one| above.contains(&one.path.as_str()));
        above = next.flat_map(|one| one.parents.iter().map(String::as_str)).collect();
        if above.is_empty() {
            return false;
        }
    }
    false
}
