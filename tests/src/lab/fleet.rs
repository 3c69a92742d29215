//! Ten hosts more, as small as they can be: for what is done on many at once.

use std::fs::{self, File};
use std::ops::Deref;

use super::Lab;
use crate::{Host, host};

/// How many there are.
const SIZE: usize = 10;

/// The account of a lab that knows ten hosts more, as root: `fleet01` to `fleet10`. All of them are the group `fleet`.
pub struct Fleet {
    lab: Lab,
    hosts: Vec<Host>,
    /// There is one fleet, and a test is to be alone on it.
    _turn: File,
}

impl Fleet {
    /// As they came up. Where hosts can't be had, the test is counted as skipped.
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

    /// The program's own configuration: the group, and this.
    pub fn settle_for(&self, yaml: &str) {
        self.lab.settle_for(&format!("hosts: {{fleet: [\"fleet[01:{SIZE}]\"]}}\n{yaml}"));
    }

    /// The names of all.
    pub fn names(&self) -> Vec<&str> {
        self.hosts.iter().map(Host::name).collect()
    }

    /// Each of them.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The one of this name.
    pub fn one(&self, name: &str) -> &Host {
        self.hosts.iter().find(|host| host.name() == name).unwrap_or_else(|| panic!("no {name} in the fleet"))
    }

    /// From now on its sshd says nothing to whoever connects; connections that are there stay.
    pub fn hangs(&self, name: &str) {
        self.one(name).run(&signal("--signal=STOP"));
    }

    /// It is gone from the network, as if it were switched off: whoever looks for it is told that nobody has its address.
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
