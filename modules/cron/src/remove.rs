//! `cron_remove`: exactly one line less in an account's crontab. Comments stay, those above it too.

use linux_sysadmin_sdk::prelude::*;

use crate::add::whose;
use crate::change::{self, Changed, Replacement};
use crate::crontab::{self, Form, Found};
use crate::item::{self, CRONTAB, Item};
use crate::problem::{distance, echo};
use crate::target::{self, Owner};
use crate::{dialect, system};

/// An error names so many entries at most.
const CANDIDATES: usize = 10;
/// Of entries that are none of them, so many that come close.
const NEAREST: usize = 3;
/// More isn't compared: it takes time by the square.
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
    fn fits(&self, item: &Item) -> bool {
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
        // An id alone: whose it is has to be found first.
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
    let candidates: Vec<(&Found<'_>, Item)> = jobs
        .iter()
        .map(|found| (found, Item::new(found, &owner.user, CRONTAB)))
        .filter(|(_, item)| args.fits(item))
        .collect();
    let (found, entry) = match candidates.as_slice() {
        [(found, item)] => (*found, item.clone()),
        [] => return Err(not_found(&args, cx, &owner.user, &item::users(&owner.user, text, dialect))),
        many => return Err(ambiguous(many)),
    };
    change::refuse_carriage_returns(&owner.user, text, dialect)?;

    let after = crontab::without(text, found.range.clone());
    let entries = change::entries(&after, dialect);
    let new = Replacement { owner: &owner, before: before.as_deref(), after, line: found.text, dialect };
    let plan = new.plan("Remove from", Vec::new());
    let said = new.apply(cx, plan)?;
    let would = said.is_none().then_some("remove");
    notes.extend(said.into_iter().flatten());
    let user = owner.user.clone();
    Ok(Noted { data: Changed { user, entry, entries_before: jobs.len(), entries, would }, notes })
}

/// Whose crontab has the entry of this id.
fn owner_of(args: &RemoveArgs, cx: &Context) -> Result<Owner> {
    let dialect = dialect(cx);
    let (crontabs, notes) = target::all(cx);
    for crontab in &crontabs {
        let items = item::users(&crontab.user, &crontab.text, dialect);
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

fn ambiguous(candidates: &[(&Found<'_>, Item)]) -> Problem {
    let message = format!("{} entries fit, expected exactly one", candidates.len());
    let problem = Problem::validation("AMBIGUOUS_ENTRY", message);
    let named = candidates.iter().take(CANDIDATES).map(|(_, item)| named(item));
    let problem = named.fold(problem, |problem, named| problem.remedy(format!("Remove by id: {named}")));
    match candidates.len().checked_sub(CANDIDATES).filter(|more| *more > 0) {
        Some(more) => problem.remedy(format!("{more} more: cron_list")),
        None => problem,
    }
}

fn named(item: &Item) -> String {
    let line = item.line.unwrap_or_default();
    format!("{} (line {line}: {} {})", item.id.as_deref().unwrap_or("-"), item.schedule, echo(&item.command))
}

/// Says where it is, if it is the system's, and else what comes close.
fn not_found(args: &RemoveArgs, cx: &Context, user: &str, items: &[Item]) -> Problem {
    if args.id.is_none() {
        let (system, _) = system::jobs(cx, dialect(cx));
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
    let far = |item: &&Item| {
        let parts = [(wanted[0], &item.schedule), (wanted[1], &item.command)];
        let asked = parts.into_iter().filter(|(wanted, _)| !wanted.is_empty());
        let cut = |text: &str| text.chars().take(COMPARED).collect::<String>();
        asked.map(|(wanted, is)| distance(&cut(wanted), &cut(is))).sum::<usize>()
    };
    let problem = Problem::not_found("ENTRY_NOT_FOUND", message);
    if wanted.iter().all(|wanted| wanted.is_empty()) {
        return problem.remedy("Look the id up: cron_list");
    }
    let mut near: Vec<&Item> = items.iter().take(COMPARED).collect();
    near.sort_by_cached_key(far);
    near.iter().take(NEAREST).fold(problem, |problem, item| problem.remedy(format!("Close: {}", named(item))))
}
