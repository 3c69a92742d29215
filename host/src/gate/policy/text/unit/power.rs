//! What a unit gives away that is no command: variables that take a program over, units that it pulls in or ends, rights
//! for an account that has none.

use super::exec::{OpenQuote, assignments, first_word};
use super::grave;
use super::specifiers::expand;
use super::{Entry, Unit};
use crate::gate::policy::text::place::{normal, not_root};
use crate::gate::policy::text::programs::{is_loose, of_variable};
use crate::gate::policy::text::{Code, shown};

/// Settings that start the units they name.
const STARTS: [&str; 12] = [
    "Wants",
    "Requires",
    "BindsTo",
    "Upholds",
    "OnFailure",
    "OnSuccess",
    "Also",
    "Unit",
    "Service",
    "Sockets",
    "Alias",
    "SystemdService",
];
/// Settings that stop the units they name.
const STOPS: [&str; 3] = ["Conflicts", "PropagatesStopTo", "StopPropagatedFrom"];
/// Settings that end the machine.
const ACTIONS: [&str; 9] = [
    "FailureAction",
    "SuccessAction",
    "StartLimitAction",
    "JobTimeoutAction",
    "RebootArgument",
    "KExecWatchdogSec",
    "CtrlAltDelBurstAction",
    "CrashShell",
    "CrashReboot",
];
/// Capabilities that are root's rights by another name.
const NEARLY_ROOT: [&str; 15] = [
    "CAP_SYS_ADMIN",
    "CAP_SYS_PTRACE",
    "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_BOOT",
    "CAP_DAC_OVERRIDE",
    "CAP_DAC_READ_SEARCH",
    "CAP_SETUID",
    "CAP_SETGID",
    "CAP_SETFCAP",
    "CAP_SETPCAP",
    "CAP_CHOWN",
    "CAP_FOWNER",
    "CAP_MKNOD",
    "CAP_BPF",
];
/// Where a service may well write its output.
const OUTPUT: [&str; 5] = ["/var/log/", "/var/lib/", "/run/", "/srv/", "/dev/null"];

/// Says of one setting what there is to say.
pub fn judge(unit: &Unit, entry: &Entry, at: &str, code: &mut Code) {
    let value = entry.value.as_str();
    if value.is_empty() {
        if entry.key == "User" && unit.is_drop_in {
            code.gives(format_args!("has {} run as root, {at}", unit.name));
        }
        return;
    }
    let is_roots = unit.user(&entry.section).is_none();
    match entry.key.as_str() {
        "Environment" | "DefaultEnvironment" | "ManagerEnvironment" if is_roots => {
            for (name, value) in assignments(value, &unit.name) {
                if let Some(sentence) = of_variable(&name, &value) {
                    code.gives(format_args!("{sentence}, {at}"));
                }
            }
        }
        "PassEnvironment" if is_roots => {
            if let Some(name) = words(value).iter().find(|name| of_variable(name, "").is_some()) {
                code.gives(format_args!("lets {} through to what runs as root, {at}", shown(name)));
            }
        }
        "EnvironmentFile" if is_roots => loose(unit, value, "takes variables for root from", at, code),
        "ExecSearchPath" if is_roots => {
            for directory in value.split(':') {
                loose(unit, directory, "looks for root's programs in", at, code);
            }
        }
        "RootDirectory" | "RootImage" | "ExtensionImages" | "ExtensionDirectories" | "MountImages" => {
            code.gives(format_args!("runs what is in `{}` in place of the system's own, {at}", shown(value)));
        }
        "BindPaths" | "BindReadOnlyPaths" => {
            for mount in words(value) {
                let parts: Vec<&str> = mount.split(':').collect();
                if let [source, place, ..] = parts[..]
                    && source != place
                {
                    loose(unit, source, "puts in the place of root's files", at, code);
                }
            }
        }
        "User" => user(unit, value, at, code),
        "StandardInputText" | "StandardInputData" => {
            code.gives(format_args!("gives a program text to read, which may be code, {at}"));
        }
        "StandardInput" if value.starts_with("file:") => loose(unit, &value[5..], "has root read", at, code),
        "StandardOutput" | "StandardError" => {
            let path = ["file:", "append:", "truncate:"].iter().find_map(|how| value.strip_prefix(how));
            let path = path.map(|path| normal(&expand(path, &unit.name)));
            if let Some(path) = path.filter(|path| !OUTPUT.iter().any(|known| path.starts_with(known))) {
                code.gives(format_args!("writes a program's output to {} as root, {at}", shown(&path)));
            }
        }
        "AmbientCapabilities" if !is_roots => {
            let is_all_but = value.starts_with('~');
            let found = words(value)
                .into_iter()
                .find(|word| NEARLY_ROOT.contains(&word.to_ascii_uppercase().as_str()));
            if is_all_but || found.is_some() {
                let what = found.unwrap_or_else(|| value.to_owned());
                code.gives(format_args!("gives {} to an account that isn't root, {at}", shown(&what)));
            }
        }
        "DeviceAllow" => {
            let device = words(value).into_iter().next().unwrap_or_default();
            if is_disk(&device) {
                code.gives(format_args!("allows {}, all that is on it, {at}", shown(&device)));
            }
        }
        key if ACTIONS.contains(&key) => {
            if !["none", "no", "false", "0", "off"].contains(&value) {
                code.gives(format_args!("can end the running system ({key}={}), {at}", shown(value)));
            }
        }
        key if STARTS.contains(&key) => {
            for name in words(value) {
                let name = expand(&name, &unit.name);
                // Its own other name, as in reboot.target.
                if grave::to_start(&name) && !(key == "Alias" && grave::to_start(&unit.name)) {
                    code.gives(format_args!("pulls in {} ({key}=), {at}", shown(&name)));
                }
                if key == "Alias" && grave::to_stop(&name) && !grave::to_stop(&unit.name) {
                    code.gives(format_args!("takes the place of {} (Alias=), {at}", shown(&name)));
                }
            }
        }
        key if STOPS.contains(&key) => {
            for name in words(value) {
                let name = expand(&name, &unit.name);
                if grave::to_stop(&name) && !unit.is_of_the_system() {
                    code.gives(format_args!("stops {} ({key}=), {at}", shown(&name)));
                }
            }
        }
        _ => {}
    }
}

impl Unit {
    /// Ends of the system, which stop all that runs.
    fn is_of_the_system(&self) -> bool {
        !self.is_drop_in && grave::to_start(&self.name)
    }
}

fn user(unit: &Unit, value: &str, at: &str, code: &mut Code) {
    if value.contains('%') {
        // A template for accounts (`User=%i`) is root's for the instance `root`.
        code.gives(format_args!("runs as the account that `{}` turns out to be, {at}", shown(value)));
    } else if unit.is_drop_in && not_root(value).is_none() {
        code.gives(format_args!("has {} run as root, {at}", unit.name));
    }
}

fn loose(unit: &Unit, path: &str, does: &str, at: &str, code: &mut Code) {
    let path = expand(path.trim_start_matches(['-', '+']), &unit.name);
    if is_loose(&path) {
        code.gives(format_args!("{does} {}, which others than root may write, {at}", shown(&path)));
    }
}

fn is_disk(device: &str) -> bool {
    const DISKS: [&str; 12] =
        ["sd", "hd", "vd", "xvd", "nvme", "mmcblk", "md", "dm-", "mapper", "disk", "loop", "block"];
    const MEMORY: [&str; 3] = ["mem", "kmem", "port"];
    match device.strip_prefix("/dev/") {
        Some(name) => MEMORY.contains(&name) || DISKS.iter().any(|disk| name.starts_with(disk)),
        None => device.starts_with("block-"),
    }
}

fn words(value: &str) -> Vec<String> {
    let mut rest = value;
    let mut found = Vec::new();
    loop {
        match first_word(&mut rest) {
            Ok(Some(word)) => found.push(word),
            Ok(None) | Err(OpenQuote) => return found,
        }
    }
}
