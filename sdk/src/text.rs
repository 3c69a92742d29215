//! Texts from callers and programs, as messages repeat them.

/// The first `most` characters of a text, with an ellipsis where there are more.
pub fn excerpt(text: &str, most: usize) -> String {
    let mut short: String = text.chars().take(most).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
