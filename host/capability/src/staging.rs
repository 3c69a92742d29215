//! The directory in which a new file is made before it takes its place: a fresh one beside the file, whose name is
//! `.linux-sysadmin-` and 16 hex digits.
//!
//! It lies beside the file, because a rename is atomic within one file system only. It is a directory, so that the new file
//! already has its own name, by which programs know what it is (`systemd-analyze verify`). Its name begins with a dot,
//! because programs that read all files of a directory ignore such names. The former file is kept in it, for the undo.

use super::path::{Glob, GlobError, STAGING};

/// The name under which the former file is kept.
const KEPT: &str = ".previous";

/// The globs of what the host makes beside the files of a glob.
#[derive(Clone, Debug)]
pub(super) struct Staging {
    /// The fresh directory.
    pub(super) directory: Glob,
    /// The new file.
    pub(super) file: Glob,
    /// The former file.
    pub(super) kept: Glob,
}

impl Staging {
    /// The globs for a granted glob. `None` for the root directory, which has nothing beside it. An error where a path
    /// would be too long.
    pub(super) fn beside(glob: &Glob) -> Result<Option<Staging>, GlobError> {
        let (directory, name) = match glob.text().rsplit_once('/') {
            // The directories lie at any depth, as the files do.
            Some((_, "**")) => (glob.text(), "*"),
            Some((_, "")) | None => return Ok(None),
            Some(divided) => divided,
        };
        let directory = format!("{directory}/{STAGING}*");
        Ok(Some(Staging {
            file: Glob::parse(&format!("{directory}/{name}"))?,
            kept: Glob::parse(&format!("{directory}/{KEPT}"))?,
            directory: Glob::parse(&directory)?,
        }))
    }

    /// Whether a file at this path can be made and kept in this way: its name is not that of the kept file, and no path
    /// becomes too long.
    pub(super) fn is_possible_for(&self, path: &str) -> bool {
        let Some((directory, name)) = path.rsplit_once('/') else { return false };
        let directory = format!("{directory}/{STAGING}{:016x}", 0);
        name != KEPT
            && self.directory.admits(&directory)
            && self.file.admits(&format!("{directory}/{name}"))
            && self.kept.admits(&format!("{directory}/{KEPT}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beside_a_glob_is_as_deep_as_what_it_covers() {
        for (glob, directory, file) in [
            ("/etc/motd", "/etc/.linux-sysadmin-*", "/etc/.linux-sysadmin-*/motd"),
            ("/vmlinuz", "/.linux-sysadmin-*", "/.linux-sysadmin-*/vmlinuz"),
            ("/etc/x.d/*.conf", "/etc/x.d/.linux-sysadmin-*", "/etc/x.d/.linux-sysadmin-*/*.conf"),
            ("/home/*/.x", "/home/*/.linux-sysadmin-*", "/home/*/.linux-sysadmin-*/.x"),
            ("/srv/**/x", "/srv/**/.linux-sysadmin-*", "/srv/**/.linux-sysadmin-*/x"),
            ("/srv/**", "/srv/**/.linux-sysadmin-*", "/srv/**/.linux-sysadmin-*/*"),
            ("/**", "/**/.linux-sysadmin-*", "/**/.linux-sysadmin-*/*"),
        ] {
            let staging = Staging::beside(&Glob::parse(glob).unwrap()).unwrap().unwrap();
            assert_eq!((staging.directory.text(), staging.file.text()), (directory, file), "{glob}");
            assert_eq!(staging.kept.text(), format!("{directory}/.previous"));
        }
        assert!(Staging::beside(&Glob::parse("/").unwrap()).unwrap().is_none());
        let long = format!("/{}", "abc/".repeat(1020) + "d");
        assert!(Staging::beside(&Glob::parse(&long).unwrap()).is_err());
    }

    #[test]
    fn a_path_that_cannot_have_a_copy_beside_it_is_found_out() {
        let staging = Staging::beside(&Glob::parse("/srv/**").unwrap()).unwrap().unwrap();
        for (path, possible) in [
            ("/srv/x".to_owned(), true),
            ("/srv/a/b c".to_owned(), true),
            ("/srv/.previous".to_owned(), false),
            ("/srv/x/".to_owned(), false),
            ("/opt/x".to_owned(), false),
            (format!("/srv{}", "/abc".repeat(1000)), true),
            (format!("/srv{}", "/abc".repeat(1020)), false),
        ] {
            assert_eq!(staging.is_possible_for(&path), possible, "{path}");
        }
    }
}
