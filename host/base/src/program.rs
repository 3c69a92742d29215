//! Finds the path of a program, in root-owned directories only.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::problem::{Category, Problem};

/// The directories in which programs are looked for. Programs get it as their own `PATH`.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The number of links that the kernel follows.
const MOST_LINKS: usize = 40;

/// Absolute paths of programs by name. A program that wasn't found is looked for again, as it may have been installed
/// since.
#[derive(Default)]
pub struct Programs(Mutex<HashMap<String, PathBuf>>);

impl Programs {
    /// Returns the program's absolute path.
    pub fn find(&self, name: &str) -> Result<PathBuf, Problem> {
        let mut known = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(path) = known.get(name) {
            return Ok(path.clone());
        }
        let path = locate(name)?;
        known.insert(name.to_owned(), path.clone());
        Ok(path)
    }
}

/// Returns the paths at which a program may be.
pub fn candidates(name: &str) -> Result<Vec<String>, Problem> {
    if name.starts_with('/') {
        return Ok(vec![name.to_owned()]);
    }
    if name.is_empty() || name.contains('/') {
        return Err(not_found(name));
    }
    Ok(PATH.split(':').map(|directory| format!("{directory}/{name}")).collect())
}

fn locate(name: &str) -> Result<PathBuf, Problem> {
    let mut refused = None;
    for candidate in candidates(name)?.into_iter().map(PathBuf::from) {
        match only_root_can_replace(&candidate) {
            Ok(true) => return Ok(candidate),
            Ok(false) => refused = Some(candidate),
            Err(_) => {}
        }
    }
    Err(match refused {
        Some(path) => untrusted(&path.to_string_lossy()),
        None => not_found(name),
    })
}

/// The problem of a program that accounts other than root can change.
pub fn untrusted(path: &str) -> Problem {
    let message = format!("{path} is not used: others than root can change what it is");
    Problem::new("UNTRUSTED_PROGRAM", Category::Denied, message)
}

/// The problem of a program that is in none of the directories.
pub fn not_found(name: &str) -> Problem {
    Problem::new(
        "PROGRAM_NOT_FOUND",
        Category::NotFound,
        format!("{name} is not installed (looked in {PATH})"),
    )
}

/// Says whether only root can replace the executable file: each link that leads to it and every directory above them
/// belongs to root, and nobody else may write to it. Returns an error where there is no executable file.
fn only_root_can_replace(candidate: &Path) -> io::Result<bool> {
    let mut path = candidate.to_owned();
    for _ in 0..MOST_LINKS {
        // This comes first: most directories have no such file, and a missing program is looked for again at every
        // call.
        let metadata = fs::symlink_metadata(&path)?;
        let directory = path.parent().unwrap_or(Path::new("/")).to_owned();
        let resolved = directory.canonicalize()?;
        let above = directory.ancestors().chain(resolved.ancestors()).map(fs::metadata);
        if metadata.uid() != 0
            || !above.map(|found| found.map(|found| is_roots(&found))).all(|own| own.is_ok_and(|own| own))
        {
            return Ok(false);
        }
        if metadata.is_symlink() {
            // One such link is /usr/bin/vi, which leads through /etc/alternatives.
            path = resolved.join(fs::read_link(&path)?);
            continue;
        }
        if !metadata.is_file() || metadata.mode() & 0o111 == 0 {
            return Err(io::ErrorKind::NotFound.into());
        }
        return Ok(is_roots(&metadata));
    }
    Err(io::Error::other("too many symlinks"))
}

fn is_roots(metadata: &Metadata) -> bool {
    metadata.uid() == 0 && !others_write(metadata.mode())
}

/// Says whether the mode lets accounts other than the owner write. Root's own group counts as well: where the file has
/// an access control list, the group's bits stand for all that the list allows, acl(5).
pub fn others_write(mode: u32) -> bool {
    mode & 0o022 != 0
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
    fn a_link_that_others_can_change_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("cat");
        std::os::unix::fs::symlink("/bin/cat", &link).unwrap();
        let problem = Programs::default().find(link.to_str().unwrap()).unwrap_err();
        assert_eq!(problem.code, "UNTRUSTED_PROGRAM");
    }

    #[test]
    fn a_program_that_others_can_change_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("tool");
        std::fs::write(&program, "#!/bin/true\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        // Everybody may write to /tmp above it.
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
