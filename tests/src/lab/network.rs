//! Changes the lab's network for a test: cuts a host's cable, or lays cables between hosts.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::Host;

/// The ends of the cables of a chain, from the first host to the third: the name of each interface and its address.
const FIRST: (&str, &str) = ("chain1", "198.19.1.1");
const SECOND: [(&str, &str); 2] = [("chain1", "198.19.1.2"), ("chain2", "198.19.2.1")];
const THIRD: (&str, &str) = ("chain2", "198.19.2.2");

/// The network of all hosts.
pub(super) struct Network {
    netns: String,
    bridge: String,
}

impl Network {
    pub(super) fn of(listing: &Value) -> Self {
        let member = |name: &str| listing[name].as_str().expect("a name").to_owned();
        Self { netns: member("netns"), bridge: member("bridge") }
    }

    /// The namespace from which the hosts are reached.
    pub(super) fn netns(&self) -> &str {
        &self.netns
    }

    pub(super) fn cut(&self, host: &Host) {
        let (address, mac, link) = (host.address(), host.listed("mac"), host.listed("link"));
        // The address stays in the neighbour table. Otherwise a sender would get an error after some seconds.
        let known = ["neigh", "replace", &address, "lladdr", &mac, "dev", &self.bridge, "nud", "permanent"];
        ip(&self.netns, &known);
        ip(&self.netns, &["link", "set", &link, "down"]);
    }

    /// Does the same, and forgets who has the address, so a sender gets an error.
    pub(super) fn unplug(&self, host: &Host) {
        ip(&self.netns, &["link", "set", &host.listed("link"), "down"]);
        try_ip(&self.netns, &["neigh", "del", &host.address(), "dev", &self.bridge]);
    }

    pub(super) fn mend(&self, host: &Host) {
        let (address, link) = (host.address(), host.listed("link"));
        try_ip(&self.netns, &["link", "set", &link, "up"]);
        try_ip(&self.netns, &["neigh", "del", &address, "dev", &self.bridge]);
    }
}

/// Lays the cables; gives the addresses of the second host and of the third.
pub(super) fn chain(hosts: [&Host; 3]) -> (&'static str, &'static str) {
    unchain(hosts);
    let [first, second, third] = hosts.map(|host| host.listed("netns"));
    for (near, (name, address), far, (far_name, far_address)) in
        [(&first, FIRST, &second, SECOND[0]), (&second, SECOND[1], &third, THIRD)]
    {
        ip(near, &["link", "add", name, "type", "veth", "peer", "name", far_name, "netns", far]);
        for (netns, name, address) in [(near, name, address), (far, far_name, far_address)] {
            ip(netns, &["addr", "add", &format!("{address}/24"), "dev", name]);
            ip(netns, &["link", "set", name, "up"]);
        }
    }
    (SECOND[0].1, THIRD.1)
}

/// Takes the cables away where there are any.
pub(super) fn unchain(hosts: [&Host; 3]) {
    for host in hosts {
        for name in ["chain1", "chain2"] {
            try_ip(&host.listed("netns"), &["link", "del", name]);
        }
    }
}

#[track_caller]
fn ip(netns: &str, args: &[&str]) {
    let output = try_ip(netns, args);
    assert!(output.status.success(), "{args:?} in {netns}: {}", String::from_utf8_lossy(&output.stderr));
}

fn try_ip(netns: &str, args: &[&str]) -> Output {
    Command::new("ip").args(["-n", netns]).args(args).stdin(Stdio::null()).output().expect("ip runs")
}
