//! `cron_remove`: removes exactly one line of a crontab. Comments stay, even those above the line.

use strsim::levenshtein;

use linux_sysadmin_sdk::prelude::*;

use crate::add::whose;
use crate::crontab::{self, PlacedJob};
use crate::crontab_command;
use crate::crontab_place::CrontabPlace;
use crate::crontab_update::{Changed, CrontabUpdate};
use crate::entry::{self, Entry};
use crate::parse::Dialect;
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
    /// Id from cron_list
    id: Option<String>,
    /// Whose crontab
    user: Option<String>,
    /// /etc/crontab or /etc/cron.d/NAME
    file: Option<String>,
    /// Its exact schedule
    schedule: Option<String>,
    /// Its exact command
    command: Option<String>,
}

impl RemoveArgs {
    fn fits(&self, item: &Entry) -> bool {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.id.as_ref().is_none_or(|id| item.id.as_ref() == Some(id))
            // In a file of the system, each line names its account.
            && (self.file.is_none() || self.user.as_ref().is_none_or(|user| item.user == *user))
            && self.schedule.as_ref().is_none_or(|schedule| words(schedule) == item.schedule)
            && self.command.as_ref().is_none_or(|command| command.trim() == item.command.trim())
    }
}

pub(crate) fn cron_remove(args: RemoveArgs, cx: &Context) -> Result<Noted<Changed>> {
    if args.id.is_none() && args.schedule.is_none() && args.command.is_none() {
        let message = "nothing says which entry, expected an id, or a schedule and/or command";
        return Err(Problem::validation("INVALID_ARGUMENTS", message)
            .remedy("See which entries there are: cron_list")
            .remedy("Call cron_remove id=<id>"));
    }
    let dialect = dialect(cx);
    let mut notes = Vec::new();
    let place = match (&args.user, &args.file, &args.id) {
        // With an id alone, the crontab that has the entry has to be found first.
        (None, None, Some(id)) => place_of(id, cx)?,
        _ => {
            let place = CrontabPlace::find(cx, args.user.as_deref(), args.file.as_deref(), dialect)?;
            notes = whose(args.user.is_none(), &place);
            place
        }
    };
    let before = place.read_to_edit(cx, dialect)?;
    let text = before.as_deref().unwrap_or_default();
    let jobs = place.jobs(text, dialect);
    let candidates: Vec<(&PlacedJob<'_>, Entry)> =
        jobs.iter().map(|found| (found, place.entry(found))).filter(|(_, item)| args.fits(item)).collect();
    let (found, entry) = match candidates.as_slice() {
        [(found, item)] => (*found, item.clone()),
        [] => {
            let items: Vec<Entry> = jobs.iter().map(|found| place.entry(found)).collect();
            return Err(not_found(&args, cx, &place, &items, dialect));
        }
        many => return Err(ambiguous(many)),
    };

    let after = crontab::without(text, found.range.clone());
    let entries = place.jobs(&after, dialect).len();
    let new = CrontabUpdate { place: &place, before: before.as_deref(), after, line: found.text, dialect };
    let plan = new.plan("Remove from", Vec::new());
    let said = new.apply(cx, plan)?;
    let would = said.is_none().then_some("remove");
    notes.extend(said.into_iter().flatten());
    let user = entry.user.clone();
    Ok(Noted { data: Changed { user, entry, entries_before: jobs.len(), entries, would }, notes })
}

/// The crontab that has the entry of this id.
pub(crate) fn place_of(id: &str, cx: &Context) -> Result<CrontabPlace> {
    let dialect = dialect(cx);
    let (crontabs, notes) = crontab_command::all(cx);
    let is_it = |item: &Entry| item.id.as_deref() == Some(id);
    for crontab in &crontabs {
        if entry::users(&crontab.user, &crontab.text, dialect).iter().any(is_it) {
            return CrontabPlace::find(cx, Some(&crontab.user), None, dialect);
        }
    }
    let (system, _) = system_jobs::jobs(cx, dialect);
    if let Some(item) = system.iter().find(|item| is_it(item)) {
        return CrontabPlace::find(cx, None, Some(&item.source), dialect);
    }
    let message =
        format!("no crontab has an entry with the id {}: it is another one once its line changes", echo(id));
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

/// The problem of an entry that isn't in the crontab: another crontab has it, or other entries are similar.
fn not_found(
    args: &RemoveArgs,
    cx: &Context,
    place: &CrontabPlace,
    items: &[Entry],
    dialect: Dialect,
) -> Problem {
    if args.id.is_none() && args.file.is_none() {
        let (system, _) = system_jobs::jobs(cx, dialect);
        if let Some(item) = system.iter().find(|item| args.fits(item)) {
            let (at, remedy) = match (item.line, &item.id) {
                (Some(line), Some(id)) => (
                    format!("line {line} of {}", item.source),
                    format!("Where that is meant: cron_remove id={id}"),
                ),
                (Some(line), None) => (
                    format!("line {line} of {}", item.source),
                    format!("See the file, which these tools don't edit: file_read path={}", item.source),
                ),
                (None, _) => (
                    item.command.clone(),
                    format!("See which package has the script: file_stat path={}", item.command),
                ),
            };
            let message = format!("that is {at}, which is the system's and not in {}", place.shown());
            return Problem::validation("SYSTEM_CRONTAB", message).remedy(remedy);
        }
    }
    let wanted = [&args.schedule, &args.command].map(|text| text.as_deref().unwrap_or_default());
    let message = match items.len() {
        0 => format!("{} has no entries", place.shown()),
        count => format!("none of the {count} entries of {} fits", place.shown()),
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
