//! A module for the tests: it calls other modules' tools as it is told, and tells what came of each call.
#![forbid(unsafe_code)]

use linux_sysadmin_sdk::ToolCall;
use linux_sysadmin_sdk::prelude::*;
use serde_json::{Value, json};

/// The tools that it asks for. Some of them change something, work elsewhere, or are in no module.
const TOOLS: [&str; 15] = [
    "cron_add",
    "cron_next_runs",
    "cron_validate",
    "escape_calls",
    "escape_memory",
    "escape_reply",
    "job_list",
    "no_such_tool",
    "parrot_read",
    "perf_top_processes",
    "pkg_list_installed",
    "probe_hostile_text",
    "probe_run",
    "probe_sleep",
    "relay_call",
];

#[derive(Deserialize, JsonSchema)]
struct Calls {
    calls: Vec<Call>,
    /// The number of times that all of them are made, one time after the other.
    #[serde(default = "once")]
    rounds: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Call {
    tool: String,
    /// The arguments as JSON, word for word.
    arguments: String,
    /// The number of equal calls.
    #[serde(default = "once")]
    times: usize,
}

fn once() -> usize {
    1
}

/// What came of each call of the last round: the envelope, or the code and the message of the problem.
#[derive(Serialize)]
struct Told {
    results: Vec<Value>,
}

fn told(args: Calls, call_all: impl Fn(Vec<(String, String)>) -> Vec<Result<Value>>) -> Result<Single<Told>> {
    let equal = |call: &Call| vec![(call.tool.clone(), call.arguments.clone()); call.times];
    let calls: Vec<_> = args.calls.iter().flat_map(equal).collect();
    let mut results = Vec::new();
    for _ in 0..args.rounds {
        results = call_all(calls.clone());
    }
    let told = results.into_iter().map(|result| match result {
        Ok(envelope) => json!({"envelope": envelope}),
        Err(problem) => json!({"code": problem.code, "message": problem.message}),
    });
    Ok(Single(Told { results: told.collect() }))
}

/// Calls the tools as a module does that uses the sdk.
fn by_sdk(args: Calls, cx: &Context) -> Result<Single<Told>> {
    told(args, |calls| {
        let parsed = |arguments: String| serde_json::from_str(&arguments).unwrap_or_default();
        let calls = calls.into_iter().map(|(tool, arguments)| ToolCall::new(tool, parsed(arguments)));
        cx.call_tools(&calls.collect::<Vec<_>>())
    })
}

/// Calls the tools by the contract alone, with arguments that the sdk wouldn't hand over.
#[cfg(target_family = "wasm")]
fn by_contract(args: Calls, _: &Context) -> Result<Single<Told>> {
    use linux_sysadmin_sdk::bindings::sysadmin::module::tool_calls;

    told(args, |calls| {
        let calls = calls.into_iter().map(|(tool, arguments)| tool_calls::ToolCall { tool, arguments });
        let results = tool_calls::call_all(&calls.collect::<Vec<_>>());
        results.into_iter().map(|result| Ok(serde_json::from_str(&result?).unwrap_or_default())).collect()
    })
}

#[cfg(not(target_family = "wasm"))]
use by_sdk as by_contract;

/// The module.
pub fn module() -> Module {
    let module = Module::new("caller", "1.0.0", "caller", "For the tests")
        .tool(Tool::new("caller_look", "", by_sdk))
        .tool(Tool::new("caller_raw", "", by_contract))
        .tool(Tool::new("caller_change", "", by_contract).risk(Risk::Low));
    TOOLS.iter().fold(module, |module, tool| module.calls_tool(tool))
}

linux_sysadmin_sdk::export!(module);
