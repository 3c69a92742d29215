//! The journal of units: the command that prints it, and what a run of a unit said last.

use linux_sysadmin_sdk::{JournalEntry, Output, Privilege, prelude::*};

use crate::excerpt;

/// The number of messages that are read.
pub(crate) const LINES: usize = 300;

/// The number of lines of a run that are told.
const LAST: usize = 5;

/// Prints messages of units, the latest first. With `--since` and without `--reverse`, `--lines` of journalctl 252 would
/// count from the oldest message on. A unit's journal also holds what systemd says of it.
const PATTERN: &str = "journalctl --no-pager --quiet --reverse --output=json \
                       --output-fields=MESSAGE,PRIORITY,_SYSTEMD_UNIT,UNIT,_SYSTEMD_INVOCATION_ID,INVOCATION_ID,JOB_RESULT \
                       (--priority=err|--priority=debug) --lines=<int> [--since=@<int>] --unit=<unit>...";

pub(crate) fn grant() -> CommandGrant {
    CommandGrant::read(PATTERN, "recent errors of a service, and what it said before it failed")
        .as_root_if_available()
}

/// The command for the latest messages of units, or for their errors only, from a time on, in seconds since the epoch.
pub(crate) fn command(units: &[String], only_errors: bool, since: Option<i64>) -> Command {
    let fixed = PATTERN.split(' ').take_while(|word| !word.starts_with('(')).skip(1);
    Command::new("journalctl")
        .args(fixed)
        .arg(if only_errors { "--priority=err" } else { "--priority=debug" })
        .arg(format!("--lines={LINES}"))
        .args(since.map(|since| format!("--since=@{}", since.max(0))))
        .args(units.iter().map(|unit| format!("--unit={unit}")))
        .privilege(Privilege::RootIfAvailable)
}

/// What the command printed. Empty where the journal can't be read.
pub(crate) fn printed(output: &Result<Output>) -> String {
    output.as_ref().map(|output| output.text().into_owned()).unwrap_or_default()
}

/// The last lines that a unit's last run wrote, whatever their priority, and errors that systemd tells of it. `invocation`
/// is the id of the run, where systemd told it.
pub(crate) fn last_output(printed: &str, unit: &str, invocation: Option<&str>) -> Vec<String> {
    let entries = printed.lines().filter_map(|line| JournalEntry::parse(line.as_bytes()));
    let entries: Vec<_> = entries.filter(|entry| entry.unit() == Some(unit)).collect();
    let last = invocation.or_else(|| entries.iter().find_map(JournalEntry::invocation));
    // journald doesn't learn the id of a run that ends at once.
    let is_of_last = |entry: &&JournalEntry<'_>| entry.invocation().is_none_or(|own| Some(own) == last);
    // What a service wrote before a reload says nothing of the reload.
    let is_reload = |entry: &JournalEntry<'_>| {
        entry.is_of_manager() && entry.message().is_some_and(|message| message.starts_with("Reloading "))
    };
    let tells =
        |entry: &&JournalEntry<'_>| !entry.is_of_manager() || (entry.is_error() && !is_failed_job(entry));
    let of_last = entries.iter().take_while(|entry| is_of_last(entry) && !is_reload(entry)).filter(tells);
    let mut lines: Vec<String> = of_last.filter_map(JournalEntry::message).map(line).collect();
    lines.retain(|line| !line.is_empty());
    lines.dedup();
    lines.truncate(LAST);
    lines.reverse();
    lines
}

/// True for `Failed to start …`, which the state of the unit says as well.
pub(crate) fn is_failed_job(entry: &JournalEntry<'_>) -> bool {
    entry.job_result() == Some("failed")
}

/// A message as one line of an answer.
pub(crate) fn line(message: &str) -> String {
    excerpt::of_line(&message.trim().replace('\n', "; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of `journalctl` 252, the latest first, with the members that this module reads and with shorter ids.
    const FLAPPING: &str = r#"{"UNIT":"a.service","_SYSTEMD_UNIT":"init.scope","PRIORITY":"4","INVOCATION_ID":"2","MESSAGE":"a.service: Failed with result 'exit-code'."}
{"_SYSTEMD_UNIT":"a.service","PRIORITY":"6","MESSAGE":"no database"}
{"UNIT":"a.service","_SYSTEMD_UNIT":"init.scope","PRIORITY":"6","INVOCATION_ID":"2","JOB_RESULT":"done","MESSAGE":"Started a.service - flap."}
{"UNIT":"a.service","_SYSTEMD_UNIT":"init.scope","PRIORITY":"6","INVOCATION_ID":"1","MESSAGE":"a.service: Scheduled restart job, restart counter is at 14."}
{"_SYSTEMD_UNIT":"a.service","_SYSTEMD_INVOCATION_ID":"1","PRIORITY":"6","MESSAGE":"an older run"}
"#;

    const ENVIRONMENT: &str = r#"{"UNIT":"a.service","_SYSTEMD_UNIT":"init.scope","PRIORITY":"3","INVOCATION_ID":"1","JOB_RESULT":"failed","MESSAGE":"Failed to start a.service - env."}
{"UNIT":"a.service","_SYSTEMD_UNIT":"init.scope","PRIORITY":"4","INVOCATION_ID":"1","MESSAGE":"a.service: Failed with result 'resources'."}
{"UNIT":"a.service","_SYSTEMD_UNIT":"init.scope","PRIORITY":"3","INVOCATION_ID":"1","MESSAGE":"a.service: Failed to load environment files: No such file or directory"}
"#;

    const RELOAD: &str = r#"{"UNIT":"a.service","_SYSTEMD_UNIT":"init.scope","PRIORITY":"3","INVOCATION_ID":"1","JOB_RESULT":"failed","MESSAGE":"Reload failed for a.service."}
{"_SYSTEMD_UNIT":"a.service","_SYSTEMD_INVOCATION_ID":"1","PRIORITY":"6","MESSAGE":"[emerg] unknown directive"}
{"UNIT":"a.service","_SYSTEMD_UNIT":"init.scope","PRIORITY":"6","INVOCATION_ID":"1","MESSAGE":"Reloading a.service..."}
{"_SYSTEMD_UNIT":"a.service","_SYSTEMD_INVOCATION_ID":"1","PRIORITY":"6","MESSAGE":"a request"}
"#;

    /// The same line with the time that every line has.
    fn timed(printed: &str) -> String {
        printed.replace("\n{", "\n{\"__REALTIME_TIMESTAMP\":\"1\",").replacen(
            '{',
            "{\"__REALTIME_TIMESTAMP\":\"1\",",
            1,
        )
    }

    #[test]
    fn what_is_told_is_of_the_last_run_and_the_units_own_or_an_error() {
        let without_ids = FLAPPING.replace("INVOCATION_ID", "OTHER");
        let table: [(&str, Option<&str>, &[&str]); 8] = [
            (FLAPPING, Some("2"), &["no database"]),
            (FLAPPING, None, &["no database"]),
            // journald hasn't written yet what the last run said.
            (FLAPPING, Some("3"), &[]),
            (&without_ids, None, &["an older run", "no database"]),
            (ENVIRONMENT, None, &["a.service: Failed to load environment files: No such file or directory"]),
            (RELOAD, Some("1"), &["[emerg] unknown directive"]),
            ("", None, &[]),
            ("no journal files were found\n", None, &[]),
        ];
        for (printed, invocation, expected) in table {
            assert_eq!(
                last_output(&timed(printed), "a.service", invocation),
                expected,
                "{invocation:?} {printed}"
            );
        }
        assert!(last_output(&timed(FLAPPING), "b.service", None).is_empty(), "another unit's");
    }

    #[test]
    fn of_many_lines_the_last_are_told_each_once_and_on_one_line() {
        let line = |message: String| {
            format!(
                "{{\"__REALTIME_TIMESTAMP\":\"1\",\"_SYSTEMD_UNIT\":\"a.service\",\"MESSAGE\":{message:?}}}\n"
            )
        };
        let numbered = (0..20).rev().map(|number| line(format!("line {number}")));
        let printed: String = ["again", "again", "two\nlines", " "]
            .map(|text| line(text.to_owned()))
            .into_iter()
            .chain(numbered)
            .collect();
        let expected = ["line 17", "line 18", "line 19", "two; lines", "again"];
        assert_eq!(last_output(&printed, "a.service", None), expected);
    }
}
