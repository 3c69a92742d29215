//! The arguments of `linux-sysadmin call`: pairs of key and value, read by the tool's schema, or one JSON object.

use std::io;

use anyhow::{Context, bail};
use serde_json::{Map, Value};

use host_base::strict_json;
use host_text::visible::one_line;

/// Reads a JSON object; `-` stands for standard input.
pub(super) fn object(text: &str) -> anyhow::Result<Map<String, Value>> {
    const EXPECTED: &str = "--args takes a JSON object, as {\"service\":\"nginx\"}";
    let text = if text == "-" { io::read_to_string(io::stdin())? } else { text.to_owned() };
    match strict_json::parse(text.as_bytes()).context(EXPECTED)? {
        Value::Object(object) => Ok(object),
        _ => bail!(EXPECTED),
    }
}

/// Reads pairs of key and value. `property` gives what the schema says of an argument. A list may be given as one item, and
/// each further pair with its key adds an item.
pub(super) fn pairs<'a>(
    pairs: &[String],
    property: impl Fn(&str) -> Option<&'a Value>,
) -> anyhow::Result<Map<String, Value>> {
    let mut given = Map::new();
    for pair in pairs {
        let Some((key, text)) = pair.split_once('=') else {
            bail!("{pair:?} is not of the form KEY=VALUE");
        };
        let property = property(key);
        let value = read(text, property);
        let is_list = property.is_some_and(|property| takes(property, "array"));
        match given.get_mut(key) {
            None => drop(given.insert(key.to_owned(), value)),
            Some(known) if is_list => {
                *known =
                    Value::Array(into_items(known.take()).into_iter().chain(into_items(value)).collect());
            }
            Some(_) => bail!("{} is given twice", one_line(key)),
        }
    }
    Ok(given)
}

fn into_items(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        one => vec![one],
    }
}

/// Reads a value as the schema declares it. A value that doesn't fit stays text, so that the check of arguments names it, as
/// it would for a client.
fn read(text: &str, property: Option<&Value>) -> Value {
    let is = |kind| property.is_some_and(|property| takes(property, kind));
    let parsed = || strict_json::parse(text.as_bytes()).ok();
    if is("array") {
        return match parsed() {
            Some(Value::Array(items)) => Value::Array(items),
            _ if is("string") => Value::from(text),
            _ => Value::Array(vec![read(text, property.and_then(|property| property.get("items")))]),
        };
    }
    match property {
        Some(_) if !is("string") => parsed().unwrap_or_else(|| Value::from(text)),
        _ => Value::from(text),
    }
}

/// Whether the schema of an argument takes a value of this kind. A list of values without a type takes text.
fn takes(property: &Value, kind: &str) -> bool {
    let variants = || ["anyOf", "oneOf"].iter().filter_map(|name| property.get(*name)?.as_array()).flatten();
    match property.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(types)) => types.iter().any(|one| one == kind),
        _ if variants().next().is_some() => variants().any(|variant| takes(variant, kind)),
        // Without a type, any value fits, and text that is no JSON can only be text.
        _ => kind == "string" && property.get("enum").is_some(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_all(given: &[&str]) -> anyhow::Result<Value> {
        let schema = json!({
            "n": {"type": "integer"}, "s": {"type": "string"}, "b": {"type": "boolean"}, "o": {"type": "object"},
            "l": {"type": "array", "items": {"type": "string"}},
            "ns": {"type": "array", "items": {"type": "integer"}},
            "e": {"enum": ["1", "2"]}, "any": {},
            "either": {"type": ["string", "array"]},
            "number": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        });
        let given: Vec<String> = given.iter().map(|pair| (*pair).to_owned()).collect();
        pairs(&given, |key| schema.get(key)).map(Value::Object)
    }

    #[test]
    fn a_value_is_read_as_the_schema_says() {
        for (pair, value) in [
            ("n=5", json!({"n": 5})),
            ("s=5", json!({"s": "5"})),
            ("s=a=b", json!({"s": "a=b"})),
            ("b=true", json!({"b": true})),
            ("o={\"a\":1}", json!({"o": {"a": 1}})),
            ("l=[\"1\",\"2\"]", json!({"l": ["1", "2"]})),
            ("e=1", json!({"e": "1"})),
            ("any=5", json!({"any": 5})),
            ("any=five", json!({"any": "five"})),
            ("number=5", json!({"number": "5"})),
            ("n=many", json!({"n": "many"})),
            ("unknown=5", json!({"unknown": "5"})),
        ] {
            assert_eq!(read_all(&[pair]).unwrap(), value, "{pair}");
        }
    }

    #[test]
    fn a_list_takes_its_items_one_by_one() {
        for (given, value) in [
            (&["l=5"][..], json!({"l": ["5"]})),
            (&["ns=80"], json!({"ns": [80]})),
            (&["ns=80", "ns=[443]", "ns=x"], json!({"ns": [80, 443, "x"]})),
            (&["l=a,b"], json!({"l": ["a,b"]})),
            (&["l="], json!({"l": [""]})),
            // Text is itself one of the values that the argument takes.
            (&["either=web1"], json!({"either": "web1"})),
            (&["either=[\"a\"]"], json!({"either": ["a"]})),
            (&["either=a", "either=b"], json!({"either": ["a", "b"]})),
        ] {
            assert_eq!(read_all(given).unwrap(), value, "{given:?}");
        }
    }

    #[test]
    fn what_is_no_pair_or_is_given_twice_is_refused() {
        for (given, said) in [
            (&["nonsense"][..], "KEY=VALUE"),
            (&["s=a", "s=b"], "s is given twice"),
            (&["x\u{1b}=a", "x\u{1b}=b"], "x\\u{1b} is given twice"),
        ] {
            assert!(read_all(given).unwrap_err().to_string().contains(said), "{given:?}");
        }
        for text in ["[1]", "5", "", "{", "{\"a\":1,\"a\":2}"] {
            assert!(object(text).unwrap_err().to_string().contains("--args takes a JSON object"), "{text:?}");
        }
    }
}
