//! Made-up files and edits, for tests that hold the engine of patches beside diff(1) and patch(1). The module's own tests and
//! those on booted hosts take them from here.

use proptest::prelude::*;

/// A line of a made-up file. Few words make lines repeat, as `}` does in a configuration.
pub fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z]{1,8} = [0-9]{1,4}",
        1 => Just("}".to_owned()),
        1 => Just(String::new()),
        1 => Just("-- x".to_owned()),
        1 => Just("++ x".to_owned()),
    ]
}

/// An edit of a list of lines: where, how many are removed, and what is put there.
pub type Edit = (prop::sample::Index, usize, Vec<String>);

pub fn edits() -> impl Strategy<Value = Vec<Edit>> {
    prop::collection::vec(
        (any::<prop::sample::Index>(), 0..4usize, prop::collection::vec(line(), 0..4)),
        1..6,
    )
}

/// The lines after the edits.
pub fn edited(lines: &[String], edits: &[Edit]) -> Vec<String> {
    let mut lines = lines.to_vec();
    for (at, removed, added) in edits {
        let at = at.index(lines.len() + 1);
        let end = (at + removed).min(lines.len());
        lines.splice(at..end, added.iter().cloned());
    }
    lines
}

/// The text of a file with these lines.
pub fn text(lines: &[String], end: &str, newline: bool) -> String {
    let text = lines.join(end);
    if newline && !lines.is_empty() { text + end } else { text }
}

/// A file in three versions.
#[derive(Clone, Debug)]
pub struct Versions {
    /// The version that the diff is made from.
    pub old: String,
    /// The version that the diff leads to.
    pub new: String,
    /// The version that is there when the diff is applied, because somebody else has changed the file meanwhile.
    pub now: String,
}

pub fn versions() -> impl Strategy<Value = Versions> {
    (prop::collection::vec(line(), 4..40), edits(), edits()).prop_map(|(lines, edits, others)| Versions {
        old: text(&lines, "\n", true),
        new: text(&edited(&lines, &edits), "\n", true),
        now: text(&edited(&lines, &others), "\n", true),
    })
}

/// The usual number of lines of context on each side of a change.
const CONTEXT: usize = 3;

/// The same diff of one file for patch(1), which heeds all of the context then. A hunk with less context on one side than on
/// the other is made at an end of a file for patch: it looks there, and then, with less and less of the context, for the
/// nearest place. Here, the lines of context that one side has more than the other are replaced by themselves. A hunk whose
/// change is at the very end of its file stays as it is.
pub fn with_all_context(diff: &str) -> String {
    let (mut text, mut hunk, mut is_header) = (String::new(), Vec::new(), true);
    for line in diff.split_inclusive('\n') {
        if line.starts_with("@@") {
            is_header = false;
            text += &even(&std::mem::take(&mut hunk));
            text += line;
        } else if is_header {
            text += line;
        } else if let (true, Some(before)) = (line.starts_with('\\'), hunk.last_mut()) {
            // It says that the line before it has no newline.
            *before += line;
        } else {
            hunk.push(line.to_owned());
        }
    }
    text + &even(&hunk)
}

/// The lines of a hunk, with as much context on both sides.
fn even(hunk: &[String]) -> String {
    let is_context = |line: &&String| line.starts_with(' ');
    let before = hunk.iter().take_while(is_context).count();
    let after = hunk.iter().rev().take_while(is_context).count();
    let (least, most) = (before.min(after), before.max(after));
    let kept = match least == 0 && most >= CONTEXT {
        true => most,
        false => least,
    };
    let is_surplus =
        |at: usize| (kept..before).contains(&at) || (kept..after).contains(&(hunk.len() - 1 - at));
    let replaced = |line: &String| format!("-{0}+{0}", &line[1..]);
    hunk.iter()
        .enumerate()
        .map(|(at, line)| if is_surplus(at) { replaced(line) } else { line.clone() })
        .collect()
}
