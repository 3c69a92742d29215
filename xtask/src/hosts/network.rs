//! The lab's network: a namespace with a bridge and no way out, and one namespace for each host on the bridge.

use super::state::{self, Host};
use crate::cmd;
use anyhow::{Result, bail};
use std::net::Ipv4Addr;
use std::process::Command;

/// The namespace in which tests and the server under test run to reach the hosts.
pub(crate) const LAB: &str = "lab";
/// Addresses for measuring between networks (RFC 2544), which nobody routes.
pub(crate) const GATEWAY: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
pub(crate) const BRIDGE: &str = "br0";
const ETHERNET: &str = "eth0";

/// Makes the lab's namespace and bridge where they are missing.
pub(crate) fn ensure_lab() -> Result<()> {
    let bridge = ["-n", LAB, "link", "show", BRIDGE];
    if cmd::succeeds(Command::new("ip").args(bridge)) {
        return Ok(());
    }
    if !namespaces()?.iter().any(|name| name == LAB) {
        ip(&["netns", "add", LAB])?;
    }
    ip(&["-n", LAB, "link", "set", "lo", "up"])?;
    ip(&["-n", LAB, "link", "add", BRIDGE, "type", "bridge"])?;
    ip(&["-n", LAB, "addr", "add", &format!("{GATEWAY}/24"), "dev", BRIDGE])?;
    ip(&["-n", LAB, "link", "set", BRIDGE, "up"])
}

/// Gives a host a new network namespace with its address, at every boot. In the old one, firewall rules, sysctls and routes
/// would survive a reboot, which a kernel forgets.
pub(crate) fn attach(host: &Host) -> Result<()> {
    let (netns, outer) = (host.netns(), outer_link(host));
    detach(&host.name, Some(host));
    let mac = hardware_address(host);
    ip(&["netns", "add", &netns])?;
    ip(&[
        "-n", LAB, "link", "add", &outer, "type", "veth", "peer", "name", ETHERNET, "address", &mac, "netns",
        &netns,
    ])?;
    ip(&["-n", LAB, "link", "set", &outer, "master", BRIDGE, "up"])?;
    ip(&["-n", &netns, "addr", "add", &format!("{}/24", host.address), "dev", ETHERNET])?;
    ip(&["-n", &netns, "link", "set", ETHERNET, "up"])?;
    ip(&["-n", &netns, "link", "set", "lo", "up"])
}

/// Takes a host off the network, also where parts of it are gone already.
pub(crate) fn detach(name: &str, host: Option<&Host>) {
    // The link is deleted as well: it goes at once, while a namespace goes some time after its deletion.
    if let Some(host) = host {
        cmd::succeeds(Command::new("ip").args(["-n", LAB, "link", "del", &outer_link(host)]));
    }
    cmd::succeeds(Command::new("ip").args(["netns", "del", &state::netns(name)]));
}

/// Removes the lab's namespace, and the namespaces of hosts that are gone.
pub(crate) fn remove_lab() -> Result<()> {
    for netns in namespaces()? {
        if netns == LAB {
            ip(&["netns", "del", LAB])?;
        }
    }
    Ok(())
}

/// The names of all hosts that have a namespace, also of hosts that crashed runs have left.
pub(crate) fn hosts_with_namespaces() -> Result<Vec<String>> {
    let prefix = state::netns("");
    Ok(namespaces()?.iter().filter_map(|name| name.strip_prefix(&prefix).map(str::to_owned)).collect())
}

/// The lowest address that is free.
pub(crate) fn free_address(taken: &[Ipv4Addr]) -> Result<Ipv4Addr> {
    let [a, b, c, _] = GATEWAY.octets();
    let Some(free) = (2..=254).map(|last| Ipv4Addr::new(a, b, c, last)).find(|free| !taken.contains(free))
    else {
        bail!("the lab is full (253 hosts); take some down first");
    };
    Ok(free)
}

/// A program that runs in the lab's network.
pub(crate) fn command_in_lab(program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", LAB, program]);
    command
}

/// The hardware address of a host. It never changes, or the caches of its neighbours would be wrong after a reboot.
pub(crate) fn hardware_address(host: &Host) -> String {
    let [a, b, c, d] = host.address.octets();
    format!("02:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}

/// The name of the host's link on the bridge. It doesn't hold the host's name, since a link's name has at most 15
/// characters.
pub(crate) fn outer_link(host: &Host) -> String {
    format!("lab-v{}", host.address.octets()[3])
}

fn namespaces() -> Result<Vec<String>> {
    let text = cmd::output(Command::new("ip").args(["netns", "list"]))?;
    Ok(text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}

fn ip(args: &[&str]) -> Result<()> {
    cmd::output(Command::new("ip").args(args)).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_address_is_given_and_a_full_lab_is_an_error() {
        let at = |last| Ipv4Addr::new(198, 18, 0, last);
        assert_eq!(free_address(&[]).ok(), Some(at(2)));
        assert_eq!(free_address(&[at(2), at(4)]).ok(), Some(at(3)));
        let all: Vec<_> = (2..=254).map(at).collect();
        assert!(free_address(&all).is_err());
    }
}
