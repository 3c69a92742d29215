//! Ends a change that a killed server left half-done, for `audit recover`. It puts files back from the copies that the
//! plan made, and removes what is left of a guard.
//!
//! Files that somebody has changed since are left alone. Text that a command replaced and that the host had seen
//! before, such as a crontab, is put back like a file. Other commands are not undone here: `audit recover` shows their
//! undo, and a person decides. A second recovery does no harm: it leaves files alone that are already as they were.

use std::path::Path;

use super::files::{Site, Whereabouts, is_same};
use super::guard::{self, GuardUnits};
use super::replaced;
pub use super::replaced::forget_ended;
use super::target_lock::TargetLocks;
use host_audit::{ChangeBegun, FileAttributes, FileChange, FileChangeKind, Leftover, recent_leftovers};
use host_base::problem::{Category, Problem};
use host_capability::Access;
use host_capability::{PathRequest, Place, verbs_for, verbs_for_moves};
use host_target::{Facts, Target};

/// The results for the files, each as a sentence.
#[derive(Debug, Default)]
pub struct Recovered {
    /// The things that are as they were before the change.
    pub restored: Vec<String>,
    /// The things that are not, with the reasons.
    pub not_restored: Vec<String>,
}

/// A sentence for each change to this machine that a killed server has left half-done or without removing its copies.
/// `log` is the audit log's directory. Only the end of the log is read.
pub(super) async fn left_behind(log: &Path, facts: &Facts) -> Vec<String> {
    let (log, machine_id) = (log.to_owned(), facts.machine_id.clone());
    let look = move || {
        let left = recent_leftovers(&log).unwrap_or_default();
        let here = left
            .into_iter()
            .filter(|left| machine_id.is_some() && left.begun.target.machine_id == machine_id);
        here.map(|left| said(&left)).collect()
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

/// A sentence about a change that was left, and the command that ends it.
pub fn said(left: &Leftover) -> String {
    let ChangeBegun { id, tool, .. } = &left.begun;
    match left.is_done {
        true => format!(
            "a server that was killed has left copies of the files of a change by {tool}: `linux-sysadmin audit recover \
             {id}` removes them"
        ),
        false => format!(
            "a change by {tool} was left half-done on this machine: `linux-sysadmin audit recover {id}` ends it"
        ),
    }
}

/// Locks the target: no plan changes it while the result is held. `log` is the audit log's directory.
pub async fn lock_target(log: &Path, target: &Target) -> Result<impl Sized + use<>, Problem> {
    TargetLocks::of_this_account(log).acquire(target).await
}

/// Removes a guard's units from the target. The result is true where the guard has undone the change, and a problem
/// where it still will, since the target does that by itself.
pub async fn remove_guard(target: &Target, begun: &ChangeBegun) -> Result<bool, Problem> {
    let (units, left) = GuardUnits::look(target, &begun.id, begun.undo.len()).await?;
    match left {
        guard::GuardState::Nothing => Ok(false),
        guard::GuardState::Armed => {
            let message = format!(
                "{}.timer is running: the target undoes this change by itself when its time is over; recover then",
                units.name
            );
            Err(Problem::new("GUARD_ARMED", Category::State, message))
        }
        guard::GuardState::Fired | guard::GuardState::Idle => {
            units.remove().await;
            Ok(left == guard::GuardState::Fired)
        }
    }
}

/// Puts back the text that commands replaced, and then the files, the latest first. `log` is the audit log's directory.
/// With `force`, it also overwrites what somebody has changed since the plan.
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

/// Removes the copies of a change that was completed, and the directories that it has emptied. The result lists the
/// directories that were removed.
pub async fn remove_copies(target: &Target, begun: &ChangeBegun) -> Result<Vec<String>, Problem> {
    let mut removed = Vec::new();
    for (number, file) in begun.files.iter().enumerate() {
        let site = site(number, file)?;
        // The very directory of the record is there only where it was left for its copies.
        if file.kind == FileChangeKind::RemoveDirectory
            && file.before.is_some()
            && site.attributes_now(target).await? == file.before
        {
            site.remove_directory(target).await?;
            removed.push(site.path);
            continue;
        }
        if has_copies(file) && site.is_staged(target).await? {
            site.tidy(target).await?;
            removed.push(site.staging);
        }
    }
    Ok(removed)
}

/// Whether the change makes copies of the file beside it.
fn has_copies(file: &FileChange) -> bool {
    matches!(file.kind, FileChangeKind::Write | FileChangeKind::Remove)
}

async fn put_back(
    target: &Target,
    file: &FileChange,
    site: &Site,
    force: bool,
) -> Result<&'static str, Problem> {
    match file.kind {
        FileChangeKind::Write | FileChangeKind::Remove => {}
        FileChangeKind::MakeDirectory => {
            return match site.is_there(target).await? {
                true => site.remove_directory(target).await.map(|()| "is removed"),
                false => Ok("isn't there, as before"),
            };
        }
        FileChangeKind::Move => return move_back(target, file, site, force).await,
        FileChangeKind::SetAttributes => return set_back(target, file, site, force).await,
        FileChangeKind::RemoveDirectory => return make_again(target, file, site, force).await,
    }
    let (is_staged, is_kept) = (site.is_staged(target).await?, site.is_kept(target).await?);
    let now = site.now(target).await?;
    // Both are none where no file was or is to be there.
    let (is_as_before, is_as_after) = (now == file.sha256_before, now == file.sha256_after);
    let what = if is_kept {
        if !is_as_before && !is_as_after && !force {
            return Err(changed(&format!("the former one is {}", site.kept())));
        }
        // The former file is put back even where the contents are the same, because its owner, mode and times may
        // differ.
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
        "is as somebody else left it: the change did not reach it"
    } else if is_staged && is_as_after || force {
        site.remove_new(target).await?;
        "is removed"
    } else {
        return Err(changed("there was no such file before the change"));
    };
    site.tidy(target).await?;
    Ok(what)
}

async fn move_back(
    target: &Target,
    file: &FileChange,
    site: &Site,
    force: bool,
) -> Result<&'static str, Problem> {
    let (id, to) = (site.file_id(), file.to.as_deref().unwrap_or_default());
    match site.whereabouts(target).await? {
        Whereabouts { old, .. } if id.is_some() && old == id => Ok("is as it was before"),
        Whereabouts { old: None, new: Some(new) } if force || id == Some(new) => {
            site.move_back(target, new).await.map(|()| "is moved back")
        }
        Whereabouts { old: None, new: Some(_) } => {
            Err(changed(&format!("what is at {to} is something else")))
        }
        Whereabouts { old: Some(_), new } if id.is_some() && new == id => {
            let message = format!("something else is there by now; what was there before is at {to}");
            Err(Problem::new("FILE_CHANGED", Category::State, message))
        }
        Whereabouts { .. } => {
            let message = format!("it is neither there nor at {to}: somebody has moved or removed it since");
            Err(Problem::new("FILE_CHANGED", Category::State, message))
        }
    }
}

async fn set_back(
    target: &Target,
    file: &FileChange,
    site: &Site,
    force: bool,
) -> Result<&'static str, Problem> {
    let (Some(before), Some(after)) = (&file.before, &file.after) else { return Err(incomplete()) };
    let Some(now) = site.attributes_now(target).await? else {
        let message = "it isn't there any more: somebody has moved or removed it since";
        return Err(Problem::new("FILE_CHANGED", Category::State, message));
    };
    if now == *before {
        return Ok("is as it was before");
    }
    // The change may have come only as far as the new owner, with whom a file loses its set-id bits.
    let is_ours = is_same(&now, before)
        && [&before.owner, &after.owner].contains(&&now.owner)
        && [&before.group, &after.group].contains(&&now.group)
        && [before.mode, before.mode & !0o6000, after.mode].contains(&now.mode);
    if now.is_directory != before.is_directory || !is_ours && !force {
        let FileAttributes { mode, owner, group, .. } = before;
        return Err(changed(&format!("before, it had mode {mode:04o} and belonged to {owner}:{group}")));
    }
    let before = FileAttributes { device: now.device, inode: now.inode, ..before.clone() };
    site.put(target, &now, &before).await.map(|()| "has its former mode, owner and group again")
}

async fn make_again(
    target: &Target,
    file: &FileChange,
    site: &Site,
    force: bool,
) -> Result<&'static str, Problem> {
    let Some(before) = &file.before else { return Err(incomplete()) };
    if site.make_again(target).await? {
        return Ok("is made again");
    }
    let rights = |of: &FileAttributes| (of.is_directory, of.mode, of.owner.clone(), of.group.clone());
    match site.attributes_now(target).await? {
        Some(now) if rights(&now) == rights(before) => Ok("is there, as before"),
        Some(now) if now.is_directory && force => {
            site.put_former_attributes(target).await.map(|()| "has its former mode, owner and group again")
        }
        _ => Err(changed("something else is there by now")),
    }
}

fn incomplete() -> Problem {
    Problem::new("INVALID_RECORD", Category::Validation, "the record doesn't say what was there before")
}

fn changed(former: &str) -> Problem {
    let message = format!("somebody has changed it since; {former}; --force restores that all the same");
    Problem::new("FILE_CHANGED", Category::State, message)
}

fn site(number: usize, file: &FileChange) -> Result<Site, Problem> {
    Site::recorded(file, access(file)?, number)
}

/// The rights for this file and its copies only.
fn access(file: &FileChange) -> Result<Access, Problem> {
    let wrong = |why: String| Problem::new("INVALID_RECORD", Category::Validation, why);
    let privilege = file.privilege.clone();
    let request = |path: &String| PathRequest {
        glob: path.clone(),
        write: true,
        privilege: privilege.clone(),
        place: Place::Target,
        reason: String::new(),
    };
    let mut verbs = verbs_for(&request(&file.path)).map_err(|error| wrong(error.to_string()))?;
    if let Some(to) = &file.to {
        for more in [verbs_for(&request(to)), verbs_for_moves(&request(&file.path), &request(to))] {
            verbs.extend(more.map_err(|error| wrong(error.to_string()))?);
        }
    }
    Ok(Access { privilege, verbs: verbs.into_iter().map(Into::into).collect() })
}

#[cfg(test)]
mod tests;
