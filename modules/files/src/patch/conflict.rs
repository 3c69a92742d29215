//! A hunk that doesn't fit, for the reader who has to correct the diff: why, and the file's real lines there.

use super::apply::Missed;
use super::locate::Miss;
use crate::lines::Lines;
use linux_sysadmin_sdk::text::excerpt;

/// The most lines of the file that one conflict shows.
const MOST_LINES: usize = 12;
/// The number of lines around those of the hunk.
const AROUND: usize = 1;
/// The number of characters of a line.
const LONGEST: usize = 200;

/// The reason in words, with the lines of the file.
pub fn told(path: &str, file: &Lines<'_>, missed: &Missed<'_, '_>) -> String {
    let hunk = missed.hunk;
    let name = format!("{path}, hunk {} ({})", hunk.number, hunk.shown());
    let old = hunk.old_lines();
    match &missed.miss {
        Miss::Different { at, differs, is_hidden } => {
            let line = at + differs;
            let why = if *is_hidden {
                format!(
                    "line {} holds a secret: it can't be changed, and fits context only as it is shown here",
                    line + 1
                )
            } else if line >= file.len() {
                format!(
                    "the file ends at line {}, where the diff goes on with {}",
                    file.len(),
                    quoted(&old, *differs)
                )
            } else {
                format!("line {} isn't {}", line + 1, quoted(&old, *differs))
            };
            format!("{name}: {why}. The file has\n{}", numbered(file, *at, old.len().max(differs + 2)))
        }
        Miss::Ambiguous(places) => {
            let lines: Vec<String> = places.iter().map(|at| (at + 1).to_string()).collect();
            format!(
                "{name}: its lines are at lines {}, and not where the hunk says; give it more context or its right line",
                lines.join(", ")
            )
        }
        Miss::Done(at) => format!("{name}: the file has the new lines already, at line {}", at + 1),
        Miss::NoContext => {
            format!(
                "{name}: it only adds lines, and no line of context says where; give it a line before or after them"
            )
        }
        Miss::OutOfOrder(at) => {
            format!(
                "{name}: its lines are at line {}, above the hunk before it; hunks come in the file's order",
                at + 1
            )
        }
        Miss::NotAtEnd { is_beginning, at } => {
            let (end, side) =
                if *is_beginning { ("begins with them", "before") } else { ("ends with them", "after") };
            format!(
                "{name}: its lines are at line {}, and it has no context {side} its change, as where a file {end}; give it a \
                 line of context there. The file has\n{}",
                at + 1,
                numbered(file, *at, old.len())
            )
        }
        Miss::TooMany => {
            format!("{name}: too many hunks aren't at their lines; make the diff from the file as it is now")
        }
    }
}

fn quoted(old: &[super::parse::Line<'_>], at: usize) -> String {
    let text = old.get(at).map_or("", |line| line.text.trim_end_matches('\r'));
    format!("{:?}", excerpt(text, LONGEST))
}

/// Lines of the file with their numbers, and one more on each side.
fn numbered(file: &Lines<'_>, at: usize, count: usize) -> String {
    let from = at.saturating_sub(AROUND);
    let to = (at + count + AROUND).min(file.len()).min(from + MOST_LINES);
    let lines: Vec<String> =
        (from..to).map(|line| format!("{}\t{}", line + 1, excerpt(&file.shown(line), LONGEST))).collect();
    if lines.is_empty() { "no lines".to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::{apply::apply, parse::parse};

    #[test]
    fn a_conflict_shows_the_files_own_lines() {
        let text = "server {\n  listen 80;\n  name a;\n}\n";
        for (hunk, expected) in [
            (
                "@@ -2,2 +2,2 @@\n   listen 80;\n-  name b;\n+  name c;\n",
                "/x, hunk 1 (@@ -2,2 +2,2 @@): line 3 isn't \"  name b;\". The file has\n1\tserver {\n2\t  listen 80;\n3\t  name a;\n4\t}",
            ),
            (
                "@@ -4,2 +4,2 @@\n }\n-end\n+c\n",
                "/x, hunk 1 (@@ -4,2 +4,2 @@): the file ends at line 4, where the diff goes on with \"end\". The file has\n3\t  name a;\n4\t}",
            ),
            (
                "@@ -9,0 +9 @@\n+c\n",
                "/x, hunk 1 (@@ -9,0 +9 @@): it only adds lines, and no line of context says where; give it a line before or after them",
            ),
            ("@@ -9 +9,2 @@\n server {\n+  listen 80;\n", "MOVED"),
            ("@@ -9,2 +9,3 @@\n   listen 80;\n   name a;\n+  name b;\n", "MOVED"),
            ("@@ -2,3 +2,4 @@\n   listen 80;\n   name a;\n }\n+end\n", "MOVED"),
            (
                "@@ -1,3 +1,4 @@\n server {\n   listen 80;\n   name a;\n+  name b;\n",
                "/x, hunk 1 (@@ -1,3 +1,4 @@): its lines are at line 1, and it has no context after its change, as where a file ends with them; give it a line of context there. The file has\n1\tserver {\n2\t  listen 80;\n3\t  name a;\n4\t}",
            ),
            (
                "@@ -1,3 +1,4 @@\n+# top\n   listen 80;\n   name a;\n }\n",
                "/x, hunk 1 (@@ -1,3 +1,4 @@): its lines are at line 2, and it has no context before its change, as where a file begins with them; give it a line of context there. The file has\n1\tserver {\n2\t  listen 80;\n3\t  name a;\n4\t}",
            ),
            ("@@ -7,3 +7,4 @@\n+# top\n   listen 80;\n   name a;\n }\n", "MOVED"),
        ] {
            let lines = Lines::new(text.as_bytes()).unwrap();
            let files = parse(hunk).unwrap();
            match apply(&lines, &files[0].hunks) {
                Err(missed) => assert_eq!(told("/x", &lines, &missed[0]), expected),
                Ok(_) => assert_eq!(expected, "MOVED"),
            }
        }
    }
}
