//! Texts from callers and programs, as messages repeat them.

use std::borrow::Cow;

use crate::characters::is_hidden;

/// The first `most` characters of a text, with an ellipsis where there are more.
pub fn excerpt(text: &str, most: usize) -> String {
    let mut short: String = text.chars().take(most).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// The longest line of a program's output in an answer, in characters.
pub const LONGEST_LINE: usize = 240;

/// The beginning of a line of a program's output, trimmed.
pub fn of_line(line: &str) -> String {
    excerpt(line.trim(), LONGEST_LINE)
}

/// The first `most` names with commas between them, and the number of the others.
pub fn list<S: AsRef<str>>(names: &[S], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(most) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Whether a text holds a character that can't be seen, or that changes how others are shown. No command line that is
/// granted takes such a text.
pub fn has_hidden(text: &str) -> bool {
    text.chars().any(is_hidden)
}

/// The text with the bytes that `\040` and the like stand for, as in fstab(5), `/proc/self/mountinfo` and getfacl(1). Bytes
/// that aren't UTF-8 become U+FFFD.
pub fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let octal = behind.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| *first == b'\\') {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[3..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    lossy_string(bytes)
}

/// The bytes as text. Those that aren't UTF-8 become U+FFFD. What a program printed hardly ever has such bytes, and the check
/// of the whole is several times as fast as [`String::from_utf8_lossy`], which looks at one byte after the other.
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// [`lossy`] for bytes that nobody else needs.
pub fn lossy_string(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_octal_escape_is_the_byte_that_it_names() {
        for (escaped, plain) in [
            ("/mnt/a\\040b", "/mnt/a b"),
            ("\\303\\244\\134", "ä\\"),
            ("\\04", "\\04"),
            ("\\999", "\\999"),
            ("\\377", "\u{fffd}"),
            ("", ""),
        ] {
            assert_eq!(unescaped(escaped), plain);
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_the_rest_is_kept() {
        for (bytes, text) in [
            (&b""[..], ""),
            ("grün".as_bytes(), "grün"),
            (b"a\xffb", "a\u{fffd}b"),
            (b"cut \xc3", "cut \u{fffd}"),
        ] {
            assert_eq!((lossy(bytes).as_ref(), lossy_string(bytes.to_vec()).as_str()), (text, text));
        }
    }

    #[test]
    fn a_long_text_is_cut_and_a_long_list_counts_its_others() {
        assert_eq!((excerpt("äbc", 3), excerpt("äbc", 2)), ("äbc".to_owned(), "äb…".to_owned()));
        assert_eq!(list(&["a", "b"], 2), "a, b");
        assert_eq!(list(&["a", "b", "c", "d"], 2), "a, b and 2 more");
    }

    #[test]
    fn what_nobody_sees_is_hidden() {
        for hidden in ["\n", "\0", "\u{9b}", "\u{ad}", "\u{200b}", "\u{202e}", "\u{e0041}", "\u{feff}"] {
            assert!(has_hidden(&format!("a{hidden}b")), "{}", hidden.escape_unicode());
        }
        for shown in ["", " ~", "äß日€😀", "\u{a0}", "\u{fffd}"] {
            assert!(!has_hidden(shown), "{}", shown.escape_unicode());
        }
    }
}
