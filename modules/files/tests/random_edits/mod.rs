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
