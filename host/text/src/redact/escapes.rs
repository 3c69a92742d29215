//! Reads text that may be escaped, as in JSON: quotation marks, line ends, blanks.

/// A quotation mark in text that may have been escaped: `"`, `'`, `\"`.
#[derive(Clone, Copy)]
pub(super) struct Quote {
    pub(super) mark: u8,
    pub(super) backslashes: usize,
}

impl Quote {
    /// Reads the quotation mark that begins here. Returns it and the place behind it.
    pub(super) fn at(bytes: &[u8], at: usize) -> Option<(Self, usize)> {
        let backslashes = bytes.get(at..)?.iter().take(16).take_while(|byte| **byte == b'\\').count();
        let mark = *bytes.get(at + backslashes)?;
        matches!(mark, b'"' | b'\'').then_some((Self { mark, backslashes }, at + backslashes + 1))
    }

    /// Reads the quotation mark that ends here. Returns it and where it begins.
    pub(super) fn before(bytes: &[u8], end: usize) -> Option<(Self, usize)> {
        let mark = *bytes.get(end.checked_sub(1)?)?;
        let backslashes = bytes[..end - 1].iter().rev().take(16).take_while(|byte| **byte == b'\\').count();
        matches!(mark, b'"' | b'\'').then_some((Self { mark, backslashes }, end - 1 - backslashes))
    }

    /// Returns where the text in these quotes ends: before the closing quote, or at the end of the line.
    pub(super) fn end(self, bytes: &[u8], from: usize) -> usize {
        let mut backslashes = 0;
        for (at, byte) in bytes.iter().enumerate().skip(from) {
            match *byte {
                b'\\' => backslashes += 1,
                b'\n' | b'\r' => return at - backslashes,
                byte => {
                    // With more backslashes than the opening quote, it is a quote inside the text. Where the opening
                    // quote has none, pairs of backslashes are backslashes themselves.
                    let closes = match self.backslashes {
                        0 => backslashes % 2 == 0,
                        opening => backslashes <= opening,
                    };
                    if byte == self.mark && closes {
                        return at - backslashes.min(self.backslashes);
                    }
                    backslashes = 0;
                }
            }
        }
        bytes.len()
    }
}

/// Says whether a line ends here, with a line end or its escaped form.
pub(super) fn ends_here(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at) {
        None | Some(b'\n' | b'\r') => true,
        // With a backslash, the line goes on in the next one. [`super::joined`] reads both together.
        Some(b'\\') => {
            matches!(bytes.get(at + 1), Some(b'n' | b'r' | b'\n' | b'\r'))
                || bytes[at..].starts_with(br"\\\n")
        }
        _ => false,
    }
}

/// Returns the place behind blanks and tabs, escaped tabs among them.
pub(super) fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    loop {
        match bytes.get(at) {
            Some(b' ' | b'\t') => at += 1,
            Some(b'\\') if bytes.get(at + 1) == Some(&b't') => at += 2,
            _ => return at,
        }
    }
}

/// Returns the place behind a line end, its blanks and the mark of a diff.
pub(super) fn skip_line_end(bytes: &[u8], mut at: usize) -> usize {
    for end in [&b"\r"[..], b"\n", br"\n"] {
        at += if bytes[at..].starts_with(end) { end.len() } else { 0 };
    }
    at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
    skip_blanks(bytes, at)
}
