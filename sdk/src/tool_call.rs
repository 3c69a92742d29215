//! Calls of other modules' read-only tools, see [`crate::Context::call_tools`].

use serde_json::Value;

/// One call of another module's tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The tool's name. No older name is taken.
    pub tool: String,
    /// The arguments, as a JSON object. A listing takes `limit` and `filter` as well; `host` is never given, because the tool
    /// works on this call's target.
    pub arguments: Value,
}

impl ToolCall {
    /// Makes a call.
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self { tool: tool.into(), arguments }
    }

    #[cfg(target_family = "wasm")]
    pub(crate) fn in_contract(&self) -> crate::bindings::sysadmin::module::tool_calls::ToolCall {
        let (tool, arguments) = (self.tool.clone(), self.arguments.to_string());
        crate::bindings::sysadmin::module::tool_calls::ToolCall { tool, arguments }
    }
}

/// Reads an envelope as the host hands it over.
#[cfg(target_family = "wasm")]
pub(crate) fn envelope(text: &str) -> crate::Result<Value> {
    serde_json::from_str(text).map_err(|error| {
        let message = format!("the host's answer is no JSON: {error}");
        crate::Problem::new("INVALID_JSON", crate::Category::Internal, message)
    })
}
