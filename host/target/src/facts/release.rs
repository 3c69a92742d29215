//! Reads os-release(5), in which a distribution describes itself.
//!
//! It reads assignments as a shell does, but has nothing else of a shell: no expansion and no joined quotes. A line of
//! another form is skipped, as the rest of the file may still be right. The file is the target's and may hold any
//! text, and so only [`MOST_BYTES`] are read.

use std::collections::BTreeMap;

/// A hundred times what distributions write.
const MOST_BYTES: usize = 64 << 10;

/// Returns the values by key. Of several with the same key the last one counts, as in a shell.
pub(super) fn parse(text: &str) -> BTreeMap<&str, String> {
    within(text).split('\n').filter_map(assignment).collect()
}

/// Returns the whole lines within the limit.
fn within(text: &str) -> &str {
    if text.len() <= MOST_BYTES {
        return text;
    }
    let end = text.floor_char_boundary(MOST_BYTES);
    text[..end].rsplit_once('\n').map_or("", |(whole, _)| whole)
}

/// Reads `NAME=value`, `NAME="value"` or `NAME='value'`. Returns none for comments and blank lines.
fn assignment(line: &str) -> Option<(&str, String)> {
    let (key, value) = line.trim().split_once('=')?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if !key.bytes().all(is_name) || !key.starts_with(|first: char| !first.is_ascii_digit()) {
        return None;
    }
    let value = match value.strip_prefix(['"', '\'']) {
        Some(quoted) => unquoted(quoted, value.starts_with('"'))?,
        None => unescaped(value),
    };
    Some((key, value))
}

/// Returns the text before the closing quote. Only a comment may follow the quote.
fn unquoted(quoted: &str, double: bool) -> Option<String> {
    let mut value = String::with_capacity(quoted.len());
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '"' if double => break,
            '\'' if !double => break,
            '\\' if double => match characters.next()? {
                escaped @ ('"' | '\\' | '$' | '`') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            character => value.push(character),
        }
    }
    let rest = characters.as_str();
    let is_comment = rest.trim_start().starts_with('#') && rest.starts_with(char::is_whitespace);
    (rest.trim().is_empty() || is_comment).then_some(value)
}

/// Reads a value without quotes. One with spaces reaches to the end of its line, as in systemd.
fn unescaped(plain: &str) -> String {
    let mut value = String::with_capacity(plain.len());
    let mut characters = plain.chars();
    while let Some(character) = characters.next() {
        value.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_a_shell_would_read_them() {
        for (line, value) in [
            ("NAME=Debian", Some("Debian")),
            ("NAME=\"Debian GNU/Linux\"", Some("Debian GNU/Linux")),
            ("NAME='Debian GNU/Linux'", Some("Debian GNU/Linux")),
            ("  NAME=Debian  ", Some("Debian")),
            ("NAME=Debian\r", Some("Debian")),
            ("NAME=\"Debian\"\r", Some("Debian")),
            ("NAME=\"Debian\" # a comment", Some("Debian")),
            ("NAME=\"\"", Some("")),
            ("NAME=''", Some("")),
            ("NAME=", Some("")),
            ("NAME=a=b", Some("a=b")),
            (r#"NAME="a \"b\" \$c \`d\` \\e""#, Some(r#"a "b" $c `d` \e"#)),
            (r#"NAME="a\nb""#, Some(r"a\nb")),
            (r"NAME='a\b'", Some(r"a\b")),
            (r"NAME=a\ b\$", Some("a b$")),
            ("NAME=Fedora Linux", Some("Fedora Linux")),
            ("NAME=\"it's\"", Some("it's")),
            ("NAME='say \"x\"'", Some("say \"x\"")),
            ("NAME=\"$(id)\"", Some("$(id)")),
            ("NAME=\"ü日\"", Some("ü日")),
            // These lines have another form.
            ("# NAME=no", None),
            ("NAME", None),
            ("NAME = no", None),
            ("export NAME=no", None),
            ("1NAME=no", None),
            ("=no", None),
            ("NA-ME=no", None),
            ("NAME=\"no", None),
            ("NAME=\"no\\\"", None),
            ("NAME='no", None),
            ("NAME=\"no\"thing", None),
            ("NAME=\"no\"\"thing\"", None),
            ("NAME=\"no\"# thing", None),
            ("\u{feff}NAME=no", None),
        ] {
            let read = parse(line);
            assert_eq!(read.values().next().map(String::as_str), value, "{line}");
        }
    }

    #[test]
    fn the_last_of_a_key_counts_and_a_bad_line_spoils_no_other() {
        let read = parse("ID=one\n\n(((\nID=\"unfinished\nID=two\nNAME=x");
        assert_eq!(read, BTreeMap::from([("ID", "two".to_owned()), ("NAME", "x".to_owned())]));
    }

    #[test]
    fn nothing_is_read_beyond_the_limit_nor_from_a_line_that_it_cuts() {
        let padding = "#".repeat(MOST_BYTES - "ID=in\n".len() - 3);
        let text = format!("ID=in\n{padding}\nVERSION_ID=12\nNAME=out\n");
        assert_eq!(parse(&text), BTreeMap::from([("ID", "in".to_owned())]));
        assert_eq!(parse(&"ü".repeat(MOST_BYTES)), BTreeMap::new());
        let long = "x".repeat(MOST_BYTES - 3);
        assert_eq!(parse(&format!("ID={long}"))["ID"], long);
    }
}
