//! Reads compose files (Compose Specification). docker does as root what each service says. A service that gets nothing of
//! the host's is harmless; every setting that is not known to be harmless counts as power.

use serde_yaml::{Mapping, Value};

use super::{Code, shown, yaml};

/// The number of services that are read. A YAML alias can make many of one description.
const MAX_SERVICES: usize = 1000;

/// The members of a compose file that give a service nothing of the host's.
const HARMLESS_MEMBERS: [&str; 3] = ["version", "name", "services"];

/// The settings that give a service nothing of the host's, whatever their value.
const HARMLESS_SETTINGS: [&str; 39] = [
    "image",
    "command",
    "entrypoint",
    "environment",
    "labels",
    "annotations",
    "restart",
    "ports",
    "expose",
    "depends_on",
    "healthcheck",
    "container_name",
    "hostname",
    "domainname",
    "working_dir",
    "stop_signal",
    "stop_grace_period",
    "user",
    "tty",
    "stdin_open",
    "init",
    "read_only",
    "tmpfs",
    "shm_size",
    "ulimits",
    "cap_drop",
    "mem_limit",
    "mem_reservation",
    "memswap_limit",
    "cpus",
    "cpu_shares",
    "cpuset",
    "pids_limit",
    "platform",
    "pull_policy",
    "profiles",
    "scale",
    "dns",
    "extra_hosts",
];

/// Finds what the services get of the host.
pub fn read(text: &str) -> Code {
    let mut code = Code::default();
    let file = match yaml::parse(text) {
        Ok(file) => file,
        Err(error) => {
            return Code::unreadable(format!("YAML that can't be read: {}", shown(&error.to_string())));
        }
    };
    let Some(services) = file.get("services").and_then(Value::as_mapping) else {
        return Code::unreadable("a compose file without services");
    };
    for (name, part) in file.as_mapping().into_iter().flatten() {
        match name.as_str().unwrap_or_default() {
            name if HARMLESS_MEMBERS.contains(&name) || name.starts_with("x-") => {}
            // A named volume or network belongs to docker, unless a driver or its options make it something of the host's.
            "volumes" | "networks" => of_docker(part, &mut code),
            name => code.add_power(format_args!("has {}, which isn't known to be harmless", shown(name))),
        }
    }
    for (name, service) in services.iter().take(MAX_SERVICES) {
        let name = shown(name.as_str().unwrap_or_default());
        match service.as_mapping() {
            Some(service) => of_service(&format!("services.{name}"), service, &mut code),
            None => code.cannot_read(format!("a compose file whose service {name} is no mapping")),
        }
    }
    if services.len() > MAX_SERVICES {
        code.cannot_read(format!("a compose file with more than {MAX_SERVICES} services"));
    }
    code
}

fn of_docker(part: &Value, code: &mut Code) {
    for (name, settings) in part.as_mapping().into_iter().flatten() {
        let is_plain = settings.is_null() || settings.as_mapping().is_some_and(Mapping::is_empty);
        if !is_plain {
            code.add_power(format_args!(
                "has {} be what its settings make of it",
                shown(name.as_str().unwrap_or_default())
            ));
        }
    }
}

fn of_service(at: &str, service: &Mapping, code: &mut Code) {
    for (key, value) in service {
        let key = key.as_str().unwrap_or_default();
        let is_harmless = match key {
            key if HARMLESS_SETTINGS.contains(&key) || key.starts_with("x-") => true,
            "privileged" => *value == Value::Bool(false),
            "volumes" => all(value, is_named),
            "networks" => {
                names(value).is_some_and(|names| names.iter().all(|name| is_plain(name) && *name != "host"))
            }
            "network_mode" => matches!(value.as_str(), Some("none" | "bridge")),
            _ => value.is_null(),
        };
        if !is_harmless {
            let value = serde_yaml::to_string(value).unwrap_or_default();
            code.add_power(format_args!("gives {at} {}: {}", shown(key), shown(value.trim())));
        }
    }
}

/// Whether the volume is a named one, such as `data:/var/lib/data`. One of the host's begins with `/`, `.` or `~`.
fn is_named(volume: &Value) -> bool {
    let source = volume.as_str().and_then(|volume| volume.split_once(':')).map(|(source, _)| source);
    source.is_some_and(is_plain)
}

fn is_plain(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

fn all(value: &Value, is_harmless: impl Fn(&Value) -> bool) -> bool {
    value.is_null() || value.as_sequence().is_some_and(|values| values.iter().all(is_harmless))
}

/// The names in a list, or the keys in a mapping.
fn names(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::Sequence(names) => names.iter().map(Value::as_str).collect(),
        Value::Mapping(names) => names.keys().map(Value::as_str).collect(),
        _ => None,
    }
}
