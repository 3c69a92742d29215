//! `file_move`: gives a file or a directory another path on the same file system.

use linux_sysadmin_sdk::{Category, prelude::*};

use crate::original;
use crate::places::{check, shown};
use crate::plan::{Done, Entry, Plan, Work, must_be_free, must_have_directory};
use crate::private::must_stay_private;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct MoveArgs {
    /// Absolute path
    path: String,
    /// New path
    to: String,
    /// Default: if needed
    as_root: Option<bool>,
}

pub(crate) fn file_move(args: MoveArgs, cx: &Context) -> Result<Noted<Done>> {
    let MoveArgs { path, to, as_root } = args;
    check(&path, cx)?;
    check(&to, cx)?;
    let found = original::metadata(&path, cx)?.ok_or_else(|| original::no_such(&path))?;
    if found.is_symlink {
        return Err(original::is_symlink(&path, cx));
    }
    if to.strip_prefix(&path).is_some_and(|rest| rest.starts_with('/')) {
        let message = format!("{} is inside {}", shown(&to), shown(&path));
        return Err(Problem::new("INTO_ITSELF", Category::Validation, message));
    }
    must_be_free(&to, cx)?;
    must_have_directory(&to, cx)?;
    must_stay_private(&path, &to, &found, cx)?;
    let entry = Entry { path: path.clone(), change: "moved", to: Some(to.clone()), ..Entry::default() };
    Plan {
        verb: "move",
        summary: format!("Move {} to {}", shown(&path), shown(&to)),
        existing: vec![path.clone()],
        works: vec![Work::Move { from: path, to }],
        entries: vec![entry],
        as_root,
        ..Plan::default()
    }
    .apply(cx)
}
