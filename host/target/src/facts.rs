//! The facts about a target, and the names that `serves` conditions use.
//!
//! [`gather`] has the questions and the two ways to ask them. [`derive`] turns the answers into facts, and [`detection`] has what
//! tells which is which.

mod derive;
pub(super) mod detection;
mod gather;
mod release;

// Used only for a machine that is reached by commands alone.
#[allow(unused_imports)]
pub(super) use derive::{MACHINE_ID, SessionEnvironment, machine_id_in};
pub(super) use gather::gather_here;
pub(super) use gather::{LISTING_QUESTION, questions, read};

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// The facts about a target. The names are those of the `distro-context` interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Facts {
    /// A family of `detection.yaml`, such as `debian`, or the target's own ID where it belongs to none.
    pub family: String,
    /// The distribution's name, such as "Debian GNU/Linux".
    pub name: String,
    /// The version, such as "12". It is empty on a rolling release.
    pub version: String,
    /// The release's code name, such as "bookworm".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codename: Option<String>,
    /// A package manager of `detection.yaml`, such as `apt`, or `none`.
    pub package_manager: String,
    /// An init system of `detection.yaml`, such as `systemd`, or the name of process 1.
    pub init_system: String,
    /// `ufw`, `firewalld`, `nftables` or `none`.
    pub firewall_backend: String,
    /// `apparmor`, `selinux` or `none`.
    pub mac_system: String,
    /// `enforcing`, `permissive`, `complaining` or `disabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac_mode: Option<String>,
    /// `docker`, `podman` or `none`.
    pub container_runtime: String,
    /// `journald`, `rsyslog`, `both` or `none`.
    pub log_system: String,
    /// `adduser` or `useradd`.
    pub user_management: String,
    /// The target's own host name.
    pub hostname: String,
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// The architecture, as `uname -m` prints it.
    pub architecture: String,
    /// Whether sudo allows anything without a password.
    pub sudo_available: bool,
    /// Whether sudo allows certain commands only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sudo_limited: bool,
    /// The further facts: `timezone`, `virtualization`.
    pub extra: BTreeMap<String, String>,
    /// The name of the account that the target is reached as.
    pub user: String,
    /// The numeric user id of that account.
    pub uid: u32,
    /// The account's home, an absolute path, or `/` where it has none.
    #[serde(skip)]
    pub home: String,
    /// The account's login shell, an absolute path, where it is known.
    #[serde(skip)]
    pub login_shell: Option<String>,
    /// The machine id where the target has one, see machine-id(5). It tells which machine this is, whatever its name.
    #[serde(skip)]
    pub machine_id: Option<String>,
    /// The id that the kernel gave its current boot.
    #[serde(skip)]
    pub boot_id: Option<String>,
    /// The address from which the session reached the target, as the target sees it. A firewall must not shut it out.
    #[serde(skip)]
    pub ssh_client: Option<IpAddr>,
    /// Whether files can be read over SFTP. Only a target behind SSH has it.
    #[serde(skip)]
    pub sftp: bool,
    /// Whether the target has timeout(1), which limits a command there.
    #[serde(skip)]
    pub has_timeout: bool,
    /// The programs that the tools use and that the target doesn't have.
    #[serde(skip)]
    pub missing: Vec<String>,
    /// Names of facts that are not known. The target has no program that would tell them, or hides them from this
    /// account.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// The programs that the tools and the host use. Where one is missing, some of them don't work.
pub(super) const EXPECTED: &[&str] = &[
    // sudo gives other accounts' rights.
    "sudo",
    // These are for services, logs, and the guard of a change.
    "systemctl",
    "systemd-analyze",
    "systemd-run",
    "journalctl",
    "crontab",
    // These read and change files by commands.
    "chmod",
    "chown",
    "cp",
    "dd",
    "ln",
    "ls",
    "mkdir",
    "mv",
    "readlink",
    "rm",
    "rmdir",
    "stat",
    "sync",
];

impl Facts {
    /// Says whether root's rights are available, directly or by sudo.
    pub fn root_available(&self) -> bool {
        self.uid == 0 || self.sudo_available
    }

    /// Returns a fact by the name that `serves` conditions use, or none where it isn't known.
    pub fn get(&self, name: &str) -> Option<&str> {
        if self.unknown.iter().any(|unknown| unknown == name) {
            return None;
        }
        Some(match name {
            "family" => &self.family,
            "name" => &self.name,
            "version" => &self.version,
            "codename" => self.codename.as_deref()?,
            "package_manager" => &self.package_manager,
            "init_system" => &self.init_system,
            "firewall_backend" => &self.firewall_backend,
            "mac_system" => &self.mac_system,
            "mac_mode" => self.mac_mode.as_deref()?,
            "container_runtime" => &self.container_runtime,
            "log_system" => &self.log_system,
            "user_management" => &self.user_management,
            "architecture" => &self.architecture,
            _ => return None,
        })
    }

    /// The names that [`Facts::get`] knows, for errors that say what was expected.
    pub const NAMES: &[&str] = &[
        "family",
        "name",
        "version",
        "codename",
        "package_manager",
        "init_system",
        "firewall_backend",
        "mac_system",
        "mac_mode",
        "container_runtime",
        "log_system",
        "user_management",
        "architecture",
    ];
}

#[cfg(test)]
mod tests;
