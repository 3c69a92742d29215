//! `file_list`: what is in a directory, with sizes and owners.

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::time::rfc3339;

use crate::find::{Item, Kind, MOST, Top, depth, must_be_directory, to_depth, top};
use crate::original;
use crate::places::{check, is_named, shown};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListArgs {
    /// Directory, absolute
    path: String,
    /// Levels; default 1
    depth: Option<u32>,
    /// Names, as *.conf
    glob: Option<String>,
    /// Default: name
    #[serde(default)]
    sort: Sort,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Sort {
    #[default]
    Name,
    Size,
    Modified,
}

#[derive(Debug, Serialize)]
pub(crate) struct Listed {
    /// The path below the directory.
    path: String,
    /// The kind of the entry. A plain file has none.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    mode: String,
    owner: String,
    modified: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    leads_to: Option<String>,
}

pub(crate) fn file_list(args: ListArgs, cx: &Context) -> Result<Listing<Listed>> {
    check(&args.path, cx)?;
    let depth = depth(args.depth, 1)?;
    let mut path = args.path;
    let mut notes = Vec::new();
    if let Top::Symlink = top(&path, cx)? {
        let target = original::leads_to(&path, cx).ok_or_else(|| original::no_such(&path))?;
        check(&target, cx)?;
        notes.push(format!("{} leads to {}", shown(&path), shown(&target)));
        path = target;
    }
    must_be_directory(&path, cx)?;
    let tree = to_depth(&path, depth, cx)?;
    if tree.is_cut {
        notes.push(format!(
            "there are more than {MOST} entries, and only these were looked at: ask for a smaller depth"
        ));
    }
    let mut items = tree.items;
    if let Some(glob) = &args.glob {
        items.retain(|item| {
            is_named(glob, &item.path) || is_named(glob, item.path.rsplit('/').next().unwrap_or(&item.path))
        });
    }
    match args.sort {
        Sort::Name => items.sort_by(|a, b| a.path.cmp(&b.path)),
        Sort::Size => items.sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.path.cmp(&b.path))),
        Sort::Modified => items.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path))),
    }
    if items.len() > 20 {
        notes.push(counts(&items));
    }
    Ok(Listing { items: items.into_iter().map(listed).collect(), total: None, notes })
}

/// The numbers of all entries, which tell what a cut list leaves out.
fn counts(items: &[Item]) -> String {
    let of = |kind: Kind| items.iter().filter(|item| item.kind == kind).count();
    let bytes: u64 = items.iter().filter(|item| item.kind == Kind::File).map(|item| item.size).sum();
    format!(
        "{} files of {bytes} bytes, {} directories, {} symlinks",
        of(Kind::File),
        of(Kind::Directory),
        of(Kind::Symlink)
    )
}

fn listed(item: Item) -> Listed {
    Listed {
        kind: (item.kind != Kind::File).then(|| item.kind.name()),
        size: (item.kind == Kind::File).then_some(item.size),
        mode: format!("{:04o}", item.mode),
        owner: format!("{}:{}", item.owner, item.group),
        modified: rfc3339(item.modified),
        leads_to: item.target,
        path: item.path,
    }
}
