//! The words of a line of ssh_config(5).

/// A keyword and what follows it, an equals sign in between or not; nothing for a comment or an empty line.
pub(in super::super) fn keyword(line: &str) -> Option<(&str, &str)> {
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

/// Words, some of them in quotes, up to a comment.
pub(in super::super) fn split(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut characters = text.chars().peekable();
    loop {
        while characters.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        if matches!(characters.peek(), None | Some('#')) {
            return Ok(words);
        }
        let mut word = String::new();
        let mut quote = None;
        while let Some(&character) = characters.peek() {
            if quote.is_none() && matches!(character, ' ' | '\t') {
                break;
            }
            characters.next();
            match character {
                '"' | '\'' if quote == Some(character) => quote = None,
                '"' | '\'' if quote.is_none() => quote = Some(character),
                '\\' => {
                    let escaped = characters
                        .next_if(|c| matches!(c, '"' | '\'' | '\\') || (quote.is_none() && *c == ' '));
                    word.push(escaped.unwrap_or('\\'));
                }
                other => word.push(other),
            }
        }
        if quote.is_some() {
            return Err("a quote has no end");
        }
        words.push(word);
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
            assert_eq!(keyword(line), expected, "{line:?}");
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
            assert_eq!(split(text), expected, "{text}");
        }
    }
}
