//! Modules that call other modules' tools: what is granted answers as it answers a client, everything else is refused for
//! that one call, and each call is on record with the module that made it.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use linux_sysadmin_tests::{Client, Home, component, guest, modules, processes_with, until_gone};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const VERSION: &str = "2025-06-18";
const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

/// A home where an operator has added the module that calls, and modules that it calls.
static HOME: LazyLock<Home> = LazyLock::new(|| {
    let home = Home::at(Path::new(env!("CARGO_TARGET_TMPDIR")).join("tool-calls"));
    added(&home);
    home
});

fn added(home: &Home) {
    for name in ["caller", "relay", "probe", "escape"] {
        let output = home.add(&component(name));
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A home of one test, so that its records are those of the test.
fn fresh() -> Home {
    let home = Home::new();
    added(&home);
    home
}

fn configured(yaml: &str) -> Home {
    let home = Home::new();
    fs::create_dir_all(home.config().parent().expect("a parent")).expect("a directory");
    fs::write(home.config(), yaml).expect("written");
    added(&home);
    home
}

async fn open(home: &Home) -> Client {
    Client::open(home, &modules(), VERSION).await.0
}

/// The arguments of a tool of the caller that makes these calls, each with its arguments as text.
fn making(calls: &[(&str, &str)]) -> Value {
    let call = |(tool, arguments): &(&str, &str)| json!({"tool": tool, "arguments": arguments});
    json!({"calls": calls.iter().map(call).collect::<Vec<_>>()})
}

/// Has a tool of the caller make these calls; gives what came of each.
async fn results(client: &mut Client, tool: &str, arguments: Value) -> Vec<Value> {
    let envelope = client.envelope(tool, arguments).await;
    assert_eq!(envelope["status"], "success", "{envelope}");
    assert_eq!(envelope["command_executed"], Value::Null, "the calls run their own commands: {envelope}");
    envelope["data"]["results"].as_array().unwrap_or_else(|| panic!("{envelope}")).clone()
}

const VALID: (&str, &str) = ("cron_validate", r#"{"expression": "@daily"}"#);

#[tokio::test]
async fn a_granted_tool_answers_as_it_answers_a_client() {
    let mut client = open(&HOME).await;
    let unit = format!("{TOKEN}.service");
    let calls = [
        ("cron_validate", json!({"expression": "*/5 1-3 * * mon"})),
        ("probe_hostile_text", json!({})),
        ("probe_run", json!({"argv": ["echo", "--", unit], "root": false})),
    ];
    let texts = calls.each_ref().map(|(tool, arguments)| (*tool, arguments.to_string()));
    let texts = texts.each_ref().map(|(tool, arguments)| (*tool, arguments.as_str()));
    for tool in ["caller_look", "caller_raw"] {
        let results = results(&mut client, tool, making(&texts)).await;
        assert_eq!(results.len(), calls.len());
        for ((name, arguments), result) in calls.iter().zip(results) {
            let mut expected = client.envelope(name, arguments.clone()).await;
            let members = expected.as_object_mut().expect("an object");
            members.retain(|member, value| member != "duration_ms" && !value.is_null());
            let mut told = result["envelope"].clone();
            told.as_object_mut().unwrap_or_else(|| panic!("{result}")).remove("duration_ms");
            assert_eq!(told, expected, "{name}");
            assert_eq!(told["status"], "success", "{told}");
            assert!(!told.to_string().contains(TOKEN), "{told}");
        }
    }
}

#[tokio::test]
async fn a_listing_has_its_usual_limit_and_takes_one_of_the_module() {
    let home = configured("output:\n  default_limit: 3\n");
    let mut client = open(&home).await;
    let listing = "perf_top_processes";
    let calls = making(&[
        (listing, r#"{"sample_ms": 0}"#),
        (listing, r#"{"sample_ms": 0, "limit": 1}"#),
        (listing, r#"{"sample_ms": 0, "filter": "no process has this in it"}"#),
        (listing, r#"{"sample_ms": 0, "limit": 0}"#),
    ]);
    let results = results(&mut client, "caller_look", calls).await;
    let returned = |result: &Value| result["envelope"]["returned"].clone();
    assert_eq!(results[..3].iter().map(returned).collect::<Vec<_>>(), [3, 1, 0], "{results:?}");
    assert_eq!(results[0]["envelope"]["truncated"], true, "{results:?}");
    assert_eq!(results[3]["code"], "INVALID_ARGUMENTS", "{results:?}");
}

#[tokio::test]
async fn a_call_that_is_refused_has_its_own_problem_and_the_others_go_on() {
    let mut client = open(&HOME).await;
    let long = format!(r#"{{"expression": "{}"}}"#, "x".repeat(70_000));
    let deep = "[".repeat(60_000);
    for (tool, arguments, code, word) in [
        // No grant names these, and one of them is a tool of the module itself.
        ("perf_uptime", "{}", "CAPABILITY_DENIED", "may not call perf_uptime:"),
        ("caller_look", "{}", "CAPABILITY_DENIED", "may not call caller_look:"),
        ("cron_validate ", "{}", "CAPABILITY_DENIED", "may not call cron_validate"),
        ("CRON_VALIDATE", "{}", "CAPABILITY_DENIED", "may not call CRON_VALIDATE"),
        ("", "{}", "CAPABILITY_DENIED", "may not call"),
        // Grants name these, and they aren't to be called all the same.
        (
            "cron_add",
            r#"{"schedule": "@daily", "command": "/bin/true", "dry_run": true}"#,
            "NOT_READ_ONLY",
            "cron_add",
        ),
        ("job_list", "{}", "CONTROLLER_TOOL", "job_list"),
        ("no_such_tool", "{}", "UNKNOWN_TOOL", "no_such_tool"),
        ("cron_validate", "", "INVALID_ARGUMENTS", "no JSON"),
        ("cron_validate", "\0", "INVALID_ARGUMENTS", "no JSON"),
        ("cron_validate", &deep, "INVALID_ARGUMENTS", "no JSON"),
        ("cron_validate", "[]", "INVALID_ARGUMENTS", "no JSON object"),
        ("cron_validate", "null", "INVALID_ARGUMENTS", "no JSON object"),
        (
            "cron_validate",
            r#"{"expression": "@daily", "expression": "@weekly"}"#,
            "INVALID_ARGUMENTS",
            "twice",
        ),
        ("cron_validate", "{}", "INVALID_ARGUMENTS", "expression"),
        ("cron_validate", r#"{"expression": true}"#, "INVALID_ARGUMENTS", "expression"),
        ("cron_validate", r#"{"expression": "@daily", "limit": 1}"#, "INVALID_ARGUMENTS", "limit"),
        ("cron_validate", r#"{"expression": "@daily", "dry_run": false}"#, "INVALID_ARGUMENTS", "dry_run"),
        (
            "cron_validate",
            r#"{"expression": "@daily", "host": "localhost"}"#,
            "INVALID_ARGUMENTS",
            "host is that of",
        ),
        (
            "cron_validate",
            r#"{"expression": "@daily", "host": null}"#,
            "INVALID_ARGUMENTS",
            "host is that of",
        ),
        (
            "cron_validate",
            r#"{"expression": "@daily", "agent_id": "x"}"#,
            "INVALID_ARGUMENTS",
            "agent_id is that of",
        ),
        ("cron_validate", &long, "ARGUMENTS_TOO_LARGE", "at most 65536"),
        // These are made, and fail by themselves.
        ("cron_next_runs", r#"{"expression": "nonsense"}"#, "INVALID_CRON_EXPRESSION", ""),
        (
            "probe_run",
            r#"{"argv": ["id"], "root": false}"#,
            "CAPABILITY_DENIED",
            "module probe may not run `id`",
        ),
        ("escape_reply", r#"{"kind": "nonsense"}"#, "MODULE_INVALID_REPLY", "no JSON"),
    ] {
        let shown = arguments.get(..80).unwrap_or(arguments);
        let results = results(&mut client, "caller_raw", making(&[VALID, (tool, arguments), VALID])).await;
        assert_eq!(results[1]["code"], code, "{tool} {shown}: {results:?}");
        let message = results[1]["message"].as_str().unwrap_or_default();
        assert!(message.contains(word) && message.len() < 1000, "{tool} {shown}: {message}");
        for valid in [&results[0], &results[2]] {
            assert_eq!(valid["envelope"]["status"], "success", "{tool} {shown}: {results:?}");
        }
    }
}

#[tokio::test]
async fn a_called_tool_calls_no_further_ones() {
    let mut client = open(&HOME).await;
    assert_eq!(client.envelope("relay_call", json!({})).await["data"], json!({"code": null}));
    let results = results(&mut client, "caller_look", making(&[("relay_call", "{}")])).await;
    assert_eq!(results[0]["envelope"]["data"], json!({"code": "NESTED_TOOL_CALL"}), "{results:?}");
}

#[tokio::test]
async fn a_tool_that_changes_something_calls_no_tools() {
    let mut client = open(&HOME).await;
    let mut calls = making(&[VALID, VALID]);
    calls["dry_run"] = json!(true);
    let results = results(&mut client, "caller_change", calls).await;
    assert!(results.iter().all(|result| result["code"] == "NOT_READ_ONLY"), "{results:?}");
}

#[tokio::test]
async fn one_call_makes_a_bounded_number_of_calls_and_they_share_its_limits() {
    let mut client = open(&HOME).await;
    let equal = |times: usize, rounds: usize| {
        let (tool, arguments) = VALID;
        json!({"calls": [{"tool": tool, "arguments": arguments, "times": times}], "rounds": rounds})
    };
    for (times, rounds, is_made) in [(32, 1, true), (33, 1, false), (16, 2, true), (17, 2, false)] {
        let results = results(&mut client, "caller_look", equal(times, rounds)).await;
        assert_eq!(results.len(), times);
        let is_right = |result: &Value| match is_made {
            true => result["envelope"]["status"] == "success",
            false => result["code"] == "TOO_MANY_TOOL_CALLS",
        };
        assert!(results.iter().all(is_right), "{times} times, {rounds} rounds: {results:?}");
    }
    let stopped = client.envelope("caller_look", equal(2000, 1)).await;
    assert_eq!(stopped["error_code"], "TOO_MANY_TOOL_CALLS", "{stopped}");
    let results = results(&mut client, "caller_look", making(&[("escape_memory", "{}")])).await;
    assert_eq!(results[0]["code"], "MODULE_MEMORY_LIMIT", "{results:?}");
    // The first round uses up the calls into the host, and the caller may make none any more.
    let calls = json!({"calls": [{"tool": "escape_calls", "arguments": "{}"}], "rounds": 2});
    let stopped = client.envelope("caller_look", calls).await;
    assert_eq!(stopped["error_code"], "MODULE_CALL_LIMIT", "{stopped}");
    assert!(stopped["message"].as_str().is_some_and(|said| said.contains("module caller")), "{stopped}");
    assert_eq!(client.close().await.0.code(), Some(0));
}

#[tokio::test]
async fn a_tool_that_does_not_serve_the_target_says_so_and_the_others_go_on() {
    // The only module with the tool is for targets with another package manager.
    let (mut client, _) = Client::open(&HOME, &guest("packages-toy"), VERSION).await;
    let calls = making(&[("pkg_list_installed", "{}"), ("probe_hostile_text", "{}")]);
    let results = results(&mut client, "caller_look", calls).await;
    assert_eq!(results[0]["code"], "TARGET_NOT_SERVED", "{results:?}");
    assert_eq!(results[1]["envelope"]["status"], "success", "{results:?}");
}

#[tokio::test]
async fn calls_within_a_call_never_wait_for_the_slot_that_it_holds() {
    let home = configured("modules:\n  limits:\n    calls_at_once: 1\n    calls_waiting: 0\n");
    let mut client = open(&home).await;
    let results = results(&mut client, "caller_look", making(&[VALID; 8])).await;
    assert!(results.iter().all(|result| result["envelope"]["status"] == "success"), "{results:?}");
}

#[tokio::test]
async fn calls_within_a_call_run_at_once_and_end_with_it() {
    let home = fresh();
    let mut client = open(&home).await;
    let marks = ["86399.31", "86399.32"];
    let arguments = marks.map(|mark| json!({"seconds": mark}).to_string());
    let calls = arguments.each_ref().map(|arguments| ("probe_sleep", arguments.as_str()));
    let id = client.ask("tools/call", json!({"name": "caller_raw", "arguments": making(&calls)})).await;
    while marks.iter().any(|mark| processes_with(mark) == 0) {
        tokio::task::yield_now().await;
    }
    client.cancel(id).await;
    marks.iter().for_each(|mark| until_gone(mark));
    assert!(client.close().await.0.success());
    let mut records: Vec<_> = home.audit().into_iter().filter(|record| record["event"] == "call").collect();
    records.sort_by_key(|record| (record["tool"].to_string(), record["arguments"].to_string()));
    assert_eq!(records.len(), 3, "{records:?}");
    assert!(records.iter().all(|record| record["error_code"] == "CANCELLED"), "{records:?}");
    for (record, mark) in records[1..].iter().zip(marks) {
        assert_eq!(record["commands"][0]["command"], format!("timeout 100000 sleep {mark}"), "{record}");
        assert_eq!(record["called_by"]["name"], "caller", "{record}");
    }
}

#[tokio::test]
async fn each_call_is_on_record_with_the_module_that_made_it() {
    let home = fresh();
    let mut client = open(&home).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let calls = making(&[
        ("probe_run", r#"{"argv": ["echo", "--", "a.service"], "root": false}"#),
        ("cron_validate", r#"{"password": "hunter2-of-the-test"}"#),
        ("cron_add", "{}"),
        ("no_such_tool", "{}"),
        ("perf_uptime", "{}"),
    ]);
    let meta = json!({"traceparent": format!("00-{trace}-00f067aa0ba902b7-01")});
    let id =
        client.ask("tools/call", json!({"name": "caller_look", "arguments": calls, "_meta": meta})).await;
    client.answer(id).await;
    assert!(client.close().await.0.success());

    let records = home.audit();
    let (outer, within): (Vec<_>, Vec<_>) = records.iter().partition(|record| record["called_by"].is_null());
    let [outer] = outer[..] else { panic!("{records:?}") };
    assert_eq!((&outer["tool"], &outer["commands"]), (&json!("caller_look"), &json!([])), "{outer}");
    assert!(within.iter().all(|record| record["seq"].as_u64() < outer["seq"].as_u64()), "{records:?}");
    let sha256 = hex::encode(Sha256::digest(fs::read(component("caller")).expect("a component")));
    let by = json!({"name": "caller", "version": "1.0.0", "sha256": sha256});
    let mut seen = Vec::new();
    for record in within {
        assert_eq!((&record["called_by"], &record["trace_id"]), (&by, &json!(trace)), "{record}");
        assert!(!record.to_string().contains("hunter2"), "{record}");
        assert_eq!((&record["client"], &record["protocol"]), (&json!("test 1"), &json!(VERSION)), "{record}");
        seen.push((
            record["tool"].as_str(),
            record["error_code"].as_str(),
            record["module"]["name"].as_str(),
        ));
    }
    seen.sort_unstable();
    // What no grant allows is in the server's log, as a command that was denied is.
    let expected = [
        (Some("cron_add"), Some("NOT_READ_ONLY"), None),
        (Some("cron_validate"), Some("INVALID_ARGUMENTS"), None),
        (Some("no_such_tool"), Some("UNKNOWN_TOOL"), None),
        (Some("probe_run"), None, Some("probe")),
    ];
    assert_eq!(seen, expected);
    let ran = records.iter().find(|record| record["tool"] == "probe_run").expect("its record");
    assert_eq!(ran["commands"], json!([{"command": "echo -- a.service", "exit_code": 0}]), "{ran}");
    assert_eq!((&ran["decision"], &ran["risk"]), (&json!("looked"), &json!("read-only")), "{ran}");

    for (record, said) in [
        (ran, "probe_run on localhost for module caller: success"),
        (outer, "caller_look on localhost: success"),
    ] {
        let shown = home.run(&modules(), &["audit", "show", &record["seq"].to_string()]);
        let shown = String::from_utf8_lossy(&shown.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains(said), "{shown}");
    }
    let verified = home.run(&modules(), &["audit", "verify"]);
    assert_eq!(verified.status.code(), Some(0), "{}", String::from_utf8_lossy(&verified.stderr));
}
