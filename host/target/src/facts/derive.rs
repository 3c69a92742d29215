//! From answers to facts; nothing is asked here.
//!
//! Every text in an answer is the target's: what of it becomes a fact is short, on one line, and visible. What wasn't
//! answered is no fact of the target's: it is empty, and named in [`Facts::unknown`].

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::{EXPECTED, Facts, release};
use host_text::characters::is_hidden;
use host_text::visible::{excerpt, one_line};

/// The longest text that is taken as it is; host names have 64 characters at most, names of accounts 32.
const LONGEST: usize = 128;

/// Linux's `PATH_MAX`.
const LONGEST_PATH: usize = 4096;

/// Files whose contents are asked for. The last may be the longest, so it is the one that is cut.
pub(super) const FILES: &[&str] = &[
    OS_RELEASE,
    OS_RELEASE_OF_VENDOR,
    MACHINE_ID,
    "/proc/1/comm",
    "/sys/module/apparmor/parameters/enabled",
    "/sys/fs/selinux/enforce",
    "/run/systemd/container",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/etc/timezone",
    "/sys/kernel/security/apparmor/profiles",
    "/etc/passwd",
];

const OS_RELEASE: &str = "/etc/os-release";
const OS_RELEASE_OF_VENDOR: &str = "/usr/lib/os-release";
pub(crate) const MACHINE_ID: &str = "/etc/machine-id";

/// What tells something by being there, whatever is in it.
pub(super) const MARKS: &[&str] = &[UNDER_SYSTEMD, "/run/.containerenv", "/.dockerenv"];

/// As sd_booted(3): for an account that `hidepid=` keeps from looking at process 1.
const UNDER_SYSTEMD: &str = "/run/systemd/system";

/// Programs that facts are derived from.
const TELLING: &[&str] = &[
    "adduser",
    "apt-get",
    "dnf",
    "docker",
    "firewall-cmd",
    "journalctl",
    "nft",
    "podman",
    "rsyslogd",
    "timeout",
    "ufw",
];

/// Programs that are looked for.
pub(super) fn programs() -> BTreeSet<&'static str> {
    TELLING.iter().chain(EXPECTED).copied().collect()
}

/// The answers that facts are derived from. `None` where a question as a whole had no answer.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Contents of [`FILES`], by path, of those that are there and say anything.
    pub(super) files: Option<BTreeMap<&'static str, String>>,
    /// Those of [`programs`] and [`MARKS`] that are there.
    pub(super) there: Option<BTreeSet<&'static str>>,
    /// Where `/etc/localtime` leads.
    pub(super) localtime: Option<String>,
    pub(super) machine: Option<Machine>,
    pub(super) account: Account,
    /// `sudo -n true`, as far as sudo is concerned.
    pub(super) sudo_everything: bool,
    /// `sudo -n -l`: it lists what is allowed, where anything is.
    pub(super) sudo_something: bool,
    pub(super) session: Session,
}

/// What uname(2) says.
#[derive(Debug, Default)]
pub(super) struct Machine {
    pub(super) hostname: String,
    pub(super) kernel: String,
    pub(super) architecture: String,
}

/// Whose rights a command has that doesn't ask for others.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) uid: u32,
    /// Where it is known already; else passwd(5) may have it.
    pub(super) name: Option<String>,
}

/// Of the environment that a session has by itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    /// `HOME`.
    pub(crate) home: Option<String>,
    /// `SHELL`: of an account that another machine keeps, passwd(5) doesn't have it.
    pub(crate) shell: Option<String>,
    /// `SSH_CONNECTION`.
    pub(crate) ssh_connection: Option<String>,
}

pub(super) fn derive(answers: &Answers) -> Facts {
    let mut unknown = Vec::new();
    let files = answers.files.as_ref();
    let file = |path: &str| files.and_then(|files| files.get(path)).map(String::as_str);
    let line = |path: &str| file(path).map(shown).unwrap_or_default();

    let release = file(OS_RELEASE).or(file(OS_RELEASE_OF_VENDOR)).map(release::parse).unwrap_or_default();
    let said = |key: &str| release.get(key).map(|value| shown(value)).filter(|value| !value.is_empty());
    let id = said("ID");
    if id.is_none() {
        unknown.extend(["family", "name", "version", "codename"]);
    }
    let id = id.unwrap_or_else(|| "unknown".into());
    let known_family = family(&id, &said("ID_LIKE").unwrap_or_default());

    let there = answers.there.as_ref();
    let has = |name: &str| there.is_some_and(|there| there.contains(name));
    // Without an answer, nothing is said to be absent either.
    let none = if there.is_some() { "none" } else { "" };
    let first = |names: &[(&str, &str)]| {
        names.iter().find(|(program, _)| has(program)).map_or(none, |(_, name)| name).to_owned()
    };
    if there.is_none() {
        unknown.extend([
            "package_manager",
            "firewall_backend",
            "container_runtime",
            "log_system",
            "user_management",
            "has_timeout",
            "missing",
        ]);
    }
    let managers = match known_family {
        Some("rhel") => [("dnf", "dnf"), ("apt-get", "apt")],
        _ => [("apt-get", "apt"), ("dnf", "dnf")],
    };
    let user_management = match there {
        Some(_) if has("adduser") && known_family == Some("debian") => "adduser",
        Some(_) => "useradd",
        None => "",
    };
    let log_system = match (has("journalctl"), has("rsyslogd")) {
        (true, true) => "both",
        (true, false) => "journald",
        (false, true) => "rsyslog",
        (false, false) => none,
    };

    let init_system = match line("/proc/1/comm") {
        comm if comm.is_empty() && has(UNDER_SYSTEMD) => "systemd".to_owned(),
        comm => comm,
    };
    if init_system.is_empty() {
        unknown.push("init_system");
    }
    let (mac_system, mac_mode) = match files {
        Some(_) => mac(file),
        None => ("", None),
    };
    if files.is_none() {
        unknown.extend(["mac_system", "mac_mode", "machine_id"]);
    }
    let (hostname, kernel, architecture) = match &answers.machine {
        Some(machine) => (shown(&machine.hostname), shown(&machine.kernel), shown(&machine.architecture)),
        None => {
            unknown.extend(["hostname", "kernel", "architecture"]);
            Default::default()
        }
    };

    let uid = answers.account.uid;
    let entry = file("/etc/passwd").and_then(|passwd| Entry::of(passwd, uid)).unwrap_or_default();
    let session = &answers.session;
    let login_shell = path(entry.shell).or(session.shell.as_deref().and_then(path));
    if login_shell.is_none() {
        unknown.push("login_shell");
    }
    let home = session.home.as_deref().and_then(path).or(path(entry.home));
    let user = answers.account.name.as_deref().unwrap_or(entry.name);

    let mut extra = BTreeMap::new();
    if let Some(zone) = time_zone(answers.localtime.as_deref(), file("/etc/timezone")) {
        extra.insert("timezone".to_owned(), zone);
    }
    if let Some(kind) = virtualization(file, has) {
        extra.insert("virtualization".to_owned(), kind);
    }
    let missing = |program: &&&str| there.is_some() && !has(program);
    Facts {
        family: known_family.unwrap_or(&id).to_owned(),
        name: said("NAME").unwrap_or_else(|| "unknown".into()),
        version: said("VERSION_ID").unwrap_or_default(),
        codename: said("VERSION_CODENAME"),
        package_manager: first(&managers),
        init_system,
        firewall_backend: first(&[("ufw", "ufw"), ("firewall-cmd", "firewalld"), ("nft", "nftables")]),
        mac_system: mac_system.to_owned(),
        mac_mode: mac_mode.map(str::to_owned),
        container_runtime: first(&[("docker", "docker"), ("podman", "podman")]),
        log_system: log_system.to_owned(),
        user_management: user_management.to_owned(),
        hostname,
        kernel,
        architecture,
        sudo_available: answers.sudo_everything || answers.sudo_something,
        sudo_limited: answers.sudo_something && !answers.sudo_everything,
        extra,
        user: if user.is_empty() { uid.to_string() } else { shown(user) },
        uid,
        home: home.unwrap_or_else(|| "/".to_owned()),
        login_shell,
        machine_id: file(MACHINE_ID).and_then(machine_id_in),
        ssh_client: session.ssh_connection.as_deref().and_then(client),
        sftp: false,
        has_timeout: has("timeout"),
        missing: EXPECTED.iter().filter(missing).map(|program| (*program).to_owned()).collect(),
        unknown: unknown.into_iter().map(str::to_owned).collect(),
    }
}

/// A text of the target's as a fact.
fn shown(text: &str) -> String {
    one_line(&excerpt(text.trim(), LONGEST))
}

/// A path of the target's that a command may be given.
fn path(text: &str) -> Option<String> {
    let fits = text.starts_with('/') && text.len() < LONGEST_PATH && !text.chars().any(is_hidden);
    fits.then(|| text.to_owned())
}

fn family(id: &str, id_like: &str) -> Option<&'static str> {
    std::iter::once(id).chain(id_like.split_whitespace()).find_map(|name| match name {
        "debian" | "ubuntu" => Some("debian"),
        "rhel" | "fedora" | "centos" => Some("rhel"),
        _ => None,
    })
}

/// Which machine it is: 32 digits. An image that hasn't been started yet may say `uninitialized`, as each of its copies
/// does.
pub(crate) fn machine_id_in(file: &str) -> Option<String> {
    let id = file.trim();
    let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| id.to_owned())
}

fn mac<'f>(file: impl Fn(&str) -> Option<&'f str>) -> (&'static str, Option<&'static str>) {
    match (file("/sys/fs/selinux/enforce"), file("/sys/module/apparmor/parameters/enabled")) {
        (Some(enforce), _) => {
            ("selinux", Some(if enforce.trim() == "1" { "enforcing" } else { "permissive" }))
        }
        (None, Some(enabled)) if enabled.trim() == "Y" => {
            ("apparmor", file("/sys/kernel/security/apparmor/profiles").map(apparmor_mode))
        }
        (None, Some(_)) => ("apparmor", Some("disabled")),
        (None, None) => ("none", None),
    }
}

/// Enforcing as soon as one profile is; the file is only root's to read.
fn apparmor_mode(profiles: &str) -> &'static str {
    if profiles.contains("(enforce)") { "enforcing" } else { "complaining" }
}

/// A line of passwd(5).
#[derive(Default)]
struct Entry<'p> {
    name: &'p str,
    home: &'p str,
    shell: &'p str,
}

impl<'p> Entry<'p> {
    /// The first with this number, as getpwuid(3) gives it.
    fn of(passwd: &'p str, uid: u32) -> Option<Self> {
        let uid = uid.to_string();
        passwd.lines().find_map(|line| match line.split(':').collect::<Vec<_>>()[..] {
            [name, _, id, _, _, home, shell] if id == uid => Some(Self { name, home, shell }),
            _ => None,
        })
    }
}

/// The first word of `SSH_CONNECTION`, where it is an address. Of a link's own address, the link is left out, and of
/// one that stands for an IPv4 address, that is taken: rules are written of these.
fn client(connection: &str) -> Option<IpAddr> {
    let word = connection.split(' ').next()?;
    let address = word.split_once('%').map_or(word, |(address, _)| address);
    address.parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// What the machine runs in, by systemd-detect-virt's names where they are known: a container, else a hypervisor.
fn virtualization<'f>(file: impl Fn(&str) -> Option<&'f str>, has: impl Fn(&str) -> bool) -> Option<String> {
    let line = |path: &str| file(path).map(str::trim);
    if let Some(manager) = line("/run/systemd/container").filter(|manager| !manager.is_empty()) {
        return Some(shown(manager));
    }
    for (path, kind) in [("/run/.containerenv", "podman"), ("/.dockerenv", "docker")] {
        if has(path) {
            return Some(kind.to_owned());
        }
    }
    let (vendor, product) = (line("/sys/class/dmi/id/sys_vendor")?, line("/sys/class/dmi/id/product_name")?);
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
    let zone = shown(linked.or(file)?);
    (!zone.is_empty()).then_some(zone)
}

#[cfg(test)]
mod tests;
