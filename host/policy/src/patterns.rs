//! Regular expressions of which each is for a whole word.

use regex::Regex;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

/// Patterns of a whole word.
pub(super) struct Patterns(Vec<Regex>);

impl Patterns {
    pub(super) fn match_any(&self, word: &str) -> bool {
        self.0.iter().any(|known| known.is_match(word))
    }
}

impl<'de> Deserialize<'de> for Patterns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let patterns = Vec::<String>::deserialize(deserializer)?;
        let whole = patterns.iter().map(|pattern| Regex::new(&format!("^(?:{pattern})$")));
        whole.collect::<Result<_, _>>().map(Self).map_err(D::Error::custom)
    }
}
