//! `repo_remove`: takes a repository out of its file, or only disables or enables it there.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Repositories;
use super::list::dangers;
use super::types::{Definition, Definitions, Edit, KeySource};
use super::url::shown;
use crate::{Category, Change, Context, Lock, Noted, Problem, Result, Risk, Step};

#[derive(Deserialize, JsonSchema)]
pub(super) struct RemoveArgs {
    /// As repo_list has it
    id: String,
    /// false disables it instead, true enables it
    enabled: Option<bool>,
}

pub(super) fn remove(
    repositories: &dyn Repositories,
    args: RemoveArgs,
    cx: &Context,
) -> Result<Noted<Value>> {
    let known = repositories.definitions(cx)?;
    let definition = find(&known, &args.id)?;
    let edit = match args.enabled {
        None => Edit::Remove,
        Some(false) => Edit::Disable,
        Some(true) => Edit::Enable,
    };
    if args.enabled == Some(definition.enabled) {
        let state = if definition.enabled { "enabled" } else { "disabled" };
        return Ok(Noted { data: json!({}), notes: vec![format!("{} is {state} already", definition.id)] });
    }
    let text = cx.read(&definition.file)?;
    let edited = repositories.edit(&text, definition, edit)?;
    let gone = if edit == Edit::Remove {
        files_of_it_alone(repositories, definition, &known, cx)?
    } else {
        Vec::new()
    };
    let mut change =
        Change::new(summary(definition, edit)).lock(Lock::PackageDatabase).risk(risk(definition, edit));
    change = match &edited {
        Some(text) => change.step(write(definition, &known, text)),
        None => change.step(Step::remove(&definition.file)),
    };
    change = gone.iter().fold(change, |change, path| change.step(Step::remove(path)));
    if edit == Edit::Remove {
        let forgotten = repositories.forget_keys(&definition.id, cx).into_iter().map(Step::run);
        change = forgotten.fold(change, Change::step);
    }
    change = warnings(definition, edit).into_iter().fold(change, Change::warning);
    let applied = cx.apply(change)?;
    let verb = match (edit, applied.dry_run) {
        (Edit::Remove, false) => "removed",
        (Edit::Remove, true) => "would_remove",
        (Edit::Disable, false) => "disabled",
        (Edit::Disable, true) => "would_disable",
        (Edit::Enable, false) => "enabled",
        (Edit::Enable, true) => "would_enable",
    };
    let mut data = json!({verb: definition.id});
    let removed: Vec<_> = edited.is_none().then(|| definition.file.clone()).into_iter().chain(gone).collect();
    if edited.is_some() {
        data["file"] = json!(definition.at());
    }
    if !removed.is_empty() {
        data["files"] = json!(removed);
    }
    let note = match edit {
        Edit::Enable => "its packages are known after `pkg_update` with refresh_only",
        _ => "packages that were installed from it stay, and get no updates",
    };
    Ok(Noted { data, notes: vec![note.to_owned()] })
}

fn find<'a>(known: &'a Definitions, id: &str) -> Result<&'a Definition> {
    let found: Vec<_> = known.items.iter().filter(|known| known.id == id).collect();
    match found[..] {
        [one] => Ok(one),
        [] => {
            let shown: String = id.chars().take(80).collect();
            let ids: Vec<_> = known.items.iter().map(|known| known.id.as_str()).collect();
            let message =
                format!("no repository is called {shown:?}; there are {}", crate::text::list(&ids, 30));
            Err(Problem::new("REPOSITORY_NOT_FOUND", Category::NotFound, message))
        }
        _ => {
            let places: Vec<_> = found.iter().map(|found| found.at()).collect();
            let message = format!("several repositories are called {id}: {}", places.join(", "));
            let problem = Problem::new("AMBIGUOUS_ENTRY", Category::State, message);
            Err(problem.remedy("Take the one that isn't wanted out of its file"))
        }
    }
}

/// The files that go with the repository: those that it names, or that were made for it, and that no other one uses.
fn files_of_it_alone(
    repositories: &dyn Repositories,
    definition: &Definition,
    known: &Definitions,
    cx: &Context,
) -> Result<Vec<String>> {
    let others = known.items.iter().filter(|other| other.at() != definition.at());
    let others: Vec<_> = others.flat_map(|other| &other.keys).collect();
    // Paths are compared by their components, since `//` and `/./` change nothing. A path with `..` may be any file.
    let is_named = |path: &String| {
        others.iter().any(|key| match key {
            KeySource::File(other) => Path::new(other) == Path::new(path) || other.contains("/../"),
            _ => false,
        })
    };
    let mut paths = repositories.own_files(definition, cx);
    // Nobody knows what a definition names that can't be read.
    paths.retain(|path| !is_named(path) && known.malformed.is_empty());
    let found = if paths.is_empty() { Vec::new() } else { cx.stat_all(&paths) };
    let found = paths.into_iter().zip(found).map(|(path, found)| Ok(found?.is_some().then_some(path)));
    Ok(found.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Writes the file. Its contents aren't shown where it holds a password.
fn write(definition: &Definition, known: &Definitions, text: &str) -> Step {
    let step = Step::write(&definition.file, text);
    let here = known.items.iter().filter(|other| other.file == definition.file);
    let mut addresses = here.flat_map(|other| other.urls.iter().chain([&other.mirrors]));
    let has_secret = addresses.any(|url| shown(url).1) || text.contains("password");
    if has_secret { step.sensitive() } else { step }
}

fn summary(definition: &Definition, edit: Edit) -> String {
    let verb = match edit {
        Edit::Remove => "Remove",
        Edit::Disable => "Disable",
        Edit::Enable => "Enable",
    };
    let addresses = definition.urls.iter().chain([&definition.mirrors]).filter(|url| !url.is_empty());
    let urls: Vec<_> = addresses.map(|url| shown(url).0).collect();
    format!("{verb} the package repository {} ({})", definition.id, urls.join(", "))
}

fn risk(definition: &Definition, edit: Edit) -> Risk {
    match edit {
        Edit::Enable if dangers(definition).is_empty() => Risk::High,
        Edit::Enable => Risk::Critical,
        _ if definition.is_base => Risk::Critical,
        Edit::Remove => Risk::High,
        Edit::Disable => Risk::Moderate,
    }
}

fn warnings(definition: &Definition, edit: Edit) -> Vec<String> {
    match edit {
        Edit::Enable => {
            let told = dangers(definition).into_iter().map(|danger| format!("{}: {danger}", definition.id));
            told.chain(["whoever makes its packages may replace any package of this machine".to_owned()])
                .collect()
        }
        _ if definition.is_base => {
            vec![
                "the repository is the distribution's own: without it the machine gets no security updates"
                    .to_owned(),
            ]
        }
        _ => Vec::new(),
    }
}
