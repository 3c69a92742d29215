//! `cron_add`: adds a line at the end of a crontab.

use linux_sysadmin_sdk::prelude::*;

use crate::crontab_place::CrontabPlace;
use crate::crontab_update::{Changed, CrontabUpdate};
use crate::dialect;
use crate::line::{self, NewLine};
use crate::programs;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct AddArgs {
    /// Five fields or @nickname
    schedule: String,
    /// For sh; % starts its stdin
    command: String,
    /// Account it runs as
    user: Option<String>,
    /// /etc/crontab or /etc/cron.d/NAME instead
    file: Option<String>,
    /// Comment line above it
    comment: Option<String>,
}

pub(crate) fn cron_add(args: AddArgs, cx: &Context) -> Result<Noted<Changed>> {
    let dialect = dialect(cx);
    let place = CrontabPlace::find(cx, args.user.as_deref(), args.file.as_deref(), dialect)?;
    let account = place.account_of_line(args.user.as_deref())?;
    let line = NewLine::new(&args.schedule, account.as_deref(), &args.command, dialect)?;
    let comment = args.comment.as_deref().map(comment).transpose()?.flatten();
    let mut notes = whose(args.user.is_none(), &place);
    let before = place.read_to_edit(cx, dialect)?;
    let text = before.as_deref().unwrap_or_default();

    let jobs = place.jobs(text, dialect);
    let entries_before = jobs.len();
    let known = jobs.iter().find(|found| line.is_same(found, place.form(), dialect));
    if let Some(known) = known {
        notes.push(format!("line {} says so already: nothing was changed", known.line));
        let entry = place.entry(known);
        let user = entry.user.clone();
        return Ok(Noted {
            data: Changed { user, entry, entries_before, entries: entries_before, would: None },
            notes,
        });
    }

    let lines: Vec<String> = comment.into_iter().chain([line.text.clone()]).collect();
    let after = crate::crontab::with(text, &lines);
    let jobs = place.jobs(&after, dialect);
    let added = jobs.last().ok_or_else(|| Problem::unexpected("the new crontab", &line.text))?;
    let mut entry = place.entry(added);
    programs::check(std::slice::from_mut(&mut entry), cx);
    let mut warnings = line::warnings(added, &line.expression, &entry.user);
    warnings.extend(entry.warning.clone());
    let wrong = jobs.iter().find(|found| found.job.error.is_some());
    warnings.extend(wrong.map(|found| {
        format!("line {} is wrong, and crontab may refuse the whole for it: {}", found.line, found.text)
    }));
    let entries = jobs.len();

    let new = CrontabUpdate {
        place: &place,
        before: before.as_deref(),
        after: after.clone(),
        line: &line.text,
        dialect,
    };
    let plan = new.plan("Add to", warnings);
    let said = new.apply(cx, plan)?;
    let would = said.is_none().then_some("add");
    notes.extend(said.into_iter().flatten());
    let user = entry.user.clone();
    Ok(Noted { data: Changed { user, entry, entries_before, entries, would }, notes })
}

/// A note that says which account was taken where the caller named none.
pub(crate) fn whose(is_default: bool, place: &CrontabPlace) -> Vec<String> {
    let note = match place {
        CrontabPlace::Account(owner) => {
            format!("no user was named: {}'s crontab was taken, the account in use", owner.user)
        }
        CrontabPlace::File(_) => return Vec::new(),
    };
    is_default.then_some(note).into_iter().collect()
}

fn comment(text: &str) -> Result<Option<String>> {
    if text.chars().any(char::is_control) {
        let message = "comment holds a control character, expected one line of text";
        return Err(Problem::validation("INVALID_COMMENT", message));
    }
    let text = text.trim().trim_start_matches('#').trim_start();
    Ok((!text.is_empty()).then(|| format!("# {text}")))
}
