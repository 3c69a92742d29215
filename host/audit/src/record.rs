//! A record: its line is made from an event, and read back.

use serde_json::{Map, Value};

use super::AuditError;
use super::canonical::{canonical_object, sha256};
use super::event::Event;
use host_base::sha256::is_sha256;

/// The `prev_hash` of the very first record.
pub const NONE_BEFORE: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A record whose line is canonical JSON with the right hash. [`verify`](super::verify) checks that it stands at the right
/// place in the chain.
#[derive(Clone, Debug)]
pub struct Record {
    /// The record's number, counted from 1.
    pub seq: u64,
    /// The time at which it was written: RFC 3339, in UTC, with milliseconds.
    pub time: String,
    /// The name of its [`Event`], as it is written.
    pub event: String,
    /// The hash of the record before it.
    pub prev_hash: String,
    /// The record's own hash.
    pub hash: String,
    /// All members except `hash`.
    pub members: Map<String, Value>,
    /// The line as it is in the file, without its newline.
    pub line: String,
}

/// A difference between what a line should say and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The value that was expected.
    pub expected: String,
    /// The value that was found.
    pub found: String,
}

impl Mismatch {
    /// Makes a mismatch from a few words for each side.
    pub fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { expected: expected.into(), found: found.into() }
    }
}

impl Record {
    /// Reads a line, which is given without its newline.
    pub fn parse(line: &[u8]) -> Result<Self, Mismatch> {
        let mut members: Map<String, Value> = serde_json::from_slice(line).map_err(|error| {
            Mismatch::new("a record, as a JSON object", format!("no such object: {error}"))
        })?;
        let written = canonical_object(&members)
            .map_err(|error| Mismatch::new("whole numbers only", error.to_string()))?;
        if written != line {
            return Err(Mismatch::new("canonical JSON", "the same members written otherwise"));
        }
        let missing = |name: &str| Mismatch::new(format!("a record with {name}"), format!("no valid {name}"));
        let word = |members: &Map<String, Value>, name: &str| match members.get(name) {
            Some(Value::String(word)) => Ok(word.clone()),
            _ => Err(missing(name)),
        };
        let digest = |members: &Map<String, Value>, name: &str| {
            word(members, name).and_then(|word| if is_sha256(&word) { Ok(word) } else { Err(missing(name)) })
        };
        let hash = digest(&members, "hash")?;
        members.remove("hash");
        let hashed = canonical_object(&members).map(|text| sha256(&text)).unwrap_or_default();
        if hashed != hash {
            return Err(Mismatch::new(
                format!("hash {hashed}, of what the record says"),
                format!("hash {hash}"),
            ));
        }
        let seq = members.get("seq").and_then(Value::as_u64).ok_or_else(|| missing("seq"))?;
        let line = String::from_utf8(line.to_vec()).map_err(|_| Mismatch::new("UTF-8", "something else"))?;
        Ok(Self {
            seq,
            time: word(&members, "time")?,
            event: word(&members, "event")?,
            prev_hash: digest(&members, "prev_hash")?,
            hash,
            members,
            line,
        })
    }

    /// The event. An error where a newer version wrote an event that this one doesn't know.
    pub fn to_event(&self) -> Result<Event, serde_json::Error> {
        serde_json::from_value(Value::Object(self.members.clone()))
    }

    /// The member of this name, where it is a string.
    pub fn word(&self, name: &str) -> Option<&str> {
        self.members.get(name)?.as_str()
    }

    /// The member `of` of the object `name`, where it is a string.
    pub fn word_of(&self, name: &str, of: &str) -> Option<&str> {
        self.members.get(name)?.get(of)?.as_str()
    }

    /// The id of the change that the record belongs to: the member `change` of a call, and `id` of every other event.
    pub fn change(&self) -> Option<&str> {
        self.word(if self.event == "call" { "change" } else { "id" })
    }
}

/// Makes a record's line, with its newline, and its hash.
pub fn seal(
    mut members: Map<String, Value>,
    seq: u64,
    time: String,
    prev_hash: &str,
) -> Result<(Vec<u8>, String), AuditError> {
    // Such a member of the event would be overwritten, and read back as something else.
    if let Some(taken) =
        ["seq", "time", "prev_hash", "hash"].into_iter().find(|name| members.contains_key(*name))
    {
        return Err(AuditError::Unwritable(format!("it has a member {taken} of its own")));
    }
    members.insert("seq".to_owned(), seq.into());
    members.insert("time".to_owned(), time.into());
    members.insert("prev_hash".to_owned(), prev_hash.into());
    let hash = sha256(&canonical_object(&members)?);
    members.insert("hash".to_owned(), hash.clone().into());
    let mut line = canonical_object(&members)?;
    line.push(b'\n');
    Ok((line, hash))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line() -> String {
        let members = serde_json::from_value(json!({"event": "mended", "bytes": 3, "é": "\n"})).unwrap();
        let (line, hash) = seal(members, 7, "2026-01-02T03:04:05.006Z".to_owned(), NONE_BEFORE).unwrap();
        let line = String::from_utf8(line).unwrap();
        assert!(line.contains(&hash) && line.ends_with("}\n"));
        line.trim_end().to_owned()
    }

    #[test]
    fn what_is_sealed_is_what_is_parsed() {
        let record = Record::parse(line().as_bytes()).unwrap();
        assert_eq!((record.seq, record.event.as_str()), (7, "mended"));
        assert_eq!(record.line, line());
        assert!(matches!(record.to_event().unwrap(), Event::Mended(mended) if mended.bytes == 3));
    }

    #[test]
    fn an_event_with_a_member_of_the_chains_own_is_refused() {
        for name in ["seq", "time", "prev_hash", "hash"] {
            let members = serde_json::from_value(json!({"event": "x", name: "y"})).unwrap();
            assert!(matches!(seal(members, 1, String::new(), NONE_BEFORE), Err(AuditError::Unwritable(_))));
        }
    }

    #[test]
    fn a_line_that_is_not_what_was_sealed_is_refused_with_the_reason() {
        let line = line();
        for (from, to, word) in [
            ("\"bytes\":3", "\"bytes\":4", "of what the record says"),
            ("\"bytes\":3", "\"bytes\": 3", "canonical"),
            ("\"bytes\":3", "\"bytes\":3.0", "whole numbers"),
            ("\"bytes\":3", "\"bytes\":3,\"bytes\":3", "canonical"),
            ("\"bytes\":3", "\"bytes\":", "JSON object"),
            ("\\n", "\\u000a", "canonical"),
            ("\"hash\":\"", "\"hash\":\"0", "hash"),
            ("{", "[{", "JSON object"),
        ] {
            let mismatch = Record::parse(line.replacen(from, to, 1).as_bytes()).unwrap_err();
            assert!(mismatch.expected.contains(word), "{to}: {mismatch:?}");
        }
    }
}
