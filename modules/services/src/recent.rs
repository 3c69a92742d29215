//! Errors of a unit's journal and of its text logs, the same ones folded, with what the profile says of them. Of text logs,
//! and of one that doesn't run, whatever the profile knows to matter counts: programs often say why they ended without
//! saying that it is an error.

use std::collections::HashMap;

use linux_sysadmin_sdk::knowledge::{Log, LogFormat, LogSource, Profile, expression};
use linux_sysadmin_sdk::{Privilege, prelude::*, time::rfc3339};

use crate::asked::{Answers, Asked, Questions};
use crate::{evidence, health, log_time, name};

/// How far back, in seconds, where the unit runs longer.
const WINDOW: i64 = 3600;

/// How many kinds are told.
const MOST: usize = 5;

/// How many messages are read.
const LINES: usize = 300;

/// Units whose journals are read.
const UNITS: usize = 16;

/// Errors and worse, the latest first: from a time on, journalctl 252 counts lines from there, unless it goes back from the
/// end. A unit's journal holds what systemd says of it as well.
const PATTERN: &str = "journalctl --no-pager --quiet --reverse --output=json --output-fields=MESSAGE,PRIORITY \
                       (--priority=err|--priority=debug) --lines=<int> --since=<time> --unit=<unit>...";

/// The end of a text log.
const TAIL: CommandLine = CommandLine::new("tail --lines=<int> -- <path:/var/log/**>");

/// In which time zone text logs are written.
const ZONE: CommandLine = CommandLine::new("date +%z");

/// How many text logs are looked at.
const FILES: usize = 4;

pub(crate) fn grants() -> [CommandGrant; 3] {
    [
        CommandGrant::read(PATTERN, "recent errors of a service").as_root_if_available(),
        TAIL.read("recent errors in a service's text logs").as_root_if_available(),
        ZONE.read("the time zone of text logs"),
    ]
}

/// A kind of message.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(crate) struct Repeated {
    /// The latest of its kind.
    message: String,
    last: String,
    /// Where it came more than once.
    #[serde(skip_serializing_if = "is_one")]
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    means: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<&'static str>,
    /// For `svc_troubleshoot`.
    #[serde(skip_serializing_if = "Option::is_none")]
    symptom: Option<String>,
}

fn is_one(count: &u64) -> bool {
    *count == 1
}

/// Of a unit that runs: since its start, an hour at most; else since an hour before it ended.
pub(crate) fn since(now: i64, started: Option<i64>, ended: Option<i64>) -> i64 {
    match (started, ended) {
        (Some(started), _) => started.max(now - WINDOW).min(now),
        (None, Some(ended)) => (ended - WINDOW).min(now - WINDOW),
        (None, None) => now - WINDOW,
    }
}

/// What there is to ask, and over which time.
pub(crate) struct Asking {
    journal: Asked,
    files: Vec<Asked>,
    zone: Option<Asked>,
    now: i64,
    since: i64,
}

/// The questions.
pub(crate) fn ask(
    unit: &str,
    profile: Option<&Profile>,
    (now, since): (i64, i64),
    runs: bool,
    questions: &mut Questions,
) -> Asking {
    let is_telling = |log: &&Log| !matches!(log.format, LogFormat::Binary | LogFormat::Common);
    let path = |log: &Log| match &log.source {
        LogSource::Path(path) if path.starts_with("/var/log/") && !path.contains('*') => Some(path.clone()),
        _ => None,
    };
    let known = profile.iter().filter(|profile| !profile.log_patterns.is_empty());
    let paths: Vec<String> =
        known.flat_map(|profile| &profile.logs).filter(is_telling).filter_map(path).collect();
    let tail = |path: &String| {
        let tail = TAIL.with([LINES.to_string(), path.clone()]);
        questions.ask(tail.privilege(Privilege::RootIfAvailable))
    };
    let files: Vec<Asked> = paths.iter().take(FILES).map(tail).collect();
    let zone = (!files.is_empty()).then(|| questions.ask(ZONE.command()));
    Asking { journal: questions.ask(journal(unit, profile, since, runs)), files, zone, now, since }
}

/// Of the unit and of those whose journals the profile names.
fn journal(unit: &str, profile: Option<&Profile>, since: i64, runs: bool) -> Command {
    let mut units = vec![unit.to_owned()];
    for log in profile.iter().flat_map(|profile| &profile.logs) {
        let LogSource::Journal(journal) = &log.source else { continue };
        // That of a template has its instances.
        if name::full(journal).is_ok_and(|full| full == *journal) && !units.contains(journal) {
            units.push(journal.clone());
        }
    }
    units.truncate(UNITS);
    Command::new("journalctl")
        .args(["--no-pager", "--quiet", "--reverse", "--output=json", "--output-fields=MESSAGE,PRIORITY"])
        .arg(if runs { "--priority=err" } else { "--priority=debug" })
        .arg(format!("--lines={LINES}"))
        .arg(format!("--since=@{}", since.max(0)))
        .args(units.iter().map(|unit| format!("--unit={unit}")))
        .privilege(Privilege::RootIfAvailable)
}

/// The most recent kinds first; and what couldn't be read, or isn't told.
pub(crate) fn read(
    asked: &Asking,
    answers: &Answers,
    profile: Option<&Profile>,
) -> (Vec<Repeated>, Option<String>) {
    let (text, unreadable) = match answers.of(asked.journal) {
        Ok(output) if output.exit_code == 0 || !output.stdout.is_empty() => {
            (output.text().into_owned(), None)
        }
        Ok(output) => (String::new(), Some(evidence::summary(output))),
        Err(problem) => (String::new(), Some(evidence::why(problem))),
    };
    let unreadable = unreadable.map(|why| format!("its journal can't be read: {why}"));
    let zone = asked.zone.and_then(|zone| answers.stdout(zone));
    let offset = zone.and_then(|zone| log_time::seconds(zone.trim())).unwrap_or_default();
    let files = asked.files.iter().filter_map(|file| answers.stdout(*file)).collect::<Vec<_>>();
    let written = |line: &str| {
        let time = log_time::written(line, asked.now, offset).filter(|time| *time >= asked.since)?;
        Some(Message { time, text: line.to_owned(), is_error: false })
    };
    let lines = files.iter().flat_map(|file| file.lines());
    // Oldest first: of those of one second the last counts.
    let mut all: Vec<_> = text.lines().filter_map(message).collect();
    all.reverse();
    let (kinds, note) = tell(all.into_iter(), lines, &written, profile);
    (kinds, unreadable.or(note))
}

/// Messages of the journal, and lines of text logs, of which those are read that the profile knows.
fn tell<'a>(
    messages: impl Iterator<Item = Message>,
    lines: impl Iterator<Item = &'a str>,
    written: &impl Fn(&str) -> Option<Message>,
    profile: Option<&Profile>,
) -> (Vec<Repeated>, Option<String>) {
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
            kind.severity = Some(health::severity(pattern.severity));
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

/// What isn't a message of text is none.
fn message(line: &str) -> Option<Message> {
    #[derive(Deserialize)]
    struct Entry {
        #[serde(rename = "__REALTIME_TIMESTAMP")]
        time: String,
        #[serde(rename = "MESSAGE")]
        message: serde_json::Value,
        #[serde(rename = "PRIORITY")]
        priority: Option<String>,
    }
    let entry: Entry = serde_json::from_str(line).ok()?;
    let text = match entry.message {
        serde_json::Value::String(text) => text,
        // Of one that isn't UTF-8, or has control characters in it, journalctl prints the bytes.
        serde_json::Value::Array(bytes) => {
            let bytes =
                bytes.iter().filter_map(|byte| u8::try_from(byte.as_u64()?).ok()).collect::<Vec<u8>>();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        _ => return None,
    };
    let microseconds: i64 = entry.time.parse().ok()?;
    // 0 is an emergency, 3 an error.
    let is_error = entry.priority.is_some_and(|priority| matches!(priority.as_str(), "0" | "1" | "2" | "3"));
    Some(Message { time: microseconds / 1_000_000, text, is_error })
}

/// Messages that differ in numbers only are the same.
fn fold(messages: &[Message]) -> Vec<Repeated> {
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
    let repeated = |(time, text, count): (i64, &str, u64)| Repeated {
        message: evidence::cut(&text.replace('\n', "; ")),
        last: rfc3339(time),
        count,
        means: None,
        severity: None,
        symptom: None,
    };
    kinds.into_iter().map(repeated).collect()
}

fn without_numbers(text: &str) -> String {
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

    /// In the form of journalctl 252.
    fn line(second: i64, message: &str) -> String {
        of(second, 3, message)
    }

    fn of(second: i64, priority: u8, message: &str) -> String {
        let time = format!("\"__REALTIME_TIMESTAMP\":\"{second}000123\",\"_BOOT_ID\":\"b\"");
        format!("{{\"__CURSOR\":\"s=1\",{time},\"PRIORITY\":\"{priority}\",\"MESSAGE\":{message}}}\n")
    }

    fn told(journal: &str, lines: &str, profile: Option<&Profile>) -> (Vec<Repeated>, Option<String>) {
        let written = |line: &str| {
            let time = log_time::written(line, 0, 0)?;
            Some(Message { time, text: line.to_owned(), is_error: false })
        };
        tell(journal.lines().filter_map(message), lines.lines(), &written, profile)
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
        let (kinds, note) = told(&text.concat(), lines, Some(&profile));
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
        let (kinds, note) = told(&text, "", None);
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
