//! The state of the lab's hosts: one folder for each below /run, from which hosts.json is made for the tests.

use crate::files;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

pub(crate) const STATE: &str = "/run/linux-sysadmin-hosts";

/// A host as `up` has made it. This doesn't change while the host exists.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) image: String,
    /// The lower layers of its root, from the top down.
    pub(crate) layers: Vec<PathBuf>,
    pub(crate) address: Ipv4Addr,
    /// The further arguments of systemd-nspawn.
    pub(crate) nspawn: Vec<String>,
}

/// A host as hosts.json lists it.
#[derive(Serialize)]
struct Listed<'a> {
    name: &'a str,
    image: &'a str,
    address: Ipv4Addr,
    /// The host's own network namespace (`ip netns`).
    netns: String,
    /// The hardware address of the interface.
    mac: String,
    /// The lab's end of its cable: a port of the bridge.
    link: String,
    /// The PID of its init as seen from outside. It is null while the host is off or between two boots.
    pid: Option<u32>,
    /// The root directory of the host as seen from outside.
    root: PathBuf,
    /// The private key for all of its accounts.
    key: PathBuf,
    running: bool,
}

impl Host {
    pub(crate) fn load(name: &str) -> Result<Host> {
        let file = dir(name).join("host.json");
        let Ok(text) = fs::read_to_string(&file) else {
            let names: Vec<_> = names();
            let known = if names.is_empty() { "there are none".into() } else { names.join(", ") };
            bail!("no host `{name}` ({known}); `cargo xtask hosts up {name}` makes it");
        };
        serde_json::from_str(&text).with_context(|| format!("{} is damaged; take it down", file.display()))
    }

    pub(crate) fn save(&self) -> Result<()> {
        files::write(&self.file("host.json"), serde_json::to_vec_pretty(self)?, 0o644)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        dir(&self.name).join(name)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.file("root")
    }

    pub(crate) fn netns(&self) -> String {
        netns(&self.name)
    }

    /// The PID of its init, where the host has booted and lives.
    pub(crate) fn pid(&self) -> Option<u32> {
        let pid = fs::read_to_string(self.file("pid")).ok()?.trim().parse().ok()?;
        super::processes::is_init(pid).then_some(pid)
    }

    /// Whether a supervisor runs for the host. A supervisor holds the lock for as long as it lives.
    pub(crate) fn is_supervised(&self) -> bool {
        is_supervised(&self.name)
    }
}

pub(crate) fn is_supervised(name: &str) -> bool {
    let Ok(file) = File::open(dir(name).join("supervisor.lock")) else { return false };
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

pub(crate) fn netns(name: &str) -> String {
    format!("lab-{name}")
}

pub(crate) fn dir(name: &str) -> PathBuf {
    Path::new(STATE).join("hosts").join(name)
}

/// The names of all hosts, also of hosts that were interrupted while they were made or taken down.
pub(crate) fn names() -> Vec<String> {
    let Ok(entries) = fs::read_dir(Path::new(STATE).join("hosts")) else { return Vec::new() };
    let mut names: Vec<_> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// All hosts that are complete.
pub(crate) fn all() -> Vec<Host> {
    names().iter().filter_map(|name| Host::load(name).ok()).collect()
}

/// The private key that every host of this lab accepts.
pub(crate) fn key() -> PathBuf {
    Path::new(STATE).join("id_ed25519")
}

/// The hosts' keys, by name and address.
pub(crate) fn known_hosts() -> PathBuf {
    Path::new(STATE).join("known_hosts")
}

/// An ssh configuration for `ssh -F` in the lab, with every host by its name.
pub(crate) fn ssh_config() -> PathBuf {
    Path::new(STATE).join("ssh_config")
}

/// The folder that hosts see read-only as /opt/linux-sysadmin.
pub(crate) fn dist() -> PathBuf {
    Path::new(STATE).join("dist")
}

pub(crate) fn hosts_json() -> PathBuf {
    Path::new(STATE).join("hosts.json")
}

/// Takes the lock that lets one `up` or `down` run at a time. It ends with the returned file.
pub(crate) fn lock() -> Result<File> {
    files::make_dir(Path::new(STATE))?;
    let path = Path::new(STATE).join("lock");
    let file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        eprintln!("xtask: waiting for another `hosts up` or `hosts down`");
        file.lock().context("cannot lock the lab")?;
    }
    Ok(file)
}

/// Checks a name that becomes a file name, a network namespace and a hostname.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let fine = !name.is_empty()
        && name.len() <= 32
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !fine {
        bail!(
            "`{name}` cannot name a host: a lower-case letter first, then letters, digits and -, 32 at most"
        );
    }
    Ok(())
}

/// The content of hosts.json.
pub(crate) fn listing() -> Result<String> {
    let hosts = all();
    let listed: Vec<_> = hosts
        .iter()
        .map(|host| Listed {
            name: &host.name,
            image: &host.image,
            address: host.address,
            netns: host.netns(),
            mac: super::network::hardware_address(host),
            link: super::network::outer_link(host),
            pid: host.pid(),
            root: host.root(),
            key: key(),
            running: host.is_supervised(),
        })
        .collect();
    let lab = serde_json::json!({
        "netns": super::network::LAB,
        "bridge": super::network::BRIDGE,
        "gateway": super::network::GATEWAY,
        "key": key(),
        "known_hosts": known_hosts(),
        "hosts": listed,
    });
    Ok(serde_json::to_string_pretty(&lab)? + "\n")
}

/// Writes hosts.json anew. Every change of a host that it lists calls this.
pub(crate) fn publish() -> Result<()> {
    let path = Path::new(STATE).join("hosts.json.lock");
    let lock = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    lock.lock().context("cannot lock hosts.json")?;
    files::write(&hosts_json(), listing()?, 0o644)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_safe_as_a_path_an_option_and_a_hostname() {
        for good in ["debian1", "a", "web-2"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "-x", "1a", "a/b", "..", "A", "a_b", "a b", &"a".repeat(33)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
