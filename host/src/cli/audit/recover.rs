//! `linux-sysadmin audit recover`: ends what a server that was killed left half-done.

use std::io::Write;
use std::path::Path;

use clap::Args;

use super::words;
use crate::audit::{
    self, Audit, ChangeBegun, ChangeRecovered, Durability, Event, FileChangeKind, Life, Outcome, Snapshot,
    Unfinished,
};
use crate::cli::modules::wrapped;
use crate::config;
use crate::gate::recover::{self, Recovered};
use crate::target::{Facts, Overrides, Target};
use crate::visible::one_line;

#[derive(Args)]
pub(super) struct Recover {
    /// The change, as `audit show --unfinished` names it; without it what is unfinished is listed
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Put the former files back also where somebody has changed them since
    #[arg(long, requires = "id")]
    force: bool,
}

/// What the log says of a change.
enum Known {
    Unfinished(Box<Unfinished>),
    /// Made to its end.
    Done(Box<ChangeBegun>),
    /// In words, what is against recovering it.
    Not(String),
}

impl Recover {
    pub(super) async fn run(
        &self,
        directory: &Path,
        out: &mut impl Write,
        err: &mut impl Write,
    ) -> anyhow::Result<bool> {
        let Some(id) = &self.id else { return list(directory, out) };
        let target = Target::local(Overrides::default());
        let done = self.one(id, directory, &target, out).await?;
        if let Err(refused) = &done {
            writeln!(err, "{}", wrapped(&one_line(&format!("error: change {id} {refused}")), "", "  "))?;
        }
        Ok(done.unwrap_or(false))
    }

    /// Whether everything is as it was before the change; an error in words where nothing was done.
    async fn one(
        &self,
        id: &str,
        directory: &Path,
        target: &Target,
        out: &mut impl Write,
    ) -> anyhow::Result<Result<bool, String>> {
        let facts = target.facts().await?;
        // Looked at before the turn, which makes a file, and again by whoever has it.
        if let Known::Not(why) = known(directory, id, &facts)? {
            return Ok(Err(why));
        }
        let _turn = match recover::turn(directory, target.name()).await {
            Ok(turn) => turn,
            Err(problem) => return Ok(Err(format!("can't be recovered now: {}", problem.message))),
        };
        let begun = match known(directory, id, &facts)? {
            Known::Not(why) => return Ok(Err(why)),
            Known::Done(begun) => return remove_copies(target, &begun, out).await,
            Known::Unfinished(change) => change.begun,
        };
        let has_fired = match recover::remove_guard(target, &begun).await {
            Ok(has_fired) => has_fired,
            Err(problem) => return Ok(Err(format!("is not recovered: {}", problem.message))),
        };
        if has_fired {
            writeln!(out, "the guard of the change has undone it on the target; its units are removed")?;
        }
        let recovered = recover::recover(target, &begun, self.force).await;
        tell(&begun, &recovered, has_fired, out)?;
        let Recovered { restored, not_restored } = recovered;
        let all_restored = not_restored.is_empty();
        let recovered = ChangeRecovered {
            id: id.to_owned(),
            by: facts.user.clone(),
            restored: restored.into(),
            not_restored: not_restored.into(),
        };
        // A configuration that can't be read doesn't stand against putting a machine right.
        let config = config::load(false).map(|loaded| loaded.config).unwrap_or_default();
        let log = Audit::new(directory.to_owned(), Audit::settings(&config));
        log.append(&Event::ChangeRecovered(recovered), Durability::Synced)?;
        Ok(Ok(all_restored))
    }
}

fn list(directory: &Path, out: &mut impl Write) -> anyhow::Result<bool> {
    let unfinished = audit::unfinished(directory)?;
    if unfinished.is_empty() {
        writeln!(out, "no change is unfinished")?;
    }
    for change in unfinished {
        let indented = |text: &str| wrapped(text, "          ", "          ");
        writeln!(out, "{}", words::row(&change.record))?;
        writeln!(out, "{}", indented(&words::life(change.life(), &change.begun.id)))?;
        for file in &change.begun.files {
            let kind = match file.kind {
                FileChangeKind::Write => "write",
                FileChangeKind::Remove => "remove",
                FileChangeKind::MakeDirectory => "make directory",
            };
            writeln!(out, "          - {kind} {}", one_line(&file.path))?;
        }
    }
    Ok(true)
}

/// What is on record of this id, and whether this account may act upon it here and now.
fn known(directory: &Path, id: &str, facts: &Facts) -> anyhow::Result<Known> {
    // Refuses a log that isn't what was written.
    let unfinished = audit::unfinished(directory)?;
    if let Some(change) = unfinished.into_iter().find(|change| change.begun.id == id) {
        return Ok(match refusal(&change.begun, change.life(), facts) {
            Some(why) => Known::Not(why),
            None => Known::Unfinished(Box::new(change)),
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
            let life = begun.process.as_ref().map_or(Life::Unknown, |process| process.life());
            match refusal(&begun, life, facts) {
                Some(_) => Known::Not("has ended: nothing is to be recovered".to_owned()),
                None => Known::Done(begun),
            }
        }
        (_, Some(Event::ChangeEnded(_))) => Known::Not("has ended: nothing is to be recovered".to_owned()),
        (_, Some(Event::ChangeRecovered(_))) => Known::Not("has been recovered already".to_owned()),
        _ => Known::Not("is not on record".to_owned()),
    })
}

/// Why this account must not touch it from here.
fn refusal(begun: &ChangeBegun, life: Life, facts: &Facts) -> Option<String> {
    let target = &begun.target;
    match life {
        Life::Running => Some("is still being made".to_owned()),
        Life::Unknown => Some(
            "was made on another machine or in another container: whether it is still being made is seen only there"
                .to_owned(),
        ),
        Life::Gone if target.machine_id != facts.machine_id => {
            let name = target.hostname.as_ref().unwrap_or(&target.name);
            Some(format!("was made to another machine, {name}: recover it there"))
        }
        Life::Gone if target.uid != Some(facts.uid) => {
            Some(format!("was made by the account {}: recover it as that one", target.account))
        }
        Life::Gone => None,
    }
}

/// A change that was made to its end, by a server that was killed before it had removed the copies.
async fn remove_copies(
    target: &Target,
    begun: &ChangeBegun,
    out: &mut impl Write,
) -> anyhow::Result<Result<bool, String>> {
    match recover::remove_copies(target, begun).await {
        Ok(removed) if removed.is_empty() => Ok(Err("has ended: nothing is to be recovered".to_owned())),
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
        writeln!(out, "{}", wrapped(&one_line(line), "", "  "))?;
    }
    for line in &recovered.not_restored {
        writeln!(out, "{}", wrapped(&one_line(&format!("NOT RESTORED: {line}")), "", "  "))?;
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
    // Never wrapped: it may be pasted.
    undo.iter().try_for_each(|line| writeln!(out, "  {}", one_line(line)))
}

#[cfg(test)]
mod tests;
