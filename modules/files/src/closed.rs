//! Closed files, and directories that keep others from what is in them: says whether a copy or a move gives them to others.

use std::collections::BTreeSet;

use linux_sysadmin_sdk::{Privilege, prelude::*};

use crate::places::{is_covered, shown, writer};

/// The bit by which others enter a directory.
const OTHERS_ENTER: u32 = 0o001;

/// The reason why others may read a copy of a file who may not read the file itself.
pub(crate) fn why_copy_is_given(
    path: &str,
    metadata: &Metadata,
    to: &str,
    as_root: Option<bool>,
    cx: &Context,
) -> Result<Option<String>> {
    let owner = match writer(to, as_root, cx)? {
        Privilege::Root => return why_moved_is_given(path, metadata, to, cx),
        Privilege::User(owner) => owner,
        _ => cx.account()?,
    };
    let is_closed = metadata.mode & 0o004 == 0 || is_closed_above(path, to, cx);
    Ok((is_closed && owner != metadata.owner).then(|| why(path, to)))
}

/// The reason why others may read what is moved, with its owner and mode, who may not read it where it is.
pub(crate) fn why_moved_is_given(
    path: &str,
    metadata: &Metadata,
    to: &str,
    cx: &Context,
) -> Result<Option<String>> {
    let is_opened = metadata.mode & 0o044 != 0 && is_closed_above(path, to, cx);
    Ok(is_opened.then(|| why(path, to)))
}

fn why(path: &str, to: &str) -> String {
    format!("Not everybody may read {}, and others may read {} then", shown(path), shown(to))
}

/// Whether a directory above a path, and not above the new one, can't be entered by everybody.
fn is_closed_above(path: &str, to: &str, cx: &Context) -> bool {
    let closed = ClosedDirectories::above([path], cx);
    closed
        .0
        .iter()
        .any(|directory| !to.strip_prefix(directory.as_str()).is_some_and(|rest| rest.starts_with('/')))
}

/// The directories that not everybody may enter. What is in one is closed to others, whatever its own rights are.
#[derive(Default)]
pub(crate) struct ClosedDirectories(BTreeSet<String>);

impl ClosedDirectories {
    /// Looks at the directories above these paths, as far as the tools are for them. Everybody may enter the others, such as
    /// `/var`.
    pub(crate) fn above<'p>(paths: impl IntoIterator<Item = &'p str>, cx: &Context) -> Self {
        let all: BTreeSet<&str> = paths.into_iter().flat_map(above).collect();
        let all: Vec<&str> = all.into_iter().filter(|path| is_covered(path) || is_in_home(path)).collect();
        let found = cx.files_as(Privilege::Caller).stat_all(&all);
        let is_closed = |found: &Result<Option<Metadata>>| match found {
            Ok(found) => found.as_ref().is_some_and(|found| found.mode & OTHERS_ENTER == 0),
            // No grant covers it, or the account itself may not come so far, or nobody knows.
            Err(problem) => problem.code != "CAPABILITY_DENIED",
        };
        let closed = all.into_iter().zip(found).filter(|(_, found)| is_closed(found));
        Self(closed.map(|(path, _)| path.to_owned()).collect())
    }

    /// Says whether a path is in one of them. Homes are closed by default, and don't count.
    pub(crate) fn hold(&self, path: &str) -> bool {
        above(path).any(|directory| !is_home(directory) && self.0.contains(directory))
    }
}

/// The directories above a path, without the root.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').skip(1).map(|(end, _)| &path[..end])
}

fn is_home(path: &str) -> bool {
    path == "/root" || path.strip_prefix("/home/").is_some_and(|name| !name.contains('/'))
}

fn is_in_home(path: &str) -> bool {
    is_home(path) || path.starts_with("/root/") || path.starts_with("/home/")
}
