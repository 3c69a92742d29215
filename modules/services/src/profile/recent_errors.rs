//! Recent errors in a unit's journal and text logs, with equal ones folded, and with their meaning from the profile.
//!
//! A line of a text log counts where it matches a pattern of the profile. So does a message in the journal of a unit that
//! doesn't run, because programs often say why they ended without marking it as an error.

use std::collections::HashMap;

use linux_sysadmin_sdk::knowledge::{Log, LogFormat, LogSource, Profile, evidence_lines, expression};
use linux_sysadmin_sdk::{JournalEntry, Privilege, prelude::*, time::rfc3339};

use super::command_batch::{CommandBatch, CommandIndex, Outputs};
use super::log_timestamps;
use crate::systemd::{journal, unit_name};

/// The time before now, in seconds, in which errors count as recent.
const WINDOW: i64 = 3600;

/// The number of kinds of messages in an answer.
const MOST: usize = 5;

/// The number of units whose journals are read.
const UNITS: usize = 16;

/// Prints the end of a text log.
const TAIL: CommandLine = CommandLine::new("tail --lines=<int> -- <path:/var/log/**>");

/// Prints the target's time zone, in which text logs are written.
const ZONE: CommandLine = CommandLine::new("date +%z");

/// The number of text logs that are read.
const FILES: usize = 4;

pub(crate) fn grants() -> [CommandGrant; 2] {
    [
        TAIL.read("recent errors in a service's text logs").as_root_if_available(),
        ZONE.read("the time zone of text logs"),
    ]
}

/// A kind of message.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(crate) struct RepeatedMessage {
    /// The latest message of its kind.
    message: String,
    /// The time of that message.
    last: String,
    /// The number of messages. It is left out where it is 1.
    #[serde(skip_serializing_if = "is_one")]
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    means: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<&'static str>,
    /// The symptom to give to `svc_troubleshoot`.
    #[serde(skip_serializing_if = "Option::is_none")]
    symptom: Option<String>,
}

impl RepeatedMessage {
    /// Whether a line differs from the message in numbers at most.
    pub(crate) fn says(&self, line: &str) -> bool {
        without_numbers(&self.message) == without_numbers(line)
    }
}

fn is_one(count: &u64) -> bool {
    *count == 1
}

/// The time from which on messages count, in seconds since the epoch. For a unit that runs it is its start, and at most an
/// hour ago. For another unit it is an hour before its end, and at least an hour ago.
pub(crate) fn since(now: i64, started: Option<i64>, ended: Option<i64>) -> i64 {
    match (started, ended) {
        (Some(started), _) => started.max(now - WINDOW).min(now),
        (None, Some(ended)) => (ended - WINDOW).min(now - WINDOW),
        (None, None) => now - WINDOW,
    }
}

/// The commands that read the logs, and the time that they cover.
pub(crate) struct LogCommands {
    pub(crate) journal: CommandIndex,
    files: Vec<CommandIndex>,
    zone: Option<CommandIndex>,
    now: i64,
    since: i64,
}

/// Adds the commands that read the logs to a batch.
pub(crate) fn add(
    unit: &str,
    profile: Option<&Profile>,
    (now, since): (i64, i64),
    runs: bool,
    batch: &mut CommandBatch,
) -> LogCommands {
    let is_telling = |log: &&Log| !matches!(log.format, LogFormat::Binary | LogFormat::Common);
    let path = |log: &Log| match &log.source {
        LogSource::Path(path) if path.starts_with("/var/log/") && !path.contains('*') => Some(path.clone()),
        _ => None,
    };
    let known = profile.iter().filter(|profile| !profile.log_patterns.is_empty());
    let paths: Vec<String> =
        known.flat_map(|profile| &profile.logs).filter(is_telling).filter_map(path).collect();
    let tail = |path: &String| {
        let tail = TAIL.with([journal::LINES.to_string(), path.clone()]);
        batch.add(tail.privilege(Privilege::RootIfAvailable))
    };
    let files: Vec<CommandIndex> = paths.iter().take(FILES).map(tail).collect();
    let zone = (!files.is_empty()).then(|| batch.add(ZONE.command()));
    LogCommands { journal: batch.add(journal_of(unit, profile, since, runs)), files, zone, now, since }
}

/// The command that reads the journal of the unit and of the units whose journals the profile names.
fn journal_of(unit: &str, profile: Option<&Profile>, since: i64, runs: bool) -> Command {
    let mut units = vec![unit.to_owned()];
    for log in profile.iter().flat_map(|profile| &profile.logs) {
        let LogSource::Journal(journal) = &log.source else { continue };
        // A template is left out: only its instances have journals.
        if unit_name::full(journal).is_ok_and(|full| full == *journal) && !units.contains(journal) {
            units.push(journal.clone());
        }
    }
    units.truncate(UNITS);
    journal::command(&units, runs, Some(since))
}

/// The kinds of messages, the most recent first, and a note on what couldn't be read or is left out. That the unit `failed`
/// is none of them.
pub(crate) fn read(
    commands: &LogCommands,
    outputs: &Outputs,
    profile: Option<&Profile>,
    failed: Option<&str>,
) -> (Vec<RepeatedMessage>, Option<String>) {
    let (text, unreadable) = match outputs.of(commands.journal) {
        Ok(output) if output.exit_code == 0 || !output.stdout.is_empty() => {
            (output.text().into_owned(), None)
        }
        Ok(output) => (String::new(), Some(evidence_lines::summary(output))),
        Err(problem) => (String::new(), Some(evidence_lines::why(problem))),
    };
    let unreadable = unreadable.map(|why| format!("its journal can't be read: {why}"));
    let zone = commands.zone.and_then(|zone| outputs.stdout(zone));
    let offset = zone.and_then(|zone| log_timestamps::seconds(zone.trim())).unwrap_or_default();
    let files = commands.files.iter().filter_map(|file| outputs.stdout(*file)).collect::<Vec<_>>();
    let written = |line: &str| {
        let time =
            log_timestamps::written(line, commands.now, offset).filter(|time| *time >= commands.since)?;
        Some(Message { time, text: line.to_owned(), is_error: false })
    };
    let lines = files.iter().flat_map(|file| file.lines());
    // The oldest message comes first, because the last one of a second is the latest of its kind.
    let mut all: Vec<_> = text.lines().filter_map(|line| message(line, failed)).collect();
    all.reverse();
    let (kinds, note) = kinds(all.into_iter(), lines, &written, profile);
    (kinds, unreadable.or(note))
}

/// The kinds of messages of the journal, and of the lines of text logs that the profile knows.
fn kinds<'a>(
    messages: impl Iterator<Item = Message>,
    lines: impl Iterator<Item = &'a str>,
    written: &impl Fn(&str) -> Option<Message>,
    profile: Option<&Profile>,
) -> (Vec<RepeatedMessage>, Option<String>) {
    let patterns: Vec<_> = profile
        .iter()
        .flat_map(|profile| &profile.log_patterns)
        .filter_map(|pattern| Some((expression(&pattern.matches).ok()?, pattern)))
        .collect();
    let is_known = |text: &str| patterns.iter().any(|(regex, _)| regex.is_match(text));
    let counts = |message: &Message| message.is_error || is_known(&message.text);
    let lines = lines.filter(|line| is_known(line)).filter_map(written);
    let messages: Vec<Message> = messages.filter(counts).chain(lines).collect();
    let mut kinds = fold(&messages);
    let untold = kinds.len().saturating_sub(MOST);
    kinds.truncate(MOST);
    for kind in &mut kinds {
        if let Some((_, pattern)) = patterns.iter().find(|(regex, _)| regex.is_match(&kind.message)) {
            kind.means = Some(pattern.means.clone());
            kind.severity = Some(pattern.severity.name());
            kind.symptom.clone_from(&pattern.symptom);
        }
    }
    let note =
        (untold > 0).then(|| format!("recent_errors has the latest {MOST} of {} kinds", untold + MOST));
    (kinds, note)
}

struct Message {
    /// Seconds since the epoch.
    time: i64,
    text: String,
    is_error: bool,
}

/// Reads a line of journalctl. None where it holds no text message, or only that the unit `failed`.
fn message(line: &str, failed: Option<&str>) -> Option<Message> {
    let entry = JournalEntry::parse(line.as_bytes())?;
    if failed.is_some() && entry.unit() == failed && journal::is_failed_job(&entry) {
        return None;
    }
    Some(Message {
        time: entry.microseconds()? / 1_000_000,
        text: entry.message()?.to_owned(),
        is_error: entry.is_error(),
    })
}

/// Folds messages that differ in numbers only.
fn fold(messages: &[Message]) -> Vec<RepeatedMessage> {
    let mut kinds: HashMap<String, (i64, &str, u64)> = HashMap::new();
    for Message { time, text, .. } in messages {
        let kind = kinds.entry(without_numbers(text)).or_insert((*time, text, 0));
        kind.2 += 1;
        if *time >= kind.0 {
            (kind.0, kind.1) = (*time, text);
        }
    }
    let mut kinds: Vec<(i64, &str, u64)> = kinds.into_values().collect();
    kinds.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let repeated = |(time, text, count): (i64, &str, u64)| RepeatedMessage {
        message: journal::line(text),
        last: rfc3339(time),
        count,
        means: None,
        severity: None,
        symptom: None,
    };
    kinds.into_iter().map(repeated).collect()
}

/// The kinds of all lines that journalctl printed, the latest first, whatever their priority.
pub(crate) fn kinds_of_lines(printed: &str, most: usize) -> Vec<RepeatedMessage> {
    let mut messages: Vec<Message> = printed.lines().filter_map(|line| message(line, None)).collect();
    // The oldest message comes first, because the last one of a second is the latest of its kind.
    messages.reverse();
    let mut kinds = fold(&messages);
    kinds.truncate(most);
    kinds
}

pub(super) fn without_numbers(text: &str) -> String {
    let mut kind = String::new();
    for character in text.chars().take(300) {
        let character = if character.is_ascii_digit() { '#' } else { character };
        if character != '#' || !kind.ends_with('#') {
            kind.push(character);
        }
    }
    kind
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::knowledge::{LogPattern, Severity};
    use linux_sysadmin_sdk::testkit::profile;

    /// A line as journalctl 252 prints it.
    fn line(second: i64, message: &str) -> String {
        of(second, 3, message)
    }

    fn of(second: i64, priority: u8, message: &str) -> String {
        let time = format!("\"__REALTIME_TIMESTAMP\":\"{second}000123\",\"_BOOT_ID\":\"b\"");
        format!("{{\"__CURSOR\":\"s=1\",{time},\"PRIORITY\":\"{priority}\",\"MESSAGE\":{message}}}\n")
    }

    fn read(journal: &str, lines: &str, profile: Option<&Profile>) -> (Vec<RepeatedMessage>, Option<String>) {
        let written = |line: &str| {
            let time = log_timestamps::written(line, 0, 0)?;
            Some(Message { time, text: line.to_owned(), is_error: false })
        };
        super::kinds(journal.lines().filter_map(|line| message(line, None)), lines.lines(), &written, profile)
    }

    #[test]
    fn messages_that_differ_in_numbers_only_are_one_kind_and_the_latest_comes_first() {
        let mut profile = profile("nginx");
        profile.log_patterns.push(LogPattern {
            matches: r"\[emerg\]".into(),
            severity: Severity::Critical,
            means: "It can't be used".into(),
            symptom: Some("doesnt-start".into()),
        });
        let text = [
            line(100, "\"[emerg] 17#17: bad line 3\""),
            line(300, "\"gone\""),
            of(200, 6, "\"[emerg] 99#99: bad line 4\""),
            of(400, 4, "\"nothing to worry about\""),
            line(150, "[103,111,255]"),
            line(150, "null"),
            "no json\n".to_owned(),
            "{\"MESSAGE\":\"without a time\"}\n".to_owned(),
        ];
        let lines = "1970/01/01 00:10:00 [emerg] 1#1: other\n1970/01/01 00:11:00 [info] nothing\n[emerg] at no time\n";
        let (kinds, note) = read(&text.concat(), lines, Some(&profile));
        assert_eq!(note, None);
        let kinds = serde_json::to_value(kinds).unwrap();
        let expected = serde_json::json!([
            {"message": "1970/01/01 00:10:00 [emerg] 1#1: other", "last": "1970-01-01T00:10:00Z",
             "means": "It can't be used", "severity": "critical", "symptom": "doesnt-start"},
            {"message": "gone", "last": "1970-01-01T00:05:00Z"},
            {"message": "[emerg] 99#99: bad line 4", "last": "1970-01-01T00:03:20Z", "count": 2,
             "means": "It can't be used", "severity": "critical", "symptom": "doesnt-start"},
            {"message": "go\u{fffd}", "last": "1970-01-01T00:02:30Z"},
        ]);
        assert_eq!(kinds, expected);
    }

    #[test]
    fn of_many_kinds_the_latest_are_told_and_that_there_are_more() {
        let text: String =
            ('a'..='z').map(|letter| line(i64::from(letter as u32), &format!("\"{letter}\""))).collect();
        let (kinds, note) = read(&text, "", None);
        let messages: Vec<_> = kinds.iter().map(|kind| kind.message.as_str()).collect();
        assert_eq!(messages, ["z", "y", "x", "w", "v"]);
        assert_eq!(note.as_deref(), Some("recent_errors has the latest 5 of 26 kinds"));
    }

    #[test]
    fn how_far_back_depends_on_when_it_started_or_ended() {
        for (started, ended, expected) in [
            (Some(90_000), None, 96_400),
            (Some(99_000), None, 99_000),
            (Some(100_500), None, 100_000),
            (None, Some(50_000), 46_400),
            (None, Some(99_990), 96_390),
            (None, None, 96_400),
        ] {
            assert_eq!(since(100_000, started, ended), expected, "{started:?} {ended:?}");
        }
    }
}
