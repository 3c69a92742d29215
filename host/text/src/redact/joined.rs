//! Finds secrets in text as its reader joins it. A shell and systemd read a line that ends with a backslash together
//! with the next one, and systemd reads `P\x41SS` as `PASS`. What is found there is hidden in the text as it stands.

use std::borrow::Cow;
use std::ops::Range;

use super::{Edit, REDACTED};

pub(super) const HINTS: &[&str] =
    &["\\\n", "\\\r\n", "\\\\\\n", "\\x2", "\\x3", "\\x4", "\\x5", "\\x6", "\\x7", "\\u00", "\\0", "\\1"];

/// A text as it is read, and where each of its parts comes from.
struct Joined {
    text: String,
    /// The beginning of each part, here and in the text as it stands.
    parts: Vec<(usize, usize)>,
    /// The line ends that are joined, as they stand.
    joints: Vec<Range<usize>>,
}

/// Finds all secrets of the joined text by `find`. A line end within one stays, before what replaces the secret.
pub(super) fn find(text: &str, find: impl FnOnce(&str) -> Option<Vec<Edit>>) -> Option<Vec<Edit>> {
    let joined = Joined::new(text);
    let edits = find(&joined.text)?.into_iter().map(|(secret, _)| {
        let range = joined.place(secret.start)..joined.place(secret.end - 1) + 1;
        let range = range.start..joined.end_of_part(text, range.end, secret.end);
        let first = joined.joints.partition_point(|joint| joint.start < range.start);
        let within = joined.joints[first..].iter().take_while(|joint| joint.end <= range.end);
        let mut shown: String = within.map(|joint| &text[joint.clone()]).collect();
        shown.push_str(REDACTED);
        (range, Cow::Owned(shown))
    });
    Some(edits.collect())
}

impl Joined {
    fn new(text: &str) -> Self {
        let mut joined =
            Self { text: String::with_capacity(text.len()), parts: vec![(0, 0)], joints: Vec::new() };
        let mut done = 0;
        let mut at = 0;
        while let Some(next) = text[at..].find('\\') {
            at += next;
            let (read, end) = if let Some(end) = joint(text, at) {
                joined.joints.push(at..end);
                (None, end)
            } else if let Some((letter, end)) = escaped(&text[at..]) {
                (Some(letter), at + end)
            } else {
                at += 1;
                continue;
            };
            joined.text.push_str(&text[done..at]);
            if let Some(letter) = read {
                joined.parts.push((joined.text.len(), at));
                joined.text.push(letter);
            }
            joined.parts.push((joined.text.len(), end));
            (done, at) = (end, end);
        }
        joined.text.push_str(&text[done..]);
        joined
    }

    /// Returns where a byte of the joined text comes from.
    fn place(&self, at: usize) -> usize {
        let part = self.parts.partition_point(|(start, _)| *start <= at).saturating_sub(1);
        self.parts.get(part).map_or(at, |(start, place)| place + at - start)
    }

    /// Returns the end of a secret in the text as it stands. An escaped letter ends where the next part begins.
    fn end_of_part(&self, text: &str, end: usize, read_to: usize) -> usize {
        let next = self.parts.partition_point(|(start, _)| *start < read_to);
        match self.parts.get(next) {
            Some((start, place))
                if text.as_bytes()[end - 1] == b'\\' && *start == read_to && *place >= end =>
            {
                *place
            }
            _ => end,
        }
    }
}

/// Returns the end of a joint that begins with the backslash here: the line's end, in a diff the mark of the next line,
/// and that line's blanks, unless they divide two words.
fn joint(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let end = ["\\\n", "\\\r\n", "\\\\\\n"].iter().find(|end| rest.starts_with(**end))?;
    let mut behind = at + end.len();
    let mark = text[..at].rsplit_once('\n').map_or(&text[..at], |(_, line)| line).bytes().next();
    if end.len() < 4 && mark.is_some_and(|mark| b"+-".contains(&mark)) {
        behind += usize::from(text.as_bytes().get(behind).copied() == mark);
    }
    let before = text[..at].bytes().next_back();
    if before.is_none_or(|before| b" \t=:\"'".contains(&before)) {
        behind += text[behind..].bytes().take_while(|byte| b" \t".contains(byte)).count();
    }
    Some(behind)
}

/// Reads an escaped letter, `\x41`, `\u0041` or `\101`. Returns it and its length.
fn escaped(text: &str) -> Option<(char, usize)> {
    let (digits, radix, length) = match text.as_bytes() {
        [b'\\', b'x', ..] => (text.get(2..4)?, 16, 4),
        [b'\\', b'u', ..] => (text.get(2..6)?, 16, 6),
        [b'\\', b'0'..=b'1', ..] => (text.get(1..4)?, 8, 4),
        _ => return None,
    };
    let letter = u8::from_str_radix(digits, radix).ok()?;
    letter.is_ascii_graphic().then_some((char::from(letter), length))
}
