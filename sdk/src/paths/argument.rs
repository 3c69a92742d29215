//! The argument of tools that take one path or several.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Problem, Result};

/// The argument `path`, which is one path or several.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(missing_docs, reason = "comments on the variants would be in the schema of each tool")]
pub enum Paths {
    One(String),
    Several(Vec<String>),
}

impl Paths {
    /// The paths without repetitions, each of which passes the check.
    pub fn checked(self, most: usize, check: impl Fn(&str) -> Result<()>) -> Result<Vec<String>> {
        let mut paths = match self {
            Self::One(path) => vec![path],
            Self::Several(paths) => paths,
        };
        if paths.is_empty() || paths.len() > most {
            let message = format!("path has {} entries: expected 1 to {most}", paths.len());
            return Err(Problem::validation("INVALID_ARGUMENTS", message));
        }
        paths.iter().try_for_each(|path| check(path))?;
        let mut known = BTreeSet::new();
        paths.retain(|path| known.insert(path.clone()));
        Ok(paths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_is_taken_once_and_there_is_a_bound() {
        let several = |paths: &[&str]| Paths::Several(paths.iter().map(|path| (*path).to_owned()).collect());
        let all = |_: &str| Ok(());
        assert_eq!(several(&["/b", "/a", "/b"]).checked(3, all).unwrap(), ["/b", "/a"]);
        assert_eq!(Paths::One("/a".into()).checked(1, all).unwrap(), ["/a"]);
        for (paths, code) in
            [(several(&[]), "INVALID_ARGUMENTS"), (several(&["/a", "/b"]), "INVALID_ARGUMENTS")]
        {
            assert_eq!(paths.checked(1, all).unwrap_err().code, code);
        }
        let none = |_: &str| Err(Problem::validation("INVALID_PATH", "none is taken"));
        assert_eq!(Paths::One("/a".into()).checked(1, none).unwrap_err().code, "INVALID_PATH");
    }
}
