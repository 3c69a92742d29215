//! Writes canonical JSON, so that a record has exactly one text and one hash: RFC 8785, restricted to integers.
//!
//! There are crates for all of RFC 8785. Most of their code prints floating-point numbers, which no record holds.

use std::cmp::Ordering;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The largest integer that every reader of JSON keeps as it is: 2^53 - 1.
const LARGEST: u64 = (1 << 53) - 1;

/// The error for a number that has no canonical form here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a number that is no integer of at most 53 bits")]
pub struct NotCanonical;

/// Writes a value with keys in the order of their UTF-16 code units, and without blanks.
pub fn canonical(value: &Value) -> Result<Vec<u8>, NotCanonical> {
    let mut text = Vec::with_capacity(1024);
    write(value, &mut text)?;
    Ok(text)
}

/// Like [`canonical`], for an object.
pub fn canonical_object(members: &Map<String, Value>) -> Result<Vec<u8>, NotCanonical> {
    let mut text = Vec::with_capacity(1024);
    write_object(members, &mut text)?;
    Ok(text)
}

/// The SHA-256 in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Whether a number may stand in a record as it is.
pub fn is_plain(number: &serde_json::Number) -> bool {
    match (number.as_u64(), number.as_i64()) {
        (Some(number), _) => number <= LARGEST,
        (None, Some(number)) => number.unsigned_abs() <= LARGEST,
        (None, None) => false,
    }
}

fn write(value: &Value, text: &mut Vec<u8>) -> Result<(), NotCanonical> {
    match value {
        Value::Null => text.extend(b"null"),
        Value::Bool(true) => text.extend(b"true"),
        Value::Bool(false) => text.extend(b"false"),
        Value::Number(number) if is_plain(number) => text.extend(number.to_string().bytes()),
        Value::Number(_) => return Err(NotCanonical),
        Value::String(string) => write_string(string, text),
        Value::Array(items) => {
            text.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(b',');
                }
                write(item, text)?;
            }
            text.push(b']');
        }
        Value::Object(members) => write_object(members, text)?,
    }
    Ok(())
}

fn write_object(members: &Map<String, Value>, text: &mut Vec<u8>) -> Result<(), NotCanonical> {
    let mut members: Vec<(&String, &Value)> = members.iter().collect();
    members.sort_by(|(left, _), (right, _)| utf16_order(left, right));
    text.push(b'{');
    for (at, (key, value)) in members.into_iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        write_string(key, text);
        text.push(b':');
        write(value, text)?;
    }
    text.push(b'}');
    Ok(())
}

/// Compares two keys by their UTF-16 code units. That is the order of their bytes, unless the first ones that differ begin a
/// character from U+E000 on: UTF-16 has some of these before others that UTF-8 has after them.
fn utf16_order(left: &str, right: &str) -> Ordering {
    match left.bytes().zip(right.bytes()).find(|(left, right)| left != right) {
        None => left.len().cmp(&right.len()),
        Some((left, right)) if left.max(right) < 0xee => left.cmp(&right),
        Some(_) => left.encode_utf16().cmp(right.encode_utf16()),
    }
}

/// Writes a string. serde_json escapes exactly the characters that RFC 8785 names, in the same form.
fn write_string(string: &str, text: &mut Vec<u8>) {
    // Writing a string to memory can't fail.
    let _ = serde_json::to_writer(text, string);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(value: &Value) -> String {
        String::from_utf8(canonical(value).unwrap()).unwrap()
    }

    #[test]
    fn a_value_has_one_form() {
        for (value, form) in [
            (json!({"b": 1, "a": [true, null, -2]}), r#"{"a":[true,null,-2],"b":1}"#),
            (json!({"": {}, "A": []}), r#"{"":{},"A":[]}"#),
            (json!("\u{8}\t\n\u{c}\r\u{1f}\"\\/\u{7f}é"), "\"\\b\\t\\n\\f\\r\\u001f\\\"\\\\/\u{7f}é\""),
            (json!(9_007_199_254_740_991_u64), "9007199254740991"),
        ] {
            assert_eq!(text(&value), form);
        }
    }

    /// RFC 8785, section 3.2.3.
    #[test]
    fn keys_are_sorted_by_their_utf_16_code_units() {
        let value = json!({
            "\u{20ac}": 1, "\r": 2, "\u{fb33}": 3, "1": 4, "\u{1f600}": 5, "\u{80}": 6, "\u{f6}": 7, "10": 8
        });
        assert_eq!(
            text(&value),
            "{\"\\r\":2,\"1\":4,\"10\":8,\"\u{80}\":6,\"\u{f6}\":7,\"\u{20ac}\":1,\"\u{1f600}\":5,\"\u{fb33}\":3}"
        );
    }

    #[test]
    fn a_number_that_readers_might_see_differently_is_refused() {
        for value in
            [json!(1.5), json!(1.0), json!(-0.0), json!(1_u64 << 53), json!(i64::MIN), json!(u64::MAX)]
        {
            assert_eq!(canonical(&json!({"a": [value]})), Err(NotCanonical), "{value}");
        }
    }
}
