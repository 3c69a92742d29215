//! The command line: exit codes, configuration, logs.

use std::fs;

use linux_sysadmin_tests::{Client, Home, modules};
use serde_json::{Value, json};

#[test]
fn exit_codes_tell_success_an_answered_error_and_wrong_usage_apart() {
    let home = Home::new();
    for (args, code) in [
        (&["--version"][..], 0),
        (&["--help"], 0),
        (&["tools"], 0),
        (&["call", "perf_uptime"], 0),
        (&["call", "cron_next_runs", "expression=@daily", "count=2", "timezone=UTC"], 0),
        (&["call", "cron_next_runs", "expression=nonsense"], 1),
        (&["call", "cron_next_runs"], 1),
        (&["call", "no_such_tool"], 1),
        (&["call", "perf_uptime", "nonsense"], 2),
        (&["call", "cron_next_runs", "--args", r#"{"expression": "@daily", "count": 2}"#, "--json"], 0),
        (&["call", "perf_uptime", "--args", "[1]"], 2),
        (&["call", "perf_uptime", "--args"], 2),
        (&["call", "perf_uptime", "--json", "[1]"], 2),
        (&["call", "cron_next_runs", "--args", r#"{"expression": "@daily", "expression": "@weekly"}"#], 2),
        (&["call", "cron_next_runs", "expression=@daily", "expression=@daily"], 2),
        (&["call", "perf_uptime", "a=b", "--args", "{}"], 2),
        (&["call", "perf_uptime", "--help"], 0),
        (&["call", "no_such_tool", "--help"], 2),
        (&["call", "--help"], 0),
        (&["call"], 2),
        (&["tools", "perf_uptime"], 0),
        (&["tools", "no_such_tool"], 2),
        (&["tools", "no_such_tool", "--json"], 2),
        (&["policy", "check", "systemctl", "--no-block", "stop", "ssh"], 0),
        (&["policy", "check", "--json"], 2),
        (&["frobnicate"], 2),
        (&[], 2),
    ] {
        let output = home.run(&modules(), args);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{args:?}\n{out}\n{err}");
        if code == 2 {
            assert!(out.is_empty() && !err.is_empty(), "{args:?}: usage errors are on stderr");
        }
    }
    let output = home.run(&home.path().join("no-such-directory"), &["tools"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_call_from_the_command_line_is_the_call_of_a_client() {
    let home = Home::new();
    let (code, envelope) = home.call(&modules(), "cron_validate", json!({"expression": "61 * * * *"}));
    assert_eq!(code, Some(0));
    assert_eq!(envelope["tool"], "cron_validate");
    assert_eq!(envelope["data"]["valid"], false);
}

#[test]
fn the_first_start_writes_the_configuration_and_says_so_once() {
    let home = Home::new();
    let (_, first) = home.call(&modules(), "sysadmin_session_info", json!({}));
    assert_eq!(first["data"]["first_run"], true, "{first}");
    assert_eq!(first["data"]["config_generated"], json!(home.config()));
    assert!(first["data"]["setup_hints"].as_array().is_some_and(|hints| !hints.is_empty()));
    let written = fs::read_to_string(home.config()).expect("the configuration");
    for option in [
        "integration_mode:",
        "default_limit:",
        "max_retries:",
        "retry_backoff_seconds:",
        "command_timeout_ceiling:",
        "# distro:",
    ] {
        assert!(written.contains(option), "{option}");
    }
    let (_, second) = home.call(&modules(), "sysadmin_session_info", json!({}));
    assert!(second["data"].get("first_run").is_none_or(|first| first == &Value::Bool(false)), "{second}");
}

#[test]
fn a_configuration_with_a_bad_line_stops_the_start_and_names_the_line() {
    for (text, line, word) in [
        ("output:\n  default_limit: 10\n  colour: red\n", "line 3", "colour"),
        ("output:\n  default_limit: ten\n", "line 2", "default_limit"),
        ("integration_mode: [\n", "line 1", "integration_mode"),
        ("safety:\n  confirmation_threshold: never\n", "line 2", "confirmation_threshold"),
        ("safety:\n  confirmation_threshold: read-only\n", "line 2", "read-only"),
        ("safety:\n  dry_run_bypass: true\n", "line 2", "dry_run_bypass"),
    ] {
        let home = Home::new();
        fs::create_dir_all(home.config().parent().expect("a parent")).expect("a directory");
        fs::write(home.config(), text).expect("written");
        for args in [&["tools"][..], &["serve"], &["call", "perf_uptime"]] {
            let output = home.run(&modules(), args);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
            assert!(said.contains(line) && said.contains(word) && said.contains("config.yaml"), "{said}");
            assert!(output.stdout.is_empty());
        }
    }
}

#[test]
fn a_named_configuration_must_be_there() {
    let home = Home::new();
    let named = home.path().join("mine.yaml");
    let run = || {
        let mut command = home.command(&modules(), &["call", "perf_top_processes", "sample_ms=0"]);
        command.env("LINUX_SYSADMIN_CONFIG", &named).output().expect("the program starts")
    };
    let output = run();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("mine.yaml"));
    fs::write(&named, "output:\n  default_limit: 1\n").expect("written");
    let envelope: Value = serde_json::from_slice(&run().stdout).expect("an envelope");
    assert_eq!(envelope["returned"], 1);
    assert!(!home.config().exists(), "nothing is written beside it");
}

#[tokio::test]
async fn logs_are_on_stderr_by_their_level_and_never_hold_a_request() {
    let home = Home::new();
    let mut client = Client::start_with(&home, &modules(), &[("LINUX_SYSADMIN_LOG", "trace")]);
    client.initialize("2025-06-18").await;
    client.envelope("cron_validate", json!({"expression": "hunter2 is a secret"})).await;
    let (status, log) = client.close().await;
    assert!(status.success());
    assert!(!log.is_empty(), "trace says something");
    assert!(!log.contains("hunter2"), "a request is in the log");

    let (client, _) = Client::open(&home, &modules(), "2025-06-18").await;
    let (_, log) = client.close().await;
    assert!(log.is_empty(), "by default a good session logs nothing: {log}");
}

#[test]
fn whoever_has_read_enough_is_no_error_and_what_became_of_the_command_is_still_said() {
    let home = Home::new();
    for (args, code) in [
        (&["tools", "--json"][..], 0),
        (&["modules", "list", "--json"], 0),
        (&["call", "cron_validate", "expression=* * * * *"], 0),
        (&["call", "svc_status", "service=-x"], 1),
        (&["policy", "check", "rm", "-rf", "/"], 0),
        (&["knowledge", "show", "nginx"], 0),
        (&["audit", "show"], 0),
        (&["pending", "--json"], 0),
    ] {
        let code_read = home.command(&modules(), args).output().expect("it runs").status.code();
        assert_eq!(code_read, Some(code), "{args:?}, read to the end");
        let mut command = home.command(&modules(), args);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*said), (Some(code), ""), "{args:?}");
    }
}
