//! `file_write`: writes a whole file, a new one or over one that is there.

use linux_sysadmin_sdk::accounts::{check_group, check_user};
use linux_sysadmin_sdk::{Category, prelude::*};

use crate::lines::{Lines, REDACTED};
use crate::original::{self, LARGEST, Original, sha256};
use crate::places::{check, shown};
use crate::plan::{Done, Entry, Plan, Work, mode, must_have_directory, shown_hash, unchanged};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct WriteArgs {
    /// File, absolute
    path: String,
    /// The whole new text
    #[schemars(length(max = LARGEST))]
    contents: String,
    /// Its hash as read; refused if changed
    sha256: Option<String>,
    /// Octal, as 0640
    mode: Option<String>,
    /// Its owner
    owner: Option<String>,
    /// Its group
    group: Option<String>,
    /// Default: if needed
    as_root: Option<bool>,
}

pub(crate) fn file_write(args: WriteArgs, cx: &Context) -> Result<Noted<Done>> {
    let path = args.path;
    check(&path, cx)?;
    let bits = mode(args.mode.as_deref())?;
    let before = original::read(&path, cx)?;
    let owner = owner(args.owner, args.group, before.as_ref())?;
    let is_secret = before.as_ref().is_some_and(|before| has_secrets(before, cx));
    if is_secret && args.sha256.is_some() {
        let message =
            format!("{} holds a secret, so that its hash is neither told nor compared", shown(&path));
        return Err(
            Problem::validation("HOLDS_SECRET", message).remedy("Leave sha256 out, or use file_patch")
        );
    }
    must_be_as_read(&path, args.sha256.as_deref(), before.as_ref())?;
    if args.contents.contains(REDACTED) && is_secret {
        let message =
            format!("{} holds a secret, which the new text would replace by its redacted form", shown(&path));
        return Err(Problem::validation("REDACTED_TEXT", message)
            .remedy("Change the other lines by file_patch, which leaves lines with secrets as they are"));
    }
    let contents = args.contents.into_bytes();
    let is_same = before.as_ref().is_some_and(|before| {
        let own = &before.metadata;
        // Whether a guess at a secret is right isn't told.
        !is_secret
            && before.contents == contents
            && bits.is_none_or(|bits| bits == own.mode)
            && owner.as_ref().is_none_or(|(owner, group)| *owner == own.owner && *group == own.group)
    });
    if is_same {
        return Ok(unchanged(format!("{} has these contents already: nothing was changed", shown(&path))));
    }
    let change = if before.is_some() { "modified" } else { "created" };
    if before.is_none() {
        must_have_directory(&path, cx)?;
    }
    let entry = Entry {
        path: path.clone(),
        change,
        bytes: Some(contents.len()),
        mode: bits.map(|bits| format!("{bits:04o}")),
        sha256: shown_hash(&contents, cx),
        ..Entry::default()
    };
    let verb = if before.is_some() { "Replace" } else { "Create" };
    Plan {
        verb: "write",
        summary: format!("{verb} {}", shown(&path)),
        existing: before.iter().map(|_| path.clone()).collect(),
        works: vec![Work::Write { path, contents, mode: bits, owner }],
        entries: vec![entry],
        as_root: args.as_root,
        ..Plan::default()
    }
    .apply(cx)
}

/// The owner and the group, where either is asked for. A new file takes the owner's name for its group.
pub(crate) fn owner(
    owner: Option<String>,
    group: Option<String>,
    before: Option<&Original>,
) -> Result<Option<(String, String)>> {
    owner.as_deref().map(check_user).transpose()?;
    group.as_deref().map(check_group).transpose()?;
    let known = before.map(|before| &before.metadata);
    Ok(match (owner, group) {
        (None, None) => None,
        (Some(owner), Some(group)) => Some((owner, group)),
        (Some(owner), None) => {
            let group = known.map_or_else(|| owner.clone(), |known| known.group.clone());
            Some((owner, group))
        }
        (None, Some(group)) => {
            Some((known.map_or_else(|| "root".to_owned(), |known| known.owner.clone()), group))
        }
    })
}

fn must_be_as_read(path: &str, expected: Option<&str>, before: Option<&Original>) -> Result<()> {
    let Some(expected) = expected else { return Ok(()) };
    let now = before.map(|before| sha256(&before.contents));
    if now.as_deref() == Some(&expected.to_ascii_lowercase()) {
        return Ok(());
    }
    let what = if now.is_some() { "has other contents than the hash says" } else { "isn't there any more" };
    let message = format!("{} {what}: nothing was written", shown(path));
    Err(Problem::new("FILE_CHANGED", Category::State, message)
        .remedy(format!("Read it again: file_read path={}", shown(path))))
}

fn has_secrets(before: &Original, cx: &Context) -> bool {
    Lines::new(&before.contents).is_some_and(|lines| lines.with_secrets(cx).has_hidden())
}
