//! A new line of a crontab, made of what the caller gives.

use linux_sysadmin_sdk::prelude::*;

use crate::crontab::{self, Form, PlacedJob};
use crate::describe;
use crate::expression::{Expression, Field, When};
use crate::parse::{Dialect, parse_as};

/// A line of a crontab and its schedule.
pub(crate) struct NewLine {
    pub(crate) text: String,
    pub(crate) expression: Expression,
}

impl NewLine {
    /// Makes the line. `user` is the account that the line itself names, in a crontab of the system. The line is read as
    /// cron reads it, and refused where that isn't what was given.
    pub(crate) fn new(schedule: &str, user: Option<&str>, command: &str, dialect: Dialect) -> Result<Self> {
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
        let form = if user.is_some() { Form::System } else { Form::Users };
        let account = user.map(|user| format!("{user} ")).unwrap_or_default();
        let text = format!("{schedule} {account}{command}");
        // cron reads a line as an assignment first, so that it might not read what was meant.
        if crontab::variable(&text, dialect).is_some() {
            return wrong("makes the line an assignment of a variable");
        }
        let job = crontab::job(&text, form, dialect);
        match job.error {
            Some(error) => wrong(&format!("isn't taken by cron: {error}")),
            None if job.command != command || job.schedule != schedule || job.user.as_deref() != user => {
                wrong("isn't read back as it was given")
            }
            None => Ok(Self { text, expression }),
        }
    }

    /// Whether an entry runs the same command as the same account at the same times.
    pub(crate) fn is_same(&self, found: &PlacedJob<'_>, form: Form, dialect: Dialect) -> bool {
        let new = crontab::job(&self.text, form, dialect);
        let known = &found.job;
        let times = known.expression.as_ref().map(Expression::normalized);
        known.error.is_none()
            && known.command.trim_end() == new.command
            && known.user == new.user
            && times == Some(self.expression.normalized())
    }
}

/// The warnings that a person reads before saying yes. `user` is the account that the command runs as.
pub(crate) fn warnings(found: &PlacedJob<'_>, expression: &Expression, user: &str) -> Vec<String> {
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
