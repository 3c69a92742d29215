//! What the target is: asked once, all questions together, and then kept.
//!
//! Every question is a file or a program's presence; `sudo -n true` is the only command.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::local::Local;
use super::{Command, Keep, Privilege, ReadRequest};
use crate::visible::excerpt;

/// What is known of a target. The names are those of the `distro-context` interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    /// Whether `sudo -n` works.
    pub sudo_available: bool,
    /// Further facts: `timezone`.
    pub extra: BTreeMap<String, String>,
    /// Name of the account that the target is reached as.
    pub user: String,
    /// Its number.
    pub uid: u32,
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

/// What the operator says instead; the rest is as found.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overrides {
    family: Option<OneOf<0>>,
    name: Option<Text>,
    version: Option<Text>,
    codename: Option<Text>,
    package_manager: Option<OneOf<1>>,
    firewall_backend: Option<OneOf<2>>,
    mac_system: Option<OneOf<3>>,
    container_runtime: Option<OneOf<4>>,
    log_system: Option<OneOf<5>>,
    user_management: Option<OneOf<6>>,
}

/// The values that a fact may be given, by its number in [`Overrides`].
const WORDS: [&[&str]; 7] = [
    &["debian", "rhel", "arch", "suse", "alpine"],
    &["apt", "dnf", "pacman", "zypper", "apk", "none"],
    &["ufw", "firewalld", "nftables", "none"],
    &["apparmor", "selinux", "none"],
    &["docker", "podman", "none"],
    &["journald", "rsyslog", "both", "none"],
    &["adduser", "useradd"],
];

/// A fact with fixed values: one that no module serves would take tools away without a word.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct OneOf<const FACT: usize>(String);

impl<const FACT: usize> TryFrom<String> for OneOf<FACT> {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        match WORDS[FACT].contains(&word.as_str()) {
            true => Ok(Self(word)),
            false => Err(format!("{:?} is not one of {}", excerpt(&word, 40), WORDS[FACT].join(", "))),
        }
    }
}

/// A fact that may be any short, visible text.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Text(String);

impl TryFrom<String> for Text {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match (1..=64).contains(&text.len()) && !text.chars().any(crate::characters::is_hidden) {
            true => Ok(Self(text)),
            false => Err(format!("{:?} is not a text of 1 to 64 visible characters", excerpt(&text, 40))),
        }
    }
}

impl Overrides {
    pub(super) fn apply(&self, mut facts: Facts) -> Facts {
        let replace = |fact: &mut String, said: Option<&String>| {
            if let Some(said) = said {
                fact.clone_from(said);
            }
        };
        replace(&mut facts.family, self.family.as_ref().map(|said| &said.0));
        replace(&mut facts.name, self.name.as_ref().map(|said| &said.0));
        replace(&mut facts.version, self.version.as_ref().map(|said| &said.0));
        replace(&mut facts.package_manager, self.package_manager.as_ref().map(|said| &said.0));
        replace(&mut facts.firewall_backend, self.firewall_backend.as_ref().map(|said| &said.0));
        replace(&mut facts.mac_system, self.mac_system.as_ref().map(|said| &said.0));
        replace(&mut facts.container_runtime, self.container_runtime.as_ref().map(|said| &said.0));
        replace(&mut facts.log_system, self.log_system.as_ref().map(|said| &said.0));
        replace(&mut facts.user_management, self.user_management.as_ref().map(|said| &said.0));
        facts.codename = self.codename.as_ref().map(|said| said.0.clone()).or(facts.codename);
        facts
    }
}

const FILES: &[&str] = &[
    "/etc/os-release",
    "/usr/lib/os-release",
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
    sudo: bool,
    uid: u32,
}

pub(super) async fn gather(local: &Local) -> Facts {
    let requests = FILES
        .iter()
        .map(|path| ReadRequest { path: (*path).to_owned(), offset: 0, max_bytes: 256 * 1024 })
        .collect();
    // The host's own questions: the paths are above, no module has a say in them.
    let reading = local.read_all(requests, Privilege::Caller, Arc::new(|_, _| Ok(())));
    let sudo = Command {
        program: "sudo".into(),
        args: vec!["-n".into(), "true".into()],
        env: Vec::new(),
        stdin: None,
        privilege: Privilege::Caller,
        timeout: Duration::from_secs(5),
        keep: Keep::Head,
    };
    let asking = async { local.run(&sudo, false).await.is_ok_and(|output| output.exit_code == 0) };
    let (files, sudo) = tokio::join!(reading, asking);
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
        sudo,
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
        sudo_available: answers.sudo,
        extra,
        user: user.unwrap_or_else(|| answers.uid.to_string()),
        uid: answers.uid,
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
mod tests {
    use super::*;

    fn facts_of(os_release: &str, programs: &[&'static str]) -> Facts {
        let files = BTreeMap::from([
            ("/etc/os-release", os_release.to_owned()),
            ("/proc/1/comm", "systemd\n".to_owned()),
            (
                "/etc/passwd",
                "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000::/home/ada:/bin/sh\n".to_owned(),
            ),
        ]);
        derive(&Answers { files, programs: programs.to_vec(), uid: 1000, ..Answers::default() })
    }

    #[test]
    fn the_family_is_the_id_or_what_the_id_is_like() {
        for (release, family) in [
            ("ID=debian\nNAME=\"Debian GNU/Linux\"", "debian"),
            ("ID=ubuntu\nID_LIKE=debian", "debian"),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"", "debian"),
            ("ID=fedora", "rhel"),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"", "rhel"),
            ("ID=arch", "arch"),
            ("ID=opensuse-leap\nID_LIKE=\"suse opensuse\"", "opensuse-leap"),
            ("", "unknown"),
        ] {
            assert_eq!(facts_of(release, &[]).family, family, "{release}");
        }
    }

    #[test]
    fn os_release_values_may_be_quoted_or_not_and_comments_are_none() {
        let release = "# NAME=no\nNAME='Debian GNU/Linux'\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\nODD=\"a \\\"b\\\"\"\n";
        let facts = facts_of(release, &[]);
        assert_eq!((facts.name.as_str(), facts.version.as_str()), ("Debian GNU/Linux", "12"));
        assert_eq!(facts.codename.as_deref(), Some("bookworm"));
        assert_eq!(os_release(release)["ODD"], "a \"b\"");
    }

    #[test]
    fn what_is_installed_decides_backends() {
        let facts =
            facts_of("ID=debian", &["apt-get", "nft", "ufw", "podman", "journalctl", "rsyslogd", "adduser"]);
        assert_eq!(facts.package_manager, "apt");
        assert_eq!(facts.firewall_backend, "ufw");
        assert_eq!(facts.container_runtime, "podman");
        assert_eq!(facts.log_system, "both");
        assert_eq!(facts.user_management, "adduser");
        assert_eq!(facts_of("ID=fedora", &["dnf", "adduser"]).user_management, "useradd");
        assert_eq!(facts_of("ID=arch", &[]).package_manager, "none");
    }

    #[test]
    fn the_caller_is_named_and_rights_follow() {
        let facts = facts_of("ID=debian", &[]);
        assert_eq!((facts.user.as_str(), facts.uid), ("ada", 1000));
        assert!(!facts.root_available());
    }

    #[test]
    fn the_mac_system_and_its_mode_are_read_from_sys() {
        let with = |files: &[(&'static str, &str)]| {
            let files = files.iter().map(|(path, text)| (*path, text.to_string())).collect();
            let facts = derive(&Answers { files, ..Answers::default() });
            (facts.mac_system, facts.mac_mode)
        };
        let selinux = "/sys/fs/selinux/enforce";
        let apparmor = "/sys/module/apparmor/parameters/enabled";
        let profiles = "/sys/kernel/security/apparmor/profiles";
        for (files, system, mode) in [
            (&[(selinux, "1")][..], "selinux", Some("enforcing")),
            (&[(selinux, "0\n")], "selinux", Some("permissive")),
            (&[(apparmor, "Y\n")], "apparmor", None),
            (&[(apparmor, "Y\n"), (profiles, "man (enforce)\n")], "apparmor", Some("enforcing")),
            (&[(apparmor, "Y\n"), (profiles, "man (complain)\n")], "apparmor", Some("complaining")),
            (&[(apparmor, "N\n")], "apparmor", Some("disabled")),
            (&[], "none", None),
        ] {
            assert_eq!(with(files), (system.to_owned(), mode.map(str::to_owned)), "{files:?}");
        }
    }

    #[test]
    fn the_time_zone_is_where_localtime_leads() {
        assert_eq!(
            time_zone(Some("/usr/share/zoneinfo/Europe/Berlin"), None).as_deref(),
            Some("Europe/Berlin")
        );
        assert_eq!(
            time_zone(Some("../usr/share/zoneinfo/Etc/UTC"), Some("Asia/Tokyo")).as_deref(),
            Some("Etc/UTC")
        );
        assert_eq!(time_zone(None, Some("Asia/Tokyo\n")).as_deref(), Some("Asia/Tokyo"));
        assert_eq!(time_zone(None, Some("\n")), None);
    }

    #[test]
    fn a_container_is_told_before_the_machine_it_runs_on() {
        let (vendor, product) = ("/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name");
        for (files, kind) in [
            (
                &[("/run/systemd/container", "systemd-nspawn\n"), (vendor, "QEMU"), (product, "x")][..],
                Some("systemd-nspawn"),
            ),
            (&[("/.dockerenv", "")], Some("docker")),
            (&[("/run/.containerenv", "engine=\"podman\"")], Some("podman")),
            (&[(vendor, "QEMU\n"), (product, "Standard PC\n")], Some("kvm")),
            (&[(vendor, "Microsoft Corporation"), (product, "Virtual Machine")], Some("microsoft")),
            (&[(vendor, "Microsoft Corporation"), (product, "Surface")], None),
            (&[(vendor, "LENOVO"), (product, "20XY")], None),
            (&[], None),
        ] {
            let files = files.iter().map(|(path, text)| (*path, text.to_string())).collect();
            assert_eq!(virtualization(&files).as_deref(), kind, "{files:?}");
        }
    }

    #[test]
    fn an_override_replaces_its_field_and_no_other() {
        let overrides: Overrides = serde_yaml::from_str("package_manager: dnf\ncodename: noble").unwrap();
        let facts = overrides.apply(facts_of("ID=debian\nVERSION_ID=12", &["apt-get"]));
        assert_eq!(facts.package_manager, "dnf");
        assert_eq!(facts.codename.as_deref(), Some("noble"));
        assert_eq!((facts.family.as_str(), facts.version.as_str()), ("debian", "12"));
    }

    #[test]
    fn an_override_that_no_module_could_serve_is_refused() {
        for bad in [
            "package_manager: atp",
            "family: ''",
            "log_system: \"\\e[2J\"",
            "name: ''",
            "codename: \"a\\u202eb\"",
        ] {
            let error = serde_yaml::from_str::<Overrides>(bad).unwrap_err().to_string();
            assert!(error.contains("is not"), "{bad}: {error}");
        }
    }

    #[test]
    fn every_named_fact_can_be_asked_for() {
        let facts = facts_of("ID=debian\nVERSION_CODENAME=x", &[]);
        for name in Facts::NAMES.iter().filter(|name| **name != "mac_mode") {
            assert!(facts.get(name).is_some(), "{name}");
        }
        assert_eq!(facts.get("no-such-fact"), None);
    }
}
