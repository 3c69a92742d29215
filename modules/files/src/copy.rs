//! `file_copy`: copies a file with its mode, and as root with its owner.

use linux_sysadmin_sdk::{Privilege, prelude::*};

use crate::closed::why_copy_is_given;
use crate::original;
use crate::places::{check, shown, writer};
use crate::plan::{Done, Entry, Plan, Work, must_be_free, must_have_directory};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CopyArgs {
    /// File to copy, absolute
    path: String,
    /// New path
    to: String,
    /// Default: if needed
    as_root: Option<bool>,
}

pub(crate) fn file_copy(args: CopyArgs, cx: &Context) -> Result<Noted<Done>> {
    let CopyArgs { path, to, as_root } = args;
    check(&path, cx)?;
    check(&to, cx)?;
    let before = original::must_read(&path, cx)?;
    must_be_free(&to, cx)?;
    must_have_directory(&to, cx)?;
    let metadata = before.metadata;
    let given = why_copy_is_given(&path, &metadata, &to, as_root, cx)?;
    let keeps_owner = matches!(writer(&to, as_root, cx)?, Privilege::Root);
    let entry = Entry {
        path: path.clone(),
        change: "copied",
        to: Some(to.clone()),
        bytes: Some(before.contents.len()),
        mode: Some(format!("{:04o}", metadata.mode)),
        ..Entry::default()
    };
    let work = Work::Write {
        path: to.clone(),
        contents: before.contents,
        mode: Some(metadata.mode),
        owner: keeps_owner.then_some((metadata.owner, metadata.group)),
    };
    Plan {
        verb: "copy",
        summary: format!("Copy {} to {}", shown(&path), shown(&to)),
        works: vec![work],
        entries: vec![entry],
        as_root,
        given: given.into_iter().collect(),
        ..Plan::default()
    }
    .apply(cx)
}
