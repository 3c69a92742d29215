//! Parses JSON and refuses an object that names a member twice. Some readers take the first of the two and others the
//! last, and so a person who approves a call could have seen other arguments than those that count.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Parses the text, which holds one value.
pub fn parse(text: &[u8]) -> serde_json::Result<Value> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Unambiguous.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

struct Unambiguous;

impl<'de> DeserializeSeed<'de> for Unambiguous {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unambiguous {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            all.push(item);
        }
        Ok(all.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(Self)?;
            if all.contains_key(&name) {
                let name = host_text::redact::excerpt(&name, 64);
                return Err(Error::custom(format_args!("the member {name} stands twice in one object")));
            }
            all.insert(name, value);
        }
        Ok(all.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_member_that_stands_twice_is_refused_wherever_it_is() {
        for text in [
            r#"{"a": 1, "a": 1}"#,
            r#"{"a": {"b": [1, {"c": 1, "d": 2, "c": 3}]}}"#,
            r#"[{"a": 1, "\u0061": 2}]"#,
        ] {
            let refused = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(refused.contains("stands twice in one object"), "{text}: {refused}");
        }
        assert_eq!(parse(br#"{"a": {"b": 1}, "b": [{"a": 1}, {"a": 2}]}"#).unwrap()["b"][1]["a"], 2);
    }

    #[test]
    fn what_is_no_json_is_refused_as_elsewhere() {
        for text in ["", "{", "{} {}", "[1,]", "nul", "\"\\ud800\"", &"[".repeat(200)] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn all_else_is_read_as_elsewhere(text in r#"[\[\]{}:,"ab0-9.eE+-]{0,24}"#) {
            match (parse(text.as_bytes()), serde_json::from_str::<Value>(&text)) {
                (Ok(own), other) => prop_assert_eq!(own, other.unwrap()),
                (Err(own), Ok(_)) => prop_assert!(own.to_string().contains("twice"), "{}: {}", text, own),
                (Err(_), Err(_)) => {}
            }
        }
    }
}
