//! Texts from callers and programs, as messages repeat them.

/// The first `most` characters of a text, with an ellipsis where there are more.
pub fn excerpt(text: &str, most: usize) -> String {
    let mut short: String = text.chars().take(most).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Says whether nobody sees the character, or it changes how others are seen. The host refuses commands with such ones.
pub fn is_unseen(c: char) -> bool {
    let formats = [
        '\u{200b}'..='\u{200f}',
        '\u{2028}'..='\u{202e}',
        '\u{2060}'..='\u{206f}',
        '\u{e0000}'..='\u{e0fff}',
    ];
    c.is_control() || matches!(c, '\u{ad}' | '\u{feff}') || formats.iter().any(|range| range.contains(&c))
}

/// The longest line of a program's output in an answer, in characters.
pub const LONGEST_LINE: usize = 240;

/// The beginning of a line of a program's output, trimmed.
pub fn of_line(line: &str) -> String {
    excerpt(line.trim(), LONGEST_LINE)
}

/// The first `most` names with commas between them, and the number of the others.
pub fn list<S: AsRef<str>>(names: &[S], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(most) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_and_a_long_list_counts_its_others() {
        assert_eq!((excerpt("äbc", 3), excerpt("äbc", 2)), ("äbc".to_owned(), "äb…".to_owned()));
        assert_eq!(list(&["a", "b"], 2), "a, b");
        assert_eq!(list(&["a", "b", "c", "d"], 2), "a, b and 2 more");
    }
}
