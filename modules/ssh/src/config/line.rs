//! Lines of ssh_config(5), and the places of their parts.

use std::ops::Range;

use host_ssh_syntax::{Word, is_whole_line, words};

/// One line of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// The line number, from 1.
    pub(crate) number: usize,
    /// The text without the line end.
    pub(crate) text: &'a str,
    /// The line end; empty where the file ends without one.
    pub(crate) end: &'a str,
}

/// A line with a keyword and a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directive<'a> {
    /// The text of the line.
    text: &'a str,
    pub(crate) keyword: &'a str,
    /// The words of the value, at least one.
    pub(crate) words: Vec<Word>,
    /// The place of the value in the line: from its first word to its last, or to the end of the line.
    pub(crate) span: Range<usize>,
}

impl<'a> Directive<'a> {
    /// The value as it is in the line.
    pub(crate) fn value(&self) -> &'a str {
        &self.text[self.span.clone()]
    }
}

/// All lines in order. Together they are the text.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.split_inclusive('\n').enumerate().map(|(index, whole)| {
        let text = whole.strip_suffix('\n').unwrap_or(whole);
        let text = text.strip_suffix('\r').unwrap_or(text);
        Line { number: index + 1, text, end: &whole[text.len()..] }
    })
}

impl<'a> Line<'a> {
    /// Parses the line. `None` for a comment or an empty line, an error where ssh would give up.
    pub(crate) fn said(&self) -> Result<Option<Directive<'a>>, &'static str> {
        let text = self.text.trim_end_matches([' ', '\t', '\r', '\x0c']);
        let Some((keyword, start)) = head(text) else { return Ok(None) };
        let words = words(&text[start..])?;
        let (Some(first), Some(last)) = (words.first(), words.last()) else {
            return Err("the keyword has no value");
        };
        let end = if is_whole_line(keyword) { text.len() } else { start + last.span.end };
        let span = start + first.span.start..end;
        Ok(Some(Directive { text, keyword, words, span }))
    }

    /// The blanks before the keyword.
    pub(crate) fn indentation(&self) -> &'a str {
        &self.text[..self.text.len() - self.text.trim_start_matches([' ', '\t']).len()]
    }
}

/// The keyword, in quotes or not, and the place of the text after it and its equals sign.
fn head(text: &str) -> Option<(&str, usize)> {
    let blank = |character: char| matches!(character, ' ' | '\t' | '\r' | '\x0c');
    let begin = text.find(|character| !blank(character))?;
    let rest = &text[begin..];
    if rest.starts_with('#') {
        return None;
    }
    let (keyword, behind) = match rest.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
        Some((keyword, behind)) => (keyword, behind),
        None => {
            rest.split_at(rest.find(|character| blank(character) || character == '=').unwrap_or(rest.len()))
        }
    };
    let value = behind.trim_start_matches(blank);
    let value = value.strip_prefix('=').unwrap_or(value).trim_start_matches(blank);
    Some((keyword, text.len() - value.len()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A keyword, its words, and its value.
    type Read = (String, Vec<String>, String);

    fn said(text: &str) -> Result<Option<Read>, &'static str> {
        let line = lines(text).next().unwrap();
        let said = line.said()?;
        Ok(said.map(|said| {
            let words = said.words.iter().map(|word| word.text.clone()).collect();
            (said.keyword.to_owned(), words, said.value().to_owned())
        }))
    }

    #[test]
    fn a_keyword_is_followed_by_blanks_or_an_equals_sign() {
        for (text, keyword, words, value) in [
            ("Port 22", "Port", &["22"] as &[_], "22"),
            ("\tPort\t22  \r\n", "Port", &["22"], "22"),
            ("Port=22", "Port", &["22"], "22"),
            (" Port = 22 # as ever", "Port", &["22"], "22"),
            ("Host a b  !c # d", "Host", &["a", "b", "!c"], "a b  !c"),
            ("\"Host\" a", "Host", &["a"], "a"),
            ("IdentityFile \"~/.ssh/my key\" # x", "IdentityFile", &["~/.ssh/my key"], "\"~/.ssh/my key\""),
            ("IdentityFile 'a b'c", "IdentityFile", &["a bc"], "'a b'c"),
            (r"IdentityFile a\ b", "IdentityFile", &["a b"], r"a\ b"),
            (r#"User "a\"b""#, "User", &["a\"b"], r#""a\"b""#),
            ("User a#b", "User", &["a#b"], "a#b"),
            ("ProxyCommand nc -x a=b %h # c", "ProxyCommand", &["nc", "-x", "a=b", "%h"], "nc -x a=b %h # c"),
        ] {
            let words = words.iter().map(|word| word.to_string()).collect();
            assert_eq!(said(text), Ok(Some((keyword.to_owned(), words, value.to_owned()))), "{text}");
        }
        for nothing in ["", "\n", "\r\n", "  \t", "# Port 22", "  # x", "\x0c"] {
            assert_eq!(said(&format!("{nothing} ")), Ok(None), "{nothing:?}");
        }
        for (broken, why) in [
            ("Port", "no value"),
            ("Port =", "no value"),
            ("Port # 22", "no value"),
            ("User \"a", "a quote has no end"),
            ("User 'a\"", "a quote has no end"),
        ] {
            assert!(said(broken).unwrap_err().contains(why), "{broken}");
        }
    }

    #[test]
    fn lines_are_the_text() {
        let text = "a 1\r\n\r\n\tb=2\nc 3";
        let all: String = lines(text).map(|line| format!("{}{}", line.text, line.end)).collect();
        assert_eq!(all, text);
        assert_eq!(lines(text).map(|line| line.end).collect::<Vec<_>>(), ["\r\n", "\r\n", "\n", ""]);
        assert_eq!(lines(text).nth(2).unwrap().indentation(), "\t");
    }
}
