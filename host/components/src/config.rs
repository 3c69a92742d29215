//! The section `modules` of the configuration: which are used, and what they may take.

use host_base::{Within, sha256};
use serde::{Deserialize, Serialize};

/// Which modules are used, and what they may take. A running server follows `policy` and `disabled`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Modules {
    /// Whose modules.
    pub policy: Policy,
    /// A module's name, or `sha256:HEX` of a component, each.
    pub disabled: Vec<Disabled>,
    /// What a call, all calls and a compilation may take.
    pub limits: Limits,
}

/// Whose modules are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The host's own.
    BuiltinOnly,
    /// Those too whose bytes an operator has pinned.
    #[default]
    Pinned,
}

/// A module's name, or `sha256:HEX` of a component.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Disabled(String);

impl Disabled {
    /// Whether it means this module.
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
        // Bare hexadecimal digits are meant, too: no module has a name of 64 of them.
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

/// [a-z0-9-], 1 to 63 characters, no `-` first: a name becomes part of a file's name and an argument, and is no
/// SHA-256.
pub fn is_module_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len()) && name.bytes().all(fits) && !name.starts_with('-')
}

/// What modules may take.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Of one call, over all its memories.
    pub memory_mib: Within<16, 1024>,
    /// Calls into the host that one call may make.
    pub host_calls: Within<100, 1_000_000>,
    /// Calls that are worked on at the same time.
    pub calls_at_once: Within<1, 256>,
    /// Calls that wait for their turn.
    pub calls_waiting: Within<0, 65_536>,
    /// Of the process that compiles a third party's component.
    pub compile_memory_mib: Within<256, 16_384>,
    /// That it may compute.
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
