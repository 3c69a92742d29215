//! The common part of `cron_add`, `cron_modify` and `cron_remove`: a plan that replaces a crontab, and a check of the
//! result.

use linux_sysadmin_sdk::{Category, prelude::*, text::excerpt};

use crate::crontab_command;
use crate::crontab_place::CrontabPlace;
use crate::entry::Entry;
use crate::parse::Dialect;

/// All tools that edit take this lock, so that one doesn't undo another one's work.
const LOCK: &str = "crontab";

/// The number of characters of a line in a plan's summary. A warning has the whole of a longer line.
const IN_SUMMARY: usize = 200;

/// The outcome of a change of a crontab, or of its dry run.
#[derive(Serialize)]
pub(crate) struct Changed {
    /// The account that the command runs as.
    pub(crate) user: String,
    /// The entry as it is in the crontab, or as it was.
    pub(crate) entry: Entry,
    /// The number of jobs in this crontab before the change.
    pub(crate) entries_before: usize,
    /// The number of jobs in this crontab after the change.
    pub(crate) entries: usize,
    /// `add`, `modify` or `remove` in a dry run, where nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) would: Option<&'static str>,
}

/// A crontab before and after the change.
pub(crate) struct CrontabUpdate<'a> {
    pub(crate) place: &'a CrontabPlace,
    pub(crate) before: Option<&'a str>,
    pub(crate) after: String,
    /// The line that is added, changed or removed.
    pub(crate) line: &'a str,
    pub(crate) dialect: Dialect,
}

impl CrontabUpdate<'_> {
    /// A plan that installs the whole crontab, and installs the former one to undo that.
    pub(crate) fn plan(&self, what: &str, warnings: Vec<String>) -> Change {
        let step = self.place.install(self.before, &self.after);
        let short = excerpt(self.line, IN_SUMMARY);
        let mut change = Change::new(format!("{what} {}: {short}", self.place.shown()))
            .step(step)
            .lock(Lock::Named(LOCK.to_owned()));
        if short != self.line {
            change = change.warning(format!("the whole line: {}", self.line));
        }
        let about_the_text = self.before.into_iter().flat_map(|text| about(text, self.place, self.dialect));
        warnings.into_iter().chain(about_the_text).fold(change, Change::warning)
    }

    /// Applies the plan, and checks that the line was added or removed. `None` where nothing was changed.
    pub(crate) fn apply(&self, cx: &Context, change: Change) -> Result<Option<Vec<String>>> {
        let applied = cx.apply(change).map_err(broken)?;
        if applied.dry_run {
            return Ok(None);
        }
        let now = match self.place.read_again(cx) {
            Some(Ok(now)) => now,
            Some(Err(problem)) => {
                let note =
                    format!("crontab installed it, but it couldn't be read again: {}", problem.message);
                return Ok(Some(vec![note]));
            }
            None => return Ok(Some(Vec::new())),
        };
        if now == self.after {
            return Ok(Some(Vec::new()));
        }
        let count = |text: &str| text.lines().filter(|line| *line == self.line).count();
        if count(&now) == count(&self.after) {
            let note = "the crontab has been changed by others since: look at it with cron_list";
            return Ok(Some(vec![note.to_owned()]));
        }
        let message = format!(
            "crontab reported success, but {} isn't what was installed: {} entries, expected {}",
            self.place.shown(),
            self.place.jobs(&now, self.dialect).len(),
            self.place.jobs(&self.after, self.dialect).len(),
        );
        Err(Problem::new("CRONTAB_NOT_CHANGED", Category::State, message)
            .remedy("Look at it with cron_list: somebody else may have changed it at the same time"))
    }
}

/// Refuses a crontab with carriage returns. Debian's `crontab -l` prints a carriage return as `\r` and a backspace as
/// `\b`, like these letters themselves: a file with line ends of Windows would get other commands.
pub(crate) fn refuse_carriage_returns(user: &str, text: &str, dialect: Dialect) -> Result<()> {
    let line = text.lines().position(|line| dialect == Dialect::Debian && line.ends_with("\\r"));
    let Some(line) = line else { return Ok(()) };
    let message = format!(
        "line {} of {user}'s crontab ends in `\\r`, which is how Debian's crontab prints a carriage return: \
         it is not edited, expected lines that end in a newline only",
        line + 1
    );
    Err(Problem::new("CRONTAB_CARRIAGE_RETURN", Category::State, message)
        .remedy(format!("Remove the carriage returns on the target: crontab -u {user} -e")))
}

/// Warnings about a text that may change when it is installed again.
fn about(text: &str, place: &CrontabPlace, dialect: Dialect) -> Vec<String> {
    let mut warnings = Vec::new();
    if !text.is_empty() && !text.ends_with('\n') {
        let last = text.lines().next_back().unwrap_or_default();
        warnings.push(format!(
            "the crontab's last line had no newline, so that cron ignored it; it gets one: {last}"
        ));
    }
    let is_printed = dialect == Dialect::Debian && matches!(place, CrontabPlace::Account(_));
    if is_printed && (text.contains("\\r") || text.contains("\\b")) {
        warnings.push(
            "the crontab holds `\\r` or `\\b`: Debian's crontab prints control characters that way, \
             and if they are such, they become these letters"
                .to_owned(),
        );
    }
    warnings
}

/// The problem of a failed plan, in crontab's own words where crontab failed.
fn broken(failure: Failure) -> Problem {
    let said = failure.outputs.last().filter(|output| output.exit_code != 0).map(Output::error_text);
    match said.filter(|said| !said.is_empty() && !failure.uncertain) {
        Some(said) => {
            let mut problem = crontab_command::refused(&said);
            problem.remediation.extend(failure.problem.remediation);
            problem
        }
        None => failure.problem,
    }
}
