//! Ten further hosts, which are as small as possible, for calls on many hosts at once.

use std::fs::{self, File};
use std::ops::Deref;

use super::Lab;
use crate::{Host, host};

/// The number of hosts.
const SIZE: usize = 10;

/// An account in the lab that reaches ten further hosts as root: `fleet01` to `fleet10`. All of them are the group `fleet`.
pub struct Fleet {
    lab: Lab,
    hosts: Vec<Host>,
    /// Locks the fleet for this test, since there is one fleet only.
    _turn: File,
}

impl Fleet {
    /// Takes the fleet. Where there can be no hosts, the test is counted as skipped.
    pub fn new(test: &str) -> Option<Self> {
        let lab = Lab::beside_others(test)?;
        let name = |number| format!("fleet{number:02}");
        let hosts: Vec<_> =
            (1..=SIZE).map(|number| host(test, &name(number)).expect("hosts are up")).collect();
        let turn = hosts[0].turn("turn.lock");
        turn.lock().expect("a turn");
        let fleet = Self { lab, hosts, _turn: turn };
        fleet.clean();
        let mut config = fs::read_to_string(fleet.file("config")).expect("a configuration");
        for host in &fleet.hosts {
            let (name, address) = (host.name(), host.address());
            config += &format!("Host {name}\n  HostName {address}\n  User root\n");
            fleet.knows_keys(&format!("{name},{address}"), host);
        }
        fleet.configure(&config);
        fleet.settle_for("");
        Some(fleet)
    }

    /// Writes the program's own configuration: the group, and this YAML.
    pub fn settle_for(&self, yaml: &str) {
        self.lab.settle_for(&format!("hosts: {{fleet: [\"fleet[01:{SIZE}]\"]}}\n{yaml}"));
    }

    /// The names of all hosts.
    pub fn names(&self) -> Vec<&str> {
        self.hosts.iter().map(Host::name).collect()
    }

    /// All hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The host of this name.
    pub fn one(&self, name: &str) -> &Host {
        self.hosts.iter().find(|host| host.name() == name).unwrap_or_else(|| panic!("no {name} in the fleet"))
    }

    /// Makes the host's sshd answer no new connections. Open connections stay.
    pub fn hangs(&self, name: &str) {
        self.one(name).run(&signal("--signal=STOP"));
    }

    /// Takes the host off the network, as if it were switched off: a sender gets the error that nobody has its address.
    pub fn is_gone(&self, name: &str) {
        self.network.unplug(self.one(name));
    }

    fn clean(&self) {
        for host in &self.hosts {
            self.network.mend(host);
            let _ = host.command(&signal("--signal=CONT")).output();
        }
    }
}

impl Deref for Fleet {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        &self.lab
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.clean();
    }
}

fn signal(option: &str) -> [&str; 5] {
    ["systemctl", "kill", "--kill-whom=main", option, "ssh.service"]
}
