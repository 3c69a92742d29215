//! Random edits of files on a booted host: what `file_patch` makes of a file is what patch(1) of that host makes of it, or
//! `file_patch` reports a conflict and changes nothing.

use std::collections::BTreeMap;
use std::process::Command;

use linux_sysadmin_tests::{Changing, Client, way};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use random_edits::{Versions, versions, with_all_context};
use serde_json::{Value, json};

#[path = "../../../../modules/files/tests/random_edits/mod.rs"]
mod random_edits;

/// The number of files that are edited in each of the four ways, so that all ways together have a thousand.
const FILES: usize = 250;
/// The number of files that one diff changes.
const AT_ONCE: usize = 50;

const CLEAN: &str = "rm -rf /srv/lsa-edits";

/// Makes the diffs. They name the files that `file_patch` changes.
const DIFFED: &str = r#"
set -e
cd /srv/lsa-edits
tar -xf all.tar --no-same-owner
mkdir diffs
cp -r now ours
for name in $(ls old); do
    at=/srv/lsa-edits/ours/$name
    diff -u --label $at --label $at old/$name new/$name > diffs/$name || test $? = 1
done
"#;

/// Lets patch(1) apply each of the diffs, by all of the context.
const PATCHED: &str = r#"
set -e
cd /srv/lsa-edits
tar -xf all.tar --no-same-owner
mkdir fits
cp -r now theirs
for name in $(ls even); do
    patch --fuzz=0 --force --silent --no-backup-if-mismatch --reject-file=- theirs/$name even/$name > /dev/null ||
        continue
    touch fits/$name
done
"#;

/// Packs files, each with its directory, name and text, and puts the archive on the host.
fn put<'a>(machine: &Changing, all: impl Iterator<Item = (&'a str, String, &'a str)>) {
    let directory = tempfile::tempdir().expect("a directory");
    for (kind, name, text) in all {
        std::fs::create_dir_all(directory.path().join(kind)).expect("a directory");
        std::fs::write(directory.path().join(kind).join(name), text).expect("written");
    }
    let packed = Command::new("tar").arg("-C").arg(directory.path()).args(["-c", "."]).output();
    machine.sh("mkdir -p /srv/lsa-edits");
    machine.host().put("/srv/lsa-edits/all.tar", &packed.expect("tar runs").stdout);
}

/// The files in a directory of the host, by name.
fn files(machine: &Changing, directory: &str) -> BTreeMap<String, String> {
    let script = format!(
        "cd /srv/lsa-edits/{directory}; for name in $(ls); do stat -c '%n %s' $name; cat $name; done"
    );
    let said = machine.sh(&script);
    let (mut files, mut rest) = (BTreeMap::new(), said.as_str());
    while let Some((header, behind)) = rest.split_once('\n') {
        let (name, size) = header.split_once(' ').expect("a name and a size");
        let (text, behind) = behind.split_at(size.parse().expect("a number"));
        files.insert(name.to_owned(), text.to_owned());
        rest = behind;
    }
    files
}

/// Whether `file_patch` would apply a diff. Where it doesn't, it reports a conflict, or that all is there already.
async fn fits(client: &mut Client, diff: &str) -> bool {
    let envelope = client.envelope("file_patch", json!({"diff": diff, "dry_run": true})).await;
    let files = envelope["data"]["files"].as_array().map(Vec::len);
    match envelope["error_code"].as_str() {
        None => {
            assert_eq!(envelope["status"], "success", "{envelope}");
            files == Some(1)
        }
        Some(code) => {
            assert_eq!(code, "PATCH_CONFLICT", "{diff}\n{envelope}");
            false
        }
    }
}

#[tokio::test]
async fn a_random_edit_gives_what_patch_gives_or_a_conflict() {
    let test = "a_random_edit_gives_what_patch_gives_or_a_conflict";
    let Some(machine) = Changing::by(way(), test, CLEAN, CLEAN) else { return };
    let mut runner = TestRunner::default();
    let new = |_| versions().new_tree(&mut runner).expect("a tree").current();
    let all: Vec<Versions> = (0..FILES).map(new).collect();
    put(
        &machine,
        all.iter().enumerate().flat_map(|(number, Versions { old, new, now })| {
            let name = format!("{number:03}");
            [("old", name.clone(), old.as_str()), ("new", name.clone(), new), ("now", name, now)]
        }),
    );
    machine.sh(DIFFED);
    let diffs = files(&machine, "diffs");
    let even: Vec<_> = diffs.iter().map(|(name, diff)| (name.clone(), with_all_context(diff))).collect();
    put(&machine, even.iter().map(|(name, diff)| ("even", name.clone(), diff.as_str())));
    machine.sh(PATCHED);
    let [theirs, fitting] = ["theirs", "fits"].map(|directory| files(&machine, directory));
    let mut client = machine.serve_all_but_critical().await;
    let mut chosen: Vec<&String> = Vec::new();
    for (name, diff) in diffs.iter().filter(|(_, diff)| !diff.is_empty()) {
        if fits(&mut client, diff).await {
            chosen.push(name);
        }
    }
    for names in chosen.chunks(AT_ONCE) {
        let diff: String = names.iter().map(|name| diffs[*name].as_str()).collect();
        let patched: Value = client.envelope("file_patch", json!({"diff": diff})).await;
        assert_eq!(patched["status"], "success", "{patched}");
    }
    machine.nothing_is_left_behind();
    let ours = files(&machine, "ours");
    let mut same = 0;
    for (number, versions) in all.iter().enumerate() {
        let name = format!("{number:03}");
        let diff = &diffs[&name];
        if !chosen.contains(&&name) {
            assert_eq!(ours[&name], versions.now, "nothing changes at a conflict:\n{diff}");
        } else {
            assert!(fitting.contains_key(&name), "patch refuses it:\n{diff}\n{}", versions.now);
            // patch removes a file that has become empty.
            let theirs = theirs.get(&name).map_or("", String::as_str);
            assert_eq!(ours[&name], theirs, "{diff}\n{}", versions.now);
            same += 1;
        }
    }
    let conflicts = FILES - chosen.len();
    assert!(same > FILES / 20 && conflicts > FILES / 50, "{same} the same, {conflicts} conflicts");
}
