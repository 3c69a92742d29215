//! The tools that look.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::name;
use super::types::{Found, Info, Installed, Operation, State, Transaction, Update};
use super::{Backend, unknown};
use crate::{Category, Context, Listing, NoArgs, Noted, Problem, Result};

/// A transaction of more operations shows so many, and how many more there were.
const MOST_OPERATIONS: usize = 10;

/// A command line is cut after so many characters.
const MOST_COMMAND: usize = 200;

/// Knowledge of the repositories that is older than this many seconds is said to be old.
const OLD: f64 = 7.0 * 24.0 * 3600.0;

#[derive(Deserialize, JsonSchema)]
pub(super) struct SearchArgs {
    /// Words; all must occur
    query: String,
    /// Look at names, not at summaries
    #[serde(default)]
    names_only: bool,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct InfoArgs {
    package: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct UpdatesArgs {
    #[serde(default)]
    security_only: bool,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct HistoryArgs {
    /// Only what became of this package, and which of its versions can be had
    package: Option<String>,
}

/// One line of `pkg_history`.
#[derive(Serialize)]
pub(super) struct Past {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// As `upgrade lab-hello 1.0 -> 2.0`.
    operations: Vec<String>,
    /// Operations that aren't listed.
    #[serde(skip_serializing_if = "is_zero")]
    more: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

pub(super) fn installed<B: Backend>(backend: &B, _: NoArgs, cx: &Context) -> Result<Listing<Installed>> {
    let mut items = backend.installed(cx)?;
    items.retain(|package| package.state != State::ConfigFiles);
    items.sort_by(|a, b| (&a.name, &a.arch).cmp(&(&b.name, &b.arch)));
    Ok(items.into())
}

pub(super) fn search<B: Backend>(backend: &B, args: SearchArgs, cx: &Context) -> Result<Listing<Found>> {
    let words = words(&args.query)?;
    let mut items = backend.search(&words, args.names_only, cx)?;
    let query = words.join(" ");
    // The very name first, then what begins with it, then what has it in its name.
    let rank = |found: &Found| match found.name.to_lowercase() {
        name if name == query => 0,
        name if words.iter().any(|word| name.starts_with(word.as_str())) => 1,
        name if words.iter().all(|word| name.contains(word.as_str())) => 2,
        _ => 3,
    };
    items.sort_by(|a, b| (rank(a), &a.name).cmp(&(rank(b), &b.name)));
    items.dedup_by(|a, b| a.name == b.name);
    Ok(items.into())
}

/// Lower-case words of plain text: managers take regular expressions, globs and options, people mean words.
fn words(query: &str) -> Result<Vec<String>> {
    let expected = "1 to 8 words of letters, digits and + . _ -, 100 characters in all";
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let is_plain = |word: &String| {
        word.chars().all(|c| c.is_alphanumeric() || "+._-".contains(c))
            && word.starts_with(|c: char| c.is_alphanumeric())
    };
    if words.is_empty() || words.len() > 8 || query.len() > 100 || !words.iter().all(is_plain) {
        let shown: String = query.chars().take(80).collect();
        let message = format!("can't search for {shown:?}: {expected} are expected");
        return Err(Problem::validation("INVALID_QUERY", message));
    }
    Ok(words)
}

pub(super) fn info<B: Backend>(backend: &B, args: InfoArgs, cx: &Context) -> Result<Noted<Info>> {
    name::check(&args.package)?;
    match backend.info(&args.package, cx)? {
        Some(data) => Ok(Noted { data, notes: Vec::new() }),
        None => Err(unknown(backend, &[args.package], cx)),
    }
}

pub(super) fn check_updates<B: Backend>(
    backend: &B,
    args: UpdatesArgs,
    cx: &Context,
) -> Result<Listing<Update>> {
    let mut updates = backend.updates(cx)?;
    if args.security_only {
        updates.items.retain(|update| update.security);
    }
    updates.items.sort_by(|a, b| (!a.security, &a.name).cmp(&(!b.security, &b.name)));
    updates.notes.extend(updates.refreshed.and_then(|refreshed| age(refreshed, cx.now())));
    Ok(Listing { items: updates.items, total: None, notes: updates.notes })
}

/// What is known of the repositories may be old.
pub(super) fn age(refreshed: f64, now: f64) -> Option<String> {
    let old = now - refreshed;
    let days = (old / 86400.0).floor();
    (old > OLD).then(|| {
        format!("the repositories were read {days} days ago: `pkg_update` with refresh_only reads them anew")
    })
}

pub(super) fn history<B: Backend>(backend: &B, args: HistoryArgs, cx: &Context) -> Result<Listing<Past>> {
    let Some(package) = args.package else {
        return Ok(backend
            .history(None, cx)?
            .into_iter()
            .map(|past| past.shown(None))
            .collect::<Vec<_>>()
            .into());
    };
    name::check(&package)?;
    let of_it = |past: &Transaction| past.operations.iter().any(|operation| operation.name == package);
    let mut past = backend.history(Some(&package), cx)?;
    past.retain(of_it);
    let versions = backend.versions(&package, cx)?;
    if past.is_empty() && versions.is_empty() {
        let installed = backend.installed(cx)?.into_iter().any(|known| known.name == package);
        if !installed {
            return Err(unknown(backend, &[package], cx));
        }
    }
    let can_be_had = match versions.as_slice() {
        [] => format!("no version of {package} can be had from the repositories"),
        versions => {
            let versions: Vec<_> = versions.iter().map(|found| found.version.as_str()).collect();
            format!("versions of {package} that can be had: {}", versions.join(", "))
        }
    };
    let items = past.into_iter().map(|past| past.shown(Some(&package))).collect();
    Ok(Listing { items, total: None, notes: vec![can_be_had] })
}

impl Transaction {
    /// For `pkg_history`: of one package only what became of it, of all not more than can be read.
    fn shown(self, package: Option<&str>) -> Past {
        let all = self.operations.len();
        let is_meant = |operation: &&Operation| package.is_none_or(|package| operation.name == package);
        let line = |operation: &Operation| format!("{} {}", operation.verb.name(), operation.versions());
        let operations: Vec<_> =
            self.operations.iter().filter(is_meant).take(MOST_OPERATIONS).map(line).collect();
        Past {
            id: self.id,
            at: self.at,
            by: self.by,
            command: self.command.map(|command| match command.char_indices().nth(MOST_COMMAND) {
                Some((end, _)) => format!("{}…", &command[..end]),
                None => command,
            }),
            more: all - operations.len(),
            operations,
            error: self.error,
        }
    }
}

/// A version that a package had before the one that it has, by the manager's own history; the latest first.
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

/// That version is gone from the repositories.
pub(super) fn not_to_be_had(name: &str, version: &str, available: &[String]) -> Problem {
    gone(format!("version {version} of {name} can't be had any more"), available)
}

/// No earlier version is there; `former` is the one that the history tells of.
pub(super) fn no_way_back(name: &str, former: Option<&str>, available: &[String]) -> Problem {
    match former {
        Some(version) => not_to_be_had(name, version, available),
        None => gone(format!("there is no earlier version of {name} to go back to"), available),
    }
}

fn gone(what: String, available: &[String]) -> Problem {
    let which = match available {
        [] => "the repositories have none".to_owned(),
        available => format!("the repositories have {}", available.join(", ")),
    };
    Problem::new("VERSION_NOT_AVAILABLE", Category::NotFound, format!("{what}; {which}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_words_and_never_an_expression_or_an_option() {
        for bad in ["", " ", "-x", "a.*", "a|b", "^a", "a;id", "$(id)", "a --b", &"a".repeat(101)] {
            assert_eq!(words(bad).unwrap_err().code, "INVALID_QUERY", "{bad}");
        }
        assert_eq!(words("  Web  Server ").unwrap(), ["web", "server"]);
        assert_eq!(words("g++ python3.11").unwrap(), ["g++", "python3.11"]);
    }

    #[test]
    fn knowledge_is_old_after_a_week() {
        assert_eq!(age(0.0, OLD), None);
        assert!(age(0.0, OLD + 1.0).unwrap().contains("7 days"));
    }
}
