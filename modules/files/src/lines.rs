//! A file's text as lines: where each one begins, how it ends, and whether it holds a secret.

use std::borrow::Cow;
use std::ops::Range;

use linux_sysadmin_sdk::Context;

/// The beginning of what the host shows in place of a secret.
pub(crate) const REDACTED: &str = "[redacted";

/// The most lines of a file that is changed line by line. The tables of more would not fit in the module's memory.
pub const MOST: usize = 1 << 20;

/// The number of lines that are redacted at once, and how many of them are redacted again with the next ones. A secret of
/// several lines is shorter than that.
const AT_ONCE: usize = 20_000;
const OVERLAP: usize = 500;

/// The lines of a text.
pub struct Lines<'a> {
    text: &'a [u8],
    /// The offset of each line, and the length of the text at the end.
    starts: Vec<u32>,
    /// The lines that hold a secret, by their number, each as the host shows it.
    hidden: Vec<(u32, String)>,
}

/// The characters that end a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnd {
    Lf,
    CrLf,
}

impl LineEnd {
    pub fn text(self) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
        }
    }
}

impl<'a> Lines<'a> {
    /// Splits a text. `None` where it has more than [`MOST`] lines.
    pub fn new(text: &'a [u8]) -> Option<Self> {
        let mut starts = vec![0];
        for (at, byte) in text.iter().enumerate() {
            if *byte == b'\n' {
                starts.push(at as u32 + 1);
            }
            if starts.len() > MOST {
                return None;
            }
        }
        if *starts.last()? as usize != text.len() {
            starts.push(text.len() as u32);
        }
        Some(Self { text, starts, hidden: Vec::new() })
    }

    /// Notes which lines the host redacts.
    pub fn with_secrets(mut self, cx: &Context) -> Self {
        let mut hidden: Vec<(u32, String)> = Vec::new();
        for range in at_once(self.len()) {
            let texts = range.clone().map(|at| self.text_of(at).into_owned()).collect();
            let shown = range.zip(cx.redacted(texts));
            hidden.extend(
                shown.filter(|(at, shown)| self.text_of(*at) != *shown).map(|(at, shown)| (at as u32, shown)),
            );
        }
        // A line that was redacted twice looks different where a secret of several lines was cut: the form that hides more
        // counts.
        hidden.sort_by_key(|(at, shown)| (*at, shown.len()));
        hidden.dedup_by_key(|(at, _)| *at);
        self.hidden = hidden;
        self
    }

    /// Notes that this line holds a secret, and is shown like this.
    #[cfg(test)]
    pub(crate) fn with_secret_at(mut self, at: usize, shown: &str) -> Self {
        self.hidden.push((at as u32, shown.to_owned()));
        self
    }

    /// The line as text, without its newline.
    fn text_of(&self, at: usize) -> Cow<'a, str> {
        String::from_utf8_lossy(self.line(at))
    }

    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a line with its end. Empty behind the last line.
    pub fn whole(&self, at: usize) -> &'a [u8] {
        self.range(at, at + 1)
    }

    /// The bytes of the lines from `from` to before `to`.
    pub fn range(&self, from: usize, to: usize) -> &'a [u8] {
        let offset = |at: usize| self.starts.get(at).map_or(self.text.len(), |start| *start as usize);
        &self.text[offset(from)..offset(to)]
    }

    /// A line without its newline. A carriage return before it stays.
    pub fn line(&self, at: usize) -> &'a [u8] {
        let whole = self.whole(at);
        whole.strip_suffix(b"\n").unwrap_or(whole)
    }

    /// Whether a newline ends the line. Only the last line may lack one.
    pub fn has_newline(&self, at: usize) -> bool {
        self.whole(at).ends_with(b"\n")
    }

    /// The end of this line. The last line without one has the end of the line before it.
    pub fn end(&self, at: usize) -> LineEnd {
        let whole = self.whole(at);
        let whole = if whole.ends_with(b"\n") { whole } else { self.whole(at.saturating_sub(1)) };
        if whole.ends_with(b"\r\n") { LineEnd::CrLf } else { LineEnd::Lf }
    }

    /// The line as the host shows it, where it holds a secret.
    pub fn redacted(&self, at: usize) -> Option<&str> {
        let found = self.hidden.binary_search_by_key(&(at as u32), |(hidden, _)| *hidden).ok()?;
        self.hidden.get(found).map(|(_, shown)| shown.as_str())
    }

    pub fn is_hidden(&self, at: usize) -> bool {
        self.redacted(at).is_some()
    }

    pub fn has_hidden(&self) -> bool {
        !self.hidden.is_empty()
    }

    /// A line as an answer shows it.
    pub fn shown(&self, at: usize) -> String {
        let line = self.text_of(at);
        let line = self.redacted(at).unwrap_or(&line);
        line.strip_suffix('\r').unwrap_or(line).to_owned()
    }
}

/// The ranges of lines that are redacted together. Each one begins with the last lines of the one before it.
fn at_once(lines: usize) -> impl Iterator<Item = Range<usize>> {
    let starts = (0..lines).step_by(AT_ONCE);
    starts.map(move |start| start.saturating_sub(OVERLAP)..(start + AT_ONCE).min(lines))
}

/// The line without a carriage return at its end.
pub fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    #[test]
    fn a_text_is_its_lines_with_their_ends() {
        for (text, expected) in [
            (&b""[..], &[][..]),
            (b"\n", &[&b"\n"[..]]),
            (b"a\r\nb", &[b"a\r\n", b"b"]),
            (b"a\n\nb\n", &[b"a\n", b"\n", b"b\n"]),
        ] {
            let lines = Lines::new(text).unwrap();
            let found: Vec<_> = (0..lines.len()).map(|at| lines.whole(at)).collect();
            assert_eq!(found, expected);
            assert_eq!(lines.range(0, lines.len()), text);
        }
        let lines = Lines::new(b"a\r\nb").unwrap();
        assert_eq!((lines.end(0), lines.end(1), lines.has_newline(1)), (LineEnd::CrLf, LineEnd::CrLf, false));
        assert!(Lines::new(&vec![b'\n'; MOST]).is_none());
    }

    #[test]
    fn lines_with_secrets_are_known_wherever_they_stand() {
        let mut text = "plain\n".repeat(45_000);
        text.push_str("token hunter2\r\nplain\n");
        let cx = FakeTarget::new().secret("hunter2").context();
        let lines = Lines::new(text.as_bytes()).unwrap().with_secrets(&cx);
        assert!(lines.is_hidden(45_000) && !lines.is_hidden(44_999) && !lines.is_hidden(45_001));
        assert_eq!(
            (lines.shown(45_000).as_str(), lines.shown(45_001).as_str()),
            ("token [redacted]", "plain")
        );
        assert!(!Lines::new(b"plain\n").unwrap().with_secrets(&cx).has_hidden());
    }
}
