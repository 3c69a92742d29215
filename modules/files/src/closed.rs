//! Says whether a copy or a move gives others a file that not everybody may read.

use linux_sysadmin_sdk::{Privilege, prelude::*};

use crate::original;
use crate::places::{UNTRUSTED, shown, writer};

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
    let is_closed = metadata.mode & 0o004 == 0 || is_closed_above(path, to, cx)?;
    Ok((is_closed && owner != metadata.owner).then(|| why(path, to)))
}

/// The reason why others may read what is moved, with its owner and mode, who may not read it where it is.
pub(crate) fn why_moved_is_given(
    path: &str,
    metadata: &Metadata,
    to: &str,
    cx: &Context,
) -> Result<Option<String>> {
    let is_opened = metadata.mode & 0o044 != 0 && is_closed_above(path, to, cx)?;
    Ok(is_opened.then(|| why(path, to)))
}

fn why(path: &str, to: &str) -> String {
    format!("Not everybody may read {}, and others may read {} then", shown(path), shown(to))
}

/// Whether a directory above a path, and not above the new one, can't be entered by everybody.
fn is_closed_above(path: &str, to: &str, cx: &Context) -> Result<bool> {
    for (end, _) in path.match_indices('/').skip(1) {
        let (directory, inside) = (&path[..end], &path[..=end]);
        if to.starts_with(inside) {
            continue;
        }
        match original::metadata(directory, cx) {
            Ok(Some(found)) if found.is_dir && found.mode & 0o001 == 0 => return Ok(true),
            // No grant covers a directory such as `/var`, which everybody may enter. What others could redirect is no
            // place of root's.
            Err(problem) if problem.code == "CAPABILITY_DENIED" || problem.code == UNTRUSTED => {}
            found => drop(found?),
        }
    }
    Ok(false)
}
