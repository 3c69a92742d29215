//! Network cards: interfaces that have a driver of a device.

use super::{Files, Listings};
use linux_sysadmin_sdk::prelude::*;

pub(crate) const INTERFACES: &str = "/sys/class/net";
const OF_INTERFACE: &[&str] = &["device/uevent", "speed"];
pub(crate) const GLOBS: &[&str] = &["/sys/class/net/*/device/uevent", "/sys/class/net/*/speed"];

#[derive(Serialize)]
pub(crate) struct Card {
    name: String,
    driver: String,
    /// In Mbit/s. It is left out where there is no link.
    #[serde(skip_serializing_if = "Option::is_none")]
    speed_mbit: Option<u64>,
}

pub(crate) fn paths(listings: &Listings) -> Vec<String> {
    listings.files_of(INTERFACES, |name| name != "lo", OF_INTERFACE)
}

pub(crate) fn cards(files: &Files, listings: &Listings) -> Option<Vec<Card>> {
    let cards = listings.names(INTERFACES).iter().filter_map(|name| {
        let driver = files.variable(&format!("{INTERFACES}/{name}/device/uevent"), "DRIVER")?;
        // Some drivers say -1 or its unsigned twin where there is no link.
        let speed = files.number(&format!("{INTERFACES}/{name}/speed"));
        let speed_mbit = speed.filter(|speed| (1..u64::from(u32::MAX)).contains(speed));
        Some(Card { name: name.clone(), driver: super::shown(driver), speed_mbit })
    });
    let cards: Vec<_> = cards.collect();
    (!cards.is_empty()).then_some(cards)
}
