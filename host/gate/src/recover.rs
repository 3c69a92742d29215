//! What a server that was killed left half-done, as `audit recover` ends it: files are put back by the copies that their
//! plan has left, and what is left of a guard is removed.
//!
//! What somebody has changed since is left alone. What a command replaced that was seen before, as a crontab, is put back as
//! a file is; other commands aren't undone here: whoever recovers is shown their undo and decides. Recovering once more
//! does no harm: what is as it was before stays.

use std::path::Path;

use super::files::Site;
use super::guard::{self, Units};
use super::replaced;
pub use super::replaced::forget_ended;
use super::turn::Turns;
use host_audit::{ChangeBegun, FileChange, FileChangeKind, Left, left_lately};
use host_base::problem::{Category, Problem};
use host_capability::Access;
use host_capability::{PathRequest, Place, verbs_for};
use host_target::{Facts, Target};

/// What became of the files, each a sentence.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Is as it was before the change.
    pub restored: Vec<String>,
    /// Is not, and why.
    pub not_restored: Vec<String>,
}

/// A sentence for each change on this machine that a killed server has left half-done, or with its copies beside the files.
/// `log` is the audit log's directory. Nothing is looked at but the end of the log.
pub(super) async fn left_behind(log: &Path, facts: &Facts) -> Vec<String> {
    let (log, machine_id) = (log.to_owned(), facts.machine_id.clone());
    let look = move || {
        let left = left_lately(&log).unwrap_or_default();
        let here = left
            .into_iter()
            .filter(|left| machine_id.is_some() && left.begun.target.machine_id == machine_id);
        here.map(|left| said(&left)).collect()
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

/// What is left, and what ends it.
pub fn said(left: &Left) -> String {
    let ChangeBegun { id, tool, .. } = &left.begun;
    match left.is_made {
        true => format!(
            "a server that was killed has left copies of the files of a change by {tool}: `linux-sysadmin audit recover \
             {id}` removes them"
        ),
        false => format!(
            "a change by {tool} was left half-done on this machine: `linux-sysadmin audit recover {id}` ends it"
        ),
    }
}

/// No plan touches the target while this is held. `log` is the audit log's directory.
pub async fn turn(log: &Path, target: &Target) -> Result<impl Sized + use<>, Problem> {
    Turns::of_this_account(log).take(target).await
}

/// Removes what a guard has left on the target; gives whether it has undone the change. A problem where it still may:
/// then the target does that by itself.
pub async fn remove_guard(target: &Target, begun: &ChangeBegun) -> Result<bool, Problem> {
    let (units, left) = Units::look(target, &begun.id, begun.undo.len()).await?;
    match left {
        guard::Left::Nothing => Ok(false),
        guard::Left::Armed => {
            let message = format!(
                "{}.timer is running: the target undoes this change by itself when its time is over; recover then",
                units.name
            );
            Err(Problem::new("GUARD_ARMED", Category::State, message))
        }
        guard::Left::Fired | guard::Left::Idle => {
            units.remove().await;
            Ok(left == guard::Left::Fired)
        }
    }
}

/// Puts back what commands replaced, and then the files, the latest first. `log` is the audit log's directory. What has been changed
/// since the plan is put back only by `force`.
pub async fn recover(log: &Path, target: &Target, begun: &ChangeBegun, force: bool) -> Recovered {
    let mut recovered = Recovered::default();
    for said in replaced::restore(log, target, begun, force).await {
        match said {
            Ok(what) => recovered.restored.push(what),
            Err(why) => recovered.not_restored.push(why),
        }
    }
    for (number, file) in begun.files.iter().enumerate().rev() {
        let put_back = async { put_back(target, file, &site(number, file)?, force).await };
        match put_back.await {
            Ok(what) => recovered.restored.push(format!("{} {what}", file.path)),
            Err(problem) => recovered.not_restored.push(format!("{}: {}", file.path, problem.message)),
        }
    }
    recovered
}

/// Removes the copies of a change that was made to its end; gives the directories that are gone.
pub async fn remove_copies(target: &Target, begun: &ChangeBegun) -> Result<Vec<String>, Problem> {
    let mut removed = Vec::new();
    for (number, file) in begun.files.iter().enumerate() {
        let site = site(number, file)?;
        if file.kind != FileChangeKind::MakeDirectory && site.is_staged(target).await? {
            site.tidy(target).await?;
            removed.push(site.staging);
        }
    }
    Ok(removed)
}

async fn put_back(
    target: &Target,
    file: &FileChange,
    site: &Site,
    force: bool,
) -> Result<&'static str, Problem> {
    if file.kind == FileChangeKind::MakeDirectory {
        return match site.is_there(target).await? {
            true => site.remove_directory(target).await.map(|()| "is removed"),
            false => Ok("isn't there, as before"),
        };
    }
    let (is_staged, is_kept) = (site.is_staged(target).await?, site.is_kept(target).await?);
    let now = site.now(target).await?;
    // Nothing, where there was or is to be nothing.
    let (is_as_before, is_as_after) = (now == file.sha256_before, now == file.sha256_after);
    let what = if is_kept {
        if !is_as_before && !is_as_after && !force {
            return Err(changed(&format!("the former one is {}", site.kept())));
        }
        // Also where the contents are the same: the file itself, with its owner, mode and times.
        site.put_back(target).await?;
        "is put back"
    } else if is_as_before {
        if file.existed { "is as it was before" } else { "isn't there, as before" }
    } else if file.existed {
        if is_as_after {
            let message = format!(
                "its copy isn't in {} any more; put the former file there by hand, and recover again",
                file.staging
            );
            return Err(Problem::new("COPY_MISSING", Category::NotFound, message));
        }
        "is as somebody else left it: the change didn't come to it"
    } else if is_staged && is_as_after || force {
        site.remove_new(target).await?;
        "is removed"
    } else {
        return Err(changed("it wasn't there before the change"));
    };
    site.tidy(target).await?;
    Ok(what)
}

fn changed(former: &str) -> Problem {
    let message = format!("somebody has changed it since; {former}; --force restores that all the same");
    Problem::new("FILE_CHANGED", Category::State, message)
}

fn site(number: usize, file: &FileChange) -> Result<Site, Problem> {
    Site::recorded(&file.path, &file.staging, access(file)?, number)
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

#[cfg(test)]
mod tests;
