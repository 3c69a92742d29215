//! The level of a line, by the words that programs write.

use super::start;
use crate::level::Level;

/// The level that a message itself names, as programs do whose lines have no other level in the journal.
pub(crate) fn marked(text: &str) -> Option<Level> {
    let short = start(text, 200);
    short
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .zip(places(short))
        .find_map(|(word, place)| is_mark(short, word, place).then(|| Level::parse(word)).flatten())
}

/// The level of a message, by what programs write: `[error]`, `level=warn`, `WARNING:`, or plain words.
pub(super) fn by_words(text: &str) -> Option<Level> {
    let short = start(text, 200);
    marked(text).or_else(|| {
        let lower = short.to_ascii_lowercase();
        let says = |word: &str| {
            lower.match_indices(word).any(|(at, _)| {
                let (before, after) = (&lower[..at], &lower[at + word.len()..]);
                let is_negated = ["no ", "0 ", "without "].iter().any(|no| before.ends_with(no));
                !is_negated && is_word_between(before, after)
            })
        };
        if ["panic", "fatal", "out of memory", "oom-kill", "segfault", "critical"]
            .iter()
            .any(|word| says(word))
        {
            Some(Level::CRITICAL)
        } else if ["error", "failed", "failure", "cannot", "can't", "unable to", "traceback"]
            .iter()
            .any(|word| says(word))
        {
            Some(Level::ERROR)
        } else {
            ["warn", "denied", "refused", "timed out", "timeout"]
                .iter()
                .any(|word| says(word))
                .then_some(Level::WARNING)
        }
    })
}

/// Whether the text between two others is a word, and not a part of a name such as `libgpg-error0` or
/// `/var/log/error.log`.
fn is_word_between(before: &str, after: &str) -> bool {
    let joins = |letter: char| letter.is_ascii_alphanumeric() || "-_/".contains(letter);
    let after = after.strip_prefix('s').unwrap_or(after);
    let is_name = after
        .strip_prefix('.')
        .is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_alphanumeric()));
    !before.ends_with(|letter: char| joins(letter) || letter == '.') && !after.starts_with(joins) && !is_name
}

/// The offsets of the words that a text is split into.
fn places(text: &str) -> impl Iterator<Item = usize> {
    std::iter::once(0).chain(
        text.char_indices()
            .filter(|(_, letter)| !letter.is_ascii_alphanumeric())
            .map(|(at, letter)| at + letter.len_utf8()),
    )
}

/// Whether a word stands where programs write a level: in brackets, after `level=`, before a colon, or in capitals.
fn is_mark(text: &str, word: &str, at: usize) -> bool {
    // A number may be anything, and is no level here.
    if word.len() < 3 || word.bytes().any(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let (before, after) = (&text[..at], &text[at + word.len()..]);
    let bracketed = before.ends_with(['[', '<', '(', '|', '"', '=', '@'])
        && (after.is_empty() || after.starts_with([']', '>', ')', '|', '"', ' ', ':']));
    let capitals = word.bytes().all(|byte| byte.is_ascii_uppercase());
    let in_front = after.starts_with(": ") && (before.is_empty() || before.ends_with([' ', ']', ':']));
    bracketed && !before.ends_with("(") || capitals || in_front
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_error_isnt_called_one() {
        for text in [
            "0 errors",
            "no error",
            "terror",
            "completed without error",
            "error.log rotated",
            "status installed libgpg-error0:amd64 1.46-1",
            "GET /error HTTP/1.1",
        ] {
            assert_eq!(by_words(text), None, "{text}");
        }
        for (text, level) in [
            ("x: error: y", 3),
            ("Error reading x", 3),
            ("cannot open x", 3),
            ("2 errors.", 3),
            ("[warn] x", 4),
            ("connection refused", 4),
            ("WARNING x", 4),
        ] {
            assert_eq!(by_words(text), Some(Level(level)), "{text}");
        }
    }
}
