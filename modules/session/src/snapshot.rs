//! Makes the answer from the host's snapshot: the facts that a session needs, without those that follow from others.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::{Category, prelude::*};

/// The parts of the host's snapshot that the answer uses. Members that a later host adds are ignored.
#[derive(Deserialize)]
struct Snapshot {
    target_host: String,
    distro: Facts,
    #[serde(default)]
    missing: Vec<String>,
    #[serde(default)]
    connection: Option<serde_json::Map<String, serde_json::Value>>,
    privilege: Privileges,
    server: Server,
    modules: Vec<HostModule>,
    #[serde(default)]
    safety: Option<Safety>,
    integration_mode: String,
    #[serde(default)]
    config_path: Option<String>,
    #[serde(default)]
    config_error: Option<String>,
    /// The profiles. What they hold is passed on, without roles where they need none.
    #[serde(default)]
    detected_profiles: Vec<serde_json::Map<String, serde_json::Value>>,
    #[serde(default)]
    unresolved_roles: Vec<serde_json::Value>,
    #[serde(default)]
    profile_warnings: Vec<String>,
    #[serde(default)]
    first_run: bool,
    #[serde(default)]
    config_generated: Option<String>,
}

#[derive(Deserialize)]
struct Facts {
    #[serde(flatten)]
    distro: Distribution,
    sudo_available: bool,
    mac_system: String,
    #[serde(default)]
    mac_mode: Option<String>,
    #[serde(default)]
    extra: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct HostModule {
    name: String,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    sha256: Option<String>,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default = "yes")]
    serves: bool,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    origin: Option<String>,
    #[serde(default)]
    disabled: Option<String>,
    #[serde(default)]
    error: Option<String>,
}

fn yes() -> bool {
    true
}

/// The answer.
#[derive(Debug, Serialize)]
pub(crate) struct Info {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    first_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    config_generated: Option<String>,
    target_host: String,
    /// The connection to a host over the network, passed on unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<serde_json::Map<String, serde_json::Value>>,
    distro: Distribution,
    /// Facts that have no member of their own, such as `timezone`.
    #[serde(flatten)]
    extra: BTreeMap<&'static str, String>,
    sudo_available: bool,
    privilege: Privileges,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    degraded_mode: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    degraded_reason: Option<String>,
    mac_system: MacSystem,
    /// Programs that tools need and that the target doesn't have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
    /// Services with the ids of their profiles, and the services that fill the roles that they need.
    detected_profiles: Vec<serde_json::Map<String, serde_json::Value>>,
    /// Roles that these services need and no service fills.
    unresolved_roles: Vec<serde_json::Value>,
    /// Profiles that were left out, with the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    profile_warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    safety: Option<Safety>,
    integration_mode: String,
    server: Server,
    #[serde(skip_serializing_if = "Option::is_none")]
    config_path: Option<String>,
    /// The error in the changed file, because of which the former configuration still holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    config_error: Option<String>,
    /// The modules that the host refuses, or all modules where the caller asks for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    modules: Vec<ModuleInfo>,
    /// The names of the modules that are used.
    #[serde(skip)]
    used_modules: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    setup_hints: Vec<String>,
    /// The sudoers fragment of the module for which the caller asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    sudoers_reference: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Distribution {
    family: String,
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    codename: Option<String>,
    hostname: String,
    kernel: String,
    architecture: String,
    init_system: String,
    package_manager: String,
    firewall_backend: String,
    container_runtime: String,
    log_system: String,
    user_management: String,
}

#[derive(Debug, Deserialize, Serialize)]
struct Privileges {
    user: String,
    uid: u32,
    root: bool,
    /// True where sudo works without a password.
    sudo: bool,
    /// True where sudo allows only some commands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    sudo_limited: bool,
}

/// The way in which changes are confirmed, and the mode that protects it from a model with a shell.
#[derive(Debug, Deserialize, Serialize)]
struct Safety {
    /// The mode: `single-user` or `system`.
    mode: String,
    confirmation: String,
    confirmation_threshold: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl Safety {
    fn noted(self) -> Self {
        let note = "Whoever has a shell as this account has its sudo rights, configuration and audit log, too; \
                    `linux-sysadmin system install` gives the server an account of its own.";
        Self { note: (self.mode == "single-user").then(|| note.to_owned()), ..self }
    }
}

#[derive(Debug, Deserialize, Serialize)]
struct Server {
    version: String,
    /// The version of the contract with modules, where the caller asks for the modules.
    #[serde(skip_serializing_if = "Option::is_none")]
    contract: Option<String>,
}

#[derive(Debug, Serialize)]
struct MacSystem {
    r#type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
}

#[derive(Debug, Serialize)]
struct ModuleInfo {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// The whole hash, because operators pin a module by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    /// The number of its tools. None where it is disabled or refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<usize>,
    /// False where the module doesn't serve this target. It is left out otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    serves: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The origin of a module that didn't come with the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    /// The reason why the operator's configuration disables it.
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled: Option<String>,
    /// The reason why the host refuses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Makes the answer from a snapshot. Without `show_modules` only the modules that the host refuses are shown.
pub(crate) fn info(snapshot: &str, show_modules: bool) -> Result<Info> {
    let snapshot: Snapshot = serde_json::from_str(snapshot).map_err(|error| {
        Problem::new("INVALID_SNAPSHOT", Category::Internal, format!("the host's snapshot: {error}"))
    })?;
    let Facts { distro, sudo_available, mac_system, mac_mode, mut extra } = snapshot.distro;
    let privilege = snapshot.privilege;
    let degraded_reason = degraded(&privilege, &snapshot.missing);
    let setup_hints =
        if snapshot.first_run { hints(&privilege, snapshot.config_generated.as_deref()) } else { Vec::new() };
    let used_modules = snapshot.modules.iter().filter(|module| module.is_used());
    let used_modules = used_modules.map(|module| module.name.clone()).collect();
    let shown = snapshot.modules.into_iter().filter(|module| show_modules || module.error.is_some());
    let modules = shown.map(module_info).collect();
    let known = ["timezone", "virtualization"];
    Ok(Info {
        first_run: snapshot.first_run,
        config_generated: snapshot.config_generated.filter(|_| snapshot.first_run),
        target_host: snapshot.target_host,
        connection: snapshot.connection,
        distro,
        missing: snapshot.missing,
        extra: known.into_iter().filter_map(|name| Some((name, extra.remove(name)?))).collect(),
        sudo_available,
        degraded_mode: degraded_reason.is_some(),
        degraded_reason,
        privilege,
        mac_system: MacSystem { mode: mac_mode.filter(|_| mac_system != "none"), r#type: mac_system },
        detected_profiles: snapshot.detected_profiles.into_iter().map(without_empty_roles).collect(),
        unresolved_roles: snapshot.unresolved_roles,
        profile_warnings: snapshot.profile_warnings,
        safety: snapshot.safety.map(Safety::noted),
        integration_mode: snapshot.integration_mode,
        server: Server { contract: snapshot.server.contract.filter(|_| show_modules), ..snapshot.server },
        config_path: snapshot.config_path,
        config_error: snapshot.config_error,
        sudoers_reference: None,
        modules,
        used_modules,
        setup_hints,
    })
}

impl Info {
    /// Adds the sudoers fragment of a module.
    pub(crate) fn with_sudoers(mut self, module: &str, fragment: Option<String>) -> Result<Self> {
        let Some(fragment) = fragment else {
            let message = format!("expected one of {}, found {module:?}", self.used_modules.join(", "));
            return Err(Problem::not_found("MODULE_NOT_FOUND", message));
        };
        self.sudoers_reference = Some(BTreeMap::from([(module.to_owned(), fragment)]));
        Ok(self)
    }
}

/// A profile without `roles_resolved` where it needs no other service.
fn without_empty_roles(
    mut profile: serde_json::Map<String, serde_json::Value>,
) -> serde_json::Map<String, serde_json::Value> {
    let roles = profile.get("roles_resolved").and_then(serde_json::Value::as_object);
    if roles.is_some_and(serde_json::Map::is_empty) {
        profile.remove("roles_resolved");
    }
    profile
}

impl HostModule {
    fn is_used(&self) -> bool {
        self.error.is_none() && self.disabled.is_none()
    }
}

fn module_info(module: HostModule) -> ModuleInfo {
    let tools = module.is_used().then_some(module.tools.len());
    let serves = (!module.serves).then_some(false);
    let HostModule { name, version, sha256, reason, origin, disabled, error, .. } = module;
    let origin = origin.filter(|origin| origin != "host");
    ModuleInfo { name, version, sha256, tools, serves, reason, origin, disabled, error }
}

/// The reason why some tools can't work, if any.
fn degraded(privilege: &Privileges, missing: &[String]) -> Option<String> {
    if privilege.root || privilege.sudo {
        return None;
    }
    let why = match missing.iter().any(|program| program == "sudo") {
        true => "There is no sudo on the target.",
        false => "Passwordless sudo not configured.",
    };
    Some(format!(
        "{why} State-changing tools that need root's rights are disabled, and those that look see what {} may see.",
        privilege.user
    ))
}

/// Hints for the first run, on what a person can do.
fn hints(privilege: &Privileges, config_generated: Option<&str>) -> Vec<String> {
    let mut hints = Vec::new();
    if !privilege.root && !privilege.sudo {
        hints.push(format!(
            "To enable full functionality, configure passwordless sudo for {}.",
            privilege.user
        ));
        hints.push(
            "Reference sudoers fragment of a module: run sysadmin_session_info(show_sudoers_reference=NAME)."
                .to_owned(),
        );
        hints.push(
            "Where sudo allows more than it did when the server started: sysadmin_session_info(refresh=true)."
                .to_owned(),
        );
    }
    if let Some(path) = config_generated {
        hints.push(format!(
            "A configuration file with every option was written to {path}: customize it as needed."
        ));
    }
    hints
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::info;

    fn snapshot() -> Value {
        json!({
            "target_host": "localhost",
            "detected_profiles": [
                {"id": "sshd", "name": "OpenSSH server", "status": "active", "roles_resolved": {}},
                {"id": "pihole", "name": "Pi-hole", "status": "active", "roles_resolved": {"dns-upstream": ["unbound"]}},
            ],
            "unresolved_roles": [{"profile": "rkhunter", "role": "scheduler", "if_down": "It doesn't run"}],
            "profile_warnings": ["the profile x.yaml is left out: line 1: no"],
            "distro": {
                "family": "debian", "name": "Ubuntu", "version": "24.04", "codename": "noble",
                "package_manager": "apt", "init_system": "systemd", "firewall_backend": "ufw",
                "mac_system": "apparmor", "mac_mode": "enforcing", "container_runtime": "docker",
                "log_system": "both", "user_management": "adduser", "hostname": "web1", "kernel": "6.8.0-50-generic",
                "architecture": "x86_64", "sudo_available": false, "extra": {"timezone": "Europe/Berlin"},
                "user": "alice", "uid": 1000,
            },
            "privilege": {"user": "alice", "uid": 1000, "root": false, "sudo": false},
            "server": {"version": "0.1.0", "contract": "sysadmin:module@0.2.0"},
            "modules": [
                {"name": "services", "version": "0.1.0", "sha256": "ab".repeat(32), "tools": ["svc_list", "svc_status"],
                 "serves": true},
                {"name": "apt", "version": "0.2.0", "sha256": "cd".repeat(32), "tools": ["pkg_install"], "serves": false,
                 "reason": "package_manager is dnf"},
                {"name": "broken", "origin": "host", "error": "not a component"},
                {"name": "theirs", "origin": "user", "disabled": "the operator wants it so"},
            ],
            "safety": {"mode": "system", "confirmation": "auto", "confirmation_threshold": "high"},
            "integration_mode": "complementary",
            "config_path": "/home/alice/.config/linux-sysadmin/config.yaml",
            "first_run": true,
            "config_generated": "/home/alice/.config/linux-sysadmin/config.yaml",
        })
    }

    fn reply(snapshot: &Value) -> Value {
        serde_json::to_value(info(&snapshot.to_string(), true).unwrap()).unwrap()
    }

    #[test]
    fn a_first_run_without_sudo_has_every_member() {
        let expected = json!({
            "first_run": true,
            "config_generated": "/home/alice/.config/linux-sysadmin/config.yaml",
            "target_host": "localhost",
            "distro": {
                "family": "debian", "name": "Ubuntu", "version": "24.04", "codename": "noble", "hostname": "web1",
                "kernel": "6.8.0-50-generic", "architecture": "x86_64", "init_system": "systemd",
                "package_manager": "apt", "firewall_backend": "ufw", "container_runtime": "docker",
                "log_system": "both", "user_management": "adduser",
            },
            "timezone": "Europe/Berlin",
            "sudo_available": false,
            "privilege": {"user": "alice", "uid": 1000, "root": false, "sudo": false},
            "degraded_mode": true,
            "degraded_reason":
                "Passwordless sudo not configured. State-changing tools that need root's rights are disabled, and \
                 those that look see what alice may see.",
            "mac_system": {"type": "apparmor", "mode": "enforcing"},
            "detected_profiles": [
                {"id": "sshd", "name": "OpenSSH server", "status": "active"},
                {"id": "pihole", "name": "Pi-hole", "status": "active", "roles_resolved": {"dns-upstream": ["unbound"]}},
            ],
            "unresolved_roles": [{"profile": "rkhunter", "role": "scheduler", "if_down": "It doesn't run"}],
            "profile_warnings": ["the profile x.yaml is left out: line 1: no"],
            "safety": {"mode": "system", "confirmation": "auto", "confirmation_threshold": "high"},
            "integration_mode": "complementary",
            "server": {"version": "0.1.0", "contract": "sysadmin:module@0.2.0"},
            "config_path": "/home/alice/.config/linux-sysadmin/config.yaml",
            "modules": [
                {"name": "services", "version": "0.1.0", "sha256": "ab".repeat(32), "tools": 2},
                {"name": "apt", "version": "0.2.0", "sha256": "cd".repeat(32), "tools": 1, "serves": false,
                 "reason": "package_manager is dnf"},
                {"name": "broken", "error": "not a component"},
                {"name": "theirs", "origin": "user", "disabled": "the operator wants it so"},
            ],
            "setup_hints": [
                "To enable full functionality, configure passwordless sudo for alice.",
                "Reference sudoers fragment of a module: run sysadmin_session_info(show_sudoers_reference=NAME).",
                "Where sudo allows more than it did when the server started: sysadmin_session_info(refresh=true).",
                "A configuration file with every option was written to \
                 /home/alice/.config/linux-sysadmin/config.yaml: customize it as needed.",
            ],
        });
        assert_eq!(reply(&snapshot()), expected);
    }

    #[test]
    fn a_later_run_says_nothing_of_the_first() {
        let mut later = snapshot();
        later["first_run"] = json!(false);
        let reply = reply(&later);
        for member in ["first_run", "config_generated", "setup_hints"] {
            assert!(reply.get(member).is_none(), "{member}");
        }
        assert_eq!(reply["degraded_mode"], true, "degraded is not only at first");
    }

    #[test]
    fn without_the_question_for_modules_only_refused_ones_are_told() {
        let reply = serde_json::to_value(info(&snapshot().to_string(), false).unwrap()).unwrap();
        assert_eq!(reply["modules"], json!([{"name": "broken", "error": "not a component"}]));
        assert_eq!(reply["server"], json!({"version": "0.1.0"}));
    }

    #[test]
    fn single_user_mode_says_plainly_what_it_is() {
        let mut single = snapshot();
        single["safety"]["mode"] = json!("single-user");
        let note = reply(&single)["safety"]["note"].as_str().unwrap().to_owned();
        assert!(note.contains("shell") && note.contains("system install"), "{note}");
        assert!(reply(&snapshot())["safety"].get("note").is_none());
    }

    #[test]
    fn root_or_sudo_is_not_degraded() {
        for (root, sudo) in [(true, false), (false, true), (true, true)] {
            let mut able = snapshot();
            able["privilege"] = json!({"user": "x", "uid": 0, "root": root, "sudo": sudo});
            able["distro"]["sudo_available"] = json!(sudo);
            let reply = reply(&able);
            assert!(reply.get("degraded_mode").is_none() && reply.get("degraded_reason").is_none());
            assert_eq!(reply["sudo_available"], sudo);
            assert_eq!(reply["setup_hints"].as_array().unwrap().len(), 1);
        }
    }

    #[test]
    fn a_target_without_sudo_says_so_and_what_else_it_lacks() {
        let mut bare = snapshot();
        bare["missing"] = json!(["sudo", "systemctl"]);
        let reply = reply(&bare);
        assert_eq!(reply["missing"], json!(["sudo", "systemctl"]));
        assert!(reply["degraded_reason"].as_str().unwrap().starts_with("There is no sudo"), "{reply}");
    }

    #[test]
    fn how_a_target_is_reached_is_told_where_the_host_tells_it() {
        assert!(reply(&snapshot()).get("connection").is_none());
        let connection = json!({"user": "alice", "hostname": "web1.example", "port": 22});
        let mut remote = snapshot();
        remote["connection"] = connection.clone();
        assert_eq!(reply(&remote)["connection"], connection);
    }

    #[test]
    fn what_the_host_does_not_know_is_left_out_and_what_it_adds_is_ignored() {
        let mut sparse = snapshot();
        let distro = sparse["distro"].as_object_mut().unwrap();
        for fact in ["version", "codename", "mac_mode", "extra"] {
            distro.remove(fact);
        }
        distro.insert("mac_system".into(), json!("none"));
        sparse["modules"] = json!([]);
        sparse["profiles"] = json!({"new": true});
        sparse["distro"]["extra"] = json!({"shape": "round", "virtualization": "kvm"});
        let reply = reply(&sparse);
        assert!(reply["distro"].get("version").is_none() && reply["distro"].get("codename").is_none());
        assert_eq!(reply["mac_system"], json!({"type": "none"}));
        assert_eq!(reply["virtualization"], "kvm");
        for member in ["profiles", "shape", "timezone", "modules"] {
            assert!(reply.get(member).is_none(), "{member}");
        }
    }

    #[test]
    fn what_sudo_must_allow_is_shown_of_the_module_for_which_was_asked() {
        let told = || info(&snapshot().to_string(), false).unwrap();
        let reply = told().with_sudoers("services", Some("# nothing\n".to_owned())).unwrap();
        let reply = serde_json::to_value(reply).unwrap();
        assert_eq!(reply["sudoers_reference"], json!({"services": "# nothing\n"}));
        let refused = told().with_sudoers("no-such", None).unwrap_err();
        assert_eq!(refused.code, "MODULE_NOT_FOUND");
        assert_eq!(refused.message, "expected one of services, apt, found \"no-such\"");
    }

    #[test]
    fn a_snapshot_that_is_none_is_a_problem() {
        for text in ["", "[]", "{}", "{\"target_host\":"] {
            assert_eq!(info(text, false).unwrap_err().code, "INVALID_SNAPSHOT", "{text:?}");
        }
    }
}
