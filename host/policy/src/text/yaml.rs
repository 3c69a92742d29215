//! Parses YAML within limits. Aliases can make a small text mean a huge value, and nested brackets take a parser much time.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_yaml::{Deserializer, Mapping, Value};

/// The number of values and bytes of text, with all aliases replaced.
const MAX_SIZE: usize = 1 << 20;
/// The depth of nested brackets and braces.
const MAX_DEPTH: usize = 64;

/// Parses a text with one document, and applies merge keys (`<<`).
pub fn parse(text: &str) -> Result<Value, serde_yaml::Error> {
    let mut depth = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(serde_yaml::Error::custom("brackets in brackets, too deep"));
        }
    }
    let left = Cell::new(MAX_SIZE);
    let mut value = Budget(&left).deserialize(Deserializer::from_str(text))?;
    value.apply_merge()?;
    Ok(value)
}

/// The size that may still come.
#[derive(Clone, Copy)]
struct Budget<'a>(&'a Cell<usize>);

impl Budget<'_> {
    fn take<E: Error>(self, bytes: usize) -> Result<(), E> {
        let left = self.0.get().checked_sub(bytes + 1);
        self.0.set(left.ok_or_else(|| E::custom("too much of it, aliases put in"))?);
        Ok(())
    }

    fn value<E: Error>(self, value: impl Into<Value>) -> Result<Value, E> {
        self.take(0)?;
        Ok(value.into())
    }
}

impl<'de> DeserializeSeed<'de> for Budget<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Budget<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value without a tag")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.value(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.value(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.value(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.value(value)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        self.take(text.len())?;
        Ok(text.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.value(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        self.value(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.take(0)?;
        let mut found = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            found.push(item);
        }
        Ok(Value::Sequence(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.take(0)?;
        let mut found = Mapping::new();
        while let Some(key) = entries.next_key_seed(self)? {
            let value = entries.next_value_seed(self)?;
            if found.insert(key, value).is_some() {
                return Err(A::Error::custom("a key that is there twice"));
            }
        }
        Ok(Value::Mapping(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_grows_beyond_bounds_is_refused() {
        let mut laughs = "a0: &a0 [x, x]\n".to_owned();
        for level in 1..40 {
            let below = level - 1;
            laughs += &format!("a{level}: &a{level} [*a{below}, *a{below}]\n");
        }
        let large = format!("a: &a {}\nb: [{}]\n", "x".repeat(10_000), "*a, ".repeat(1000));
        for text in [laughs, large, "[".repeat(100_000), "{a: ".repeat(1000), "- ".repeat(10_000)] {
            assert!(parse(&text).is_err());
        }
    }

    #[test]
    fn what_is_in_bounds_is_what_is_written() {
        let value = parse("a: &a {b: 1, c: yes}\nd:\n  <<: *a\n  e: [true, null, 1.5, -2, '3']\n").unwrap();
        let expected: Value =
            serde_yaml::from_str("a: {b: 1, c: yes}\nd: {e: [true, null, 1.5, -2, '3'], b: 1, c: yes}\n")
                .unwrap();
        assert_eq!(value, expected);
        for text in ["a: 1\na: 2\n", "a: !tag b\n", "a: [\n", "a: 1\n---\nb: 2\n"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
