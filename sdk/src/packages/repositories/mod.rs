//! `repo_list`, `repo_add` and `repo_remove`: the places that packages come from, and the keys that they are trusted by.
//!
//! Whoever defines a repository decides what root installs. So a new one needs its key's fingerprint, and is refused where
//! the key that was given has another one. The first reading of the repository is part of the plan: where it fails, nothing
//! of the repository stays.

mod add;
mod fingerprint;
mod ini;
mod key;
mod list;
mod openpgp;
mod remove;
mod types;
mod url;

pub use ini::{Section, sections};
pub use types::{Definition, Definitions, Edit, KeyFile, KeySource, NewRepository, Plan};
pub use url::{comparable as comparable_url, host as url_host, shown as shown_url};

use super::Backend;
use crate::{Command, Context, DurationCategory, Problem, Result, Risk, Tool};

/// The repositories of a package manager: the files that define them, and the command that reads one.
pub trait Repositories {
    /// Reads all definitions. A definition that can't be read is named in [`Definitions::malformed`], and the others are there.
    fn definitions(&self, cx: &Context) -> Result<Definitions>;

    /// The files that define a new repository. Its values are checked, and none has a line break.
    fn add(&self, new: &NewRepository) -> Plan;

    /// The text of the definition's file after the edit. `None` where nothing is left in the file.
    fn edit(&self, text: &str, definition: &Definition, edit: Edit) -> Result<Option<String>>;

    /// The files that may go with the repository: key files that no package owns, and those that are as `add` makes them. A
    /// file that another definition names as its key stays.
    fn own_files(&self, definition: &Definition, cx: &Context) -> Vec<String>;

    /// The commands, with root's rights, by which the package manager forgets keys that it imported for a repository of this
    /// name. It would trust them beside the new repository's own key.
    fn forget_keys(&self, _id: &str, _cx: &Context) -> Vec<Command> {
        Vec::new()
    }

    /// The place where a repository's user and password belong.
    fn place_for_credentials(&self) -> &'static str;

    /// Says whether a new repository needs suites, as apt's do.
    fn has_suites(&self) -> bool;
}

/// The tools, where the backend knows repositories.
pub(super) fn tools<B: Backend + 'static>(backend: fn() -> B) -> Vec<Tool> {
    if backend().repositories().is_none() {
        return Vec::new();
    }
    vec![
        Tool::new(
            "repo_list",
            "Package repositories: URLs, keys, what is unsafe",
            move |args, cx: &Context| list::list(of(&backend())?, args, cx),
        )
        .helps("REPOSITORY_UNREACHABLE", "See which repositories there are: repo_list")
        .helps("REPOSITORY_UNTRUSTED", "See its key: repo_list")
        .duration(DurationCategory::Normal),
        Tool::new("repo_add", "Add a signed package repository and read it", move |args, cx: &Context| {
            let backend = backend();
            add::add(&backend, of(&backend)?, args, cx)
        })
        .loses_nothing()
        .risk(Risk::Critical)
        .duration(DurationCategory::Normal),
        Tool::new(
            "repo_remove",
            "Remove, disable or enable a package repository",
            move |args, cx: &Context| remove::remove(of(&backend())?, args, cx),
        )
        .risk(Risk::Moderate)
        .duration(DurationCategory::Normal),
    ]
}

fn of<B: Backend>(backend: &B) -> Result<&dyn Repositories> {
    let missing =
        || Problem::new("NOT_SUPPORTED", crate::Category::State, "this package manager has no repositories");
    backend.repositories().ok_or_else(missing)
}
