//! Where a program is: found once per target, in root-owned directories only.

use std::collections::HashMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::problem::{Category, Problem};

/// Where programs are looked for, and what they get as PATH themselves.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Absolute paths by name. What wasn't found is looked for again: it may have been installed since.
#[derive(Default)]
pub(super) struct Programs(Mutex<HashMap<String, PathBuf>>);

impl Programs {
    /// The program's absolute path.
    pub(super) fn find(&self, name: &str) -> Result<PathBuf, Problem> {
        let mut known = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(path) = known.get(name) {
            return Ok(path.clone());
        }
        let path = locate(name)?;
        known.insert(name.to_owned(), path.clone());
        Ok(path)
    }
}

fn locate(name: &str) -> Result<PathBuf, Problem> {
    let candidates: Vec<PathBuf> = if name.starts_with('/') {
        vec![PathBuf::from(name)]
    } else if name.is_empty() || name.contains('/') {
        return Err(not_found(name));
    } else {
        PATH.split(':').map(|directory| Path::new(directory).join(name)).collect()
    };
    let mut refused = None;
    for candidate in candidates {
        // The real file: /usr/bin/vi may lead through /etc/alternatives.
        let Ok(real) = candidate.canonicalize() else { continue };
        match only_root_can_replace(&real) {
            Ok(true) => return Ok(candidate),
            Ok(false) => refused = Some(real),
            Err(_) => {}
        }
    }
    Err(match refused {
        Some(real) => Problem::new(
            "UNTRUSTED_PROGRAM",
            Category::Denied,
            format!(
                "{} is not used: it, or a directory above it, can be changed by others than root",
                real.display()
            ),
        ),
        None => not_found(name),
    })
}

fn not_found(name: &str) -> Problem {
    Problem::new(
        "PROGRAM_NOT_FOUND",
        Category::NotFound,
        format!("{name} is not installed (looked in {PATH})"),
    )
}

/// An executable file of root's, in directories of root's, that nobody else may write to.
fn only_root_can_replace(real: &Path) -> std::io::Result<bool> {
    let file = real.metadata()?;
    if !file.is_file() || file.permissions().mode() & 0o111 == 0 {
        return Err(std::io::ErrorKind::NotFound.into());
    }
    for path in real.ancestors() {
        let metadata = path.metadata()?;
        let others_write = if metadata.gid() == 0 { 0o002 } else { 0o022 };
        if metadata.uid() != 0 || metadata.mode() & others_write != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_name_and_by_path() {
        let programs = Programs::default();
        assert!(programs.find("cat").unwrap().is_absolute());
        assert_eq!(programs.find("/bin/cat").unwrap(), Path::new("/bin/cat"));
    }

    #[test]
    fn a_program_that_others_can_change_is_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("tool");
        std::fs::write(&program, "#!/bin/true\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        // /tmp above it is writable by everybody.
        let problem = Programs::default().find(program.to_str().unwrap()).unwrap_err();
        assert_eq!(problem.code, "UNTRUSTED_PROGRAM");
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for name in ["no-such-program-here", "", "../cat", "bin/cat", "/etc/passwd"] {
            assert_eq!(Programs::default().find(name).unwrap_err().code, "PROGRAM_NOT_FOUND", "{name:?}");
        }
    }
}
