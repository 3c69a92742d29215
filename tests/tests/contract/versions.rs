//! The contract's promise: a component of an older version keeps working, and the text of a frozen version stays as it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use linux_sysadmin_tests::{Client, Home, component, modules};
use serde_json::json;
use sha2::{Digest, Sha256};

fn wit() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit")
}

/// What is kept of frozen versions.
fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/contract").join(name)
}

/// The frozen versions, `0.1` and later: the folders of `wit`.
fn frozen() -> Vec<String> {
    let entries = fs::read_dir(wit()).expect("the contract").flatten().filter(|entry| entry.path().is_dir());
    let mut versions: Vec<_> =
        entries.map(|entry| entry.file_name().into_string().expect("a version")).collect();
    versions.sort();
    assert_eq!(versions.first().map(String::as_str), Some("0.1"));
    versions
}

/// The texts of a folder of WIT, by their names.
fn texts(folder: &Path) -> BTreeMap<String, String> {
    let files = fs::read_dir(folder).expect("a folder").flatten().filter(|entry| entry.path().is_file());
    let text = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().expect("a name");
        (name, fs::read_to_string(entry.path()).expect("text"))
    };
    files.map(text).collect()
}

#[test]
fn the_text_of_a_frozen_version_is_never_edited() {
    for version in frozen() {
        let sums =
            fs::read_to_string(kept(&format!("{version}.sums"))).expect("the sums of a frozen version");
        let sums: BTreeMap<String, String> = sums
            .lines()
            .map(|line| line.split_once("  ").expect("a sum and a name"))
            .map(|(sum, name)| (name.to_owned(), sum.to_owned()))
            .collect();
        let found: BTreeMap<String, String> = texts(&wit().join(&version))
            .into_iter()
            .map(|(name, text)| (name, hex::encode(Sha256::digest(text))))
            .collect();
        assert_eq!(found, sums, "wit/{version} was edited: another shape is a new version of the contract");
    }
}

#[test]
fn a_version_that_is_frozen_is_what_it_was_until_the_next_one_begins() {
    let current = texts(&wit());
    let package =
        current["module.wit"].lines().find_map(|line| line.strip_prefix("package sysadmin:module@"));
    let version = package.expect("a version").trim_end_matches(';');
    let (short, _patch) = version.rsplit_once('.').expect("a version of three numbers");
    if !frozen().contains(&short.to_owned()) {
        return;
    }
    for (name, text) in texts(&wit().join(short)) {
        // Only modules that come with the program see the rest of this file.
        if name != "module.wit" {
            assert_eq!(current[&name], text, "wit/{name} has changed since version {short} was frozen");
        }
    }
}

#[tokio::test]
async fn a_component_of_each_version_is_added_and_answers_as_it_did() {
    let frozen = frozen().into_iter().map(|version| (kept(&format!("{version}.wasm")), version));
    let current = (component("kept"), "the current one".to_owned());
    for (file, version) in frozen.chain([current]) {
        let home = Home::new();
        let output = home.add(&file);
        assert_eq!(output.status.code(), Some(0), "{version}: {}", String::from_utf8_lossy(&output.stderr));
        let (mut client, _) = Client::open(&home, &modules(), "2025-06-18").await;
        for tool in ["kept_runs", "kept_reads"] {
            let envelope = client.envelope(tool, json!({})).await;
            let said = (&envelope["status"], &envelope["data"]);
            assert_eq!(said, (&json!("success"), &json!({"told": "Linux"})), "{version}: {envelope}");
        }
        let facts = client.envelope("kept_facts", json!({})).await;
        assert!(
            facts["data"]["told"].as_str().is_some_and(|family| !family.is_empty()),
            "{version}: {facts}"
        );
        let shown = client.envelope("kept_changes", json!({"dry_run": true})).await;
        assert_eq!(
            (&shown["status"], &shown["dry_run"]),
            (&json!("success"), &json!(true)),
            "{version}: {shown}"
        );
        assert_eq!(shown["data"], json!({"dry_run": true}), "{version}: {shown}");
        assert!(shown["preview"].to_string().contains("/run/linux-sysadmin-kept"), "{version}: {shown}");
        let (status, log) = client.close().await;
        assert!(status.success(), "{version}: {log}");
    }
}
