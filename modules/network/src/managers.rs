//! The programs that configure interfaces, and where each of them has its configuration.
//!
//! - systemd-networkd keeps a file for each interface below `/run/systemd/netif/links`, from which networkctl(1) reads.
//! - NetworkManager is asked by nmcli(1).
//! - ifupdown notes in `/run/network/ifstate` which interfaces it has brought up, see ifquery(8).
//! - netplan writes configuration for one of the first two, with its name in the names of the files and connections.

use linux_sysadmin_sdk::{Output, prelude::*};

use crate::public_files;

/// Prints device, state and connection. A `:` and a `\` within a value have a `\` in front.
pub(crate) const NMCLI_DEVICES: CommandLine =
    CommandLine::new("nmcli --terse --fields DEVICE,STATE,CONNECTION device status");

const NETWORKD_LINKS: &str = "/run/systemd/netif/links";
const IFSTATE: &str = "/run/network/ifstate";

/// The files that tell who manages an interface.
pub(crate) fn grants() -> Vec<PathGrant> {
    let networkd = public_files::grants(
        "/run/systemd/netif/links/*",
        public_files::NETWORKD,
        "which interfaces systemd-networkd has configured",
    );
    let ifupdown = PathGrant::read(IFSTATE, "which interfaces ifupdown has brought up");
    networkd.into_iter().chain([ifupdown]).collect()
}

/// The program that manages an interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Manager {
    pub(crate) name: &'static str,
    /// The file, the directory or the connection where its configuration is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<String>,
    /// What it says of the interface, where that isn't the ordinary state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<String>,
}

/// Who manages which interfaces.
#[derive(Debug, Default)]
pub(crate) struct Managers {
    found: Vec<(String, Manager)>,
}

impl Managers {
    /// Asks all of them about these interfaces, each given by its number and its name. `nmcli` is the output of
    /// [`NMCLI_DEVICES`].
    pub(crate) fn look(cx: &Context, nmcli: Result<Output>, links: &[(u64, &str)]) -> Self {
        let mut paths: Vec<String> =
            links.iter().map(|(index, _)| format!("{NETWORKD_LINKS}/{index}")).collect();
        paths.push(IFSTATE.to_owned());
        let mut texts = public_files::read_all(&paths, public_files::NETWORKD, cx);
        let ifstate = texts.pop().and_then(Result::ok).unwrap_or_default();
        let mut found = Vec::new();
        for ((_, name), text) in links.iter().zip(texts) {
            let manager = text.ok().as_deref().and_then(networkd);
            found.extend(manager.map(|manager| ((*name).to_owned(), manager)));
        }
        if let Ok(output) = nmcli
            && output.exit_code == 0
        {
            found.extend(output.text().lines().filter_map(network_manager));
        }
        found.extend(ifstate.lines().filter_map(ifupdown));
        Self { found }
    }

    /// The managers of an interface. Several of them disturb each other.
    pub(crate) fn of(&self, name: &str) -> Vec<Manager> {
        let of_it = self.found.iter().filter(|(interface, _)| interface == name);
        of_it.map(|(_, manager)| manager.clone()).collect()
    }

    /// The names of the managers of an interface.
    pub(crate) fn names(&self, name: &str) -> Option<String> {
        let names: Vec<_> = self.of(name).iter().map(|manager| manager.name).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

/// Reads a file of systemd-networkd, which has a line for each property.
fn networkd(text: &str) -> Option<Manager> {
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let state = value("ADMIN_STATE")?;
    let file = value("NETWORK_FILE").filter(|file| !file.is_empty());
    if matches!(state, "unmanaged" | "initialized" | "linger") {
        return None;
    }
    let is_netplan = file.is_some_and(|file| file.contains("-netplan-"));
    Some(Manager {
        name: if is_netplan { "netplan (systemd-networkd)" } else { "systemd-networkd" },
        config: if is_netplan { Some("/etc/netplan".to_owned()) } else { file.map(str::to_owned) },
        state: (state != "configured").then(|| state.to_owned()),
    })
}

/// Reads a line of [`NMCLI_DEVICES`]. NetworkManager also lists what others have configured.
fn network_manager(line: &str) -> Option<(String, Manager)> {
    let fields = terse(line);
    let [device, state, connection] = &fields[..] else { return None };
    let is_others =
        matches!(state.as_str(), "unmanaged" | "connected (externally)" | "disconnected" | "unavailable");
    if is_others && connection.is_empty() || state == "unmanaged" || state == "connected (externally)" {
        return None;
    }
    let is_netplan = connection.starts_with("netplan-");
    let config = match connection.as_str() {
        "" => None,
        _ if is_netplan => Some("/etc/netplan".to_owned()),
        name => Some(format!("connection {name:?}")),
    };
    let manager = Manager {
        name: if is_netplan { "netplan (NetworkManager)" } else { "NetworkManager" },
        config,
        state: (state != "connected").then(|| state.clone()),
    };
    Some((device.clone(), manager))
}

/// Splits a line of `nmcli --terse`.
pub(crate) fn terse(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match c {
            ':' => fields.push(String::new()),
            '\\' => fields.last_mut().into_iter().for_each(|field| field.extend(characters.next())),
            _ => fields.last_mut().into_iter().for_each(|field| field.push(c)),
        }
    }
    fields
}

/// Reads a line of the state of ifupdown, `eth0=eth0`: the interface, and the paragraph of interfaces(5) that it has.
fn ifupdown(line: &str) -> Option<(String, Manager)> {
    let (interface, _) = line.split_once('=')?;
    let config = Some("/etc/network/interfaces".to_owned());
    // Each machine has the loopback there, and nothing is configured by it.
    (interface != "lo").then(|| (interface.to_owned(), Manager { name: "ifupdown", config, state: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_the_manager_that_has_configured_it() {
        let of = |text: &str| networkd(text).map(|manager| (manager.name, manager.config, manager.state));
        let file = "/etc/systemd/network/10-eth0.network";
        let text =
            format!("# This is private data. Do not parse.\nADMIN_STATE=configured\nNETWORK_FILE={file}\n");
        assert_eq!(of(&text), Some(("systemd-networkd", Some(file.into()), None)));
        let text = "ADMIN_STATE=configuring\nNETWORK_FILE=/run/systemd/network/10-netplan-eth0.network\n";
        let expected =
            ("netplan (systemd-networkd)", Some("/etc/netplan".into()), Some("configuring".into()));
        assert_eq!(of(text), Some(expected));
        for text in ["ADMIN_STATE=unmanaged\n", "ADMIN_STATE=linger\n", "", "garbage"] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn network_manager_counts_only_for_what_it_has_configured_itself() {
        for (line, expected) in [
            ("eth0:connected:Wired \\: 1", Some(("NetworkManager", Some("connection \"Wired : 1\""), None))),
            ("eth0:connected:netplan-eth0", Some(("netplan (NetworkManager)", Some("/etc/netplan"), None))),
            (
                "eth1:connecting (getting IP configuration):b\\\\c",
                Some((
                    "NetworkManager",
                    Some("connection \"b\\\\c\""),
                    Some("connecting (getting IP configuration)"),
                )),
            ),
            ("docker0:connected (externally):docker0", None),
            ("veth1:unmanaged:", None),
            ("eth2:disconnected:", None),
            ("garbage", None),
            ("", None),
        ] {
            let found = network_manager(line).map(|(_, manager)| manager);
            let shown = found
                .as_ref()
                .map(|manager| (manager.name, manager.config.as_deref(), manager.state.as_deref()));
            assert_eq!(shown, expected, "{line}");
        }
    }

    #[test]
    fn ifupdown_has_what_it_has_brought_up() {
        let names = "lo=lo\neth0=eth0\neth1=office\ngarbage\n".lines().filter_map(ifupdown);
        assert_eq!(names.map(|(name, _)| name).collect::<Vec<_>>(), ["eth0", "eth1"]);
    }
}
