//! Reads what `systemctl show` prints: `Key=value` lines, with an empty line between units.
//!
//! A value is everything after the first `=`. systemd prints `[unprintable]` for a value with a newline in it, so every
//! value is one line. A list of what systemd calls structures repeats its key.

use std::collections::HashMap;

use linux_sysadmin_sdk::prelude::*;

/// The properties of one unit. A missing property counts as an empty one.
#[derive(Debug, Default)]
pub(crate) struct Properties<'a>(HashMap<&'a str, Vec<&'a str>>);

/// The properties of each unit, in the order of the text.
pub(crate) fn parse(text: &str) -> Vec<Properties<'_>> {
    let mut units = Vec::new();
    let mut current = Properties::default();
    for line in text.lines() {
        match line.split_once('=') {
            Some((key, value)) => current.0.entry(key).or_default().push(value),
            None if line.is_empty() && !current.0.is_empty() => units.push(std::mem::take(&mut current)),
            None => {}
        }
    }
    if !current.0.is_empty() {
        units.push(current);
    }
    units
}

/// The same, but a text without any unit in it is an error instead of an empty list.
pub(crate) fn parse_units(text: &str) -> Result<Vec<Properties<'_>>> {
    let units = parse(text);
    if !text.trim().is_empty() && !units.iter().any(|unit| unit.text("Id").is_some()) {
        return Err(Problem::unexpected("systemctl show", text));
    }
    Ok(units)
}

impl<'a> Properties<'a> {
    /// The value of a key. None where it is empty or one of systemd's words for a missing value.
    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        self.all(key).next()
    }

    pub(crate) fn string(&self, key: &str) -> Option<String> {
        self.text(key).map(str::to_owned)
    }

    /// All values of a key that is repeated.
    pub(crate) fn all(&self, key: &str) -> impl Iterator<Item = &'a str> {
        let values = self.0.get(key).map(Vec::as_slice).unwrap_or_default();
        let no_value = ["", "[not set]", "[no data]", "n/a", "(null)"];
        values.iter().copied().filter(move |value| !no_value.contains(value))
    }

    /// A number. None for the largest `u64`, by which systemd means "unlimited" or "unknown".
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.text(key)?.parse().ok().filter(|number| *number != u64::MAX)
    }

    /// True where systemd prints `yes`.
    pub(crate) fn yes(&self, key: &str) -> bool {
        self.text(key) == Some("yes")
    }

    /// A list of words. systemd quotes a word that has a blank in it, and escapes its special characters by backslashes.
    pub(crate) fn words(&self, key: &str) -> Vec<String> {
        self.text(key).map(words).unwrap_or_default()
    }

    /// The sentence of `LoadError`, as in `org.freedesktop.systemd1.BadUnitSetting "Unit x has a bad unit file setting."`.
    pub(crate) fn load_error(&self) -> Option<String> {
        let text = self.text("LoadError")?;
        let sentence = text.split_once(' ').map_or(text, |(_, sentence)| sentence).trim().trim_matches('"');
        (!sentence.is_empty()).then(|| sentence.to_owned())
    }
}

pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '\\' if quoted => word.get_or_insert_default().extend(characters.next()),
            ' ' if !quoted => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::{parse, words};

    #[test]
    fn a_value_is_everything_behind_the_first_equals_sign() {
        let units = parse("Id=a.service\nDescription=A = b; c=d \n\nId=b.service\nJunk\n\n\n\nId=c.service");
        assert_eq!(units.len(), 3);
        assert_eq!(units[0].text("Description"), Some("A = b; c=d "));
        assert_eq!((units[1].text("Id"), units[2].text("Id")), (Some("b.service"), Some("c.service")));
        assert_eq!(units[2].text("Description"), None);
    }

    #[test]
    fn what_means_no_value_is_none() {
        let text = "A=\nB=[not set]\nC=18446744073709551615\nD=infinity\nE=[no data]\nF=n/a\nG=0\nH=x";
        let units = parse(text);
        for key in ["A", "B", "C", "D", "E", "F", "H", "none"] {
            assert_eq!(units[0].number(key), None, "{key}");
        }
        assert_eq!(units[0].number("G"), Some(0));
    }

    #[test]
    fn nothing_is_no_unit() {
        for text in ["", "\n", "\n\n\n", "not a property\n"] {
            assert!(parse(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn words_are_quoted_where_they_hold_blanks() {
        let table: [(&str, &[&str]); 5] = [
            ("a.service b.service", &["a.service", "b.service"]),
            (r#"/x/10.conf "/x/20 y.conf""#, &["/x/10.conf", "/x/20 y.conf"]),
            (r#""a\\x20b.service" c"#, &[r"a\x20b.service", "c"]),
            (r"dev-disk-by\x2duuid.swap", &[r"dev-disk-by\x2duuid.swap"]),
            (r#"  "" "open"#, &["", "open"]),
        ];
        for (text, expected) in table {
            assert_eq!(words(text), expected, "{text}");
        }
    }
}
