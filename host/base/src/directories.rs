//! The directories that hold an account's files, by the XDG base directory specification.

use std::path::PathBuf;

/// Returns `linux-sysadmin` below the base directory that `variable` names, or below `below_home` in the home
/// directory.
pub fn program_directory(variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute(variable).or_else(|| Some(absolute("HOME")?.join(below_home)))?;
    Some(base.join("linux-sysadmin"))
}

/// Returns the account's directory for files that can be made again.
pub fn cache() -> Option<PathBuf> {
    program_directory("XDG_CACHE_HOME", ".cache")
}

/// Returns the absolute path of a path in the configuration, with the home directory in place of `~`.
pub fn expand_home(path: &str) -> Result<PathBuf, String> {
    let path = match path.strip_prefix("~/") {
        Some(below) => std::env::home_dir().ok_or("HOME doesn't say what `~` is")?.join(below),
        None => PathBuf::from(path),
    };
    match path.is_absolute() {
        true => Ok(path),
        false => {
            Err(format!("path {}: expected an absolute path, or one that begins with ~/", path.display()))
        }
    }
}
