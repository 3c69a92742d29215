//! What is known of the target: the record, and the names that `serves` conditions go by.
//!
//! [`gather`] has the questions and the two ways to ask them, [`derive`] makes facts of the answers.

mod derive;
mod gather;
mod release;

// What a machine that only commands reach is asked with.
#[allow(unused_imports)]
pub(super) use derive::{MACHINE_ID, Session, machine_id_in};
pub(super) use gather::gather_here;
pub(super) use gather::{LISTING, questions, read};

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

/// What is known of a target. The names are those of the `distro-context` interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Facts {
    /// `debian`, `rhel`, or the target's own ID where it belongs to neither.
    pub family: String,
    /// As "Debian GNU/Linux".
    pub name: String,
    /// As "12"; empty on a rolling release.
    pub version: String,
    /// As "bookworm".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codename: Option<String>,
    /// `apt`, `dnf` or `none`.
    pub package_manager: String,
    /// `systemd`, or the name of process 1.
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
    /// The target's own.
    pub hostname: String,
    /// As `uname -r`.
    pub kernel: String,
    /// As `uname -m`.
    pub architecture: String,
    /// Whether sudo allows anything without a password.
    pub sudo_available: bool,
    /// Whether that is certain commands only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sudo_limited: bool,
    /// Further facts: `timezone`, `virtualization`.
    pub extra: BTreeMap<String, String>,
    /// Name of the account that the target is reached as.
    pub user: String,
    /// Its number.
    pub uid: u32,
    /// Its home, absolute; `/` where it has none.
    #[serde(skip)]
    pub home: String,
    /// Its shell, absolute, where that is known.
    #[serde(skip)]
    pub login_shell: Option<String>,
    /// machine-id(5), where there is one: which machine this is, whatever its name.
    #[serde(skip)]
    pub machine_id: Option<String>,
    /// Where the session comes from that reached the target, as the target sees it: what a firewall must not shut out.
    #[serde(skip)]
    pub ssh_client: Option<IpAddr>,
    /// Whether files can be read over SFTP; of a target behind SSH.
    #[serde(skip)]
    pub sftp: bool,
    /// Whether a command can be given a limit on the target itself, timeout(1).
    #[serde(skip)]
    pub has_timeout: bool,
    /// Programs that the tools go by and that aren't there.
    #[serde(skip)]
    pub missing: Vec<String>,
    /// Facts that couldn't be told, by the names of this record: the target has no program that would answer, or hides
    /// it from this account.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// What the tools and the host itself go by; without one of these some of it doesn't work.
pub(super) const EXPECTED: &[&str] = &[
    // Other accounts' rights.
    "sudo",
    // Services, logs, and the guard of a change.
    "systemctl",
    "systemd-analyze",
    "systemd-run",
    "journalctl",
    "crontab",
    // Files by commands.
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
    /// Whether root's rights can be had, be it directly.
    pub fn root_available(&self) -> bool {
        self.uid == 0 || self.sudo_available
    }

    /// A fact by the name that `serves` conditions use; nothing where it couldn't be told.
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
