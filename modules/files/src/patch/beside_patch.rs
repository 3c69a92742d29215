//! The engine of patches beside diff(1) and patch(1): made-up edits, in place and moved.

use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::{apply, parse};
use crate::lines::Lines;
use random_edits::{edited, edits, line, text, versions, with_all_context};

#[path = "../../tests/random_edits/mod.rs"]
mod random_edits;

fn run(program: &str, arguments: &[&str], directory: &Path) -> (bool, Vec<u8>) {
    let output = Command::new(program).args(arguments).current_dir(directory).output().unwrap();
    (output.status.success(), output.stdout)
}

fn are_there() -> bool {
    let there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let both = there("diff") && there("patch");
    if !both {
        eprintln!("skipped: diff or patch isn't installed");
    }
    both
}

fn ours(file: &[u8], diff: &str) -> Option<Vec<u8>> {
    let lines = Lines::new(file)?;
    let files = parse::parse(diff).unwrap();
    apply::apply(&lines, &files[0].hunks).ok().map(|patched| patched.contents)
}

/// The result of patch(1) by all of the context. None where it refuses.
fn theirs(now: &str, directory: &Path) -> Option<Vec<u8>> {
    std::fs::write(directory.join("now"), now).unwrap();
    let arguments =
        ["--fuzz=0", "--force", "--silent", "--no-backup-if-mismatch", "--reject-file=-", "now", "diff"];
    let (fits, _) = run("patch", &arguments, directory);
    // patch removes a file that has become empty.
    fits.then(|| std::fs::read(directory.join("now")).unwrap_or_default())
}

#[test]
fn a_diff_gives_what_it_was_made_from() {
    if !are_there() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut runner = TestRunner::new(Config { cases: 1000, failure_persistence: None, ..Config::default() });
    let strategy = (
        prop::collection::vec(line(), 0..40),
        edits(),
        prop::sample::select(vec!["\n", "\r\n"]),
        any::<(bool, bool)>(),
        0..4usize,
    );
    let result = runner.run(&strategy, |(lines, edits, end, newlines, context)| {
        let (old, new) = (text(&lines, end, newlines.0), text(&edited(&lines, &edits), end, newlines.1));
        std::fs::write(directory.join("old"), &old).unwrap();
        std::fs::write(directory.join("new"), &new).unwrap();
        // Without context, a hunk that only adds lines is refused.
        let context = format!("-U{}", context.max(1));
        let diff = String::from_utf8(run("diff", &[&context, "old", "new"], directory).1).unwrap();
        prop_assume!(!diff.is_empty());
        prop_assert_eq!(ours(old.as_bytes(), &diff), Some(new.into_bytes()), "{}", diff);
        Ok(())
    });
    result.unwrap();
}

#[test]
fn a_moved_diff_gives_what_patch_gives_or_a_conflict() {
    if !are_there() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut runner = TestRunner::new(Config { cases: 1000, failure_persistence: None, ..Config::default() });
    let (same, conflicts) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let result = runner.run(&versions(), |versions| {
        let random_edits::Versions { old, new, now } = versions;
        std::fs::write(directory.join("old"), &old).unwrap();
        std::fs::write(directory.join("new"), &new).unwrap();
        let diff = String::from_utf8(run("diff", &["-u", "old", "new"], directory).1).unwrap();
        prop_assume!(!diff.is_empty());
        std::fs::write(directory.join("diff"), with_all_context(&diff)).unwrap();
        match ours(now.as_bytes(), &diff) {
            // patch takes the nearest of several places, and this engine takes none of them.
            Some(ours) => {
                let theirs = theirs(&now, directory).map(String::from_utf8);
                prop_assert_eq!(Some(String::from_utf8(ours)), theirs, "{}\n{}", diff, now);
                same.set(same.get() + 1);
            }
            None => conflicts.set(conflicts.get() + 1),
        }
        Ok(())
    });
    result.unwrap();
    assert!(
        same.get() > 100 && conflicts.get() > 10,
        "{} the same, {} conflicts",
        same.get(),
        conflicts.get()
    );
}

/// patch(1) itself takes the last two lines for the place, since they are nearer to where the hunk was, and drops the two lines
/// before them.
#[test]
fn all_of_the_context_says_where_a_hunk_fits_that_was_made_near_the_end() {
    let diff = "--- old\n+++ new\n@@ -3,4 +3,5 @@\n a\n a\n b\n+new\n c\n";
    let now = "a\na\nb\nc\na\nb\nc\n";
    assert_eq!(ours(now.as_bytes(), diff).unwrap(), b"a\na\nb\nnew\nc\na\nb\nc\n");
    if !are_there() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("diff"), with_all_context(diff)).unwrap();
    assert_eq!(theirs(now, directory.path()), ours(now.as_bytes(), diff));
}
