//! `file_remove`: removes files, symlinks and directory trees. Each file, each symlink and each directory is a step of the
//! plan: the question shows it, and the host keeps it until the plan has ended. A symlink isn't followed.

use linux_sysadmin_sdk::paths::Paths;
use linux_sysadmin_sdk::{Category, prelude::*};

use crate::find::{DEEPEST, Item, Kind, must_be_directory, to_depth};
use crate::original::{self, LARGEST};
use crate::places::{check, shown};
use crate::plan::{Done, Entry, Plan, Work};

/// The most files, symlinks and directories that one call removes.
const MOST: usize = 200;
/// The most bytes of all files that one call removes. The host reads them all, to notice whether somebody changes one.
const MOST_BYTES: u64 = 64 << 20;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct RemoveArgs {
    /// One or several; directories with all in them
    path: Paths,
    /// Default: if needed
    as_root: Option<bool>,
}

pub(crate) fn file_remove(args: RemoveArgs, cx: &Context) -> Result<Noted<Done>> {
    let paths = args.path.checked(MOST, |path| check(path, cx))?;
    must_be_apart(&paths)?;
    let mut plan = Plan { verb: "remove", as_root: args.as_root, ..Plan::default() };
    for path in &paths {
        let found = original::metadata(path, cx)?.ok_or_else(|| original::no_such(path))?;
        let mut entry = Entry { path: path.clone(), change: "removed", ..Entry::default() };
        if found.is_symlink {
            plan.works.push(Work::Remove(path.clone()));
        } else if found.is_dir {
            add_tree(path, &mut plan, &mut entry, cx)?;
        } else {
            original::must_be_file(path, &found, cx)?;
            entry.bytes = Some(found.size as usize);
            plan.existing.push(path.clone());
            plan.works.push(Work::Remove(path.clone()));
        }
        plan.entries.push(entry);
    }
    must_be_few(&plan)?;
    let inside = plan.works.len() - plan.entries.len();
    plan.summary = match &plan.entries[..] {
        [only] if inside > 0 => format!("Remove {} and all that is in it", shown(&only.path)),
        [only] => format!("Remove {}", shown(&only.path)),
        all => format!("Remove {} files and directories", all.len()),
    };
    plan.apply(cx)
}

/// Adds a directory, after all that is in it.
fn add_tree(path: &str, plan: &mut Plan, entry: &mut Entry, cx: &Context) -> Result<()> {
    must_be_directory(path, cx)?;
    let mut tree = to_depth(path, DEEPEST, cx)?;
    // The plan is the same each time, in whatever order the names come.
    tree.items.sort_by(|a, b| a.path.cmp(&b.path));
    let mut directories = Vec::new();
    let mut bytes = 0;
    for item in &tree.items {
        let inner = format!("{path}/{}", item.path);
        must_be_removable(&inner, item)?;
        check(&inner, cx)?;
        bytes += if item.kind == Kind::File { item.size } else { 0 };
        if item.kind == Kind::Directory {
            directories.push(inner);
            continue;
        }
        if item.kind == Kind::File {
            plan.existing.push(inner.clone());
        }
        plan.works.push(Work::Remove(inner));
    }
    if tree.is_cut {
        return Err(too_large(format!("{} holds more than can be looked at", shown(path))));
    }
    if !tree.items.is_empty() {
        (entry.bytes, entry.holds) = (Some(bytes as usize), Some(tree.items.len()));
        plan.warnings.push(holds(path, &tree.items, bytes));
    }
    // What is inside comes before the directory around it.
    directories.sort_by_key(|directory| std::cmp::Reverse(directory.matches('/').count()));
    directories.push(path.to_owned());
    plan.existing.extend(directories.iter().cloned());
    plan.works.extend(directories.into_iter().map(Work::RemoveDirectory));
    Ok(())
}

/// Refuses what can't be put back, and what can't be named.
fn must_be_removable(path: &str, item: &Item) -> Result<()> {
    let refused = |code: &str, why: String| {
        let message = format!("{} {why}: nothing was removed", shown(path));
        Err(Problem::new(code, Category::State, message))
    };
    match item.kind {
        Kind::File if item.size > LARGEST => refused(
            "FILE_TOO_LARGE",
            format!("has {} bytes, and a file of at most {LARGEST} is removed", item.size),
        ),
        Kind::Directory if item.path.split('/').count() >= DEEPEST as usize => {
            refused("TREE_TOO_DEEP", format!("is {DEEPEST} levels deep, and what is in it isn't looked at"))
        }
        Kind::File | Kind::Directory | Kind::Symlink if item.path.contains(char::REPLACEMENT_CHARACTER) => {
            refused("INVALID_PATH", "has a name that isn't UTF-8".to_owned())
        }
        Kind::File | Kind::Directory | Kind::Symlink => Ok(()),
        other => refused(
            "NOT_A_REGULAR_FILE",
            format!(
                "is a {}, which can't be put back; expected files, directories and symlinks",
                other.name()
            ),
        ),
    }
}

/// Refuses a path that is within another one.
fn must_be_apart(paths: &[String]) -> Result<()> {
    for path in paths {
        let is_in =
            |other: &&String| path.strip_prefix(other.as_str()).is_some_and(|rest| rest.starts_with('/'));
        if let Some(other) = paths.iter().find(is_in) {
            let message = format!("{} is in {}: expected only one of them", shown(path), shown(other));
            return Err(Problem::validation("PATH_TWICE", message));
        }
    }
    Ok(())
}

fn must_be_few(plan: &Plan) -> Result<()> {
    let (count, bytes) =
        (plan.works.len(), plan.entries.iter().filter_map(|entry| entry.bytes).sum::<usize>());
    if count <= MOST && bytes as u64 <= MOST_BYTES {
        return Ok(());
    }
    Err(too_large(format!("these are {count} files and directories with {bytes} bytes")))
}

fn too_large(what: String) -> Problem {
    let message = format!(
        "{what}; one call removes at most {MOST} files and directories, and {MOST_BYTES} bytes, because it keeps them all \
         until it has ended"
    );
    Problem::new("TREE_TOO_LARGE", Category::Resource, message)
        .remedy("Move the directory out of the way with file_move, which can be undone")
        .remedy("Or remove it for good by command_run argv=[\"rm\", \"-r\", …], which asks a person")
}

/// A sentence about what goes with a directory.
fn holds(path: &str, items: &[Item], bytes: u64) -> String {
    let of = |kind: Kind| items.iter().filter(|item| item.kind == kind).count();
    format!(
        "{} goes with all that is in it: {} files of {bytes} bytes, {} directories, {} symlinks",
        shown(path),
        of(Kind::File),
        of(Kind::Directory),
        of(Kind::Symlink)
    )
}
