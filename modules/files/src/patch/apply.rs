//! Applies the hunks of one file. The result is a whole new text, or every hunk that doesn't fit.

use super::locate::{Locator, Miss, Place};
use super::parse::{Hunk, Tag};
use crate::lines::{LineEnd, Lines};

/// The most hunks that don't fit, after which the search ends.
const MOST_MISSED: usize = 5;

/// The new text of a file.
#[derive(Debug, Default, PartialEq)]
pub struct Patched {
    pub contents: Vec<u8>,
    /// Hunks that fitted another line than their own: the hunk's number, and by how many lines it moved.
    pub moved: Vec<(usize, isize)>,
    /// Whether the diff's lines ended otherwise than the file's, which stay as they are.
    pub is_loose: bool,
    pub added: usize,
    pub removed: usize,
}

/// A hunk that doesn't fit.
#[derive(Debug)]
pub struct Missed<'h, 'a> {
    pub hunk: &'h Hunk<'a>,
    pub miss: Miss,
}

/// Applies hunks in their order.
pub fn apply<'h, 'a>(file: &Lines<'_>, hunks: &'h [Hunk<'a>]) -> Result<Patched, Vec<Missed<'h, 'a>>> {
    let locator = Locator::new(file);
    let mut patched = Patched::default();
    let mut missed = Vec::new();
    let (mut copied, mut offset) = (0, 0);
    for hunk in hunks {
        match locator.find(hunk, copied, offset) {
            Ok(place) => {
                if let Some(start) = hunk.old_start {
                    let by = place.at as isize - start.saturating_sub(1) as isize;
                    // The line of a hunk without former lines is the one before it.
                    if by != 0 && hunk.counts.0 > 0 {
                        patched.moved.push((hunk.number, by));
                        offset = by;
                    } else {
                        offset = 0;
                    }
                }
                patched.take(file.range(copied, place.at), LineEnd::Lf);
                copied = patched.hunk(file, hunk, place);
            }
            Err(miss) => {
                missed.push(Missed { hunk, miss });
                if missed.len() == MOST_MISSED {
                    break;
                }
            }
        }
    }
    if !missed.is_empty() {
        return Err(missed);
    }
    patched.take(file.range(copied, file.len()), LineEnd::Lf);
    Ok(patched)
}

impl Patched {
    /// Adds bytes that begin a line. A line before them that has no end gets one.
    fn take(&mut self, bytes: &[u8], end: LineEnd) {
        if !bytes.is_empty() && self.contents.last().is_some_and(|last| *last != b'\n') {
            self.contents.extend_from_slice(end.text());
        }
        self.contents.extend_from_slice(bytes);
    }

    /// Adds a hunk's lines. Context comes from the file, so that it keeps each byte. The result is the first of the file's
    /// lines behind it.
    fn hunk(&mut self, file: &Lines<'_>, hunk: &Hunk<'_>, place: Place) -> usize {
        let end = file.end(place.at);
        let mut at = place.at;
        for line in hunk.lines() {
            match line.tag {
                Tag::Context => self.take(file.whole(at), end),
                Tag::Remove => self.removed += 1,
                Tag::Add => {
                    self.added += 1;
                    let text = line.text.as_bytes();
                    let text = if place.is_loose { text.strip_suffix(b"\r").unwrap_or(text) } else { text };
                    self.take(text, end);
                    // An empty line has no bytes that would end the line before it.
                    if text.is_empty() && self.contents.last().is_some_and(|last| *last != b'\n') {
                        self.contents.extend_from_slice(end.text());
                    }
                    if line.newline {
                        let own = if place.is_loose { end.text() } else { b"\n" };
                        self.contents.extend_from_slice(own);
                    }
                }
            }
            at += usize::from(line.tag != Tag::Add);
        }
        self.is_loose |= place.is_loose;
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::parse::parse;

    fn patched(file: &str, diff: &str) -> Patched {
        let lines = Lines::new(file.as_bytes()).unwrap();
        apply(&lines, &parse(diff).unwrap()[0].hunks).unwrap_or_else(|missed| panic!("{diff}: {missed:?}"))
    }

    #[test]
    fn hunks_change_their_lines_and_no_other_byte() {
        for (file, diff, expected) in [
            ("a\nb\nc\n", "@@ -1,3 +1,4 @@\n a\n-b\n+x\n+y\n c\n", "a\nx\ny\nc\n"),
            ("", "@@ -0,0 +1,2 @@\n+x\n+y\n", "x\ny\n"),
            ("a\n", "@@ -1 +0,0 @@\n-a\n", ""),
            // Ends of lines are the file's.
            ("a\r\nb\r\n", "@@ -1,2 +1,3 @@\n a\n+x\n b\n", "a\r\nx\r\nb\r\n"),
            ("a\nb\n", "@@ -1,2 +1,3 @@\r\n a\r\n+x\r\n b\r\n", "a\nx\nb\n"),
            ("a\r\nb\n", "@@ -1,2 +1,3 @@\n a\r\n+x\n b\n", "a\r\nx\nb\n"),
            // The last line has no newline.
            ("a\nb", "@@ -1,2 +1,3 @@\n a\n+x\n b\n\\ No newline at end of file\n", "a\nx\nb"),
            ("a\nb", "@@ -1,2 +1,3 @@\n a\n b\n+x\n", "a\nb\nx\n"),
            ("a\nb", "@@ -1,2 +1,3 @@\n a\n b\n+\n", "a\nb\n\n"),
            ("a\nb", "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+b\n", "a\nb\n"),
            ("a\nb\n", "@@ -2 +2 @@\n-b\n+b\n\\ No newline at end of file\n", "a\nb"),
            ("a\r\nb", "@@ -1,2 +1,3 @@\n a\n b\n+x\n", "a\r\nb\r\nx\r\n"),
        ] {
            assert_eq!(String::from_utf8(patched(file, diff).contents).unwrap(), expected, "{file:?} {diff}");
        }
    }

    #[test]
    fn a_secret_in_the_context_stays_as_it_is() {
        let lines = Lines::new(b"a\npassword=x\nb\n").unwrap().with_secret_at(1, "password=[redacted]");
        let files = parse("@@ -1,3 +1,3 @@\n-a\n+c\n password=[redacted]\n b\n").unwrap();
        assert_eq!(apply(&lines, &files[0].hunks).unwrap().contents, b"c\npassword=x\nb\n");
    }

    #[test]
    fn it_is_said_how_far_a_hunk_moved() {
        let file = "new\nnew\na\nb\nc\nd\ne\nf\n";
        let found = patched(file, "@@ -1,2 +1,2 @@\n a\n-b\n+x\n@@ -5,2 +5,2 @@\n e\n-f\n+y\n");
        assert_eq!(found.contents, b"new\nnew\na\nx\nc\nd\ne\ny\n");
        assert_eq!(found.moved, [(1, 2), (2, 2)]);
        assert_eq!((found.added, found.removed), (2, 2));
    }

    #[test]
    fn every_hunk_that_does_not_fit_is_told_and_nothing_is_patched() {
        let lines = Lines::new(b"a\nb\nc\n").unwrap();
        let files = parse("@@ -1 +1 @@\n-x\n+y\n@@ -2 +2 @@\n-b\n+y\n@@ -3 +3 @@\n-z\n+y\n").unwrap();
        let missed = apply(&lines, &files[0].hunks).unwrap_err();
        assert_eq!(missed.iter().map(|missed| missed.hunk.number).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn a_hundred_thousand_hunks_take_no_time() {
        let started = std::time::Instant::now();
        let file: String = (0..400_000).map(|line| format!("line {line}\n")).collect();
        let lines = Lines::new(file.as_bytes()).unwrap();
        // Each hunk has moved, so that each is searched for.
        let hunk = |at: usize| {
            format!(
                "@@ -{0},3 +{0},3 @@\n line {1}\n-line {2}\n+new\n line {3}\n",
                at + 50,
                at,
                at + 1,
                at + 2
            )
        };
        let diff: String = (0..100_000).map(|at| hunk(at * 4)).collect();
        let files = parse(&diff).unwrap();
        let found = apply(&lines, &files[0].hunks).unwrap();
        assert_eq!((found.added, found.moved.len()), (100_000, 100_000));
        assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
    }
}
