//! Writes records as text. Text from a client, a module or a target stands on one line, with hidden characters made visible.

use serde_json::Value;

use crate::cli::text::wrap;
use host_audit::{Liveness, Record};
use host_text::visible::{excerpt, one_line};

/// The number of characters of a name in a list of records.
const MAX_NAME: usize = 60;

fn name(text: Option<&str>) -> String {
    one_line(&excerpt(text.unwrap_or("?"), MAX_NAME))
}

/// One record in a list: its number, its time, and what happened.
pub(super) fn row(record: &Record) -> String {
    // A list has times to the second.
    let time = record.time.get(..19).unwrap_or(&record.time).replace('T', " ");
    let head = format!("{:>6}  {}Z  ", record.seq, one_line(&time));
    wrap(&event_text(record), &head, "          ")
}

fn event_text(record: &Record) -> String {
    let word = |member: &str| name(record.word(member));
    let number = |member: &str| record.members.get(member).and_then(Value::as_u64);
    let count = |member: &str| record.members.get(member).and_then(Value::as_array).map_or(0, Vec::len);
    let code = record.word("error_code").map(|code| format!(", {}", name(Some(code)))).unwrap_or_default();
    let on = format!("{} on {}", word("tool"), name(record.word_of("target", "name")));
    match record.event.as_str() {
        "call" => {
            let on = if record.word_of("target", "name").is_some() { on } else { word("tool") };
            let by = record.word_of("called_by", "name");
            let by = by.map(|module| format!(" for module {}", name(Some(module)))).unwrap_or_default();
            let change = record.change().map(|id| format!(", change {}", name(Some(id)))).unwrap_or_default();
            let decision = match record.word("decision") {
                Some("looked" | "none") | None => String::new(),
                Some(decision) => format!(", {}", name(Some(decision))),
            };
            let duration = number("duration_ms").unwrap_or_default();
            format!("{on}{by}: {}{code}{decision}{change}, {duration} ms", word("status"))
        }
        "change-begun" => {
            let by =
                record.word("decided_by").map(|by| format!(" by {}", name(Some(by)))).unwrap_or_default();
            format!("change {} begun: {on}, risk {}, {}{by}", word("id"), word("risk"), word("decision"))
        }
        "change-ended" => {
            let step =
                number("failed_step").map(|step| format!(", step {} failed", step + 1)).unwrap_or_default();
            let interrupted = record.members.get("interrupted") == Some(&Value::Bool(true));
            let interrupted = if interrupted { ", interrupted" } else { "" };
            format!("change {} ended: {}{step}{code}{interrupted}", word("id"), word("outcome"))
        }
        "change-recovered" => format!(
            "change {} recovered by {}: {} put back, {} not",
            word("id"),
            word("by"),
            count("restored"),
            count("not_restored")
        ),
        "rotated" => format!("(the log continues {})", word("from")),
        "dropped" => format!(
            "(old files of the log removed: {}, up to record {})",
            count("files"),
            number("up_to_seq").unwrap_or_default()
        ),
        "mended" => format!(
            "(the log was mended after a crash: {} bytes of a line cut off)",
            number("bytes").unwrap_or_default()
        ),
        other => format!("({})", name(Some(other))),
    }
}

/// Says what is known of a change whose end is not on record.
pub(super) fn life(life: Liveness, id: &str) -> String {
    match life {
        Liveness::Running => "still being made".to_owned(),
        Liveness::Gone => format!(
            "LEFT UNFINISHED: the process that made it is gone; `linux-sysadmin audit recover {}` puts its files back",
            name(Some(id))
        ),
        Liveness::Uncertain => format!(
            "NOBODY KNOWS ITS OUTCOME: the connection went in the middle of it; look at the target, then \
             `linux-sysadmin audit recover {}` puts its files back",
            name(Some(id))
        ),
        Liveness::Unknown => {
            "made on another machine or in another container: nobody can tell from here".to_owned()
        }
    }
}

/// The whole record, with one member a line and nested members indented.
pub(super) fn details(record: &Record) -> String {
    let mut text = format!("{}\n", row(record));
    for (key, value) in &record.members {
        if !matches!(key.as_str(), "seq" | "event") {
            member(&mut text, key, value, 2);
        }
    }
    member(&mut text, "hash", &Value::String(record.hash.clone()), 2);
    text
}

fn member(text: &mut String, key: &str, value: &Value, indent: usize) {
    entry(text, &format!("{}: ", one_line(key)), value, indent);
}

/// Writes a value behind `before`.
fn entry(text: &mut String, before: &str, value: &Value, indent: usize) {
    // However deep the value is, there is room for words.
    let space = " ".repeat(indent.min(40));
    let inner = match value {
        Value::Object(members) if !members.is_empty() => {
            text.push_str(&format!("{space}{}\n", before.trim_end()));
            for (key, value) in members {
                member(text, key, value, indent + 2);
            }
            return;
        }
        Value::Array(items) if !items.is_empty() => {
            text.push_str(&format!("{space}{}\n", before.trim_end()));
            for item in items {
                entry(text, "- ", item, indent + 2);
            }
            return;
        }
        Value::Object(_) | Value::Array(_) | Value::Null => "none".to_owned(),
        Value::String(word) if word.is_empty() => "\"\"".to_owned(),
        Value::String(word) => one_line(word),
        other => other.to_string(),
    };
    text.push_str(&wrap(&inner, &format!("{space}{before}"), &format!("{space}    ")));
    text.push('\n');
}
