//! Splits a line of ssh_config(5) into words.

use std::ops::Range;

/// A word of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word without quotes.
    pub text: String,
    /// The place of the word in the text that was split, quotes included.
    pub span: Range<usize>,
}

/// A keyword and the rest of the line, without the equals sign that may stand between them. `None` for a comment and for an
/// empty line.
pub fn directive(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_matches([' ', '\t', '\r', '\x0c']);
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let end = line.find([' ', '\t', '=']).unwrap_or(line.len());
    let (keyword, rest) = line.split_at(end);
    let rest = rest.trim_start_matches([' ', '\t']);
    let rest = rest.strip_prefix('=').unwrap_or(rest);
    Some((keyword, rest.trim_start_matches([' ', '\t'])))
}

/// Splits a text into words up to a comment. Words may have quotes.
pub fn words(text: &str) -> Result<Vec<Word>, &'static str> {
    let mut words = Vec::new();
    let mut characters = text.char_indices().peekable();
    loop {
        while characters.next_if(|(_, c)| matches!(c, ' ' | '\t')).is_some() {}
        let Some(&(begin, first)) = characters.peek() else { return Ok(words) };
        if first == '#' {
            return Ok(words);
        }
        let mut word = String::new();
        let mut quote = None;
        let mut end = begin;
        while let Some(&(at, character)) = characters.peek() {
            if quote.is_none() && matches!(character, ' ' | '\t') {
                break;
            }
            characters.next();
            end = at + character.len_utf8();
            match character {
                '"' | '\'' if quote == Some(character) => quote = None,
                '"' | '\'' if quote.is_none() => quote = Some(character),
                '\\' => match characters
                    .next_if(|(_, c)| matches!(c, '"' | '\'' | '\\') || (quote.is_none() && *c == ' '))
                {
                    Some((at, escaped)) => {
                        end = at + escaped.len_utf8();
                        word.push(escaped);
                    }
                    None => word.push('\\'),
                },
                other => word.push(other),
            }
        }
        if quote.is_some() {
            return Err("a quote has no end");
        }
        words.push(Word { text: word, span: begin..end });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyword_is_followed_by_blanks_or_an_equals_sign() {
        for (line, expected) in [
            ("Port 22", Some(("Port", "22"))),
            ("  Port\t22  ", Some(("Port", "22"))),
            ("Port=22", Some(("Port", "22"))),
            ("Port = 22", Some(("Port", "22"))),
            ("ProxyCommand nc -x a=b %h", Some(("ProxyCommand", "nc -x a=b %h"))),
            ("Port", Some(("Port", ""))),
            ("# Port 22", None),
            ("   ", None),
            ("\r", None),
        ] {
            assert_eq!(directive(line), expected, "{line:?}");
        }
    }

    #[test]
    fn words_are_split_as_ssh_splits_them() {
        for (text, expected) in [
            ("a b", Ok(vec!["a", "b"])),
            ("\"a b\" c", Ok(vec!["a b", "c"])),
            ("'a b'c", Ok(vec!["a bc"])),
            ("a # comment", Ok(vec!["a"])),
            ("a#b", Ok(vec!["a#b"])),
            ("\"#\"", Ok(vec!["#"])),
            (r"a\ b", Ok(vec!["a b"])),
            (r#""a\"b""#, Ok(vec!["a\"b"])),
            (r"a\b", Ok(vec![r"a\b"])),
            ("\"\"", Ok(vec![""])),
            ("", Ok(vec![])),
            ("\"a", Err("a quote has no end")),
        ] {
            let expected = expected.map(|words| words.into_iter().map(str::to_owned).collect::<Vec<_>>());
            let found = words(text).map(|words| words.into_iter().map(|word| word.text).collect::<Vec<_>>());
            assert_eq!(found, expected, "{text}");
        }
    }
}
