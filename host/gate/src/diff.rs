//! The change of a file as a unified diff, which is shown before the change is made.

use std::time::Duration;

use similar::udiff::UnifiedHunkHeader;
use similar::{ChangeTag, DiffOp, TextDiff};

use host_text::redact::redact_lines;
use host_text::visible::{excerpt, visible};

/// The number of unchanged lines around a change.
const CONTEXT: usize = 3;
/// The number of lines of a diff that are shown. The others are only counted.
const MOST_LINES: usize = 200;
/// The number of bytes of a diff that are shown.
const MOST_BYTES: usize = 16 << 10;
/// The number of characters of one line that are shown.
const LONGEST_LINE: usize = 400;
/// The size in bytes above which contents are not compared line by line.
const LARGEST: usize = 32 << 20;
/// The time for finding the shortest diff. After that, a longer one is taken.
const TIMEOUT: Duration = Duration::from_millis(500);

/// A change to one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileDiff {
    /// The unified diff, without secrets and with every character visible. None where the contents are no text.
    pub text: Option<String>,
    /// The number of added lines, including those that aren't shown.
    pub added: u64,
    /// The number of removed lines, including those that aren't shown.
    pub removed: u64,
    /// A sentence about what the diff doesn't show.
    pub note: Option<String>,
    /// True where the diff shows all new contents.
    pub whole: bool,
}

/// Compares contents; none stands for a file that doesn't exist. It takes about a second at most.
pub fn diff(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> FileDiff {
    let noted = |note: String| FileDiff { note: Some(note), ..FileDiff::default() };
    if before == after {
        return FileDiff { whole: true, ..noted("nothing changes".to_owned()) };
    }
    let (old, new) = (before.unwrap_or_default(), after.unwrap_or_default());
    let size = |contents: Option<&[u8]>| {
        contents.map_or_else(|| "no file".to_owned(), |all| format!("{} bytes", all.len()))
    };
    let sizes = format!("{} before, {} after", size(before), size(after));
    if old.len() + new.len() > LARGEST {
        return noted(format!("too large to be compared: {sizes}"));
    }
    let (Some(old), Some(new)) = (text(old), text(new)) else {
        return noted(format!("binary: {sizes}"));
    };
    let (old_lines, new_lines) = (lines(old), lines(new));
    let found = TextDiff::configure().timeout(TIMEOUT).diff_slices(&old_lines, &new_lines);
    let count = |length: fn(&DiffOp) -> usize| {
        found.ops().iter().filter(|op| !matches!(op, DiffOp::Equal { .. })).map(length).sum::<usize>() as u64
    };
    let (added, removed) = (count(|op| op.new_range().len()), count(|op| op.old_range().len()));

    // The whole contents are redacted, and not the diff: a diff that begins in the middle of a key doesn't look like a
    // key.
    let (old, new) = (redact_lines(old), redact_lines(new));
    let shown = [lines(&old), lines(&new)];
    let line = |side: usize, at: usize| shown[side].get(at).copied().unwrap_or("[redacted]");
    let mut text = Shown::default();
    text.push(&header("---", "a", path, before.is_some()));
    text.push(&header("+++", "b", path, after.is_some()));
    let (mut hidden, mut whole) = (false, true);
    for ops in found.grouped_ops(CONTEXT) {
        text.push(&UnifiedHunkHeader::new(&ops).to_string());
        for op in &ops {
            hidden |= matches!(op, DiffOp::Replace { .. })
                && op.old_range().any(|old| {
                    let was = line(0, old);
                    was.contains("[redacted") && op.new_range().any(|new| line(1, new) == was)
                });
            for change in op.iter_changes(&old_lines, &new_lines) {
                let (mark, side, at) = match change.tag() {
                    ChangeTag::Equal => (' ', 0, change.old_index()),
                    ChangeTag::Delete => ('-', 0, change.old_index()),
                    ChangeTag::Insert => ('+', 1, change.new_index()),
                };
                let line = line(side, at.unwrap_or(usize::MAX));
                let is_shown = line == change.value() && line.chars().count() <= LONGEST_LINE;
                whole &= is_shown || change.tag() != ChangeTag::Insert;
                text.push(&format!("{mark}{}", excerpt(line.trim_end_matches('\n'), LONGEST_LINE)));
                if !change.value().ends_with('\n') {
                    text.push("\\ No newline at end of file");
                }
            }
        }
    }
    let whole = whole && !hidden && text.left_out == 0;
    let mut notes = Vec::new();
    if text.left_out > 0 {
        notes.push(format!("{} more lines of the diff are left out", text.left_out));
    }
    if hidden {
        notes.push("lines that look the same differ in a secret that isn't shown".to_owned());
    }
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    // A file without contents has no lines, although it is created or removed.
    let is_shown = added + removed > 0;
    let note = if is_shown { note } else { Some(sizes) };
    FileDiff { text: is_shown.then_some(text.text), added, removed, note, whole }
}

fn text(contents: &[u8]) -> Option<&str> {
    std::str::from_utf8(contents).ok().filter(|text| !text.contains('\0'))
}

/// The lines, each with the newline that ends it.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn header(mark: &str, side: &str, path: &str, exists: bool) -> String {
    match exists {
        true => format!("{mark} {side}/{}", visible(path.trim_start_matches('/')).replace('\n', "\\u{a}")),
        false => format!("{mark} /dev/null"),
    }
}

/// The lines up to the limits, and the number of lines that were left out.
#[derive(Default)]
struct Shown {
    text: String,
    lines: usize,
    left_out: usize,
}

impl Shown {
    fn push(&mut self, line: &str) {
        // After the first line that is left out, all others are left out too. A diff with gaps would read as another
        // diff.
        if self.left_out > 0 || self.lines >= MOST_LINES || self.text.len() + line.len() >= MOST_BYTES {
            self.left_out += 1;
            return;
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.lines += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(before: &str, after: &str) -> FileDiff {
        diff("/etc/x", Some(before.as_bytes()), Some(after.as_bytes()))
    }

    #[test]
    fn a_change_is_shown_with_three_lines_around_it() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let found = of(before, &before.replace('5', "five\nfifth"));
        assert_eq!(
            found.text.as_deref(),
            Some("--- a/etc/x\n+++ b/etc/x\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n+fifth\n 6\n 7\n 8\n")
        );
        assert_eq!((found.added, found.removed, found.note), (2, 1, None));
    }

    #[test]
    fn a_new_file_and_a_removed_one_have_dev_null_on_the_other_side() {
        let new = diff("/etc/x", None, Some(b"a\n"));
        assert_eq!(new.text.as_deref(), Some("--- /dev/null\n+++ b/etc/x\n@@ -0,0 +1 @@\n+a\n"));
        let gone = diff("/etc/x", Some(b"a\n"), None);
        assert_eq!(gone.text.as_deref(), Some("--- a/etc/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"));
        assert_eq!((gone.added, gone.removed), (0, 1));
        let empty = diff("/etc/x", None, Some(b""));
        assert_eq!((empty.text, empty.note.as_deref()), (None, Some("no file before, 0 bytes after")));
    }

    #[test]
    fn line_ends_are_part_of_a_line() {
        let found = of("a\nb\n", "a\nb");
        assert!(found.text.unwrap().ends_with("-b\n+b\n\\ No newline at end of file\n"));
        let found = of("a\r\n", "a\n");
        assert!(found.text.unwrap().ends_with("-a\\u{d}\n+a\n"));
    }

    #[test]
    fn what_does_not_show_is_shown_in_the_path_as_well() {
        let found = diff("/etc/a\nb\u{1b}", Some(b"a\n"), Some(b"\x1b[2J\n"));
        let text = found.text.unwrap();
        assert!(text.starts_with("--- a/etc/a\\u{a}b\\u{1b}\n+++ "), "{text}");
        assert!(text.ends_with("+\\u{1b}[2J\n"), "{text}");
    }

    #[test]
    fn what_is_no_text_is_told_by_its_size() {
        for (before, after) in [(&b"a\0b"[..], &b"ab"[..]), (b"ab", b"\xff\xfe\xfd")] {
            let found = diff("/x", Some(before), Some(after));
            let note = format!("binary: {} bytes before, {} bytes after", before.len(), after.len());
            assert_eq!(found, FileDiff { note: Some(note), ..FileDiff::default() });
        }
        assert_eq!(diff("/x", Some(b"\0"), Some(b"\0")).note.as_deref(), Some("nothing changes"));
    }

    #[test]
    fn a_long_diff_is_cut_and_what_is_left_out_is_counted() {
        let long: String = (0..1000).map(|line| format!("{line}\n")).collect();
        let found = diff("/x", None, Some(long.as_bytes()));
        assert_eq!(found.text.unwrap().lines().count(), MOST_LINES);
        assert_eq!(
            (found.added, found.note.as_deref()),
            (1000, Some("803 more lines of the diff are left out"))
        );
        let wide = format!("{}\n", "x".repeat(1 << 20)).repeat(100);
        let text = diff("/x", None, Some(wide.as_bytes())).text;
        assert!(text.unwrap_or_default().len() < MOST_BYTES);
    }

    #[test]
    fn a_large_file_with_nothing_in_common_is_compared_within_the_limits() {
        let lines = |seed: u64| -> String {
            (0..1 << 20).map(|line: u64| format!("{}\n", line.wrapping_mul(2 * seed + 1) % 9973)).collect()
        };
        let found = of(&lines(11), &lines(17));
        assert!(found.text.unwrap().len() < MOST_BYTES && found.added > 0 && found.removed > 0);
        let huge = vec![b'a'; LARGEST + 1];
        assert!(diff("/x", None, Some(&huge)).note.unwrap().starts_with("too large to be compared"));
    }

    #[test]
    fn no_secret_is_shown_and_that_one_differs_is_said() {
        let found = of("user = a\npassword = one\n", "user = a\npassword = two\n");
        assert!(found.text.unwrap().ends_with("-password = [redacted]\n+password = [redacted]\n"));
        assert!(found.note.unwrap().contains("differ in a secret"));
        // The diff shows the middle of a key, where no line marks it as a key.
        let body: String = (0..20).map(|line| format!("AAAAB3NzaC1yc2EAAAADAQABAAABgQ{line:02}\n")).collect();
        let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----\n");
        let found = of(&key, &key.replace("gQ10", "gQxx"));
        assert!(!found.text.unwrap().contains("AAAA"));
    }
}
