//! Every input gets a clear answer, and the server goes on.

use linux_sysadmin_tests::{Client, Home, host, modules, probe, processes_with};
use serde_json::{Value, json};

async fn open(home: &Home) -> Client {
    Client::open(home, &modules(), "2025-06-18").await.0
}

/// Asserts that the server still answers.
async fn lives_on(mut client: Client) {
    assert_eq!(client.envelope("perf_uptime", json!({})).await["status"], "success");
    let (status, _) = client.close().await;
    assert_eq!(status.code(), Some(0), "the end of input is no error");
}

#[tokio::test]
async fn an_unknown_tool_is_a_protocol_error_that_names_what_was_meant() {
    let home = Home::new();
    let mut client = open(&home).await;
    let error = client.call("perf_uptim", json!({})).await;
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().expect("a message").contains("perf_uptime"), "{error}");
    assert_eq!(error["data"]["error_code"], "UNKNOWN_TOOL");
    let error = client.call(&"x\u{1b}".repeat(100_000), json!({})).await;
    assert_eq!(error["data"]["error_code"], "UNKNOWN_TOOL");
    assert!(error.to_string().len() < 2000);
    lives_on(client).await;
}

#[tokio::test]
async fn wrong_arguments_are_all_named_at_once() {
    let home = Home::new();
    let mut client = open(&home).await;
    for (tool, arguments, words) in [
        ("svc_status", json!({}), &["service", "required"][..]),
        (
            "svc_status",
            json!({"service": true, "colour": "red", "size": 1}),
            &["service", "string", "colour", "size"],
        ),
        ("perf_uptime", json!({"a": 1, "b": 2}), &["'a'", "'b'"]),
        (
            "perf_top_processes",
            json!({"limit": "many", "sort": "size"}),
            &["limit", "integer", "sort", "memory"],
        ),
        ("cron_next_runs", json!({"count": 1.5}), &["count", "expression"]),
    ] {
        let envelope = client.envelope(tool, arguments.clone()).await;
        assert_eq!(envelope["error_code"], "INVALID_ARGUMENTS", "{envelope}");
        assert_eq!(envelope["error_category"], "validation");
        assert!(!envelope["remediation"].as_array().expect("a list").is_empty());
        let message = envelope["message"].as_str().expect("a message");
        for word in words {
            assert!(message.contains(word), "{word} is not in: {message}");
        }
    }
    lives_on(client).await;
}

#[tokio::test]
async fn arguments_that_are_no_object_are_refused() {
    let home = Home::new();
    let mut client = open(&home).await;
    for arguments in [json!([1]), json!("x"), json!(5)] {
        let answer =
            client.request("tools/call", json!({"name": "perf_uptime", "arguments": arguments})).await;
        assert!(answer["error"]["code"].is_i64(), "{answer}");
    }
    lives_on(client).await;
}

#[tokio::test]
async fn a_ten_megabyte_argument_is_refused_by_its_size() {
    let home = Home::new();
    let mut client = open(&home).await;
    let envelope = client.envelope("cron_validate", json!({"expression": "x".repeat(10 << 20)})).await;
    assert_eq!(envelope["error_code"], "ARGUMENTS_TOO_LARGE");
    assert!(envelope.to_string().len() < 1000);
    lives_on(client).await;
}

#[tokio::test]
async fn a_line_of_twenty_megabytes_is_answered_and_passed_over() {
    let home = Home::new();
    let mut client = open(&home).await;
    let mut line = vec![b'x'; 20 << 20];
    line.push(b'\n');
    client.send_raw(&line).await;
    let answer = client.receive_where(|message| message.get("error").is_some()).await;
    assert_eq!(answer["error"]["code"], -32600);
    lives_on(client).await;
}

#[tokio::test]
async fn malformed_json_is_answered_and_the_session_goes_on() {
    let home = Home::new();
    let mut client = open(&home).await;
    for (line, code) in [
        (&b"{\"jsonrpc\": \n"[..], -32700),
        (b"\xff\xff\xff\n", -32700),
        (b"{\"id\": 99}\n", -32600),
        (b"[]\n", -32600),
    ] {
        client.send_raw(line).await;
        let answer = client.receive_where(|message| message.get("error").is_some()).await;
        assert_eq!(answer["error"]["code"], code);
    }
    lives_on(client).await;
}

#[tokio::test]
async fn malformed_json_and_notifications_before_the_first_request_are_survived() {
    let home = Home::new();
    let mut client = Client::start(&home, &modules());
    client.send_raw(b"nonsense\n").await;
    let early: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    client.send_raw(early).await;
    // Neither a ping nor a request without its metadata begins a session.
    assert!(client.request("ping", json!({})).await.get("result").is_some());
    client.send_raw(early).await;
    assert!(client.request("tools/list", json!({})).await.get("error").is_some());
    client.send_raw(early).await;
    client.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}\n").await;
    client.initialize("2025-06-18").await;
    lives_on(client).await;
}

#[tokio::test]
async fn bad_unit_names_are_refused_before_anything_runs() {
    let Some(host) = host("bad_unit_names_are_refused_before_anything_runs", "debian1") else { return };
    let mut client = Client::start_command(host.command(&["/opt/linux-sysadmin/linux-sysadmin", "serve"]));
    client.initialize("2025-06-18").await;
    for name in
        ["-Hhost", "--host=x", "a\0b", "a\nb", "x; id", "$(id)", "../x", "", "*", "a b", &"x".repeat(300)]
    {
        let envelope = client.envelope("svc_status", json!({"service": name})).await;
        assert_eq!(envelope["error_code"], "INVALID_UNIT_NAME", "{name:?}: {envelope}");
        assert_eq!(envelope["error_category"], "validation");
        assert_eq!(envelope["command_executed"], Value::Null, "{name:?}");
    }
    let envelope = client.envelope("svc_status", json!({"service": "ngin"})).await;
    assert_eq!(envelope["error_code"], "UNIT_NOT_FOUND", "{envelope}");
    assert_eq!(envelope["error_category"], "not_found");
    assert!(envelope["remediation"].to_string().contains("nginx"), "{envelope}");
    assert_eq!(client.envelope("svc_status", json!({"service": "nginx"})).await["status"], "success");
}

#[tokio::test]
async fn where_process_one_is_not_systemd_the_tools_are_listed_and_say_so() {
    if std::fs::read_to_string("/proc/1/comm").expect("/proc").trim() == "systemd" {
        return linux_sysadmin_tests::skipped(
            "where_process_one_is_not_systemd_the_tools_are_listed_and_say_so",
            "this machine has systemd",
        );
    }
    let home = Home::new();
    let mut client = open(&home).await;
    let listed = client.request("tools/list", json!({})).await.to_string();
    for tool in ["svc_list", "svc_status", "timer_list"] {
        assert!(listed.contains(&format!("\"{tool}\"")), "{tool} is listed");
        let arguments = if tool == "svc_status" { json!({"service": "ssh"}) } else { json!({}) };
        let envelope = client.envelope(tool, arguments).await;
        assert_eq!(envelope["error_code"], "TARGET_NOT_SERVED");
        assert_eq!(envelope["error_category"], "state");
    }
    lives_on(client).await;
}

#[tokio::test]
async fn a_client_that_closes_in_the_middle_of_a_call_leaves_nothing_behind() {
    let home = Home::new();
    let (mut client, _) = Client::open(&home, &probe(), "2025-06-18").await;
    let mark = "86399.81";
    client.ask("tools/call", json!({"name": "probe_sleep", "arguments": {"seconds": mark}})).await;
    until(|| processes_with(mark) > 0).await;
    let (status, _) = client.close().await;
    assert_eq!(status.code(), Some(0));
    until(|| processes_with(mark) == 0).await;
}

#[tokio::test]
async fn a_call_that_reports_progress_is_answered_after_the_end_of_input() {
    let home = Home::new();
    let (mut client, _) = Client::open(&home, &probe(), "2025-06-18").await;
    let params =
        json!({"name": "probe_wait", "arguments": {"seconds": 9}, "_meta": {"progressToken": "waiting"}});
    let id = client.ask("tools/call", params).await;
    client.receive_where(|message| message["method"] == "notifications/progress").await;
    client.close_input();
    let answer = client.answer(id).await;
    assert_eq!(answer["result"]["structuredContent"]["error_code"], "CANCELLED", "{answer}");
    let (status, _) = client.ended().await;
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn a_cancelled_call_ends_with_its_whole_process_group_and_the_server_lives_on() {
    let home = Home::new();
    let (mut client, _) = Client::open(&home, &probe(), "2025-06-18").await;
    let mark = "86399.82";
    let id = client.ask("tools/call", json!({"name": "probe_sleep", "arguments": {"seconds": mark}})).await;
    until(|| processes_with(mark) > 0).await;
    let params = json!({"requestId": id, "reason": "enough"});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})).await;
    until(|| processes_with(mark) == 0).await;
    assert_eq!(client.envelope("probe_hostile_text", json!({})).await["status"], "success");
}

#[tokio::test]
async fn a_server_that_is_asked_to_end_in_the_middle_of_a_call_leaves_nothing_behind() {
    for (signal, mark) in [("TERM", "86399.84"), ("INT", "86399.85"), ("HUP", "86399.86")] {
        let home = Home::new();
        let (mut client, _) = Client::open(&home, &probe(), "2025-06-18").await;
        client.ask("tools/call", json!({"name": "probe_sleep", "arguments": {"seconds": mark}})).await;
        until(|| processes_with(mark) > 0).await;
        let pid = client.pid().to_string();
        assert!(
            std::process::Command::new("kill").args(["-s", signal, &pid]).status().expect("kill").success()
        );
        let (status, _) = client.ended().await;
        assert_eq!(status.code(), Some(0), "{signal}");
        until(|| processes_with(mark) == 0).await;
    }
}

#[tokio::test]
async fn a_log_that_nobody_reads_stops_nothing() {
    let home = Home::new();
    let (mut client, _) = Client::open(&home, &probe(), "2025-06-18").await;
    // The client leaves stderr unread, and each refusal is logged.
    let argv = ["nothing".to_owned(), "x".repeat(100_000)];
    for _ in 0..600 {
        let envelope = client.envelope("probe_run", json!({"argv": argv, "root": false})).await;
        assert_eq!(envelope["error_code"], "CAPABILITY_DENIED");
    }
    let (status, _) = client.close().await;
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn half_a_message_at_the_end_of_input_is_no_error() {
    let home = Home::new();
    let mut client = open(&home).await;
    client.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"par").await;
    let (status, _) = client.close().await;
    assert_eq!(status.code(), Some(0));
}

/// Waits until a condition holds that has no event, such as the start or end of another process.
async fn until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), waiting).await.expect("in time");
}
