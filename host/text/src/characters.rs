//! Characters that no pattern, path or value may hold, because a person who approves a command can't see them.
//!
//! A control character moves the cursor or starts an escape sequence, a bidirectional control shows the text in
//! another order, and an invisible character makes two different commands look the same. With each of them, the
//! command that was approved could differ from the one that runs. They are therefore refused and not escaped.

/// Inclusive ranges, sorted: Unicode's `Bidi_Control` and `Default_Ignorable_Code_Point`, the line and paragraph
/// separators, and the interlinear annotation marks. [`char::is_control`] knows the control characters proper (C0,
/// DEL, C1).
const INVISIBLE: &[(char, char)] = &[
    ('\u{ad}', '\u{ad}'),       // soft hyphen
    ('\u{34f}', '\u{34f}'),     // combining grapheme joiner
    ('\u{61c}', '\u{61c}'),     // Arabic letter mark
    ('\u{115f}', '\u{1160}'),   // Hangul fillers
    ('\u{17b4}', '\u{17b5}'),   // Khmer inherent vowels
    ('\u{180b}', '\u{180f}'),   // Mongolian variation selectors, vowel separator
    ('\u{200b}', '\u{200f}'),   // zero width space, joiners, directional marks
    ('\u{2028}', '\u{202e}'),   // line and paragraph separator, embeddings, overrides
    ('\u{2060}', '\u{206f}'),   // word joiner, invisible operators, isolates
    ('\u{2800}', '\u{2800}'),   // blank Braille pattern
    ('\u{3164}', '\u{3164}'),   // Hangul filler
    ('\u{fe00}', '\u{fe0f}'),   // variation selectors
    ('\u{feff}', '\u{feff}'),   // byte order mark
    ('\u{ffa0}', '\u{ffa0}'),   // halfwidth Hangul filler
    ('\u{fff0}', '\u{fffb}'),   // interlinear annotation
    ('\u{1bca0}', '\u{1bca3}'), // shorthand format controls
    ('\u{1d173}', '\u{1d17a}'), // musical format controls
    ('\u{e0000}', '\u{e0fff}'), // tags, further variation selectors
];

/// Says whether a reader can't see this character, or it changes how others are shown.
pub fn is_hidden(c: char) -> bool {
    c.is_control() || (!c.is_ascii() && INVISIBLE.iter().any(|&(first, last)| (first..=last).contains(&c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_hidden() {
        for c in [
            '\0',
            '\n',
            '\t',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{9b}',
            '\u{ad}',
            '\u{200b}',
            '\u{200d}',
            '\u{200e}',
            '\u{2028}',
            '\u{2029}',
            '\u{202e}',
            '\u{2060}',
            '\u{2066}',
            '\u{feff}',
            '\u{e0041}',
        ] {
            assert!(is_hidden(c), "{}", c.escape_unicode());
        }
    }

    #[test]
    fn what_can_be_seen_is_not_hidden() {
        for c in ['a', ' ', '-', '~', 'ä', 'ß', '日', '€', '—', '\u{a0}', '😀'] {
            assert!(!is_hidden(c), "{}", c.escape_unicode());
        }
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(INVISIBLE.iter().all(|(first, last)| first <= last));
        assert!(INVISIBLE.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }
}
