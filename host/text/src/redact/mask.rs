//! Hides secrets in contents whose length and line ends have to stay, because whoever reads them counts bytes.

use std::borrow::Cow;

use super::redact_lines;
use crate::visible::without_unseen;

/// The byte that stands in place of each byte of a secret.
const MASK: u8 = b'*';

/// Returns the contents with an asterisk in place of each byte of a secret. The contents are borrowed where they hold none.
/// Between the secrets of one line, everything is hidden as well.
pub fn mask(contents: &[u8]) -> Cow<'_, [u8]> {
    let text = String::from_utf8_lossy(contents);
    let Cow::Owned(redacted) = redact_lines(&text) else { return Cow::Borrowed(contents) };
    let (lines, shown): (Vec<_>, Vec<_>) =
        (contents.split(|byte| *byte == b'\n').collect(), redacted.split('\n').collect());
    let mut masked = contents.to_vec();
    let mut begin = 0;
    for (number, line) in lines.iter().enumerate() {
        // Where the lines can't be told apart any more, all of them are hidden.
        let hidden = match shown.get(number).filter(|_| shown.len() == lines.len()) {
            Some(shown) => difference(line, shown),
            None => (0, line.len()),
        };
        masked[begin + hidden.0..begin + hidden.1].fill(MASK);
        begin += line.len() + 1;
    }
    Cow::Owned(masked)
}

/// The same for a part of longer contents. What stands before and behind it says whether it holds a secret.
pub fn mask_between(before: &[u8], part: &[u8], after: &[u8]) -> Vec<u8> {
    let whole = [before, part, after].concat();
    mask(&whole)[before.len()..before.len() + part.len()].to_vec()
}

/// The bytes of a line, from one index to another, that aren't in the line as it may be shown.
fn difference(line: &[u8], shown: &str) -> (usize, usize) {
    let Ok(line) = std::str::from_utf8(line) else {
        let is_same = String::from_utf8_lossy(line) == shown;
        return (0, if is_same { 0 } else { line.len() });
    };
    // A text with a secret is shown without the escape sequences in all its lines.
    if line == shown || without_unseen(line) == shown {
        return (0, 0);
    }
    let alike = |pair: &(u8, u8)| pair.0 == pair.1;
    let mut head = line.bytes().zip(shown.bytes()).take_while(alike).count();
    let most = line.len().min(shown.len()) - head;
    let mut tail = line.bytes().rev().zip(shown.bytes().rev()).take_while(alike).count().min(most);
    while !line.is_char_boundary(head) {
        head -= 1;
    }
    while !line.is_char_boundary(line.len() - tail) {
        tail -= 1;
    }
    (head, line.len() - tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(contents: &str) -> String {
        let masked = mask(contents.as_bytes());
        assert_eq!(masked.len(), contents.len());
        String::from_utf8(masked.into_owned()).unwrap()
    }

    const KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nAAAAB3NzaC1yc2EAAAADAQAB\n-----END OPENSSH PRIVATE KEY-----";

    #[test]
    fn each_byte_of_a_secret_is_hidden_and_everything_else_stays_in_its_place() {
        for (contents, shown) in [
            ("user=ada\npassword=hunter2\nport=22\n", "user=ada\npassword=*******\nport=22\n"),
            ("no secret at all\n", "no secret at all\n"),
            ("", ""),
        ] {
            assert_eq!(masked(contents), shown);
        }
        let file = format!("# the key\n{KEY}\n# the end\n");
        let shown = masked(&file);
        assert!(shown.starts_with("# the key\n***") && shown.ends_with("***\n# the end\n"), "{shown}");
        assert_eq!(shown.matches('\n').count(), file.matches('\n').count());
        assert!(!shown.contains("b3Blbn") && !shown.contains("B3NzaC1"), "{shown}");
    }

    #[test]
    fn bytes_that_are_no_text_stay_unless_a_secret_stands_in_their_line() {
        let contents = b"\xff\xfe\npassword=hunter2\n\xff password=hunter2\nend";
        let shown = mask(contents);
        let line = "*".repeat(18);
        let expected = [&b"\xff\xfe\npassword=*******\n"[..], line.as_bytes(), b"\nend"].concat();
        assert_eq!(&shown[..], expected);
    }

    #[test]
    fn escape_sequences_don_t_hide_a_secret_and_other_lines_keep_theirs() {
        let shown = masked("\u{1b}[1mtitle\u{1b}[0m\npass\u{1b}[0mword=hunter2\n");
        assert!(shown.starts_with("\u{1b}[1mtitle\u{1b}[0m\npass*"), "{shown:?}");
        assert!(!shown.contains("hunter2"), "{shown:?}");
    }

    #[test]
    fn a_part_is_judged_by_what_stands_around_it() {
        let line = "password=hunter2-and-more\n";
        for at in 1..line.len() - 1 {
            let (before, part) = line.split_at(at);
            let shown = mask_between(before.as_bytes(), part.as_bytes(), b"next=1\n");
            let shown = String::from_utf8(shown).unwrap();
            assert_eq!(shown, masked(line)[at..], "{at}");
        }
        let (before, part) = KEY.split_at(KEY.len() / 2);
        let shown = mask_between(before.as_bytes(), part.as_bytes(), b"");
        assert!(shown.iter().all(|byte| matches!(byte, b'*' | b'\n')), "{}", String::from_utf8_lossy(&shown));
    }
}
