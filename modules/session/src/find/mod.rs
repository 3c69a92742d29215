//! `sysadmin_find_tools`: finds the tools that fit a need, and adds them to the client's list.

mod search;

use linux_sysadmin_sdk::prelude::*;

use crate::host::{self, ListedTool};

/// The number of tools that a need finds at most. Each takes room in the context of a model.
const MOST: usize = 8;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// What is to be done or found out, in a few words
    #[schemars(length(min = 1, max = 300))]
    need: String,
}

/// The answer.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Found {
    /// The tools that fit, the best first.
    tools: Vec<FoundTool>,
}

#[derive(Debug, PartialEq, Serialize)]
struct FoundTool {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    summary: String,
}

/// The tool's function.
pub(crate) fn find_tools(args: Args, _: &Context) -> Result<Noted<Found>> {
    let all = host::tools();
    let found = search::find(&args.need, &all, MOST);
    if found.is_empty() {
        return Ok(Noted { data: Found { tools: Vec::new() }, notes: vec![nothing(&all)] });
    }
    let tools: Vec<FoundTool> = found
        .into_iter()
        .map(|tool| FoundTool { name: tool.name.clone(), summary: tool.summary.clone() })
        .collect();
    let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
    let notes = match host::list_tools(&names).len() {
        0 => Vec::new(),
        added => vec![format!("{added} of them are new in your list of tools")],
    };
    Ok(Noted { data: Found { tools }, notes })
}

/// The note where no tool fits, with the words that could be used instead.
fn nothing(all: &[ListedTool]) -> String {
    let mut domains: Vec<&str> = all.iter().map(|tool| tool.domain.as_str()).collect();
    domains.sort_unstable();
    domains.dedup();
    format!("No tool fits these words. There are tools about {}.", domains.join(", "))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use linux_sysadmin_sdk::Place;
    use linux_sysadmin_sdk::testkit::FakeTarget;
    use serde_json::{Value, json};

    use crate::module;

    fn call(need: &str) -> (Value, Vec<String>) {
        let (data, reply) =
            FakeTarget::new().call(&module(), "sysadmin_find_tools", json!({"need": need})).unwrap();
        (data, reply.notes)
    }

    // The tools are those of the stand-in for the host, which lists `look_closely` already.
    #[test]
    fn the_best_tool_comes_first_and_what_is_new_in_the_list_is_counted() {
        let (data, notes) = call("lamps");
        assert_eq!(
            data,
            json!({"tools": [
                {"name": "lamp_paint", "summary": "Paint a lamp"},
                {"name": "lamp_switch"},
            ]})
        );
        assert_eq!(call("paint a lamp").0["tools"].as_array().unwrap().len(), 1, "the other fits much worse");
        assert_eq!(notes, ["2 of them are new in your list of tools"]);
        let (data, notes) = call("closely");
        assert_eq!(data["tools"][0]["name"], "look_closely");
        assert!(notes.is_empty(), "it was in the list before: {notes:?}");
    }

    #[test]
    fn a_need_that_no_tool_fits_is_answered_with_the_domains() {
        for need in ["zeppelin", "what is it?", "…"] {
            let (data, notes) = call(need);
            assert_eq!(data, json!({"tools": []}), "{need}");
            assert_eq!(notes, ["No tool fits these words. There are tools about eyes, lamps."], "{need}");
        }
    }

    #[test]
    fn the_tool_takes_nothing_of_a_target() {
        let description = module().description();
        let tool = description.tools.iter().find(|tool| tool.name == "sysadmin_find_tools").unwrap();
        assert_eq!(tool.place, Place::Controller);
        let is_first = description.hints.iter().any(|hint| hint.tool == tool.name && hint.first);
        assert!(is_first, "a short list has it");
        assert!(description.capabilities.commands.is_empty() && description.capabilities.paths.is_empty());
    }
}
