//! Reads unified diffs, as diff(1), git and models write them: files, hunks and lines.
//!
//! A hunk's body ends where its header says, if the counts fit. Otherwise it ends at the next header, and the counts are
//! reported. Text between files is skipped, as patch(1) does it; a line in the middle of a hunk that is neither context
//! nor a change is an error, because the rest of the hunk would be lost.

use std::ops::Range;

use linux_sysadmin_sdk::{Problem, Result, text::excerpt};

/// The most files of one diff.
const MOST_FILES: usize = 50;
/// The number of characters of a diff's line in a message.
const SHOWN: usize = 80;

/// The changes to one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilePatch<'a> {
    /// The former name; none for `/dev/null` and where the diff has no names.
    pub old: Option<String>,
    /// The new name; none for `/dev/null` and where the diff has no names.
    pub new: Option<String>,
    /// Whether the diff has names, such that a missing one is `/dev/null`.
    pub is_named: bool,
    /// The permission bits of the new file, where the diff sets them.
    pub mode: Option<u32>,
    /// Whether the former name keeps the file.
    pub is_copy: bool,
    pub hunks: Vec<Hunk<'a>>,
}

/// A run of lines with its context.
#[derive(Clone, Debug, PartialEq)]
pub struct Hunk<'a> {
    /// The number of the hunk in its file, from 1.
    pub number: usize,
    /// The header's line.
    pub header: &'a str,
    /// The number of its first line in the former file, from 1. None where the header has none.
    pub old_start: Option<usize>,
    /// The number of lines of the former file and of the new one.
    pub counts: (usize, usize),
    /// The counts of the header, where the body has others.
    pub wrong_counts: Option<(usize, usize)>,
    body: &'a str,
}

/// The kind of a hunk's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    Context,
    Remove,
    Add,
}

/// A line of a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    pub tag: Tag,
    /// The text without the newline. A carriage return stays.
    pub text: &'a str,
    /// False where the diff says that no newline ends the line.
    pub newline: bool,
}

impl<'a> Hunk<'a> {
    pub fn lines(&self) -> impl Iterator<Item = Line<'a>> + use<'a> {
        let mut rest = self.body;
        std::iter::from_fn(move || {
            let line = take_line(&mut rest)?;
            let (tag, text) = tagged(line)?;
            let newline = !rest.starts_with('\\');
            if !newline {
                take_line(&mut rest);
            }
            Some(Line { tag, text, newline })
        })
    }

    /// The lines that the former file has.
    pub fn old_lines(&self) -> Vec<Line<'a>> {
        self.lines().filter(|line| line.tag != Tag::Add).collect()
    }

    /// The lines that the new file has.
    pub fn new_lines(&self) -> Vec<Line<'a>> {
        self.lines().filter(|line| line.tag != Tag::Remove).collect()
    }

    /// The header for a message.
    pub fn shown(&self) -> String {
        excerpt(self.header.trim_end(), SHOWN)
    }
}

/// Takes the next line without its newline.
fn take_line<'a>(rest: &mut &'a str) -> Option<&'a str> {
    if rest.is_empty() {
        return None;
    }
    let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
    *rest = behind;
    Some(line)
}

/// A line of a hunk's body. Editors strip the blank of an empty context line.
fn tagged(line: &str) -> Option<(Tag, &str)> {
    match line.as_bytes().first() {
        None | Some(b'\r') => Some((Tag::Context, line)),
        Some(b' ') => Some((Tag::Context, &line[1..])),
        Some(b'-') => Some((Tag::Remove, &line[1..])),
        Some(b'+') => Some((Tag::Add, &line[1..])),
        _ => None,
    }
}

/// Reads a diff of one or several files.
pub fn parse(diff: &str) -> Result<Vec<FilePatch<'_>>> {
    let mut parser = Parser { diff, at: 0, number: 0 };
    let mut files: Vec<FilePatch<'_>> = Vec::new();
    // The section of `diff --git` whose `---` and `+++` haven't come yet.
    let mut is_open = false;
    while let Some(line) = parser.line() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            files.push(git_names(names));
            is_open = true;
        } else if line.starts_with("--- ") && parser.peek(1).is_some_and(|next| next.starts_with("+++ ")) {
            let (old, new) = (name(&line[4..], "a/"), parser.peek(1).and_then(|next| name(&next[4..], "b/")));
            parser.skip();
            if !is_open {
                files.push(FilePatch::default());
            }
            is_open = false;
            if let Some(file) = files.last_mut() {
                (file.old, file.new, file.is_named) = (old, new, true);
            }
        } else if line.starts_with("@@@") {
            return Err(invalid("NOT_UNIFIED", parser.number + 1, "is the diff of a merge"));
        } else if line.starts_with("@@") {
            if files.is_empty() {
                files.push(FilePatch::default());
            }
            is_open = false;
            let number = files.last().map_or(0, |file| file.hunks.len()) + 1;
            let hunk = parser.hunk(number)?;
            if let Some(file) = files.last_mut() {
                file.hunks.push(hunk);
            }
            continue;
        } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            let message = "is a change of a binary file, of which the diff doesn't tell the bytes";
            return Err(invalid("BINARY_DIFF", parser.number + 1, message));
        } else if line.starts_with("*** Begin Patch") || line.starts_with("*** 1,") {
            return Err(invalid("NOT_UNIFIED", parser.number + 1, "begins a patch of another format"));
        } else if is_open && let Some(file) = files.last_mut() {
            extended(line, file, parser.number + 1)?;
        }
        parser.skip();
    }
    files.retain(|file| {
        !file.hunks.is_empty() || file.mode.is_some() || file.old != file.new || is_new_and_empty(file)
    });
    if files.is_empty() {
        let message =
            "there is no hunk in the diff; expected `--- PATH`, `+++ PATH`, `@@ -1,3 +1,4 @@` and lines";
        return Err(Problem::validation("NOT_A_DIFF", message));
    }
    if files.len() > MOST_FILES {
        let message =
            format!("the diff changes {} files; at most {MOST_FILES} are changed at once", files.len());
        return Err(Problem::validation("TOO_MANY_FILES", message));
    }
    Ok(files)
}

fn is_new_and_empty(file: &FilePatch<'_>) -> bool {
    file.is_named && (file.old.is_none() || file.new.is_none())
}

fn invalid(code: &str, number: usize, what: &str) -> Problem {
    Problem::validation(code, format!("line {number} of the diff {what}; expected a unified diff of text"))
        .remedy("Make it by `diff -u` or `git diff`, or write the whole file with file_write")
}

/// Reads a line of git between `diff --git` and the hunks.
fn extended(line: &str, file: &mut FilePatch<'_>, number: usize) -> Result<()> {
    let line = line.trim_end_matches('\r');
    let mode = |digits: &str| {
        let bits = u32::from_str_radix(digits, 8).ok();
        match bits.filter(|bits| bits & 0o170_000 == 0o100_000) {
            Some(bits) => Ok(Some(bits & 0o7777)),
            None => Err(invalid("NOT_A_REGULAR_FILE", number, "is of a symlink or a submodule")),
        }
    };
    if let Some(digits) = line.strip_prefix("new file mode ") {
        (file.mode, file.old, file.is_named) = (mode(digits)?, None, true);
    } else if let Some(digits) = line.strip_prefix("deleted file mode ") {
        mode(digits)?;
        (file.new, file.is_named) = (None, true);
    } else if let Some(digits) = line.strip_prefix("new mode ") {
        file.mode = mode(digits)?;
    } else if let Some(from) = line.strip_prefix("rename from ") {
        file.old = Some(unquoted(from));
    } else if let Some(to) = line.strip_prefix("rename to ") {
        file.new = Some(unquoted(to));
    } else if let Some(from) = line.strip_prefix("copy from ") {
        (file.old, file.is_copy) = (Some(unquoted(from)), true);
    } else if let Some(to) = line.strip_prefix("copy to ") {
        file.new = Some(unquoted(to));
    }
    Ok(())
}

/// The names in `diff --git a/X b/X`. They are used only where no other line names the file, and so are the same.
fn git_names<'a>(names: &str) -> FilePatch<'a> {
    let names = names.trim_end_matches('\r');
    let half = names.len() / 2;
    let same = names.is_char_boundary(half) && names.as_bytes().get(half) == Some(&b' ');
    let both = same.then(|| (name(&names[..half], "a/"), name(&names[half + 1..], "b/")));
    match both {
        Some((old, new)) if old == new => FilePatch { old, new, is_named: true, ..FilePatch::default() },
        _ => FilePatch::default(),
    }
}

/// The name in a `---` or `+++` line, without `a/` or `b/` and without the time after it.
fn name(text: &str, prefix: &str) -> Option<String> {
    let text = text.trim_end_matches('\r');
    let text = text.split_once('\t').map_or(text, |(name, _)| name).trim_end();
    if text == "/dev/null" {
        return None;
    }
    let name = unquoted(text);
    Some(name.strip_prefix(prefix).map(str::to_owned).unwrap_or(name))
}

/// A name without the quotes and escapes that git puts around unusual ones.
fn unquoted(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        return text.to_owned();
    };
    let (mut bytes, mut rest) = (Vec::new(), inner.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        let escaped = behind.first().filter(|_| *first == b'\\');
        let octal = behind.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let octal = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (escaped, octal) {
            (None, _) => bytes.push(*first),
            (Some(_), Some(byte)) => {
                bytes.push(byte);
                rest = &rest[3..];
            }
            (Some(letter), None) => {
                bytes.push(match letter {
                    b'n' => b'\n',
                    b't' => b'\t',
                    other => *other,
                });
                rest = &rest[1..];
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

struct Parser<'a> {
    diff: &'a str,
    /// The offset of the current line.
    at: usize,
    /// The number of lines before it.
    number: usize,
}

impl<'a> Parser<'a> {
    fn line(&self) -> Option<&'a str> {
        let mut rest = &self.diff[self.at..];
        take_line(&mut rest)
    }

    /// The line this many lines below the current one.
    fn peek(&self, below: usize) -> Option<&'a str> {
        let mut rest = &self.diff[self.at..];
        for _ in 0..below {
            take_line(&mut rest)?;
        }
        take_line(&mut rest)
    }

    fn skip(&mut self) {
        let rest = &self.diff[self.at..];
        self.at += rest.find('\n').map_or(rest.len(), |end| end + 1);
        self.number += 1;
    }

    /// Reads the hunk that begins at the current line, and leaves it.
    fn hunk(&mut self, number: usize) -> Result<Hunk<'a>> {
        let header = self.line().unwrap_or_default();
        let header_at = self.number + 1;
        let stated = numbers(header);
        if stated.is_none()
            && header.trim_end().bytes().any(|byte| byte.is_ascii_digit())
            && header.contains(" -")
        {
            return Err(invalid("INVALID_HUNK", header_at, "is no hunk's header such as `@@ -1,3 +1,4 @@`"));
        }
        self.skip();
        let begin = (self.at, self.number);
        let stated_counts = stated.map(|(_, old, new)| (old, new));
        let counted = stated_counts.and_then(|counts| self.counted(counts));
        let (range, counts) = match counted {
            Some(range) => (range, stated_counts.unwrap_or_default()),
            None => {
                (self.at, self.number) = begin;
                self.structural()?
            }
        };
        if counts == (0, 0) {
            return Err(invalid("INVALID_HUNK", header_at, "begins a hunk without lines"));
        }
        Ok(Hunk {
            number,
            header,
            old_start: stated.map(|(start, ..)| start),
            counts,
            wrong_counts: stated_counts.filter(|stated| *stated != counts),
            body: &self.diff[range],
        })
    }

    /// The range of the body, if it has as many lines as the header says.
    fn counted(&mut self, (mut old, mut new): (usize, usize)) -> Option<Range<usize>> {
        let begin = self.at;
        while old > 0 || new > 0 {
            let line = self.line()?;
            if line.starts_with('\\') {
                self.skip();
                continue;
            }
            match tagged(line)?.0 {
                Tag::Context => (old, new) = (old.checked_sub(1)?, new.checked_sub(1)?),
                Tag::Remove => old = old.checked_sub(1)?,
                Tag::Add => new = new.checked_sub(1)?,
            }
            self.skip();
        }
        if self.line().is_some_and(|line| line.starts_with('\\')) {
            self.skip();
        }
        let goes_on = self.line().is_some_and(|line| {
            line.starts_with(['+', '-', ' ']) && !self.is_header(line) && !matches!(line, "-- " | "--")
        });
        (!goes_on).then_some(begin..self.at)
    }

    /// The range of the body up to the next header, and its counts.
    fn structural(&mut self) -> Result<(Range<usize>, (usize, usize))> {
        let begin = self.at;
        let (mut end, mut old, mut new) = (begin, 0, 0);
        // Blank lines at the end belong to no hunk, unless something follows them.
        let mut blank = 0;
        while let Some(line) = self.line() {
            if self.is_header(line) || line.starts_with("@@") || matches!(line, "-- ") {
                break;
            }
            if line.trim_end_matches('\r').is_empty() {
                blank += 1;
                self.skip();
                continue;
            }
            match tagged(line) {
                Some((tag, _)) => {
                    (old, new) = (old + blank, new + blank);
                    blank = 0;
                    old += usize::from(tag != Tag::Add);
                    new += usize::from(tag != Tag::Remove);
                }
                None if line.starts_with('\\') => {}
                None if line.starts_with("```") => break,
                None => {
                    let what = format!(
                        "({:?}) is no line of a hunk: each begins with ` `, `+` or `-`",
                        excerpt(line, SHOWN)
                    );
                    return Err(invalid("INVALID_HUNK", self.number + 1, &what));
                }
            }
            self.skip();
            end = self.at;
        }
        Ok((begin..end, (old, new)))
    }

    /// Whether the current line begins another file.
    fn is_header(&self, line: &str) -> bool {
        line.starts_with("diff --git ")
            || line.starts_with("diff -")
            || line.starts_with("Index: ")
            || line.starts_with("Only in ")
            || (line.starts_with("--- ") && self.peek(1).is_some_and(|next| next.starts_with("+++ ")))
    }
}

/// The first line of the former file and both counts in `@@ -1,3 +1,4 @@`. A count that is left out is 1.
fn numbers(header: &str) -> Option<(usize, usize, usize)> {
    let (old, rest) = header.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let pair = |text: &str| -> Option<(usize, usize)> {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        let number = |text: &str| text.parse::<u32>().ok().map(|number| number as usize);
        Some((number(start)?, number(count)?))
    };
    let ((start, old), (_, new)) = (pair(old)?, pair(new)?);
    Some((start, old, new))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(diff: &str) -> FilePatch<'_> {
        let mut files = parse(diff).unwrap();
        assert_eq!(files.len(), 1, "{files:?}");
        files.remove(0)
    }

    #[test]
    fn names_are_without_prefix_time_and_quotes() {
        for (header, old, new) in [
            ("--- a/etc/x\n+++ b/etc/x\n", Some("etc/x"), Some("etc/x")),
            ("--- /etc/x\t2026-01-01 00:00:00.000 +0000\n+++ /etc/x\t2026\n", Some("/etc/x"), Some("/etc/x")),
            ("--- /dev/null\n+++ b/etc/x\n", None, Some("etc/x")),
            ("--- a/etc/x\r\n+++ /dev/null\r\n", Some("etc/x"), None),
            (
                "--- \"a/etc/\\303\\244 \\\"\"\n+++ \"b/etc/\\303\\244 \\\"\"\n",
                Some("etc/ä \""),
                Some("etc/ä \""),
            ),
            ("diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n", Some("x"), Some("x")),
        ] {
            let diff = format!("{header}@@ -1 +1 @@\n-a\n+b\n");
            let file = one(&diff);
            assert_eq!((file.old.as_deref(), file.new.as_deref()), (old, new), "{header}");
            assert!(file.is_named);
        }
        assert!(!one("@@ -1 +1 @@\n-a\n+b\n").is_named);
    }

    #[test]
    fn git_says_modes_renames_copies_and_empty_files() {
        let file = one("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n");
        assert_eq!((file.old.as_deref(), file.new.as_deref(), file.is_copy), (Some("x"), Some("y"), false));
        let file = one("diff --git a/x b/y\ncopy from x\ncopy to y\n");
        assert!(file.is_copy);
        let file = one("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n");
        assert_eq!((file.mode, file.old.as_deref(), file.hunks.len()), (Some(0o755), Some("x"), 0));
        let file = one("diff --git a/x b/x\nnew file mode 100600\nindex 000..e69\n");
        assert_eq!((file.mode, file.old, file.new.as_deref()), (Some(0o600), None, Some("x")));
        let file = one("diff --git a/x b/x\ndeleted file mode 100644\nindex e69..000\n");
        assert_eq!((file.old.as_deref(), file.new), (Some("x"), None));
    }

    #[test]
    fn counts_that_fit_end_a_hunk_and_others_are_told() {
        // A removed line `-- a` looks like a header.
        let file = one("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a\n+++ b\n c\n");
        let lines: Vec<_> = file.hunks[0].lines().map(|line| (line.tag, line.text)).collect();
        assert_eq!(lines, [(Tag::Remove, "-- a"), (Tag::Add, "++ b"), (Tag::Context, "c")]);
        for (counts, body, expected, wrong) in [
            ("-1,3 +1,3", " a\n-b\n+c\n d\n", (3, 3), None),
            ("-1,9 +1,9", " a\n-b\n+c\n d\n", (3, 3), Some((9, 9))),
            ("-1 +1", " a\n-b\n+c\n d\n", (3, 3), Some((1, 1))),
            ("-1,3 +1,3", " a\n-b\n+c\n\n", (3, 3), None),
            ("-1,2 +1,2", " a\n-b\n+c\n\n\n", (2, 2), None),
            ("-1,7 +1,2", " a\n\n b\n-b\n+c\n\n\n", (4, 4), Some((7, 2))),
        ] {
            let diff = format!("--- x\n+++ x\n@@ {counts} @@ section\n{body}");
            let hunk = &one(&diff).hunks[0];
            assert_eq!(
                (hunk.counts, hunk.wrong_counts, hunk.old_start),
                (expected, wrong, Some(1)),
                "{counts}"
            );
        }
        assert_eq!(one("--- x\n+++ x\n@@ @@\n-a\n+b").hunks[0].old_start, None);
        let diff =
            "--- x\n+++ x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n";
        let newlines: Vec<_> = one(diff).hunks[0].lines().map(|line| line.newline).collect();
        assert_eq!(newlines, [false, false]);
    }

    #[test]
    fn files_and_hunks_follow_each_other_with_text_between_them() {
        let diff = "Index: x\n=====\n--- x\n+++ x\n@@ -1 +1 @@\n-a\n+b\n@@ -9,0 +9 @@\n+c\n\
                    Only in y: z\n--- y\n+++ y\n@@ -1,2 +1 @@\n-a\n b\n-- \n2.39.5\n";
        let files = parse(diff).unwrap();
        let found: Vec<_> = files.iter().map(|file| (file.new.as_deref(), file.hunks.len())).collect();
        assert_eq!(found, [(Some("x"), 2), (Some("y"), 1)]);
        assert_eq!(files[0].hunks[1].number, 2);
    }

    #[test]
    fn what_is_no_unified_diff_is_refused() {
        for (diff, code) in [
            ("", "NOT_A_DIFF"),
            ("just text\n", "NOT_A_DIFF"),
            ("--- x\n+++ x\n", "NOT_A_DIFF"),
            ("*** Begin Patch\n*** Update File: x\n", "NOT_UNIFIED"),
            ("--- x\n+++ x\n@@@ -1 -1 +1 @@@\n", "NOT_UNIFIED"),
            ("--- x\n+++ x\n@@ -1,x +1 @@\n-a\n", "INVALID_HUNK"),
            ("--- x\n+++ x\n@@ -99999999999 +1 @@\n-a\n", "INVALID_HUNK"),
            ("--- x\n+++ x\n@@ -1 +1 @@\n", "INVALID_HUNK"),
            ("--- x\n+++ x\n@@ -1,3 +1,3 @@\n a\nb\n-c\n+d\n", "INVALID_HUNK"),
            ("diff --git a/x b/x\nGIT binary patch\nliteral 3\n", "BINARY_DIFF"),
            ("Binary files x and y differ\n", "BINARY_DIFF"),
            (
                "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/etc\n",
                "NOT_A_REGULAR_FILE",
            ),
        ] {
            assert_eq!(parse(diff).unwrap_err().code, code, "{diff}");
        }
        let many = "--- x\n+++ x\n@@ -1 +1 @@\n-a\n+b\n".repeat(MOST_FILES + 1);
        assert_eq!(parse(&many).unwrap_err().code, "TOO_MANY_FILES");
    }

    /// A line of something like a diff.
    const LINE: &str = concat!(
        "(@@ -[0-9]{1,3},[0-9] \\+[0-9]{1,3},[0-9] @@|--- [a-c]|\\+\\+\\+ [a-c]|[ +\\-\\\\]?[a-c\r]{0,2}",
        "|diff --git a/x b/x|rename from x|.{0,9})"
    );

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_engine_fail(
            diff in proptest::collection::vec(LINE, 0..20),
            file in "([a-c]{0,2}\r?\n){0,9}[a-c]?",
        ) {
            let lines = crate::lines::Lines::new(file.as_bytes()).unwrap();
            for file in parse(&diff.join("\n")).unwrap_or_default() {
                match crate::patch::apply::apply(&lines, &file.hunks) {
                    Ok(patched) => proptest::prop_assert!(patched.contents.len() < 10_000),
                    Err(missed) => missed.iter().for_each(|missed| drop(crate::patch::conflict::told("/x", &lines, missed))),
                }
            }
        }
    }
}
