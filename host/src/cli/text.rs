//! Text for the terminal: wrapped lines, and the names of risks.

use host_base::Risk;

const WIDTH: usize = 80;

/// Wraps text at 80 columns. A longer word stays whole, so that it can be copied.
pub(super) fn wrap(text: &str, first: &str, then: &str) -> String {
    let options = textwrap::Options::new(WIDTH)
        .initial_indent(first)
        .subsequent_indent(then)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .word_separator(textwrap::WordSeparator::AsciiSpace);
    textwrap::fill(text, options)
}

/// The name of a risk.
pub(super) fn risk_name(risk: Risk) -> &'static str {
    match risk {
        Risk::ReadOnly => "read-only",
        Risk::Low => "low",
        Risk::Moderate => "moderate",
        Risk::High => "high",
        Risk::Critical => "critical",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_longer_than_a_line_is_wrapped_at_blanks_only() {
        let text = wrap(&"word ".repeat(40), "  1. ", "     ");
        assert!(text.lines().all(|line| line.len() <= WIDTH));
        assert!(text.lines().skip(1).all(|line| line.starts_with("     word")));
        let sha256 = "a".repeat(64);
        assert!(wrap(&sha256, "                     ", "").ends_with(&sha256));
    }
}
