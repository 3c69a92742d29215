//! Compose files (Compose Specification): docker does as root what each service says. A service that has nothing of the
//! host's is harmless; every setting that isn't known to give it nothing is said.

use serde_yaml::{Mapping, Value};

use super::{Code, shown, yaml};

/// Services that share one description by a YAML alias: as many as this are read.
const SERVICES: usize = 1000;

/// Members of a compose file, beside its services, that give nothing of the host's.
const TOP: [&str; 3] = ["version", "name", "services"];

/// Settings that give a service nothing of the host's, whatever their value.
const HARMLESS: [&str; 39] = [
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

/// What docker runs.
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
            name if TOP.contains(&name) || name.starts_with("x-") => {}
            // A named volume or network is docker's own, unless a driver or its options make it something of the host's.
            "volumes" | "networks" => of_docker(part, &mut code),
            name => code.gives(format_args!("has {}, which isn't known to be harmless", shown(name))),
        }
    }
    for (name, service) in services.iter().take(SERVICES) {
        let name = shown(name.as_str().unwrap_or_default());
        match service.as_mapping() {
            Some(service) => of_service(&format!("services.{name}"), service, &mut code),
            None => code.cannot_read(format!("a compose file whose service {name} is no mapping")),
        }
    }
    if services.len() > SERVICES {
        code.cannot_read(format!("a compose file with more than {SERVICES} services"));
    }
    code
}

fn of_docker(part: &Value, code: &mut Code) {
    for (name, settings) in part.as_mapping().into_iter().flatten() {
        let is_plain = settings.is_null() || settings.as_mapping().is_some_and(Mapping::is_empty);
        if !is_plain {
            code.gives(format_args!(
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
            key if HARMLESS.contains(&key) || key.starts_with("x-") => true,
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
            code.gives(format_args!("gives {at} {}: {}", shown(key), shown(value.trim())));
        }
    }
}

/// `data:/var/lib/data`, and nothing of the host's, which would begin with `/`, `.` or `~`, or be known only later.
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

/// The names in a list, or the keys of a mapping.
fn names(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::Sequence(names) => names.iter().map(Value::as_str).collect(),
        Value::Mapping(names) => names.keys().map(Value::as_str).collect(),
        _ => None,
    }
}
