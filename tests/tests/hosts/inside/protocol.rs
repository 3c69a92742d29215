//! Each protocol generation lists every tool, and each tool is called in one of them, through the real binary over stdio.

use std::collections::BTreeSet;

use linux_sysadmin_tests::{Client, Home, expected, expected_tools, modules, shipped, warmed};
use serde_json::{Value, json};

const GENERATIONS: [&str; 3] = ["2024-11-05", "2025-06-18", "2026-07-28"];

async fn tools(client: &mut Client) -> Vec<Value> {
    let listed = client.request("tools/list", json!({})).await;
    listed["result"]["tools"].as_array().cloned().unwrap_or_else(|| panic!("no tools in {listed}"))
}

/// The tools that are called in this generation. A generation changes how a call is sent, not what the tool does.
fn called_in<'a>(version: &str, tools: impl Iterator<Item = &'a Value>) -> impl Iterator<Item = &'a Value> {
    let turn = GENERATIONS.iter().position(|generation| *generation == version).expect("a generation");
    tools.skip(turn).step_by(GENERATIONS.len())
}

fn name(tool: &Value) -> &str {
    tool["name"].as_str().expect("a name")
}

fn is_read_only(tool: &Value) -> bool {
    tool["annotations"]["readOnlyHint"].as_bool().expect("a hint")
}

/// The modules that serve only targets of which this holds, by what the program says of each.
fn of_targets(home: &Home, condition: &str) -> BTreeSet<&'static str> {
    let is_one = |module: &&str| {
        let output = home.run(&modules(), &["modules", "inspect", module]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).contains(condition)
    };
    let found: BTreeSet<_> = shipped().iter().map(|module| module.name.as_str()).filter(is_one).collect();
    assert!(!found.is_empty() && found.len() < shipped().len(), "{condition}: {found:?}");
    found
}

/// Whether a tool comes from these modules alone.
fn is_of(modules: &BTreeSet<&str>, tool: &str) -> bool {
    let mut having = shipped().iter().filter(|module| module.tools.iter().any(|name| name == tool));
    having.all(|module| modules.contains(module.name.as_str()))
}

/// Whether a tool has an argument of this name. The host adds `filter` to tools that answer with a list, and to no others.
fn takes(tool: &Value, argument: &str) -> bool {
    tool["inputSchema"]["properties"].get(argument).is_some()
}

/// Whether an answer is a list that the host has cut and counted.
fn is_listing(envelope: &Value) -> bool {
    envelope["data"].is_array() && envelope["total"].is_u64() && envelope["returned"].is_u64()
}

fn checked(tool: &str, envelope: &Value) {
    for field in ["status", "tool", "target_host", "duration_ms", "command_executed"] {
        assert!(envelope.get(field).is_some(), "{tool}: no {field} in {envelope}");
    }
    assert_eq!(envelope["tool"], tool);
    assert!(envelope["duration_ms"].is_u64(), "{tool}: {}", envelope["duration_ms"]);
}

/// Asserts that a tool takes a filter where its answer is a list, and nowhere else. A call that fails tells it of no tool that
/// takes one.
#[track_caller]
fn is_filtered_where_it_lists(tool: &Value, fails: &str, envelope: &Value) {
    let (takes, lists) = (takes(tool, "filter"), is_listing(envelope));
    assert!(takes == lists || takes && !fails.is_empty(), "{} {envelope}", name(tool));
}

/// Asserts that the plan of a tool which is said to lose nothing takes back each of its commands. Files that a plan writes are
/// kept by the host.
#[track_caller]
fn keeps_what_it_is_said_to_keep(tool: &Value, envelope: &Value) {
    if tool["annotations"]["destructiveHint"] == false {
        for step in envelope["data"]["steps"].as_array().into_iter().flatten() {
            assert!(step.get("run").is_none() || step.get("undo").is_some(), "{}: {envelope}", name(tool));
        }
    }
}

#[tokio::test]
async fn every_generation_lists_every_tool_and_those_that_only_look_answer() {
    let home = Home::new();
    let of_systemd = of_targets(&home, "init_system is systemd");
    let of_firewalls = of_targets(&home, "firewall_backend is ");
    let is_systemd = std::fs::read_to_string("/proc/1/comm").expect("/proc").trim() == "systemd";
    let mut lists = Vec::new();
    for version in GENERATIONS {
        let (mut client, opened) = Client::open(&home, &modules(), version).await;
        if version < "2026-07-28" {
            assert_eq!(opened["result"]["protocolVersion"], version);
            assert_eq!(opened["result"]["serverInfo"]["name"], "linux-sysadmin-mcp");
        } else {
            let supported = opened["result"]["supportedVersions"].as_array().expect("versions");
            assert!(GENERATIONS.iter().all(|version| supported.contains(&json!(version))), "{supported:?}");
        }
        let tools = tools(&mut client).await;
        // This is the developer's own machine, so no tool that changes something is called, not even for a dry run.
        let looking: Vec<&Value> = tools.iter().filter(|tool| is_read_only(tool)).collect();
        assert!(looking.len() >= 13 && looking.len() < tools.len(), "{looking:?}");
        for listed in called_in(version, looking.into_iter()) {
            let tool = name(listed);
            let expected = expected(tool);
            let envelope = client.envelope(tool, expected.harmless.clone()).await;
            checked(tool, &envelope);
            // This machine may have no firewall.
            let lacks_firewall = is_of(&of_firewalls, tool) && envelope["error_code"] == "TARGET_NOT_SERVED";
            if !is_systemd && is_of(&of_systemd, tool) || lacks_firewall {
                assert_eq!(envelope["error_code"], "TARGET_NOT_SERVED", "{envelope}");
                let message = envelope["message"].as_str().expect("a message");
                let lacking = if lacks_firewall { "here it is none" } else { "init_system to be systemd" };
                assert!(message.contains(lacking), "{message}");
            } else {
                let code = envelope["error_code"].as_str().unwrap_or_default();
                // This machine may lack the programs that a bare one lacks.
                let lacking = expected.fails_on_bare.as_deref().filter(|lacking| *lacking == code);
                let expected = lacking.unwrap_or(&expected.fails);
                assert_eq!(code, expected, "{version}: {envelope}");
                is_filtered_where_it_lists(listed, expected, &envelope);
            }
        }
        lists.push(tools.iter().map(|tool| name(tool).to_owned()).collect::<Vec<_>>());
        assert!(client.close().await.0.success());
    }
    assert!(lists.windows(2).all(|pair| pair[0] == pair[1]), "every generation has the same tools");
}

#[tokio::test]
async fn on_a_systemd_machine_every_tool_answers() {
    let Some(host) = warmed("on_a_systemd_machine_every_tool_answers", "debian1") else {
        return;
    };
    for version in GENERATIONS {
        let mut client =
            Client::start_command(host.command(&["/opt/linux-sysadmin/linux-sysadmin", "serve"]));
        client.initialize(version).await;
        let tools = tools(&mut client).await;
        for tool in called_in(version, tools.iter()) {
            let name = name(tool);
            let expected = expected(name);
            let envelope = client.envelope(name, expected.harmless.clone()).await;
            checked(name, &envelope);
            let code = envelope["error_code"].as_str().unwrap_or_default();
            assert_eq!(code, expected.fails, "{version}: {envelope}");
            is_filtered_where_it_lists(tool, &expected.fails, &envelope);
            keeps_what_it_is_said_to_keep(tool, &envelope);
        }
        assert!(client.close().await.0.success());
    }
}

#[tokio::test]
async fn the_reference_client_of_the_newest_generation_is_served() {
    use rmcp::model::{CallToolRequestParams, ProtocolVersion};
    use rmcp::transport::TokioChildProcess;
    use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt};

    #[derive(Clone, Default)]
    struct Quiet;
    impl ClientHandler for Quiet {}

    let home = Home::new();
    let command = tokio::process::Command::from(home.command(&modules(), &["serve"]));
    let transport = TokioChildProcess::new(command).expect("the server starts");
    let mode = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let client = Quiet.serve_with_lifecycle(transport, mode).await.expect("a session");
    let tools = client.list_all_tools().await.expect("tools");
    assert!(tools.iter().any(|tool| tool.name == "perf_uptime"));
    let result = client.call_tool(CallToolRequestParams::new("perf_uptime")).await.expect("an answer");
    let envelope = serde_json::to_value(&result).expect("JSON")["structuredContent"].clone();
    assert_eq!(envelope["status"], "success", "{envelope}");
    client.cancel().await.expect("the end");
}

#[tokio::test]
async fn hints_and_common_arguments_come_from_the_host() {
    let home = Home::new();
    let (mut client, _) = Client::open(&home, &modules(), "2025-06-18").await;
    let mut seen = BTreeSet::new();
    for tool in tools(&mut client).await {
        let name = name(&tool);
        let looks = !expected(name).changes();
        let hints = &tool["annotations"];
        assert_eq!(hints["readOnlyHint"], looks, "{tool}");
        // This hint has a meaning only for a tool that changes something.
        assert_eq!(hints["destructiveHint"].is_boolean(), !looks, "{tool}");
        assert!(hints.get("openWorldHint").is_none(), "{tool}");
        let dry_run = tool["inputSchema"]["properties"].get("dry_run");
        assert_eq!(
            dry_run.map(|property| &property["type"]),
            (!looks).then_some(&json!("boolean")),
            "{tool}"
        );
        let required = tool["inputSchema"]["required"].as_array().cloned().unwrap_or_default();
        assert!(!required.contains(&json!("dry_run")), "{tool}");
        seen.extend((!looks).then(|| name.to_owned()));
        assert_eq!(tool["inputSchema"]["type"], "object");
        // The host refuses what it doesn't know, and understands more names than the schema has.
        assert!(tool["inputSchema"].get("additionalProperties").is_none(), "{tool}");
        // Listings take both from the host. Another tool may have a limit of its own, with words about it.
        let of_host =
            |name: &str, words: &str| tool["inputSchema"]["properties"][name]["description"] == words;
        assert_eq!(of_host("limit", "Most items"), takes(&tool, "filter"), "{tool}");
        assert_eq!(of_host("filter", "Text in items"), takes(&tool, "filter"), "{tool}");
    }
    let changing = expected_tools().filter(|(_, tool)| tool.changes()).map(|(_, tool)| tool.name.clone());
    assert_eq!(seen, changing.collect());
}

#[tokio::test]
async fn a_listing_is_cut_and_filtered_by_the_host_and_says_so() {
    let home = Home::new();
    let (mut client, _) = Client::open(&home, &modules(), "2025-06-18").await;
    let all = client.envelope("perf_top_processes", json!({"sample_ms": 0, "limit": 10000})).await;
    assert_eq!(all["truncated"], false);
    assert_eq!(all["total"], all["returned"]);
    let few = client.envelope("perf_top_processes", json!({"sample_ms": 0, "limit": 1})).await;
    assert_eq!((few["returned"].as_u64(), few["truncated"].as_bool()), (Some(1), Some(true)));
    assert_eq!(few["data"].as_array().map(Vec::len), Some(1));
    let own = std::process::id();
    let found =
        client.envelope("perf_top_processes", json!({"sample_ms": 0, "filter": own.to_string()})).await;
    assert_eq!(found["filter"], own.to_string());
    let holds = |process: &Value| process["pid"] == own;
    assert!(found["data"].as_array().expect("a list").iter().any(holds), "{found}");
}
