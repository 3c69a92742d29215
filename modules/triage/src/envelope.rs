//! The envelope of another tool's answer. Members that are missing or of another type count as absent, so that no answer can
//! make the whole look fail.

use linux_sysadmin_sdk::{Severity, text};
use serde_json::Value;

/// The most items of one list that are read.
const MOST_ITEMS: usize = 2000;

/// The longest piece of text that is taken from an answer, in characters.
const LONGEST: usize = 300;

/// An answer that succeeded.
#[derive(Clone, Copy)]
pub(crate) struct Envelope<'a>(pub(crate) &'a Value);

impl<'a> Envelope<'a> {
    pub(crate) fn data(self) -> &'a Value {
        &self.0["data"]
    }

    /// The items of a listing.
    pub(crate) fn items(self) -> impl Iterator<Item = &'a Value> {
        list(self.0, "data")
    }

    pub(crate) fn summary(self) -> &'a str {
        raw(self.0, "summary").unwrap_or_default()
    }

    pub(crate) fn notes(self) -> impl Iterator<Item = String> {
        strings(self.0, "notes")
    }
}

/// The members of a list. Nothing where there is no list.
pub(crate) fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value[name].as_array().into_iter().flatten().take(MOST_ITEMS)
}

/// The texts of a list.
pub(crate) fn strings(value: &Value, name: &str) -> impl Iterator<Item = String> {
    list(value, name).filter_map(Value::as_str).map(short)
}

/// A text as it is, for comparisons and for identifiers.
pub(crate) fn raw<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value[name].as_str()
}

/// A text for an answer: one line of bounded length.
pub(crate) fn said(value: &Value, name: &str) -> Option<String> {
    raw(value, name).map(short).filter(|text| !text.is_empty())
}

pub(crate) fn number(value: &Value, name: &str) -> Option<f64> {
    value[name].as_f64()
}

pub(crate) fn count(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or(0)
}

pub(crate) fn is(value: &Value, name: &str) -> bool {
    value[name].as_bool() == Some(true)
}

/// One line of bounded length.
pub(crate) fn short(line: &str) -> String {
    let line: String =
        line.split(['\n', '\r']).map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    text::excerpt(&line, LONGEST)
}

/// A severity by its name in answers.
pub(crate) fn severity(name: Option<&str>) -> Severity {
    match name {
        Some("critical") => Severity::Critical,
        Some("high" | "error") => Severity::High,
        Some("warning") => Severity::Warning,
        _ => Severity::Info,
    }
}

/// A line of a log as `log_query` and `log_search` show it: its time, and the message behind the head.
pub(crate) fn log_line(line: &str) -> (Option<&str>, &str) {
    let (head, message) = line.split_once(": ").unwrap_or(("", line));
    let time =
        head.split(' ').next().and_then(|time| time.split("..").next()).filter(|time| time.len() >= 19);
    match time {
        Some(time) => (Some(time), message),
        None => (None, line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_an_answer_lacks_or_has_in_another_form_is_absent() {
        for odd in [
            json!(null),
            json!([]),
            json!("x"),
            json!({"data": 7, "summary": [], "notes": {}}),
            json!({"data": null}),
        ] {
            let envelope = Envelope(&odd);
            assert_eq!((envelope.items().count(), envelope.summary(), envelope.notes().count()), (0, "", 0));
            assert_eq!(
                (said(&odd, "a"), number(&odd, "a"), count(&odd, "a"), is(&odd, "a")),
                (None, None, 0, false)
            );
        }
    }

    #[test]
    fn texts_are_one_line_of_bounded_length_and_long_lists_are_cut() {
        assert_eq!(short(" a \n\n b\r\nc "), "a b c");
        assert_eq!(short(&"x".repeat(1000)).chars().count(), LONGEST + 1);
        let huge = json!({"data": vec![1; 5000]});
        assert_eq!(Envelope(&huge).items().count(), MOST_ITEMS);
    }

    #[test]
    fn the_head_of_a_log_line_is_its_time_and_not_its_message() {
        for (line, time, message) in [
            ("2026-11-22T11:17:01Z sshd err x3: a: b", Some("2026-11-22T11:17:01Z"), "a: b"),
            ("2026-11-22T11:17:01Z..11:18:00Z: a", Some("2026-11-22T11:17:01Z"), "a"),
            ("2026-11-22T11:17:01.25Z kernel: a", Some("2026-11-22T11:17:01.25Z"), "a"),
            ("no time: at all", None, "no time: at all"),
            ("", None, ""),
        ] {
            assert_eq!(log_line(line), (time, message));
        }
    }
}
