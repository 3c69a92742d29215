//! Paths of profiles as globs.

use host_capability::{Glob, GlobError};

/// Parses the path of a profile as a glob. A directory stands for everything in it.
pub fn glob(path: &str) -> Result<Glob, GlobError> {
    Glob::parse(&glob_text(path))
}

/// The text of that glob.
pub(super) fn glob_text(path: &str) -> String {
    match path.strip_suffix('/') {
        Some(directory) => format!("{directory}/**"),
        None => path.to_owned(),
    }
}
