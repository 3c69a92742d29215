//! PCI devices, by their `uevent` files: one file tells class, ids and driver.

use std::collections::BTreeMap;

use super::{Files, Listings};
use linux_sysadmin_sdk::prelude::*;

pub(crate) const DEVICES: &str = "/sys/bus/pci/devices";
pub(crate) const GLOBS: &[&str] = &["/sys/bus/pci/devices/*/uevent"];

/// The devices, or only how many there are of each class.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Pci {
    Counts(BTreeMap<String, usize>),
    Devices(Vec<Device>),
}

#[derive(Serialize)]
pub(crate) struct Device {
    slot: String,
    class: String,
    /// The ids of vendor and device, as lspci -n prints them.
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<String>,
}

pub(crate) fn paths(listings: &Listings) -> Vec<String> {
    listings.files_of(DEVICES, |_| true, &["uevent"])
}

impl Pci {
    pub(crate) fn of(files: &Files, listings: &Listings, in_full: bool) -> Option<Self> {
        let devices = listings.names(DEVICES).iter().filter_map(|slot| device(files, slot));
        let devices: Vec<_> = devices.collect();
        if devices.is_empty() {
            return None;
        }
        if in_full {
            return Some(Self::Devices(devices));
        }
        let mut counts = BTreeMap::new();
        devices.into_iter().for_each(|device| *counts.entry(device.class).or_default() += 1);
        Some(Self::Counts(counts))
    }
}

fn device(files: &Files, slot: &str) -> Option<Device> {
    let path = format!("{DEVICES}/{slot}/uevent");
    let class = u32::from_str_radix(files.variable(&path, "PCI_CLASS")?, 16).ok()?;
    Some(Device {
        slot: slot.strip_prefix("0000:").unwrap_or(slot).to_owned(),
        class: class_name(class >> 16).map_or_else(|| format!("{:04x}", class >> 8), str::to_owned),
        id: files.variable(&path, "PCI_ID")?.to_lowercase(),
        driver: files.variable(&path, "DRIVER").map(super::shown),
    })
}

/// The name of a base class in the PCI Code and ID Assignment Specification.
fn class_name(base: u32) -> Option<&'static str> {
    let names = [
        "unclassified",
        "storage",
        "network",
        "display",
        "multimedia",
        "memory",
        "bridge",
        "communication",
        "system",
        "input",
        "docking",
        "processor",
        "serial_bus",
        "wireless",
        "intelligent",
        "satellite",
        "encryption",
        "signal_processing",
        "accelerator",
    ];
    // A device of no class has the last number, as some virtual ones do.
    names.get(base as usize).copied().or((base == 0xff).then_some("unassigned"))
}
