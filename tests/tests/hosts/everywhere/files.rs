//! Tests on a real host what the tools for files read, change, undo and refuse. The shell says what they have done.

use linux_sysadmin_tests::{Changing, Client, way};
use serde_json::{Value, json};

const CLEAN: &str = "umount /etc/lsa-files/fs 2>/dev/null; rm -rf /etc/lsa-files";

const PREPARE: &str = r"
mkdir -p /etc/lsa-files/fs
# The test hosts' own file system is an overlay, which may not rename a directory.
mountpoint -q /etc/lsa-files/fs || mount -t tmpfs -o mode=0755 tmpfs /etc/lsa-files/fs
printf 'a\nb\nc\n' > /etc/lsa-files/one
printf 'a\r\nb\r\n' > /etc/lsa-files/dos
printf 'user=x\npassword=hunter2hunter2\n' > /etc/lsa-files/secret
ln -s one /etc/lsa-files/link
mkfifo /etc/lsa-files/fifo
chgrp adm /etc/lsa-files/one; chmod 0640 /etc/lsa-files/one
";

fn host(test: &str) -> Option<Changing> {
    Changing::by(way(), test, PREPARE, CLEAN)
}

/// Makes a dry run, which changes nothing, and then the change that it shows.
async fn shown_and_done(machine: &Changing, client: &mut Client, tool: &str, arguments: &Value) -> Value {
    let preview = machine.shows(client, tool, arguments).await;
    machine.does(client, tool, arguments, &preview).await
}

const DIFF: &str = "\
--- a/etc/lsa-files/one
+++ b/etc/lsa-files/one
@@ -1,3 +1,3 @@
 a
-b
+x
 c
--- /dev/null
+++ b/etc/lsa-files/new
@@ -0,0 +1 @@
+new
";

#[tokio::test]
async fn a_diff_changes_several_files_and_keeps_what_they_are() {
    let Some(machine) = host("a_diff_changes_several_files_and_keeps_what_they_are") else { return };
    let mut client = machine.serve_all_but_critical().await;
    let patched = shown_and_done(&machine, &mut client, "file_patch", &json!({"diff": DIFF})).await;
    assert_eq!(machine.sh("cat /etc/lsa-files/one /etc/lsa-files/new"), "a\nx\nc\nnew\n");
    assert_eq!(machine.sh("stat -c %a:%U /etc/lsa-files/one").trim(), "640:root");
    let hash = machine.sh("sha256sum /etc/lsa-files/one");
    assert_eq!(patched["data"]["files"][0]["sha256"].as_str(), hash.split(' ').next(), "{patched}");
    let dos = json!({"path": "/etc/lsa-files/dos", "diff": "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"});
    shown_and_done(&machine, &mut client, "file_patch", &dos).await;
    assert_eq!(machine.sh("cat /etc/lsa-files/dos"), "a\r\nc\r\n");
    machine.holds_already(&mut client, "file_patch", &dos).await;
}

#[tokio::test]
async fn a_symlink_goes_itself_and_a_tree_goes_with_all_that_is_in_it() {
    let Some(machine) = host("a_symlink_goes_itself_and_a_tree_goes_with_all_that_is_in_it") else { return };
    let mut client = machine.serve_all_but_critical().await;
    machine.sh(
        "mkdir -p /etc/lsa-files/tree/sub/deeper /etc/lsa-files/tree/empty; cd /etc/lsa-files/tree
         echo 1 > one; echo 2 > sub/two; echo 3 > sub/deeper/three; ln -s ../../one sub/link; ln -s nothing dangling
         ln -s tree ../tree-link",
    );
    let link = json!({"path": "/etc/lsa-files/tree-link"});
    let preview = machine.shows(&mut client, "file_remove", &link).await;
    assert_eq!(preview["steps"][0]["symlink_to"], "tree", "{preview}");
    machine.does(&mut client, "file_remove", &link, &preview).await;
    assert!(machine.holds("cd /etc/lsa-files; test ! -L tree-link -a -e tree/sub/deeper/three"));
    let tree = json!({"path": ["/etc/lsa-files/tree", "/etc/lsa-files/dos"]});
    let preview = machine.shows(&mut client, "file_remove", &tree).await;
    let shown: Vec<&str> = preview["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .filter_map(|step| step["remove"].as_str().or(step["remove_directory"].as_str()))
        .collect();
    assert_eq!(shown.len(), 10, "{preview}");
    for name in ["one", "sub/two", "sub/link", "sub/deeper/three", "dangling", "empty", "sub/deeper", "sub"] {
        assert!(shown.contains(&format!("/etc/lsa-files/tree/{name}").as_str()), "{name}: {preview}");
    }
    machine.does(&mut client, "file_remove", &tree, &preview).await;
    assert_eq!(machine.sh("ls /etc/lsa-files"), "fifo\nfs\nlink\none\nsecret\n");
    assert_eq!(machine.sh("cat /etc/lsa-files/one"), "a\nb\nc\n");
}

#[tokio::test]
async fn a_tree_that_has_changed_since_it_was_shown_stays_whole() {
    let Some(machine) = host("a_tree_that_has_changed_since_it_was_shown_stays_whole") else { return };
    // What is below /etc asks a person, who confirms what was shown.
    let mut client = machine.serve_default().await;
    for change in ["echo new > sub/new", "echo other > sub/two", "ln -sfn other sub/link", "rm sub/two"] {
        machine.sh("rm -rf /etc/lsa-files/tree; mkdir -p /etc/lsa-files/tree/sub; cd /etc/lsa-files/tree
             echo 1 > one; echo 2 > sub/two; ln -s nothing sub/link");
        let mut arguments = json!({"path": "/etc/lsa-files/tree"});
        machine.asks(&mut client, "file_remove", &arguments, "high").await;
        machine.sh(&format!("cd /etc/lsa-files/tree; {change}"));
        let before = machine.snapshot();
        arguments["confirmed"] = json!(true);
        let envelope = client.envelope("file_remove", arguments).await;
        assert_eq!(envelope["error_code"], "PLAN_STALE", "{change}: {envelope}");
        machine.is_still(&before, change);
    }
}

#[tokio::test]
async fn a_line_beside_a_secret_is_patched_and_no_guess_is_answered() {
    let Some(machine) = host("a_line_beside_a_secret_is_patched_and_no_guess_is_answered") else { return };
    let mut client = machine.serve_all_but_critical().await;
    let path = "/etc/lsa-files/secret";
    let read = client.envelope("file_read", json!({"path": path})).await;
    let text = read["data"]["text"].as_str().expect("a text");
    let shown = text.lines().nth(1).expect("two lines");
    assert!(shown.contains("[redacted"), "{read}");
    let diff = |context: &str| format!("@@ -1,2 +1,2 @@\n-user=x\n+user=y\n {context}\n");
    let mut answers = Vec::new();
    for guess in ["password=hunter2hunter2", "password=hunter3hunter3"] {
        let arguments = json!({"path": path, "diff": diff(guess)});
        let refused = machine.refuses(&mut client, "file_patch", &arguments, "PATCH_CONFLICT").await;
        answers.push(refused["message"].clone());
    }
    assert_eq!(answers[0], answers[1]);
    shown_and_done(&machine, &mut client, "file_patch", &json!({"path": path, "diff": diff(shown)})).await;
    assert_eq!(machine.sh(&format!("cat {path}")), "user=y\npassword=hunter2hunter2\n");
}

#[tokio::test]
async fn what_does_not_fit_is_refused_and_nothing_is_changed() {
    let Some(machine) = host("what_does_not_fit_is_refused_and_nothing_is_changed") else { return };
    let mut client = machine.serve_all_but_critical().await;
    let before = machine.snapshot();
    let hunk = "@@ -1 +1 @@\n-q\n+x\n";
    for (path, code) in [
        ("/etc/lsa-files/one", "PATCH_CONFLICT"),
        ("/etc/lsa-files/link", "SYMLINK"),
        ("/etc/lsa-files/none", "FILE_NOT_FOUND"),
        ("/etc/lsa-files", "IS_A_DIRECTORY"),
        ("/etc/lsa-files/../hosts", "INVALID_PATH"),
        ("/home/lsa-other/x", "OTHER_HOME"),
        ("/etc/shadow", "CAPABILITY_DENIED"),
        ("/var/lib/x", "PATH_OUTSIDE"),
    ] {
        let arguments = json!({"path": path, "diff": hunk});
        machine.refuses(&mut client, "file_patch", &arguments, code).await;
    }
    for password in ["hunter2hunter2", "hunter3hunter3"] {
        let diff = format!("@@ -2 +2 @@\n-password={password}\n+password=x\n");
        let arguments = json!({"path": "/etc/lsa-files/secret", "diff": diff});
        let refused = machine.refuses(&mut client, "file_patch", &arguments, "PATCH_CONFLICT").await;
        assert!(!refused["message"].to_string().contains("hunter2hunter2"), "{refused}");
    }
    // systemd itself reads the new unit before it takes its place.
    let broken =
        json!({"path": "/etc/systemd/system/lsa-files.service", "contents": "[Service]\nExecStart=none\n"});
    let envelope = client.envelope("file_write", broken).await;
    machine.failed(&envelope, "VALIDATION_FAILED", &before, &[], "a broken unit");
}

#[tokio::test]
async fn files_are_written_copied_moved_and_removed_and_read_again() {
    let Some(machine) = host("files_are_written_copied_moved_and_removed_and_read_again") else { return };
    let mut client = machine.serve_all_but_critical().await;
    for (tool, arguments, check) in [
        (
            "file_mkdir",
            json!({"path": "/etc/lsa-files/fs/a/b", "mode": "0750"}),
            "test $(stat -c %a /etc/lsa-files/fs/a/b) = 750",
        ),
        (
            "file_write",
            json!({"path": "/etc/lsa-files/fs/a/x", "contents": "x\n", "mode": "0600"}),
            "test $(stat -c %a /etc/lsa-files/fs/a/x) = 600",
        ),
        (
            "file_copy",
            json!({"path": "/etc/lsa-files/one", "to": "/etc/lsa-files/fs/a/one"}),
            "cmp /etc/lsa-files/one /etc/lsa-files/fs/a/one",
        ),
        (
            "file_move",
            json!({"path": "/etc/lsa-files/fs/a", "to": "/etc/lsa-files/fs/c"}),
            "test -e /etc/lsa-files/fs/c/b -a ! -e /etc/lsa-files/fs/a",
        ),
        (
            "file_remove",
            json!({"path": ["/etc/lsa-files/fs/c/x", "/etc/lsa-files/fs/c/b"]}),
            "test ! -e /etc/lsa-files/fs/c/b",
        ),
    ] {
        shown_and_done(&machine, &mut client, tool, &arguments).await;
        assert!(machine.holds(check), "{tool}: {check}");
    }
    let read = client.envelope("file_read", json!({"path": "/etc/lsa-files/secret"})).await;
    assert_eq!((&read["data"]["redacted"], read["data"].get("sha256")), (&json!([2]), None), "{read}");
    let found = client.envelope("file_search", json!({"path": "/etc/lsa-files", "pattern": "hunter2"})).await;
    assert_eq!(found["data"], json!([]), "{found}");
    let found = client.envelope("file_search", json!({"path": "/etc", "pattern": "root:", "depth": 1})).await;
    assert!(!found.to_string().contains("shadow"), "{found}");
    let fifo = client.envelope("file_read", json!({"path": "/etc/lsa-files/fifo"})).await;
    assert_eq!(fifo["error_code"], "NOT_A_REGULAR_FILE", "{fifo}");
    let stat = client.envelope("file_stat", json!({"path": "/etc/lsa-files/link"})).await;
    assert_eq!(stat["data"][0]["links"], json!(["/etc/lsa-files/link -> one"]), "{stat}");
}
