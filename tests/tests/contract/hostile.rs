//! Modules that attack: each attempt ends in an error of that call, and all other modules go on working.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use linux_sysadmin_tests::{Client, FROZEN, Home, Raw, children_of, component, modules, peak_memory};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A home where an operator has added two of these modules.
static HOME: LazyLock<Home> = LazyLock::new(|| {
    let home = Home::at(Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile"));
    add(&home, &component("escape"));
    add(&home, &written(&home, "raw", &Raw::default().build()));
    home
});

fn written(home: &Home, name: &str, bytes: &[u8]) -> PathBuf {
    let path = home.path().join(format!("{name}.wasm"));
    fs::write(&path, bytes).expect("written");
    path
}

fn add(home: &Home, component: &Path) {
    let output = home.add(component);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Asserts that a component can't be added, that the error has these words, and that other modules work.
fn refused(home: &Home, component: &Path, words: &[&str]) {
    let output = home.add(component);
    // The lines are wrapped at a terminal's width.
    let said = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(1), "{said}");
    for word in words {
        assert!(said.contains(word), "{word} is not in: {said}");
    }
    let (code, envelope) = home.call(&modules(), "cron_validate", json!({"expression": "* * * * *"}));
    assert_eq!(code, Some(0), "{envelope}");
}

async fn open() -> Client {
    Client::open(&HOME, &modules(), "2025-06-18").await.0
}

/// Calls a tool, which must be stopped with this error. The next call of the module works, in a new instance.
async fn attack(client: &mut Client, tool: &str, arguments: Value, code: &str) -> Value {
    let envelope = client.envelope(tool, arguments.clone()).await;
    assert_eq!(envelope["status"], "error", "{tool} {arguments}: {envelope}");
    assert_eq!(envelope["error_code"], code, "{tool} {arguments}: {envelope}");
    assert!(envelope.to_string().len() < 8 << 10, "{tool}: an error is short: {envelope}");
    let (harmless, answer) = match tool.starts_with("raw_") {
        true => ("raw_done", json!({})),
        false => ("escape_count", json!({"text": "1"})),
    };
    assert_eq!(client.envelope(harmless, json!({})).await["data"], answer, "after {tool} {arguments}");
    envelope
}

/// Asserts that another module works, that no process is left, and that the server ends well; gives the server's log.
async fn survived(mut client: Client) -> String {
    let envelope = client.envelope("cron_validate", json!({"expression": "* * * * *"})).await;
    assert_eq!(envelope["status"], "success", "{envelope}");
    let pid = client.pid();
    let gone = async {
        // A killed process is there until the server reaps it.
        while children_of(pid) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), gone).await.expect("no process is left");
    let (status, log) = client.close().await;
    assert_eq!(status.code(), Some(0), "{log}");
    log
}

/// Runs a session with one attack in it.
async fn stopped(tool: &str, code: &str) {
    let mut client = open().await;
    attack(&mut client, tool, json!({}), code).await;
    survived(client).await;
}

/// Makes a directory at a path that the host accepts for root and for other accounts.
fn directory(prefix: &str) -> TempDir {
    let below = if rustix::process::geteuid().is_root() { "/run" } else { "/tmp" };
    tempfile::Builder::new().prefix(prefix).tempdir_in(below).expect("a directory")
}

/// Makes a directory that the module's grants cover.
fn granted_directory() -> TempDir {
    directory("linux-sysadmin-hostile-")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[tokio::test]
async fn a_command_that_was_not_granted_never_runs() {
    let mut client = open().await;
    for argv in [
        &["id"][..],
        &["uname", "--kernel-name", "--all"],
        &["uname", "--all"],
        &["uname"],
        &["uname", "--kernel-name "],
        &["/usr/bin/uname", "--kernel-name"],
        &["sh", "-c", "uname --kernel-name"],
        &["sleep", "--help"],
        &["sleep", "0; id"],
        &[""],
        &["\0"],
    ] {
        let envelope = attack(&mut client, "escape_run", json!({"argv": argv}), "CAPABILITY_DENIED").await;
        assert_eq!(envelope["command_executed"], Value::Null, "{argv:?}");
    }
    let granted = client.envelope("escape_run", json!({"argv": ["uname", "--kernel-name"]})).await;
    assert_eq!(granted["data"]["text"], "Linux\n", "{granted}");
    survived(client).await;
}

#[tokio::test]
async fn neither_symlinks_nor_dots_lead_out_of_what_was_granted() {
    let (inside, outside) = (granted_directory(), directory("linux-sysadmin-other-"));
    let (good, secret) = (inside.path().join("good"), outside.path().join("secret"));
    fs::write(&good, "granted").expect("written");
    fs::write(&secret, "not granted").expect("written");
    let link = |name: &str, to: &Path| {
        std::os::unix::fs::symlink(to, inside.path().join(name)).expect("a symlink");
        inside.path().join(name)
    };
    let linked = link("link", &secret);
    let through = link("directory", outside.path()).join("secret");
    let chained = link("chain", &linked);
    let dots = inside.path().join("..").join(outside.path().file_name().expect("a name")).join("secret");
    let mut client = open().await;
    for path in [&secret, &linked, &through, &chained, &dots, &inside.path().join("./good")] {
        attack(&mut client, "escape_read", json!({"path": text(path)}), "CAPABILITY_DENIED").await;
    }
    let granted = client.envelope("escape_read", json!({"path": text(&good)})).await;
    assert_eq!(granted["data"]["text"], "granted", "{granted}");
    survived(client).await;
}

#[tokio::test]
async fn a_glob_never_covers_a_secret() {
    let directory = granted_directory();
    let linked = directory.path().join("link");
    std::os::unix::fs::symlink("/etc/shadow", &linked).expect("a symlink");
    let mut client = open().await;
    for path in ["/etc/shadow", "/etc/gshadow", "/etc/shadow-", text(&linked)] {
        attack(&mut client, "escape_read", json!({"path": path}), "CAPABILITY_DENIED").await;
    }
    let granted = client.envelope("escape_read", json!({"path": "/etc/passwd"})).await;
    assert_eq!(granted["status"], "success", "{granted}");
    survived(client).await;
}

#[test]
fn a_module_that_imports_sockets_is_refused_by_the_import() {
    refused(&Home::new(), &component("sockets"), &["wasi:sockets/", "no module may have"]);
}

#[test]
fn a_third_party_never_has_what_only_modules_of_the_host_have() {
    let session = modules().join("session.wasm");
    refused(&Home::new(), &session, &["sysadmin:module/session@"]);
}

#[test]
fn another_contract_is_refused_and_both_are_named() {
    let home = Home::new();
    let future = written(&home, "future", &Raw::default().version("9.9.9").build());
    refused(&home, &future, &["sysadmin:module@9.9.9", "sysadmin:module@0.2.0"]);
}

#[tokio::test]
async fn a_component_of_the_older_contract_works_as_before() {
    let home = Home::new();
    add(&home, &written(&home, "raw", &Raw::default().version(FROZEN).build()));
    let (mut client, _) = Client::open(&home, &modules(), "2025-06-18").await;
    let envelope = client.envelope("raw_done", json!({})).await;
    assert_eq!((&envelope["status"], &envelope["data"]), (&json!("success"), &json!({})), "{envelope}");
    survived(client).await;
}

#[test]
fn a_module_that_does_not_just_describe_itself_is_refused() {
    let home = Home::new();
    for (instructions, words) in [
        ("(unreachable)", &["describe", "unreachable"][..]),
        ("(loop $ever (br $ever))", &["describe", "longer"]),
        ("(if (i32.eq (memory.grow (i32.const 16384)) (i32.const -1)) (then (unreachable)))", &["describe"]),
        ("(call $grow-tables)", &["describe"]),
        ("(call $current (i32.const 8192))", &["describe", "may not call the host"]),
        ("(return (i32.const -4))", &["describe"]),
        // The first letter of the name changes.
        (
            "(i32.store8 (i32.const 1024) (i32.add (i32.load8_u (i32.const 1024)) (i32.const 1)))",
            &["describe", "differently"],
        ),
    ] {
        let component = written(&home, "raw", &Raw::default().describe(instructions).build());
        refused(&home, &component, words);
    }
    refused(&home, &component("sleepy"), &["describe", "longer"]);
}

#[tokio::test]
async fn a_module_that_traps_in_every_tool_takes_nothing_with_it() {
    let home = Home::new();
    add(&home, &written(&home, "raw", &Raw::default().call("(unreachable)").build()));
    let (mut client, _) = Client::open(&home, &modules(), "2025-06-18").await;
    for tool in ["raw_done", "raw_forge", "raw_expand", "raw_done"] {
        let envelope = client.envelope(tool, json!({})).await;
        assert_eq!(envelope["error_code"], "MODULE_TRAPPED", "{tool}: {envelope}");
    }
    survived(client).await;
    stopped("escape_trap", "MODULE_TRAPPED").await;
}

#[tokio::test]
async fn a_module_is_what_it_was_when_it_was_added() {
    let (home, other) = (Home::cold(), Home::cold());
    let lock = |home: &Home| fs::read_to_string(home.data().join("modules.lock")).expect("a lock");
    for home in [&home, &other] {
        add(home, &component("fickle"));
    }
    assert_eq!(lock(&home), lock(&other), "it says the same whenever it is asked");
    for cache in ["warm", "cold"] {
        if cache == "cold" {
            fs::remove_dir_all(home.cache()).expect("a cache");
            // This command describes the module anew. A server would do it while it serves.
            assert!(home.run(&home.modules(), &["tools"]).status.success());
        }
        let (mut client, _) = Client::open(&home, &home.modules(), "2025-06-18").await;
        for _ in 0..2 {
            // Every later description asks for this grant, also while the tools are called.
            let envelope = client.envelope("fickle_run", json!({})).await;
            assert_eq!(envelope["error_code"], "CAPABILITY_DENIED", "{cache}: {envelope}");
            assert_eq!(envelope["command_executed"], Value::Null);
        }
        survived(client).await;
    }
}

#[tokio::test]
async fn a_tool_that_says_it_only_looks_changes_nothing() {
    let directory = granted_directory();
    let file = directory.path().join("changed");
    let mut client = open().await;
    let path = json!({"path": text(&file)});
    let envelope = attack(&mut client, "escape_run_change", path.clone(), "CAPABILITY_DENIED").await;
    assert!(envelope["message"].as_str().is_some_and(|said| said.contains("plan")), "{envelope}");
    let envelope = attack(&mut client, "escape_apply", path, "READ_ONLY_TOOL").await;
    assert_eq!(envelope["command_executed"], Value::Null);
    survived(client).await;
    assert!(!file.exists());
}

#[tokio::test]
async fn what_a_module_prints_never_reaches_the_protocol_and_its_world_is_empty() {
    let mut client = open().await;
    // The client accepts nothing but JSON-RPC, and must not take this for the answer to its first request.
    let envelope = client.envelope("escape_environment", json!({})).await;
    let text = envelope["data"]["text"].as_str().expect("text");
    assert!(text.starts_with("0 variables, 0 arguments, 0 lines, root: "), "{text}");
    assert!(!text.contains("readable") && text.ends_with("written: false"), "{text}");
    survived(client).await;
    assert!(!Path::new("/tmp/linux-sysadmin-hostile").exists());
}

#[tokio::test]
async fn a_module_that_computes_for_ever_is_stopped() {
    stopped("escape_spin", "MODULE_TIME_LIMIT").await;
}

#[tokio::test]
async fn a_module_that_computes_keeps_nobody_waiting() {
    let mut client = open().await;
    let call = |tool: &str| json!({"name": tool, "arguments": {}});
    let mut spinning = Vec::new();
    for _ in 0..4 {
        spinning.push(client.ask("tools/call", call("escape_spin")).await);
    }
    let quick = client.ask("tools/call", call("escape_count")).await;
    let first = client.receive().await.expect("an answer");
    assert_eq!(first["id"], quick, "the quick call is answered while four others compute");
    for id in spinning {
        let answer = client.answer(id).await;
        assert_eq!(answer["result"]["structuredContent"]["error_code"], "MODULE_TIME_LIMIT", "{answer}");
    }
    survived(client).await;
}

#[tokio::test]
async fn a_module_that_calls_itself_for_ever_is_stopped() {
    stopped("escape_recurse", "MODULE_STACK_LIMIT").await;
}

#[tokio::test]
async fn a_module_that_takes_all_memory_is_stopped_and_it_is_given_back() {
    let mut client = open().await;
    for _ in 0..8 {
        attack(&mut client, "escape_memory", json!({}), "MODULE_MEMORY_LIMIT").await;
    }
    let peak = peak_memory(client.pid());
    assert!(peak < 400, "the server took {peak} MiB");
    survived(client).await;
}

#[tokio::test]
async fn a_module_whose_tables_grow_is_stopped() {
    stopped("raw_expand", "MODULE_TABLE_LIMIT").await;
}

#[tokio::test]
async fn a_reply_of_a_gigabyte_is_refused_and_never_held() {
    let mut client = open().await;
    for (tool, arguments, code) in [
        // The first answer is larger than the module's memory, the second isn't in the memory, the third is too long.
        ("escape_reply", json!({"kind": "huge"}), "MODULE_MEMORY_LIMIT"),
        ("raw_forge", json!({}), "MODULE_TRAPPED"),
        ("escape_reply", json!({"kind": "large"}), "REPLY_TOO_LARGE"),
    ] {
        attack(&mut client, tool, arguments, code).await;
    }
    let peak = peak_memory(client.pid());
    assert!(peak < 400, "the server took {peak} MiB");
    survived(client).await;
}

#[tokio::test]
async fn a_reply_that_is_not_what_was_described_is_refused() {
    let mut client = open().await;
    for (kind, word) in
        [("nonsense", "no JSON"), ("nested", "no JSON"), ("array", "object"), ("analysis", "summary")]
    {
        let kind = json!({"kind": kind});
        let envelope = attack(&mut client, "escape_reply", kind, "MODULE_INVALID_REPLY").await;
        assert!(envelope["message"].as_str().is_some_and(|said| said.contains(word)), "{envelope}");
        assert!(envelope.get("data").is_none(), "{envelope}");
    }
    survived(client).await;
}

#[tokio::test]
async fn a_module_that_calls_the_host_for_ever_is_stopped() {
    stopped("escape_calls", "MODULE_CALL_LIMIT").await;
}

#[tokio::test]
async fn a_module_that_hands_over_too_much_at_once_is_stopped() {
    stopped("escape_hand_over", "MODULE_CALL_SIZE_LIMIT").await;
}

#[tokio::test]
async fn a_module_that_waits_or_asks_the_time_for_ever_is_stopped() {
    let home = Home::new();
    fs::create_dir_all(home.config().parent().expect("a parent")).expect("a directory");
    fs::write(home.config(), "errors:\n  command_timeout_ceiling: 1\n").expect("written");
    add(&home, &component("escape"));
    let (mut client, _) = Client::open(&home, &modules(), "2025-06-18").await;
    for tool in ["escape_sleep", "escape_clock"] {
        attack(&mut client, tool, json!({}), "TOOL_TIMEOUT").await;
    }
    survived(client).await;
}

#[tokio::test]
async fn a_flood_of_printed_lines_leaves_a_hundred_in_the_log() {
    let mut client = Client::start_with(&HOME, &modules(), &[("LINUX_SYSADMIN_LOG", "info")]);
    client.initialize("2025-06-18").await;
    let envelope = client.envelope("escape_print", json!({})).await;
    assert_eq!(envelope["status"], "success", "{envelope}");
    assert_eq!(client.envelope("escape_count", json!({})).await["status"], "success");
    let peak = peak_memory(client.pid());
    assert!(peak < 400, "the server took {peak} MiB");
    let log = survived(client).await;
    let printed = log.lines().filter(|line| line.contains("printed by a guest")).count();
    assert_eq!(printed, 100);
    // These are the other lines, and the gigabyte without a newline.
    let more = (10_000_000 - 100 + 1).to_string();
    assert!(log.lines().any(|line| line.contains(&more)), "{log}");
    assert!(log.len() < 100 << 10, "{} bytes", log.len());
}

#[tokio::test]
async fn a_flood_of_progress_is_stopped_and_little_of_it_reaches_the_client() {
    let mut client = open().await;
    let meta = json!({"progressToken": "t"});
    let params = json!({"name": "escape_progress", "arguments": {}, "_meta": meta});
    let id = client.ask("tools/call", params).await;
    let mut bytes = 0;
    let answer = loop {
        let message = client.receive().await.expect("an answer");
        if message["id"] == id {
            break message;
        }
        assert_eq!(message["method"], "notifications/progress");
        bytes += message.to_string().len();
    };
    assert_eq!(answer["result"]["structuredContent"]["error_code"], "MODULE_CALL_LIMIT", "{answer}");
    assert!(bytes < 100 << 10, "{bytes} bytes");
    assert_eq!(client.envelope("escape_count", json!({})).await["status"], "success");
    survived(client).await;
}

#[tokio::test]
async fn commands_that_a_module_never_lets_go_are_few_and_end_with_the_call() {
    let mut client = open().await;
    let envelope = attack(&mut client, "escape_streams", json!({}), "TOO_MANY_COMMANDS").await;
    // Eight equal commands are shown once.
    assert_eq!(envelope["command_executed"], "sleep 86399", "{envelope}");
    survived(client).await;
}

#[tokio::test]
async fn a_module_that_lets_no_handle_go_is_stopped() {
    stopped("escape_handles", "MODULE_HANDLE_LIMIT").await;
}
