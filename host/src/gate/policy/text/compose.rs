//! Compose files: each service as the `docker run` that gives it the same rights, since that is what docker does with it
//! as root (Compose Specification; `docker run` of Docker 28).

use serde_yaml::Value;

use super::words::unquoted;
use super::{Code, shown, yaml};

/// Services that share one description by a YAML alias: as many as this are read.
const SERVICES: usize = 1000;

/// Settings of one value that are an option by the same name.
const SINGLE: [(&str, &str); 11] = [
    ("pid", "--pid"),
    ("network_mode", "--network"),
    ("ipc", "--ipc"),
    ("uts", "--uts"),
    ("userns_mode", "--userns"),
    ("cgroup", "--cgroupns"),
    ("cgroup_parent", "--cgroup-parent"),
    ("user", "--user"),
    ("runtime", "--runtime"),
    ("isolation", "--isolation"),
    ("restart", "--restart"),
];
/// Settings of several.
const SEVERAL: [(&str, &str); 7] = [
    ("cap_add", "--cap-add"),
    ("devices", "--device"),
    ("device_cgroup_rules", "--device-cgroup-rule"),
    ("security_opt", "--security-opt"),
    ("volumes_from", "--volumes-from"),
    ("group_add", "--group-add"),
    ("ports", "-p"),
];
/// Of these, what isn't known before (`${A}`) could be the host itself.
const MUST_BE_PLAIN: [&str; 9] = [
    "--pid",
    "--network",
    "--ipc",
    "--userns",
    "--cap-add",
    "--device",
    "--security-opt",
    "--runtime",
    "--privileged",
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
    let Some(top) = file.as_mapping() else {
        return Code::unreadable("a compose file without services");
    };
    if top.contains_key("include") {
        code.gives("takes services from other files (include)");
    }
    let empty = serde_yaml::Mapping::new();
    let part = |name: &str| top.get(name).and_then(Value::as_mapping).unwrap_or(&empty);
    if top.get("services").is_some_and(|services| !services.is_mapping() && !services.is_null()) {
        code.cannot_read("a compose file whose services are no mapping");
    }
    // In the first version of the format the services were the file.
    let services =
        if top.contains_key("services") || top.contains_key("version") { part("services") } else { top };
    let is_service = |name: &str| {
        top.contains_key("services")
            || !["volumes", "networks", "name", "configs", "secrets", "include"].contains(&name)
    };
    for (name, volume) in part("volumes") {
        of_driver(name, volume, &mut code);
    }
    for (name, service) in services.iter().take(SERVICES) {
        let name = name.as_str().unwrap_or_default();
        if name.starts_with("x-") || !is_service(name) {
            continue;
        }
        match service.as_mapping() {
            Some(service) => {
                Service { name, service, files: [part("configs"), part("secrets")] }.read(&mut code)
            }
            None => code.cannot_read(format!("a compose file whose service {} is no mapping", shown(name))),
        }
    }
    if services.len() > SERVICES {
        code.cannot_read(format!("a compose file with more than {SERVICES} services"));
    }
    code
}

/// A named volume may be a directory of the host by its driver's options.
fn of_driver(name: &Value, volume: &Value, code: &mut Code) {
    let Some(device) = volume.get("driver_opts").and_then(|options| options.get("device")) else { return };
    let device = text(device).unwrap_or_else(|| "what isn't read here".to_owned());
    let name = shown(name.as_str().unwrap_or_default());
    code.gives(format_args!("has the volume {name} be {} of the host", shown(&device)));
}

struct Service<'a> {
    name: &'a str,
    service: &'a serde_yaml::Mapping,
    /// Of the whole file: what a service can be given from the host's files.
    files: [&'a serde_yaml::Mapping; 2],
}

impl Service<'_> {
    fn read(&self, code: &mut Code) {
        let at = format!("services.{}", shown(self.name));
        let mut argv: Vec<String> = vec!["docker".into(), "run".into()];
        match self.service.get("privileged") {
            Some(Value::Bool(true)) => argv.push("--privileged".into()),
            None | Some(Value::Bool(false) | Value::Null) => {}
            Some(other) if matches!(text(other).as_deref(), Some("false" | "no")) => {}
            Some(_) => argv.push("--privileged".into()),
        }
        for (key, option) in SINGLE {
            if let Some(value) = self.service.get(key).filter(|value| !value.is_null()) {
                self.option(option, text(value), &at, &mut argv, code);
            }
        }
        for (key, option) in SEVERAL {
            for value in items(self.service.get(key)) {
                let long = ["source", "path"]
                    .iter()
                    .find_map(|key| value.get(*key))
                    .or_else(|| value.get("published"));
                self.option(option, long.and_then(text).or_else(|| text(value)), &at, &mut argv, code);
            }
        }
        self.networks(&mut argv);
        self.volumes(&at, &mut argv, code);
        for (key, says) in [
            ("extends", "takes settings from another service or file (extends)"),
            ("credential_spec", "is given credentials of the host (credential_spec)"),
            ("post_start", "has commands run beside it (post_start)"),
            ("pre_stop", "has commands run beside it (pre_stop)"),
            ("provider", "has a program of the host run for it (provider)"),
            ("use_api_socket", "is given docker's own socket (use_api_socket)"),
        ] {
            if self.service.get(key).is_some_and(|value| !value.is_null() && value != &Value::Bool(false)) {
                code.gives(format_args!("{at} {says}"));
            }
        }
        if let Some(build) = self.service.get("build").filter(|build| !build.is_null()) {
            let context = build.get("context").unwrap_or(build);
            let mut argv = ["docker", "build"].map(str::to_owned).to_vec();
            if build.get("privileged").is_some_and(|value| value != &Value::Bool(false)) {
                code.gives(format_args!("{at}.build runs with all of root's rights (privileged)"));
            }
            argv.push(text(context).unwrap_or_else(|| ".".to_owned()));
            code.run(argv, format_args!("{at}.build"), None);
        }
        self.command(&at, argv, code);
    }

    /// Healthcheck, entrypoint, image and command, in the order in which docker wants them.
    fn command(&self, at: &str, mut argv: Vec<String>, code: &mut Code) {
        let mut words = |key: &str, value: Option<&Value>| {
            match value {
                None | Some(Value::Null) => Some(Vec::new()),
                Some(Value::String(line)) => unquoted(line),
                Some(Value::Sequence(items)) => items.iter().map(text).collect(),
                Some(_) => None,
            }
            .or_else(|| {
                code.cannot_read(format!("a compose file with a {key} that is no command, {at}"));
                None
            })
            .unwrap_or_default()
        };
        let test = self.service.get("healthcheck").and_then(|check| check.get("test"));
        // A string is a shell's; a list says in its first word what it is.
        let check = match test {
            Some(Value::String(line)) => line.clone(),
            other => {
                let words = words("healthcheck", other);
                match words.split_first() {
                    Some((kind, rest)) if kind != "NONE" => rest.join(" "),
                    _ => String::new(),
                }
            }
        };
        if !check.is_empty() {
            argv.extend(["--health-cmd".to_owned(), check]);
        }
        let mut entrypoint = words("entrypoint", self.service.get("entrypoint")).into_iter();
        argv.extend(entrypoint.next().into_iter().flat_map(|program| ["--entrypoint".to_owned(), program]));
        argv.push(self.service.get("image").and_then(text).unwrap_or_else(|| self.name.to_owned()));
        argv.extend(entrypoint);
        argv.extend(words("command", self.service.get("command")));
        code.run(argv, at, None);
    }

    fn option(&self, option: &str, value: Option<String>, at: &str, argv: &mut Vec<String>, code: &mut Code) {
        let Some(value) = value else {
            return code
                .cannot_read(format!("a compose file with a setting that isn't read here ({option}), {at}"));
        };
        if MUST_BE_PLAIN.contains(&option) && value.contains('$') {
            code.gives(format_args!("has {option} be what isn't known before: {}, {at}", shown(&value)));
        }
        argv.push(format!("{option}={value}"));
    }

    /// The host's own network can be one of those that a service is in.
    fn networks(&self, argv: &mut Vec<String>) {
        let names: Vec<&str> = match self.service.get("networks") {
            Some(Value::Mapping(networks)) => networks.keys().filter_map(Value::as_str).collect(),
            other => items(other).filter_map(Value::as_str).collect(),
        };
        if names.contains(&"host") {
            argv.push("--network=host".to_owned());
        }
    }

    fn volumes(&self, at: &str, argv: &mut Vec<String>, code: &mut Code) {
        for volume in items(self.service.get("volumes")) {
            let (source, whole) = match volume {
                Value::String(short) => {
                    (short.split(':').next().unwrap_or_default().to_owned(), short.clone())
                }
                long => {
                    let of = |key: &str| long.get(key).and_then(text).unwrap_or_default();
                    let ending = if long.get("read_only") == Some(&Value::Bool(true)) { ":ro" } else { "" };
                    (of("source"), format!("{}:{}{ending}", of("source"), of("target")))
                }
            };
            if source.contains('$') {
                code.gives(format_args!("mounts what isn't known before: {}, {at}", shown(&source)));
            }
            argv.extend(["-v".to_owned(), whole]);
        }
        for (key, files) in ["configs", "secrets"].into_iter().zip(self.files) {
            for used in items(self.service.get(key)) {
                let name = used.get("source").unwrap_or(used);
                let file = files.get(name).and_then(|file| file.get("file")).and_then(text);
                argv.extend(
                    file.into_iter().flat_map(|file| ["-v".to_owned(), format!("{file}:/run/{key}:ro")]),
                );
            }
        }
    }
}

/// Of a list; a single value is one of one.
fn items(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    let found: Vec<&Value> = match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Sequence(items)) => items.iter().collect(),
        Some(other) => vec![other],
    };
    found.into_iter()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Sequence(_) | Value::Mapping(_) => None,
        Value::Tagged(tagged) => text(&tagged.value),
    }
}
