//! Tests on a real host that what can't be changed is refused with its reason, and stays as it was: files that nobody may
//! change, file systems that are full or read-only, and what is no plain file. The shell makes each of them.

use linux_sysadmin_tests::{Changing, Expected, way};
use serde_json::json;

const CLEAN: &str = "
chattr -R -i -a /etc/lsa-files 2>/dev/null
for place in bound plain tree/inner full readonly; do umount /etc/lsa-files/$place 2>/dev/null; done
rm -rf /etc/lsa-files /etc/cron.d/lsa-files
";

/// Wait until systemd has noticed a mount, or that one is gone. A snapshot tells of its unit.
const SETTLED: &str = r"
unit() { systemctl is-active --quiet `$(systemd-escape --path --suffix=mount /etc/lsa-files/$1)`; }
mounted() { until unit $1; do sleep 0.1; done; }
gone() { while unit $1; do sleep 0.1; done; }
";

const PREPARE: &str = r"
mkdir -p /etc/lsa-files/full /etc/lsa-files/readonly
cd /etc/lsa-files
printf 'a\n' > plain
mount -t tmpfs -o size=64k,mode=0755 tmpfs full
printf 'a\n' > full/x
dd if=/dev/zero of=full/rest bs=4096 2>/dev/null || :
mount -t tmpfs -o mode=0755 tmpfs readonly
printf 'a\n' > readonly/x
mount -o remount,ro readonly
printf 'a\n' > bound
printf 'a\n' > source
mount --bind source bound
ln plain hard
mkfifo fifo
mknod device c 1 3
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(`socket`)'
ln -s plain link
for place in full readonly bound; do mounted $place; done
";

/// Makes a tree with one thing in it that can't be put back.
fn tree_with(what: &str) -> String {
    script(&format!(
        "cd /etc/lsa-files; umount tree/inner 2>/dev/null; gone tree/inner
        rm -rf tree; mkdir -p tree/sub; echo x > tree/sub/x; {what}"
    ))
}

fn script(text: &str) -> String {
    format!("{SETTLED}{text}").replace('`', "\"")
}

fn host(test: &str) -> Option<Changing> {
    Changing::by(way(), test, &script(PREPARE), CLEAN)
}

#[tokio::test]
async fn what_is_no_plain_file_that_can_be_replaced_is_refused_and_stays() {
    let Some(machine) = host("what_is_no_plain_file_that_can_be_replaced_is_refused_and_stays") else {
        return;
    };
    let mut client = machine.serve_all_but_critical().await;
    let before = machine.snapshot();
    let diff = "@@ -1 +1 @@\n-a\n+b\n";
    for (name, code) in [
        ("fifo", "NOT_A_REGULAR_FILE"),
        ("socket", "NOT_A_REGULAR_FILE"),
        ("device", "NOT_A_REGULAR_FILE"),
        ("link", "SYMLINK"),
        ("hard", "HARD_LINK"),
        ("bound", "MOUNT_POINT"),
        ("full", "IS_A_DIRECTORY"),
    ] {
        let path = format!("/etc/lsa-files/{name}");
        machine.refuses(&mut client, "file_patch", &json!({"path": path, "diff": diff}), code).await;
        machine.refuses(&mut client, "file_write", &json!({"path": path, "contents": "b\n"}), code).await;
        // A link itself may go. A directory in which something is mounted may not.
        let code = if name == "full" { "MOUNT_POINT" } else { code };
        if name != "link" {
            machine.refuses(&mut client, "file_remove", &json!({"path": path}), code).await;
        }
    }
    machine.is_still(&before, "what was refused");
    machine.nothing_is_left_behind();
}

#[tokio::test]
async fn a_mount_that_comes_while_the_server_runs_is_seen_by_the_next_call() {
    let Some(machine) = host("a_mount_that_comes_while_the_server_runs_is_seen_by_the_next_call") else {
        return;
    };
    let mut client = machine.serve_all_but_critical().await;
    let arguments = json!({"path": "/etc/lsa-files/plain"});
    for _ in 0..2 {
        assert_eq!(client.envelope("file_read", arguments.clone()).await["status"], "success");
        machine.sh("mount --bind /etc/shadow /etc/lsa-files/plain");
        machine.refuses(&mut client, "file_read", &arguments, "CAPABILITY_DENIED").await;
        machine.sh("umount /etc/lsa-files/plain");
    }
    assert_eq!(client.envelope("file_read", arguments).await["status"], "success");
}

#[tokio::test]
async fn where_nothing_can_be_written_the_file_stays_and_the_reason_is_said() {
    let Some(machine) = host("where_nothing_can_be_written_the_file_stays_and_the_reason_is_said") else {
        return;
    };
    let mut client = machine.serve_all_but_critical().await;
    for (path, tool, arguments, code) in [
        ("full/x", "file_write", json!({"contents": "b".repeat(100_000)}), "OUT_OF_SPACE"),
        ("full/new", "file_write", json!({"contents": "b".repeat(100_000)}), "OUT_OF_SPACE"),
        ("readonly/x", "file_patch", json!({"diff": "@@ -1 +1 @@\n-a\n+b\n"}), "READ_ONLY_FILE_SYSTEM"),
        ("readonly/new", "file_write", json!({"contents": "b"}), "READ_ONLY_FILE_SYSTEM"),
        ("readonly/x", "file_remove", json!({}), "READ_ONLY_FILE_SYSTEM"),
    ] {
        let before = machine.snapshot();
        let mut arguments = arguments;
        arguments["path"] = json!(format!("/etc/lsa-files/{path}"));
        let envelope = client.envelope(tool, arguments).await;
        machine.failed(&envelope, code, &before, &[] as &[Expected], &format!("{tool} {path}"));
        assert_eq!(machine.sh(&format!("cat /etc/lsa-files/{}", path.replace("new", "x"))), "a\n");
    }
}

#[tokio::test]
async fn what_is_immutable_is_named_before_anything_is_tried() {
    let Some(machine) = host("what_is_immutable_is_named_before_anything_is_tried") else { return };
    let mut client = machine.serve_all_but_critical().await;
    let at = "/etc/lsa-files";
    machine.sh(&format!("cd {at}; printf 'a\\n' > fixed; mkdir tree; cp fixed tree/x"));
    for (attribute, set) in [("immutable", "i"), ("append-only", "a")] {
        machine.sh(&format!("chattr +{set} {at}/fixed {at}/tree/x"));
        let path = format!("{at}/fixed");
        for (tool, arguments) in [
            ("file_patch", json!({"path": path, "diff": "@@ -1 +1 @@\n-a\n+b\n"})),
            ("file_write", json!({"path": path, "contents": "b\n"})),
            ("file_remove", json!({"path": path})),
            ("file_remove", json!({"path": format!("{at}/tree")})),
        ] {
            let refused = machine.refuses(&mut client, tool, &arguments, "IMMUTABLE").await;
            assert!(refused["message"].to_string().contains(attribute), "{refused}");
        }
        machine.sh(&format!("chattr -{set} {at}/fixed {at}/tree/x; grep -qx a {at}/fixed {at}/tree/x"));
    }
}

#[tokio::test]
async fn a_tree_with_what_cannot_be_put_back_stays_whole() {
    let Some(machine) = host("a_tree_with_what_cannot_be_put_back_stays_whole") else { return };
    let mut client = machine.serve_all_but_critical().await;
    for (what, code, named) in [
        ("mkfifo tree/sub/pipe", "NOT_A_REGULAR_FILE", "tree/sub/pipe is a FIFO"),
        ("mknod tree/null c 1 3", "NOT_A_REGULAR_FILE", "tree/null is a character device"),
        ("mknod tree/disk b 7 0", "NOT_A_REGULAR_FILE", "tree/disk is a block device"),
        (
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"tree/sub/socket\")'",
            "NOT_A_REGULAR_FILE",
            "tree/sub/socket is a socket",
        ),
        (
            "mkdir tree/inner; mount -t tmpfs tmpfs tree/inner; mounted tree/inner",
            "MOUNT_POINT",
            "/etc/lsa-files/tree/inner",
        ),
        ("ln plain tree/sub/hard", "HARD_LINK", "tree/sub/hard"),
        ("truncate -s 9M tree/sub/large", "FILE_TOO_LARGE", "tree/sub/large has 9437184 bytes"),
        ("touch $(seq -f tree/%g 300)", "TREE_TOO_LARGE", "at most 200 files and directories"),
        ("mkdir -p tree/.ssh; echo x > tree/.ssh/id_ed25519", "CAPABILITY_DENIED", "tree/.ssh"),
    ] {
        machine.sh(&tree_with(what));
        let before = machine.snapshot();
        let arguments = json!({"path": "/etc/lsa-files/tree"});
        let refused = machine.refuses(&mut client, "file_remove", &arguments, code).await;
        assert!(refused["message"].to_string().contains(named), "{what}: {refused}");
        machine.is_still(&before, what);
    }
}

#[tokio::test]
async fn a_file_that_grows_while_it_is_read_is_refused() {
    let Some(machine) = host("a_file_that_grows_while_it_is_read_is_refused") else {
        return;
    };
    let mut client = machine.serve_all_but_critical().await;
    // The helper adds to a line as fast as it can, until its stdin ends.
    let (helper, _) = machine.helper(
        "import os, select, sys
grown = os.open('/etc/lsa-files/growing', os.O_WRONLY | os.O_CREAT)
os.write(grown, b'a\\n')
print('ready', flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    os.write(grown, b'g')",
    );
    for _ in 0..5 {
        let diff = "@@ -1 +1 @@\n-a\n+b\n";
        let envelope =
            client.envelope("file_patch", json!({"path": "/etc/lsa-files/growing", "diff": diff})).await;
        let code = envelope["error_code"].as_str().unwrap_or_default();
        assert!(["FILE_CHANGED", "FILE_TOO_LARGE"].contains(&code), "{envelope}");
        let read = client.envelope("file_read", json!({"path": "/etc/lsa-files/growing", "to": 1})).await;
        assert_eq!(read["data"]["text"], "a\n", "{read}");
    }
    helper.end();
    machine.nothing_is_left_behind();
}

#[tokio::test]
async fn a_file_of_eight_megabytes_is_written_and_patched_and_a_larger_one_is_refused() {
    let test = "a_file_of_eight_megabytes_is_written_and_patched_and_a_larger_one_is_refused";
    let Some(machine) = host(test) else { return };
    let mut client = machine.serve_all_but_critical().await;
    let path = "/etc/lsa-files/large";
    let contents: String = (0..1 << 19).map(|line| format!("line {line:010}\n")).collect();
    assert_eq!(contents.len(), 8 << 20);
    let written = client.envelope("file_write", json!({"path": path, "contents": contents})).await;
    assert_eq!(written["status"], "success", "{written}");
    let sum = machine.sh(&format!("sha256sum {path}"));
    assert_eq!(written["data"]["files"][0]["sha256"].as_str(), sum.split(' ').next(), "{written}");
    let hunk = |from: &str, to: &str| format!("@@ @@\n-line {from}\n+{to}\n");
    let diff = hunk("0000000001", "LINE 0000000001") + &hunk("0000524287", "LINE 0000524287");
    let patched = client.envelope("file_patch", json!({"path": path, "diff": diff})).await;
    assert_eq!(patched["status"], "success", "{patched}");
    assert_eq!(
        machine.sh(&format!("grep -c '^line' {path}; sed -n '2p;$p' {path}")),
        "524286\nLINE 0000000001\nLINE 0000524287\n"
    );
    let longer = json!({"path": path, "diff": hunk("0000000002", "line 0000000002+")});
    let refused = machine.refuses(&mut client, "file_patch", &longer, "FILE_TOO_LARGE").await;
    assert!(refused["message"].to_string().contains("8388608"), "{refused}");
    let too_long = json!({"path": path, "contents": "x".repeat((8 << 20) + 1)});
    let refused = machine.refuses(&mut client, "file_write", &too_long, "INVALID_ARGUMENTS").await;
    assert!(refused["message"].to_string().contains("8388608"), "{refused}");
}

#[tokio::test]
async fn a_hundred_thousand_hunks_are_applied_at_once() {
    let Some(machine) = host("a_hundred_thousand_hunks_are_applied_at_once") else { return };
    let mut client = machine.serve_all_but_critical().await;
    machine.sh("seq 1 200000 > /etc/lsa-files/many");
    let hunk = |line: usize| format!("@@ -{0} +{0} @@\n-{0}\n+x\n", 2 * line + 1);
    let diff: String = (0..100_000).map(hunk).collect();
    let patched = client.envelope("file_patch", json!({"path": "/etc/lsa-files/many", "diff": diff})).await;
    assert_eq!(
        (&patched["status"], &patched["data"]["files"][0]["added"]),
        (&json!("success"), &json!(100_000)),
        "{patched}"
    );
    assert_eq!(machine.sh("grep -c x /etc/lsa-files/many; sed -n 2p /etc/lsa-files/many"), "100000\n2\n");
}

#[tokio::test]
async fn a_file_that_only_root_may_read_is_shown_by_no_tool() {
    let Some(machine) = host("a_file_that_only_root_may_read_is_shown_by_no_tool") else { return };
    let mut client = machine.serve_all_but_critical().await;
    let (private, open) = ("/etc/lsa-files/private", "/etc/cron.d/lsa-files");
    machine.sh(&format!(
        "umask 077; echo '# word k4x7q2' > {private}; cp {private} {open}; cp {private} /etc/lsa-files/x.psk"
    ));
    let before = machine.snapshot();
    let diff = "@@ -1 +1 @@\n-# word k4x7q3\n+b\n";
    for (tool, arguments) in [
        ("file_read", json!({"path": private})),
        ("file_search", json!({"path": private, "pattern": "k4x7"})),
        ("file_patch", json!({"path": private, "diff": diff})),
        ("file_write", json!({"path": private, "contents": "# word k4x7q2\n"})),
        ("file_copy", json!({"path": private, "to": "/etc/lsa-files/copy"})),
        ("file_move", json!({"path": private, "to": "/etc/cron.d/lsa-moved"})),
    ] {
        let refused = machine.refuses(&mut client, tool, &arguments, "PRIVATE_FILE").await;
        assert!(!refused.to_string().contains("k4x7q2"), "{tool}: {refused}");
    }
    let named = json!({"path": "/etc/lsa-files/x.psk"});
    machine.refuses(&mut client, "file_read", &named, "CAPABILITY_DENIED").await;
    let found = client.envelope("file_search", json!({"path": "/etc/lsa-files", "pattern": "k4x7"})).await;
    assert_eq!(found["data"], json!([]), "{found}");
    // What is removed or moved isn't shown in the preview either.
    for (tool, arguments) in [
        ("file_remove", json!({"path": private, "dry_run": true})),
        ("file_move", json!({"path": private, "to": "/etc/lsa-files/moved", "dry_run": true})),
    ] {
        let preview = client.envelope(tool, arguments).await.to_string();
        assert!(preview.contains("/etc/lsa-files/private"), "{preview}");
        assert!(!preview.contains("k4x7q2") && !preview.contains("sha256"), "{tool}: {preview}");
    }
    // Jobs are no secrets, and metadata is told of every file.
    let read = client.envelope("file_read", json!({"path": open})).await;
    assert_eq!(read["data"]["text"], "# word k4x7q2\n", "{read}");
    let stat = client.envelope("file_stat", json!({"path": private})).await;
    assert_eq!((&stat["data"][0]["mode"], &stat["data"][0]["size"]), (&json!("0600"), &json!(14)), "{stat}");
    machine.is_still(&before, "what was refused");
}
