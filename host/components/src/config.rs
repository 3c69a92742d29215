//! The section `modules` of the configuration: which modules are used, and which limits they have.

use host_base::{Within, sha256};
use serde::{Deserialize, Serialize};

/// The configuration of modules. A running server follows changes of `policy` and `disabled`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Modules {
    /// The origins of modules that are used.
    pub policy: Policy,
    /// Modules that are not used, by their names or by `sha256:HEX` of their components.
    pub disabled: Vec<Disabled>,
    /// The limits of a call, of all calls and of a compilation.
    pub limits: Limits,
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
