//! Wraps text of Markdown into lines. A code span stays in one line, as the check of the pages wants it.

/// The width of a line, where no word is longer.
const WIDTH: usize = 120;

/// The text in lines. The first one begins with `first`, and each other one with `rest`.
pub(super) fn wrap(text: &str, first: &str, rest: &str) -> String {
    let mut lines = String::new();
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in words(text) {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push_str(&line);
            lines.push('\n');
            line = rest.to_owned();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(&word);
        is_empty = false;
    }
    lines + &line + "\n"
}

/// The words of a text. A code span has no end of a word in it.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut is_code) = (String::new(), false);
    for character in text.chars() {
        is_code ^= character == '`';
        match character {
            character if character.is_whitespace() && !is_code => words.push(std::mem::take(&mut word)),
            '\n' => word.push(' '),
            character => word.push(character),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// The text as Markdown that shows it as it is, outside of code spans.
pub(super) fn prose(text: &str) -> String {
    let mut escaped = String::new();
    let mut is_code = false;
    for character in text.chars() {
        is_code ^= character == '`';
        if !is_code && "*_<".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_span_is_never_divided() {
        let span = format!("`{}`", "a ".repeat(70));
        let text = format!("one {span} two `b\nc`");
        assert_eq!(wrap(&text, "- ", "  "), format!("- one\n  {span}\n  two `b c`\n"));
        assert_eq!(wrap("a  b\nc", "", ""), "a b c\n");
    }

    #[test]
    fn characters_that_mean_something_to_markdown_are_shown() {
        assert_eq!(prose("[a-z_] `[a-z_]` <b> 2*3"), "[a-z\\_] `[a-z_]` \\<b> 2\\*3");
    }
}
