//! The packages that pacman has kept in its cache. Only there is an older version: a repository has the newest one alone.

use linux_sysadmin_sdk::prelude::*;

/// pacman's cache, unless its configuration has another one.
pub const CACHE: &str = "/var/cache/pacman/pkg";

/// A package in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub name: String,
    pub version: String,
    file: String,
}

impl Kept {
    /// The path of the file.
    pub fn path(&self) -> String {
        format!("{CACHE}/{}", self.file)
    }
}

/// The versions of a package in the cache that fit this machine.
pub fn of(name: &str, cx: &Context) -> Result<Vec<Kept>> {
    let files = match cx.list_dir(CACHE) {
        Ok(files) => files,
        // Nothing has been fetched yet.
        Err(problem) if problem.code == "FILE_NOT_FOUND" => Vec::new(),
        Err(problem) => return Err(problem),
    };
    let machine = cx.distro().architecture;
    let kept = files.iter().filter_map(|file| read(file, &machine));
    Ok(kept.filter(|kept| kept.name == name).collect())
}

/// Reads `NAME-VERSION-RELEASE-ARCHITECTURE.pkg.tar.zst`, or another kind of compression.
fn read(file: &str, machine: &str) -> Option<Kept> {
    let (stem, kind) = file.split_once(".pkg.tar")?;
    // A signature, or what was not fetched completely.
    if !matches!(kind, "" | ".zst" | ".xz" | ".gz" | ".bz2" | ".lz4") {
        return None;
    }
    let mut parts = stem.rsplitn(4, '-');
    let (architecture, release, version) = (parts.next()?, parts.next()?, parts.next()?);
    let name = parts.next()?;
    let fits = architecture == "any" || architecture == machine;
    fits.then(|| Kept {
        name: name.to_owned(),
        version: format!("{version}-{release}"),
        file: file.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_its_package_and_version() {
        let table = [
            ("lab-hello-1.0-1-any.pkg.tar.zst", Some(("lab-hello", "1.0-1"))),
            ("gcc-libs-14.2.1+r134-1-x86_64.pkg.tar.zst", Some(("gcc-libs", "14.2.1+r134-1"))),
            ("vim-1:9.1-1-x86_64.pkg.tar.xz", Some(("vim", "1:9.1-1"))),
            ("vim-9.1-1-aarch64.pkg.tar.xz", None),
            ("vim-9.1-1-x86_64.pkg.tar.zst.sig", None),
            ("vim-9.1-1-x86_64.pkg.tar.zst.part", None),
            ("download-x1y2z3", None),
            ("vim.pkg.tar.zst", None),
        ];
        for (file, expected) in table {
            let kept = read(file, "x86_64");
            let found = kept.as_ref().map(|kept| (kept.name.as_str(), kept.version.as_str()));
            assert_eq!(found, expected, "{file}");
        }
    }
}
