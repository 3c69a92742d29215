//! The audit log as an operator sees it: every call is on record, `audit verify` notices every change of the record, and says
//! so in words and by its exit code.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use linux_sysadmin_tests::{Client, Home, modules, probe, processes_with};
use serde_json::{Value, json};

const VERSION: &str = "2025-06-18";
const PASSWORD: &str = "hunter2-of-the-test";
const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
    // The line breaks don't matter.
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn audit(home: &Home, args: &[&str]) -> Output {
    home.run(&modules(), &[&["audit"], args].concat())
}

#[track_caller]
fn is_valid(home: &Home) {
    let verified = audit(home, &["verify"]);
    assert_eq!(verified.status.code(), Some(0), "{}", said(&verified));
}

fn small_files(home: &Home) {
    fs::create_dir_all(home.config().parent().expect("a parent")).expect("a directory");
    fs::write(home.config(), "audit:\n  rotate_mib: 1\n").expect("written");
}

/// The SHA-256 of a component in the list that ships with it.
fn shipped(module: &str) -> String {
    let sums = fs::read_to_string(modules().join("SHA256SUMS")).expect("sums");
    let name = format!("  {module}.wasm");
    sums.lines().find_map(|line| line.strip_suffix(&name)).expect("its sum").to_owned()
}

/// Begins a call of a tool as part of this trace; gives the request's id.
async fn traced(client: &mut Client, trace: &str, tool: &str, arguments: Value) -> i64 {
    let meta = json!({"traceparent": format!("00-{trace}-00f067aa0ba902b7-01")});
    client.ask("tools/call", json!({"name": tool, "arguments": arguments, "_meta": meta})).await
}

#[tokio::test]
async fn every_call_is_on_record_with_who_asked_what_of_which_module_and_how_it_ended() {
    let home = Home::new();
    let (mut client, _) = Client::open(&home, &modules(), VERSION).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let id = traced(&mut client, trace, "perf_uptime", json!({})).await;
    client.answer(id).await;
    client.call("perf_uptim", json!({"expression": "x"})).await;
    client.envelope("perf_uptime", json!({"a": 1})).await;
    client.envelope("cron_next_runs", json!({"expression": "nonsense"})).await;
    assert!(client.close().await.0.success());
    home.call(&modules(), "cron_validate", json!({"expression": "@daily"}));

    let records = home.audit();
    let expected = [
        ("perf_uptime", "success", json!(null), "looked", Some("performance"), "test 1", VERSION),
        ("perf_uptim", "error", json!("UNKNOWN_TOOL"), "none", None, "test 1", VERSION),
        ("perf_uptime", "error", json!("INVALID_ARGUMENTS"), "none", None, "test 1", VERSION),
        (
            "cron_next_runs",
            "error",
            json!("INVALID_CRON_EXPRESSION"),
            "looked",
            Some("cron"),
            "test 1",
            VERSION,
        ),
        ("cron_validate", "success", json!(null), "looked", Some("cron"), "linux-sysadmin call", "cli"),
    ];
    assert_eq!(records.len(), expected.len(), "{records:?}");
    let machine_id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    for (number, (record, expected)) in records.iter().zip(expected).enumerate() {
        let (tool, status, error, decision, module, asked_by, protocol) = expected;
        assert_eq!((&record["event"], &record["seq"]), (&json!("call"), &json!(number + 1)), "{record}");
        assert_eq!((&record["tool"], &record["status"]), (&json!(tool), &json!(status)), "{record}");
        assert_eq!((&record["error_code"], &record["decision"]), (&error, &json!(decision)), "{record}");
        assert_eq!(
            (&record["client"], &record["protocol"]),
            (&json!(asked_by), &json!(protocol)),
            "{record}"
        );
        assert!(record["duration_ms"].is_u64() && record["commands"] == json!([]), "{record}");
        assert!(record["change"].is_null(), "{record}");
        let time = record["time"].as_str().expect("a time");
        assert!(time.len() == "2026-01-31T12:00:00.000Z".len() && time.ends_with('Z'), "{record}");
        assert!(!record["trace_id"].as_str().expect("a trace").is_empty(), "{record}");
        let Some(module) = module else {
            assert!(record["module"].is_null() && record["target"].is_null(), "{record}");
            continue;
        };
        assert_eq!(record["module"]["name"], module, "{record}");
        assert_eq!(record["module"]["sha256"], shipped(module), "{record}");
        assert!(record["module"]["version"].is_string(), "{record}");
        assert_eq!(record["risk"], "read-only", "{record}");
        let target = &record["target"];
        assert_eq!(target["name"], "localhost", "{record}");
        assert_eq!(target["uid"], rustix::process::getuid().as_raw(), "{record}");
        assert_eq!(target["machine_id"].as_str().unwrap_or_default(), machine_id.trim(), "{record}");
        assert!(target["account"].is_string() && target["hostname"].is_string(), "{record}");
    }
    assert_eq!(records[0]["trace_id"], trace);
    assert_eq!(records[3]["arguments"], json!({"expression": "nonsense"}));
    let traces: BTreeSet<_> = records.iter().map(|record| record["trace_id"].to_string()).collect();
    assert_eq!(traces.len(), records.len(), "a call without a trace has one of its own");
    is_valid(&home);
}

#[tokio::test]
async fn commands_are_on_record_with_their_exit_codes_and_a_cancelled_call_is_too() {
    let home = Home::new();
    let (mut client, _) = Client::open(&home, &probe(), VERSION).await;
    client.envelope("probe_run", json!({"argv": ["echo", "--", "a.service"], "root": false})).await;
    client.envelope("probe_run", json!({"argv": ["uname"], "root": false})).await;
    let mark = "86399.91";
    let id = client.ask("tools/call", json!({"name": "probe_sleep", "arguments": {"seconds": mark}})).await;
    while processes_with(mark) == 0 {
        tokio::task::yield_now().await;
    }
    client.cancel(id).await;
    while processes_with(mark) > 0 {
        tokio::task::yield_now().await;
    }
    assert!(client.close().await.0.success());
    let records = home.audit();
    let seen: Vec<_> = records.iter().map(|record| (&record["commands"], &record["error_code"])).collect();
    let echo = json!([{"command": "echo -- a.service", "exit_code": 0}]);
    let sleep = json!([{"command": format!("timeout 100000 sleep {mark}"), "exit_code": null}]);
    let denied = json!("CAPABILITY_DENIED");
    assert_eq!(
        seen,
        [(&echo, &json!(null)), (&json!([]), &denied), (&sleep, &json!("CANCELLED"))],
        "{records:?}"
    );
    is_valid(&home);
}

#[tokio::test]
async fn no_secret_of_a_call_is_ever_in_the_log() {
    let home = Home::new();
    let (mut client, _) = Client::open(&home, &modules(), VERSION).await;
    for arguments in [
        json!({"password": PASSWORD}),
        json!({"nested": [{"db_password": PASSWORD}, {"name": "API_TOKEN", "value": PASSWORD}]}),
        json!({"text": format!("login with {TOKEN} please")}),
        json!({"url": format!("https://joe:{PASSWORD}@example.org/")}),
        json!({"argv": ["mysql", "--password", PASSWORD]}),
        json!({"text": format!("password={PASSWORD}")}),
        json!({TOKEN: 1}),
    ] {
        client.envelope("perf_uptime", arguments.clone()).await;
        client.call("no_such_tool", arguments.clone()).await;
        home.call(&modules(), "perf_uptime", arguments);
    }
    client.call(&format!("tool {TOKEN}"), json!({})).await;
    assert!(client.close().await.0.success());
    for entry in fs::read_dir(home.state()).expect("a log").flatten() {
        let text = String::from_utf8_lossy(&fs::read(entry.path()).expect("readable")).into_owned();
        for secret in [PASSWORD, TOKEN] {
            assert!(!text.contains(secret), "{secret} is in {}", entry.path().display());
        }
    }
    let records = home.audit();
    assert_eq!(records.len(), 7 * 3 + 1);
    assert_eq!(records[0]["arguments"], json!({"password": "[redacted]"}));
    assert_eq!(records[6]["arguments"], json!({"text": "login with [redacted] please"}));
}

/// Makes a log of seven files, which big arguments fill one after the other.
fn rotated() -> Home {
    let home = Home::new();
    small_files(&home);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (mut client, _) = Client::open(&home, &modules(), VERSION).await;
        // The record of a call that only looks is short, so it takes many.
        for number in 0..600 {
            client.envelope("perf_uptime", json!({"a": number, "b": "x".repeat(7_000)})).await;
        }
        assert!(client.close().await.0.success());
    });
    home
}

/// The full files of a log, the oldest first.
fn full_files(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).expect("a log").flatten();
    let names = names.map(|entry| entry.file_name().into_string().expect("UTF-8"));
    let first = |name: &String| name.strip_prefix("audit-")?.split('-').next()?.parse::<u64>().ok();
    let mut full: Vec<_> = names.filter_map(|name| Some((first(&name)?, name))).collect();
    full.sort();
    full.into_iter().map(|(_, name)| name).collect()
}

#[test]
fn whatever_was_done_to_the_log_is_noticed_and_the_first_broken_place_is_named() {
    let home = rotated();
    let full = full_files(&home.state());
    assert!(full.len() >= 3, "{full:?}");
    let (oldest, second) = (full[0].as_str(), full[1].as_str());
    is_valid(&home);

    type Tamper<'a> = &'a dyn Fn(&Path);
    let edit = |path: &Path, edit: &dyn Fn(&mut Vec<String>)| {
        let text = fs::read_to_string(path).expect("text");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        edit(&mut lines);
        fs::write(path, lines.join("\n") + "\n").expect("written");
    };
    let current = "audit.jsonl";
    let last = fs::read_to_string(home.state().join(current)).expect("text").lines().count();
    let after_last = format!("{current}:{}", last);
    let cases: &[(&str, Tamper, &str)] = &[
        (
            "edited",
            &|at| edit(&at.join(oldest), &|lines| lines[1] = lines[1].replace("\"a\":1,", "\"a\":9,")),
            "audit-1-",
        ),
        (
            "edited, in the file that is added to",
            &|at| {
                edit(&at.join(current), &|lines| lines[1] = lines[1].replace("INVALID", "VALID"));
            },
            "audit.jsonl:2",
        ),
        ("removed", &|at| edit(&at.join(oldest), &|lines| drop(lines.remove(2))), ":3"),
        ("the first removed", &|at| edit(&at.join(oldest), &|lines| drop(lines.remove(0))), ":1"),
        ("swapped", &|at| edit(&at.join(oldest), &|lines| lines.swap(1, 2)), ":2"),
        ("inserted", &|at| edit(&at.join(oldest), &|lines| lines.insert(2, lines[1].clone())), ":3"),
        ("an empty line", &|at| edit(&at.join(oldest), &|lines| lines.insert(2, String::new())), ":3"),
        ("cut off", &|at| edit(&at.join(current), &|lines| drop(lines.pop())), &after_last),
        (
            "cut off in the middle of a line",
            &|at| {
                let path = at.join(current);
                let text = fs::read(&path).expect("bytes");
                fs::write(&path, &text[..text.len() - 10]).expect("written");
            },
            &after_last,
        ),
        ("a full file cut off", &|at| edit(&at.join(oldest), &|lines| drop(lines.pop())), ":1"),
        (
            "the oldest file removed",
            &|at| fs::remove_file(at.join(oldest)).expect("removed"),
            &format!("{second}:1"),
        ),
        ("a file in between removed", &|at| fs::remove_file(at.join(second)).expect("removed"), ":1"),
        (
            "the last file removed",
            &|at| fs::remove_file(at.join(current)).expect("removed"),
            "audit.head names",
        ),
        ("emptied", &|at| fs::write(at.join(current), "").expect("written"), "audit.head names"),
        ("the head removed", &|at| fs::remove_file(at.join("audit.head")).expect("removed"), "audit.head"),
        (
            "the head of another time",
            &|at| {
                let head = fs::read_to_string(at.join("audit.head")).expect("text");
                let hash = head.split('"').find(|word| word.len() == 64).expect("a hash").to_owned();
                fs::write(at.join("audit.head"), head.replace(&hash, &"a".repeat(64))).expect("written");
            },
            "audit.head names",
        ),
    ];
    for (what, tamper, place) in cases {
        let copy = tempfile::tempdir().expect("a directory");
        for entry in fs::read_dir(home.state()).expect("a log").flatten() {
            fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("a copy");
        }
        let directory = copy.path().to_str().expect("UTF-8");
        let verify = || audit(&home, &["verify", "--directory", directory]);
        assert_eq!(verify().status.code(), Some(0), "{what}: a copy is valid");
        tamper(copy.path());
        let verified = verify();
        let said = said(&verified);
        assert_eq!(verified.status.code(), Some(1), "{what}: {said}");
        assert!(said.contains("is not what was written") && said.contains(place), "{what}: {place}: {said}");
        assert!(verified.stdout.is_empty(), "{what}: {said}");
    }
    is_valid(&home);
}

#[tokio::test]
async fn two_servers_under_load_keep_one_chain_over_all_its_files() {
    const CALLS: usize = 500;
    let home = Home::new();
    small_files(&home);
    let serve = |first: usize| {
        let home = &home;
        async move {
            let (mut client, _) = Client::open(home, &modules(), VERSION).await;
            let mut asked = Vec::new();
            for number in first..first + CALLS {
                let trace = format!("{number:032x}");
                // The calls have large arguments, so that files fill up.
                let arguments = json!({"b": "x".repeat(7_000)});
                asked.push(traced(&mut client, &trace, "perf_uptime", arguments).await);
            }
            for id in asked {
                client.answer(id).await;
            }
            assert!(client.close().await.0.success());
        }
    };
    tokio::join!(serve(1), serve(1 + CALLS));
    is_valid(&home);
    assert!(full_files(&home.state()).len() >= 3, "files were put aside");
    let exported = audit(&home, &["export"]);
    assert_eq!(exported.status.code(), Some(0));
    let records: Vec<Value> = String::from_utf8(exported.stdout)
        .expect("UTF-8")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let numbers = records.iter().map(|record| record["seq"].as_u64().expect("a number"));
    assert!(numbers.eq(1..=records.len() as u64), "one after the other");
    let calls = records.iter().filter(|record| record["event"] == "call");
    let traces: Vec<_> =
        calls.map(|record| record["trace_id"].as_str().expect("a trace").to_owned()).collect();
    assert_eq!(traces.len(), 2 * CALLS);
    let all: BTreeSet<_> = (1..=2 * CALLS).map(|number| format!("{number:032x}")).collect();
    assert!(traces.into_iter().collect::<BTreeSet<_>>() == all, "every call, once");
}

#[test]
fn nobody_else_may_read_the_log_whatever_the_umask() {
    let home = Home::new();
    small_files(&home);
    let big = json!({"b": "x".repeat(7_000)}).to_string();
    for _ in 0..180 {
        let call = home.command(&modules(), &["call", "perf_uptime", "--args", &big]);
        let mut loose = Command::new("sh");
        loose.args(["-c", "umask 0; exec \"$0\" \"$@\""]).arg(call.get_program()).args(call.get_args());
        loose.envs(call.get_envs().filter_map(|(name, value)| Some((name, value?))));
        loose.output().expect("it runs");
    }
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o7777;
    assert_eq!(mode(&home.state()), 0o700);
    let files: Vec<_> =
        fs::read_dir(home.state()).expect("a log").flatten().map(|entry| entry.path()).collect();
    assert!(!full_files(&home.state()).is_empty() && files.len() >= 4, "{files:?}");
    for file in files.iter().filter(|file| !file.is_dir()) {
        assert_eq!(mode(file), 0o600, "{}", file.display());
    }
    let output = home.path().join("exported");
    let exported = audit(&home, &["export", "--output", output.to_str().expect("UTF-8")]);
    assert_eq!(exported.status.code(), Some(0), "{}", said(&exported));
    assert_eq!(mode(&output), 0o600);
    let again = audit(&home, &["export", "--output", output.to_str().expect("UTF-8")]);
    assert_eq!(again.status.code(), Some(2), "what is there isn't replaced");
}

#[test]
fn nothing_is_written_or_read_through_what_somebody_put_in_the_logs_place() {
    let home = Home::new();
    home.call(&modules(), "perf_uptime", json!({}));
    let (log, elsewhere) = (home.state().join("audit.jsonl"), home.path().join("elsewhere"));
    for name in ["audit.jsonl", "audit.head", "audit.lock"] {
        let (path, kept) = (home.state().join(name), home.path().join("kept"));
        fs::rename(&path, &kept).expect("moved");
        fs::write(&elsewhere, "").expect("written");
        std::os::unix::fs::symlink(&elsewhere, &path).expect("a link");
        // A call that only looks is answered even so.
        let (code, envelope) = home.call(&modules(), "perf_uptime", json!({}));
        assert_eq!((code, &envelope["status"]), (Some(0), &json!("success")), "{name}: {envelope}");
        assert_eq!(fs::read(&elsewhere).expect("it is there"), b"", "{name}");
        let verified = audit(&home, &["verify"]);
        assert_eq!(verified.status.code(), Some(2), "{name}: {}", said(&verified));
        assert!(said(&verified).contains("symbolic link"), "{name}: {}", said(&verified));
        fs::rename(&kept, &path).expect("moved back");
        is_valid(&home);
    }
    assert_eq!(fs::read_to_string(&log).expect("text").lines().count(), 1);
    home.call(&modules(), "perf_uptime", json!({}));
    assert_eq!(fs::read_to_string(&log).expect("text").lines().count(), 2, "it goes on");
    is_valid(&home);
}

#[tokio::test]
async fn what_is_shown_fits_a_terminal_and_hides_nothing() {
    let home = Home::new();
    let (mut client, _) = Client::open(&home, &modules(), VERSION).await;
    client.envelope("perf_uptime", json!({})).await;
    let sly = "a\u{1b}[2J\u{202e}b\u{200b}\nc ";
    client.call(&format!("sly{sly}"), json!({})).await;
    client.envelope("cron_validate", json!({"expression": sly.repeat(40)})).await;
    client.envelope("perf_uptime", json!({(sly): sly})).await;
    assert!(client.close().await.0.success());
    let readable = |output: Output| {
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        for line in text.lines() {
            // A word without a blank, as a hash, stays on one line.
            let fits = line.chars().count() <= 80 || line.trim_start().split(' ').count() <= 2;
            assert!(fits && !line.chars().any(|c| c.is_control()), "{line:?}");
            assert!(!line.contains(['\u{202e}', '\u{200b}']), "{line:?}");
        }
        text
    };
    let changes = readable(audit(&home, &["show"]));
    assert!(!changes.contains("Z  ") && changes.contains("--looks"), "no call changed anything: {changes}");
    let list = readable(audit(&home, &["show", "--looks"]));
    assert_eq!(list.lines().filter(|line| line.contains("Z  ")).count(), 4, "{list}");
    assert!(list.contains("UNKNOWN_TOOL") && list.contains(r"\u{1b}"), "{list}");
    for number in ["2", "3", "4"] {
        let record = readable(audit(&home, &["show", number]));
        assert!(record.contains(r"\u{1b}[2J\u{202e}b"), "{number}: {record}");
    }

    for (args, expected) in [
        (&[][..], &[1, 2, 3, 4][..]),
        (&["--tool", "perf_uptime"], &[1, 4]),
        (&["--status", "error"], &[2, 4]),
        (&["--tool", "perf_uptime", "--status", "success"], &[1]),
        (&["--host", "localhost"], &[1, 3]),
        (&["--host", "elsewhere"], &[]),
        (&["--last", "2"], &[3, 4]),
        (&["--since", "1h"], &[1, 2, 3, 4]),
        (&["--until", "2020-01-01"], &[]),
        (&["--changes"], &[]),
        (&["--unfinished"], &[]),
        (&["3"], &[3]),
    ] {
        let exported = audit(&home, &[&["export"], args].concat());
        let lines = String::from_utf8(exported.stdout).expect("UTF-8");
        let all = fs::read_to_string(home.state().join("audit.jsonl")).expect("text");
        let all: Vec<_> = all.lines().collect();
        let wanted: Vec<_> = expected.iter().map(|number| all[number - 1]).collect();
        assert_eq!(lines.lines().collect::<Vec<_>>(), wanted, "{args:?}");
        // Those that name records or changes need no word about looks.
        let looks = !matches!(args, ["3"] | ["--changes"] | ["--unfinished"]);
        let looks = if looks { &["--looks"][..] } else { &[] };
        let shown = audit(&home, &[&["show"], looks, args].concat());
        let shown = String::from_utf8(shown.stdout).expect("UTF-8");
        assert_eq!(
            shown.lines().filter(|line| line.contains("Z  ")).count(),
            expected.len(),
            "{args:?}: {shown}"
        );
    }
    let nothing = audit(&home, &["show", "ffffffffffffffff"]);
    assert_eq!(nothing.status.code(), Some(1), "{}", said(&nothing));
    for wrong in [&["show", "--last", "0"][..], &["show", "--since", "whenever"], &["frobnicate"]] {
        assert_eq!(audit(&home, wrong).status.code(), Some(2), "{wrong:?}");
    }
}
