//! The beginnings of long texts, for answers.

/// The longest text of several lines, in characters.
const LONGEST_TEXT: usize = 600;

/// The longest line, in characters.
pub(crate) const LONGEST_LINE: usize = 240;

/// The beginning of a text.
pub(crate) fn of_text(text: &str) -> String {
    beginning(text, LONGEST_TEXT)
}

/// The beginning of a line, trimmed.
pub(crate) fn of_line(line: &str) -> String {
    beginning(line.trim(), LONGEST_LINE)
}

fn beginning(text: &str, longest: usize) -> String {
    let mut short: String = text.chars().take(longest).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
