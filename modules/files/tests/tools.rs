//! The tools as the host calls them, against recordings of Debian 12: coreutils 9.1, findutils 4.9.0, grep 3.8, dpkg 1.21.22.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::bindings::sysadmin::module::confirm;
use linux_sysadmin_sdk::knowledge::{ApplyBy, Candidate, ConfigFile, Expectation, Profile, Unit, Validator};
use linux_sysadmin_sdk::testkit::{FakeTarget, output, profile, takes_little_context};
use linux_sysadmin_sdk::{Category, Privilege, prelude::*};
use module_files::module;
use serde_json::{Value, json};

fn target() -> FakeTarget {
    FakeTarget::new()
        .account("ada")
        .file("/etc/app/app.conf", "a\nb\nc\n")
        .file("/etc/hosts", "127.0.0.1 localhost\n")
}

fn at(owner: &str, mode: u32) -> Metadata {
    Metadata {
        size: 0,
        mode,
        owner: owner.into(),
        group: owner.into(),
        modified_unix: 0,
        is_dir: false,
        is_symlink: false,
    }
}

fn directory(owner: &str) -> Metadata {
    Metadata { is_dir: true, ..at(owner, 0o755) }
}

/// The data and the notes of an answer, and the plan.
fn done(target: FakeTarget, tool: &str, arguments: Value) -> (Value, Vec<String>, Option<Change>) {
    let plans = target.plans();
    let (data, reply) = target
        .call(&module(), tool, arguments.clone())
        .unwrap_or_else(|problem| panic!("{tool} {arguments}: {problem:?}"));
    let plan = plans.borrow().first().cloned();
    (data, reply.notes, plan)
}

#[track_caller]
fn refused(target: FakeTarget, tool: &str, arguments: Value) -> Problem {
    let plans = target.plans();
    let problem = target.call(&module(), tool, arguments.clone()).err();
    assert!(plans.borrow().is_empty(), "{tool} {arguments}: it was planned");
    problem.unwrap_or_else(|| panic!("{tool} {arguments}: it was answered"))
}

const DIFF: &str = "--- a/etc/app/app.conf\n+++ b/etc/app/app.conf\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n";

#[test]
fn a_tool_takes_little_of_a_models_context() {
    for tool in &module().description().tools {
        takes_little_context(tool);
    }
}

#[test]
fn a_diff_is_one_plan_with_a_step_for_each_file() {
    let diff = format!(
        "{DIFF}--- /etc/hosts\n+++ /dev/null\n@@ -1 +0,0 @@\n-127.0.0.1 localhost\n--- /dev/null\n+++ b/etc/app/new\n@@ -0,0 +1 @@\n+new\n"
    );
    let (data, notes, plan) = done(target(), "file_patch", json!({"diff": diff}));
    let expected = Change::new("Patch 3 files")
        .step(Step::write("/etc/app/app.conf", "a\nx\nc\n"))
        .step(Step::remove("/etc/hosts"))
        .step(Step::write("/etc/app/new", "new\n"));
    assert_eq!(plan.unwrap(), expected);
    assert_eq!(notes, [] as [&str; 0]);
    assert_eq!(
        (data["files"][0]["change"].as_str(), data["files"][0]["added"].as_u64()),
        (Some("modified"), Some(1)),
        "{data}"
    );
    assert_eq!(data["files"][0]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(
        (&data["files"][1]["change"], &data["files"][2]["change"]),
        (&json!("removed"), &json!("created"))
    );
}

#[test]
fn rights_are_those_that_the_path_needs() {
    let target = || {
        target().file("/home/ada/x", "a\n").file("/srv/bob/x", "a\n").metadata("/srv/bob", directory("bob"))
    };
    let diff = "@@ -1 +1 @@\n-a\n+b\n";
    for (path, as_root, privilege) in [
        ("/etc/app/app.conf", Value::Null, Privilege::Root),
        ("/etc/app/app.conf", json!(false), Privilege::Caller),
        ("/home/ada/x", Value::Null, Privilege::Caller),
        ("/home/ada/x", json!(true), Privilege::Root),
        ("/srv/bob/x", Value::Null, Privilege::User("bob".into())),
    ] {
        let (_, _, plan) =
            done(target(), "file_patch", json!({"diff": diff, "path": path, "as_root": as_root}));
        let contents = if path.starts_with("/etc") { "b\nb\nc\n" } else { "b\n" };
        let step = Step::write(path, contents).files_as(privilege);
        assert_eq!(plan.unwrap(), Change::new(format!("Patch {path}")).step(step), "{path}");
    }
}

#[test]
fn what_models_write_is_put_up_with_and_told() {
    let (data, notes, _) = done(
        target(),
        "file_patch",
        json!({"diff": "--- app.conf\n+++ app.conf\n@@ -7,9 +7,9 @@\n b\n-c\n+x\n", "directory": "/etc/app"}),
    );
    assert_eq!(data["files"][0]["moved_hunks"], json!(["1: -5 lines"]));
    assert_eq!(notes, ["/etc/app/app.conf: the header of hunk 1 counts 9 and 9 lines, the hunk has 2 and 2"]);
    // Sections of the same file are joined.
    let twice = "--- a/etc/app/app.conf\n+++ b/etc/app/app.conf\n@@ -1 +1 @@\n-a\n+x\n--- a/etc/app/app.conf\n+++ b/etc/app/app.conf\n@@ -3 +3 @@\n-c\n+z\n";
    let (_, _, plan) = done(target(), "file_patch", json!({"diff": twice}));
    assert_eq!(
        plan.unwrap(),
        Change::new("Patch /etc/app/app.conf").step(Step::write("/etc/app/app.conf", "x\nb\nz\n"))
    );
    // Lines end as the file's do.
    let crlf = target().file("/etc/app/dos", "a\r\nb\r\n");
    let (_, notes, plan) =
        done(crlf, "file_patch", json!({"diff": "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "path": "/etc/app/dos"}));
    assert_eq!(
        plan.unwrap(),
        Change::new("Patch /etc/app/dos").step(Step::write("/etc/app/dos", "a\r\nc\r\n"))
    );
    assert!(notes[0].contains("the ends of lines differ"), "{notes:?}");
}

#[test]
fn a_change_that_is_there_already_makes_no_plan() {
    let there = target().file("/etc/app/app.conf", "a\nx\nc\n");
    let (data, notes, plan) = done(there, "file_patch", json!({"diff": DIFF}));
    assert_eq!((data, plan), (json!({"files": []}), None));
    assert_eq!(notes, ["/etc/app/app.conf has these changes already: nothing was changed"]);
    for (tool, arguments) in [
        ("file_write", json!({"path": "/etc/app/app.conf", "contents": "a\nb\nc\n"})),
        ("file_write", json!({"path": "/etc/app/app.conf", "contents": "a\nb\nc\n", "mode": "0644"})),
        ("file_mkdir", json!({"path": "/etc/app"})),
        (
            "file_patch",
            json!({"diff": "diff --git a/etc/hosts b/etc/hosts\nold mode 100755\nnew mode 100644\n"}),
        ),
    ] {
        let (_, notes, plan) = done(target(), tool, arguments);
        assert_eq!(plan, None, "{tool}");
        assert!(notes[0].contains("nothing was changed"), "{notes:?}");
    }
}

#[test]
fn a_patch_that_does_not_fit_is_refused_with_the_files_lines() {
    let diff = "--- /etc/app/app.conf\n+++ /etc/app/app.conf\n@@ -1,3 +1,3 @@\n a\n-q\n+x\n c\n--- /etc/hosts\n+++ /etc/hosts\n@@ -1 +1 @@\n-x\n+y\n";
    let problem = refused(target(), "file_patch", json!({"diff": diff}));
    assert_eq!(problem.code, "PATCH_CONFLICT");
    assert_eq!(
        problem.message,
        "nothing was changed, because the diff doesn't fit.\n\
         /etc/app/app.conf, hunk 1 (@@ -1,3 +1,3 @@): line 2 isn't \"q\". The file has\n1\ta\n2\tb\n3\tc\n\
         /etc/hosts, hunk 1 (@@ -1 +1 @@): line 1 isn't \"x\". The file has\n1\t127.0.0.1 localhost"
    );
}

#[test]
fn every_refusal_of_a_patch_has_a_code() {
    let target = || {
        target()
            .file("/etc/app/secret", "user=x\npassword=hunter2\n")
            .secret("hunter2")
            .metadata("/etc/app/link", Metadata { is_symlink: true, ..at("root", 0o777) })
            .answer(
                &["readlink", "--canonicalize-missing", "--no-newline", "--", "/etc/app/link"],
                0,
                "/etc/hosts",
                "",
            )
            .metadata("/etc/app/huge", Metadata { size: 9 << 20, ..at("root", 0o644) })
            .file("/etc/app/fixed", "a\n")
            .answer(
                &["lsattr", "-d", "--", "/etc/app/fixed"],
                0,
                "----i---------e------- /etc/app/fixed\n",
                "",
            )
            .metadata("/etc/app/grows", Metadata { size: 2, ..at("root", 0o644) })
            .file("/etc/app/grows", "abc\n")
    };
    let hunk = "@@ -1 +1 @@\n-a\n+b\n";
    for (arguments, code) in [
        (json!({"diff": hunk}), "NO_NAME"),
        (json!({"diff": ""}), "NOT_A_DIFF"),
        (json!({"diff": format!("--- a/../etc/x\n+++ b/../etc/x\n{hunk}")}), "INVALID_PATH"),
        (
            json!({"diff": format!("--- x/../../y\n+++ x/../../y\n{hunk}"), "directory": "/etc/app"}),
            "INVALID_PATH",
        ),
        (
            json!({"diff": format!("--- /etc/hosts\n+++ /etc/hosts\n{hunk}"), "directory": "/etc/app"}),
            "OUTSIDE_DIRECTORY",
        ),
        (json!({"diff": format!("--- /home/bob/x\n+++ /home/bob/x\n{hunk}")}), "OTHER_HOME"),
        (json!({"diff": format!("--- /etc/none\n+++ /etc/none\n{hunk}")}), "FILE_NOT_FOUND"),
        (json!({"diff": format!("--- /etc/hosts\n+++ /etc/app/app.conf\n{hunk}")}), "TWO_NAMES"),
        (
            json!({"diff": format!("{DIFF}{}", DIFF.replace("app.conf", "x")), "path": "/etc/hosts"}),
            "SEVERAL_FILES",
        ),
        (json!({"diff": hunk, "path": "/etc/app"}), "IS_A_DIRECTORY"),
        (json!({"diff": hunk, "path": "/etc/app/link"}), "SYMLINK"),
        (json!({"diff": hunk, "path": "/etc/app/huge"}), "FILE_TOO_LARGE"),
        (json!({"diff": hunk, "path": "/etc/app/fixed"}), "IMMUTABLE"),
        (json!({"diff": hunk, "path": "/etc/app/grows"}), "FILE_CHANGED"),
        (
            json!({"diff": "@@ -2 +2 @@\n-password=hunter2\n+password=x\n", "path": "/etc/app/secret"}),
            "PATCH_CONFLICT",
        ),
        (
            json!({"diff": "@@ -2 +2 @@\n-password=[redacted]\n+password=x\n", "path": "/etc/app/secret"}),
            "PATCH_CONFLICT",
        ),
        (
            json!({"diff": "@@ -1 +1,2 @@\n user=x\n+password=[redacted]\n", "path": "/etc/app/secret"}),
            "REDACTED_TEXT",
        ),
        (json!({"diff": "@@ -1,0 +2 @@\n+x\n", "path": "/etc/hosts"}), "PATCH_CONFLICT"),
        (json!({"diff": "--- /dev/null\n+++ /etc/hosts\n@@ -0,0 +1 @@\n+x\n"}), "PATCH_CONFLICT"),
        (json!({"diff": "--- /dev/null\n+++ /etc/none/x\n@@ -0,0 +1 @@\n+x\n"}), "NO_DIRECTORY"),
        (json!({"diff": "--- /etc/app/app.conf\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"}), "PATCH_CONFLICT"),
        (
            json!({"diff": "diff --git a/etc/hosts b/etc/app/app.conf\nrename from etc/hosts\nrename to etc/app/app.conf\n"}),
            "FILE_EXISTS",
        ),
    ] {
        let problem = refused(target(), "file_patch", arguments.clone());
        assert_eq!(problem.code, code, "{arguments}: {}", problem.message);
        assert!(!problem.message.contains("hunter2"), "{}", problem.message);
    }
    // A line beside a secret can be changed, also where the context shows the secret's line as file_read does.
    for hunk in
        ["@@ -1 +1 @@\n-user=x\n+user=y\n", "@@ -1,2 +1,2 @@\n-user=x\n+user=y\n password=[redacted]\n"]
    {
        let (data, _, plan) = done(target(), "file_patch", json!({"diff": hunk, "path": "/etc/app/secret"}));
        let expected = Change::new("Patch /etc/app/secret")
            .step(Step::write("/etc/app/secret", "user=y\npassword=hunter2\n"));
        assert_eq!(plan.unwrap(), expected);
        assert_eq!(data["files"][0].get("sha256"), None);
    }
    // A guess in the context is answered alike, whether it is right or wrong.
    let answers = ["hunter2", "hunter3"].map(|guess| {
        let diff = format!("@@ -1,2 +1,2 @@\n-user=x\n+user=y\n password={guess}\n");
        refused(target(), "file_patch", json!({"diff": diff, "path": "/etc/app/secret"}))
    });
    assert_eq!(answers[0], answers[1]);
    assert!(answers[0].message.contains("2\tpassword=[redacted]"), "{}", answers[0].message);
}

#[test]
fn who_gets_a_file_that_not_everybody_may_read_is_asked_about() {
    let target = || {
        let file = |target: FakeTarget, path: &str, mode| {
            let metadata = Metadata { size: 2, group: "app".into(), ..at("root", mode) };
            target.file(path, "a\n").metadata(path, metadata)
        };
        let target = target()
            .metadata("/srv/bob", directory("bob"))
            .metadata("/home/ada", directory("ada"))
            .metadata("/etc/app/shut", Metadata { mode: 0o700, ..directory("root") });
        let target = file(target, "/etc/app/closed", 0o640);
        let target = file(target, "/etc/app/open", 0o644);
        let target = file(target, "/etc/app/shut/open", 0o644);
        let own = |mode| Metadata { size: 2, ..at("ada", mode) };
        target
            .metadata("/home/ada/shut", Metadata { is_dir: true, ..own(0o700) })
            .file("/home/ada/shut/open", "a\n")
            .metadata("/home/ada/shut/open", own(0o644))
    };
    // What root's rights would show of a closed directory isn't copied at all.
    for to in ["/srv/bob/x", "/etc/app/x", "/etc/app/shut/x"] {
        let copy = json!({"path": "/etc/app/shut/open", "to": to});
        assert_eq!(refused(target(), "file_copy", copy).code, "PRIVATE_FILE", "{to}");
    }
    for (tool, path, to, is_given) in [
        ("file_copy", "/etc/app/closed", "/srv/bob/x", true),
        ("file_copy", "/etc/app/closed", "/etc/app/x", false),
        ("file_copy", "/etc/app/closed", "/home/ada/x", true),
        ("file_copy", "/etc/app/open", "/srv/bob/x", false),
        ("file_copy", "/home/ada/shut/open", "/srv/bob/x", true),
        ("file_copy", "/home/ada/shut/open", "/home/ada/shut/x", false),
        ("file_move", "/etc/app/shut/open", "/etc/app/x", true),
        ("file_move", "/etc/app/shut/open", "/etc/app/shut/x", false),
        ("file_move", "/etc/app/closed", "/etc/app/x", false),
    ] {
        let (_, _, plan) = done(target(), tool, json!({"path": path, "to": to}));
        let plan = format!("{:?}", plan.unwrap());
        assert_eq!(plan.contains("Not everybody may read"), is_given, "{tool} {path} {to}: {plan}");
        assert_eq!(plan.contains("High"), is_given, "{tool} {path} {to}: {plan}");
    }
}

#[test]
fn files_are_written_copied_moved_made_and_removed() {
    let target = || target().metadata("/etc/app/app.conf", Metadata { size: 6, ..at("app", 0o640) });
    for (tool, arguments, expected) in [
        (
            "file_write",
            json!({"path": "/etc/app/new", "contents": "x", "mode": "0600", "owner": "app"}),
            Change::new("Create /etc/app/new")
                .step(Step::write("/etc/app/new", "x").mode(0o600).owner("app", "app")),
        ),
        (
            "file_write",
            json!({"path": "/etc/app/app.conf", "contents": "x"}),
            Change::new("Replace /etc/app/app.conf").step(Step::write("/etc/app/app.conf", "x")),
        ),
        (
            "file_copy",
            json!({"path": "/etc/app/app.conf", "to": "/etc/app/app.bak"}),
            Change::new("Copy /etc/app/app.conf to /etc/app/app.bak")
                .step(Step::write("/etc/app/app.bak", "a\nb\nc\n").mode(0o640).owner("app", "app")),
        ),
        (
            "file_mkdir",
            json!({"path": "/etc/app/a/b", "mode": "0750"}),
            Change::new("Make the directory /etc/app/a/b")
                .step(Step::make_directory("/etc/app/a", 0o750))
                .step(Step::make_directory("/etc/app/a/b", 0o750)),
        ),
        (
            "file_move",
            json!({"path": "/etc/app/app.conf", "to": "/etc/app/other.conf"}),
            Change::new("Move /etc/app/app.conf to /etc/app/other.conf")
                .step(Step::move_to("/etc/app/app.conf", "/etc/app/other.conf")),
        ),
        (
            "file_patch",
            json!({"diff": "diff --git a/etc/hosts b/etc/hosts\nold mode 100644\nnew mode 100755\n"}),
            Change::new("Patch /etc/hosts").step(Step::attributes("/etc/hosts", Some(0o755), None, None)),
        ),
        (
            "file_patch",
            json!({"diff": "diff --git a/etc/hosts b/etc/app/h\nrename from etc/hosts\nrename to etc/app/h\n"}),
            Change::new("Patch /etc/hosts").step(Step::move_to("/etc/hosts", "/etc/app/h")),
        ),
        (
            "file_remove",
            json!({"path": ["/etc/hosts", "/etc/app/app.conf", "/etc/hosts"]}),
            Change::new("Remove 2 files and directories")
                .step(Step::remove("/etc/hosts"))
                .step(Step::remove("/etc/app/app.conf")),
        ),
    ] {
        let (_, _, plan) = done(target(), tool, arguments);
        assert_eq!(plan.unwrap(), expected, "{tool}");
    }
    let empty = target().metadata("/etc/empty", directory("root")).answer(
        &["find", "/etc/empty", "-mindepth", "1", "-maxdepth", "32", "-printf", FORMAT],
        0,
        "",
        "",
    );
    let (.., plan) = done(empty, "file_remove", json!({"path": "/etc/empty"}));
    assert_eq!(plan.unwrap(), Change::new("Remove /etc/empty").step(Step::remove_directory("/etc/empty")));
    for (tool, arguments, code) in [
        ("file_write", json!({"path": "/etc/none/x", "contents": ""}), "NO_DIRECTORY"),
        ("file_write", json!({"path": "/etc/hosts", "contents": "", "mode": "rw"}), "INVALID_MODE"),
        ("file_write", json!({"path": "/etc/hosts", "contents": "", "owner": "0"}), "INVALID_USER"),
        ("file_write", json!({"path": "/etc/hosts", "contents": "", "sha256": "00"}), "FILE_CHANGED"),
        ("file_write", json!({"path": "/etc/none", "contents": "", "sha256": "00"}), "FILE_CHANGED"),
        ("file_write", json!({"path": "/etc/hosts", "contents": "x".repeat(9 << 20)}), "FILE_TOO_LARGE"),
        ("file_copy", json!({"path": "/etc/none", "to": "/etc/x"}), "FILE_NOT_FOUND"),
        ("file_copy", json!({"path": "/etc/app", "to": "/etc/x"}), "IS_A_DIRECTORY"),
        ("file_copy", json!({"path": "/etc/hosts", "to": "/etc/app/app.conf"}), "FILE_EXISTS"),
        ("file_move", json!({"path": "/etc/hosts", "to": "/etc/app/app.conf"}), "FILE_EXISTS"),
        ("file_move", json!({"path": "/etc/app", "to": "/etc/app/x"}), "INTO_ITSELF"),
        ("file_move", json!({"path": "/etc/none", "to": "/etc/x"}), "FILE_NOT_FOUND"),
        ("file_mkdir", json!({"path": "/etc/hosts"}), "FILE_EXISTS"),
        ("file_mkdir", json!({"path": "/etc/hosts/x"}), "FILE_EXISTS"),
        ("file_remove", json!({"path": "/etc/none"}), "FILE_NOT_FOUND"),
        ("file_remove", json!({"path": []}), "INVALID_ARGUMENTS"),
        ("file_remove", json!({"path": ["/etc/app/app.conf", "/etc/app"]}), "PATH_TWICE"),
        ("file_remove", json!({"path": "etc"}), "INVALID_PATH"),
    ] {
        assert_eq!(refused(target(), tool, arguments.clone()).code, code, "{tool} {arguments}");
    }
    let secret = target().file("/etc/app/s", "password=hunter2\n").secret("hunter2");
    let problem = refused(
        secret.clone(),
        "file_write",
        json!({"path": "/etc/app/s", "contents": "password=[redacted]\nx\n"}),
    );
    assert_eq!(problem.code, "REDACTED_TEXT");
    // Nothing tells whether a guess is right.
    let hash = json!({"path": "/etc/app/s", "contents": "x", "sha256": "00"});
    assert_eq!(refused(secret.clone(), "file_write", hash).code, "HOLDS_SECRET");
    let (_, _, plan) =
        done(secret, "file_write", json!({"path": "/etc/app/s", "contents": "password=hunter2\n"}));
    assert!(plan.is_some());
}

#[test]
fn a_symlink_is_removed_itself_and_a_tree_with_all_that_is_in_it() {
    let link = target().metadata("/etc/app/link", Metadata { is_symlink: true, ..at("root", 0o777) });
    let (data, _, plan) = done(link, "file_remove", json!({"path": "/etc/app/link"}));
    assert_eq!(plan.unwrap(), Change::new("Remove /etc/app/link").step(Step::remove("/etc/app/link")));
    assert_eq!(data["files"], json!([{"path": "/etc/app/link", "change": "removed"}]));

    let mut find = FIND;
    find[5] = "32";
    let tree = |said: &str| target().metadata("/etc/app/d", directory("app")).answer(&find, 0, said, "");
    let said = "d/4096/755/0.0/app/app/d\0\0f/6/640/0.0/root/root/app.conf\0\0l/4/777/0.0/root/root/l\0/etc\0\
                d/4096/755/0.0/app/app/d/e\0\0f/2/640/0.0/app/app/d/e/x\0\0";
    let (data, _, plan) = done(tree(said), "file_remove", json!({"path": "/etc/app"}));
    let own = |step: Step| step.files_as(Privilege::User("app".into()));
    let expected = Change::new("Remove /etc/app and all that is in it")
        .warning("/etc/app goes with all that is in it: 2 files of 8 bytes, 2 directories, 1 symlinks")
        .step(Step::remove("/etc/app/app.conf"))
        // Each path takes the rights that its directory needs.
        .step(own(Step::remove("/etc/app/d/e/x")))
        .step(Step::remove("/etc/app/l"))
        .step(own(Step::remove_directory("/etc/app/d/e")))
        .step(Step::remove_directory("/etc/app/d"))
        .step(Step::remove_directory("/etc/app"));
    assert_eq!(plan.unwrap(), expected);
    assert_eq!(data["files"], json!([{"path": "/etc/app", "change": "removed", "holds": 5, "bytes": 8}]));

    let many = |count: usize, size: u64| -> String {
        (0..count).map(|number| format!("f/{size}/640/0.0/root/root/{number}\0\0")).collect()
    };
    let deep = "a/".repeat(31) + "a";
    for (said, code, named) in [
        (
            "s/0/755/0.0/root/root/run.sock\0\0".to_owned(),
            "NOT_A_REGULAR_FILE",
            "/etc/app/run.sock is a socket",
        ),
        ("p/0/644/0.0/root/root/d/pipe\0\0".to_owned(), "NOT_A_REGULAR_FILE", "/etc/app/d/pipe is a FIFO"),
        (
            "c/0/644/0.0/root/root/null\0\0".to_owned(),
            "NOT_A_REGULAR_FILE",
            "/etc/app/null is a character device",
        ),
        (format!("f/{}/644/0.0/root/root/x\0\0", 9 << 20), "FILE_TOO_LARGE", "/etc/app/x has 9437184 bytes"),
        (format!("d/0/755/0.0/root/root/{deep}\0\0"), "TREE_TOO_DEEP", "32 levels"),
        ("f/1/644/0.0/root/root/a\nb\0\0".to_owned(), "INVALID_PATH", "no path"),
        ("f/1/644/0.0/root/root/\u{fffd}\0\0".to_owned(), "INVALID_PATH", "isn't UTF-8"),
        (
            many(200, 1),
            "TREE_TOO_LARGE",
            "201 files and directories with 200 bytes; one call removes at most 200",
        ),
        (many(9, 8 << 20), "TREE_TOO_LARGE", "at most 200 files and directories, and 67108864 bytes"),
    ] {
        let problem = refused(tree(&said), "file_remove", json!({"path": "/etc/app"}));
        assert_eq!(problem.code, code, "{}", problem.message);
        assert!(problem.message.contains(named), "{}", problem.message);
    }
    let (.., plan) = done(tree(&many(199, 1)), "file_remove", json!({"path": "/etc/app"}));
    assert_eq!(plan.unwrap().steps().len(), 200);
}

#[test]
fn what_one_plan_writes_has_a_bound_that_is_said() {
    // The patched file is larger than the largest one, and two files are larger together.
    let large = format!("a\n{}", "x".repeat((8 << 20) - 2));
    let half = format!("a\n{}", "x".repeat(5 << 20));
    let target = || {
        target()
            .file("/etc/app/large", large.clone())
            .file("/etc/app/half", half.clone())
            .file("/etc/app/other", half.clone())
    };
    let diff = |name: &str, new: &str| {
        format!("--- /etc/app/{name}\n+++ /etc/app/{name}\n@@ -1 +1 @@\n-a\n+{new}\n")
    };
    let (.., plan) = done(target(), "file_patch", json!({"diff": diff("large", "b")}));
    assert_eq!(
        plan.unwrap(),
        Change::new("Patch /etc/app/large").step(Step::write("/etc/app/large", large.replacen('a', "b", 1)))
    );
    for (diff, said) in [
        (
            diff("large", "bb"),
            "/etc/app/large would have 8388609 bytes; a file of at most 8388608 is written",
        ),
        (
            diff("half", "b") + &diff("other", "b"),
            "the files up to /etc/app/other would have 10485764 bytes together",
        ),
    ] {
        let problem = refused(target(), "file_patch", json!({"diff": diff}));
        assert_eq!(problem.code, "FILE_TOO_LARGE");
        assert!(problem.message.contains(said), "{}", problem.message);
    }
}

/// A service with a main file that its checker takes whole, and further files that it checks in place.
fn app() -> Profile {
    let config = |path: &str, main: bool, apply: Option<ApplyBy>| ConfigFile {
        path: path.into(),
        what: "x".into(),
        main,
        optional: false,
        generated: false,
        apply,
    };
    Profile {
        name: "App".into(),
        units: vec![Unit {
            name: "app.service".into(),
            aliases: Vec::new(),
            main: true,
            reload: true,
            optional: false,
            what: None,
        }],
        config: vec![
            config("/etc/app/app.conf", true, Some(ApplyBy::Restart)),
            config("/etc/app/conf.d/*.conf", false, None),
        ],
        validators: vec![Validator {
            argv: vec!["app".into(), "-t".into()],
            root: true,
            what: "all files".into(),
            covers: Vec::new(),
            expect: Expectation { exit: Some(0), contains: None, matches: None, lacks: None },
            error: Some("^(?P<file>/[^:]+):(?P<line>[0-9]+): (?P<message>.*)$".into()),
            candidate: Some(Candidate {
                path: "/etc/app/.candidate".into(),
                argv: vec!["app".into(), "-t".into(), "/etc/app/.candidate".into()],
            }),
        }],
        ..profile("app")
    }
}

const WARNING: &str = "With root's rights, the checker of App may load, run or read what the text names";

#[test]
fn a_services_checker_checks_a_whole_file_before_it_is_in_place() {
    let target = || target().profile(app()).answer(&["app", "-t"], 0, "ok\n", "");
    let (data, _, plan) = done(target(), "file_patch", json!({"diff": DIFF}));
    let check = |argv: &[&str]| Step::run(Command::new(argv[0]).args(argv[1..].iter().copied()).as_root());
    let expected = Change::new("Patch /etc/app/app.conf")
        .step(Step::write("/etc/app/.candidate", "a\nx\nc\n").mode(0o600))
        .step(check(&["app", "-t", "/etc/app/.candidate"]).success(&[0]))
        .step(check(&["rm", "--", "/etc/app/.candidate"]))
        .warning(WARNING)
        .step(Step::write("/etc/app/app.conf", "a\nx\nc\n"));
    assert_eq!(plan.unwrap(), expected);
    assert_eq!(data["services"][0]["next"], json!(["svc_restart service=app"]));
    let applied =
        confirm::Applied { outputs: vec![output(0, "ok\n", ""), output(0, "", "")], dry_run: false };
    let (data, ..) = done(target().outcome(Ok(applied)), "file_patch", json!({"diff": DIFF}));
    assert_eq!(data["services"][0]["valid"], json!(true));
}

#[test]
fn any_other_checker_checks_what_is_in_place_and_its_refusal_is_told() {
    let part = "--- /etc/app/conf.d/a.conf\n+++ /etc/app/conf.d/a.conf\n@@ -1 +1 @@\n-a\n+b\n";
    let target = || target().profile(app()).file("/etc/app/conf.d/a.conf", "a\n");
    let right = || target().answer(&["app", "-t"], 0, "ok\n", "");
    let (data, _, plan) = done(right(), "file_patch", json!({"diff": part}));
    let check = |codes: &[i32]| Step::run(Command::new("app").arg("-t").as_root()).success(codes);
    let planned = |codes: &[i32]| {
        Change::new("Patch /etc/app/conf.d/a.conf")
            .warning(WARNING)
            .step(Step::write("/etc/app/conf.d/a.conf", "b\n"))
            .step(check(codes))
    };
    assert_eq!(plan.unwrap(), planned(&[0]));
    assert_eq!(data["services"][0]["next"], json!(["svc_reload service=app"]));

    let failure = confirm::Failure {
        problem: Problem::new("COMMAND_FAILED", Category::Other, "app ended with 1"),
        step: 1,
        outputs: vec![output(1, "", "/etc/app/conf.d/a.conf:1: unknown directive b\n")],
        undone: Vec::new(),
        not_undone: Vec::new(),
        uncertain: false,
    };
    let problem =
        right().outcome(Err(failure)).call(&module(), "file_patch", json!({"diff": part})).unwrap_err();
    assert_eq!(
        (problem.code.as_str(), problem.message.as_str()),
        (
            "CONFIGURATION_REFUSED",
            "app -t refuses the new configuration, so nothing stays changed: /etc/app/conf.d/a.conf:1: unknown directive b"
        )
    );

    // A configuration that was wrong before may be put right in several calls.
    let wrong = target().answer(&["app", "-t"], 1, "", "/etc/app/app.conf:2: unknown directive c\n");
    let applied = confirm::Applied {
        outputs: vec![output(1, "", "/etc/app/app.conf:2: unknown directive c\n")],
        dry_run: false,
    };
    let (data, _, plan) = done(wrong.outcome(Ok(applied)), "file_patch", json!({"diff": part}));
    assert_eq!(plan.unwrap(), planned(&(0..=255).collect::<Vec<_>>()));
    let service = &data["services"][0];
    assert_eq!((&service["valid"], &service["errors"][0]["line"]), (&json!(false), &json!(2)));
    assert_eq!(service["next"][0], json!("svc_config_validate service=app"));

    // A checker that isn't there doesn't stop the plan.
    let (data, _, plan) = done(target(), "file_patch", json!({"diff": part}));
    assert_eq!(
        plan.unwrap(),
        Change::new("Patch /etc/app/conf.d/a.conf").step(Step::write("/etc/app/conf.d/a.conf", "b\n"))
    );
    assert!(data["services"][0]["unknown"][0].as_str().unwrap().starts_with("app -t: "), "{data}");
}

#[test]
fn other_files_of_the_service_that_differ_from_the_packages_are_told() {
    let target = target()
        .profile(Profile { validators: Vec::new(), ..app() })
        .answer(&["dpkg-query", "--search", "--", "/etc/app/app.conf"], 0, "app: /etc/app/app.conf\n", "")
        .answer(
            &["dpkg", "--verify", "--", "app"],
            0,
            "??5?????? c /etc/app/app.conf\n??5?????? c /etc/app/conf.d/a.conf\n??5?????? c /etc/default/app\n",
            "",
        );
    let (data, ..) = done(target, "file_patch", json!({"diff": DIFF}));
    assert_eq!(data["services"][0]["differs_from_package"], json!(["/etc/app/conf.d/a.conf"]));
}

#[test]
fn a_file_is_read_by_lines_and_bytes() {
    let text: String = (1..=2000).map(|line| format!("line {line}\n")).collect();
    let target = || target().file("/etc/app/long", text.clone()).profile(app());
    for (arguments, from, first, last) in [
        (json!({"path": "/etc/app/long", "from": 10, "to": 11}), 10, "line 10", "line 11"),
        (json!({"path": "/etc/app/long", "from": 1999}), 1999, "line 1999", "line 2000"),
        (json!({"path": "/etc/app/long", "tail": 2}), 1999, "line 1999", "line 2000"),
        (json!({"path": "/etc/app/long"}), 1, "line 1", "line 1000"),
        (json!({"path": "/etc/app/long", "to": 3}), 1, "line 1", "line 3"),
    ] {
        let (data, ..) = done(target(), "file_read", arguments.clone());
        let text = data["text"].as_str().unwrap();
        assert_eq!((data["from"].as_u64(), data["lines"].as_u64()), (Some(from), Some(2000)), "{arguments}");
        assert_eq!((text.lines().next(), text.lines().last()), (Some(first), Some(last)), "{arguments}");
    }
    let (_, notes, _) = done(target(), "file_read", json!({"path": "/etc/app/long"}));
    assert_eq!(notes, ["cut after line 1000; go on with file_read path=/etc/app/long from=1001"]);
    let (data, ..) =
        done(target(), "file_read", json!({"path": "/etc/app/app.conf", "offset": 2, "bytes": 3}));
    assert_eq!(data["text"], json!("b\nc"));
    let (data, ..) = done(target(), "file_read", json!({"path": "/etc/app/app.conf", "offset": -2}));
    assert_eq!(data["text"], json!("c\n"));
    let (data, ..) = done(target(), "file_read", json!({"path": "/etc/app/app.conf"}));
    assert_eq!(
        data,
        json!({
            "path": "/etc/app/app.conf", "size": 6, "mode": "0644", "owner": "root", "group": "root",
            "modified": "1970-01-01T00:00:00Z",
            "sha256": "880553fca8fcea94e325ee2cfb48e5a985cc797f39a14cc6d3cedecfeb2ae4d2",
            "lines": 3, "from": 1, "text": "a\nb\nc\n", "profiles": ["app"]
        })
    );
    for (arguments, code) in [
        (json!({"path": "/etc/none"}), "FILE_NOT_FOUND"),
        (json!({"path": "/etc/app"}), "IS_A_DIRECTORY"),
        (json!({"path": "/etc/app/long", "from": 2001}), "INVALID_RANGE"),
        (json!({"path": "/etc/app/long", "from": 3, "to": 2}), "INVALID_RANGE"),
        (json!({"path": "/etc/app/long", "from": 0}), "INVALID_RANGE"),
        (json!({"path": "/etc/app/long", "from": 1, "tail": 2}), "INVALID_RANGE"),
        (json!({"path": "/etc/app/long", "tail": 1, "offset": 2}), "INVALID_RANGE"),
    ] {
        assert_eq!(refused(target(), "file_read", arguments.clone()).code, code, "{arguments}");
    }
}

#[test]
fn what_is_no_plain_text_is_said_and_secrets_are_marked() {
    let target = || {
        target()
            .file("/etc/app/latin", b"caf\xe9\r\nx")
            .file("/etc/app/elf", b"\x7fELF\x02\0\0")
            .file("/etc/app/secret", "a\npassword=hunter2\nb\n")
            .secret("hunter2")
            .metadata("/etc/app/link", Metadata { is_symlink: true, ..at("root", 0o777) })
            .answer(
                &["readlink", "--canonicalize-missing", "--no-newline", "--", "/etc/app/link"],
                0,
                "/etc/hosts",
                "",
            )
            .metadata("/etc/app/grown", Metadata { size: 2, ..at("root", 0o644) })
            .file("/etc/app/grown", "a\nb\n")
    };
    let read = |path: &str| done(target(), "file_read", json!({"path": path}));
    let (latin, ..) = read("/etc/app/latin");
    assert_eq!(
        (&latin["text"], &latin["encoding"], &latin["line_ends"], &latin["no_newline_at_end"]),
        (&json!("café\nx\n"), &json!("not UTF-8, shown as ISO 8859-1"), &json!("crlf"), &json!(true))
    );
    let (elf, ..) = read("/etc/app/elf");
    assert_eq!((&elf["binary"], elf.get("text")), (&json!("ELF program or library"), None));
    let (secret, ..) = read("/etc/app/secret");
    assert_eq!(
        (&secret["text"], &secret["redacted"], secret.get("sha256")),
        (&json!("a\npassword=[redacted]\nb\n"), &json!([2]), None)
    );
    let (link, ..) = read("/etc/app/link");
    assert_eq!((&link["leads_to"], &link["text"]), (&json!("/etc/hosts"), &json!("127.0.0.1 localhost\n")));
    let (_, notes, _) = read("/etc/app/grown");
    assert_eq!(notes, ["its size changed while it was read: 4 bytes were read"]);
}

#[test]
fn a_large_file_is_read_in_parts() {
    let text: String = (1..=1_000_000).map(|line| format!("line {line:06}\n")).collect();
    let target = || target().file("/var/log/large", text.clone());
    let (data, ..) =
        done(target(), "file_read", json!({"path": "/var/log/large", "from": 500_000, "to": 500_001}));
    assert_eq!((&data["text"], &data["from"]), (&json!("line 500000\nline 500001\n"), &json!(500_000)));
    let (data, ..) = done(target(), "file_read", json!({"path": "/var/log/large", "tail": 1}));
    assert_eq!((&data["text"], data.get("from")), (&json!("line 1000000\n"), None));
    assert_eq!(
        refused(target(), "file_read", json!({"path": "/var/log/large", "from": 1_000_001})).code,
        "INVALID_RANGE"
    );
    // Short lines are too many before the file is large.
    let target = || FakeTarget::default().file("/var/log/short", "a\n".repeat(1 << 20) + "b\n");
    let (data, ..) = done(target(), "file_read", json!({"path": "/var/log/short", "to": 1}));
    assert_eq!((&data["text"], data.get("lines")), (&json!("a\n"), None));
    let (data, ..) = done(target(), "file_read", json!({"path": "/var/log/short", "tail": 1}));
    assert_eq!(data["text"], "b\n");
}

const FORMAT: &str = "%y/%s/%m/%T@/%u/%g/%P\\0%l\\0";
const FIND: [&str; 8] = ["find", "/etc/app", "-mindepth", "1", "-maxdepth", "1", "-printf", FORMAT];

#[test]
fn a_directory_is_listed_sorted_and_by_globs() {
    let said =
        "f/6/640/2.0/root/app/app.conf\0\0d/4096/755/3.0/root/root/conf.d\0\0l/5/777/1.0/root/root/x\0/etc\0";
    let list = |arguments: Value| done(target().answer(&FIND, 0, said, ""), "file_list", arguments).0;
    assert_eq!(
        list(json!({"path": "/etc/app"})),
        json!([
            {"path": "app.conf", "size": 6, "mode": "0640", "owner": "root:app", "modified": "1970-01-01T00:00:02Z"},
            {"path": "conf.d", "type": "directory", "mode": "0755", "owner": "root:root", "modified": "1970-01-01T00:00:03Z"},
            {"path": "x", "type": "symlink", "mode": "0777", "owner": "root:root", "modified": "1970-01-01T00:00:01Z", "leads_to": "/etc"}
        ])
    );
    let names = |arguments: Value| -> Vec<String> {
        list(arguments)
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["path"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(json!({"path": "/etc/app", "sort": "modified"})), ["conf.d", "app.conf", "x"]);
    assert_eq!(names(json!({"path": "/etc/app", "glob": "*.conf"})), ["app.conf"]);
    for (arguments, code) in [
        (json!({"path": "/etc/none"}), "FILE_NOT_FOUND"),
        (json!({"path": "/etc/hosts"}), "NOT_A_DIRECTORY"),
        (json!({"path": "/etc/app", "depth": 0}), "INVALID_DEPTH"),
    ] {
        assert_eq!(refused(target(), "file_list", arguments.clone()).code, code, "{arguments}");
    }
}

#[test]
fn a_search_shows_lines_with_those_around_and_no_secret() {
    let mut find = FIND;
    find[5] = "8";
    let names = |bytes: u32| {
        format!(
            "f/{bytes}/644/0.0/root/root/app.conf\0\0f/20/644/0.0/root/root/secret\0\0f/3/644/0.0/root/root/gone\0\0"
        )
    };
    let grep = |text: &str| -> Vec<String> {
        let options = ["grep", "--files-with-matches", "--null", "--no-messages", "--fixed-strings"];
        let text = format!("--regexp={text}");
        options
            .iter()
            .copied()
            .chain([text.as_str(), "--", "/etc/app/app.conf", "/etc/app/secret"])
            .map(str::to_owned)
            .collect()
    };
    let sized = |bytes: u32, text: &str, files: &str| {
        let argv = grep(text);
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        FakeTarget::new()
            .account("ada")
            .file("/etc/app/app.conf", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n")
            .file("/etc/app/secret", "password=hunter2\n")
            .secret("hunter2")
            .answer(&find, 0, names(bytes), "")
            .answer(&argv, 0, files, "")
    };
    let target = |text: &str, files: &str| sized(70_000, text, files);
    let (data, notes, _) = done(
        target("three", "/etc/app/app.conf\0"),
        "file_search",
        json!({"path": "/etc/app", "pattern": "three", "context": 1}),
    );
    assert_eq!(
        data,
        json!([{"path": "/etc/app/app.conf", "matches": 1, "lines": ["2-two", "3:three", "4-four"]}])
    );
    assert_eq!(notes, [""; 0]);
    // Of two files that can match only the one is read that grep has named. Small files are read without it.
    let arguments = json!({"path": "/etc/app", "pattern": "three", "context": 1});
    let (none, ..) = done(target("three", ""), "file_search", arguments.clone());
    assert_eq!(none, json!([]));
    assert_eq!(done(sized(6, "three", ""), "file_search", arguments).0, data);
    // An expression without a text that every match holds.
    let (data, ..) =
        done(target("", ""), "file_search", json!({"path": "/etc/app", "pattern": "^(t|s)", "context": 1}));
    assert_eq!(
        data[0]["lines"],
        json!(["1-one", "2:two", "3:three", "4-four", "5-five", "6:six", "7:seven"]),
        "{data}"
    );
    // Nothing tells whether the secret matches.
    for pattern in ["hunter2", "hunter3", "hunt.r2"] {
        let text = if pattern.contains('.') { "hunt" } else { pattern };
        let (data, notes, _) = done(
            target(text, "/etc/app/secret\0"),
            "file_search",
            json!({"path": "/etc/app", "pattern": pattern}),
        );
        assert_eq!((data, notes), (json!([]), vec!["2 files were searched".to_owned()]), "{pattern}");
    }
    let (data, ..) = done(
        target("", ""),
        "file_search",
        json!({"path": "/etc/app/app.conf", "pattern": "F(our|IVE)", "ignore_case": true}),
    );
    assert_eq!(data[0]["lines"], json!(["4:four", "5:five"]));
    for (arguments, code) in [
        (json!({"path": "/etc/app", "pattern": ""}), "EMPTY_PATTERN"),
        (json!({"path": "/etc/app", "pattern": "("}), "INVALID_EXPRESSION"),
        (json!({"path": "/etc/none", "pattern": "x"}), "FILE_NOT_FOUND"),
        (json!({"path": [], "pattern": "x"}), "INVALID_ARGUMENTS"),
    ] {
        assert_eq!(refused(target("", ""), "file_search", arguments.clone()).code, code, "{arguments}");
    }
}

#[test]
fn a_path_is_told_with_its_links_and_who_has_it_open() {
    let stat = |path: &'static str| ["stat", "--format=%f|%h|%s|%U|%G|%Y|%C|%m|%n", "--", path];
    let target = target()
        .answer(&stat("/etc/l"), 0, "a1ff|1|8|root|root|0|?|/|/etc/l\n", "")
        .answer(&["readlink", "--no-newline", "--", "/etc/l"], 0, "app/x", "")
        .answer(&stat("/etc/app/x"), 0, "81a0|2|6|root|app|0|?|/|/etc/app/x\n", "")
        .answer(&stat("/etc/none"), 1, "", "stat: cannot statx '/etc/none': No such file or directory\n")
        .answer(
            &["getfacl", "--absolute-names", "--skip-base", "--", "/etc/app/x"],
            0,
            "# file: /etc/app/x\n# owner: root\n# group: app\nuser::rw-\nuser:bob:r--\n\n",
            "",
        )
        .answer(&["lsattr", "-d", "--", "/etc/app/x"], 0, "----i---------e------- /etc/app/x\n", "")
        .answer(&["dpkg-query", "--search", "--", "/etc/app/x"], 0, "app: /etc/app/x\n", "")
        .answer(
            &[
                "find",
                "/proc",
                "-mindepth",
                "3",
                "-maxdepth",
                "3",
                "-path",
                "/proc/[0-9]*/fd/*",
                "-lname",
                "/etc/app/x",
                "-printf",
                "%h\\n",
            ],
            1,
            "/proc/812/fd\n/proc/812/fd\n",
            "",
        )
        .file("/proc/812/comm", "app\n");
    let (data, notes, _) = done(target, "file_stat", json!({"path": ["/etc/l", "/etc/none"]}));
    assert_eq!(
        data,
        json!([
            {
                "path": "/etc/l", "links": ["/etc/l -> app/x"], "type": "file", "size": 6, "mode": "0640",
                "owner": "root", "group": "app", "modified": "1970-01-01T00:00:00Z", "hard_links": 2,
                "acl": ["user::rw-", "user:bob:r--"], "attributes": ["immutable"], "package": "app",
                "open_by": ["app (812)"]
            },
            {"path": "/etc/none", "error": "there is no /etc/none"}
        ])
    );
    assert_eq!(notes, [] as [&str; 0]);
}

const PRIVATE: &str = "/etc/app/token";

/// A target with a file that only root may read, beside `app.conf`.
fn with_private() -> FakeTarget {
    target().file(PRIVATE, "k4x7\n").metadata(PRIVATE, Metadata { size: 5, ..at("root", 0o600) })
}

#[test]
fn what_is_in_a_private_file_is_told_by_no_tool() {
    let diff = format!("--- {PRIVATE}\n+++ {PRIVATE}\n@@ -1 +1 @@\n-a\n+b\n");
    let removing = format!("--- {PRIVATE}\n+++ /dev/null\n@@ -1 +0,0 @@\n-k4x7\n");
    let renaming =
        format!("diff --git a{PRIVATE} b/etc/app/t\nrename from {PRIVATE}\nrename to /etc/app/t\n");
    for (tool, arguments) in [
        ("file_read", json!({"path": PRIVATE})),
        ("file_read", json!({"path": PRIVATE, "offset": 0})),
        ("file_read", json!({"path": PRIVATE, "from": 99, "to": 99})),
        ("file_search", json!({"path": PRIVATE, "pattern": "k4"})),
        ("file_search", json!({"path": ["/etc/hosts", PRIVATE], "pattern": "k4"})),
        ("file_write", json!({"path": PRIVATE, "contents": "k4x7\n"})),
        ("file_write", json!({"path": PRIVATE, "contents": "a", "sha256": "0"})),
        ("file_patch", json!({"diff": diff})),
        ("file_patch", json!({"diff": removing})),
        ("file_patch", json!({"diff": renaming})),
        ("file_copy", json!({"path": PRIVATE, "to": "/etc/app/t"})),
    ] {
        let problem = refused(with_private(), tool, arguments.clone());
        let told = (problem.code.as_str(), problem.category);
        assert_eq!(told, ("PRIVATE_FILE", Category::Denied), "{tool} {arguments}");
        assert!(problem.message.starts_with("/etc/app/token is a private file: "), "{}", problem.message);
        assert!(!problem.message.contains("k4x7"), "{}", problem.message);
        let next = "command_run argv=[\"cat\", \"/etc/app/token\"] as_root=true";
        assert!(problem.remediation[0].contains(next), "{:?}", problem.remediation);
    }
    // A symlink leads to it as well.
    let link = with_private().metadata("/etc/l", Metadata { is_symlink: true, ..at("root", 0o777) }).answer(
        &["readlink", "--canonicalize-missing", "--no-newline", "--", "/etc/l"],
        0,
        PRIVATE,
        "",
    );
    assert_eq!(refused(link, "file_read", json!({"path": "/etc/l"})).code, "PRIVATE_FILE");
    // What a directory keeps from others is private whatever its own rights are, and so is what root's own group may read.
    let shut = |mode| {
        let target = with_private().metadata("/etc/shut", Metadata { mode, ..directory("root") });
        target.file("/etc/shut/x", "a\n").metadata("/etc/shut/x", Metadata { size: 2, ..at("root", 0o644) })
    };
    let read = json!({"path": "/etc/shut/x"});
    assert_eq!(refused(shut(0o700), "file_read", read.clone()).code, "PRIVATE_FILE");
    assert_eq!(done(shut(0o711), "file_read", read).0["text"], "a\n");
    let of_root =
        with_private().file("/etc/x", "a\n").metadata("/etc/x", Metadata { size: 2, ..at("root", 0o640) });
    assert_eq!(refused(of_root, "file_read", json!({"path": "/etc/x"})).code, "PRIVATE_FILE");
}

#[test]
fn a_file_that_is_known_to_hold_no_secret_is_read_by_roots_rights() {
    let at = |path: &str, owner: &str, mode: u32| {
        with_private().file(path, "k4x7\n").metadata(path, Metadata { size: 5, ..at(owner, mode) })
    };
    let owner = ["dpkg-query", "--search", "--", PRIVATE];
    let app = |path: &str| Profile {
        config: vec![ConfigFile { path: path.into(), ..app().config.remove(0) }],
        ..profile("app")
    };
    for (target, path) in [
        (with_private().answer(&owner, 0, "app: /etc/app/token\n", ""), PRIVATE),
        (with_private().profile(app("/etc/app/t*")), PRIVATE),
        (at("/etc/sudoers.d/x", "root", 0o400), "/etc/sudoers.d/x"),
        (at("/var/log/x.log", "root", 0o600), "/var/log/x.log"),
        (at("/etc/app/x", "app", 0o640), "/etc/app/x"),
        (at("/etc/app/x", "ada", 0o600), "/etc/app/x"),
        (at("/home/ada/x", "ada", 0o600), "/home/ada/x"),
    ] {
        let (data, ..) = done(target, "file_read", json!({"path": path}));
        assert_eq!(data["text"], "k4x7\n", "{path}");
    }
    // Where root is the account, its home is no exception.
    let root = FakeTarget::new().account("root").metadata("/root/x", self::at("root", 0o600));
    assert_eq!(refused(root, "file_read", json!({"path": "/root/x"})).code, "PRIVATE_FILE");
    // A profile of another service says nothing.
    let other = with_private().profile(app("/etc/other/**"));
    assert_eq!(refused(other, "file_read", json!({"path": PRIVATE})).code, "PRIVATE_FILE");
}

#[test]
fn a_search_leaves_private_files_out_and_says_so() {
    let mut find = FIND;
    find[5] = "8";
    let names = "f/6/644/0.0/root/root/app.conf\0\0f/5/600/0.0/root/root/token\0\0";
    let target = || with_private().answer(&find, 0, names, "");
    // No answer of grep is recorded, so that each file that may be searched is read.
    for pattern in ["k4x7", "k", "nowhere"] {
        let (data, notes, _) = done(target(), "file_search", json!({"path": "/etc/app", "pattern": pattern}));
        assert_eq!(data, json!([]), "{pattern}");
        assert_eq!(notes[0], "1 files were searched", "{pattern}");
        assert!(notes[1].starts_with("1 files are private and weren't searched"), "{notes:?}");
    }
    let (data, ..) = done(target(), "file_search", json!({"path": "/etc/app", "pattern": "^b$"}));
    assert_eq!(data[0]["path"], "/etc/app/app.conf");
}

#[test]
fn a_private_file_is_removed_and_moved_unseen_and_stays_private() {
    // There are no contents to be read.
    let unseen = || target().metadata(PRIVATE, Metadata { size: 5, ..at("root", 0o600) });
    let (data, _, plan) = done(unseen(), "file_remove", json!({"path": PRIVATE}));
    assert_eq!(plan.unwrap(), Change::new(format!("Remove {PRIVATE}")).step(Step::remove(PRIVATE)));
    assert_eq!(data["files"][0]["bytes"], 5);
    let (.., plan) = done(unseen(), "file_move", json!({"path": PRIVATE, "to": "/etc/app/t"}));
    assert_eq!(plan.unwrap().steps().len(), 1);
    // By these names its contents would be shown.
    let package = ["dpkg-query", "--search", "--", "/etc/app/packaged"];
    let target = || {
        unseen().metadata("/etc/cron.d", directory("root")).answer(
            &package,
            0,
            "app: /etc/app/packaged\n",
            "",
        )
    };
    for to in ["/etc/cron.d/t", "/etc/crontab", "/etc/app/packaged"] {
        let problem = refused(target(), "file_move", json!({"path": PRIVATE, "to": to}));
        assert_eq!(problem.code, "PRIVATE_FILE", "{to}");
    }
    // A directory takes its private files along.
    let mut find = FIND;
    find[5] = "32";
    let target = |mode: &str| {
        target().metadata("/etc/app", directory("root")).answer(
            &find,
            0,
            format!("f/5/{mode}/0.0/root/root/token\0\0").as_bytes(),
            "",
        )
    };
    for (mode, to, expected) in [
        ("600", "/etc/cron.hourly", Some("PRIVATE_FILE")),
        ("644", "/etc/cron.hourly", None),
        ("600", "/etc/app.old", None),
    ] {
        let answer = target(mode).call(&module(), "file_move", json!({"path": "/etc/app", "to": to}));
        assert_eq!(answer.err().map(|problem| problem.code).as_deref(), expected, "{mode} {to}");
    }
}
