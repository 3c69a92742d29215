//! Each protocol generation lists and calls every tool, through the real binary over stdio.

use linux_sysadmin_tests::{Client, Home, harmless, harmless_error, modules, warmed};
use serde_json::{Value, json};

const GENERATIONS: [&str; 3] = ["2024-11-05", "2025-06-18", "2026-07-28"];

/// In the order of their names.
const CHANGING: [&str; 34] = [
    "cron_add",
    "cron_remove",
    "group_create",
    "group_delete",
    "job_cancel",
    "perms_set",
    "pkg_install",
    "pkg_purge",
    "pkg_remove",
    "pkg_rollback",
    "pkg_update",
    "ssh_authorized_keys",
    "ssh_config_add",
    "ssh_connect",
    "ssh_copy_id",
    "ssh_disconnect",
    "ssh_key_generate",
    "sudoers_modify",
    "svc_config_check",
    "svc_create_unit",
    "svc_disable",
    "svc_edit_unit",
    "svc_enable",
    "svc_reload",
    "svc_restart",
    "svc_start",
    "svc_stop",
    "timer_create",
    "timer_modify",
    "user_create",
    "user_delete",
    "user_lock",
    "user_modify",
    "user_unlock",
];

async fn tools(client: &mut Client) -> Vec<Value> {
    let listed = client.request("tools/list", json!({})).await;
    listed["result"]["tools"].as_array().cloned().unwrap_or_else(|| panic!("no tools in {listed}"))
}

fn name(tool: &Value) -> &str {
    tool["name"].as_str().expect("a name")
}

fn is_read_only(tool: &Value) -> bool {
    tool["annotations"]["readOnlyHint"].as_bool().expect("a hint")
}

fn checked(tool: &str, envelope: &Value) {
    for field in ["status", "tool", "target_host", "duration_ms", "command_executed"] {
        assert!(envelope.get(field).is_some(), "{tool}: no {field} in {envelope}");
    }
    assert_eq!(envelope["tool"], tool);
    assert!(envelope["duration_ms"].is_u64(), "{tool}: {}", envelope["duration_ms"]);
}

#[tokio::test]
async fn every_generation_lists_every_tool_and_calls_those_that_only_look() {
    let home = Home::new();
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
        // This is the developer's own machine: nothing on it is even asked to change.
        let looking: Vec<&str> = tools.iter().filter(|tool| is_read_only(tool)).map(name).collect();
        assert!(looking.len() >= 13 && looking.len() < tools.len(), "{looking:?}");
        for tool in looking {
            let envelope = client.envelope(tool, harmless(tool)).await;
            checked(tool, &envelope);
            // What a service wrote may be in files alone.
            let takes_systemd = tool.starts_with("svc_") && tool != "svc_logs" || tool.starts_with("timer_");
            if !is_systemd && takes_systemd {
                assert_eq!(envelope["error_code"], "TARGET_NOT_SERVED", "{envelope}");
                let message = envelope["message"].as_str().expect("a message");
                assert!(message.contains("init_system to be systemd"), "{message}");
            } else {
                let code = envelope["error_code"].as_str().unwrap_or_default();
                assert_eq!(code, harmless_error(tool), "{version}: {envelope}");
            }
        }
        lists.push(tools.iter().map(|tool| name(tool).to_owned()).collect::<Vec<_>>());
        assert!(client.close().await.0.success());
    }
    assert!(lists.windows(2).all(|pair| pair[0] == pair[1]), "every generation has the same tools");
}

#[tokio::test]
async fn on_a_systemd_machine_every_tool_answers_in_every_generation() {
    let Some(host) = warmed("on_a_systemd_machine_every_tool_answers_in_every_generation", "debian1") else {
        return;
    };
    for version in GENERATIONS {
        let mut client =
            Client::start_command(host.command(&["/opt/linux-sysadmin/linux-sysadmin", "serve"]));
        client.initialize(version).await;
        for tool in tools(&mut client).await {
            let name = name(&tool);
            let envelope = client.envelope(name, harmless(name)).await;
            checked(name, &envelope);
            let code = envelope["error_code"].as_str().unwrap_or_default();
            assert_eq!(code, harmless_error(name), "{version}: {envelope}");
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
    let mut seen = Vec::new();
    for tool in tools(&mut client).await {
        let name = name(&tool);
        let looks = !CHANGING.contains(&name);
        let hints = &tool["annotations"];
        assert_eq!(hints["readOnlyHint"], looks, "{tool}");
        // A hint that means something only of a tool that changes something.
        assert_eq!(hints["destructiveHint"].is_boolean(), !looks, "{tool}");
        assert_eq!(hints["openWorldHint"], false, "{tool}");
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
        assert_eq!(tool["inputSchema"]["additionalProperties"], false);
        let is_listing = [
            "svc_list",
            "timer_list",
            "cron_list",
            "perf_top_processes",
            "perf_disk_io",
            "perf_network_io",
            "job_list",
            "ssh_config_list",
            "ssh_key_list",
            "pkg_check_updates",
            "pkg_history",
            "pkg_list_installed",
            "pkg_search",
            "group_list",
            "perms_check",
            "user_list",
        ]
        .contains(&name);
        let properties = &tool["inputSchema"]["properties"];
        // Of lines of logs, by the tool itself.
        let is_of_logs = ["log_query", "log_search", "svc_logs"].contains(&name);
        assert_eq!(properties.get("limit").is_some(), is_listing || is_of_logs, "{tool}");
        assert_eq!(properties.get("filter").is_some(), is_listing, "{tool}");
    }
    seen.sort();
    assert_eq!(seen, CHANGING);
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
