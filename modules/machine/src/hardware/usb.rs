//! USB devices without hubs.

use super::{Files, Listings};
use linux_sysadmin_sdk::prelude::*;

pub(crate) const DEVICES: &str = "/sys/bus/usb/devices";
const OF_DEVICE: &[&str] = &["idVendor", "idProduct", "product", "bDeviceClass"];
pub(crate) const GLOBS: &[&str] = &[
    "/sys/bus/usb/devices/*/idVendor",
    "/sys/bus/usb/devices/*/idProduct",
    "/sys/bus/usb/devices/*/product",
    "/sys/bus/usb/devices/*/bDeviceClass",
];

/// The devices, or only how many there are.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Usb {
    Count(usize),
    Devices(Vec<Device>),
}

#[derive(Serialize)]
pub(crate) struct Device {
    /// The ids of vendor and product, as lsusb prints them.
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    product: Option<String>,
}

/// Says whether it is a device: `usb1` is a root hub, and `1-2:1.0` an interface of a device.
fn is_device(name: &str) -> bool {
    !name.contains(':') && !name.starts_with("usb")
}

pub(crate) fn paths(listings: &Listings) -> Vec<String> {
    listings.files_of(DEVICES, is_device, OF_DEVICE)
}

impl Usb {
    pub(crate) fn of(files: &Files, listings: &Listings, in_full: bool) -> Option<Self> {
        let names = listings.names(DEVICES).iter().filter(|name| is_device(name));
        let devices: Vec<_> = names.filter_map(|name| device(files, name)).collect();
        match devices.len() {
            0 => None,
            count if !in_full => Some(Self::Count(count)),
            _ => Some(Self::Devices(devices)),
        }
    }
}

/// None for a hub, whose class is 09, and for a device that has just gone.
fn device(files: &Files, name: &str) -> Option<Device> {
    let line = |file: &str| files.line(&format!("{DEVICES}/{name}/{file}"));
    if line("bDeviceClass").is_some_and(|class| class == "09") {
        return None;
    }
    Some(Device { id: format!("{}:{}", line("idVendor")?, line("idProduct")?), product: line("product") })
}
