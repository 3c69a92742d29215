//! `linux-sysadmin audit recover`: recovers a change that a server left half-done, because it was killed or lost its target.
//! It connects to the target that the record names, and checks that it is the same machine.

use std::io::Write;
use std::path::Path;

use clap::Args;

use super::format;
use crate::cli::text::wrap;
use crate::config::{self, Config};
use crate::targets;
use host_audit::{
    self, AuditLog, ChangeBegun, ChangeRecovered, Durability, Event, FileChangeKind, Liveness, Outcome,
    Snapshot, TargetUsed, Unfinished,
};
use host_gate::recover::{self, Recovered};
use host_target::{Facts, Target};
use host_text::visible::one_line;

#[derive(Args)]
pub(super) struct Recover {
    /// The change, as `audit show --unfinished` names it; without it what is unfinished is listed
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Put the former files back also where somebody has changed them since
    #[arg(long, requires = "id")]
    force: bool,
}

/// The state of a change by the log.
enum ChangeState {
    Unfinished(Box<Unfinished>),
    /// The change was made to its end.
    Done(Box<ChangeBegun>),
    /// The change can't be recovered, for this reason.
    NotRecoverable(String),
}

impl Recover {
    pub(super) async fn run(
        &self,
        directory: &Path,
        out: &mut impl Write,
        err: &mut impl Write,
    ) -> anyhow::Result<bool> {
        let Some(id) = &self.id else { return list(directory, out) };
        let done = self.recover(id, directory, out).await?;
        if let Err(refused) = &done {
            writeln!(err, "{}", wrap(&one_line(&format!("error: change {id} {refused}")), "", "  "))?;
        }
        Ok(done.unwrap_or(false))
    }

    /// Recovers a change. Says whether everything is as it was before the change, or in words why nothing was done.
    async fn recover(
        &self,
        id: &str,
        directory: &Path,
        out: &mut impl Write,
    ) -> anyhow::Result<Result<bool, String>> {
        // The log is read before connecting to the target, and again while the target is locked.
        let used = match change_state(directory, id)? {
            ChangeState::NotRecoverable(why) => return Ok(Err(why)),
            ChangeState::Done(begun) => begun.target,
            ChangeState::Unfinished(change) => change.begun.target,
        };
        // A configuration that can't be read must not prevent a recovery.
        let config = config::load(false).map(|loaded| loaded.config).unwrap_or_default();
        let target = match targets::target_of_record(&config, &used.name) {
            Ok(target) => target,
            Err(why) => return Ok(Err(format!("was made to a target that can't be named: {why}"))),
        };
        let done = self.recover_on(&target, id, directory, &config, out).await;
        target.close().await;
        done
    }

    async fn recover_on(
        &self,
        target: &Target,
        id: &str,
        directory: &Path,
        config: &Config,
        out: &mut impl Write,
    ) -> anyhow::Result<Result<bool, String>> {
        let facts = match target.facts().await {
            Ok(facts) => facts,
            Err(problem) => return Ok(Err(format!("can't be recovered now: {}", problem.message))),
        };
        let host_key = target.host_key().await;
        let elsewhere = |begun: &ChangeBegun| elsewhere(&begun.target, &facts, host_key.as_deref());
        if let ChangeState::Unfinished(change) = change_state(directory, id)?
            && let Some(why) = elsewhere(&change.begun)
        {
            return Ok(Err(why));
        }
        let _lock = match recover::lock_target(directory, target).await {
            Ok(lock) => lock,
            Err(problem) => return Ok(Err(format!("can't be recovered now: {}", problem.message))),
        };
        let begun = match change_state(directory, id)? {
            ChangeState::NotRecoverable(why) => return Ok(Err(why)),
            ChangeState::Done(begun) if elsewhere(&begun).is_some() => return Ok(Err(ENDED.to_owned())),
            ChangeState::Done(begun) => return remove_copies(target, &begun, out).await,
            ChangeState::Unfinished(change) => match elsewhere(&change.begun) {
                Some(why) => return Ok(Err(why)),
                None => change.begun,
            },
        };
        let has_fired = match recover::remove_guard(target, &begun).await {
            Ok(has_fired) => has_fired,
            Err(problem) => return Ok(Err(format!("is not recovered: {}", problem.message))),
        };
        if has_fired {
            writeln!(out, "the guard of the change has undone it on the target; its units are removed")?;
        }
        let recovered = recover::recover(directory, target, &begun, self.force).await;
        tell(&begun, &recovered, has_fired, out)?;
        let Recovered { restored, not_restored } = recovered;
        let all_restored = not_restored.is_empty();
        let recovered = ChangeRecovered {
            id: id.to_owned(),
            by: facts.user.clone(),
            restored: restored.into(),
            not_restored: not_restored.into(),
        };
        let log = AuditLog::new(directory.to_owned(), config.audit.settings());
        log.append(&Event::ChangeRecovered(recovered), Durability::Synced)?;
        Ok(Ok(all_restored))
    }
}

fn list(directory: &Path, out: &mut impl Write) -> anyhow::Result<bool> {
    let unfinished = host_audit::unfinished(directory)?;
    let ids: Vec<&str> = unfinished.iter().map(|change| change.begun.id.as_str()).collect();
    recover::forget_ended(directory, &ids);
    if unfinished.is_empty() {
        writeln!(out, "no change is unfinished")?;
    }
    for left in host_audit::recent_leftovers(directory)?.iter().filter(|left| left.is_done) {
        writeln!(out, "{}", wrap(&one_line(&recover::said(left)), "", "  "))?;
    }
    for change in unfinished {
        let indented = |text: &str| wrap(text, "          ", "          ");
        writeln!(out, "{}", format::row(&change.record))?;
        writeln!(out, "{}", indented(&format::life(change.liveness(), &change.begun.id)))?;
        for file in &change.begun.files {
            let kind = match file.kind {
                FileChangeKind::Write => "write",
                FileChangeKind::Remove => "remove",
                FileChangeKind::MakeDirectory => "make directory",
                FileChangeKind::Move => "move",
                FileChangeKind::SetAttributes => "set attributes of",
                FileChangeKind::RemoveDirectory => "remove directory",
            };
            let to = file.to.as_deref().map(|to| format!(" to {to}")).unwrap_or_default();
            writeln!(out, "          - {kind} {}", one_line(&format!("{}{to}", file.path)))?;
        }
    }
    Ok(true)
}

const ENDED: &str = "has ended: nothing is to be recovered";

/// Reads from the log what became of the change, and whether it may be recovered now.
fn change_state(directory: &Path, id: &str) -> anyhow::Result<ChangeState> {
    // This fails where the log was altered.
    let unfinished = host_audit::unfinished(directory)?;
    if let Some(change) = unfinished.into_iter().find(|change| change.begun.id == id) {
        return Ok(match change.liveness() {
            Liveness::Running => ChangeState::NotRecoverable("is still being made".to_owned()),
            Liveness::Unknown => ChangeState::NotRecoverable(UNKNOWN.to_owned()),
            Liveness::Gone | Liveness::Uncertain => ChangeState::Unfinished(Box::new(change)),
        });
    }
    let (mut begun, mut last) = (None, None);
    for record in Snapshot::open(directory)?.records() {
        let Ok(record) = record? else { continue };
        if record.word("id") != Some(id) {
            continue;
        }
        match record.to_event() {
            Ok(Event::ChangeBegun(change)) => begun = Some(change),
            Ok(event) => last = Some(event),
            Err(_) => {}
        }
    }
    Ok(match (begun, last) {
        (Some(begun), Some(Event::ChangeEnded(ended))) if ended.outcome == Outcome::Done => {
            match begun.process.as_ref().map(|process| process.liveness()) {
                Some(Liveness::Gone) => ChangeState::Done(begun),
                _ => ChangeState::NotRecoverable(ENDED.to_owned()),
            }
        }
        (_, Some(Event::ChangeEnded(_))) => ChangeState::NotRecoverable(ENDED.to_owned()),
        (_, Some(Event::ChangeRecovered(_))) => {
            ChangeState::NotRecoverable("has been recovered already".to_owned())
        }
        _ => ChangeState::NotRecoverable("is not on record".to_owned()),
    })
}

const UNKNOWN: &str =
    "was made on another machine or in another container: whether it is still being made is seen only there";

/// The reason why the machine behind the target's name is not the one that was changed, or why this account may not
/// recover it.
fn elsewhere(used: &TargetUsed, facts: &Facts, host_key: Option<&str>) -> Option<String> {
    let name = used.hostname.as_ref().unwrap_or(&used.name);
    let said = |said: Option<&str>| said.unwrap_or("none").to_owned();
    if used.machine_id != facts.machine_id {
        let (expected, found) = (said(used.machine_id.as_deref()), said(facts.machine_id.as_deref()));
        return Some(format!(
            "was made to another machine, {name}: expected machine id {expected} at {}, found {found}",
            used.name
        ));
    }
    if used.host_key.as_deref() != host_key {
        let (expected, found) = (said(used.host_key.as_deref()), said(host_key));
        return Some(format!(
            "was made to {name} with the host key {expected}, and {} shows {found}: expected the same machine by the \
             same key",
            used.name
        ));
    }
    (used.uid != Some(facts.uid))
        .then(|| format!("was made by the account {}: recover it as that one", used.account))
}

/// Removes the copies of a change that was made to its end by a server that was killed right after it.
async fn remove_copies(
    target: &Target,
    begun: &ChangeBegun,
    out: &mut impl Write,
) -> anyhow::Result<Result<bool, String>> {
    match recover::remove_copies(target, begun).await {
        Ok(removed) if removed.is_empty() => Ok(Err(ENDED.to_owned())),
        Ok(removed) => {
            writeln!(out, "the change has ended and stays; copies that were left over are removed:")?;
            for directory in removed {
                writeln!(out, "  {}", one_line(&directory))?;
            }
            Ok(Ok(true))
        }
        Err(problem) => Ok(Err(format!("has ended, but copies of it are left: {}", problem.message))),
    }
}

fn tell(
    begun: &ChangeBegun,
    recovered: &Recovered,
    has_fired: bool,
    out: &mut impl Write,
) -> std::io::Result<()> {
    for line in &recovered.restored {
        writeln!(out, "{}", wrap(&one_line(line), "", "  "))?;
    }
    for line in &recovered.not_restored {
        writeln!(out, "{}", wrap(&one_line(&format!("NOT RESTORED: {line}")), "", "  "))?;
    }
    let undo: Vec<&String> = begun.undo.iter().rev().flatten().chain(&begun.after_undo).collect();
    if !undo.is_empty() {
        let head = match has_fired {
            true => {
                "commands of the undo, run by the guard for steps that had begun; look whether they are needed:"
            }
            false => "commands of the undo, not run; look whether they are needed:",
        };
        writeln!(out, "{head}")?;
    }
    // The lines are not wrapped, because somebody may paste them.
    undo.iter().try_for_each(|line| writeln!(out, "  {}", one_line(line)))
}

#[cfg(test)]
mod tests;
