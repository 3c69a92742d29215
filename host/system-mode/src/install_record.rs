//! The record of what `install` put on this machine. `remove` takes that away and nothing else.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{SystemError, atomic_file};
use host_base::passwd;

/// The record's file, in a directory of root's.
pub const FILE: &str = "/var/lib/linux-sysadmin/system.json";

/// The account and the files that were installed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstallRecord {
    /// Whether `install` made the account.
    pub account: bool,
    /// The program and the components that were copied, with the SHA-256 of each.
    pub files: BTreeMap<PathBuf, String>,
}

impl InstallRecord {
    /// Reads the record. It is empty where there is none.
    pub fn read(path: &Path) -> Result<Self, SystemError> {
        let text = passwd::text_or_empty(path).map_err(|error| SystemError::io(path, error))?;
        if text.is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_str(&text).map_err(|error| {
            let reason = format!(
                "{} doesn't say what `system install` put on this machine ({error}): move it away, and remove by hand \
                 what it should have named",
                path.display()
            );
            SystemError::Refused(reason)
        })
    }

    /// Returns the text of the record's file.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Says whether a file is still the one that was installed.
    pub fn is_ours(&self, path: &Path) -> bool {
        let found = sha256(path).ok();
        found.is_some() && self.files.get(path) == found.as_ref()
    }
}

/// Returns the SHA-256 of a regular file.
pub fn sha256(path: &Path) -> io::Result<String> {
    Ok(hex::encode(host_base::sha256::digest(atomic_file::open(path)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was_and_a_damaged_one_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record");
        assert_eq!(InstallRecord::read(&path).unwrap(), InstallRecord::default());
        let files = [(PathBuf::from("/usr/local/bin/x"), "ab".repeat(32))].into_iter().collect();
        let record = InstallRecord { account: true, files };
        std::fs::write(&path, record.text()).unwrap();
        assert_eq!(InstallRecord::read(&path).unwrap(), record);
        for damaged in ["{", "[]", "{\"account\": true, \"files\": {}, \"more\": 1}"] {
            std::fs::write(&path, damaged).unwrap();
            assert!(InstallRecord::read(&path).is_err(), "{damaged}");
        }
    }

    #[test]
    fn a_file_that_was_changed_since_is_not_ours() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "").unwrap();
        let files = [(path.clone(), sha256(&path).unwrap())].into_iter().collect();
        let record = InstallRecord { account: false, files };
        assert!(record.is_ours(&path));
        std::fs::write(&path, "x").unwrap();
        assert!(!record.is_ours(&path));
        assert!(!record.is_ours(directory.path()));
        assert!(!record.is_ours(&directory.path().join("none")));
    }
}
