//! Names of packages that a caller gives. Whatever else a manager would take in their place is refused: versions,
//! releases, patterns, files, options, groups.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Backend;
use crate::{Problem, Result};

/// The most packages that one call may name: nobody reads a longer plan, and a command line has a maximal length.
pub const MAX_NAMES: usize = 200;

/// One name or several.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Names {
    One(String),
    Several(Vec<String>),
}

impl Names {
    /// The names after the backend's check, each of them once, in the order given.
    pub(super) fn checked(self, backend: &impl Backend) -> Result<Vec<String>> {
        self.checked_by(|name| backend.check_name(name))
    }

    fn checked_by(self, check: impl Fn(&str) -> Result<()>) -> Result<Vec<String>> {
        let given = match self {
            Self::One(name) => vec![name],
            Self::Several(names) => names,
        };
        if given.is_empty() {
            return Err(Problem::validation(
                "NO_PACKAGE",
                "no package is named: one name or more is expected",
            ));
        }
        if given.len() > MAX_NAMES {
            let message =
                format!("{} packages are named; at most {MAX_NAMES} are expected in a call", given.len());
            return Err(Problem::validation("TOO_MANY_PACKAGES", message));
        }
        let mut names: Vec<String> = Vec::new();
        for name in given {
            check(&name)?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }
}

/// Refuses what isn't the name of a package alone, with the code `INVALID_PACKAGE_NAME`.
pub fn check(name: &str) -> Result<()> {
    let Some(reason) = reason(name) else { return Ok(()) };
    let shown: String = name.chars().take(80).collect();
    let message = format!("{shown:?} is no package's name: {reason}");
    let problem = Problem::validation("INVALID_PACKAGE_NAME", message);
    Err(problem.remedy("Give the name alone, as pkg_search shows it: letters, digits, and + . _ - within"))
}

/// The reason why the text is no name of a package; `None` where it is one.
fn reason(name: &str) -> Option<&'static str> {
    let files = [".deb", ".udeb", ".rpm", ".apk", ".zst", ".xz", ".gz", ".dsc", ".changes"];
    let lower = name.to_ascii_lowercase();
    let is_within = |c: char| c.is_ascii_alphanumeric() || "+._-".contains(c);
    Some(match name {
        "" => "it is empty",
        _ if name.len() > 128 => "it is longer than 128 characters",
        _ if name.starts_with('-') => "it begins like an option",
        _ if name.contains('=') => "a version isn't part of it (pkg_rollback takes a version)",
        _ if files.iter().any(|suffix| lower.ends_with(suffix)) => {
            "it names a file, and only packages of the repositories are installed"
        }
        _ if name.starts_with(['/', '.']) || name.contains("..") => {
            "it is a path, and only packages of the repositories are installed"
        }
        _ if name.contains('/') => "a release isn't part of it",
        _ if name.contains(['*', '?', '[', ']', '^', '$', '|']) => {
            "patterns aren't taken, since nobody sees beforehand what they match"
        }
        _ if name.starts_with('@') => "groups aren't taken, only packages",
        _ if name.contains(':') => "an architecture isn't part of it",
        _ if !name.chars().all(is_within) => "it has characters other than letters, digits and + . _ -",
        _ if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) => {
            "it doesn't begin with a letter or a digit"
        }
        _ if name.ends_with('-') => "a manager takes the - at its end for an order to remove",
        // Names such as g++ are real.
        _ if name.ends_with('+') && !name.ends_with("++") => {
            "a manager takes the + at its end for an order to install"
        }
        _ if name.ends_with('.') => "a manager takes the . at its end for a pattern",
        _ => return None,
    })
}

/// The known names that the caller may have meant, the closest first.
pub(super) fn close(name: &str, known: &[String]) -> Vec<String> {
    let mut close: Vec<(f64, &String)> = known
        .iter()
        .map(|candidate| {
            let likeness = strsim::jaro_winkler(name, candidate);
            // People leave out the end of a name: nginx for nginx-core.
            let begins = candidate.starts_with(name) || name.starts_with(candidate.as_str());
            (if begins { likeness.max(0.9) } else { likeness }, candidate)
        })
        .filter(|(likeness, _)| *likeness > 0.85)
        .collect();
    close.sort_by(|(a, a_name), (b, b_name)| b.total_cmp(a).then_with(|| a_name.cmp(b_name)));
    close.dedup_by(|(_, a), (_, b)| a == b);
    close.into_iter().take(5).map(|(_, name)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_name_and_nothing_that_a_manager_reads_out_of_one() {
        let table = [
            ("pkg-", "remove"),
            ("pkg+", "install"),
            ("pkg=1", "pkg_rollback"),
            ("pkg/sid", "release"),
            ("*", "patterns"),
            ("lib.*", "patterns"),
            ("^nginx", "patterns"),
            ("./x.deb", "file"),
            ("/tmp/x.rpm", "file"),
            ("../etc", "path"),
            ("/etc/passwd", "path"),
            ("-oAPT::Update::Pre-Invoke::=id", "option"),
            ("--purge", "option"),
            ("@core", "groups"),
            ("libc6:i386", "architecture"),
            ("a b", "characters"),
            ("a;id", "characters"),
            ("nginx\n", "characters"),
            ("nginx\u{200b}", "characters"),
            ("nginx.", "pattern"),
            ("", "empty"),
        ];
        for (name, said) in table {
            let problem = check(name).expect_err(name);
            assert_eq!(problem.code, "INVALID_PACKAGE_NAME", "{name}");
            assert!(problem.message.contains(said), "{name}: {}", problem.message);
        }
        assert!(check(&"a".repeat(129)).is_err());
        for name in
            ["nginx", "g++", "libstdc++6", "0ad", "python3.11", "gcc-c++", "xorg-x11-server-Xorg", "a"]
        {
            assert!(check(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_list_has_a_name_at_least_and_no_more_than_a_person_reads() {
        let several =
            |count: usize| Names::Several((0..count).map(|n| format!("p{n}")).collect()).checked_by(check);
        assert_eq!(several(0).expect_err("none").code, "NO_PACKAGE");
        assert_eq!(several(MAX_NAMES).expect("all").len(), MAX_NAMES);
        assert_eq!(several(MAX_NAMES + 1).expect_err("too many").code, "TOO_MANY_PACKAGES");
        let twice = Names::Several(["b", "a", "b"].map(str::to_owned).into());
        assert_eq!(twice.checked_by(check).expect("checked"), ["b", "a"]);
    }

    #[test]
    fn the_backend_decides_which_names_there_are() {
        let has_category = |name: &str| match name.split_once('/') {
            Some((_, name)) => check(name),
            None => Err(Problem::validation("INVALID_PACKAGE_NAME", "a category is expected")),
        };
        let checked = |name: &str| Names::One(name.to_owned()).checked_by(has_category);
        assert_eq!(checked("app-editors/vim").expect("a name"), ["app-editors/vim"]);
        for name in ["vim", "app-editors/--purge"] {
            assert_eq!(checked(name).expect_err(name).code, "INVALID_PACKAGE_NAME");
        }
    }

    #[test]
    fn what_was_probably_meant_is_close_and_nothing_else_is() {
        let known = ["nginx", "nginx-light", "apache2", "nghttp2", "postgresql"].map(str::to_owned);
        assert_eq!(close("ngnix", &known)[0], "nginx");
        assert_eq!(close("nginx-lite", &known), ["nginx-light", "nginx"]);
        assert!(close("zzz", &known).is_empty());
    }
}
