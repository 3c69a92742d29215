//! Packages as dnf writes them in its messages (NEVRA): `lab-hello-0:1.0-1.noarch`.

/// The version without an epoch of 0, as rpm and dnf 4 write it.
pub fn plain(version: &str) -> &str {
    version.strip_prefix("0:").unwrap_or(version)
}

/// The parts of a name-epoch:version-release.architecture.
#[derive(Debug, PartialEq, Eq)]
pub struct Nevra<'a> {
    /// The name of the package.
    pub name: &'a str,
    /// Version and release, with an epoch other than 0.
    pub version: &'a str,
    /// The architecture.
    pub arch: &'a str,
}

/// Parses a package. `None` where the text isn't one.
pub fn parse(text: &str) -> Option<Nevra<'_>> {
    let (rest, arch) = text.rsplit_once('.')?;
    let release = rest.rfind('-')?;
    let version = rest.get(..release)?.rfind('-')?;
    let (name, version) = (rest.get(..version)?, rest.get(version + 1..)?);
    let is_whole = !name.is_empty() && !arch.is_empty() && !version.starts_with('-');
    is_whole.then(|| Nevra { name, version: plain(version), arch })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_dashes_dots_and_digits() {
        let table = [
            ("lab-hello-1.0-1.noarch", Some(("lab-hello", "1.0-1", "noarch"))),
            ("lab-hello-0:1.0-1.noarch", Some(("lab-hello", "1.0-1", "noarch"))),
            ("gcc-c++-1:14.2.1-3.fc41.x86_64", Some(("gcc-c++", "1:14.2.1-3.fc41", "x86_64"))),
            ("python3.11-3.11.9-2.el9.x86_64", Some(("python3.11", "3.11.9-2.el9", "x86_64"))),
            ("lab-hello", None),
            ("", None),
            ("-1.0-1.noarch", None),
        ];
        for (text, expected) in table {
            let found = parse(text).map(|found| (found.name, found.version, found.arch));
            assert_eq!(found, expected, "{text}");
        }
    }
}
