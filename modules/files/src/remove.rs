//! `file_remove`: removes files, and a directory with all that is in it where that is asked for. Each file is one step.

use linux_sysadmin_sdk::{Category, prelude::*};

use crate::find::{Kind, must_be_directory, tree};
use crate::original;
use crate::places::{check, shown};
use crate::plan::{Done, Entry, Plan, Work};

/// The most files and directories that one call removes.
const MOST: usize = 100;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct RemoveArgs {
    path: Paths,
    /// Directories with their content
    #[serde(default)]
    recursive: bool,
    /// Default: as the path needs
    as_root: Option<bool>,
}

/// One path or several.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Paths {
    One(String),
    Several(Vec<String>),
}

impl Paths {
    /// The paths without repetitions, each of which passes the check.
    pub(crate) fn checked(self, most: usize, check: impl Fn(&str) -> Result<()>) -> Result<Vec<String>> {
        let mut paths = match self {
            Self::One(path) => vec![path],
            Self::Several(paths) => paths,
        };
        if paths.is_empty() || paths.len() > most {
            let message = format!("path has {} entries: expected 1 to {most}", paths.len());
            return Err(Problem::validation("INVALID_ARGUMENTS", message));
        }
        paths.iter().try_for_each(|path| check(path))?;
        let mut known: Vec<String> = Vec::new();
        paths.retain(|path| {
            let is_new = !known.contains(path);
            known.push(path.clone());
            is_new
        });
        Ok(paths)
    }
}

pub(crate) fn file_remove(args: RemoveArgs, cx: &Context) -> Result<Noted<Done>> {
    let paths = args.path.checked(MOST, |path| check(path, cx))?;
    let mut plan = Plan { verb: "remove", as_root: args.as_root, ..Plan::default() };
    for path in &paths {
        let found = original::metadata(path, cx)?.ok_or_else(|| original::no_such(path))?;
        if !found.is_dir {
            let before = original::must_read(path, cx)?;
            add(&mut plan, path, Some(before.contents.len()));
            continue;
        }
        must_be_directory(path, cx)?;
        let found = tree(path, cx)?;
        if !found.items.is_empty() && !args.recursive {
            let message = format!("{} is a directory with {} entries", shown(path), found.items.len());
            return Err(Problem::new("DIRECTORY_NOT_EMPTY", Category::State, message)
                .remedy("Look at it with file_list, and give recursive=true to remove all of it"));
        }
        // What is in a directory comes before the directory.
        let mut items = found.items;
        items.sort_by(|a, b| b.path.cmp(&a.path));
        if found.is_cut || plan.works.len() + items.len() >= MOST {
            let message = format!("{} has more than the {MOST} entries that one call removes", shown(path));
            return Err(Problem::new("TOO_MANY_FILES", Category::Resource, message)
                .remedy("Remove a part of it first, or have a person remove the directory"));
        }
        for item in items {
            let inner = format!("{path}/{}", item.path);
            match item.kind {
                Kind::Directory => add(&mut plan, &inner, None),
                Kind::File => add(&mut plan, &inner, Some(item.size as usize)),
                kind => {
                    let message = format!(
                        "{} is a {}: only files and directories are removed",
                        shown(&inner),
                        kind.name()
                    );
                    return Err(Problem::new("NOT_A_REGULAR_FILE", Category::Denied, message));
                }
            }
        }
        add(&mut plan, path, None);
    }
    plan.summary = match &plan.entries[..] {
        [only] => format!("Remove {}", shown(&only.path)),
        all => format!("Remove {} files and directories", all.len()),
    };
    plan.apply(cx)
}

/// Adds a file, or a directory, which has no size.
fn add(plan: &mut Plan, path: &str, bytes: Option<usize>) {
    plan.existing.push(path.to_owned());
    plan.works.push(match bytes {
        Some(_) => Work::Remove(path.to_owned()),
        None => Work::RemoveDirectory(path.to_owned()),
    });
    plan.entries.push(Entry { path: path.to_owned(), change: "removed", bytes, ..Entry::default() });
}
