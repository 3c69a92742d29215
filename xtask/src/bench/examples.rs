//! The tools that only look, the arguments that they are measured with, and what one would type instead.
//! `tests/expected.yaml` in a module's folder has them: the arguments are those of `measured`, or else the harmless ones of
//! the tests.

use super::{Server, say};
use crate::workspace;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The examples of all modules, by the tools' names.
pub(super) type Examples = BTreeMap<String, Example>;

/// A call that is measured.
#[derive(Default, Deserialize, Serialize)]
pub(super) struct Example {
    pub(super) arguments: Option<Value>,
    /// The shell command lines that an administrator would type for the same.
    #[serde(default)]
    pub(super) instead: Vec<String>,
}

/// A tool that only looks and that answers here.
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) instead: Vec<String>,
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
    #[serde(default)]
    instead: Vec<String>,
}

/// The tools that this server answers with success, called once each. The others are named with the reason.
pub(super) fn looking(server: &mut Server, mut examples: Examples) -> Result<Vec<Tool>> {
    server.initialize()?;
    let listed = server.request("tools/list", json!({}))?;
    let mut tools = Vec::new();
    for tool in listed["tools"].as_array().context("no tools")? {
        let name = tool["name"].as_str().context("a tool without a name")?.to_owned();
        let Example { arguments, instead } = examples.remove(&name).unwrap_or_default();
        if tool["annotations"]["readOnlyHint"] != true {
            continue;
        }
        let tool = Tool { name, instead, arguments: arguments.unwrap_or_else(|| json!({})) };
        let answer = &server.request("tools/call", tool.call())?["structuredContent"];
        match answer["status"].as_str() {
            Some("success") => tools.push(tool),
            _ => say(&format!(
                "not measured: {} answers {}: {}",
                tool.name, answer["error_code"], answer["message"]
            )),
        }
    }
    if let Some(name) = examples.keys().next() {
        bail!("an expected.yaml is about {name}, and there is no such tool");
    }
    Ok(tools)
}

/// Reads the files of all modules.
pub(super) fn of_modules() -> Result<Examples> {
    let mut all = Examples::new();
    for module in workspace::modules()? {
        let path = workspace::root().join("modules").join(module).join("tests/expected.yaml");
        if path.exists() {
            let text = std::fs::read_to_string(&path)?;
            let expected: Expected =
                serde_yaml::from_str(&text).with_context(|| path.display().to_string())?;
            all.extend(expected.tools.into_iter().map(|tool| {
                let arguments = tool.measured.or(tool.harmless);
                (tool.name, Example { arguments, instead: tool.instead })
            }));
        }
    }
    Ok(all)
}
