//! JSON that is kept as text until its value is needed.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A value and its JSON text. Cloning it is cheap.
#[derive(Clone, Debug)]
pub struct Json<T>(Arc<Inner<T>>);

#[derive(Debug)]
struct Inner<T> {
    text: Box<RawValue>,
    value: OnceLock<T>,
}

impl<T: Serialize> Json<T> {
    /// The JSON text of a value.
    pub fn new(value: &T) -> serde_json::Result<Self> {
        let text = serde_json::value::to_raw_value(value)?;
        Ok(Self(Arc::new(Inner { text, value: OnceLock::new() })))
    }
}

impl<T: DeserializeOwned + Default> Json<T> {
    /// Parses the value without keeping it. The result is the default where the text is of another type.
    pub fn read(&self) -> T {
        serde_json::from_str(self.0.text.get()).unwrap_or_default()
    }
}

/// The value, which is parsed at its first use.
impl<T: DeserializeOwned + Default> Deref for Json<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.value.get_or_init(|| self.read())
    }
}

/// Two are equal where their texts or their values are.
impl<T: DeserializeOwned + Default + PartialEq> PartialEq for Json<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.text.get() == other.0.text.get() || **self == **other
    }
}

impl<T> Serialize for Json<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.text.serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for Json<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(Arc::new(Inner { text, value: OnceLock::new() })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_kept_as_it_is_and_says_what_it_says() {
        let json: Json<Vec<u32>> = serde_json::from_str("[1,  2]").unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), "[1,  2]");
        assert_eq!(*json, [1, 2]);
        assert_eq!(json, Json::new(&vec![1, 2]).unwrap());
        assert_ne!(json, Json::new(&vec![2, 1]).unwrap());
    }

    #[test]
    fn what_is_no_such_value_says_nothing_and_equals_none_that_does() {
        let json: Json<Vec<u32>> = serde_json::from_str(r#"{"a": 1}"#).unwrap();
        assert!(json.is_empty());
        assert_ne!(json, Json::new(&vec![1]).unwrap());
    }
}
