//! The beginnings of long texts, for answers.

use linux_sysadmin_sdk::text::excerpt;

/// The longest text of several lines, in characters.
const LONGEST_TEXT: usize = 600;

/// The longest line, in characters.
pub(crate) const LONGEST_LINE: usize = 240;

/// The beginning of a text.
pub(crate) fn of_text(text: &str) -> String {
    excerpt(text, LONGEST_TEXT)
}

/// The beginning of a line, trimmed.
pub(crate) fn of_line(line: &str) -> String {
    excerpt(line.trim(), LONGEST_LINE)
}
