//! `repo_add`: defines a repository, and reads it. Where it can't be read or isn't signed by the key, nothing of it stays.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Repositories;
use super::list::is_same;
use super::types::{Definition, Definitions, KeyFile, NewRepository, Plan};
use super::{fingerprint, key, url};
use crate::packages::Backend;
use crate::packages::package_change::explained;
use crate::{Category, Change, Context, Lock, Problem, Result, Single, Step};

#[derive(Deserialize, JsonSchema)]
pub(super) struct AddArgs {
    /// Name of its files
    id: String,
    /// Base URL
    url: String,
    /// apt only; `./`: flat
    suites: Option<Vec<String>>,
    /// apt only, as main
    components: Option<Vec<String>>,
    /// Armored public key, or its path on the host
    key: String,
    /// From its makers' page; several by commas
    fingerprint: String,
    /// dnf only: false if only packages are signed
    signed_index: Option<bool>,
    /// Pin priority
    priority: Option<i64>,
}

#[derive(Serialize)]
pub(super) struct Added {
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    would_add: Option<String>,
    file: String,
    key_file: String,
}

pub(super) fn add<B: Backend>(
    backend: &B,
    repositories: &dyn Repositories,
    args: AddArgs,
    cx: &Context,
) -> Result<Single<Added>> {
    let fingerprints = fingerprint::checked(&args.fingerprint)?;
    check_id(&args.id)?;
    url::check(&args.url, repositories.place_for_credentials())?;
    let (suites, components) = (args.suites.unwrap_or_default(), args.components.unwrap_or_default());
    check_suites(repositories, &suites, &components, args.signed_index)?;
    let is_index_signed = args.signed_index.unwrap_or(true);
    if !is_index_signed && url::is_plain(&args.url) {
        let message = "a repository without TLS is only added where its index is signed: https or signed_index is expected";
        return Err(Problem::validation("CONFLICTING_ARGUMENTS", message));
    }
    if let Some(other) = args.priority.filter(|priority| !(1..=999).contains(priority)) {
        let message = format!("a priority of 1 to 999 is expected, and not {other}");
        return Err(Problem::validation("INVALID_VALUE", message));
    }
    let (contents, mut key) = key_file(args.key, cx)?;
    let (armored, key_warnings) = key::check(&contents, &fingerprints, cx.now() as i64)?;
    if let KeyFile::New(text) = &mut key {
        *text = armored;
    }
    let new = NewRepository {
        id: args.id,
        url: args.url,
        suites,
        components,
        key,
        is_index_signed,
        priority: args.priority,
    };
    let known = repositories.definitions(cx)?;
    check_new(&new, &known)?;
    check_priority(repositories, &new, &known)?;
    let plan = repositories.add(&new);
    let mut change = steps(repositories, &new, &plan, cx)?;
    let warnings = warnings(&new, &fingerprints).into_iter().chain(key_warnings);
    change = warnings.chain(inherited(repositories, &new, &known)).fold(change, Change::warning);
    let applied = cx.apply(change).map_err(|failure| explained(backend, failure, cx))?;
    let (added, would_add) = if applied.dry_run { (None, Some(new.id)) } else { (Some(new.id), None) };
    let file = plan.files.into_iter().next().map(|(path, _)| path).unwrap_or_default();
    Ok(Single(Added { added, would_add, file, key_file: plan.key_file }))
}

/// The key's contents, and the file that is to hold it.
fn key_file(given: String, cx: &Context) -> Result<(Vec<u8>, KeyFile)> {
    if given.starts_with('/') {
        // The path becomes a line of the repository's file.
        if !given.chars().all(|c| c.is_ascii_alphanumeric() || "/._+-".contains(c)) {
            let message = "the key file's path has characters other than letters, digits and / . _ + -";
            return Err(Problem::validation("INVALID_PATH", message));
        }
        let contents = cx.read_bytes(&given).map_err(|problem| match problem.code.as_str() {
            "CAPABILITY_DENIED" | "PATH_DENIED" => {
                let message = format!(
                    "{given} is in none of the folders of keyrings: the key's text is expected instead"
                );
                let problem = Problem::validation("INVALID_PATH", message);
                problem.remedy("Give the armored text of the public key in `key`")
            }
            _ => problem,
        })?;
        return Ok((contents, KeyFile::Existing(given)));
    }
    Ok((given.clone().into_bytes(), KeyFile::New(given)))
}

fn steps(repositories: &dyn Repositories, new: &NewRepository, plan: &Plan, cx: &Context) -> Result<Change> {
    let mut files = plan.files.clone();
    if let KeyFile::New(text) = &new.key {
        files.insert(0, (plan.key_file.clone(), text.clone()));
    }
    let paths = files.iter().map(|(path, _)| path.as_str()).chain(plan.directories.iter().copied());
    let found = cx.stat_all(&paths.collect::<Vec<_>>());
    let is_there = found.into_iter().map(|found| Ok(found?.is_some())).collect::<Result<Vec<_>>>()?;
    let (is_file_there, is_directory_there) = is_there.split_at(files.len());
    if let Some(((path, _), _)) = files.iter().zip(is_file_there).find(|(_, there)| **there) {
        let message = format!("{path} is there already, and is not replaced: another id is expected");
        return Err(Problem::new("FILE_EXISTS", Category::State, message));
    }
    let missing = plan.directories.iter().zip(is_directory_there).filter(|(_, there)| !**there);
    let summary = format!("Add the package repository {} ({})", new.id, new.url);
    let mut change = Change::new(summary).lock(Lock::PackageDatabase);
    let forgotten = repositories.forget_keys(&new.id, cx).into_iter().map(Step::run);
    change = forgotten.fold(change, Change::step);
    change = missing.fold(change, |change, (path, _)| change.step(Step::make_directory(*path, 0o755)));
    for (path, contents) in files {
        change = change.step(Step::write(path, contents).mode(0o644).owner("root", "root"));
    }
    Ok(change.step(Step::run(plan.refresh.clone()).uninterruptible()))
}

fn warnings(new: &NewRepository, fingerprints: &[String]) -> Vec<String> {
    let mut warnings = vec![format!(
        "whoever holds the key {} may replace any package of this machine by the next update, and packages run as root",
        fingerprints.join(", ")
    )];
    if url::is_plain(&new.url) {
        warnings.push("the repository is reached without TLS: others on the way see what is installed, and can hold back updates".to_owned());
    }
    if new.url.starts_with("file:") {
        warnings.push("whoever may write the folder can hold back updates".to_owned());
    }
    if !new.is_index_signed {
        warnings.push("its index isn't signed: only TLS says that it is the makers' own".to_owned());
    }
    warnings
}

fn check_id(id: &str) -> Result<()> {
    let is_within = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_id =
        id.len() <= 64 && id.chars().all(is_within) && id.starts_with(|c: char| c.is_ascii_alphanumeric());
    if is_id && !id.contains("..") && !id.eq_ignore_ascii_case("main") {
        return Ok(());
    }
    let shown: String = id.chars().take(80).collect();
    let message =
        format!("{shown:?} is no repository's id: letters, digits and . _ - are expected, at most 64");
    Err(Problem::validation("INVALID_NAME", message))
}

fn check_suites(
    repositories: &dyn Repositories,
    suites: &[String],
    components: &[String],
    signed_index: Option<bool>,
) -> Result<()> {
    let invalid = |message: String| Err(Problem::validation("INVALID_VALUE", message));
    if !repositories.has_suites() {
        return match suites.is_empty() && components.is_empty() {
            true => Ok(()),
            false => invalid("this package manager's repositories have no suites and components".to_owned()),
        };
    }
    if signed_index.is_some() {
        return invalid(
            "apt checks every repository's index: signed_index is expected for dnf only".to_owned(),
        );
    }
    let is_word = |word: &&String| {
        let is_within = |c: char| c.is_ascii_alphanumeric() || "._-/~+:".contains(c);
        !word.is_empty()
            && word.len() <= 100
            && word.chars().all(is_within)
            && !word.starts_with('-')
            && !word.contains("..")
    };
    if let Some(bad) = suites.iter().chain(components).find(|word| !is_word(word)) {
        let shown: String = bad.chars().take(80).collect();
        return invalid(format!(
            "{shown:?} is no suite or component: one word is expected, such as bookworm or main"
        ));
    }
    let is_exact = |suite: &String| suite.ends_with('/');
    match (suites, components) {
        ([], _) => {
            invalid("a suite is expected, such as bookworm, or ./ for a repository without suites".to_owned())
        }
        (_, []) if !suites.iter().all(is_exact) => {
            invalid("a component is expected, such as main".to_owned())
        }
        (_, [_, ..]) if suites.iter().any(is_exact) => {
            invalid("a suite that is a path (it ends with /) has no components".to_owned())
        }
        _ => Ok(()),
    }
}

/// Refuses a priority that would also hold for other repositories: apt's is one of a host, before the index is known.
fn check_priority(repositories: &dyn Repositories, new: &NewRepository, known: &Definitions) -> Result<()> {
    if new.priority.is_none() || !repositories.has_suites() {
        return Ok(());
    }
    let host = url::host(&new.url);
    let is_there = |other: &&Definition| other.urls.iter().any(|url| url::host(url) == host);
    let message = match known.items.iter().find(is_there) {
        _ if host.is_empty() => "apt takes a priority for a host, and a file has none".to_owned(),
        Some(other) => {
            format!("apt's priority is one of the host {host}, and would also hold for {}", other.id)
        }
        None => return Ok(()),
    };
    let problem = Problem::validation("CONFLICTING_ARGUMENTS", message);
    Err(problem.remedy(
        "Leave out priority, and pin the repository by its label in /etc/apt/preferences.d afterwards",
    ))
}

/// The warning where the repository may get a priority that its plan doesn't have, because apt's is one of a host.
fn inherited(repositories: &dyn Repositories, new: &NewRepository, known: &Definitions) -> Option<String> {
    let host = url::host(&new.url);
    if !repositories.has_suites() || new.priority.is_some() || host.is_empty() {
        return None;
    }
    let is_there = |other: &&Definition| other.urls.iter().any(|url| url::host(url) == host);
    let (id, priority) =
        known.items.iter().filter(is_there).find_map(|other| Some((&other.id, other.priority?)))?;
    Some(format!(
        "{id} of the host {host} has the priority {priority}; where a pin of the host sets it, it holds for {} too",
        new.id
    ))
}

/// Refuses a repository that is there already.
fn check_new(new: &NewRepository, known: &Definitions) -> Result<()> {
    let wanted = Definition {
        id: new.id.clone(),
        urls: vec![new.url.clone()],
        suites: new.suites.clone(),
        components: new.components.clone(),
        types: if new.suites.is_empty() { Vec::new() } else { vec!["deb".to_owned()] },
        ..Definition::default()
    };
    let Some(other) = known.items.iter().find(|other| is_same(&wanted, other)) else { return Ok(()) };
    let what = if other.id == new.id { "a repository of this id" } else { "this repository" };
    let state = if other.enabled { "" } else { ", disabled" };
    let message = format!("{what} is there already: {}, at {}{state}", other.id, other.at());
    let problem = Problem::new("REPOSITORY_EXISTS", Category::State, message);
    Err(if other.enabled {
        problem.remedy(format!("Keep it, or remove it first: `repo_remove` with id {}", other.id))
    } else {
        problem.remedy(format!("`repo_remove` with id {} and enabled true enables it", other.id))
    })
}
