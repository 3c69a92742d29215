//! Makes text of others safe to show. Nothing else in the program does this.
//!
//! Log lines, unit descriptions, user comments and file names come from whoever could write them. Some characters
//! could make a person or a model see something else than is there: terminal escapes, other control characters,
//! bidirectional overrides, zero-width and tag characters. Each is replaced by its escaped form, and so nothing
//! disappears either.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

/// Returns the text with every hidden character in the form `\u{1b}`. Newlines and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_hidden(character) {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Returns the text without escape sequences and characters without a width, which a terminal doesn't show. Line ends
/// stay.
pub fn without_unseen(text: &str) -> Cow<'_, str> {
    let is_unseen = |character: char| match character {
        '\u{1b}' | '\u{9b}' => true,
        character => !character.is_control() && crate::characters::is_hidden(character),
    };
    if !text.contains('\u{1b}') && (text.is_ascii() || !text.chars().any(is_unseen)) {
        return Cow::Borrowed(text);
    }
    let mut seen = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let introduces = match character {
            '\u{1b}' => characters.next(),
            '\u{9b}' => Some('['),
            character if is_unseen(character) => None,
            character => {
                seen.push(character);
                None
            }
        };
        match introduces {
            // The sequence has parameters up to the letter that ends it.
            Some('[') => while characters.next().is_some_and(|next| !('@'..='~').contains(&next)) {},
            // The sequence is a title or a link, and has an end of its own.
            Some(']') => {
                while characters.next().is_some_and(|next| !matches!(next, '\u{7}' | '\u{1b}' | '\u{9c}')) {}
            }
            _ => {}
        }
    }
    Cow::Owned(seen)
}

/// Returns the text on one line. Line ends and tabs are in the form `\n` and `\t`.
pub fn one_line(text: &str) -> String {
    visible(&text.replace('\n', "\\n").replace('\t', "\\t")).into_owned()
}

/// Returns at most `most` characters of the text, made visible.
pub fn excerpt(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}… ({} bytes)", visible(&text[..end]), text.len()),
        None => visible(text).into_owned(),
    }
}

/// Makes every string and every key of a JSON value visible.
pub fn make_visible(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(shown) = visible(text) {
                *text = shown;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_visible),
        Value::Object(members) => {
            if members.keys().any(|key| key.chars().any(is_hidden)) {
                *members = std::mem::take(members)
                    .into_iter()
                    .map(|(key, value)| (visible(&key).into_owned(), value))
                    .collect();
            }
            members.values_mut().for_each(make_visible);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_hidden(character: char) -> bool {
    !matches!(character, '\n' | '\t') && crate::characters::is_hidden(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_show_is_shown_escaped() {
        for (text, shown) in [
            ("plain text, ümläut, 日本語\n\ttab", "plain text, ümläut, 日本語\n\ttab"),
            ("\u{1b}[2Jgone", "\\u{1b}[2Jgone"),
            ("a\u{9b}31mb", "a\\u{9b}31mb"),
            ("rm \u{202e}cod.exe", "rm \\u{202e}cod.exe"),
            ("a\u{200b}b\u{feff}c", "a\\u{200b}b\\u{feff}c"),
            ("x\u{e0041}y", "x\\u{e0041}y"),
            ("back\r\nspace\u{8}", "back\\u{d}\nspace\\u{8}"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn what_is_shown_in_a_line_stays_in_it() {
        assert_eq!(one_line("a\nb\tc\r\u{2028}\u{1b}"), "a\\nb\\tc\\u{d}\\u{2028}\\u{1b}");
    }

    #[test]
    fn keys_and_nested_values_are_made_visible() {
        let mut value = serde_json::json!({"a\u{1b}": [{"b": "\u{7}"}], "n": 1});
        make_visible(&mut value);
        assert_eq!(value, serde_json::json!({"a\\u{1b}": [{"b": "\\u{7}"}], "n": 1}));
    }

    #[test]
    fn an_excerpt_is_bounded_and_says_so() {
        assert_eq!(excerpt("äöü", 2), "äö… (6 bytes)");
        assert_eq!(excerpt("äöü", 3), "äöü");
    }
}
