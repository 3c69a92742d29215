//! A module for the tests: another module calls its tool, which calls a tool in turn.
#![forbid(unsafe_code)]

use linux_sysadmin_sdk::ToolCall;
use linux_sysadmin_sdk::prelude::*;

/// The outcome of the call: the code of its problem, or nothing.
#[derive(Serialize)]
struct Told {
    code: Option<String>,
}

fn call(_: NoArgs, cx: &Context) -> Result<Single<Told>> {
    let mut results = cx.call_tools(&[ToolCall::new("probe_hostile_text", serde_json::json!({}))]);
    Ok(Single(Told { code: results.remove(0).err().map(|problem| problem.code) }))
}

/// The module.
pub fn module() -> Module {
    Module::new("relay", "1.0.0", "relay", "For the tests").calls_tool("probe_hostile_text").tool(Tool::new(
        "relay_call",
        "",
        call,
    ))
}

linux_sysadmin_sdk::export!(module);
