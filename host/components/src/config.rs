//! The section `modules` of the configuration: which modules are used, and which limits they have.

use std::collections::BTreeMap;

use host_base::{Within, sha256};
use host_capability::{PathRequest, Place, Requests};
use serde::{Deserialize, Serialize};

/// The configuration of modules. A running server follows changes of `policy` and `disabled`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Modules {
    /// The origins of modules that are used.
    pub policy: Policy,
    /// Modules that are not used, by their names or by `sha256:HEX` of their components.
    pub disabled: Vec<Disabled>,
    /// The modules that may run any program, by their names. Where none are given, those that come with the host may, and
    /// those of third parties to whom an operator has granted it, but in system mode none.
    pub any_program: Option<Vec<String>>,
    /// Paths in place of those that a module asks for itself, by the module's name.
    pub paths: BTreeMap<String, ConfiguredPaths>,
    /// The limits of a call, of all calls and of a compilation.
    pub limits: Limits,
}

impl Modules {
    /// The configuration in system mode, where a module may run any program only if the configuration says so.
    pub fn in_system_mode(mut self) -> Self {
        self.any_program.get_or_insert_default();
        self
    }

    /// Whether a module of this name may run any program, if it asks for it.
    pub(super) fn allows_any_program(&self, name: &str) -> bool {
        self.any_program.as_ref().is_none_or(|allowed| allowed.iter().any(|allowed| allowed == name))
    }
}

/// The paths that a module gets in place of those that it asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConfiguredPaths {
    /// The globs of files that it may read, in place of those that it asks to read only.
    pub read: Option<Vec<String>>,
    /// The globs of files that its plans may write and that it may read, in place of those that it asks to write.
    pub write: Option<Vec<String>>,
}

impl ConfiguredPaths {
    /// The requests with the configured paths. Each path may be reached with all rights with which the module asks for
    /// such paths.
    pub(super) fn apply(&self, requests: &mut Requests) {
        for (globs, write) in [(&self.read, false), (&self.write, true)] {
            let Some(globs) = globs else { continue };
            let is_meant = |path: &PathRequest| path.write == write && path.place == Place::Target;
            let mut rights: Vec<PathRequest> = Vec::new();
            for path in requests.paths.iter().filter(|path| is_meant(path)) {
                if !rights.iter().any(|known| known.privilege == path.privilege) {
                    rights.push(path.clone());
                }
            }
            requests.paths.retain(|path| !is_meant(path));
            let reason = "modules.paths of the configuration";
            requests.paths.extend(rights.iter().flat_map(|right| {
                globs.iter().map(|glob| PathRequest {
                    glob: glob.clone(),
                    reason: reason.to_owned(),
                    ..right.clone()
                })
            }));
        }
    }
}

/// The origins of modules that are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The host loads only the modules that come with it.
    BuiltinOnly,
    /// The host also loads third parties' modules whose bytes an operator has pinned.
    #[default]
    Pinned,
}

/// The name of a module, or `sha256:HEX` of a component.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Disabled(String);

impl Disabled {
    /// Whether it names this module.
    pub fn names(&self, name: &str, sha256: &str) -> bool {
        match self.0.strip_prefix("sha256:") {
            Some(hex) => hex == sha256,
            None => self.0 == name,
        }
    }
}

impl TryFrom<String> for Disabled {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let text = text.to_ascii_lowercase();
        let is_right = match text.strip_prefix("sha256:") {
            Some(hex) => sha256::is_sha256(hex),
            None => is_module_name(&text),
        };
        // A bare hash is accepted too: no module's name has 64 characters.
        match sha256::is_sha256(&text) {
            true => Ok(Self(format!("sha256:{text}"))),
            false if is_right => Ok(Self(text)),
            false => {
                Err(format!("{text:?} is neither a module's name nor sha256: and 64 hexadecimal digits"))
            }
        }
    }
}

impl From<Disabled> for String {
    fn from(disabled: Disabled) -> Self {
        disabled.0
    }
}

impl std::fmt::Display for Disabled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a module's name has the form [a-z0-9-], 1 to 63 characters, without `-` at the beginning. The name becomes
/// part of a file's name and an argument, and must not look like a SHA-256.
pub fn is_module_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len()) && name.bytes().all(fits) && !name.starts_with('-')
}

/// The limits of modules.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The memory of one call, over all its linear memories.
    pub memory_mib: Within<16, 1024>,
    /// The number of calls into the host that one call may make.
    pub host_calls: Within<100, 1_000_000>,
    /// The number of calls that run at the same time.
    pub calls_at_once: Within<1, 256>,
    /// The number of calls that wait to run.
    pub calls_waiting: Within<0, 65_536>,
    /// The memory of the process that compiles a third party's component.
    pub compile_memory_mib: Within<256, 16_384>,
    /// The processor time of that process.
    pub compile_seconds: Within<1, 3600>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_mib: Within::new(64),
            host_calls: Within::new(10_000),
            calls_at_once: Within::new(32),
            calls_waiting: Within::new(1024),
            compile_memory_mib: Within::new(2048),
            compile_seconds: Within::new(60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_base::Privilege;

    fn path(glob: &str, write: bool, privilege: Privilege) -> PathRequest {
        let (glob, place) = (glob.to_owned(), Place::Target);
        PathRequest { glob, write, privilege, place, reason: String::new() }
    }

    #[test]
    fn configured_paths_take_the_place_of_those_that_a_module_asks_for() {
        let asked = || Requests {
            paths: vec![
                path("/etc/**", false, Privilege::RootIfAvailable),
                path("/srv/**", false, Privilege::RootIfAvailable),
                path("/etc/**", true, Privilege::Root),
                path("/home/**", true, Privilege::Caller),
            ],
            ..Requests::default()
        };
        let shown = |configured: &str| {
            let configured: ConfiguredPaths = serde_yaml::from_str(configured).unwrap();
            let mut requests = asked();
            configured.apply(&mut requests);
            let of = |path: &PathRequest| format!("{} {} {:?}", path.glob, path.write, path.privilege);
            requests.paths.iter().map(of).collect::<Vec<_>>()
        };
        let whole = shown("{}");
        assert_eq!(whole.len(), 4);
        assert_eq!(
            shown("read: [/opt/**]"),
            ["/etc/** true Root", "/home/** true Caller", "/opt/** false RootIfAvailable"]
        );
        assert_eq!(shown("write: []"), whole[..2]);
        assert_eq!(
            shown("write: [/srv/x]"),
            [&whole[..2], &["/srv/x true Root".to_owned(), "/srv/x true Caller".to_owned()]].concat()
        );
    }

    #[test]
    fn any_program_is_for_those_that_the_configuration_names_and_in_system_mode_for_nobody_else() {
        let none = Modules::default();
        assert!(none.allows_any_program("commands"));
        assert!(!none.clone().in_system_mode().allows_any_program("commands"));
        let named = Modules { any_program: Some(vec!["commands".to_owned()]), ..none };
        assert!(named.allows_any_program("commands") && !named.allows_any_program("other"));
        assert!(named.in_system_mode().allows_any_program("commands"));
    }
}
