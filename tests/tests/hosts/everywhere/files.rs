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
chmod 0640 /etc/lsa-files/one
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
