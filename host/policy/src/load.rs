//! Loads the rules: those that come with this program, and those of an operator's file.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use super::glob::{self, PathGlob};
use super::rule::{Rule, Sets, Written};
use host_base::trusted_file;
use serde::Deserialize;

/// `rules.yaml` as JSON, which is read faster. build.rs makes it.
const BUILTIN: &str = include_str!(concat!(env!("OUT_DIR"), "/rules.json"));

/// The file with the operator's rules. The server checks it at its start.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyFile {
    /// The path of a file of rules, absolute or beginning with `~/`.
    pub path: Option<String>,
    /// Whether the rules that come with this program hold as well. A rule of the file replaces the one with its id.
    pub include_builtin: bool,
}

impl Default for PolicyFile {
    fn default() -> Self {
        Self { path: None, include_builtin: true }
    }
}

/// The reason why there are no rules. The operator sees it, and the process ends with 2.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file can't be read, or others can write to it.
    #[error("the policy {} can't be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system, or why the file is not trusted.
        source: std::io::Error,
    },
    /// The file is wrong.
    #[error("the policy {}, line {line}: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The fault in that line, and what was expected.
        reason: String,
    },
    /// The configuration names no file that could be read.
    #[error("policy: {0}")]
    Configured(String),
}

/// The sets that come with this program.
static BUILTIN_SETS: LazyLock<Arc<Sets>> = LazyLock::new(|| builtin_with_sets().1);

/// The rules that come with this program.
pub(super) fn builtin() -> Vec<Rule> {
    builtin_with_sets().0
}

/// The paths of a set that comes with this program.
pub(super) fn builtin_paths(set: &str) -> Vec<PathGlob> {
    let globs = BUILTIN_SETS.get(set).into_iter().flatten().map(|text| PathGlob::parse(text));
    globs.flatten().flatten().collect()
}

/// The words of a set that comes with this program, as globs for [`glob::word`].
pub(super) fn builtin_words(set: &str) -> Vec<String> {
    let words = BUILTIN_SETS.get(set).into_iter().flatten().map(|text| glob::alternatives(text));
    words.flatten().flatten().collect()
}

/// The rules and sets that come with this program. Tests check them.
fn builtin_with_sets() -> (Vec<Rule>, Arc<Sets>) {
    match serde_json::from_str::<Written>(BUILTIN) {
        Ok(written) => written.read(&Sets::new()),
        // A test reads the same text, so this can't happen. Without rules every command would count as safe.
        Err(reason) => panic!("the built-in policy: {reason}"),
    }
}

/// The rules that the configuration names; `None` where only those that come with this program hold.
pub(super) fn rules(config: &PolicyFile) -> Result<Option<Vec<Rule>>, PolicyError> {
    let Some(path) = &config.path else {
        return match config.include_builtin {
            true => Ok(None),
            false => {
                Err(PolicyError::Configured("include_builtin: false needs a path to other rules".to_owned()))
            }
        };
    };
    let path = host_base::directories::expand_home(path).map_err(PolicyError::Configured)?;
    let text = trusted_file::read(&path, check_owner)
        .map_err(|source| PolicyError::Unreadable { path: path.clone(), source })?;
    let (builtin, sets) = match config.include_builtin {
        true => builtin_with_sets(),
        false => Default::default(),
    };
    let own = parse(&text, &sets).map_err(|(line, reason)| PolicyError::Invalid { path, line, reason })?;
    Ok(Some(merge(builtin, own)))
}

/// Checks that only this account or root can change the file.
fn check_owner(metadata: &std::fs::Metadata) -> std::io::Result<()> {
    let is_owners = [0, rustix::process::geteuid().as_raw()].contains(&metadata.uid());
    match is_owners && metadata.mode() & 0o022 == 0 {
        true => Ok(()),
        false => Err(std::io::Error::other("others than its owner, this account or root, can write to it")),
    }
}

/// Parses a file of rules. The error has its line and its reason.
pub(super) fn parse(text: &str, sets: &Sets) -> Result<Vec<Rule>, (usize, String)> {
    // The parser gives no location for an error at the very beginning.
    let at = |error: serde_yaml::Error| (error.location().map_or(1, |place| place.line()), error.to_string());
    let written: Written = serde_yaml::from_str(text).map_err(at)?;
    written.check(sets).map_err(|fault| (line_of(text, &fault.id, fault.nth), fault.reason))
}

/// The line of the nth rule with this id.
fn line_of(text: &str, id: &str, nth: usize) -> usize {
    let is_it = |line: &str| {
        let line = line.trim_start().trim_start_matches("- ").trim_start();
        let value = line.strip_prefix("id:").map(|value| value.split(" #").next().unwrap_or(value));
        value.is_some_and(|value| value.trim().trim_matches(['"', '\'']) == id)
    };
    text.lines().enumerate().filter(|(_, line)| is_it(line)).nth(nth).map_or(1, |(number, _)| number + 1)
}

/// Replaces rules by the operator's rules with the same ids, and adds the operator's other rules.
pub(super) fn merge(mut rules: Vec<Rule>, own: Vec<Rule>) -> Vec<Rule> {
    for rule in own {
        match rules.iter_mut().find(|other| other.id == rule.id) {
            Some(other) => *other = rule,
            None => rules.push(rule),
        }
    }
    rules
}
