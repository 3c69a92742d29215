//! Splits text that comes in pieces into lines.

/// The longest line, in bytes. The rest of a longer one is dropped.
pub(crate) const MOST: usize = 64 << 10;

/// Splits pieces of any length into lines. The last line needs no newline.
#[derive(Default)]
pub(crate) struct LineSplitter {
    /// The beginning of a line whose end has not come yet.
    begun: Vec<u8>,
    most: usize,
}

impl LineSplitter {
    pub(crate) fn new(most: usize) -> Self {
        Self { begun: Vec::new(), most }
    }

    /// Passes on each line that ends in this piece, without its line end. The sink returns false to stop, which is returned.
    pub(crate) fn piece(&mut self, mut piece: &[u8], mut sink: impl FnMut(&[u8]) -> bool) -> bool {
        while let Some(end) = memchr::memchr(b'\n', piece) {
            let (line, rest) = (&piece[..end], &piece[end + 1..]);
            let goes_on = if self.begun.is_empty() {
                let line = without_zeros(line);
                sink(without_return(&line[..line.len().min(self.most)]))
            } else {
                self.keep(line);
                let goes_on = sink(without_return(&self.begun));
                self.begun.clear();
                goes_on
            };
            if !goes_on {
                return false;
            }
            piece = rest;
        }
        self.keep(piece);
        true
    }

    /// Passes on the last line where it has no line end.
    pub(crate) fn end(&mut self, mut sink: impl FnMut(&[u8]) -> bool) {
        if !self.begun.is_empty() {
            sink(without_return(&self.begun));
            self.begun.clear();
        }
    }

    fn keep(&mut self, part: &[u8]) {
        let part = if self.begun.is_empty() { without_zeros(part) } else { part };
        let room = self.most - self.begun.len().min(self.most);
        self.begun.extend_from_slice(&part[..part.len().min(room)]);
    }
}

/// Whether a piece has only zeros: it is in a hole of the file, or was lost in a crash.
pub(crate) fn is_hole(piece: &[u8]) -> bool {
    // A hole may have gigabytes, and so this compares 16 bytes at once.
    let (words, rest) = piece.as_chunks::<16>();
    words.iter().all(|word| u128::from_ne_bytes(*word) == 0) && rest.iter().all(|byte| *byte == 0)
}

/// The line without the zeros at its beginning, which belong to a hole before it.
pub(crate) fn without_zeros(line: &[u8]) -> &[u8] {
    line.iter().position(|byte| *byte != 0).map_or(&[], |begins| &line[begins..])
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::LineSplitter;
    use proptest::prelude::*;

    fn lines(text: &[u8], size: usize, most: usize) -> Vec<Vec<u8>> {
        let (mut lines, mut found) = (LineSplitter::new(most), Vec::new());
        for piece in text.chunks(size.max(1)) {
            lines.piece(piece, |line| {
                found.push(line.to_vec());
                true
            });
        }
        lines.end(|line| {
            found.push(line.to_vec());
            true
        });
        found
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_whole() {
        let text = [vec![b'x'; 10_000_000], b"\nnext".to_vec()].concat();
        let found = lines(&text, 1 << 20, 100);
        assert_eq!(found, [vec![b'x'; 100], b"next".to_vec()]);
    }

    #[test]
    fn a_line_behind_a_hole_is_whole() {
        let text = [&vec![0; 1000][..], b"a\0b\n\0\0c"].concat();
        for size in [1, 7, 2000] {
            assert_eq!(lines(&text, size, 10), [b"a\0b".to_vec(), b"c".to_vec()]);
        }
    }

    proptest! {
        #[test]
        fn however_it_is_cut_the_lines_are_the_same(text in "[ab\r\n]{0,60}", size in 1_usize..10) {
            let expected: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
            let whole = lines(text.as_bytes(), 1000, 1000);
            prop_assert_eq!(&lines(text.as_bytes(), size, 1000), &whole);
            // `str::lines` keeps a carriage return at the end of the text.
            if !text.ends_with('\r') {
                prop_assert_eq!(whole, expected);
            }
        }
    }
}
