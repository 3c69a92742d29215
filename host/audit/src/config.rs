//! The section `audit` of the configuration.

use host_base::Within;
use serde::Deserialize;

use super::Settings;

/// The size of a file of the audit log, and the number of files that are kept.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The size in MiB from which a file of the log is full.
    pub rotate_mib: Within<1, 1024>,
    /// The number of full files that are kept.
    pub keep: Within<1, 200>,
}

impl Default for Config {
    fn default() -> Self {
        Self { rotate_mib: Within::new(64), keep: Within::new(20) }
    }
}

impl Config {
    /// The limits in bytes and files.
    pub fn settings(&self) -> Settings {
        let rotate_bytes = u64::from(self.rotate_mib.get()) << 20;
        Settings { rotate_bytes, keep: self.keep.get() as usize }
    }
}
