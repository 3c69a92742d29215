//! Reads what the firmware says of the machine: DMI on PCs and servers, the device tree elsewhere.

use super::Files;
use linux_sysadmin_sdk::prelude::*;

pub(crate) const FILES: &[&str] = &[
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/sys/class/dmi/id/product_version",
    "/sys/class/dmi/id/board_vendor",
    "/sys/class/dmi/id/board_name",
    "/sys/class/dmi/id/bios_vendor",
    "/sys/class/dmi/id/bios_version",
    "/sys/class/dmi/id/bios_date",
    "/sys/class/dmi/id/chassis_type",
    "/proc/device-tree/model",
];

/// Files that only root may read.
pub(crate) const SERIALS: &[&str] = &["/sys/class/dmi/id/product_serial", "/sys/class/dmi/id/board_serial"];
pub(crate) const SERIALS_BEHIND_LINKS: &[&str] =
    &["/sys/devices/virtual/dmi/id/product_serial", "/sys/devices/virtual/dmi/id/board_serial"];

/// Members that the firmware leaves empty or fills with a placeholder are left out.
#[derive(Default, PartialEq, Serialize)]
pub(crate) struct Dmi {
    #[serde(skip_serializing_if = "Option::is_none")]
    vendor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    product: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    serial: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    board: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    board_serial: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chassis: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bios_vendor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bios_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bios_date: Option<String>,
}

impl Dmi {
    pub(crate) fn of(files: &Files, in_full: bool) -> Option<Self> {
        let value =
            |name: &str| files.line(&format!("/sys/class/dmi/id/{name}")).filter(|text| is_told(text));
        let detail = |name: &str| value(name).filter(|_| in_full);
        let board = [detail("board_vendor"), detail("board_name")];
        let board = board.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let dmi = Self {
            vendor: value("sys_vendor"),
            product: value("product_name").or_else(|| files.line("/proc/device-tree/model")),
            version: detail("product_version"),
            serial: value("product_serial"),
            board: Some(board).filter(|board| !board.is_empty()),
            board_serial: value("board_serial"),
            chassis: files.number("/sys/class/dmi/id/chassis_type").and_then(chassis),
            bios_vendor: detail("bios_vendor"),
            bios_version: value("bios_version"),
            bios_date: value("bios_date"),
        };
        (dmi != Self::default()).then_some(dmi)
    }
}

/// Says whether a value tells something: vendors fill fields with placeholders that they forget to replace.
fn is_told(text: &str) -> bool {
    const PLACEHOLDERS: &[&str] = &[
        "to be filled by o.e.m.",
        "default string",
        "system manufacturer",
        "system product name",
        "system version",
        "system serial number",
        "base board serial number",
        "not specified",
        "not applicable",
        "not available",
        "none",
        "n/a",
        "unknown",
        "undefined",
        "o.e.m.",
        "oem",
        "empty",
        "invalid",
        "123456789",
        "0123456789",
    ];
    let text = text.to_lowercase();
    let is_filler = text.chars().all(|c| matches!(c, '0' | 'x' | 'f' | '.' | '-' | ' ' | '*' | '\u{fffd}'));
    !is_filler && !PLACEHOLDERS.contains(&text.as_str())
}

/// The kind of a chassis by its number, in the groups that hostnamectl shows. None for `Other` and `Unknown`.
fn chassis(number: u64) -> Option<&'static str> {
    Some(match number {
        3..=7 | 13 | 15 | 16 | 24 | 35 | 36 => "desktop",
        8..=10 | 14 => "laptop",
        11 => "handset",
        17 | 23 | 25 | 28 | 29 => "server",
        30 => "tablet",
        31 | 32 => "convertible",
        33 | 34 => "embedded",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_tell_nothing() {
        for text in
            ["To Be Filled By O.E.M.", "Default string", "None", "00000000", "x.x", "..", "0123456789"]
        {
            assert!(!is_told(text), "{text}");
        }
        for text in ["Dell Inc.", "KVM", "0F", "X7", "PowerEdge R740", "1.0"] {
            let is_filler = text == "0F";
            assert_eq!(is_told(text), !is_filler, "{text}");
        }
    }

    #[test]
    fn kinds_of_chassis_are_those_of_smbios() {
        let table = [
            (1, None),
            (2, None),
            (3, Some("desktop")),
            (10, Some("laptop")),
            (23, Some("server")),
            (99, None),
        ];
        for (number, expected) in table {
            assert_eq!(chassis(number), expected, "{number}");
        }
    }
}
