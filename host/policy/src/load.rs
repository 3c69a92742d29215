//! Where the rules come from: those that come with this program, and an operator's file.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::glob::PathGlob;
use super::rule::{Rule, Sets, Written};
use host_base::small_file;
use serde::Deserialize;

/// `rules.yaml`, as build.rs turned it into what is read faster.
const BUILTIN: &str = include_str!(concat!(env!("OUT_DIR"), "/rules.json"));

/// Where the policy's rules are. Read when it is first needed, and checked at the start.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyFile {
    /// A file of rules, absolute or with `~/` before it.
    pub path: Option<String>,
    /// Whether the rules that come with this program hold, where the file has none with the same id.
    pub include_builtin: bool,
}

impl Default for PolicyFile {
    fn default() -> Self {
        Self { path: None, include_builtin: true }
    }
}

/// Why there are no rules. Shown to the operator; the process ends with 2.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file can't be read, or isn't to be trusted.
    #[error("the policy {} can't be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file says what can't be.
    #[error("the policy {}, line {line}: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What was found, and what was expected.
        reason: String,
    },
    /// The configuration names no file that could be read.
    #[error("policy: {0}")]
    Configured(String),
}

/// The rules that come with this program. A test reads the same text: without rules, everything would be safe.
pub(super) fn builtin() -> Vec<Rule> {
    builtin_with_sets().0
}

/// The paths of a set that comes with this program.
pub(super) fn builtin_paths(set: &str) -> Vec<PathGlob> {
    let (_, sets) = builtin_with_sets();
    let globs = sets.get(set).into_iter().flatten().map(|text| PathGlob::parse(text));
    globs.flatten().flatten().collect()
}

fn builtin_with_sets() -> (Vec<Rule>, Sets) {
    match parse_builtin() {
        Ok(rules) => rules,
        // Can't be in a program that was built from tested sources; nothing is to go on as if it were safe.
        Err(reason) => panic!("the built-in policy: {reason}"),
    }
}

fn parse_builtin() -> Result<(Vec<Rule>, Sets), String> {
    let written: Written = serde_json::from_str(BUILTIN).map_err(|error| error.to_string())?;
    written.check(&Sets::new()).map_err(|fault| fault.reason)
}

/// The rules that the configuration names; `None` where those that come with this program are meant, as they are.
pub(super) fn rules(config: &PolicyFile) -> Result<Option<Vec<Rule>>, PolicyError> {
    let Some(path) = &config.path else {
        return match config.include_builtin {
            true => Ok(None),
            false => {
                Err(PolicyError::Configured("include_builtin: false needs a path to other rules".to_owned()))
            }
        };
    };
    let path = small_file::absolute(path).map_err(PolicyError::Configured)?;
    let text = small_file::read(&path, may_be_trusted)
        .map_err(|source| PolicyError::Unreadable { path: path.clone(), source })?;
    let (builtin, sets) = match config.include_builtin {
        true => builtin_with_sets(),
        false => Default::default(),
    };
    let own = parse(&text, &sets).map_err(|(line, reason)| PolicyError::Invalid { path, line, reason })?;
    Ok(Some(merge(builtin, own)))
}

/// Rules that only this account, or root, can change.
fn may_be_trusted(metadata: &std::fs::Metadata) -> std::io::Result<()> {
    let is_owners = [0, rustix::process::geteuid().as_raw()].contains(&metadata.uid());
    match is_owners && metadata.mode() & 0o022 == 0 {
        true => Ok(()),
        false => Err(std::io::Error::other("others than its owner, this account or root, can write to it")),
    }
}

/// The rules of a text; the line and the reason where there are none.
pub(super) fn parse(text: &str, sets: &Sets) -> Result<Vec<Rule>, (usize, String)> {
    // The parser gives no place for what is wrong at the very beginning.
    let at = |error: serde_yaml::Error| (error.location().map_or(1, |place| place.line()), error.to_string());
    let written: Written = serde_yaml::from_str(text).map_err(at)?;
    let (rules, _) =
        written.check(sets).map_err(|fault| (line_of(text, &fault.id, fault.nth), fault.reason))?;
    Ok(rules)
}

/// The line of a rule, by its id and its place among those that have it.
fn line_of(text: &str, id: &str, nth: usize) -> usize {
    let is_it = |line: &str| {
        let line = line.trim_start().trim_start_matches("- ").trim_start();
        let value = line.strip_prefix("id:").map(|value| value.split(" #").next().unwrap_or(value));
        value.is_some_and(|value| value.trim().trim_matches(['"', '\'']) == id)
    };
    text.lines().enumerate().filter(|(_, line)| is_it(line)).nth(nth).map_or(1, |(number, _)| number + 1)
}

/// An operator's rule takes the place of the one with its id; the others are added.
pub(super) fn merge(mut rules: Vec<Rule>, own: Vec<Rule>) -> Vec<Rule> {
    for rule in own {
        match rules.iter_mut().find(|other| other.id == rule.id) {
            Some(other) => *other = rule,
            None => rules.push(rule),
        }
    }
    rules
}
