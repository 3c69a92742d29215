//! Splits text into lines and words, as programs other than systemd do.

/// The characters that separate words.
pub const BLANK: [char; 2] = [' ', '\t'];

/// The lines with their numbers from 1, without a newline and a carriage return before it.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split('\n').enumerate().map(|(index, line)| (index + 1, line.strip_suffix('\r').unwrap_or(line)))
}

/// The lines, where a line that ends in a backslash is joined with the next one. Each has the number of its first line.
pub fn joined(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in lines(text) {
        let body = line.strip_suffix('\\');
        let part = body.unwrap_or(line);
        match found.last_mut() {
            Some((_, whole)) if goes_on => whole.push_str(part),
            _ => found.push((number, part.to_owned())),
        }
        goes_on = body.is_some();
    }
    found
}

/// Takes the next word, and the blanks behind it.
pub fn word<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let start = rest.trim_start_matches(BLANK);
    let (word, after) = start.split_at(start.find(BLANK).unwrap_or(start.len()));
    *rest = after.trim_start_matches(BLANK);
    (!word.is_empty()).then_some(word)
}

/// Splits and unquotes words as a POSIX shell does, without any expansion. `None` where a quote stays open.
pub fn unquoted(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '\'' => break,
                        quoted => word.push(quoted),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '"' => break,
                        '\\' => match characters.next()? {
                            escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                            '\n' => {}
                            other => word.extend(['\\', other]),
                        },
                        quoted => word.push(quoted),
                    }
                }
            }
            '\\' => match characters.next()? {
                '\n' => {}
                escaped => word.get_or_insert_default().push(escaped),
            },
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes_are_a_shells() {
        let table: [(&str, Option<&[&str]>); 8] = [
            ("", Some(&[])),
            ("a  b\tc\n", Some(&["a", "b", "c"])),
            ("a'b c'd \"\" ''", Some(&["ab cd", "", ""])),
            (r#"sh -c "echo \"x\" \n $y""#, Some(&["sh", "-c", "echo \"x\" \\n $y"])),
            (r"a\ b '\'", Some(&["a b", "\\"])),
            ("a 'b", None),
            ("a \"b", None),
            ("a\\", None),
        ];
        for (text, expected) in table {
            let words = unquoted(text);
            let words = words.as_ref().map(|words| words.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(words.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_backslash_at_its_end_joins_a_line_with_the_next() {
        let joined = joined("a \\\r\n b\\\nc\n\nd\\");
        let expected = [(1, "a  bc"), (4, ""), (5, "d")];
        assert_eq!(joined, expected.map(|(number, text)| (number, text.to_owned())));
    }
}
