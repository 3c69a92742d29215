//! A module that is missing has no tools, and a broken module doesn't harm the others.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use linux_sysadmin_tests::{Client, Home, expected_tools, guest, has_fault_points, modules, probe, shipped};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Copies the components that ship to a directory of the test's own.
fn copied(home: &Home) -> PathBuf {
    let directory = home.path().join("modules");
    fs::create_dir(&directory).expect("a directory");
    for entry in fs::read_dir(modules()).expect("the modules").flatten() {
        fs::copy(entry.path(), directory.join(entry.file_name())).expect("a copy");
    }
    directory
}

/// The components in a directory.
fn components(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).expect("a directory").flatten().map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|kind| kind == "wasm")).collect()
}

/// Lists all components of a directory as components that ship. The program reads no component that isn't listed.
fn write_sums(directory: &Path) {
    let mut sums = String::new();
    for path in components(directory) {
        let bytes = if path.is_file() { fs::read(&path).expect("a component") } else { Vec::new() };
        let name = path.file_name().expect("a name").to_string_lossy();
        sums += &format!("{}  {name}\n", hex::encode(Sha256::digest(bytes)));
    }
    fs::write(directory.join("SHA256SUMS"), sums).expect("written");
}

fn tools(home: &Home, modules: &Path) -> Vec<String> {
    let output = home.run(modules, &["tools", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tools: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    tools
        .as_array()
        .expect("a list")
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn with_no_modules_there_are_no_tools() {
    let home = Home::new();
    let empty = home.path().join("empty");
    fs::create_dir(&empty).expect("a directory");
    let output = home.run(&empty, &["tools", "--json"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "[]");
    assert!(output.status.success());
}

#[test]
fn taking_one_component_away_takes_its_tools_and_nothing_else() {
    let home = Home::new();
    let directory = copied(&home);
    let all = tools(&home, &directory);
    for module in shipped() {
        let file = directory.join(format!("{}.wasm", module.name));
        let aside = home.path().join("aside.wasm");
        fs::rename(&file, &aside).expect("moved away");
        let left = tools(&home, &directory);
        fs::rename(&aside, &file).expect("moved back");
        let has_another = |tool: &String| {
            shipped().iter().any(|other| other.name != module.name && other.tools.contains(tool))
        };
        let expected: Vec<_> =
            all.iter().filter(|tool| !module.tools.contains(tool) || has_another(tool)).cloned().collect();
        assert_eq!(left, expected, "without {}", module.name);
    }
    // The modules' folders say independently which tools there are.
    let described: BTreeSet<_> = expected_tools().map(|(_, tool)| tool.name.clone()).collect();
    assert_eq!(described, all.into_iter().collect());
}

#[test]
fn no_tool_is_named_in_the_host() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host");
    let home = Home::new();
    let names = tools(&home, &modules());
    // Tests have recordings of answers of some tools.
    let is_test = |path: &Path| path.file_stem().is_some_and(|stem| stem == "tests");
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let mut directories = vec![source];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("the source").flatten() {
            if is_test(&entry.path()) {
                continue;
            }
            if entry.path().is_dir() {
                directories.push(entry.path());
                continue;
            }
            let bytes = fs::read(entry.path()).expect("a file");
            let text = String::from_utf8_lossy(&bytes);
            for word in text.split(|character| !is_word(character)) {
                assert!(
                    !names.iter().any(|name| name == word),
                    "{word} is named in {}",
                    entry.path().display()
                );
            }
        }
    }
}

#[tokio::test]
async fn a_broken_component_is_refused_by_name_and_the_others_work() {
    let home = Home::new();
    let directory = copied(&home);
    let good = fs::read(directory.join("cron.wasm")).expect("a component");
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle..middle + 64].fill(0xff);
    for (name, bytes) in [
        ("empty", &b""[..]),
        ("garbage", b"not wasm at all"),
        ("truncated", &good[..good.len() / 2]),
        ("flipped", &flipped),
        ("core", b"\0asm\x01\0\0\0"),
        ("text", b"(component)"),
    ] {
        fs::write(directory.join(format!("broken-{name}.wasm")), bytes).expect("written");
    }
    fs::write(directory.join("cron-again.wasm"), &good).expect("written");
    // These two would never end: a module that waits while it describes itself, and a pipe without a writer.
    fs::copy(guest("sleepy").join("sleepy.wasm"), directory.join("broken-sleepy.wasm")).expect("a copy");
    let pipe = directory.join("broken-pipe.wasm");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    write_sums(&directory);
    let (mut client, _) = Client::open(&home, &directory, "2025-06-18").await;
    let session = client.envelope("sysadmin_session_info", json!({})).await;
    let shown = session["data"]["modules"].to_string();
    for name in ["empty", "garbage", "truncated", "flipped", "core", "text", "sleepy", "pipe"] {
        assert!(shown.contains(&format!("broken-{name}")), "{name} is not reported: {shown}");
    }
    assert_eq!(
        client.envelope("cron_validate", json!({"expression": "* * * * *"})).await["status"],
        "success"
    );
    let (status, log) = client.close().await;
    assert!(status.success());
    assert!(log.contains("broken-truncated"), "{log}");
}

#[test]
fn a_damaged_cache_entry_is_made_anew_and_not_trusted() {
    let home = Home::cold();
    let directory = home.path().join("modules");
    fs::create_dir(&directory).expect("a directory");
    fs::copy(modules().join("cron.wasm"), directory.join("cron.wasm")).expect("a copy");
    write_sums(&directory);
    let answer =
        || home.call(&directory, "cron_validate", json!({"expression": "0 5 * * 1"})).1["data"].clone();
    let entries = || -> Vec<(PathBuf, Vec<u8>)> {
        let paths = fs::read_dir(home.cache()).expect("a cache").flatten().map(|entry| entry.path());
        let mut entries: Vec<_> =
            paths.map(|path| (path.clone(), fs::read(path).expect("an entry"))).collect();
        entries.sort();
        entries
    };
    let first = answer();
    let good = entries();
    assert_eq!(good.len(), 2, "code and description");
    let damages: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes.truncate(bytes.len() / 2),
        |bytes| bytes.clear(),
        |bytes| bytes.extend(b"more"),
        |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        },
    ];
    for damage in damages {
        for (path, bytes) in &good {
            let mut bytes = bytes.clone();
            damage(&mut bytes);
            fs::write(path, bytes).expect("written");
        }
        assert_eq!(answer(), first);
        assert!(entries() == good, "every entry is as it was before the damage");
    }
}

#[tokio::test]
async fn a_module_gets_what_it_was_granted_and_nothing_else() {
    let home = Home::new();
    let (mut client, _) = Client::open(&home, &probe(), "2025-06-18").await;
    let denied: &[Value] = &[
        json!({"argv": ["id"], "root": false}),
        json!({"argv": ["sh", "-c", "id"], "root": false}),
        json!({"argv": ["echo", "--", "-Hhost"], "root": false}),
        json!({"argv": ["echo", "--", "nginx;id"], "root": false}),
        json!({"argv": ["echo", "nginx"], "root": false}),
        json!({"argv": ["/bin/echo", "--", "nginx"], "root": false}),
        json!({"argv": ["echo", "--", "nginx"], "root": true}),
        json!({"argv": ["xargs", "id"], "root": false}),
    ];
    for arguments in denied {
        let envelope = client.envelope("probe_run", arguments.clone()).await;
        assert_eq!(envelope["error_code"], "CAPABILITY_DENIED", "{arguments}: {envelope}");
        assert_eq!(envelope["command_executed"], Value::Null, "{arguments}");
    }
    let ran = client.envelope("probe_run", json!({"argv": ["echo", "--", "nginx"], "root": false})).await;
    assert_eq!(ran["data"]["text"], "-- nginx\n", "{ran}");
    assert_eq!(ran["command_executed"], "echo -- nginx");
    for path in
        ["/etc/passwd", "/etc/shadow", "/etc/../etc/hostname", "/proc/self/environ", "etc/hostname", "/etc"]
    {
        let envelope = client.envelope("probe_read", json!({"path": path})).await;
        assert_eq!(envelope["error_code"], "CAPABILITY_DENIED", "{path}: {envelope}");
    }
    let envelope = client.envelope("probe_read", json!({"path": "/etc/hostname"})).await;
    assert_eq!(envelope["status"], "success", "{envelope}");
}

#[tokio::test]
async fn a_directory_of_data_is_read_through_wasi_and_nothing_around_it() {
    let home = Home::new();
    let (mut client, _) = Client::open(&home, &guest("reader"), "2025-06-18").await;
    let license = "/usr/share/common-licenses/GPL-3";
    let size = fs::metadata(license).expect("of Debian's base-files").len();
    let mut seen = async |path: &str| {
        let envelope = client.envelope("reader_data", json!({"path": path})).await;
        envelope["data"]["text"].as_str().unwrap_or_else(|| panic!("{envelope}")).to_owned()
    };
    assert_eq!(seen(license).await, format!("{size} bytes, changed: false"));
    // This link stays within the directory.
    assert_eq!(seen("/usr/share/common-licenses/GPL").await, format!("{size} bytes, changed: false"));
    for outside in [
        "/usr/share/common-licenses/../../../etc/hostname",
        "/usr/share/common-licenses/../doc",
        "/usr/share/not-there/x",
        "/usr/share/dict",
        "/etc/hostname",
        "/etc/passwd",
        "etc/passwd",
        "/proc/self/environ",
    ] {
        let text = seen(outside).await;
        assert!(!text.contains("bytes"), "{outside}: {text}");
    }
    assert_eq!(fs::metadata(license).expect("still there").len(), size);
}

#[tokio::test]
async fn more_calls_than_can_wait_are_told_so_and_the_others_go_on() {
    let home = Home::new();
    let (mut client, _) = Client::open(&home, &probe(), "2025-06-18").await;
    // The calls take almost as long as the tool may, so that none ends while they are being sent.
    let params = json!({"name": "probe_wait", "arguments": {"seconds": 9}});
    for _ in 0..1200 {
        client.ask("tools/call", params.clone()).await;
    }
    // 32 calls run, and 1,024 wait.
    for _ in 0..1200 - 32 - 1024 {
        let answer = client.receive().await.expect("an answer");
        assert_eq!(answer["result"]["structuredContent"]["error_code"], "SERVER_BUSY", "{answer}");
    }
    let (status, _) = client.close().await;
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn text_from_a_guest_is_made_visible() {
    let home = Home::new();
    let (mut client, _) = Client::open(&home, &probe(), "2025-06-18").await;
    let envelope = client.envelope("probe_hostile_text", json!({})).await;
    assert_eq!(envelope["data"]["text"], "\\u{1b}[2J\\u{202e}evil\\u{200b}");
}

#[tokio::test]
async fn a_client_that_asks_hears_how_far_a_long_call_is() {
    let home = Home::new();
    let (mut client, _) = Client::open(&home, &probe(), "2025-06-18").await;
    let params = json!({"name": "probe_wait", "arguments": {"seconds": 4}, "_meta": {"progressToken": "t"}});
    let id = client.ask("tools/call", params).await;
    let mut told: Vec<Value> = Vec::new();
    loop {
        let message = client.receive().await.expect("a message");
        if message["id"] == id {
            assert_eq!(message["result"]["structuredContent"]["data"]["text"], "waited");
            break;
        }
        assert_eq!(message["method"], "notifications/progress");
        told.push(message["params"].clone());
    }
    assert!(told.len() >= 2, "{told:?}");
    assert!(told.iter().all(|params| params["progressToken"] == "t"));
    let values: Vec<f64> = told.iter().map(|params| params["progress"].as_f64().expect("a number")).collect();
    assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "progress grows: {values:?}");
    assert!(
        told.iter()
            .any(|params| params["message"].as_str().is_some_and(|said| said.starts_with("waiting (")))
    );
}

#[tokio::test]
async fn waiting_is_not_computing_and_a_ceiling_ends_both() {
    let home = Home::new();
    fs::create_dir_all(home.config().parent().expect("a parent")).expect("a directory");
    fs::write(home.config(), "errors:\n  command_timeout_ceiling: 1\n").expect("written");
    let (mut client, _) = Client::open(&home, &probe(), "2025-06-18").await;
    // The tool may compute for 2 s, and waits for longer, so only the ceiling stops it.
    let envelope = client.envelope("probe_wait", json!({"seconds": 30})).await;
    assert_eq!(
        (&envelope["error_code"], &envelope["transient"]),
        (&json!("TOOL_TIMEOUT"), &json!(true)),
        "{envelope}"
    );
    assert!(envelope["message"].as_str().is_some_and(|said| said.contains("instant")), "{envelope}");
    // The call was tried again, and the ceiling holds for the second attempt as well.
    assert_eq!((&envelope["retried"], &envelope["retry_count"]), (&json!(true), &json!(1)), "{envelope}");
    let attempts = envelope["attempts"].as_array().expect("attempts");
    assert!(attempts.len() == 2 && attempts.iter().all(|attempt| attempt["error_code"] == "TOOL_TIMEOUT"));
    let mark = "86399.83";
    let envelope = client.envelope("probe_sleep", json!({"seconds": mark})).await;
    assert_eq!(envelope["error_category"], "timeout", "{envelope}");
    assert_eq!(envelope["command_executed"], format!("timeout 100000 sleep {mark}"));
    linux_sysadmin_tests::until_gone(mark);
}

#[test]
fn a_second_start_compiles_nothing_a_third_writes_nothing_and_descriptions_are_always_the_same() {
    use std::os::unix::fs::MetadataExt;
    let entries = |home: &Home| -> Vec<(PathBuf, u64, Vec<u8>)> {
        let mut entries: Vec<_> = fs::read_dir(home.cache())
            .expect("a cache")
            .flatten()
            .map(|entry| {
                (
                    entry.path(),
                    entry.metadata().expect("metadata").ino(),
                    fs::read(entry.path()).expect("read"),
                )
            })
            .collect();
        entries.sort();
        entries
    };
    let (home, other) = (Home::cold(), Home::cold());
    tools(&home, &home.modules());
    let first = entries(&home);
    assert_eq!(first.len(), 2 * components(&home.modules()).len());
    home.call(&home.modules(), "perf_uptime", json!({}));
    let second = entries(&home);
    let is_code = |entry: &&(PathBuf, u64, Vec<u8>)| entry.0.extension().is_some_and(|kind| kind == "cwasm");
    let code = |entries: &[_]| entries.iter().filter(is_code).cloned().collect::<Vec<_>>();
    assert!(code(&second) == code(&first), "nothing was compiled anew");
    home.call(&home.modules(), "perf_uptime", json!({}));
    assert!(entries(&home) == second, "what the files look like is kept by now");
    tools(&other, &other.modules());
    let others = entries(&other);
    let descriptions = |entries: &[(PathBuf, u64, Vec<u8>)]| -> Vec<Value> {
        let kept = entries.iter().filter(|entry| !is_code(entry));
        let read = |(_, _, bytes): &(PathBuf, u64, Vec<u8>)| {
            let (contents, _) = bytes.split_last_chunk::<32>().expect("a digest at its end");
            serde_json::from_slice(contents).expect("JSON")
        };
        kept.map(read).map(|kept: Value| kept["description"].clone()).collect()
    };
    assert!(descriptions(&others) == descriptions(&second));
}

/// Whether a server has the code of this module in its memory.
fn has_code(client: &Client, name: &str) -> bool {
    let component = fs::read(modules().join(name).with_extension("wasm")).expect("a component");
    let digest = Sha256::digest(component);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let maps = fs::read_to_string(format!("/proc/{}/maps", client.pid())).expect("what it has mapped");
    maps.lines().any(|line| line.contains(&digest) && line.ends_with(".cwasm"))
}

#[tokio::test]
async fn a_module_that_nobody_calls_gives_its_memory_back_and_comes_again() {
    if !has_fault_points("a_module_that_nobody_calls_gives_its_memory_back_and_comes_again") {
        return;
    }
    let home = Home::new();
    // The fault point stands for the time that passes.
    let mut client = Client::start_with(&home, &modules(), &[("LINUX_SYSADMIN_FAULT", "fail@keep-idle")]);
    client.initialize("2025-06-18").await;
    let calls = [
        ("cron", "cron_validate", json!({"expression": "* * * * *"})),
        ("performance", "perf_uptime", json!({})),
    ];
    for _ in 0..2 {
        for (at, (name, tool, arguments)) in calls.iter().enumerate() {
            assert_eq!(client.envelope(tool, arguments.clone()).await["status"], "success", "{tool}");
            assert!(has_code(&client, name), "{name} has run");
            assert!(!has_code(&client, calls[1 - at].0), "{} isn't called", calls[1 - at].0);
        }
    }
    client.close().await;
}
