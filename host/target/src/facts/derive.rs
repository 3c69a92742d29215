//! Derives facts from answers. It asks nothing itself.
//!
//! Every text in an answer comes from the target. What becomes a fact is cut short, put on one line, and made visible.
//! A fact without an answer is empty, and [`Facts::unknown`] names it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::{EXPECTED, Facts, detection, release};
use host_base::passwd;
use host_text::characters::is_hidden;
use host_text::visible::{excerpt, one_line};

/// The longest text that is kept whole. Host names have 64 characters at most, account names 32.
const LONGEST: usize = 128;

/// Linux's `PATH_MAX`.
const LONGEST_PATH: usize = 4096;

/// The files whose contents are asked for. The last one may be the longest, and so a cut output loses only lines of
/// that one.
pub(super) const FILES: &[&str] = &[
    OS_RELEASE,
    OS_RELEASE_OF_VENDOR,
    MACHINE_ID,
    BOOT_ID,
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
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Files of which a container has one, whatever it holds.
const CONTAINER_FILES: &[&str] = &["/run/.containerenv", "/.dockerenv"];

/// Programs that facts are derived from, besides those of the table of detection.
const FACT_PROGRAMS: &[&str] = &["adduser", "journalctl", "rsyslogd", "timeout"];

/// Returns the programs that are looked for.
pub(super) fn programs() -> BTreeSet<&'static str> {
    FACT_PROGRAMS.iter().chain(EXPECTED).copied().chain(detection::table().programs()).collect()
}

/// Returns the files whose existence tells something, whatever they hold.
pub(super) fn marker_files() -> impl Iterator<Item = &'static str> {
    detection::table().marks().chain(CONTAINER_FILES.iter().copied())
}

/// The answers from which facts are derived. `None` means that a whole question had no answer.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// The contents of those of [`FILES`] that exist and aren't empty, by path.
    pub(super) files: Option<BTreeMap<&'static str, String>>,
    /// The members of [`programs`] and [`marker_files`] that exist.
    pub(super) there: Option<BTreeSet<&'static str>>,
    /// The target of the link `/etc/localtime`.
    pub(super) localtime: Option<String>,
    pub(super) machine: Option<UnameOutput>,
    pub(super) account: Account,
    /// Whether `sudo -n true` succeeds, as far as sudo is concerned.
    pub(super) sudo_everything: bool,
    /// Whether `sudo -n -l` succeeds. It lists what is allowed, where anything is.
    pub(super) sudo_something: bool,
    pub(super) session: SessionEnvironment,
}

/// The machine's names as uname(2) gives them.
#[derive(Debug, Default)]
pub(super) struct UnameOutput {
    pub(super) hostname: String,
    pub(super) kernel: String,
    pub(super) architecture: String,
}

/// The account with whose rights a command runs by default.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) uid: u32,
    /// The account's name if it is known already. Otherwise passwd(5) may have it.
    pub(super) name: Option<String>,
}

/// Variables of the environment that a session starts with.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionEnvironment {
    /// The variable `HOME`.
    pub(crate) home: Option<String>,
    /// The variable `SHELL`. passwd(5) doesn't list an account that another machine keeps.
    pub(crate) shell: Option<String>,
    /// The variable `SSH_CONNECTION`.
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
    let detection = detection::table();
    let known_family = detection.family(&id, &said("ID_LIKE").unwrap_or_default());

    let there = answers.there.as_ref();
    let has = |name: &str| there.is_some_and(|there| there.contains(name));
    // Without an answer, nothing is said to be absent either.
    let none = if there.is_some() { "none" } else { "" };
    let or_none = |found: Option<&'static str>| found.unwrap_or(none).to_owned();
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

    let process = line("/proc/1/comm");
    let init_system = detection.init_system(&process, has).map_or(process, str::to_owned);
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
    let accounts = file("/etc/passwd").map(passwd::parse).unwrap_or_default();
    let entry = accounts.iter().find(|entry| entry.uid == uid);
    let session = &answers.session;
    let shell = entry.and_then(|entry| path(entry.shell.to_str()?));
    let login_shell = shell.or(session.shell.as_deref().and_then(path));
    if login_shell.is_none() {
        unknown.push("login_shell");
    }
    let home = session.home.as_deref().and_then(path).or(entry.and_then(|entry| path(entry.home.to_str()?)));
    let user = answers.account.name.as_deref().or(entry.map(|entry| entry.name.as_str())).unwrap_or_default();

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
        package_manager: or_none(detection.package_manager(known_family, has)),
        init_system,
        firewall_backend: or_none(detection.firewall_backend(has)),
        mac_system: mac_system.to_owned(),
        mac_mode: mac_mode.map(str::to_owned),
        container_runtime: or_none(detection.container_runtime(has)),
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
        boot_id: file(BOOT_ID).map(shown),
        ssh_client: session.ssh_connection.as_deref().and_then(client),
        sftp: false,
        has_timeout: has("timeout"),
        missing: EXPECTED.iter().filter(missing).map(|program| (*program).to_owned()).collect(),
        unknown: unknown.into_iter().map(str::to_owned).collect(),
    }
}

/// Makes a text of the target fit for a fact.
fn shown(text: &str) -> String {
    one_line(&excerpt(text.trim(), LONGEST))
}

/// Returns a path of the target where it may be given to a command.
fn path(text: &str) -> Option<String> {
    let fits = text.starts_with('/') && text.len() < LONGEST_PATH && !text.chars().any(is_hidden);
    fits.then(|| text.to_owned())
}

/// Returns the machine id of the file, which has 32 digits. A fresh image may say `uninitialized`, and so does each
/// copy of it.
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

/// Returns enforcing if any profile is. Only root may read the file.
fn apparmor_mode(profiles: &str) -> &'static str {
    if profiles.contains("(enforce)") { "enforcing" } else { "complaining" }
}

/// Returns the first word of `SSH_CONNECTION` where it is an address. A link-local address loses its interface, and an
/// address that stands for an IPv4 address becomes that one, because firewall rules are written with these.
fn client(connection: &str) -> Option<IpAddr> {
    let word = connection.split(' ').next()?;
    let address = word.split_once('%').map_or(word, |(address, _)| address);
    address.parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// Returns what the machine runs in: a container, or else a hypervisor. The names are those of systemd-detect-virt
/// where it has one.
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

/// The system uses the link. Debian's file helps where `/etc/localtime` is a copy and not a link.
fn time_zone(localtime: Option<&str>, file: Option<&str>) -> Option<String> {
    let linked = localtime.and_then(|path| path.split_once("zoneinfo/")).map(|(_, zone)| zone);
    let zone = shown(linked.or(file)?);
    (!zone.is_empty()).then_some(zone)
}

#[cfg(test)]
mod tests;
