//! Limits the size of a record, whatever a client or a module puts into it.
//!
//! Members that can be long and aren't needed to put a change back (arguments, plan, commands) are replaced by their size
//! and hash, the longest first. Names, codes and ids are cut. What recovery needs is never left out: a record in which it
//! is too long is refused, and the change doesn't happen.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::canonical::{canonical, canonical_object, is_plain, sha256};

/// The greatest length of a line in bytes, its newline included.
pub const LONGEST_LINE: usize = 256 << 10;

/// The greatest length of the record of a call that only looked. Such calls are many, and anybody who may look makes them:
/// longer records would soon take the place of older ones about changes.
const LONGEST_LOOK: usize = 8 << 10;

/// The bytes that the writer adds to a record: number, time and two hashes.
const ADDED: usize = 512;

/// The greatest length of a name, a code or an id in bytes.
const LONGEST_WORD: usize = 1024;

/// The greatest number of levels within a member, such as the arguments. It is far below what readers of JSON accept.
const DEEPEST: usize = 64;

/// The members that may be left out of a record that is too long.
const MAY_GO: [&str; 9] = [
    "arguments",
    "commands",
    "exit_codes",
    "not_restored",
    "not_undone",
    "plan",
    "restored",
    "rules",
    "undone",
];

/// A member of a record, or its size and hash where it was too long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MaybeOmitted<T> {
    /// The member was too long, and was left out.
    Omitted(Omitted),
    /// The whole member.
    Whole(T),
}

/// The object that stands in a record in place of a member that was too long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Omitted {
    /// The size of the member as canonical JSON.
    pub omitted_bytes: u64,
    /// The SHA-256 of its canonical JSON, in hexadecimal digits.
    pub sha256: String,
}

impl<T> From<T> for MaybeOmitted<T> {
    fn from(whole: T) -> Self {
        Self::Whole(whole)
    }
}

impl<T> MaybeOmitted<T> {
    /// The member, where it was not left out.
    pub fn whole(&self) -> Option<&T> {
        match self {
            Self::Whole(whole) => Some(whole),
            Self::Omitted(_) => None,
        }
    }
}

/// The size of a record that is too long even without everything that may be left out.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong(pub usize);

/// Makes a record canonical and short enough.
pub fn limit_size(record: &mut Map<String, Value>) -> Result<(), TooLong> {
    for (name, value) in record.iter_mut() {
        match value {
            Value::String(word) => cut(word),
            Value::Object(words) if matches!(name.as_str(), "module" | "target") => {
                words.values_mut().filter_map(as_string).for_each(cut);
            }
            _ => {}
        }
        if depth(value) > DEEPEST {
            *value = omitted(value);
        }
        plain(value);
    }
    let only_looks = record.get("event").is_some_and(|event| event == "call")
        && record.get("change").is_none_or(Value::is_null);
    let most = if only_looks { LONGEST_LOOK } else { LONGEST_LINE } - ADDED;
    let size = |value: &Value| canonical(value).map_or(usize::MAX, |text| text.len());
    loop {
        let whole = canonical_object(record).map_or(usize::MAX, |text| text.len());
        if whole <= most {
            return Ok(());
        }
        let longest = MAY_GO
            .iter()
            .filter_map(|name| Some((*name, size(record.get(*name)?))))
            // The replacement has about 100 bytes itself.
            .filter(|(_, size)| *size > LONGEST_WORD)
            .max_by_key(|(_, size)| *size);
        match longest.and_then(|(name, _)| record.get_mut(name)) {
            Some(value) => *value = omitted(value),
            None => return Err(TooLong(whole)),
        }
    }
}

fn as_string(value: &mut Value) -> Option<&mut String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

fn cut(word: &mut String) {
    if word.len() > LONGEST_WORD {
        let bytes = word.len();
        word.truncate(word.floor_char_boundary(LONGEST_WORD - 32));
        word.push_str(&format!("… ({bytes} bytes)"));
    }
}

fn omitted(value: &mut Value) -> Value {
    plain(value);
    let text = canonical(value).unwrap_or_default();
    json!({"omitted_bytes": text.len(), "sha256": sha256(&text)})
}

/// Turns numbers that have no canonical form into text, so that whatever a client sends can be recorded.
fn plain(value: &mut Value) {
    match value {
        Value::Number(number) if !is_plain(number) => *value = json!({"number": number.to_string()}),
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Object(members) => members.values_mut().for_each(plain),
        _ => {}
    }
}

fn depth(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_longest_gives_way_and_the_rest_stays() {
        let long = "x".repeat(LONGEST_LINE);
        let mut record = object(json!({"arguments": {"a": 1}, "plan": [long], "undo": [["mv a b"]]}));
        limit_size(&mut record).unwrap();
        let bytes = LONGEST_LINE + 4;
        let hash = sha256(format!("[\"{long}\"]").as_bytes());
        assert_eq!(record["plan"], json!({"omitted_bytes": bytes, "sha256": hash}));
        assert_eq!(record["arguments"], json!({"a": 1}));
        assert_eq!(record["undo"], json!([["mv a b"]]));
        let kept: MaybeOmitted<Value> = serde_json::from_value(record["plan"].clone()).unwrap();
        assert!(kept.whole().is_none());
    }

    #[test]
    fn calls_that_only_look_have_short_records() {
        let long = "x".repeat(LONGEST_LOOK);
        for (change, is_cut) in [(json!(null), true), (json!("0123"), false)] {
            let mut record = object(json!({"event": "call", "arguments": {"a": long}, "change": change}));
            limit_size(&mut record).unwrap();
            assert_eq!(record["arguments"]["omitted_bytes"].is_u64(), is_cut);
        }
    }

    #[test]
    fn what_recovery_needs_is_refused_and_never_left_out() {
        let mut record = object(json!({"plan": {}, "undo": [["x".repeat(LONGEST_LINE)]]}));
        assert!(limit_size(&mut record).is_err());
    }

    #[test]
    fn a_word_is_cut_and_says_so() {
        let mut record = object(json!({"tool": "ä".repeat(5000), "target": {"name": "y".repeat(5000)}}));
        limit_size(&mut record).unwrap();
        for word in [&record["tool"], &record["target"]["name"]] {
            let word = word.as_str().unwrap();
            assert!(word.len() <= LONGEST_WORD && word.ends_with("000 bytes)"), "{word}");
        }
    }

    #[test]
    fn any_number_and_any_depth_can_be_put_on_record() {
        let mut deep = json!(1.5);
        for _ in 0..120 {
            deep = json!([deep]);
        }
        let mut record = object(json!({"arguments": {"a": 1.5, "b": u64::MAX, "c": 7}, "plan": deep}));
        limit_size(&mut record).unwrap();
        let arguments = json!({"a": {"number": "1.5"}, "b": {"number": "18446744073709551615"}, "c": 7});
        assert_eq!(record["arguments"], arguments);
        assert!(record["plan"]["omitted_bytes"].is_u64());
        canonical_object(&record).unwrap();
    }
}
