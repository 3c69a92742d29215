//! Quotes words for a login shell. dash, bash, zsh and fish read the result in the same way.
//!
//! Within single quotes, fish takes `\\` and `\'` for one character, and the other shells take them for two. Quotes
//! and backslashes are therefore never within quotes; alone, with a backslash in front, all four shells read them as
//! themselves.

/// Returns a command line of these words.
pub(super) fn line<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        quote(word, &mut line);
    }
    line
}

fn quote(word: &str, line: &mut String) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=,@+".contains(&byte);
    // zsh replaces `=` at the beginning by a command's path.
    if !word.is_empty() && !word.starts_with('=') && word.bytes().all(is_plain) {
        line.push_str(word);
        return;
    }
    let mut within = false;
    for character in word.chars() {
        let apart = matches!(character, '\'' | '\\');
        if apart == within {
            line.push('\'');
            within = !within;
        }
        if apart {
            line.push('\\');
        }
        line.push(character);
    }
    if within {
        line.push('\'');
    } else if word.is_empty() {
        line.push_str("''");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_means_itself_is_left_alone_and_any_other_is_quoted() {
        for (word, quoted) in [
            ("plain", "plain"),
            ("--format=%f", "'--format=%f'"),
            ("/usr/bin/env", "/usr/bin/env"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("'", r"\'"),
            (r"\", r"\\"),
            (r"a\'b", r"'a'\\\''b'"),
            ("$HOME`id`\n!x", "'$HOME`id`\n!x'"),
            ("=ls", "'=ls'"),
            ("~", "'~'"),
            ("ü", "'ü'"),
        ] {
            assert_eq!(line([word]), quoted, "{word:?}");
        }
        assert_eq!(line(["a", "", "b c"]), "a '' 'b c'");
    }

    proptest::proptest! {
        /// Splits as POSIX shells do. Another test asks real shells behind a real sshd.
        #[test]
        fn what_is_quoted_is_split_into_the_same_words(words in proptest::collection::vec("[^\0]{0,20}", 0..6)) {
            let split = shell_words::split(&line(words.iter().map(String::as_str))).unwrap();
            proptest::prop_assert_eq!(split, words);
        }
    }
}
