//! The words by which a complaint is understood: which kinds of trouble and which services they mean. They are data in
//! `words.json`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use linux_sysadmin_sdk::prelude::*;

use crate::finding::Kind;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Words {
    /// The words of each kind. A word stands for all that begin with it.
    pub(crate) kinds: BTreeMap<Kind, Vec<String>>,
    /// The words that mean services without their names.
    pub(crate) services: Vec<Services>,
    /// The kinds of complaint that services of a profile's category fit.
    pub(crate) categories: BTreeMap<String, Kind>,
    /// Endings of names of units and files, which aren't hosts.
    pub(crate) endings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Services {
    pub(crate) words: Vec<String>,
    /// Categories of profiles.
    #[serde(default)]
    pub(crate) categories: Vec<String>,
    #[serde(default)]
    pub(crate) units: Vec<String>,
}

/// The data. It is part of the component, and a test reads it, so that it is never empty.
pub(crate) static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let empty = Words {
        kinds: BTreeMap::new(),
        services: Vec::new(),
        categories: BTreeMap::new(),
        endings: Vec::new(),
    };
    serde_json::from_str(include_str!("words.json")).unwrap_or(empty)
});

/// Whether a text has a word that begins with this one. Both are in lower case.
pub(crate) fn has(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        !before.is_some_and(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_has_words_for_every_kind_of_complaint() {
        for kind in Kind::ALL.iter().filter(|kind| **kind != Kind::Change) {
            assert!(WORDS.kinds.get(kind).is_some_and(|words| !words.is_empty()), "{kind:?}");
        }
        let all = WORDS.kinds.values().flatten().chain(WORDS.services.iter().flat_map(|one| &one.words));
        for word in all {
            assert_eq!(*word, word.to_lowercase(), "words are compared in lower case");
        }
    }

    #[test]
    fn a_word_stands_for_those_that_begin_with_it() {
        for (text, word, found) in [
            ("it doesn't start", "start", true),
            ("it starts", "start", true),
            ("the upstart", "start", false),
            ("a \"502 bad gateway\"", "502", true),
            ("port 1502", "502", false),
            ("rotated", "rotat", true),
        ] {
            assert_eq!(has(text, word), found, "{text} {word}");
        }
    }
}
