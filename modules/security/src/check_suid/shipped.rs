//! The files that Debian's and Ubuntu's packages bring with setuid, setgid or capabilities. dpkg doesn't know modes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Names of files by the package that brings them, without directories.
static SHIPPED: LazyLock<BTreeMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let lines = include_str!("shipped.txt").lines().filter(|line| !line.starts_with('#'));
    let packages = lines.filter_map(|line| line.split_once(": "));
    packages.map(|(package, files)| (package, files.split(' ').collect())).collect()
});

/// True if the package brings a file of this path with rights.
pub(super) fn has(package: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    SHIPPED.get(package).is_some_and(|files| files.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_its_packages_and_no_other_ones() {
        assert!(has("util-linux", "/usr/bin/su") && has("libpam-modules-bin", "/sbin/unix_chkpwd"));
        assert!(!has("findutils", "/usr/bin/find") && !has("util-linux", "/usr/bin/mount") && !has("", ""));
    }
}
