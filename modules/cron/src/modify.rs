//! `cron_modify`: changes the schedule or the command of one line of a crontab. Every other byte stays.

use linux_sysadmin_sdk::prelude::*;

use crate::crontab::{self, Form};
use crate::crontab_update::{Changed, CrontabUpdate};
use crate::dialect;
use crate::line::{self, NewLine};
use crate::parse::Dialect;
use crate::programs;
use crate::remove;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ModifyArgs {
    /// Id from cron_list
    id: String,
    /// New schedule
    schedule: Option<String>,
    /// New command
    command: Option<String>,
}

pub(crate) fn cron_modify(args: ModifyArgs, cx: &Context) -> Result<Noted<Changed>> {
    if args.schedule.is_none() && args.command.is_none() {
        let message = "nothing says what to change, expected a schedule, a command or both";
        return Err(Problem::validation("INVALID_ARGUMENTS", message)
            .remedy(format!("Call cron_modify id={} schedule=<schedule>", crate::problem::echo(&args.id))));
    }
    let dialect = dialect(cx);
    let place = remove::place_of(&args.id, cx)?;
    let before = place.read_to_edit(cx, dialect)?.unwrap_or_default();
    let jobs = place.jobs(&before, dialect);
    let has_id = |found: &&crontab::PlacedJob<'_>| place.entry(found).id.as_ref() == Some(&args.id);
    let found = jobs.iter().find(has_id).ok_or_else(|| {
        Problem::not_found("ENTRY_NOT_FOUND", "the entry has been changed by others just now")
            .remedy("Look the id up: cron_list")
    })?;
    if place.form() == Form::System && found.job.user.is_none() {
        // The first word of a new command would be the account that it runs as.
        let message = format!("line {} of {} names no account and no command", found.line, place.shown());
        return Err(Problem::validation("INCOMPLETE_ENTRY", message).remedy(format!(
            "Remove it, and add the whole: cron_remove id={}",
            crate::problem::echo(&args.id)
        )));
    }
    let schedule = args.schedule.as_deref().unwrap_or(&found.job.schedule);
    let command = args.command.as_deref().unwrap_or(&found.job.command);
    let line = NewLine::new(schedule, found.job.user.as_deref(), command, dialect)?;
    // In cronie a leading `-` keeps the runs out of the log, and it stays.
    let body = found.text.trim_start_matches([' ', '\t']);
    let quiet = if dialect == Dialect::Any && body.starts_with('-') { "-" } else { "" };
    let text = format!("{quiet}{}", line.text);
    let entries = jobs.len();
    if line.is_same(found, place.form(), dialect) {
        let entry = place.entry(found);
        let data = Changed { user: entry.user.clone(), entry, entries_before: entries, entries, would: None };
        let notes = vec![format!("line {} says so already: nothing was changed", found.line)];
        return Ok(Noted { data, notes });
    }

    let after = crontab::replaced(&before, found.range.clone(), &text);
    let changed = place.jobs(&after, dialect);
    let number = found.line;
    let changed = changed.iter().find(|found| found.line == number);
    let changed = changed.ok_or_else(|| Problem::unexpected("the new crontab", &text))?;
    let mut entry = place.entry(changed);
    programs::check(std::slice::from_mut(&mut entry), cx);
    let mut warnings = vec![format!("the line is now: {}", found.text)];
    warnings.extend(line::warnings(changed, &line.expression, &entry.user));
    warnings.extend(entry.warning.clone());

    let new =
        CrontabUpdate { place: &place, before: Some(&before), after: after.clone(), line: &text, dialect };
    let plan = new.plan("Change in", warnings);
    let said = new.apply(cx, plan)?;
    let would = said.is_none().then_some("modify");
    let notes = said.into_iter().flatten().collect();
    let user = entry.user.clone();
    Ok(Noted { data: Changed { user, entry, entries_before: entries, entries, would }, notes })
}
