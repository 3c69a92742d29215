//! The tools that only look, and the arguments that they are measured with. `tests/expected.yaml` in a module's folder has
//! them: those of `measured`, or else the harmless ones of the tests.

use super::{Server, say};
use crate::workspace;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A tool that only looks and that answers here.
pub(super) struct Tool {
    pub(super) name: String,
    arguments: Value,
}

impl Tool {
    /// The parameters of `tools/call`.
    pub(super) fn call(&self) -> Value {
        json!({"name": self.name, "arguments": self.arguments})
    }
}

/// The part of a module's file that is read here.
#[derive(Deserialize)]
struct Expected {
    tools: Vec<ExpectedTool>,
}

#[derive(Deserialize)]
struct ExpectedTool {
    name: String,
    harmless: Option<Value>,
    measured: Option<Value>,
}

/// The tools that this server answers with success, called once each. The others are named with the reason.
pub(super) fn looking(server: &mut Server, mut examples: Map<String, Value>) -> Result<Vec<Tool>> {
    server.initialize()?;
    let listed = server.request("tools/list", json!({}))?;
    let mut tools = Vec::new();
    for tool in listed["tools"].as_array().context("no tools")? {
        let name = tool["name"].as_str().context("a tool without a name")?.to_owned();
        let arguments = examples.remove(&name).unwrap_or_else(|| json!({}));
        if tool["annotations"]["readOnlyHint"] != true {
            continue;
        }
        let tool = Tool { name, arguments };
        let answer = &server.request("tools/call", tool.call())?["structuredContent"];
        match answer["status"].as_str() {
            Some("success") => tools.push(tool),
            _ => say(&format!(
                "not measured: {} answers {}: {}",
                tool.name, answer["error_code"], answer["message"]
            )),
        }
    }
    if let Some((name, _)) = examples.iter().next() {
        bail!("an expected.yaml is about {name}, and there is no such tool");
    }
    Ok(tools)
}

/// The arguments for the tools of all modules, by the tools' names.
pub(super) fn of_modules() -> Result<Map<String, Value>> {
    let mut all = Map::new();
    for module in workspace::modules()? {
        let path = workspace::root().join("modules").join(module).join("tests/expected.yaml");
        if path.exists() {
            let text = std::fs::read_to_string(&path)?;
            let expected: Expected =
                serde_yaml::from_str(&text).with_context(|| path.display().to_string())?;
            let tools = expected.tools.into_iter();
            all.extend(tools.filter_map(|tool| Some((tool.name, tool.measured.or(tool.harmless)?))));
        }
    }
    Ok(all)
}
