//! `cron_remove`: removes exactly one line of an account's crontab. Comments stay, even those above the line.

use strsim::levenshtein;

use linux_sysadmin_sdk::prelude::*;

use crate::add::whose;
use crate::crontab::{self, Form, PlacedJob};
use crate::crontab_command::{self, Owner};
use crate::crontab_update::{self, Changed, CrontabUpdate};
use crate::entry::{self, CRONTAB, Entry};
use crate::problem::echo;
use crate::{dialect, system_jobs};

/// The most matching entries that an error names.
const CANDIDATES: usize = 10;
/// The most similar entries that an error names where none matches.
const NEAREST: usize = 3;
/// The number of characters that are compared: a comparison takes time by the square of it.
const COMPARED: usize = 200;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct RemoveArgs {
    /// From cron_list
    id: Option<String>,
    user: Option<String>,
    /// Exact
    schedule: Option<String>,
    /// Exact
    command: Option<String>,
}

impl RemoveArgs {
    fn fits(&self, item: &Entry) -> bool {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.id.as_ref().is_none_or(|id| item.id.as_ref() == Some(id))
            && self.schedule.as_ref().is_none_or(|schedule| words(schedule) == item.schedule)
            && self.command.as_ref().is_none_or(|command| command.trim() == item.command.trim())
    }
}

pub(crate) fn cron_remove(args: RemoveArgs, cx: &Context) -> Result<Noted<Changed>> {
    if args.id.is_none() && args.schedule.is_none() && args.command.is_none() {
        let message = "nothing says which entry, expected an id, or a schedule and/or command";
        return Err(Problem::validation("INVALID_ARGUMENTS", message));
    }
    let dialect = dialect(cx);
    let mut notes = Vec::new();
    let owner = match (&args.user, &args.id) {
        // With an id alone, the owner of the entry has to be found first.
        (None, Some(_)) => owner_of(&args, cx)?,
        _ => {
            let owner = Owner::find(cx, args.user.as_deref())?;
            notes = whose(args.user.is_none(), &owner);
            owner
        }
    };
    let before = owner.read_to_edit(cx)?;
    let text = before.as_deref().unwrap_or_default();
    let jobs = crontab::jobs(text, Form::Users, dialect);
    let candidates: Vec<(&PlacedJob<'_>, Entry)> = jobs
        .iter()
        .map(|found| (found, Entry::new(found, &owner.user, CRONTAB)))
        .filter(|(_, item)| args.fits(item))
        .collect();
    let (found, entry) = match candidates.as_slice() {
        [(found, item)] => (*found, item.clone()),
        [] => return Err(not_found(&args, cx, &owner.user, &entry::users(&owner.user, text, dialect))),
        many => return Err(ambiguous(many)),
    };
    crontab_update::refuse_carriage_returns(&owner.user, text, dialect)?;

    let after = crontab::without(text, found.range.clone());
    let entries = crontab_update::entries(&after, dialect);
    let new = CrontabUpdate { owner: &owner, before: before.as_deref(), after, line: found.text, dialect };
    let plan = new.plan("Remove from", Vec::new());
    let said = new.apply(cx, plan)?;
    let would = said.is_none().then_some("remove");
    notes.extend(said.into_iter().flatten());
    let user = owner.user.clone();
    Ok(Noted { data: Changed { user, entry, entries_before: jobs.len(), entries, would }, notes })
}

/// The owner of the crontab that has the entry of this id.
fn owner_of(args: &RemoveArgs, cx: &Context) -> Result<Owner> {
    let dialect = dialect(cx);
    let (crontabs, notes) = crontab_command::all(cx);
    for crontab in &crontabs {
        let items = entry::users(&crontab.user, &crontab.text, dialect);
        if items.iter().any(|item| item.id == args.id) {
            return Owner::find(cx, Some(&crontab.user));
        }
    }
    let id = echo(args.id.as_deref().unwrap_or_default());
    let message =
        format!("no crontab has an entry with the id {id}: it is another one once its line changes");
    let mut problem = Problem::not_found("ENTRY_NOT_FOUND", message).remedy("Look the id up: cron_list");
    problem.remediation.extend(notes);
    Err(problem)
}

fn ambiguous(candidates: &[(&PlacedJob<'_>, Entry)]) -> Problem {
    let message = format!("{} entries fit, expected exactly one", candidates.len());
    let problem = Problem::validation("AMBIGUOUS_ENTRY", message);
    let named = candidates.iter().take(CANDIDATES).map(|(_, item)| named(item));
    let problem = named.fold(problem, |problem, named| problem.remedy(format!("Remove by id: {named}")));
    match candidates.len().checked_sub(CANDIDATES).filter(|more| *more > 0) {
        Some(more) => problem.remedy(format!("{more} more: cron_list")),
        None => problem,
    }
}

fn named(item: &Entry) -> String {
    let line = item.line.unwrap_or_default();
    format!("{} (line {line}: {} {})", item.id.as_deref().unwrap_or("-"), item.schedule, echo(&item.command))
}

/// The problem of an entry that isn't in the crontab: it belongs to the system, or other entries are similar.
fn not_found(args: &RemoveArgs, cx: &Context, user: &str, items: &[Entry]) -> Problem {
    if args.id.is_none() {
        let (system, _) = system_jobs::jobs(cx, dialect(cx));
        if let Some(item) = system.iter().find(|item| args.fits(item)) {
            let place = match item.line {
                Some(line) => format!("line {line} of {}", item.source),
                None => item.command.clone(),
            };
            let message = format!(
                "that is {place}, which is the system's: only accounts' own crontabs are edited here"
            );
            return Problem::validation("SYSTEM_CRONTAB", message)
                .remedy("See which package it belongs to, and change it there or in that file");
        }
    }
    let wanted = [&args.schedule, &args.command].map(|text| text.as_deref().unwrap_or_default());
    let message = match items.len() {
        0 => format!("{user}'s crontab has no entries"),
        count => format!("none of the {count} entries of {user}'s crontab fits"),
    };
    let far = |item: &&Entry| {
        let parts = [(wanted[0], &item.schedule), (wanted[1], &item.command)];
        let asked = parts.into_iter().filter(|(wanted, _)| !wanted.is_empty());
        let cut = |text: &str| text.chars().take(COMPARED).collect::<String>();
        asked.map(|(wanted, is)| levenshtein(&cut(wanted), &cut(is))).sum::<usize>()
    };
    let problem = Problem::not_found("ENTRY_NOT_FOUND", message);
    if wanted.iter().all(|wanted| wanted.is_empty()) {
        return problem.remedy("Look the id up: cron_list");
    }
    let mut near: Vec<&Entry> = items.iter().take(COMPARED).collect();
    near.sort_by_cached_key(far);
    near.iter().take(NEAREST).fold(problem, |problem, item| problem.remedy(format!("Close: {}", named(item))))
}
