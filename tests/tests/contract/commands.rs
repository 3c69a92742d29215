//! Commands of the caller's choice: the policy's decision holds at the tool, and nothing runs unasked that isn't known to look.

use std::fs;

use host_policy::{Level, Policy};
use linux_sysadmin_tests::{Client, Home, modules};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde::Deserialize;
use serde_json::{Value, json};

/// The policy's own table of what is dangerous, and of changes of every kind.
const TABLES: [&str; 2] = [
    include_str!("../../../host/policy/src/decisions/dangerous.yaml"),
    include_str!("../../../host/policy/src/decisions/changes.yaml"),
];

#[derive(Deserialize)]
struct Row {
    argv: Vec<String>,
}

/// The error code of a call, or whether it asks.
fn outcome(envelope: &Value) -> String {
    match (&envelope["error_code"], &envelope["needs_confirmation"]) {
        (Value::String(code), _) => code.clone(),
        (_, Value::Bool(true)) => "asks".to_owned(),
        _ => "runs".to_owned(),
    }
}

#[tokio::test]
async fn every_row_of_the_policys_tables_is_decided_at_the_tool_as_the_policy_decides() {
    let home = Home::new();
    let (mut client, _) = Client::open(&home, &modules(), "2025-06-18").await;
    let (mut blocked, mut asked) = (0, 0);
    for table in TABLES {
        let rows: Vec<Row> = serde_yaml::from_str(table).expect("a table");
        for Row { argv } in rows {
            let verdict = Policy::builtin().verdict(&argv).level;
            let envelope = client.envelope("command_run", json!({"argv": argv, "dry_run": true})).await;
            let found = outcome(&envelope);
            // Not every program is on this machine, and some words are no program's.
            let is_missing = ["PROGRAM_NOT_FOUND", "INVALID_COMMAND"].contains(&found.as_str());
            let is_right = match verdict {
                Level::Block => found == "POLICY_BLOCKED",
                Level::Confirm => found == "asks",
                Level::Safe => true,
            };
            assert!(is_right || is_missing, "{argv:?} is {verdict:?}, and the tool says {found}: {envelope}");
            blocked += usize::from(found == "POLICY_BLOCKED");
            asked += usize::from(found == "asks");
        }
    }
    assert!(blocked > 20 && asked > 400, "{blocked} blocked and {asked} asked");
}

#[tokio::test]
async fn whatever_the_words_are_nothing_changes_unasked() {
    let home = Home::new();
    let (mut client, _) = Client::open(&home, &modules(), "2025-06-18").await;
    let directory = tempfile::tempdir_in(home.path()).expect("a directory");
    let at = |name: &str| directory.path().join(name);
    for name in ["a", "b", "c"] {
        fs::write(at(name), name).expect("a file");
    }
    let paths: Vec<String> =
        ["a", "b", "c", "d", ""].iter().map(|name| at(name).to_string_lossy().into_owned()).collect();
    let programs = [
        "rm", "touch", "cp", "mv", "ln", "tee", "dd", "truncate", "sed", "sort", "find", "chmod", "install",
        "mkdir", "rmdir", "sh", "bash", "env", "nice", "timeout", "xargs", "tar", "cat", "head", "ls", "cmp",
        "diff", "stat", "perl", "awk", "printf", "echo", "split", "shred", "unlink", "date",
    ];
    let mut words: Vec<String> = [
        "-f",
        "-r",
        "-i",
        "-n",
        "-o",
        "-c",
        "-s",
        "0",
        "--",
        "1",
        "-exec",
        "{}",
        ";",
        "-delete",
        "s/a/x/w",
        "> x",
        "a",
        "rm -rf .",
        "of=x",
        "if=a",
        "-print",
        "-name",
        "*",
        "u+s",
        "0777",
        "-p",
        "-v",
        "echo x > a",
        "system(\"rm a\")",
    ]
    .map(str::to_owned)
    .to_vec();
    words.extend(paths.iter().cloned());
    words.extend(
        paths
            .iter()
            .flat_map(|path| [format!("of={path}"), format!("--output={path}"), format!("echo x > {path}")]),
    );
    let argv = (0..programs.len(), proptest::collection::vec(0..words.len(), 0..5));
    let before = contents(directory.path());
    let mut runner = TestRunner::deterministic();
    let calls: usize =
        std::env::var("PROPTEST_CASES").ok().and_then(|calls| calls.parse().ok()).unwrap_or(1000);
    let mut ran = 0;
    for _ in 0..calls {
        let (program, chosen) = argv.new_tree(&mut runner).expect("words").current();
        let mut line = vec![programs[program].to_owned()];
        line.extend(chosen.into_iter().map(|word| words[word].clone()));
        let arguments =
            json!({"argv": line, "directory": null, "timeout_seconds": 2, "dry_run": true, "stdin": ""});
        let found = outcome(&client.envelope("command_run", arguments).await);
        if found == "runs" {
            assert_eq!(Policy::builtin().verdict(&line).level, Level::Safe, "{line:?} ran");
            ran += 1;
        }
        assert_eq!(contents(directory.path()), before, "{line:?} changed something unasked");
    }
    assert!(ran > calls / 50, "only {ran} of {calls} command lines looked");
}

/// The names and contents of a directory's files.
fn contents(directory: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = fs::read_dir(directory)
        .expect("a directory")
        .flatten()
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).unwrap_or_default())
        })
        .collect();
    all.sort();
    all
}
