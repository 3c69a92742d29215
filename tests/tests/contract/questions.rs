//! What an operator is asked when a module is added, what the program says of grants, and what a wildcard yields.

use std::fs;

use linux_sysadmin_tests::{Home, component, modules};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::pins::{done, file, typed};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes a directory that the module's wildcards cover, at a path that the host accepts for root and for other accounts.
fn directory() -> TempDir {
    let below = if is_root() { "/run" } else { "/tmp" };
    tempfile::Builder::new().prefix("linux-sysadmin-curious-").tempdir_in(below).expect("a directory")
}

/// A home with the module, all of whose requests are granted.
fn home() -> Home {
    let home = Home::new();
    let output = home.add(&component("curious"));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    home
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn looks_as_the_servers_own_account_are_one_question_and_the_gravest_comes_first() {
    let home = Home::new();
    let (success, shown) = typed(&home, &["modules", "add", &file("curious")], "y\ny\ny\ny\n");
    assert!(success, "{shown}");
    assert_eq!(shown.matches("[y/N").count(), 4, "{shown}");
    let words = in_one_line(&shown);
    let at = |text: &str| words.find(text).unwrap_or_else(|| panic!("{text} is not in: {words}"));
    assert!(at("A CHANGE BY ANOTHER NAME") < at("full control of the machine"));
    assert!(at("full control of the machine") < at("factor <int>"));
    assert!(at("printf '%s' <text>") < at("factor <int>"));
    // Full control is said of the change, and of the looks only where the account is root.
    let said = words.matches("full control of the machine").count();
    assert_eq!(said, if is_root() { 4 } else { 2 }, "{words}");
    assert_eq!(words.contains("which is ROOT where the server runs as this command does"), is_root());
    // What was reviewed is not asked about.
    assert!(words.rfind("pacman --query") < words.find("Grant this?"), "{words}");
    let count = if is_root() { 6 } else { 4 };
    at(&format!("Grant all {count} looks? [y/N/each]"));
    at("curious_touch ends with CAPABILITY_DENIED where it needs this and you decline.");
    at("those of its tools that need one of these end with CAPABILITY_DENIED: curious_read, curious_touch");
}

#[test]
fn a_package_manager_is_added_by_five_questions_and_the_gravest_is_the_first() {
    let home = Home::new();
    let (success, shown) = typed(&home, &["modules", "add", &file("packages-pacman")], "y\ny\ny\ny\ny\n");
    assert!(success, "{shown}");
    assert_eq!(shown.matches("[y/N").count(), 5, "{shown}");
    let first = in_one_line(shown.split("Grant this?").next().expect("a question"));
    let asked =
        first.rfind("as ROOT, to change something (the module calls the risk high)").expect("a change");
    assert!(first[asked..].contains("pacman --remove --cascade [--nosave] --noconfirm"), "{first}");
}

#[test]
fn a_list_can_be_answered_one_by_one_and_what_is_declined_is_listed() {
    let home = Home::new();
    let looks = if is_root() { 6 } else { 4 };
    // The answers are no to both requests that change something, no to the first look, and yes to the others.
    let lines = format!("n\nn\neach\nn\n{}y\n", "y\n".repeat(looks - 1));
    let (success, shown) = typed(&home, &["modules", "add", &file("curious")], &lines);
    assert!(success && shown.contains("and without 3?"), "{shown}");
    let listed: Vec<Value> =
        serde_json::from_str(&done(&home, &["modules", "list", "--json"])).expect("JSON");
    let curious = listed.iter().find(|module| module["name"] == "curious").expect("listed");
    let declined = curious["not_granted"]["commands"].as_array().expect("commands");
    let mut patterns: Vec<&str> =
        declined.iter().map(|command| command["pattern"].as_str().expect("text")).collect();
    patterns.sort_unstable();
    let touch = "touch -- <path:/srv/curious/*>";
    assert_eq!(patterns, ["printf '%s' <text>", touch, touch]);
    let table = in_one_line(&done(&home, &["modules", "list"]));
    let line = table.split_once("Declined, so that").expect("the declined requests").1;
    assert!(line.contains("curious (user)") && line.contains("`printf '%s' <text>`"), "{table}");
    // Of all, none is granted where the answer is no.
    let home = Home::new();
    let (success, shown) = typed(&home, &["modules", "add", &file("curious")], "n\nn\nn\ny\n");
    assert!(success && shown.contains(&format!("and without {}?", looks + 2)), "{shown}");
}

#[test]
fn modules_that_do_not_serve_this_machine_are_listed_with_the_reason() {
    let home = Home::new();
    let listed: Vec<Value> =
        serde_json::from_str(&done(&home, &["modules", "list", "--json"])).expect("JSON");
    // No machine has every package manager.
    let reasons: Vec<&str> = listed.iter().filter_map(|module| module["not_served_here"].as_str()).collect();
    assert!(reasons.iter().any(|reason| reason.contains("it needs package_manager to be")), "{listed:?}");
    let table = in_one_line(&done(&home, &["modules", "list"]));
    let (_, not_served) = table.split_once("Not served here").expect("the heading");
    assert!(reasons.iter().all(|reason| not_served.contains(reason)), "{table}");
}

#[test]
fn a_grant_that_the_policy_never_lets_run_is_said_by_name() {
    let home = Home::new();
    let shown = in_one_line(&done(&home, &["modules", "inspect", &file("curious")]));
    let (_, never) = shown.split_once("NEVER RUNS").expect("the heading");
    assert!(never.contains("touch -- <path:/srv/curious/*>, to simulate a change"), "{shown}");
    assert!(never.contains("(rule ") && !never.contains("<path:/srv/curious/*>, to change"), "{shown}");
    let listed: Vec<Value> =
        serde_json::from_str(&done(&home, &["modules", "list", "--json"])).expect("JSON");
    for module in listed {
        let name = module["name"].as_str().expect("a name");
        let shown = done(&home, &["modules", "inspect", name]);
        assert!(!shown.contains("NEVER RUNS"), "{shown}");
    }
}

#[test]
fn what_a_wildcard_yields_has_no_key_and_no_password_wherever_a_part_begins() {
    let home = home();
    let directory = directory();
    let path = directory.path().join("settings");
    let key = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49\n-----END PRIVATE KEY-----\n";
    let text = format!("user=ada\npassword=hunter2\n{key}port=22\n");
    fs::write(&path, &text).expect("written");
    let read = |offset: i64, length: usize| {
        let arguments = json!({"path": path, "offset": offset, "length": length});
        let (_, answer) = home.call(&modules(), "curious_read", arguments);
        let backwards = answer["data"]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        backwards.chars().rev().collect::<String>()
    };
    let whole = read(0, 1 << 20);
    assert_eq!(whole.len(), text.len());
    assert!(whole.starts_with("user=ada\npassword=*******\n*") && whole.ends_with("*\nport=22\n"), "{whole}");
    let within = |part: &str| i64::try_from(text.find(part).expect("in it")).expect("small");
    for (offset, length) in [
        (within("hunter2"), 7),
        (within("nter2"), 30),
        (within("MIGHAg"), 12),
        (within("qGSM49"), 40),
        (-8, 100),
        (-60, 100),
        (0, 20),
    ] {
        let begin = if offset < 0 { text.len() - offset.unsigned_abs() as usize } else { offset as usize };
        let part = read(offset, length);
        assert_eq!(part, whole[begin..(begin + length).min(text.len())], "{offset} {length}");
    }
}

#[test]
fn a_module_that_panics_is_quoted_with_its_last_words() {
    let (code, answer) = home().call(&modules(), "curious_break", json!({}));
    assert_eq!((code, &answer["error_code"]), (Some(1), &json!("MODULE_TRAPPED")), "{answer}");
    let message = answer["message"].as_str().expect("a message");
    assert!(message.contains("it printed last: \"") && message.contains("there is no row 7"), "{message}");
}
