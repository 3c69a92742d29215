//! Workflows as prompts, such as `troubleshoot`. The plugin for Claude Code has them as skills of the same names, and the text
//! of both is the same file.

use std::sync::LazyLock;

use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage, Role,
};
use serde::Deserialize;
use serde_json::Value;

use host_text::visible::{excerpt, visible};

/// The skills of the plugin. A test compares them with its folder.
const SKILLS: [&str; 6] = [
    include_str!("../../../plugin/skills/back-up/SKILL.md"),
    include_str!("../../../plugin/skills/check-machine/SKILL.md"),
    include_str!("../../../plugin/skills/free-disk-space/SKILL.md"),
    include_str!("../../../plugin/skills/review-security/SKILL.md"),
    include_str!("../../../plugin/skills/troubleshoot/SKILL.md"),
    include_str!("../../../plugin/skills/update-packages/SKILL.md"),
];

/// The one argument of every prompt.
const ABOUT: &str = "about";
/// The place of that argument in the text, as Claude Code has it in skills.
const PLACE: &str = "$ARGUMENTS";
/// The text in that place where nothing is said.
const NOTHING: &str = "nothing further was said";
/// The number of characters that the argument may have.
const MAX_ABOUT: usize = 4000;

/// A workflow.
#[derive(Debug)]
struct Workflow {
    head: Head,
    text: &'static str,
}

/// The head of a skill's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Head {
    name: String,
    description: String,
    argument_hint: String,
}

static WORKFLOWS: LazyLock<Vec<Workflow>> =
    LazyLock::new(|| SKILLS.into_iter().filter_map(workflow).collect());

/// Reads a skill's file: YAML between two lines of dashes, and the text. A test reads all of them.
fn workflow(skill: &'static str) -> Option<Workflow> {
    let (head, text) = skill.strip_prefix("---\n")?.split_once("\n---\n")?;
    Some(Workflow { head: serde_yaml::from_str(head).ok()?, text: text.trim_start() })
}

/// Lists the prompts.
pub(super) fn list() -> ListPromptsResult {
    let prompts = WORKFLOWS.iter().map(|Workflow { head, .. }| {
        let about = PromptArgument::new(ABOUT).with_description(&head.argument_hint).with_required(false);
        Prompt::new(&head.name, Some(&head.description), Some(vec![about]))
    });
    ListPromptsResult::with_all_items(prompts.collect())
}

/// The text of a prompt, with what the client's user says.
pub(super) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let invalid = |message: String| ErrorData::invalid_params(message, None);
    let Some(workflow) = WORKFLOWS.iter().find(|workflow| workflow.head.name == request.name) else {
        let names: Vec<&str> = WORKFLOWS.iter().map(|workflow| workflow.head.name.as_str()).collect();
        let name = excerpt(&request.name, 100);
        return Err(invalid(format!("there is no prompt {name}: expected one of {}", names.join(", "))));
    };
    let mut about = None;
    for (name, value) in request.arguments.iter().flatten() {
        match value {
            Value::String(said) if name == ABOUT && said.chars().count() <= MAX_ABOUT => about = Some(said),
            _ => {
                let name = excerpt(name, 100);
                let expected = format!("expected {ABOUT} alone, a text of at most {MAX_ABOUT} characters");
                return Err(invalid(format!("the argument {name} of {}: {expected}", request.name)));
            }
        }
    }
    let about = about.map(|said| visible(said.trim())).filter(|said| !said.is_empty());
    let text = workflow.text.replace(PLACE, about.as_deref().unwrap_or(NOTHING));
    let messages = vec![PromptMessage::new_text(Role::User, text)];
    Ok(GetPromptResult::new(messages).with_description(&workflow.head.description))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use rmcp::model::ContentBlock;
    use serde_json::json;

    use super::*;

    fn request(name: &str, arguments: Value) -> GetPromptRequestParams {
        let request = GetPromptRequestParams::new(name);
        match arguments {
            Value::Object(arguments) => request.with_arguments(arguments),
            _ => request,
        }
    }

    fn text(result: &GetPromptResult) -> &str {
        let ContentBlock::Text(text) = &result.messages[0].content else { panic!("no text") };
        &text.text
    }

    #[test]
    fn every_skill_of_the_plugin_is_a_prompt_of_its_name() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin/skills");
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let skills: BTreeSet<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        let listed = list().prompts;
        let prompts: BTreeSet<_> = listed.iter().map(|prompt| prompt.name.clone()).collect();
        assert_eq!(prompts, skills);
        for prompt in &listed {
            let got = get(&request(&prompt.name, Value::Null)).unwrap();
            assert!(text(&got).contains(NOTHING) && !text(&got).contains(PLACE), "{}", prompt.name);
            assert_eq!(got.description, prompt.description);
        }
    }

    #[test]
    fn what_is_said_stands_in_the_text_and_nothing_hidden_does() {
        let got = get(&request("troubleshoot", json!({"about": " nginx on web1\u{1b}[2J "}))).unwrap();
        assert!(text(&got).contains("nginx on web1\\u{1b}[2J\n"), "{}", text(&got));
        let got = get(&request("troubleshoot", json!({"about": "  "}))).unwrap();
        assert!(text(&got).contains(NOTHING));
    }

    #[test]
    fn an_unknown_prompt_or_argument_is_refused_with_what_was_expected() {
        for (name, arguments, expected) in [
            ("nonsense", json!({}), "expected one of back-up, check-machine"),
            ("", json!({}), "expected one of"),
            ("troubleshoot", json!({"service": "nginx"}), "expected about alone"),
            ("troubleshoot", json!({"about": 7}), "a text of at most"),
            ("troubleshoot", json!({"about": "x".repeat(MAX_ABOUT + 1)}), "a text of at most"),
        ] {
            let error = get(&request(name, arguments)).unwrap_err();
            assert!(error.message.contains(expected), "{name}: {}", error.message);
        }
    }
}
