//! Patterns of hosts' names: `*` for any characters, `?` for one, `[ab]` and `[a-z]` for one of some, `[!a]` for one
//! of the others. Matching is linear in the name's length, because patterns come from models.

use regex::Regex;
use serde::Deserialize;

use host_openssh::Alias;
use host_text::visible::excerpt;

/// The longest pattern.
const LONGEST: usize = 255;

/// A pattern of names.
#[derive(Clone, Debug)]
pub struct Glob(Regex);

impl Glob {
    /// Says whether a word is meant as a pattern.
    pub fn is_one(word: &str) -> bool {
        word.contains(['*', '?', '['])
    }

    /// Parses a pattern. The error says in words what is wrong.
    pub fn new(word: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("the pattern {:?} {why}", excerpt(word, 40)));
        if word.len() > LONGEST {
            return wrong("is longer than 255 characters");
        }
        if word.starts_with('-') {
            return wrong("begins with -, as no name of a host does");
        }
        let mut regex = String::from(r"\A");
        let mut rest = word;
        while let Some(character) = rest.chars().next() {
            let behind = &rest[character.len_utf8()..];
            rest = behind;
            match character {
                '*' => regex.push_str(".*"),
                '?' => regex.push('.'),
                '[' => {
                    let Some((class, behind)) = behind.split_once(']') else {
                        return wrong("has a [ without its ]");
                    };
                    rest = behind;
                    match class_regex(class) {
                        Some(class) => regex.push_str(&class),
                        None => {
                            return wrong(
                                "has brackets that hold more than single characters, as [ab] and [a-z]; ranges as \
                                 [01:20] are for the configuration",
                            );
                        }
                    }
                }
                _ if of_names(character) => {
                    regex.push_str(&regex::escape(character.encode_utf8(&mut [0; 4])))
                }
                _ => {
                    return wrong(
                        "isn't of names: expected letters, digits, `-`, `.`, `_`, `:`, and the signs `*`, `?`, `[`, `]`",
                    );
                }
            }
        }
        regex.push_str(r"\z");
        Regex::new(&regex).map(Self).or_else(|_| wrong("has a range of characters without any, as [z-a]"))
    }

    /// Says whether the whole name matches the pattern.
    pub fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

fn of_names(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '.' | '_' | ':')
}

fn class_regex(class: &str) -> Option<String> {
    let (not, of) = class.strip_prefix('!').map_or(("", class), |of| ("^", of));
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    // A hyphen at either end stands for itself.
    let inner = of.trim_matches('-');
    let is_right = !of.is_empty() && of.chars().all(fits) && !inner.contains("--");
    let hyphen = if of.len() > inner.len() { r"\-" } else { "" };
    is_right.then(|| format!("[{not}{hyphen}{inner}]"))
}

/// A name, or a pattern of names, in the configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub enum HostPattern {
    /// A host or a group.
    Name(String),
    /// The hosts whose names match.
    Glob(Glob),
}

impl TryFrom<String> for HostPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match Glob::is_one(&text) {
            true => Glob::new(&text).map(Self::Glob),
            false => text.parse::<Alias>().map(|_| Self::Name(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_stands_for_whole_names() {
        for (pattern, name, expected) in [
            ("web*", "web", true),
            ("web*", "web1.example.com", true),
            ("web*", "xweb", false),
            ("*", "anything", true),
            ("web?", "web1", true),
            ("web?", "web", false),
            ("web?", "web12", false),
            ("web[12]", "web2", true),
            ("web[12]", "web3", false),
            ("web[0-4]", "web3", true),
            ("web[!0-4]", "web3", false),
            ("web[!0-4]", "web5", true),
            ("web[a-]", "web-", true),
            ("web[-a]", "weba", true),
            ("web[^a]", "webb", false),
            ("web.1*", "webx1", false),
            ("*.example.com", "a.example.com", true),
            ("[ab]*[12]", "a-1", true),
        ] {
            match Glob::new(pattern) {
                Ok(glob) => assert_eq!(glob.matches(name), expected, "{pattern} and {name}"),
                Err(why) => assert!(pattern == "web[^a]", "{pattern}: {why}"),
            }
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for (pattern, why) in [
            ("web[01:20]", "ranges as [01:20] are for the configuration"),
            ("web[", "without its ]"),
            ("web[]", "more than single characters"),
            ("web[!]", "more than single characters"),
            ("web[[:alpha:]]", "more than single characters"),
            ("web[a&&b]", "more than single characters"),
            ("web[a--b]", "more than single characters"),
            (r"web[\d]*", "more than single characters"),
            ("web[z-a]", "without any"),
            ("-*", "begins with -"),
            ("web*;id", "isn't of names"),
            ("w b*", "isn't of names"),
            ("web*]", "isn't of names"),
            ("wéb*", "isn't of names"),
            ("(web|db)*", "isn't of names"),
            (&"*".repeat(300), "longer"),
        ] {
            let found = Glob::new(pattern).unwrap_err();
            assert!(found.contains(why), "{pattern}: {found}");
        }
    }

    #[test]
    fn many_stars_take_no_longer() {
        let glob = Glob::new(&"*a".repeat(127)).unwrap();
        assert!(!glob.matches(&"a".repeat(126)));
        assert!(!glob.matches(&"b".repeat(10_000)));
    }

    #[test]
    fn a_pattern_of_the_configuration_is_a_name_or_a_glob() {
        let pattern = |text: &str| HostPattern::try_from(text.to_owned());
        assert!(matches!(pattern("web1").unwrap(), HostPattern::Name(name) if name == "web1"));
        assert!(
            matches!(pattern("web*").unwrap(), HostPattern::Glob(glob) if glob.matches("web1") && !glob.matches("db"))
        );
        assert!(pattern("-web").is_err() && pattern("web;id").is_err() && pattern("").is_err());
    }
}
