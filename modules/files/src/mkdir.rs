//! `file_mkdir`: makes a directory, and those above it that are missing.

use linux_sysadmin_sdk::{Category, prelude::*};

use crate::original;
use crate::places::{check, shown};
use crate::plan::{Done, Entry, Plan, Work, mode, unchanged};
use crate::write::owner;

/// The mode of a new directory.
const MODE: u32 = 0o755;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct MkdirArgs {
    /// New directory, absolute
    path: String,
    /// Default 0755
    mode: Option<String>,
    /// Its owner
    owner: Option<String>,
    /// Its group
    group: Option<String>,
    /// Default: if needed
    as_root: Option<bool>,
}

pub(crate) fn file_mkdir(args: MkdirArgs, cx: &Context) -> Result<Noted<Done>> {
    let path = args.path;
    check(&path, cx)?;
    let bits = mode(args.mode.as_deref())?;
    let owner = owner(args.owner, args.group, None)?;
    let mut missing: Vec<&str> = Vec::new();
    let ends = path.match_indices('/').skip(1).map(|(end, _)| end).chain([path.len()]);
    for end in ends.collect::<Vec<_>>().into_iter().rev() {
        let directory = &path[..end];
        match original::metadata(directory, cx) {
            Ok(None) => missing.insert(0, directory),
            Ok(Some(found)) if found.is_dir => break,
            Ok(Some(found)) if found.is_symlink && directory != path => break,
            Ok(Some(_)) => {
                let message = format!("{} is there, and is no directory", shown(directory));
                return Err(Problem::new("FILE_EXISTS", Category::State, message));
            }
            // A grant covers what is in /etc and not /etc itself, which is always there.
            Err(problem) if problem.code == "CAPABILITY_DENIED" && directory != path => break,
            Err(problem) => return Err(problem),
        }
    }
    if missing.is_empty() {
        return Ok(unchanged(format!("{} is there already: nothing was changed", shown(&path))));
    }
    let bits = bits.unwrap_or(MODE);
    let entry = |path: &&str| Entry {
        path: (*path).to_owned(),
        change: "made",
        mode: Some(format!("{bits:04o}")),
        ..Entry::default()
    };
    let work =
        |path: &&str| Work::MakeDirectory { path: (*path).to_owned(), mode: bits, owner: owner.clone() };
    Plan {
        verb: "make",
        summary: format!("Make the directory {}", shown(&path)),
        works: missing.iter().map(work).collect(),
        entries: missing.iter().map(entry).collect(),
        as_root: args.as_root,
        ..Plan::default()
    }
    .apply(cx)
}
