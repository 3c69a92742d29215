//! A job as answers show it.

use linux_sysadmin_sdk::prelude::*;

use crate::crontab::{self, Form, Found};
use crate::describe::describe;
use crate::parse::Dialect;

/// The source of an account's own crontab.
pub(crate) const CRONTAB: &str = "crontab";

/// One job.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub(crate) struct Item {
    /// For `cron_remove`; only of accounts' own crontabs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// Whose rights the command has.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) user: String,
    /// A path, or `crontab` for the user's own.
    pub(crate) source: String,
    /// From 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
    /// `run-parts` or `anacron`; without it cron runs the line itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<&'static str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) schedule: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) description: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) command: String,
    /// The variables that the crontab sets for it, `NAME=value` or, where the value isn't cron's own, `NAME`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) environment: Vec<String>,
    /// Whether cron looks at it at all.
    pub(crate) enabled: bool,
    /// Why cron doesn't run it as it stands there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl Item {
    /// From a line. `user` is whose crontab it is, and counts where the line itself names none.
    pub(crate) fn new(found: &Found<'_>, user: &str, source: &str) -> Self {
        let job = &found.job;
        Self {
            id: (source == CRONTAB).then(|| found.id(user)),
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
        }
    }
}

/// The jobs of an account's own crontab.
pub(crate) fn users(user: &str, text: &str, dialect: Dialect) -> Vec<Item> {
    let jobs = crontab::jobs(text, Form::Users, dialect);
    jobs.iter().map(|found| Item::new(found, user, CRONTAB)).collect()
}
