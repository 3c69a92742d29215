//! Where the files of an account are, by the XDG base directory specification.

use std::path::PathBuf;

/// `linux-sysadmin` below one of the user's base directories.
pub fn of_account(variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute(variable).or_else(|| Some(absolute("HOME")?.join(below_home)))?;
    Some(base.join("linux-sysadmin"))
}

/// The user's own directory of what can be made anew.
pub fn cache() -> Option<PathBuf> {
    of_account("XDG_CACHE_HOME", ".cache")
}
