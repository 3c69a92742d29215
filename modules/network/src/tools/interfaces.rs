//! `net_interfaces`: the interfaces of a machine, with what each of them is, has and lacks.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::{prelude::*, text};

use crate::links::{self, LINKS, Link};
use crate::managers::{Manager, Managers, NMCLI_DEVICES};

/// The most members of a bridge or a bond that are named.
const NAMED_MEMBERS: usize = 16;

/// The kernel's longest other name of an interface (ALTIFNAMSIZ), without its end.
const LONGEST_NAME: usize = 127;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct InterfacesArgs {
    /// Only this interface
    name: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Interface {
    name: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
    mtu: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    speed_mbit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<String>,
    /// The interface below, or the other end of a pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    on: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vlan: Option<u64>,
    /// The bridge, bond or VRF of which it is a member.
    #[serde(skip_serializing_if = "Option::is_none")]
    member_of: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    members: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_names: Vec<String>,
    /// Counters since it was made, without those that are zero.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    faults: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    managed_by: Vec<Manager>,
}

pub(crate) fn grants() -> [PathGrant; 4] {
    let leads = "where the links in /sys/class/net lead";
    [
        PathGrant::read("/sys/devices/**/net/*/speed", leads),
        PathGrant::read("/sys/devices/**/uevent", leads),
        PathGrant::read("/sys/class/net/*/speed", "speed of an interface"),
        PathGrant::read("/sys/class/net/*/device/uevent", "driver of an interface"),
    ]
}

pub(crate) fn net_interfaces(args: InterfacesArgs, cx: &Context) -> Result<Listing<Interface>> {
    if let Some(name) = &args.name {
        check(name)?;
    }
    let [links, nmcli] = cx.run_each([LINKS.command(), NMCLI_DEVICES.command()]);
    let all = links::parse(links?)?;
    let mut wanted: Vec<&Link> =
        all.iter().filter(|link| args.name.as_ref().is_none_or(|name| link.is_named(name))).collect();
    if let Some(name) = args.name.as_ref().filter(|_| wanted.is_empty()) {
        return Err(unknown(name, &all));
    }
    wanted.sort_by_key(|link| rank(link));
    let numbers: Vec<(u64, &str)> = wanted.iter().map(|link| (link.ifindex, link.ifname.as_str())).collect();
    let managers = Managers::look(cx, nmcli, &numbers);
    let mut notes = Vec::new();
    let hardware = hardware(cx, &wanted);
    let shown = wanted.iter().zip(hardware).map(|(link, (speed_mbit, driver))| {
        let managed_by = managers.of(&link.ifname);
        notes.extend(notes_on(link, &managed_by));
        shown(link, &all, speed_mbit, driver, managed_by)
    });
    let items: Vec<Interface> = shown.collect();
    let is_orphan = |item: &Interface| {
        item.kind.is_none()
            && item.managed_by.is_empty()
            && item.addresses.iter().any(|one| !one.contains("link-local"))
    };
    let orphans: Vec<&str> =
        items.iter().filter(|item| is_orphan(item)).map(|item| item.name.as_str()).collect();
    if !orphans.is_empty() {
        notes.push(format!(
            "{}: neither netplan, NetworkManager, systemd-networkd nor ifupdown has configured it, so that its addresses may be gone after a reboot",
            orphans.join(", ")
        ));
    }
    Ok(Listing { items, total: None, notes })
}

/// Refuses what no interface can be called.
pub(crate) fn check(name: &str) -> Result<()> {
    let is_name = !name.is_empty()
        && name.len() <= LONGEST_NAME
        && !name.starts_with('-')
        && !matches!(name, "." | "..")
        && !name.contains(|c: char| c.is_whitespace() || c == '/')
        && !text::has_hidden(name);
    if is_name {
        return Ok(());
    }
    let message = format!(
        "{:?} is no interface's name: expected one such as eth0, without blanks, slashes and a dash in front",
        text::excerpt(name, 60)
    );
    Err(Problem::validation("INVALID_INTERFACE", message))
}

/// The problem where there is no interface of that name.
pub(crate) fn unknown(name: &str, all: &[Link]) -> Problem {
    let names: Vec<_> = all.iter().map(|link| link.ifname.as_str()).collect();
    let message = format!("there is no interface {name} in the machine's own network namespace");
    Problem::not_found("INTERFACE_NOT_FOUND", message)
        .remedy(format!("Name one of these: {}", text::list(&names, NAMED_MEMBERS)))
}

/// Interfaces in use come first, then those that are up, and the loopback last.
fn rank(link: &Link) -> (u8, u64) {
    let rank = match (link.kind(), link.state(), link.addr_info.is_empty()) {
        (Some("loopback"), ..) => 3,
        (_, "up", false) => 0,
        (_, "up", true) => 1,
        (Some("veth"), ..) => 2,
        (_, _, false) | (None, ..) => 1,
        _ => 2,
    };
    (rank, link.ifindex)
}

/// The speed and the driver of each interface, which the kernel tells only below `/sys`.
fn hardware(cx: &Context, links: &[&Link]) -> Vec<(Option<u64>, Option<String>)> {
    let of = |link: &&Link| {
        let directory = format!("/sys/class/net/{}", link.ifname);
        [format!("{directory}/speed"), format!("{directory}/device/uevent")]
    };
    let texts = cx.read_all(&links.iter().flat_map(of).collect::<Vec<_>>());
    let of_texts = |texts: &[Result<String>]| {
        let [speed, uevent] = texts else { return (None, None) };
        // Some drivers say -1 or its unsigned twin where there is no link.
        let speed = speed.as_ref().ok().and_then(|speed| speed.trim().parse().ok());
        let driver = |uevent: &String| {
            let value = uevent.lines().find_map(|line| line.strip_prefix("DRIVER="))?;
            Some(value.to_owned())
        };
        let driver = uevent.as_ref().ok().and_then(driver);
        (speed.filter(|speed| (1..u64::from(u32::MAX)).contains(speed)), driver)
    };
    texts.chunks(2).map(of_texts).collect()
}

fn notes_on(link: &Link, managed_by: &[Manager]) -> Vec<String> {
    let name = &link.ifname;
    let mut notes: Vec<String> = link
        .duplicates()
        .map(|address| format!("{name}: {address} isn't used, because another machine has it as well"))
        .collect();
    notes.extend(link.member_fault().map(|fault| format!("{name}: {fault}")));
    if managed_by.len() > 1 {
        let names: Vec<_> = managed_by.iter().map(|manager| manager.name).collect();
        notes.push(format!(
            "{name}: {} both manage it, and each may undo what the other one does",
            names.join(" and ")
        ));
    }
    notes
}

fn shown(
    link: &Link,
    all: &[Link],
    speed_mbit: Option<u64>,
    driver: Option<String>,
    managed_by: Vec<Manager>,
) -> Interface {
    let of_it = all.iter().filter(|other| other.master.as_deref() == Some(&link.ifname));
    let members: Vec<&str> = of_it.map(|other| other.ifname.as_str()).collect();
    let is_loopback = link.link_type == "loopback";
    Interface {
        name: link.ifname.clone(),
        state: link.state(),
        kind: link.kind().map(str::to_owned),
        addresses: link.addresses(),
        mac: link.mac.clone().filter(|_| !is_loopback),
        mtu: link.mtu,
        // A virtual interface has no speed of its own, whatever the kernel says.
        speed_mbit: speed_mbit.filter(|_| link.kind().is_none_or(|kind| kind == "bond")),
        driver,
        on: link.link.clone(),
        vlan: link.vlan(),
        member_of: link.master.clone(),
        members: (!members.is_empty()).then(|| text::list(&members, NAMED_MEMBERS)),
        detail: link.detail(),
        description: link.ifalias.clone(),
        other_names: link.altnames.clone(),
        faults: link.faults(),
        managed_by,
    }
}
