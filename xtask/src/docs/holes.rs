//! Writes the page about the types of holes from the tables that the tests hold the validators against.

use super::wrap::wrap;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// The file of the tables.
const TABLES: &str = "host/capability/src/hole/types.yaml";

/// A type of holes.
#[derive(Deserialize)]
struct Hole {
    /// The text between the angle brackets of a pattern.
    hole: String,
    /// What a value is.
    what: String,
    /// Values that the hole takes.
    accepts: Vec<String>,
    /// Values that it doesn't take.
    refuses: Vec<String>,
}

/// The page.
pub(super) fn page(root: &Path) -> Result<String> {
    let text = fs::read_to_string(root.join(TABLES)).with_context(|| format!("cannot read {TABLES}"))?;
    let holes: Vec<Hole> = serde_yaml::from_str(&text).with_context(|| format!("{TABLES} is wrong"))?;
    let mut page = HEAD.replace("TABLES", TABLES);
    for hole in holes {
        page.push_str(&format!("\n## `<{}>`\n\n", hole.hole));
        page.push_str(&wrap(&hole.what, "", ""));
        page.push('\n');
        page.push_str(&wrap(&listed(&hole.accepts), "- accepts ", "  "));
        page.push_str(&wrap(&listed(&hole.refuses), "- refuses ", "  "));
    }
    Ok(page)
}

const HEAD: &str = "\
# Types of holes

A hole `<type>` in a [pattern](authoring.md#patterns) stands for a part of an argument, and its type says which values the host
lets through. The tests hold the host against these very values: `cargo xtask docs` writes this page from
`TABLES`.

Three rules hold for every type but `arg`: no value is empty, none begins with `-` (a `size` may carry a sign), and none
holds a character that cannot be seen, as control characters and those that change the direction of text. A value has at most
4096 bytes.

A value that the hole refuses makes the command match no grant, and the call ends with `CAPABILITY_DENIED`. So a tool checks
what a caller gives before it makes a command of it, and says what it expected.

Characters that could not be seen here are written as `\\u{202e}`, and a value with a blank at its end stands in quotes.
";

fn listed(values: &[String]) -> String {
    values.iter().map(|value| format!("`{}`", shown(value))).collect::<Vec<_>>().join(", ")
}

/// The value with escapes for what a reader couldn't see.
fn shown(value: &str) -> String {
    let mut shown = String::new();
    for character in value.chars() {
        match character {
            ' '..='~' => shown.push(character),
            character if character.is_alphanumeric() => shown.push(character),
            character => shown.extend(character.escape_unicode()),
        }
    }
    if shown.is_empty() || shown.starts_with(' ') || shown.ends_with(' ') {
        return format!("\"{shown}\"");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_every_character_of_a_value() {
        for (value, expected) in [
            ("nginx", "nginx"),
            ("", "\"\""),
            (" a", "\" a\""),
            ("a b", "a b"),
            ("a\n", "a\\u{a}"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("ü", "ü"),
        ] {
            assert_eq!(shown(value), expected);
        }
    }
}
