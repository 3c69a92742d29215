//! The files of sshd: host keys and groups that are too weak, and files that others may write to or read.

use linux_sysadmin_sdk::authorized_keys::{Key, public_key};
use linux_sysadmin_sdk::sshd::Settings;
use linux_sysadmin_sdk::{Category, prelude::*};
use serde_json::json;

use super::config_file;
use crate::finding::{Finding, Found};

/// Prints mode, owner, group and path of host keys, which takes no rights to read them. A grant has to name each secret.
const MODES: CommandLine = CommandLine::new(
    "stat --format=%a:%U:%G:%n -- (<path:/etc/ssh/ssh_host_rsa_key>|<path:/etc/ssh/ssh_host_ecdsa_key>|\
     <path:/etc/ssh/ssh_host_ed25519_key>|<path:/etc/ssh/ssh_host_dsa_key>)...",
);
/// The kinds of keys in it.
const KINDS: [&str; 4] = ["rsa", "ecdsa", "ed25519", "dsa"];

/// The groups for Diffie-Hellman (moduli(5)), the smallest first.
const MODULI: &str = "/etc/ssh/moduli";
/// The bytes at the beginning of that file that have the smallest group.
const FIRST_GROUPS: u64 = 4096;
/// The least size of a group, in bits less one, as the file counts them.
const LEAST_GROUP: u64 = 2047;

pub(super) fn grants(module: Module) -> Module {
    let config = "who may write to sshd's configuration";
    module
        .command(MODES.read("who may read the private host keys"))
        .path(PathGrant::read("/etc/ssh/ssh_host_*_key.pub", "how strong the host keys are"))
        .path(PathGrant::read(MODULI, "how strong the groups for Diffie-Hellman are"))
        .path(PathGrant::read("/etc/ssh", config))
        .path(PathGrant::read(config_file::MAIN, config).as_root_if_available())
        .path(PathGrant::read(config_file::DIRECTORY, config).as_root_if_available())
        .path(PathGrant::read("/etc/ssh/sshd_config.d/*", config).as_root_if_available())
}

/// Adds what is weak in the files.
pub(super) fn find(settings: &Settings, found: &mut Found, cx: &Context) {
    let keys: Vec<&str> = settings.all("HostKey").filter(|path| is_usual(path)).collect();
    let public: Vec<String> = keys.iter().map(|path| format!("{path}.pub")).collect();
    for (path, text) in keys.iter().zip(cx.read_all(&public)) {
        // Without its public half nothing is known of a key.
        let Some((key, _)) = text.as_deref().ok().and_then(Key::read) else { continue };
        if let Some(weak) = public_key::finding(&key.algorithm, key.bits).filter(|_| is_weak(&key)) {
            found.push(Finding::new(Severity::High, "ssh-weak-host-key", *path, weak));
        }
    }
    private_keys(&keys, found, cx);
    groups(settings, found, cx);
    configuration(found, cx);
}

/// The smallest group that sshd may choose, where it offers key exchanges that choose one.
fn groups(settings: &Settings, found: &mut Found, cx: &Context) {
    let offers =
        settings.get("KexAlgorithms").is_some_and(|all| all.contains("diffie-hellman-group-exchange-"));
    if !offers || !settings.is("ModuliFile", MODULI) {
        return;
    }
    let Ok(text) = cx.read_parts(&[(MODULI, 0, FIRST_GROUPS)]).remove(0) else { return };
    let text = String::from_utf8_lossy(&text);
    // Behind the size there are two more words, so that a line that is cut off isn't read wrong.
    let size = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words
            .get(4)
            .filter(|_| words.len() > 5 && !line.starts_with('#'))
            .and_then(|size| size.parse::<u64>().ok())
    };
    if let Some(smallest) = text.lines().filter_map(size).min().filter(|smallest| *smallest < LEAST_GROUP) {
        let evidence = format!("a group of {} bits, expected 2048 or more", smallest + 1);
        found.push(Finding::new(Severity::High, "ssh-weak-moduli", MODULI, evidence));
    }
}

/// True if a path is where the grants reach.
fn is_usual(path: &str) -> bool {
    let kind = path.strip_prefix("/etc/ssh/ssh_host_").and_then(|name| name.strip_suffix("_key"));
    kind.is_some_and(|kind| KINDS.contains(&kind))
}

/// RSA of 2048 bits is what older installations made, and NIST SP 800-57 allows it until 2030.
fn is_weak(key: &Key) -> bool {
    key.algorithm == "ssh-dss" || key.bits < 2048
}

fn private_keys(keys: &[&str], found: &mut Found, cx: &Context) {
    if keys.is_empty() {
        return;
    }
    let output = match cx.run(MODES.with(keys.iter().copied())) {
        Ok(output) => output,
        Err(problem) => return found.unseen.push(format!("modes of the host keys: {}", problem.message)),
    };
    for line in output.text().lines() {
        let [mode, owner, group, path] = line.splitn(4, ':').collect::<Vec<_>>()[..] else { continue };
        let Ok(bits) = u32::from_str_radix(mode, 8) else { continue };
        // RHEL lets its group ssh_keys read them, for ssh-keysign.
        let allowed = if group == "ssh_keys" { 0o040 } else { 0 };
        if owner != "root" || bits & 0o077 & !allowed != 0 {
            let evidence = format!("{owner}:{group} {mode}, expected root's with mode 600");
            let mend = json!({"path": path, "owner": "root", "group": "root", "mode": "0600"});
            found.push(
                Finding::new(Severity::High, "ssh-host-key-mode", path, evidence).mend("perms_set", mend),
            );
        }
    }
}

/// Files of the configuration that others than root may write to.
fn configuration(found: &mut Found, cx: &Context) {
    let cx = cx.files_as(linux_sysadmin_sdk::Privilege::RootIfAvailable);
    let mut paths = vec![config_file::MAIN.to_owned(), config_file::DIRECTORY.to_owned()];
    match cx.list_dir(config_file::DIRECTORY) {
        Ok(names) => paths.extend(names.iter().map(|name| format!("{}/{name}", config_file::DIRECTORY))),
        Err(problem) if problem.category == Category::NotFound => {}
        Err(problem) => found.unseen.push(problem.message),
    }
    for (path, metadata) in paths.iter().zip(cx.stat_all(&paths)) {
        let Ok(Some(file)) = metadata else { continue };
        let mode = file.mode & 0o7777;
        if !file.is_symlink && (file.owner != "root" || mode & 0o022 != 0) {
            let evidence =
                format!("{}:{} {mode:o}, expected that only root may write", file.owner, file.group);
            let mend = json!({"path": path, "owner": "root", "mode": "go-w"});
            found.push(
                Finding::new(Severity::Critical, "ssh-config-writable", path.as_str(), evidence)
                    .mend("perms_set", mend),
            );
        }
    }
}
