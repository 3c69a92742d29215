//! `linux-sysadmin doctor`: what is wrong is named with its remedy.

use std::fs;
use std::path::Path;

use linux_sysadmin_tests::{Home, modules};
use serde_json::{Value, json};

/// Runs the doctor; gives the exit code and its findings of one area.
fn findings(home: &Home, modules: &Path, area: &str) -> (Option<i32>, Vec<Value>) {
    let output = home.run(modules, &["doctor", "--json"]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let said: Value =
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("no JSON ({error}): {out}\n{err}"));
    assert_eq!(said["all_right"], output.status.code() == Some(0), "{said}");
    let all = said["findings"].as_array().expect("findings").iter();
    (output.status.code(), all.filter(|finding| finding["area"] == area).cloned().collect())
}

/// The first finding of an area that is an error, which has to have a remedy.
fn error(home: &Home, modules: &Path, area: &str) -> String {
    let (code, findings) = findings(home, modules, area);
    assert_eq!(code, Some(1), "{findings:?}");
    let error = findings.iter().find(|finding| finding["status"] == "error");
    let error = error.unwrap_or_else(|| panic!("no error: {findings:?}"));
    assert!(error["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "{error}");
    error["found"].as_str().expect("a text").to_owned()
}

#[test]
fn nothing_is_wrong_with_a_new_home_and_nothing_is_written_into_it() {
    let home = Home::new();
    let (code, found) = findings(&home, &modules(), "modules");
    assert_eq!(code, Some(0), "{found:?}");
    assert_eq!(found[0]["status"], "ok", "{found:?}");
    assert!(!home.config().exists(), "it only looks");
    let output = home.run(&modules(), &["doctor"]);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.lines().next().is_some_and(|line| line.starts_with("ok       configuration: ")), "{shown}");
}

#[test]
fn a_configuration_that_stops_the_start_is_named_with_its_line() {
    let home = Home::new();
    fs::create_dir_all(home.config().parent().expect("a parent")).expect("a directory");
    for (text, word) in [
        ("output:\n  colour: red\n", "line 2"),
        ("policy:\n  include_builtin: false\n", "needs a path"),
        ("inventory: [/no/such/inventory]\n", "/no/such/inventory"),
    ] {
        fs::write(home.config(), text).expect("written");
        let found = error(&home, &modules(), "configuration");
        assert!(found.contains(word), "{text}: {found}");
    }
}

#[test]
fn a_module_that_somebody_has_changed_is_named() {
    let home = Home::cold();
    let (code, found) = findings(&home, &home.modules(), "modules");
    assert_eq!(code, Some(0), "{found:?}");
    let component = home.modules().join("cron.wasm");
    let mut bytes = fs::read(&component).expect("the component");
    bytes.push(0);
    fs::write(&component, bytes).expect("written");
    let found = error(&home, &home.modules(), "modules");
    assert!(found.starts_with("cron is not used: ") && found.contains("SHA-256"), "{found}");
    // Without any module there is nothing to do for a client.
    let none = home.path().join("none");
    fs::create_dir(&none).expect("a directory");
    assert!(error(&home, &none, "modules").contains("clients see no tools"));
}

#[test]
fn a_client_that_starts_a_program_that_is_gone_is_named() {
    let home = Home::new();
    let (_, found) = findings(&home, &modules(), "clients");
    assert_eq!(found[0]["status"], "warning", "{found:?}");
    let remedy = found[0]["remedy"].as_str().expect("a remedy");
    assert!(remedy.contains("claude mcp add linux-sysadmin-mcp -- /"), "{remedy}");
    let server = json!({"command": "/no/such/linux-sysadmin", "args": ["serve"]});
    let settings = json!({"mcpServers": {"linux-sysadmin-mcp": server}}).to_string();
    fs::write(home.path().join(".claude.json"), settings).expect("written");
    let found = error(&home, &modules(), "clients");
    assert!(found.contains("/no/such/linux-sysadmin"), "{found}");
}

#[test]
fn a_host_that_does_not_answer_is_named() {
    let home = Home::new();
    fs::create_dir_all(home.config().parent().expect("a parent")).expect("a directory");
    // This is an address of this machine. Whatever listens there, nobody knows its key by this name.
    fs::write(home.config(), "ssh:\n  target: 127.0.0.254\n").expect("written");
    let found = error(&home, &modules(), "ssh");
    assert!(found.starts_with("127.0.0.254 can't be reached: "), "{found}");
}
