//! Lists the files in `/var/log`, and tells which of them are text logs to read.

use linux_sysadmin_sdk::{DurationCategory, Output, Privilege, prelude::*};

use super::file::{File, LATE};
use super::path::is_rotated;
use crate::budget::Budget;
use crate::clock::SECOND;
use crate::journal;
use crate::service_sources::is_shared;
use crate::time_range::Range;

/// Prints of each file its size, its blocks of 512 bytes, the time of its last change, and its path. A path may hold
/// anything but a zero byte.
const FIND: CommandLine = CommandLine::new("find /var/log -xdev -type f -printf '%s %b %T@ %p\\0'");

/// The grant to list the files.
pub(crate) fn grant() -> CommandGrant {
    FIND.read("names, sizes and times of the files in /var/log").as_root_if_available()
}

/// A file in `/var/log`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) file: File,
    /// The bytes that it takes on disk.
    pub(crate) bytes: u64,
}

/// Lists all files. The second value is true where there are more than the output holds.
pub(crate) fn all(cx: &Context) -> Result<(Vec<Found>, bool)> {
    listed(cx.run(command())?)
}

/// The command that lists all files.
pub(crate) fn command() -> Command {
    FIND.command().privilege(Privilege::RootIfAvailable).duration(DurationCategory::Quick)
}

/// Reads the output of [`command`].
pub(crate) fn listed(output: Output) -> Result<(Vec<Found>, bool)> {
    if output.stdout.is_empty() && output.exit_code != 0 {
        let message = format!("/var/log can't be looked through: {}", output.error_text());
        return Err(Problem::not_found("NO_LOGS", message));
    }
    let found = output.stdout.split(|byte| *byte == 0).filter_map(entry).collect();
    Ok((found, output.truncated))
}

fn entry(text: &[u8]) -> Option<Found> {
    let text = std::str::from_utf8(text).ok()?;
    let mut parts = text.splitn(4, ' ');
    let mut part = || parts.next();
    let (size, blocks, modified) = (part()?.parse().ok()?, part()?.parse::<u64>().ok()?, part()?);
    let modified = modified.split('.').next()?.parse().ok()?;
    Some(Found { file: File::new(part()?.to_owned(), modified, size), bytes: blocks * 512 })
}

/// Tells by its name whether a file is a text log.
pub(crate) fn is_text(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let others = ["wtmp", "btmp", "lastlog", "faillog", "tallylog", "utmp"];
    let is_other = others.iter().any(|other| name == *other || is_rotated(other, name));
    let is_journal =
        path.starts_with("/var/log/journal/") || name.ends_with(".journal") || name.ends_with(".journal~");
    // sysstat writes records of fixed length.
    let is_record = path.contains("/sysstat/") || path.contains("/sa/");
    // At each change apt writes the state of all packages there, for its planner. libgpg-error is no error.
    let is_state = name.starts_with("eipp.log");
    !is_other && !is_journal && !is_record && !is_state && !name.ends_with(".db")
}

/// The text logs that may have lines in a range.
pub(crate) fn text_logs(range: Range, below: &str, found: Vec<Found>) -> Vec<(File, Range)> {
    found
        .into_iter()
        .map(|found| found.file)
        .filter(|file| file.path.starts_with(below) && is_text(&file.path) && file.size != Some(0))
        .filter(|file| range.since.is_none_or(|since| file.modified >= since))
        .map(|file| (file, range))
        .collect()
}

/// The time at which the journal begins, where any of these logs has the same lines as the journal. It is called while
/// journalctl prints.
pub(crate) fn journal_begins(
    cx: &Context,
    budget: &Budget<'_>,
    logs: &[(File, Range)],
) -> Result<Option<i64>> {
    match logs.iter().any(|(file, _)| is_shared(&file.path)) {
        true => journal::first(cx, budget),
        false => Ok(None),
    }
}

/// The logs to read beside a journal, the newest first, each with its range. Lines that the journal has are not read again
/// from the files to which syslog writes them.
pub(crate) fn beside_journal(mut logs: Vec<(File, Range)>, begins: Option<i64>) -> Vec<(File, Range)> {
    if let Some(begins) = begins {
        let before = begins.div_euclid(SECOND) - 1;
        logs.retain_mut(|(file, range)| {
            if is_shared(&file.path) {
                range.until = Some(range.until.map_or(before, |until| until.min(before)));
            }
            range.until.zip(range.since).is_none_or(|(until, since)| since <= until)
        });
    }
    logs.sort_by(|(a, _), (b, _)| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
    // A file begins where the one before it ends. Files that begin after the range are left out.
    let all: Vec<_> = logs.iter().map(|(file, _)| file.clone()).collect();
    logs.retain(|(file, range)| {
        let before =
            all.iter().filter(|other| other.modified < file.modified && same_log(&other.path, &file.path));
        let begins = before.map(|other| other.modified).max();
        range.until.zip(begins).is_none_or(|(until, begins)| begins - LATE <= until)
    });
    logs
}

/// The directory of all logs.
pub(crate) const EVERYWHERE: &str = "/var/log/";

/// Whether two files belong to the same log.
fn same_log(one: &str, other: &str) -> bool {
    let parts =
        |path: &str| path.rsplit_once('/').map(|(folder, name)| (folder.to_owned(), stem(name).to_owned()));
    parts(one) == parts(other)
}

/// The part of the name that a log's files have in common.
pub(crate) fn stem(name: &str) -> &str {
    let unpacked = [".gz", ".xz", ".zst", ".bz2"].iter().find_map(|packed| name.strip_suffix(packed));
    unpacked
        .unwrap_or(name)
        .trim_end_matches(|letter: char| letter.is_ascii_digit() || ".-_".contains(letter))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_log_are_known_by_their_stem() {
        for (one, other, expected) in [
            ("/var/log/syslog", "/var/log/syslog.2.gz", true),
            ("/var/log/cron", "/var/log/cron-20260101", true),
            ("/var/log/a/x.log", "/var/log/b/x.log.1", false),
            ("/var/log/auth.log", "/var/log/syslog.1", false),
        ] {
            assert_eq!(same_log(one, other), expected, "{one} {other}");
        }
    }

    #[test]
    fn what_is_no_text_and_what_the_journal_has_is_known_by_its_name() {
        for path in [
            "/var/log/wtmp",
            "/var/log/btmp.1",
            "/var/log/btmp-20260101",
            "/var/log/journal/x/system.journal",
            "/var/log/sysstat/sa01",
            "/var/log/apt/eipp.log.xz",
        ] {
            assert!(!is_text(path), "{path}");
        }
        assert!(is_text("/var/log/nginx/access.log"));
        assert!(is_shared("/var/log/syslog.1") && is_shared("/var/log/secure-20260101.gz"));
        assert!(!is_shared("/var/log/dpkg.log"));
    }

    #[test]
    fn a_name_may_hold_anything() {
        let found = entry(b"5 8 1795346221.1234567890 /var/log/a b\nc").unwrap();
        assert_eq!(
            (found.file.path.as_str(), found.bytes, found.file.modified),
            ("/var/log/a b\nc", 4096, 1_795_346_221)
        );
        assert_eq!(entry(b""), None);
    }
}
