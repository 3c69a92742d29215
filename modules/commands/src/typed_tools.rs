//! The tools that do the same as a command line. They check, show and undo what a command only does. The first row of the
//! table whose words are all in the line names the tool.

use std::sync::LazyLock;

use linux_sysadmin_sdk::Pipeline;
use serde::Deserialize;

#[derive(Deserialize)]
struct TypedTool {
    words: Vec<String>,
    tool: String,
    also: String,
}

static TOOLS: LazyLock<Vec<TypedTool>> =
    LazyLock::new(|| serde_json::from_str(include_str!("typed_tools.json")).unwrap_or_default());

/// A note for each command that a tool does as well, without repetitions.
pub(crate) fn notes(pipelines: &[Pipeline]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for command in pipelines.iter().flat_map(|pipeline| &pipeline.commands) {
        let says = |word: &String| *word == command.program || command.args.contains(word);
        let found = TOOLS.iter().find(|known| known.words.iter().all(says));
        if let Some(TypedTool { tool, also, .. }) = found {
            let note = format!("{tool} does this as well: it {also}");
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_read() {
        assert!(TOOLS.len() > 10);
    }
}
