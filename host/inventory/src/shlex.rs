//! Splits a line of an INI inventory as Python's `shlex.split(line, comments=True)` does: into a shell's words, except
//! that `#` also begins a comment in the middle of a word.

/// Returns the words. The error shows nothing of the line.
pub(super) fn split(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '#' => break,
            ' ' | '\t' | '\r' | '\n' => words.extend(word.take()),
            '\\' => {
                let escaped = characters.next().ok_or("a backslash has nothing behind it")?;
                word.get_or_insert_default().push(escaped);
            }
            '"' | '\'' => quoted(character, &mut characters, word.get_or_insert_default())?,
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Reads the text between two quotes. A backslash escapes only itself and the quote, and only between double quotes.
fn quoted(quote: char, characters: &mut std::str::Chars, word: &mut String) -> Result<(), &'static str> {
    const NO_END: &str = "a quote has no end";
    loop {
        match characters.next().ok_or(NO_END)? {
            character if character == quote => return Ok(()),
            '\\' if quote == '"' => {
                let escaped = characters.next().ok_or(NO_END)?;
                if !matches!(escaped, '"' | '\\') {
                    word.push('\\');
                }
                word.push(escaped);
            }
            other => word.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Python 3.11's `shlex.split(line, comments=True)` gave the expected words.
    #[test]
    fn words_are_split_as_python_splits_them() {
        for (line, expected) in [
            ("web a=1  b=2\t", Ok(vec!["web", "a=1", "b=2"])),
            ("web a='b c' d=\"e f\"", Ok(vec!["web", "a=b c", "d=e f"])),
            ("web a=\"'10'\"", Ok(vec!["web", "a='10'"])),
            ("web # comment", Ok(vec!["web"])),
            ("web a=b#c d=e", Ok(vec!["web", "a=b"])),
            ("web a='b#c'", Ok(vec!["web", "a=b#c"])),
            ("web ; a=1", Ok(vec!["web", ";", "a=1"])),
            (r"web a=b\ c", Ok(vec!["web", "a=b c"])),
            (r"web a=\#b", Ok(vec!["web", "a=#b"])),
            (r#"web a="b\"c\d\\""#, Ok(vec!["web", r#"a=b"c\d\"#])),
            (r"web a='b\'", Ok(vec!["web", r"a=b\"])),
            ("web a=''", Ok(vec!["web", "a="])),
            ("''", Ok(vec![""])),
            ("", Ok(vec![])),
            ("web a='b", Err("a quote has no end")),
            ("web a=\"b\\", Err("a quote has no end")),
            ("web a=b\\", Err("a backslash has nothing behind it")),
        ] {
            let expected = expected.map(|words| words.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(split(line), expected, "{line}");
        }
    }
}
