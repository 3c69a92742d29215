//! The crontab that a call edits: an account's own, or a file of the system.

use linux_sysadmin_sdk::{Category, Privilege, accounts, prelude::*};

use crate::crontab::{self, Form, PlacedJob};
use crate::crontab_command::Owner;
use crate::crontab_update;
use crate::entry::{CRONTAB, Entry};
use crate::parse::Dialect;
use crate::system_jobs;

/// A crontab that can be edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CrontabPlace {
    /// An account's own crontab, through `crontab`.
    Account(Owner),
    /// `/etc/crontab` or a file of `/etc/cron.d`, of which each line names the account that the command runs as.
    File(String),
}

impl CrontabPlace {
    /// The crontab that the caller means: the file where one is named, or else the account's own.
    pub(crate) fn find(
        cx: &Context,
        user: Option<&str>,
        file: Option<&str>,
        dialect: Dialect,
    ) -> Result<Self> {
        match file {
            Some(file) => system_jobs::check_file(file, dialect).map(|()| Self::File(file.to_owned())),
            None => Owner::find(cx, user).map(Self::Account),
        }
    }

    /// The crontab in words.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Account(owner) => format!("{}'s crontab", owner.user),
            Self::File(path) => path.clone(),
        }
    }

    /// The form of its lines.
    pub(crate) fn form(&self) -> Form {
        match self {
            Self::Account(_) => Form::Users,
            Self::File(_) => Form::System,
        }
    }

    /// Its jobs.
    pub(crate) fn jobs<'a>(&self, text: &'a str, dialect: Dialect) -> Vec<PlacedJob<'a>> {
        crontab::jobs(text, self.form(), dialect)
    }

    /// A job as answers show it.
    pub(crate) fn entry(&self, found: &PlacedJob<'_>) -> Entry {
        match self {
            Self::Account(owner) => Entry::new(found, &owner.user, CRONTAB),
            Self::File(path) => Entry::new(found, "", path),
        }
    }

    /// The text of the crontab for a tool that writes it back, `None` where there is no crontab.
    pub(crate) fn read_to_edit(&self, cx: &Context, dialect: Dialect) -> Result<Option<String>> {
        let path = match self {
            Self::Account(owner) => {
                let text = owner.read_to_edit(cx)?;
                let read = text.as_deref().unwrap_or_default();
                crontab_update::refuse_carriage_returns(&owner.user, read, dialect)?;
                return Ok(text);
            }
            Self::File(path) => path,
        };
        let bytes = match cx.files_as(Privilege::RootIfAvailable).read_bytes(path) {
            Ok(bytes) => bytes,
            Err(problem) if problem.category == Category::NotFound => return Ok(None),
            Err(problem) => return Err(problem),
        };
        String::from_utf8(bytes).map(Some).map_err(|_| {
            let message = format!("{path} isn't UTF-8, so it is not edited: expected text in UTF-8");
            Problem::new("CRONTAB_NOT_UTF8", Category::State, message)
        })
    }

    /// The text of the crontab now. `None` where the host itself has written the file, and so nothing is to be checked.
    pub(crate) fn read_again(&self, cx: &Context) -> Option<Result<String>> {
        match self {
            Self::Account(owner) => Some(owner.read(cx).map(|now| {
                now.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
            })),
            Self::File(_) => None,
        }
    }

    /// The step that replaces the text. `before` is the former text.
    pub(crate) fn install(&self, before: Option<&str>, after: &str) -> Step {
        match self {
            Self::Account(owner) => {
                // crontab refuses a text without a newline at its end, even where the former crontab had none.
                let former = before.map(crontab::ended);
                Step::run(owner.install(after)).undo(owner.restore(former.as_deref()))
            }
            Self::File(path) => Step::write(path, after),
        }
    }

    /// The account that a new line's command runs as, where the line names one.
    pub(crate) fn account_of_line(&self, user: Option<&str>) -> Result<Option<String>> {
        if matches!(self, Self::Account(_)) {
            return Ok(None);
        }
        let user = user.unwrap_or("root");
        accounts::check_user(user)?;
        Ok(Some(user.to_owned()))
    }
}
