//! What explains or allows a denial: booleans, types of ports and labels of SELinux, files of AppArmor's profiles.

use std::sync::LazyLock;

use linux_sysadmin_sdk::prelude::*;
use serde_json::json;

use super::{APPARMOR_FILES, denial::Denial};
use crate::finding::Mend;

/// A boolean of SELinux's policy and the denials that it allows.
#[derive(Deserialize)]
struct Boolean {
    boolean: String,
    /// The type of the process.
    source: String,
    /// Types of the object; any where there are none.
    #[serde(default)]
    targets: Vec<String>,
    /// One of its permissions.
    permission: String,
}

/// The type of the ports that a process of a type may listen on.
#[derive(Deserialize)]
struct Port {
    source: String,
    port_type: String,
}

#[derive(Deserialize)]
struct Hints {
    booleans: Vec<Boolean>,
    ports: Vec<Port>,
}

/// The data is part of the program, and a test reads it.
static HINTS: LazyLock<Hints> = LazyLock::new(|| {
    serde_yaml::from_str(include_str!("selinux.yaml"))
        .unwrap_or(Hints { booleans: Vec::new(), ports: Vec::new() })
});

/// Types that files have whose label nobody has set, or that were moved from elsewhere.
const MISLABELLED: [&str; 7] =
    ["default_t", "unlabeled_t", "user_home_t", "admin_home_t", "user_tmp_t", "tmp_t", "var_t"];

/// A hint in words, and the call that would allow what was denied. `files` are the names of AppArmor's files of
/// profiles.
pub(super) fn of(denial: &Denial, files: &[String]) -> (Option<String>, Option<Mend>) {
    match denial.is_selinux {
        true => selinux(denial),
        false => (apparmor(denial, files), None),
    }
}

fn root(argv: &[&str]) -> Option<Mend> {
    Some(Mend { tool: "command_run".to_owned(), arguments: json!({"argv": argv, "as_root": true}) })
}

fn selinux(denial: &Denial) -> (Option<String>, Option<Mend>) {
    let has = |permission: &str| denial.operation.split(' ').any(|word| word == permission);
    if has("name_bind")
        && let Some(port) = denial.port
        && let Some(known) = HINTS.ports.iter().find(|known| known.source == denial.subject)
    {
        let protocol = if denial.class.starts_with("udp") { "udp" } else { "tcp" };
        let hint = format!("port {port} is none of {}", known.port_type);
        let port = port.to_string();
        return (
            Some(hint),
            root(&["semanage", "port", "-a", "-t", &known.port_type, "-p", protocol, &port]),
        );
    }
    let allows = |known: &&Boolean| {
        known.source == denial.subject
            && has(&known.permission)
            && (known.targets.is_empty() || known.targets.contains(&denial.target))
    };
    if let Some(known) = HINTS.booleans.iter().find(allows) {
        return (
            Some(format!("the boolean {} allows it", known.boolean)),
            root(&["setsebool", "-P", &known.boolean, "on"]),
        );
    }
    let path = denial.name.as_deref().filter(|path| path.starts_with('/'));
    if MISLABELLED.contains(&denial.target.as_str())
        && let Some(path) = path
    {
        let hint = format!("{path} has the label {}, which may be left from elsewhere", denial.target);
        return (Some(hint), root(&["restorecon", "-v", path]));
    }
    (None, None)
}

/// The file of a profile that is named after its program: `/usr/sbin/cupsd` is in `usr.sbin.cupsd`.
fn apparmor(denial: &Denial, files: &[String]) -> Option<String> {
    let profile = denial.subject.split("//").find(|part| !part.is_empty())?;
    let file = profile.trim_start_matches('/').replace('/', ".");
    files
        .contains(&file)
        .then(|| format!("its profile is {APPARMOR_FILES}/{file}, own rules go to local/{file}"))
}

#[cfg(test)]
#[test]
fn the_data_is_whole() {
    assert!(HINTS.booleans.len() >= 15 && HINTS.ports.len() >= 8);
}
