//! Errors of a unit's journal, the same ones folded, with what the profile says of them. Of one that doesn't run, whatever
//! the profile knows to matter counts too: programs often say why they ended without saying that it is an error.

use std::collections::HashMap;

use linux_sysadmin_sdk::knowledge::{LogSource, Profile, expression};
use linux_sysadmin_sdk::{Output, Privilege, prelude::*, time::rfc3339};

use crate::{evidence, health, name};

/// How far back, in seconds, where the unit runs longer.
const WINDOW: i64 = 3600;

/// How many kinds are told.
const MOST: usize = 5;

/// How many messages are read.
const LINES: usize = 300;

/// Units whose journals are read.
const UNITS: usize = 16;

/// Errors and worse; a unit's journal holds what systemd says of it as well.
const PATTERN: &str = "journalctl --no-pager --quiet --output=json --output-fields=MESSAGE,PRIORITY \
                       (--priority=err|--priority=debug) --lines=<int> --since=<time> --unit=<unit>...";

pub(crate) fn grant() -> CommandGrant {
    CommandGrant::read(PATTERN, "recent errors of a service").as_root_if_available()
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

/// The question, of the unit and of those whose journals the profile names.
pub(crate) fn ask(unit: &str, profile: Option<&Profile>, since: i64, runs: bool) -> Command {
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
        .args(["--no-pager", "--quiet", "--output=json", "--output-fields=MESSAGE,PRIORITY"])
        .arg(if runs { "--priority=err" } else { "--priority=debug" })
        .arg(format!("--lines={LINES}"))
        .arg(format!("--since=@{}", since.max(0)))
        .args(units.iter().map(|unit| format!("--unit={unit}")))
        .privilege(Privilege::RootIfAvailable)
}

/// The most recent kinds first; or why nobody can tell.
pub(crate) fn read(answer: &Result<Output>, profile: Option<&Profile>) -> (Vec<Repeated>, Option<String>) {
    let output = match answer {
        Ok(output) if output.exit_code == 0 || !output.stdout.is_empty() => output,
        Ok(output) => {
            return (Vec::new(), Some(format!("its journal can't be read: {}", evidence::summary(output))));
        }
        Err(problem) => {
            return (Vec::new(), Some(format!("its journal can't be read: {}", evidence::why(problem))));
        }
    };
    let patterns: Vec<_> = profile
        .iter()
        .flat_map(|profile| &profile.log_patterns)
        .filter_map(|pattern| Some((expression(&pattern.matches).ok()?, pattern)))
        .collect();
    let counts = |message: &Message| {
        message.is_error || patterns.iter().any(|(regex, _)| regex.is_match(&message.text))
    };
    let messages: Vec<Message> = output.text().lines().filter_map(message).filter(counts).collect();
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

    fn answer(stdout: &str) -> Result<Output> {
        Ok(Output {
            exit_code: 0,
            stdout: stdout.into(),
            stderr: Vec::new(),
            stdout_bytes: 0,
            stdout_lines: 0,
            truncated: false,
            duration_ms: 1,
        })
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
        let (kinds, note) = read(&answer(&text.concat()), Some(&profile));
        assert_eq!(note, None);
        let kinds = serde_json::to_value(kinds).unwrap();
        let expected = serde_json::json!([
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
        let (kinds, note) = read(&answer(&text), None);
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
