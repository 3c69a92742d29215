//! `pkg_rollback`: takes a package back to an earlier version.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::Backend;
use super::package_change::{Answer, PackageChange, check_known, installed_whole};
use super::types::{Request, Transaction};
use crate::{Category, Context, Noted, Problem, Result};

#[derive(Deserialize, JsonSchema)]
pub(super) struct RollbackArgs {
    /// Its name
    package: String,
    /// Default: the one before
    version: Option<String>,
}

pub(super) fn rollback<B: Backend>(backend: &B, args: RollbackArgs, cx: &Context) -> Result<Answer> {
    backend.check_name(&args.package)?;
    let before = backend.installed(cx)?;
    let name = args.package;
    let Some(current) = installed_whole(&before, &name).map(|package| package.version.clone()) else {
        check_known(backend, std::slice::from_ref(&name), cx)?;
        let message = format!("{name} is not installed, so there is nothing to go back from");
        return Err(Problem::new("PACKAGE_NOT_INSTALLED", Category::State, message));
    };
    let request = match args.version {
        Some(version) if version == current => {
            let notes = vec![format!("{name} is at version {version} already")];
            return Ok(Noted { data: json!({}), notes });
        }
        Some(version) => {
            let available = backend.versions(&name, cx)?.into_iter().map(|found| found.version);
            Request::Version(name.clone(), choose_version(&name, &version, available.collect())?)
        }
        None => backend.rollback_request(&name, &current, cx)?,
    };
    PackageChange { backend, cx, request, before, notes: Vec::new() }.apply()
}

/// The available version that the caller means: it may be given without its epoch and without the release that the
/// distribution adds.
fn choose_version(name: &str, version: &str, available: Vec<String>) -> Result<String> {
    let begins = |candidate: &&String| {
        let candidate = candidate.split_once(':').map_or(candidate.as_str(), |(_epoch, rest)| rest);
        candidate == version || candidate.strip_prefix(version).is_some_and(|rest| rest.starts_with('-'))
    };
    if available.iter().any(|candidate| candidate == version) {
        return Ok(version.to_owned());
    }
    match available.iter().filter(begins).collect::<Vec<_>>().as_slice() {
        [] => Err(version_not_available(name, &shortened(version), &available)),
        [only] => Ok((*only).clone()),
        several => {
            let several: Vec<_> = several.iter().map(|version| version.as_str()).collect();
            let message =
                format!("{version} could be any of these versions of {name}: {}", several.join(", "));
            Err(Problem::validation("AMBIGUOUS_VERSION", message))
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

/// The versions that a package had before the current one, by the manager's own history, the latest first.
pub(super) fn former_versions(name: &str, current: &str, history: &[Transaction]) -> Vec<String> {
    let mut former: Vec<String> = Vec::new();
    let operations = history.iter().flat_map(|past| &past.operations);
    for operation in operations.filter(|operation| operation.name == name) {
        let from = &operation.from;
        if !from.is_empty() && from != current && !former.contains(from) {
            former.push(from.clone());
        }
    }
    former
}

/// The problem of a version that the repositories don't have.
pub(super) fn version_not_available(name: &str, version: &str, available: &[String]) -> Problem {
    with_available(format!("version {version} of {name} isn't available any more"), available)
}

/// The problem of a package that can't go back: `former` is its last version by the history.
pub(super) fn no_earlier_version(name: &str, former: Option<&str>, available: &[String]) -> Problem {
    match former {
        Some(version) => version_not_available(name, version, available),
        None => with_available(format!("there is no earlier version of {name} to go back to"), available),
    }
}

fn with_available(what: String, available: &[String]) -> Problem {
    let which = match available {
        [] => "the repositories have none".to_owned(),
        available => format!("the repositories have {}", available.join(", ")),
    };
    Problem::new("VERSION_NOT_AVAILABLE", Category::NotFound, format!("{what}; {which}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_meant_with_or_without_what_the_distribution_adds() {
        let available = || ["1:2.0-1", "1.0-2", "1.0-1", "0.9"].map(str::to_owned).to_vec();
        assert_eq!(choose_version("a", "0.9", available()).expect("exact"), "0.9");
        assert_eq!(choose_version("a", "2.0", available()).expect("without epoch"), "1:2.0-1");
        assert_eq!(choose_version("a", "1.0", available()).expect_err("two").code, "AMBIGUOUS_VERSION");
        let gone = choose_version("a", "3.0", available()).expect_err("none");
        assert_eq!(gone.code, "VERSION_NOT_AVAILABLE");
        assert!(gone.message.contains("1.0-2"), "{}", gone.message);
    }
}
