//! Finds the line of a field in a YAML text.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The line of the field that has these names and indexes before it, from the root. Where the field doesn't exist, it
/// is the line of the nearest one above it.
pub fn line_of(text: &str, at: &[String]) -> Option<usize> {
    // The parser tells the place of an error, so the search makes it fail exactly at the field.
    let found = (0..=at.len()).rev().find_map(|depth| {
        let at: Vec<&str> = at[..depth].iter().map(String::as_str).collect();
        let error = Seek(&at).deserialize(serde_yaml::Deserializer::from_str(text)).err()?;
        error.to_string().contains(FOUND).then(|| error.location()).flatten()
    });
    found.map(|place| place.line())
}

/// The error by which the search stops at the field that it looks for.
const FOUND: &str = "the field that was looked for is here";

/// Deserializes along the names, and fails at the field.
struct Seek<'a>(&'a [&'a str]);

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.0 {
            [] => deserializer.deserialize_any(FailHere),
            _ => deserializer.deserialize_any(Within(self.0)),
        }
    }
}

struct FailHere;

macro_rules! fails {
    ($($name:ident: $type:ty,)*) => {$(
        fn $name<E: Error>(self, _: $type) -> Result<(), E> {
            Err(E::custom(FOUND))
        }
    )*};
}

impl<'de> Visitor<'de> for FailHere {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fails! { visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str, }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Err(E::custom(FOUND))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(A::Error::custom(FOUND))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(A::Error::custom(FOUND))
    }
}

struct Within<'a>(&'a [&'a str]);

impl<'de> Visitor<'de> for Within<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key == self.0[0] {
                true => map.next_value_seed(Seek(&self.0[1..]))?,
                false => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        for number in 0.. {
            let more = match number.to_string() == self.0[0] {
                true => list.next_element_seed(Seek(&self.0[1..]))?.is_some(),
                false => list.next_element::<IgnoredAny>()?.is_some(),
            };
            if !more {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "id: x\nunits:\n  - name: a.service\n  - {name: b.service,\n     main: true}\nports: []\n";

    #[test]
    fn what_is_there_is_found_and_what_is_not_by_what_is_above() {
        for (at, line) in [
            (&["id"][..], 1),
            (&["units", "0", "name"], 3),
            (&["units", "1"], 4),
            (&["units", "1", "main"], 5),
            (&["units", "1", "nowhere"], 4),
            (&["units", "7"], 3),
            (&["ports"], 6),
            (&["nowhere"], 1),
            (&[], 1),
        ] {
            let at: Vec<String> = at.iter().map(|part| (*part).to_owned()).collect();
            assert_eq!(line_of(TEXT, &at), Some(line), "{at:?}");
        }
    }
}
