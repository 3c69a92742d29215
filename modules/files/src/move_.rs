//! `file_move`: gives a file or a directory another path on the same file system.

use linux_sysadmin_sdk::{Category, prelude::*};

use crate::find::{Kind, tree};
use crate::original;
use crate::places::{check, look, shown};
use crate::plan::{Done, Entry, Plan, Work, must_be_free, must_have_directory};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct MoveArgs {
    /// A file or directory
    path: String,
    /// Where nothing is yet
    to: String,
    /// Default: as the path needs
    as_root: Option<bool>,
}

/// The most files of a directory that is moved, and how many of them are looked at at once.
const MOST: usize = 5000;
const AT_ONCE: usize = 300;

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
    if found.is_dir {
        must_hold_no_secret(&path, cx)?;
    }
    must_be_free(&to, cx)?;
    must_have_directory(&to, cx)?;
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

/// Refuses to move a directory with files that may not be read. Elsewhere nothing would tell that they are secrets.
fn must_hold_no_secret(path: &str, cx: &Context) -> Result<()> {
    let found = tree(path, cx)?;
    let files = found.items.iter().filter(|item| item.kind == Kind::File);
    let files: Vec<String> = files.map(|item| format!("{path}/{}", item.path)).collect();
    if found.is_cut || files.len() > MOST {
        let message =
            format!("{} holds more than {MOST} files, which are all looked at before a move", shown(path));
        return Err(Problem::new("TOO_MANY_FILES", Category::Resource, message));
    }
    // Profiles name files with secrets of their services.
    let _ = cx.detected();
    for files in files.chunks(AT_ONCE) {
        let verdicts = look(path, cx, |privilege| Ok(cx.files_as(privilege).stat_all(files)))?;
        for (file, verdict) in files.iter().zip(verdicts) {
            if let Err(problem) = verdict
                && problem.code == "CAPABILITY_DENIED"
            {
                let message = format!(
                    "{} holds {}, which may not be read and so not be moved",
                    shown(path),
                    shown(file)
                );
                return Err(Problem::new("SECRET_INSIDE", Category::Denied, message));
            }
        }
    }
    Ok(())
}
