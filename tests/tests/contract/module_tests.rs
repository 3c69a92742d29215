//! `modules test` tries a component in the real host, on recordings of machines; `modules record` makes such recordings.

use std::fs;
use std::path::{Path, PathBuf};

use linux_sysadmin_tests::{Home, component};
use serde_json::Value;

/// The transcripts of the package manager that exists only in tests.
fn transcripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("outside/packages-toy/tests/transcripts")
}

/// The same transcripts in a folder of the test's own, with one file of the machine changed.
fn changed(home: &Home, name: &str, change: impl Fn(&str) -> String) -> PathBuf {
    let folder = home.path().join("transcripts");
    let machine = folder.join("toy");
    fs::create_dir_all(&machine).expect("a folder");
    for entry in fs::read_dir(transcripts().join("toy")).expect("transcripts").flatten() {
        let text = fs::read_to_string(entry.path()).expect("a transcript");
        let text = if entry.file_name() == name { change(&text) } else { text };
        fs::write(machine.join(entry.file_name()), text).expect("written");
    }
    folder
}

fn tested(home: &Home, name: &str, transcripts: &Path) -> (Option<i32>, Vec<Value>) {
    let (file, transcripts) = (component(name), transcripts.to_str().expect("UTF-8"));
    let args = ["modules", "test", file.to_str().expect("UTF-8"), "--transcripts", transcripts, "--json"];
    let output = home.run(&home.modules(), &args);
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), report["checks"].as_array().expect("checks").clone())
}

/// The checks that failed, with their reasons, as one text.
fn failures(checks: &[Value]) -> String {
    let failed = checks.iter().filter(|check| check["outcome"] == "failed");
    failed.map(|check| format!("{}: {}\n", check["check"], check["reasons"])).collect()
}

/// Asserts that a package manager passes each check of both suites.
fn passes(home: &Home, name: &str, transcripts: &Path) {
    let (code, checks) = tested(home, name, transcripts);
    assert_eq!((failures(&checks).as_str(), code), ("", Some(0)));
    let of = |suite: &str| checks.iter().filter(|check| check["suite"] == suite).count();
    assert!(of("standard") > 50 && of("calls") > 10 && of("packages") > 10, "{checks:?}");
    assert!(checks.iter().all(|check| check["outcome"] == "passed"), "{checks:?}");
}

#[test]
fn a_package_manager_passes_the_standard_suite_and_that_of_its_domain() {
    let home = Home::new();
    passes(&home, "packages-toy", &transcripts());
    // The account has no module more, and nothing on record.
    assert!(!home.data().exists());
    assert!(home.audit().is_empty());
}

#[test]
fn the_module_for_pacman_passes_them_on_recordings_of_the_real_program() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/examples/packages-pacman");
    passes(&Home::new(), "packages-pacman", &example.join("tests/transcripts"));
}

#[test]
fn a_command_that_was_not_recorded_is_named_with_the_call_that_runs_it() {
    let home = Home::new();
    let without = |text: &str| text.replace("$ toypkg names\n", "$ toypkg other\n");
    let folder = changed(&home, "commands.txt", without);
    let (code, checks) = tested(&home, "packages-toy", &folder);
    let failures = failures(&checks);
    assert_eq!(code, Some(1));
    assert!(failures.contains("`toypkg names` is not recorded"), "{failures}");
    // What is recorded for another version of the module is told as well.
    assert!(failures.contains("no call runs `toypkg other`"), "{failures}");
}

#[test]
fn a_tool_that_no_call_shows_fails_its_story_and_its_grants_are_unused() {
    let home = Home::new();
    let without = |text: &str| text.split("- tool: pkg_purge").next().expect("a beginning").to_owned();
    let (code, checks) = tested(&home, "packages-toy", &changed(&home, "calls.yaml", without));
    let failures = failures(&checks);
    assert_eq!(code, Some(1));
    for expected in [
        "pkg_purge is tried",
        "`toypkg purge -- <package>...` to change is used",
        "no recorded call of pkg_purge",
    ] {
        assert!(failures.contains(expected), "{expected}: {failures}");
    }
}

#[test]
fn what_a_call_should_give_and_does_not_is_told() {
    let home = Home::new();
    let other = |text: &str| text.replace(r#"candidate: "2.0"}"#, r#"candidate: "3.0"}"#);
    let (code, checks) = tested(&home, "packages-toy", &changed(&home, "calls.yaml", other));
    let failures = failures(&checks);
    assert_eq!(code, Some(1));
    assert!(failures.contains("data.candidate"), "{failures}");
}

#[test]
fn a_command_that_no_grant_allows_is_refused_as_by_a_server() {
    let home = Home::new();
    // The machine serves the module and has the file and the command that it asks for.
    let machine = home.path().join("transcripts/some");
    fs::create_dir_all(&machine).expect("a folder");
    fs::write(machine.join("machine.yaml"), "facts: {family: debian, user: root}\n").expect("written");
    fs::write(machine.join("commands.txt"), "$ uptime\n[exit 0]\nup 1 day\n").expect("written");
    fs::write(machine.join("etc.files"), "==> /etc/hostname <==\nsample\n").expect("written");
    let calls = "calls:\n- {tool: greet, has: {text: 'hello, sample'}}\n- {tool: greet_users, has: {text: \"up 1 day\\n\"}}\n";
    fs::write(machine.join("calls.yaml"), calls).expect("written");
    let (code, checks) = tested(&home, "greeter", &home.path().join("transcripts"));
    assert_eq!((failures(&checks).as_str(), code), ("", Some(0)));
    // Another file than the granted one is out of reach, and so is a file of this machine.
    fs::remove_file(machine.join("etc.files")).expect("removed");
    let (code, checks) = tested(&home, "greeter", &home.path().join("transcripts"));
    let failures = failures(&checks);
    assert_eq!(code, Some(1));
    assert!(failures.contains("FILE_NOT_FOUND"), "{failures}");
}

#[test]
fn a_careless_module_fails_by_what_it_does_wrong() {
    let home = Home::new();
    let machine = home.path().join("transcripts/some");
    fs::create_dir_all(&machine).expect("a folder");
    fs::write(machine.join("machine.yaml"), "facts: {family: debian, user: root}\n").expect("written");
    fs::write(machine.join("commands.txt"), "$ lookup example.org a\n[exit 0]\nfound\n").expect("written");
    let calls = "calls:\n- {tool: careless_look, arguments: {name: a}, has: {first: found}}\n";
    fs::write(machine.join("calls.yaml"), calls).expect("written");
    let (code, checks) = tested(&home, "careless", &home.path().join("transcripts"));
    assert_eq!(code, Some(1));
    let failures = failures(&checks);
    for expected in [
        "careless_look refuses hostile arguments",
        "it became an option of `lookup example.org --hostile`",
        "careless_look bears commands that print nothing",
        "MODULE_TRAPPED",
        "the grant `lookup --never` to look is used",
    ] {
        assert!(failures.contains(expected), "{expected}: {failures}");
    }
    // The call itself is right.
    assert!(checks.iter().any(|check| check["suite"] == "calls" && check["outcome"] == "passed"));
}

#[test]
fn without_transcripts_the_component_alone_is_checked() {
    let home = Home::new();
    let file = component("greeter");
    let output = home.run(&home.modules(), &["modules", "test", file.to_str().expect("UTF-8")]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("ok    standard: the description is stable"), "{text}");
    assert!(text.contains("skip  standard: its tools are tried"), "{text}");
    let file = home.path().join("no.wasm");
    fs::write(&file, "no component").expect("written");
    let output = home.run(&home.modules(), &["modules", "test", file.to_str().expect("UTF-8")]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("FAIL  standard: the component loads"), "{text}");
}

#[test]
fn transcripts_that_cannot_be_read_are_wrong_usage() {
    let home = Home::new();
    let broken = |text: &str| text.replacen("[exit 0]", "exit 0", 1);
    let folder = changed(&home, "commands.txt", broken);
    let file = component("packages-toy");
    let (file, folder) = (file.to_str().expect("UTF-8"), folder.to_str().expect("UTF-8"));
    let output = home.run(&home.modules(), &["modules", "test", file, "--transcripts", folder]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("commands.txt") && error.contains("[exit 0]"), "{error}");
}

#[test]
fn a_command_is_recorded_with_the_facts_about_its_machine() {
    let home = Home::new();
    let folder = home.path().join("transcripts/here");
    let to = folder.to_str().expect("UTF-8");
    let record = |words: &[&str]| {
        let args = [&["modules", "record", "--to", to], words].concat();
        let output = home.run(&home.modules(), &args);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(record(&["--", "uname", "-s"]).0, Some(0));
    assert_eq!(record(&["--", "no-such-program-anywhere", "--list"]).0, Some(0));
    let text = fs::read_to_string(folder.join("commands.txt")).expect("recorded");
    assert_eq!(text, "$ uname -s\n[exit 0]\nLinux\n");
    let machine = fs::read_to_string(folder.join("machine.yaml")).expect("facts");
    assert!(machine.contains("hostname: recorded"), "{machine}");
    assert!(machine.contains("no-such-program-anywhere"), "{machine}");
    let (code, error) = record(&["--", "rm", "-rf", "/srv/app"]);
    assert_eq!(code, Some(1));
    assert!(error.contains("--changes"), "{error}");
    // Without a folder, the transcript is printed.
    let output = home.run(&home.modules(), &["modules", "record", "--", "uname", "-s"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "$ uname -s\n[exit 0]\nLinux\n");
}
