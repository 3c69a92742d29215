//! Files of a change that nobody finished: put back by the copies that its plan has left, as `audit recover` does it.
//!
//! A server that was killed leaves what it had done and the copies beside it. What somebody has changed since is left
//! alone. Commands aren't undone here: whoever recovers is shown their undo and decides.

use super::files::Site;
use crate::audit::{ChangeBegun, FileChange, FileChangeKind};
use crate::capability::{PathRequest, Place, verbs_for};
use crate::problem::{Category, Problem};
use crate::target::{Access, Target};

/// What became of the files, each a sentence.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Is as it was before the change.
    pub restored: Vec<String>,
    /// Is not, and why.
    pub not_restored: Vec<String>,
}

/// Puts the files back, the latest first. What has been changed since the plan is put back only by `force`.
pub async fn recover(target: &Target, begun: &ChangeBegun, force: bool) -> Recovered {
    let mut recovered = Recovered::default();
    for file in begun.files.iter().rev() {
        match put_back(target, file, force).await {
            Ok(what) => recovered.restored.push(format!("{} {what}", file.path)),
            Err(problem) => recovered.not_restored.push(format!("{}: {problem}", file.path)),
        }
    }
    recovered
}

async fn put_back(target: &Target, file: &FileChange, force: bool) -> Result<&'static str, Problem> {
    let site = Site::recorded(&file.path, &file.staging, access(file)?);
    if file.kind == FileChangeKind::MakeDirectory {
        return match site.is_there(target).await? {
            true => site.remove_directory(target).await.map(|()| "is removed"),
            false => Ok("isn't there, as before"),
        };
    }
    let now = site.now(target).await?;
    let is_ours =
        |now: &String| Some(now) == file.sha256_after.as_ref() || Some(now) == file.sha256_before.as_ref();
    let untouched = now.as_ref().is_none_or(is_ours);
    if !untouched && !force {
        let message =
            "it has been changed since; see both, and use --force to put the former one back all the same";
        return Err(Problem::new("FILE_CHANGED", Category::State, message));
    }
    let is_kept = site.is_kept(target).await?;
    let what = match (file.existed, is_kept) {
        (true, true) => {
            site.put_back(target).await?;
            "is put back"
        }
        (true, false) if now == file.sha256_before && now.is_some() => "is as it was before",
        (true, false) => {
            let message = format!("its copy isn't in {} any more", file.staging);
            return Err(Problem::new("COPY_MISSING", Category::NotFound, message));
        }
        (false, _) if now.is_some() => {
            site.remove_new(target).await?;
            "is removed"
        }
        (false, _) => "isn't there, as before",
    };
    site.tidy(target).await?;
    Ok(what)
}

/// For this file and its copies, and for nothing else.
fn access(file: &FileChange) -> Result<Access, Problem> {
    let wrong = |why: String| Problem::new("INVALID_RECORD", Category::Validation, why);
    let privilege = file.privilege.clone();
    let request = PathRequest {
        glob: file.path.clone(),
        write: true,
        privilege: privilege.clone(),
        place: Place::Target,
        reason: String::new(),
    };
    let verbs = verbs_for(&request).map_err(|error| wrong(error.to_string()))?;
    Ok(Access { privilege, verbs: verbs.into_iter().map(Into::into).collect() })
}
