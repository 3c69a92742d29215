//! `file_remove`: removes files and empty directories. Each one is a step. The host keeps a removed file beside its place until
//! the plan has ended, so that the files of a directory and the directory itself can't be removed by one plan.

use linux_sysadmin_sdk::{Category, prelude::*};

use crate::find::to_depth;
use crate::original;
use crate::places::{check, shown};
use crate::plan::{Done, Entry, Plan, Work};

/// The most files and directories that one call removes.
const MOST: usize = 100;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct RemoveArgs {
    path: Paths,
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
        let entries = to_depth(path, 1, cx)?.items.len();
        if entries > 0 {
            let message =
                format!("{} holds {entries} entries: only an empty directory is removed", shown(path));
            return Err(Problem::new("DIRECTORY_NOT_EMPTY", Category::State, message)
                .remedy(format!("Remove what is in it first: file_list path={}", shown(path)))
                .remedy("Or move it out of the way with file_move, which can be undone"));
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
