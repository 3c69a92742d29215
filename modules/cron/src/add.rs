//! `cron_add`: adds a line at the end of an account's crontab.

use linux_sysadmin_sdk::prelude::*;

use crate::crontab::{self, Form, PlacedJob};
use crate::crontab_command::Owner;
use crate::crontab_update::{self, Changed, CrontabUpdate};
use crate::describe;
use crate::dialect;
use crate::entry::{CRONTAB, Entry};
use crate::expression::{Expression, Field, When};
use crate::parse::{Dialect, parse_as};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct AddArgs {
    /// Five fields or @nickname
    schedule: String,
    /// Plain % starts stdin
    command: String,
    /// Default: own account
    user: Option<String>,
    comment: Option<String>,
}

pub(crate) fn cron_add(args: AddArgs, cx: &Context) -> Result<Noted<Changed>> {
    let dialect = dialect(cx);
    let (line, expression) = line(&args.schedule, &args.command, dialect)?;
    let comment = args.comment.as_deref().map(comment).transpose()?.flatten();
    let owner = Owner::find(cx, args.user.as_deref())?;
    let mut notes = whose(args.user.is_none(), &owner);
    let before = owner.read_to_edit(cx)?;
    let text = before.as_deref().unwrap_or_default();
    crontab_update::refuse_carriage_returns(&owner.user, text, dialect)?;

    let jobs = crontab::jobs(text, Form::Users, dialect);
    let entries_before = jobs.len();
    let known = jobs.iter().find(|found| is_same(found, &line, &expression, dialect));
    if let Some(known) = known {
        notes.push(format!("line {} says so already: nothing was changed", known.line));
        let entry = Entry::new(known, &owner.user, CRONTAB);
        let user = owner.user;
        return Ok(Noted {
            data: Changed { user, entry, entries_before, entries: entries_before, would: None },
            notes,
        });
    }

    let lines: Vec<String> = comment.into_iter().chain([line.clone()]).collect();
    let after = crontab::with(text, &lines);
    let jobs = crontab::jobs(&after, Form::Users, dialect);
    let added = jobs.last().ok_or_else(|| Problem::unexpected("the new crontab", &line))?;
    let entry = Entry::new(added, &owner.user, CRONTAB);
    let mut warnings = about(added, &expression, &owner.user);
    let wrong = jobs.iter().find(|found| found.job.error.is_some());
    warnings.extend(wrong.map(|found| {
        format!("line {} is wrong, and crontab may refuse the whole for it: {}", found.line, found.text)
    }));
    let entries = jobs.len();

    let new = CrontabUpdate {
        owner: &owner,
        before: before.as_deref(),
        after: after.clone(),
        line: &line,
        dialect,
    };
    let plan = new.plan("Add to", warnings);
    let said = new.apply(cx, plan)?;
    let would = said.is_none().then_some("add");
    notes.extend(said.into_iter().flatten());
    let user = owner.user.clone();
    Ok(Noted { data: Changed { user, entry, entries_before, entries, would }, notes })
}

/// A note that says which account was taken where the caller named none.
pub(crate) fn whose(is_default: bool, owner: &Owner) -> Vec<String> {
    let note = || format!("no user was named: {}'s crontab was taken, the account in use", owner.user);
    is_default.then(note).into_iter().collect()
}

/// The new line of the crontab, and its schedule.
fn line(schedule: &str, command: &str, dialect: Dialect) -> Result<(String, Expression)> {
    let expression = parse_as(schedule, dialect).map_err(|problems| crate::invalid(&problems))?;
    let schedule = schedule.split_whitespace().collect::<Vec<_>>().join(" ");
    let wrong = |what: &str| {
        Err(Problem::validation("INVALID_COMMAND", format!("command {what}, expected one line for sh")))
    };
    if let Some(c) = command.chars().find(|c| c.is_control()) {
        return wrong(&format!("holds the control character U+{:04X}", u32::from(c)));
    }
    let command = command.trim_matches(' ');
    if command.is_empty() {
        return wrong("is empty");
    }
    if command.starts_with('-') {
        return wrong("begins with `-`, where cronie reads an option of its own");
    }
    let line = format!("{schedule} {command}");
    // cron reads a line as an assignment first, so that it might not read what was meant.
    if crontab::variable(&line, dialect).is_some() {
        return wrong("makes the line an assignment of a variable");
    }
    let job = crontab::job(&line, Form::Users, dialect);
    match job.error {
        Some(error) => wrong(&format!("isn't taken by cron: {error}")),
        None if job.command != command || job.schedule != schedule => {
            wrong("isn't read back as it was given")
        }
        None => Ok((line, expression)),
    }
}

fn comment(text: &str) -> Result<Option<String>> {
    if text.chars().any(char::is_control) {
        let message = "comment holds a control character, expected one line of text";
        return Err(Problem::validation("INVALID_COMMENT", message));
    }
    let text = text.trim().trim_start_matches('#').trim_start();
    Ok((!text.is_empty()).then(|| format!("# {text}")))
}

/// Whether an entry runs the same command at the same times as the new line.
fn is_same(found: &PlacedJob<'_>, line: &str, expression: &Expression, dialect: Dialect) -> bool {
    let new = crontab::job(line, Form::Users, dialect);
    let known = &found.job;
    let times = known.expression.as_ref().map(Expression::normalized);
    known.error.is_none() && known.command.trim_end() == new.command && times == Some(expression.normalized())
}

/// The warnings that a person reads before saying yes.
fn about(found: &PlacedJob<'_>, expression: &Expression, user: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    if user == "root" {
        warnings.push("the command runs as root".to_owned());
    }
    if crontab::has_input(&found.job.command) {
        warnings.push(
            "an unescaped `%` ends the command: what follows it is given to it on stdin, each further `%` a newline; \
             `\\%` is a percent sign"
                .to_owned(),
        );
    }
    if let When::Times(fields) = &expression.when
        && fields.iter().all(Field::is_full)
    {
        warnings.push("this runs every minute".to_owned());
    }
    warnings.extend(describe::warnings(expression));
    for (name, value) in &found.environment {
        warnings.extend(match (name.as_str(), value.as_str()) {
            ("MAILTO", "") => Some("the crontab sets an empty MAILTO: the command's output is lost".to_owned()),
            ("MAILTO", to) => Some(format!("the command's output is mailed to {to} (MAILTO)")),
            ("SHELL", shell) => Some(format!("the command runs in {shell} (SHELL)")),
            ("CRON_TZ", zone) => {
                Some(format!("the crontab sets CRON_TZ={zone}: cronie takes the times for that zone's, Debian's cron doesn't"))
            }
            _ => None,
        });
    }
    warnings
}
