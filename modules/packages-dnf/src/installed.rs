//! The installed packages, with those that are kept at their version and those that dnf protects.

use std::collections::BTreeSet;

use linux_sysadmin_sdk::packages::{Installed, State, nevra};
use linux_sysadmin_sdk::prelude::*;

use crate::command::{INSTALLED, LOCKED, PROTECTED};

/// dnf protects itself even where no file names it.
const ALWAYS: [&str; 2] = ["dnf", "dnf5"];

pub fn installed(cx: &Context) -> Result<Vec<Installed>> {
    let output = cx.run(INSTALLED.command())?.success("rpm")?;
    let text = output.text();
    let (locked, protected) = (locked(cx), protected(cx));
    let packages = text.lines().map(|line| {
        let fields: Vec<_> = line.split('\t').collect();
        let [name, epoch, version, release, arch] = fields[..] else {
            return Err(Problem::unexpected("rpm's list of packages", line));
        };
        Ok(Installed {
            name: name.to_owned(),
            version: match epoch {
                "0" => format!("{version}-{release}"),
                epoch => format!("{epoch}:{version}-{release}"),
            },
            // Keys of signed packages are stored as packages without an architecture.
            arch: if arch == "(none)" { String::new() } else { arch.to_owned() },
            state: State::Installed,
            held: locked.contains(name),
            essential: protected.contains(name),
        })
    });
    packages.filter(|package| !matches!(package, Ok(package) if package.name == "gpg-pubkey")).collect()
}

/// The names of packages whose version is locked.
pub fn locked(cx: &Context) -> BTreeSet<String> {
    let [list, table] = LOCKED;
    let mut names = BTreeSet::new();
    // A file that doesn't exist, or that the caller may not read, is taken for empty.
    if let Ok(text) = cx.read(list) {
        names.extend(text.lines().filter_map(locked_by_line).map(str::to_owned));
    }
    if let Ok(text) = cx.read(table) {
        names.extend(locked_by_table(&text));
    }
    names
}

/// Parses `lab-hello-0:1.0-1.*`. A line with `!` at its beginning excludes a version and locks none.
fn locked_by_line(line: &str) -> Option<&str> {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', '!']) {
        return None;
    }
    Some(nevra::parse(line).map_or(line, |package| package.name))
}

/// The names of the packages in dnf 5's `versionlock.toml`.
fn locked_by_table(text: &str) -> Vec<String> {
    let mut is_package = false;
    let mut names = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            is_package = line == "[[packages]]";
        } else if let Some((key, value)) = line.split_once('=')
            && is_package
            && key.trim() == "name"
        {
            let quoted = value.trim().trim_start_matches(['"', '\'']);
            names.extend(quoted.split(['"', '\'']).next().map(str::to_owned));
        }
    }
    names
}

/// The packages that dnf refuses to remove.
pub fn protected(cx: &Context) -> BTreeSet<String> {
    let files = cx.list_dir(PROTECTED).unwrap_or_default();
    let paths: Vec<_> = files.iter().filter(|file| file.ends_with(".conf")).collect();
    let paths: Vec<_> = paths.into_iter().map(|file| format!("{PROTECTED}/{file}")).collect();
    let texts = cx.read_all(&paths).into_iter().flatten();
    let named = texts.flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    named.chain(ALWAYS.map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_names_a_package_and_an_exclusion_or_a_comment_none() {
        let table = [
            ("lab-hello-0:1.0-1.*", Some("lab-hello")),
            ("  lab-hello-0:1.0-1.noarch ", Some("lab-hello")),
            ("bash", Some("bash")),
            ("!lab-hello-0:2.0-1.*", None),
            ("# Added lock on Sun Nov 22 20:18:55 2026", None),
            ("", None),
        ];
        for (line, expected) in table {
            assert_eq!(locked_by_line(line), expected, "{line}");
        }
    }

    /// The table has the form of dnf5-versionlock(8).
    #[test]
    fn the_table_of_dnf_5_locks_the_packages_that_it_names() {
        let table = "version = \"1.0\"\n\n[[packages]]\nname = \"bash\"\ncomment = \"name = x\"\n\
            [[packages.conditions]]\nkey = \"evr\"\ncomparator = \"=\"\nvalue = \"0:5.2.15-5.fc39\"\n\n\
            [[packages]]\nname = 'gcc-c++'\n";
        assert_eq!(locked_by_table(table), ["bash", "gcc-c++"]);
        assert!(locked_by_table("version = \"1.0\"\nname = \"x\"\n").is_empty());
    }
}
