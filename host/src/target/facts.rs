//! What the target is: asked once, all questions together, and then kept.
//!
//! Every question is a file or a program's presence, but for two of sudo: whether it allows everything, and whether it
//! allows anything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::entry::Trusted;
use super::local::{Local, Rights};
use super::{Command, Keep, Privilege, ReadRequest};

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
    /// Further facts: `timezone`.
    pub extra: BTreeMap<String, String>,
    /// Name of the account that the target is reached as.
    pub user: String,
    /// Its number.
    pub uid: u32,
    /// machine-id(5), where there is one: which machine this is, whatever its name.
    #[serde(skip)]
    pub machine_id: Option<String>,
    /// Programs that tools go by and that aren't there.
    #[serde(skip)]
    pub missing: Vec<String>,
}

impl Facts {
    /// Whether root's rights can be had, be it directly.
    pub fn root_available(&self) -> bool {
        self.uid == 0 || self.sudo_available
    }

    /// A fact by the name that `serves` conditions use.
    pub fn get(&self, name: &str) -> Option<&str> {
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

const MACHINE_ID: &str = "/etc/machine-id";

const FILES: &[&str] = &[
    "/etc/os-release",
    "/usr/lib/os-release",
    MACHINE_ID,
    "/proc/1/comm",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/osrelease",
    "/sys/module/apparmor/parameters/enabled",
    "/sys/kernel/security/apparmor/profiles",
    "/sys/fs/selinux/enforce",
    "/run/systemd/container",
    "/run/.containerenv",
    "/.dockerenv",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/etc/timezone",
    "/etc/passwd",
];

const PROGRAMS: &[&str] = &[
    "apt-get",
    "dnf",
    "ufw",
    "firewall-cmd",
    "nft",
    "docker",
    "podman",
    "adduser",
    "journalctl",
    "rsyslogd",
    "sudo",
];

/// The answers that facts are derived from: files by path, programs that are there.
#[derive(Default)]
struct Answers {
    files: BTreeMap<&'static str, String>,
    programs: Vec<&'static str>,
    /// Where `/etc/localtime` leads.
    localtime: Option<String>,
    architecture: String,
    /// `sudo -n true`, as far as sudo is concerned.
    sudo_everything: bool,
    /// `sudo -n -l`: it lists what is allowed, where anything is.
    sudo_something: bool,
    uid: u32,
}

/// As [`Facts::machine_id`], at this moment.
pub(super) async fn machine_id(local: &Local) -> Option<String> {
    let reading = local.read_all(requests(&[MACHINE_ID]), Trusted::Anyone, Arc::new(|_, _| Ok(())));
    let id = String::from_utf8(reading.await.pop()?.ok()?).ok()?.trim().to_owned();
    (!id.is_empty()).then_some(id)
}

fn requests(paths: &[&str]) -> Vec<ReadRequest> {
    let request = |path: &&str| ReadRequest { path: (*path).to_owned(), offset: 0, max_bytes: 256 * 1024 };
    paths.iter().map(request).collect()
}

pub(super) async fn gather(local: &Local) -> Facts {
    // The host's own questions: the paths are above, no module has a say in them.
    let reading = local.read_all(requests(FILES), Trusted::Anyone, Arc::new(|_, _| Ok(())));
    let sudo = |argument: &str| Command {
        program: "sudo".into(),
        args: vec!["-n".into(), argument.into()],
        env: Vec::new(),
        stdin: None,
        privilege: Privilege::Caller,
        timeout: Duration::from_secs(5),
        keep: Keep::Head,
    };
    let asking = async |argument| {
        local.run(&sudo(argument), Rights::NONE).await.is_ok_and(|output| output.exit_code == 0)
    };
    let (files, sudo_everything, sudo_something) = tokio::join!(reading, asking("true"), asking("-l"));
    let files = FILES
        .iter()
        .zip(files)
        .filter_map(|(path, contents)| Some((*path, String::from_utf8_lossy(&contents.ok()?).into_owned())))
        .collect();
    derive(&Answers {
        files,
        programs: PROGRAMS.iter().copied().filter(|program| local.has(program)).collect(),
        localtime: std::fs::read_link("/etc/localtime").ok().map(|path| path.to_string_lossy().into_owned()),
        architecture: rustix::system::uname().machine().to_string_lossy().into_owned(),
        sudo_everything,
        sudo_something,
        uid: rustix::process::geteuid().as_raw(),
    })
}

fn derive(answers: &Answers) -> Facts {
    let file = |path: &str| answers.files.get(path).map(String::as_str);
    let line = |path: &str| file(path).map(str::trim).unwrap_or_default().to_owned();
    let has = |program: &str| answers.programs.contains(&program);
    let first = |names: &[(&str, &str)]| {
        names.iter().find(|(program, _)| has(program)).map_or("none", |(_, name)| name).to_owned()
    };
    let release = os_release(file("/etc/os-release").or(file("/usr/lib/os-release")).unwrap_or_default());
    let said = |key: &str| release.get(key).cloned();
    let id = said("ID").unwrap_or_else(|| "unknown".into());

    let (mac_system, mac_mode) =
        match (file("/sys/fs/selinux/enforce"), file("/sys/module/apparmor/parameters/enabled")) {
            (Some(enforce), _) => {
                ("selinux", Some(if enforce.trim() == "1" { "enforcing" } else { "permissive" }))
            }
            (None, Some(enabled)) if enabled.trim() == "Y" => {
                ("apparmor", file("/sys/kernel/security/apparmor/profiles").map(apparmor_mode))
            }
            (None, Some(_)) => ("apparmor", Some("disabled")),
            (None, None) => ("none", None),
        };
    let user = file("/etc/passwd").and_then(|passwd| user_name(passwd, answers.uid));
    let mut extra = BTreeMap::new();
    if let Some(zone) = time_zone(answers.localtime.as_deref(), file("/etc/timezone")) {
        extra.insert("timezone".to_owned(), zone);
    }
    if let Some(kind) = virtualization(&answers.files) {
        extra.insert("virtualization".to_owned(), kind);
    }
    Facts {
        family: family(&id, &said("ID_LIKE").unwrap_or_default()).unwrap_or(&id).to_owned(),
        name: said("NAME").unwrap_or_else(|| "unknown".into()),
        version: said("VERSION_ID").unwrap_or_default(),
        codename: said("VERSION_CODENAME").filter(|name| !name.is_empty()),
        package_manager: first(&[("apt-get", "apt"), ("dnf", "dnf")]),
        init_system: line("/proc/1/comm"),
        firewall_backend: first(&[("ufw", "ufw"), ("firewall-cmd", "firewalld"), ("nft", "nftables")]),
        mac_system: mac_system.to_owned(),
        mac_mode: mac_mode.map(str::to_owned),
        container_runtime: first(&[("docker", "docker"), ("podman", "podman")]),
        log_system: match (has("journalctl"), has("rsyslogd")) {
            (true, true) => "both",
            (true, false) => "journald",
            (false, true) => "rsyslog",
            (false, false) => "none",
        }
        .to_owned(),
        user_management: if has("adduser")
            && family(&id, &said("ID_LIKE").unwrap_or_default()) == Some("debian")
        {
            "adduser".to_owned()
        } else {
            "useradd".to_owned()
        },
        hostname: line("/proc/sys/kernel/hostname"),
        kernel: line("/proc/sys/kernel/osrelease"),
        architecture: answers.architecture.clone(),
        sudo_available: answers.sudo_everything || answers.sudo_something,
        sudo_limited: answers.sudo_something && !answers.sudo_everything,
        extra,
        user: user.unwrap_or_else(|| answers.uid.to_string()),
        uid: answers.uid,
        machine_id: Some(line(MACHINE_ID)).filter(|id| !id.is_empty()),
        missing: Vec::new(),
    }
}

/// os-release(5): shell-like assignments, quoted or not.
fn os_release(text: &str) -> BTreeMap<String, String> {
    let assignment = |line: &str| {
        let (key, value) = line.trim().split_once('=')?;
        let quoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
        let value = quoted.unwrap_or(value);
        (!key.starts_with('#')).then(|| (key.to_owned(), value.replace("\\\"", "\"").replace("\\$", "$")))
    };
    text.lines().filter_map(assignment).collect()
}

fn family(id: &str, id_like: &str) -> Option<&'static str> {
    std::iter::once(id).chain(id_like.split_whitespace()).find_map(|name| match name {
        "debian" | "ubuntu" => Some("debian"),
        "rhel" | "fedora" | "centos" => Some("rhel"),
        _ => None,
    })
}

/// Enforcing as soon as one profile is; the file is only root's to read.
fn apparmor_mode(profiles: &str) -> &'static str {
    if profiles.contains("(enforce)") { "enforcing" } else { "complaining" }
}

fn user_name(passwd: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    })
}

/// What the machine runs in, by systemd-detect-virt's names where they are known: a container, else a hypervisor.
fn virtualization(files: &BTreeMap<&'static str, String>) -> Option<String> {
    let file = |path: &str| files.get(path).map(|text| text.trim());
    if let Some(manager) = file("/run/systemd/container").filter(|manager| !manager.is_empty()) {
        return Some(manager.to_owned());
    }
    for (path, kind) in [("/run/.containerenv", "podman"), ("/.dockerenv", "docker")] {
        if file(path).is_some() {
            return Some(kind.to_owned());
        }
    }
    let (vendor, product) = (file("/sys/class/dmi/id/sys_vendor")?, file("/sys/class/dmi/id/product_name")?);
    let known = [
        ("QEMU", "kvm"),
        ("VMware", "vmware"),
        ("innotek GmbH", "oracle"),
        ("Xen", "xen"),
        ("Amazon EC2", "amazon"),
        ("Parallels", "parallels"),
        ("Bochs", "bochs"),
    ];
    if vendor == "Microsoft Corporation" && product == "Virtual Machine" {
        return Some("microsoft".to_owned());
    }
    if vendor == "Google" && product == "Google Compute Engine" {
        return Some("google".to_owned());
    }
    known.iter().find(|(name, _)| vendor.starts_with(name)).map(|(_, kind)| (*kind).to_owned())
}

/// The link is what the system goes by; Debian's file is there where the link is a copy.
fn time_zone(localtime: Option<&str>, file: Option<&str>) -> Option<String> {
    let linked = localtime.and_then(|path| path.split_once("zoneinfo/")).map(|(_, zone)| zone);
    let zone = linked.or(file.map(str::trim))?;
    (!zone.is_empty()).then(|| zone.to_owned())
}

#[cfg(test)]
mod tests;
