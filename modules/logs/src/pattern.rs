//! The pattern of a search: an expression, matched in time linear in the text, or plain text. It also knows words of which
//! every match has one, so that other lines can be skipped.

use linux_sysadmin_sdk::{knowledge, prelude::*};
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind};

/// The memory that one expression may take, in bytes.
const SIZE: usize = 1 << 20;
/// The shortest word. Shorter ones are in nearly every line.
const SHORTEST: usize = 3;
/// The number of words of one alternation.
const WORDS: usize = 16;

/// The pattern of a search.
pub(crate) struct Pattern {
    regex: Regex,
    /// Every match has one of these words. Empty where there are no such words.
    pub(crate) words: Vec<String>,
    pub(crate) ignores_case: bool,
}

impl Pattern {
    /// Reads an expression or, with `fixed`, plain text.
    pub(crate) fn new(text: &str, fixed: bool, ignores_case: bool) -> Result<Self> {
        if text.is_empty() {
            return Err(Problem::validation(
                "EMPTY_PATTERN",
                "pattern is empty; expected what to search for",
            ));
        }
        let escaped = if fixed { regex_syntax::escape(text) } else { text.to_owned() };
        let regex = RegexBuilder::new(&escaped)
            .size_limit(SIZE)
            .dfa_size_limit(SIZE)
            // Like grep in the C locale, it ignores the case of letters without accents only.
            .unicode(!ignores_case)
            .case_insensitive(ignores_case)
            .build()
            // The expression may be wrong in any case, or only without regard to case.
            .or_else(|error| {
                knowledge::expression(&escaped)?;
                Err(Problem::validation("INVALID_EXPRESSION", format!("{text:?} can't be used so: {error}"))
                    .remedy("Ask without ignore_case"))
            })?;
        Ok(Self { regex, words: words_of(&escaped), ignores_case })
    }

    pub(crate) fn regex(&self) -> Regex {
        self.regex.clone()
    }

    pub(crate) fn is_match(&self, line: &[u8]) -> bool {
        self.regex.is_match(line)
    }
}

/// Words of which every match of an expression has one. Empty where there are no such words.
pub(crate) fn words_of(expression: &str) -> Vec<String> {
    let hir = ParserBuilder::new().utf8(false).build().parse(expression).ok();
    let words = hir.and_then(|hir| words(&hir)).filter(|words| words.iter().all(|word| is_usable(word)));
    words.unwrap_or_default()
}

/// Whether the word can be an argument of a program, and is rare enough to help.
fn is_usable(word: &str) -> bool {
    (SHORTEST..200).contains(&word.len()) && !word.chars().any(char::is_control) && !word.starts_with('-')
}

/// The longest words of which every match has one.
fn words(hir: &Hir) -> Option<Vec<String>> {
    match hir.kind() {
        HirKind::Literal(literal) => Some(vec![String::from_utf8(literal.0.to_vec()).ok()?]),
        HirKind::Capture(capture) => words(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => words(&repetition.sub),
        HirKind::Concat(parts) => {
            let all = parts.iter().filter_map(words);
            // Several words are as good as their shortest.
            all.max_by_key(|words| words.iter().map(String::len).min())
        }
        HirKind::Alternation(parts) => {
            let all = parts.iter().map(words).collect::<Option<Vec<_>>>()?;
            let all: Vec<_> = all.into_iter().flatten().collect();
            (all.len() <= WORDS).then_some(all)
        }
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_words_are_those_that_every_match_holds() {
        for (text, expected) in [
            ("Failed password", &["Failed password"][..]),
            (r"Failed (password|publickey) for \w+ from", &["password", "publickey"]),
            ("(error|failed)", &["error", "failed"]),
            (r"^\d+ timeout$", &[" timeout"]),
            ("(abc)+", &["abc"]),
            ("(abc)?x", &[]),
            ("(abc)*", &[]),
            ("a|bcd", &[]),
            (".*", &[]),
            ("(?i)error", &[]),
            ("-abc", &[]),
        ] {
            assert_eq!(Pattern::new(text, false, false).unwrap().words, expected, "{text}");
        }
        assert_eq!(Pattern::new("a.b*c(", true, false).unwrap().words, ["a.b*c("]);
        assert_eq!(Pattern::new("error", false, true).unwrap().words, ["error"]);
    }

    #[test]
    fn what_cant_be_searched_for_says_why() {
        for (text, code) in [
            ("", "EMPTY_PATTERN"),
            ("(?=a)", "INVALID_EXPRESSION"),
            (r"(a)\1", "INVALID_EXPRESSION"),
            ("(", "INVALID_EXPRESSION"),
        ] {
            assert_eq!(Pattern::new(text, false, false).err().unwrap().code, code, "{text}");
        }
    }

    #[test]
    fn no_expression_is_slow_and_bytes_that_are_no_text_are_searched() {
        let pattern = Pattern::new("(a+)+$", false, false).unwrap();
        assert!(!pattern.is_match(format!("{}!", "a".repeat(1 << 20)).as_bytes()));
        assert!(Pattern::new("b.?c", false, false).unwrap().is_match(b"\xff bc"));
        assert!(Pattern::new("ERROR", false, true).unwrap().is_match(b"an Error \xff"));
        assert!(Pattern::new("caf\u{e9}", false, false).unwrap().is_match("caf\u{e9}".as_bytes()));
    }

    proptest! {
        #[test]
        fn a_line_that_matches_holds_one_of_the_words(
            text in "(abc|abd|x+y|[a-d]{1,3}|\\.|(abc|abcd)?){1,4}",
            line in "[a-dxy.]{0,20}",
        ) {
            let pattern = Pattern::new(&text, false, false);
            prop_assume!(pattern.is_ok());
            let pattern = pattern.unwrap();
            if pattern.is_match(line.as_bytes()) && !pattern.words.is_empty() {
                prop_assert!(pattern.words.iter().any(|word| line.contains(word)), "{:?}", pattern.words);
            }
        }
    }
}
