//! The beginnings of long texts, for answers.

use linux_sysadmin_sdk::text::excerpt;
pub(crate) use linux_sysadmin_sdk::text::of_line;

/// The longest text of several lines, in characters.
const LONGEST_TEXT: usize = 600;

/// The beginning of a text.
pub(crate) fn of_text(text: &str) -> String {
    excerpt(text, LONGEST_TEXT)
}
