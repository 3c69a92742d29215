//! Takes secrets out of JSON: those in strings, and those that a member's name gives away.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::names::{is_no_secret, is_secret_name};
use super::{REDACTED, block, redact};

/// Redacts every string and key of a value. A string under a secret's name is redacted whatever it holds, and so is
/// the item after an option like `--password` in a list of arguments.
pub fn redact_value(value: &mut Value) {
    match value {
        Value::String(text) => redact_string(text),
        Value::Array(items) => {
            // This comes before each item is looked at: once the beginning or the end of a key is replaced, nothing
            // shows that there was a key.
            keys_in_lines(items);
            let mut is_secret = false;
            for item in items {
                let is_option = matches!(&*item, Value::String(text) if is_secret_option(text));
                if is_secret {
                    hide(item)
                } else {
                    redact_value(item)
                }
                is_secret = is_option;
            }
        }
        Value::Object(members) => redact_members(members),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Hides keys that span several items. The journal keeps such a key with one line in each item, either as a string or
/// under one name in each item. Where a list was cut, the beginning or the end may be missing.
fn keys_in_lines(items: &mut [Value]) {
    let members = items.iter().filter_map(Value::as_object).flatten();
    let names: BTreeSet<&str> =
        members.filter(|(_, value)| value.is_string()).map(|(name, _)| name.as_str()).collect();
    let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    block::hide_lines(items.iter_mut().filter_map(as_text).collect());
    for name in names {
        block::hide_lines(items.iter_mut().filter_map(|item| as_text(item.get_mut(&name)?)).collect());
    }
}

fn as_text(value: &mut Value) -> Option<&mut String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

fn redact_members(members: &mut Map<String, Value>) {
    // Container engines list variables in this way: {"name": "DB_PASSWORD", "value": "…"}.
    let names_secret = ["name", "Name", "key", "Key"]
        .iter()
        .any(|member| members.get(*member).and_then(Value::as_str).is_some_and(is_secret_name));
    for (name, value) in members.iter_mut() {
        if is_secret_name(name) || names_secret && name.eq_ignore_ascii_case("value") {
            hide(value);
        } else {
            redact_value(value);
        }
    }
    if members.keys().any(|name| matches!(redact(name), Cow::Owned(_))) {
        *members = std::mem::take(members)
            .into_iter()
            .map(|(name, value)| (redact(&name).into_owned(), value))
            .collect();
    }
}

/// Hides the value under a secret's name: a string, or the strings in a list.
fn hide(value: &mut Value) {
    match value {
        Value::String(text) if !is_no_secret(text) => *text = REDACTED.to_owned(),
        Value::Array(items) => items.iter_mut().for_each(hide),
        _ => redact_value(value),
    }
}

fn redact_string(text: &mut String) {
    if let Cow::Owned(shown) = redact(text) {
        *text = shown;
    }
}

fn is_secret_option(text: &str) -> bool {
    text.strip_prefix("--").is_some_and(|name| name.len() < 64 && is_secret_name(name))
}
