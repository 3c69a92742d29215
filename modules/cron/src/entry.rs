//! An entry of a crontab, as answers show it.

use linux_sysadmin_sdk::prelude::*;

use crate::crontab::{self, Form, PlacedJob};
use crate::describe::describe;
use crate::parse::Dialect;

/// The source of entries in an account's own crontab.
pub(crate) const CRONTAB: &str = "crontab";

/// An entry of a crontab, as an answer shows it.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The id for `cron_modify` and `cron_remove`. Scripts of directories and anacron's jobs have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// The account that the command runs as.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) user: String,
    /// The path of the file, or `crontab` for an account's own crontab.
    pub(crate) source: String,
    /// The line number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
    /// `run-parts` or `anacron`; left out where cron runs the line itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<&'static str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) schedule: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) description: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) command: String,
    /// The variables that the crontab sets for the entry: `NAME=value` for variables that cron reads, otherwise `NAME`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) environment: Vec<String>,
    /// False where cron doesn't run the entry at all.
    pub(crate) enabled: bool,
    /// The reason why cron doesn't run the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// A name under which cron would read the file, where it ignores the file for its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) better_name: Option<String>,
    /// What will go wrong when cron runs the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warning: Option<String>,
}

impl Entry {
    /// Makes an entry from a line. `user` is the owner of the crontab, and applies where the line itself names no
    /// account.
    pub(crate) fn new(found: &PlacedJob<'_>, user: &str, source: &str) -> Self {
        let job = &found.job;
        Self {
            id: Some(found.id(if source == CRONTAB { user } else { source })),
            user: job.user.clone().unwrap_or_else(|| user.to_owned()),
            source: source.to_owned(),
            line: Some(found.line),
            kind: None,
            schedule: job.schedule.clone(),
            description: job.expression.as_ref().map(describe).unwrap_or_default(),
            command: job.command.clone(),
            environment: crontab::shown(&found.environment),
            enabled: true,
            error: job.error.clone(),
            better_name: None,
            warning: None,
        }
    }
}

/// The entries of an account's own crontab.
pub(crate) fn users(user: &str, text: &str, dialect: Dialect) -> Vec<Entry> {
    let jobs = crontab::jobs(text, Form::Users, dialect);
    jobs.iter().map(|found| Entry::new(found, user, CRONTAB)).collect()
}
