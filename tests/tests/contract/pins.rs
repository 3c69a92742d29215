//! An operator adds, updates and removes third parties' modules, and a server loads nothing but what was pinned.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use linux_sysadmin_tests::{Client, Home, component, guest, modules};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub(super) fn said(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat()
}

/// Runs the program with these arguments, in this home and with its modules.
fn run(home: &Home, args: &[&str]) -> Output {
    home.run(&home.modules(), args)
}

/// Runs the program, which must succeed; gives its output.
pub(crate) fn done(home: &Home, args: &[&str]) -> String {
    let output = run(home, args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", said(&output));
    said(&output)
}

/// Runs the program, which must refuse with these words.
pub(super) fn refused(home: &Home, args: &[&str], words: &[&str]) {
    let output = run(home, args);
    let said = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{args:?}: {word} is not in: {said}");
    }
}

fn added(home: &Home, name: &str) {
    let output = home.add(&component(name));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

pub(crate) fn file(name: &str) -> String {
    component(name).to_str().expect("UTF-8").to_owned()
}

/// A command that runs the program at a terminal of its own, with pipes for input and output. It ends after some time, since
/// a question without an answer would wait for ever.
fn terminal(home: &Home, args: &[&str]) -> Command {
    let command = home.command(&home.modules(), args);
    let program = command.get_program().to_str().expect("UTF-8").to_owned();
    let line: Vec<String> = [program].into_iter().chain(args.iter().map(|arg| format!("'{arg}'"))).collect();
    let mut terminal = Command::new("timeout");
    terminal.args([
        "60",
        "script",
        "--quiet",
        "--return",
        "--flush",
        "--command",
        &line.join(" "),
        "/dev/null",
    ]);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => terminal.env(name, value),
            None => terminal.env_remove(name),
        };
    }
    terminal.stdin(Stdio::piped()).stdout(Stdio::piped());
    terminal
}

/// Runs the program at a terminal and types these lines; gives whether it succeeded, and its output.
pub(crate) fn typed(home: &Home, args: &[&str], lines: &str) -> (bool, String) {
    let mut child = terminal(home, args).spawn().expect("script, of util-linux");
    child.stdin.take().expect("stdin").write_all(lines.as_bytes()).expect("typed");
    let output = child.wait_with_output().expect("it ends");
    (output.status.success(), said(&output))
}

/// The path of the only component of a third party.
fn installed(home: &Home) -> PathBuf {
    let files = fs::read_dir(home.data()).expect("the modules").flatten().map(|entry| entry.path());
    let mut files = files.filter(|path| path.extension().is_some_and(|extension| extension == "wasm"));
    let file = files.next().expect("a component");
    assert_eq!(files.next(), None);
    file
}

fn tools(home: &Home) -> Vec<String> {
    let output = run(home, &["tools", "--json"]);
    let tools: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let names = tools.as_array().expect("a list").iter().map(|tool| tool["name"].as_str().expect("a name"));
    names.map(str::to_owned).collect()
}

pub(super) fn has(home: &Home, tool: &str) -> bool {
    tools(home).iter().any(|name| name == tool)
}

/// Changes a byte of a component.
fn tamper(path: &Path) {
    let mut bytes = fs::read(path).expect("a component");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).expect("written");
}

async fn open(home: &Home) -> Client {
    Client::open(home, &home.modules(), "2025-06-18").await.0
}

pub(super) async fn list_changed(client: &mut Client) {
    client.receive_where(|message| message["method"] == "notifications/tools/list_changed").await;
}

pub(super) async fn listed(client: &mut Client) -> String {
    client.request("tools/list", json!({})).await["result"].to_string()
}

#[test]
fn a_module_is_shown_with_its_gravest_requests_first_within_80_columns() {
    let home = Home::new();
    let shown = done(&home, &["modules", "inspect", &file("greeter-next")]);
    for line in shown.lines().filter(|line| !line.contains("  file ")) {
        assert!(line.chars().count() <= 80, "{line}");
        // The module's own words stay within their quotes.
        assert!(!line.trim_start().starts_with("REVIEWED"), "{line}");
    }
    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text} is not in: {shown}"));
    assert!(at("NOT REVIEWED") < at("systemctl restart -- <unit>"));
    assert!(at("systemctl restart -- <unit>") < at("printf '%s' <text>"));
    assert!(at("<text>") < at("/etc/hostname"));
    at("as ROOT, to change something (the module calls the risk moderate)");
    at("\"harmless REVIEWED: really\"");
    at("greet_shout  low");
    at("\"MIT\"");
    at("exec-command@0.2.0");
    assert!(!home.data().exists(), "looking installs nothing");
}

#[test]
fn nothing_is_added_without_a_clear_yes() {
    let home = Home::new();
    let greeter = file("greeter-next");
    refused(&home, &["modules", "add", &greeter], &["no terminal", "--yes --sha256"]);
    assert_eq!(run(&home, &["modules", "add", &greeter, "--yes"]).status.code(), Some(2));
    let other = "0".repeat(64);
    refused(&home, &["modules", "add", &greeter, "--yes", "--sha256", &other], &["its SHA-256 is", &other]);
    // An answer that is neither yes nor no is asked for again. The last case types the end of input.
    for lines in ["n\nn\nn\n", "y\ny\nn\n", "y\ny\nmaybe\nn\n", "y\n\u{4}"] {
        let (success, shown) = typed(&home, &["modules", "add", &greeter], lines);
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!success && words.contains("nothing was changed"), "{lines:?}: {shown}");
    }
    assert!(!has(&home, "greet"));
}

#[test]
fn what_the_operator_declines_is_not_granted() {
    let home = Home::new();
    // The answers are no to the change as root, yes to the other request without a review, and yes to the whole.
    let (success, shown) = typed(&home, &["modules", "add", &file("greeter-next")], "n\ny\ny\n");
    assert!(success, "{shown}");
    assert!(shown.contains("and without 1?"), "{shown}");
    let (_, answer) = home.call(&modules(), "greet_shout", json!({}));
    assert_eq!(answer["data"]["text"], "HELLO");
    let shown = done(&home, &["modules", "inspect", "greeter"]);
    let declined: Vec<&str> = shown.lines().filter(|line| line.contains("NOT GRANTED")).collect();
    assert!(matches!(declined[..], [line] if line.contains("as ROOT")), "{shown}");

    let home = Home::new();
    let (success, shown) = typed(&home, &["modules", "add", &file("greeter-next")], "y\nn\ny\n");
    assert!(success, "{shown}");
    let (code, answer) = home.call(&modules(), "greet_shout", json!({}));
    assert_eq!((code, &answer["error_code"]), (Some(1), &json!("CAPABILITY_DENIED")), "{answer}");
}

#[test]
fn tools_of_other_modules_are_asked_about_and_a_declined_one_is_denied() {
    // No module has the tool that is called.
    for (lines, code, granted) in [
        ("n\ny\n", "CAPABILITY_DENIED", json!(null)),
        ("y\ny\n", "UNKNOWN_TOOL", json!(["probe_hostile_text"])),
    ] {
        let home = Home::new();
        let (success, shown) = typed(&home, &["modules", "add", &file("relay")], lines);
        assert!(success, "{shown}");
        let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text} is not in: {shown}"));
        assert!(at("OTHER MODULES' TOOLS: looks by these") < at("probe_hostile_text"));
        let (_, answer) = home.call(&modules(), "relay_call", json!({}));
        assert_eq!(answer["data"], json!({"code": code}), "{answer}");
        let listed: Vec<Value> =
            serde_json::from_str(&done(&home, &["modules", "list", "--json"])).expect("JSON");
        let relay = listed.iter().find(|module| module["name"] == "relay").expect("listed");
        assert_eq!(relay["granted"]["tools"], granted, "{relay}");
        let shown = done(&home, &["modules", "inspect", "relay"]);
        assert_eq!(shown.contains("NOT GRANTED: with the rights of"), granted.is_null(), "{shown}");
    }
}

#[test]
fn an_added_module_gives_no_advice_about_other_modules_errors() {
    let home = Home::new();
    added(&home, "greeter");
    assert!(has(&home, "greet"));
    let (_, envelope) = home.call(&home.modules(), "file_read", json!({"path": "/etc/lsa-none"}));
    assert_eq!(envelope["error_code"], "FILE_NOT_FOUND", "{envelope}");
    let advice = envelope["remediation"].to_string();
    assert!(advice.contains("file_list") && !advice.contains("greet"), "{advice}");
}

#[test]
fn an_update_shows_what_is_wider_and_pins_the_new_bytes() {
    let home = Home::new();
    added(&home, "greeter");
    let next = file("greeter-next");
    let first = installed(&home);
    refused(&home, &["modules", "add", &next], &["modules update greeter"]);
    refused(&home, &["modules", "update", "greeter", &file("greeter")], &["the bytes that greeter has"]);
    refused(&home, &["modules", "update", "greeter", &file("shadow")], &["its name is shadow"]);
    refused(&home, &["modules", "update", "shadow", &next], &["no module named shadow"]);
    let (success, shown) = typed(&home, &["modules", "update", "greeter", &next], "n\nn\nn\n");
    assert!(!success && shown.contains("greeter stays as it is"), "{shown}");
    assert_eq!(installed(&home), first);

    let (success, shown) = typed(&home, &["modules", "update", "greeter", &next], "y\ny\ny\n");
    assert!(success, "{shown}");
    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text} is not in: {shown}"));
    assert!(at("greeter 1.0.0 -> 2.0.0") < at("WIDER"));
    assert!(at("WIDER") < at("systemctl restart -- <unit>"));
    assert!(at("systemctl restart -- <unit>") < at("greet_shout"));
    at("gone      greet_users");
    assert!(at("No longer asked for") < at("uptime"));
    // Only new requests are asked about.
    assert!(!shown[..at("Tools")].contains("/etc/hostname"), "{shown}");
    assert_ne!(installed(&home), first);
    assert!(has(&home, "greet_shout") && !has(&home, "greet_users"));
    let verified = done(&home, &["modules", "verify"]);
    assert!(verified.contains("ok        greeter (user)"), "{verified}");
}

#[test]
fn an_update_leaves_a_disabled_module_disabled_and_puts_a_damaged_one_right() {
    let home = Home::new();
    added(&home, "greeter");
    done(&home, &["modules", "disable", "greeter"]);
    let (success, shown) =
        typed(&home, &["modules", "update", "greeter", &file("greeter-next")], "y\ny\ny\n");
    assert!(success && shown.contains("NOT USED"), "{shown}");
    assert!(!has(&home, "greet"));
    done(&home, &["modules", "enable", "greeter"]);
    assert!(has(&home, "greet_shout"));
    tamper(&installed(&home));
    assert!(!has(&home, "greet"));
    // The only question left is whether to update.
    let (success, shown) = typed(&home, &["modules", "update", "greeter", &file("greeter-next")], "y\n");
    assert!(success, "{shown}");
    assert!(has(&home, "greet_shout"));
    done(&home, &["modules", "verify"]);
}

#[test]
fn what_happens_while_a_question_waits_is_not_undone_by_the_answer() {
    let home = Home::new();
    added(&home, "greeter");
    let args = ["modules", "update", "greeter", &file("greeter-next")];
    let mut child = terminal(&home, &args).spawn().expect("script, of util-linux");
    let mut asked = child.stdout.take().expect("stdout");
    let mut seen = String::new();
    let mut piece = [0; 4096];
    while !seen.contains("Grant this?") {
        let count = std::io::Read::read(&mut asked, &mut piece).expect("output");
        assert!(count > 0, "it never asked: {seen}");
        seen.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    done(&home, &["modules", "remove", "greeter"]);
    child.stdin.take().expect("stdin").write_all(b"y\ny\ny\n").expect("typed");
    let status = child.wait().expect("it ends");
    std::io::Read::read_to_string(&mut asked, &mut seen).expect("output");
    assert!(!status.success() && seen.contains("changed meanwhile"), "{seen}");
    assert!(!has(&home, "greet"));
}

#[tokio::test]
async fn a_pipe_in_the_place_of_a_file_keeps_nobody_waiting() {
    let home = Home::new();
    added(&home, "greeter");
    let mut client = open(&home).await;
    // Only a client that has a list is told of its changes.
    assert!(listed(&mut client).await.contains("greet_users"));
    let pipe = |path: &Path| {
        fs::remove_file(path).expect("removed");
        assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
    };
    pipe(&home.config());
    pipe(&home.data().join("modules.lock"));
    list_changed(&mut client).await;
    assert!(!listed(&mut client).await.contains("greet_users"));
    client.close().await;
    let output = run(&home, &["modules", "list"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("not a regular file"), "{}", said(&output));
}

#[tokio::test]
async fn what_a_lock_disables_stays_disabled_when_it_is_broken() {
    let home = Home::new();
    done(&home, &["modules", "disable", "cron"]);
    let mut client = open(&home).await;
    assert!(!listed(&mut client).await.contains("cron_"));
    let lock = home.data().join("modules.lock");
    let text = fs::read_to_string(&lock).expect("a lock");
    fs::write(&lock, format!("{text}zzz\n")).expect("written");
    list_changed(&mut client).await;
    assert!(!listed(&mut client).await.contains("cron_"));
    fs::write(&lock, text).expect("written");
    list_changed(&mut client).await;
    assert!(listed(&mut client).await.contains("perf_uptime"));
    client.close().await;
}

#[test]
fn a_component_that_is_not_as_pinned_is_refused_with_both_hashes_and_the_rest_works() {
    let home = Home::new();
    added(&home, "greeter");
    let path = installed(&home);
    let list = || -> Value {
        let output = run(&home, &["modules", "list", "--json"]);
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let pinned = list();
    let entry = |list: &Value| -> Value {
        let of_it = |entry: &&Value| entry["name"] == "greeter";
        list.as_array().expect("a list").iter().find(of_it).expect("greeter").clone()
    };
    let expected = entry(&pinned)["sha256"].as_str().expect("a hash").to_owned();
    // The cache now has the module's code and description, under the right hash.
    assert_eq!(home.call(&modules(), "greet", json!({})).0, Some(0));
    tamper(&path);
    assert!(!has(&home, "greet"));
    let shown = entry(&list());
    assert_eq!(shown["state"], "refused");
    let reason = shown["reason"].as_str().expect("a reason");
    assert!(reason.contains(&expected) && reason.matches(|c: char| c.is_ascii_hexdigit()).count() > 128);
    let table = done(&home, &["modules", "list"]);
    assert!(table.contains("NOT USED") && table.contains("greeter (user)"), "{table}");
    refused(&home, &["modules", "verify"], &["MISMATCH greeter (user)", &expected, "1 not as pinned"]);
    let (_, session) = home.call(&modules(), "sysadmin_session_info", json!({}));
    assert!(entry(&session["data"]["modules"])["error"].as_str().expect("why").contains(&expected));
    assert_eq!(home.call(&modules(), "cron_validate", json!({"expression": "* * * * *"})).0, Some(0));
    fs::remove_file(&path).expect("removed");
    refused(&home, &["modules", "verify"], &["MISMATCH greeter (user)", "No such file"]);
}

#[test]
fn a_component_of_the_hosts_own_is_pinned_as_well() {
    let home = Home::new();
    let own = home.path().join("own");
    fs::create_dir(&own).expect("a directory");
    for entry in fs::read_dir(modules()).expect("the modules").flatten() {
        fs::copy(entry.path(), own.join(entry.file_name())).expect("a copy");
    }
    assert!(home.run(&own, &["modules", "verify"]).status.success());
    assert_eq!(home.call(&own, "cron_validate", json!({"expression": "* * * * *"})).0, Some(0));
    tamper(&own.join("cron.wasm"));
    fs::copy(own.join("session.wasm"), own.join("stray.wasm")).expect("a copy");
    let output = home.run(&own, &["modules", "verify"]);
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    assert!(said.contains("MISMATCH  cron (host)") && said.contains("MISMATCH  stray (host)"), "{said}");
    assert!(said.contains("ok        session (host)"), "{said}");
    let tools = home.run(&own, &["tools"]);
    let tools = String::from_utf8_lossy(&tools.stdout);
    assert!(!tools.contains("cron_") && tools.contains("sysadmin_session_info"), "{tools}");
}

#[tokio::test]
async fn a_component_that_is_swapped_under_a_running_server_is_noticed_and_never_loaded() {
    let home = Home::new();
    added(&home, "greeter");
    let path = installed(&home);
    let good = fs::read(&path).expect("a component");
    let mut client = open(&home).await;
    assert!(listed(&mut client).await.contains("greet_users"));
    // `cp` puts another module in its place.
    fs::copy(component("shadow"), &path).expect("swapped");
    list_changed(&mut client).await;
    let list = listed(&mut client).await;
    assert!(!list.contains("greet_users") && !list.contains("shadow_tool"), "{list}");
    let session = client.envelope("sysadmin_session_info", json!({})).await;
    let reported = session["data"]["modules"].to_string();
    assert!(reported.contains("somebody has changed the file"), "{reported}");
    assert_eq!(client.call("greet", json!({})).await["code"], -32602);
    // `mv` puts the pinned module back.
    let aside = home.path().join("good.wasm");
    fs::write(&aside, good).expect("written");
    fs::rename(&aside, &path).expect("moved");
    list_changed(&mut client).await;
    assert_eq!(client.envelope("greet", json!({})).await["status"], "success");
    tamper(&path);
    list_changed(&mut client).await;
    let (status, _) = client.close().await;
    assert!(status.success());
    // The same holds after the next start.
    let mut client = open(&home).await;
    assert!(!listed(&mut client).await.contains("greet_users"));
    client.close().await;
}

/// Copies the component's folder, so that a test can exchange the file; gives the folder and the file.
fn own(home: &Home, name: &str) -> (PathBuf, PathBuf) {
    let (folder, own) = (guest(name), home.path().join("own"));
    fs::create_dir(&own).expect("a directory");
    for entry in fs::read_dir(folder).expect("the component").flatten() {
        fs::copy(entry.path(), own.join(entry.file_name())).expect("a copy");
    }
    let file = own.join(format!("{name}.wasm"));
    (own, file)
}

/// Changes the kept description of the only component.
fn edit_kept(home: &Home, edit: impl FnOnce(&mut Value)) {
    let kept = fs::read_dir(home.cache()).expect("a cache").flatten().map(|entry| entry.path());
    let mut kept = kept.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let path = kept.next().expect("a description");
    assert_eq!(kept.next(), None);
    edit_entry(&path, edit);
}

/// Changes an entry of the cache and corrects its digest. Only the account itself could do that.
fn edit_entry(path: &Path, edit: impl FnOnce(&mut Value)) {
    let entry = fs::read(path).expect("an entry");
    let (contents, _) = entry.split_last_chunk::<32>().expect("a digest at its end");
    let mut value = serde_json::from_slice(contents).expect("JSON");
    edit(&mut value);
    let text = value.to_string();
    let name = path.file_name().expect("a name").to_str().expect("UTF-8");
    let digest = Sha256::new().chain_update(name).chain_update(&text).finalize();
    fs::write(path, [text.as_bytes(), digest.as_slice()].concat()).expect("written");
}

async fn served(home: &Home, modules: &Path) -> Client {
    Client::open(home, modules, "2025-06-18").await.0
}

#[tokio::test]
async fn a_description_that_was_edited_where_it_is_kept_lowers_no_risk_and_grants_nothing() {
    let home = Home::cold();
    let (own, _) = own(&home, "greeter-next");
    let mut client = served(&home, &own).await;
    let list = listed(&mut client).await;
    client.close().await;
    let edits: [fn(&mut Value); 4] = [
        |kept| kept["tools"][1]["risk"] = json!("read-only"),
        |kept| {
            let mut tool = kept["tools"][0].clone();
            tool["name"] = json!("greet_more");
            kept["tools"].as_array_mut().expect("tools").push(tool);
        },
        |kept| kept["requests"]["commands"][0]["pattern"] = json!("id"),
        |kept| kept["requests"]["paths"][0]["glob"] = json!("/etc/passwd"),
    ];
    for edit in edits {
        edit_kept(&home, |kept| edit(&mut kept["description"]));
        let mut client = served(&home, &own).await;
        let refused = client.envelope("greet", json!({})).await;
        assert_eq!(refused["error_code"], "MODULE_UNAVAILABLE", "{refused}");
        assert!(refused["message"].to_string().contains("describes itself differently"), "{refused}");
        assert_eq!(refused["command_executed"], Value::Null, "{refused}");
        // From now on the module's own description counts, here and after the next start.
        assert_eq!(listed(&mut client).await, list);
        assert_eq!(client.envelope("greet", json!({})).await["status"], "success");
        client.close().await;
        let mut client = served(&home, &own).await;
        assert_eq!(client.envelope("greet", json!({})).await["status"], "success");
        client.close().await;
    }
}

#[tokio::test]
async fn a_component_that_is_listed_without_being_read_is_read_before_anything_of_it_runs() {
    let home = Home::cold();
    let (own, file) = own(&home, "greeter");
    assert_eq!(home.call(&own, "greet", json!({})).0, Some(0));
    // Another module takes its place, with a time that suggests it was there when the file was read.
    fs::copy(component("shadow"), &file).expect("swapped");
    let looks = fs::metadata(&file).expect("a file");
    edit_kept(&home, |kept| {
        kept["file"] = json!({
            "device": looks.dev(),
            "inode": looks.ino(),
            "size": looks.size(),
            "modified": [looks.mtime(), looks.mtime_nsec()],
            "changed": [looks.ctime(), looks.ctime_nsec()],
        });
    });
    // The server starts before anything has read the file.
    let mut client = served(&home, &own).await;
    let refused = client.envelope("greet", json!({})).await;
    assert_eq!(refused["error_code"], "MODULE_UNAVAILABLE", "{refused}");
    assert!(refused["message"].to_string().contains("somebody has changed the file"), "{refused}");
    client.close().await;
    // The server itself notices it after an answer.
    let mut client = served(&home, &own).await;
    assert!(listed(&mut client).await.contains("greet_users"));
    list_changed(&mut client).await;
    assert!(!listed(&mut client).await.contains("greet_users"));
    client.close().await;
}

/// Waits until the server has kept its list; gives the file's path.
async fn kept_list(home: &Home) -> PathBuf {
    let path = home.cache().join("tools");
    while !path.exists() {
        tokio::task::yield_now().await;
    }
    path
}

#[tokio::test]
async fn a_list_that_was_edited_where_it_is_kept_is_taken_back_and_nothing_is_called_by_it() {
    let home = Home::cold();
    let mut client = served(&home, &home.modules()).await;
    let list = listed(&mut client).await;
    let kept = kept_list(&home).await;
    client.close().await;
    edit_entry(&kept, |kept| {
        let tools = kept["all"]["tools"].as_array_mut().expect("tools");
        let mut more = tools[0].clone();
        more["name"] = json!("cron_more");
        tools.push(more);
    });
    let mut client = served(&home, &home.modules()).await;
    assert!(listed(&mut client).await.contains("cron_more"), "what is kept is what is given first");
    list_changed(&mut client).await;
    assert_eq!(listed(&mut client).await, list);
    client.close().await;
    edit_entry(&kept, |kept| {
        let tools = kept["all"]["tools"].as_array_mut().expect("tools");
        tools.retain(|tool| tool["name"] != "cron_validate");
    });
    // The modules' own descriptions count, and what only the kept list has is gone.
    let mut client = served(&home, &home.modules()).await;
    assert!(!listed(&mut client).await.contains("cron_validate"));
    let valid = client.envelope("cron_validate", json!({"expression": "* * * * *"})).await;
    assert_eq!(valid["status"], "success");
    assert_eq!(client.call("cron_more", json!({})).await["code"], -32602);
    client.close().await;
}

#[tokio::test]
async fn a_kept_list_is_given_to_clients_of_the_same_kind_and_for_the_same_modules_only() {
    let home = Home::cold();
    let mut lists = Vec::new();
    for _ in 0..2 {
        for asks in [false, true] {
            let mut client = Client::start(&home, &home.modules());
            if asks {
                client.can(json!({"elicitation": {}}));
            }
            client.initialize("2025-06-18").await;
            lists.push(listed(&mut client).await);
            kept_list(&home).await;
            client.close().await;
        }
    }
    assert_eq!((&lists[0], &lists[1]), (&lists[2], &lists[3]));
    assert_ne!(lists[0], lists[1], "who is asked in a second call is told how to answer");
    let (own, _) = own(&home, "greeter");
    let mut client = served(&home, &own).await;
    let list = listed(&mut client).await;
    assert!(list.contains("greet_users") && !list.contains("cron_"), "{list}");
    client.close().await;
}

#[tokio::test]
async fn a_change_is_told_of_where_no_module_was_looked_into_yet() {
    let home = Home::cold();
    let mut client = served(&home, &home.modules()).await;
    listed(&mut client).await;
    kept_list(&home).await;
    client.close().await;
    let mut client = served(&home, &home.modules()).await;
    added(&home, "greeter");
    list_changed(&mut client).await;
    assert!(listed(&mut client).await.contains("greet_users"));
    client.close().await;
}

#[tokio::test]
async fn a_running_server_follows_what_the_operator_does() {
    let home = Home::new();
    // There is no module of a third party yet, and no directory for them.
    let mut client = open(&home).await;
    assert!(!home.data().exists());
    assert!(!listed(&mut client).await.contains("greet_users"));
    added(&home, "greeter");
    list_changed(&mut client).await;
    assert_eq!(client.envelope("greet", json!({})).await["status"], "success");

    let sha256 = |home: &Home| {
        let output = run(home, &["modules", "list", "--json"]);
        let listed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let mut all = listed.as_array().expect("a list").iter();
        let found = all.find(|entry| entry["name"] == "greeter").expect("greeter");
        format!("sha256:{}", found["sha256"].as_str().expect("a hash"))
    };
    let by_hash = sha256(&home);
    for wanted in ["greeter", &by_hash] {
        done(&home, &["modules", "disable", wanted]);
        list_changed(&mut client).await;
        assert!(!listed(&mut client).await.contains("greet_users"), "{wanted}");
        done(&home, &["modules", "enable", wanted]);
        list_changed(&mut client).await;
        assert!(listed(&mut client).await.contains("greet_users"), "{wanted}");
    }

    // The configuration is changed in the ways in which editors do it.
    let config = fs::read_to_string(home.config()).expect("the configuration");
    for (from, to) in [
        ("  disabled: []", format!("  disabled: ['{by_hash}']")),
        ("  disabled: []", "  disabled: [greeter]".to_owned()),
        ("  policy: pinned", "  policy: builtin-only".to_owned()),
    ] {
        assert!(config.contains(from));
        let aside = home.config().with_extension("new");
        fs::write(&aside, config.replace(from, &to)).expect("written");
        fs::rename(aside, home.config()).expect("moved");
        list_changed(&mut client).await;
        assert!(!listed(&mut client).await.contains("greet_users"), "{to}");
        let session = client.envelope("sysadmin_session_info", json!({"show_modules": true})).await;
        let session = session["data"]["modules"].to_string();
        assert!(session.contains("of the configuration"), "{session}");
        fs::write(home.config(), &config).expect("written");
        list_changed(&mut client).await;
        assert!(listed(&mut client).await.contains("greet_users"), "{to}");
    }

    // This module is one of the host's own.
    done(&home, &["modules", "disable", "cron"]);
    list_changed(&mut client).await;
    assert!(!listed(&mut client).await.contains("cron_validate"));
    let gone = client.call("cron_validate", json!({"expression": "* * * * *"})).await;
    let said = gone["message"].as_str().unwrap_or_default();
    assert!(said.contains("a tool of the module cron, which isn't used"), "{gone}");
    done(&home, &["modules", "enable", "cron"]);
    list_changed(&mut client).await;

    done(&home, &["modules", "remove", "greeter"]);
    list_changed(&mut client).await;
    assert!(!listed(&mut client).await.contains("greet_users"));
    client.close().await;
}

#[tokio::test]
async fn a_configuration_that_cannot_be_read_while_the_server_runs_changes_nothing_and_is_reported() {
    let home = Home::new();
    added(&home, "greeter");
    let mut client = open(&home).await;
    assert!(listed(&mut client).await.contains("greet_users"));
    let config = fs::read_to_string(home.config()).expect("the configuration");
    let disabled = config.replace("  disabled: []", "  disabled: [greeter]");
    fs::write(home.config(), &disabled).expect("written");
    list_changed(&mut client).await;
    fs::write(home.config(), "modules: [\n").expect("written");
    // The former configuration still holds, and the log says that the new one isn't followed.
    loop {
        let session = client.envelope("sysadmin_session_info", json!({})).await;
        if let Some(error) = session["data"]["config_error"].as_str() {
            assert!(error.contains("config.yaml, line 1"), "{error}");
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(!listed(&mut client).await.contains("greet_users"));
    client.close().await;
}

#[tokio::test]
async fn a_module_whose_compiled_form_is_gone_comes_a_little_later() {
    let home = Home::cold();
    added(&home, "greeter");
    fs::remove_dir_all(home.cache()).expect("the cache");
    let mut client = open(&home).await;
    if !listed(&mut client).await.contains("greet_users") {
        list_changed(&mut client).await;
    }
    assert_eq!(client.envelope("greet", json!({})).await["status"], "success");
    client.close().await;
}

#[test]
fn two_modules_with_one_tool_name_need_the_operators_word() {
    let home = Home::new();
    let shadow = home.add(&component("shadow"));
    assert_eq!(shadow.status.code(), Some(1));
    let words: Vec<String> = said(&shadow).split_whitespace().map(str::to_owned).collect();
    let said = words.join(" ");
    for word in ["module cron, which comes with the host", "a tool cron_validate", "--replace"] {
        assert!(said.contains(word), "{word} is not in: {said}");
    }
    let (success, shown) = typed(&home, &["modules", "add", &file("shadow"), "--replace"], "y\n");
    assert!(success, "{shown}");
    let (_, answer) = home.call(&modules(), "cron_validate", json!({}));
    assert_eq!(answer["data"]["text"], "anything goes");
    assert!(has(&home, "cron_next_runs"), "the other tools of the module stay");
    done(&home, &["modules", "remove", "shadow"]);
    let (_, answer) = home.call(&modules(), "cron_validate", json!({"expression": "* * * * *"}));
    assert_eq!(answer["data"]["valid"], true, "{answer}");
}

#[test]
fn what_does_not_exist_or_is_nothing_is_said_to_be_so() {
    let home = Home::new();
    let text = home.path().join("text.wasm");
    fs::write(&text, "(component)").expect("written");
    let text = text.to_str().expect("UTF-8");
    for (args, words) in [
        (&["inspect", "nobody"][..], &["no module named nobody"][..]),
        (&["inspect", "./nobody.wasm"], &["nobody.wasm", "No such file"]),
        (&["inspect", text], &["not a WebAssembly component"]),
        (&["add", text], &["not a WebAssembly component"]),
        (&["remove", "nobody"], &["no module named nobody"]),
        (&["remove", "cron"], &["cron comes with the program", "modules disable cron"]),
        (&["disable", "nobody"], &["no module named nobody"]),
        (&["enable", "nobody"], &["no module named nobody"]),
        (&["update", "nobody", text], &["no module named nobody"]),
    ] {
        refused(&home, &[&["modules"], args].concat(), words);
    }
    for wrong in ["sha256:abc", "../x", ""] {
        assert_eq!(run(&home, &["modules", "disable", wrong]).status.code(), Some(2), "{wrong}");
    }
    assert!(!home.data().exists());
}

#[test]
fn nothing_of_this_can_be_reached_over_mcp() {
    let home = Home::new();
    let list = done(&home, &["tools"]);
    for word in ["install", "grant", "pin", "enable", "disable", "trust"] {
        assert!(
            !list.contains(&format!("modules_{word}")) && !list.contains(&format!("{word}_module")),
            "{list}"
        );
    }
}
