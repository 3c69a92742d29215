//! Reads logs of a real host, of any program, packed in any way, and of any size.

use linux_sysadmin_tests::{Changing, Reach, way};
use serde_json::{Value, json};

const CLEAN: &str = "rm -rf /var/log/lsa";

/// Makes a log with rotated files, one with a hole of 5 GiB, one with a line of 10 MB, and one that isn't all text.
const PREPARE: &str = r#"
mkdir -p /var/log/lsa
cd /var/log/lsa
printf '2026-03-01T10:00:01Z one\n2026-03-01T10:00:02Z two\n' | gzip > app.log.2.gz
printf '2026-03-01T10:00:03Z three\n' > app.log.1
printf '2026-03-01T10:00:04Z four\n  and more' > app.log
touch -d 2026-03-01T10:00:02Z app.log.2.gz
touch -d 2026-03-01T10:00:03Z app.log.1
touch -d 2026-03-01T10:00:04Z app.log
truncate -s 5G hole.log
printf '2026-03-01T10:00:05Z behind the hole\n' >> hole.log
head -c 10000000 /dev/zero | tr '\0' x > long.log
printf '\n2026-03-01T10:00:06Z behind the long line\n' >> long.log
printf '2026-03-01T10:00:07Z caf\351\n' > bytes.log
: > empty.log
"#;

fn messages(envelope: &Value) -> Vec<String> {
    let lines = envelope["data"]["lines"].as_array().unwrap_or_else(|| panic!("{envelope}"));
    let message = |line: &Value| line.as_str()?.split_once(": ").map(|(_, message)| message.to_owned());
    lines.iter().map(|line| message(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

#[tokio::test]
async fn a_log_is_read_with_its_rotated_files_whatever_is_in_it() {
    let test = "a_log_is_read_with_its_rotated_files_whatever_is_in_it";
    let Some(machine) = Changing::by(way(), test, PREPARE, CLEAN) else { return };
    // On a busy machine, a hole of 5 GiB takes longer than the time after which a call becomes a job.
    machine.configure("root", "jobs:\n  after_seconds: 600\n");
    let mut client = machine.serve_default().await;
    for (arguments, expected) in [
        (json!({"path": "/var/log/lsa/app.log"}), &["one", "two", "three", "four", "  and more"][..]),
        (json!({"path": "/var/log/lsa/app.log", "limit": 2}), &["four", "  and more"]),
        (json!({"path": "/var/log/lsa/app.log", "limit": 2, "order": "oldest"}), &["one", "two"]),
        (
            json!({"path": "/var/log/lsa/app.log", "since": "2026-03-01T10:00:02Z", "until": "2026-03-01T10:00:03Z"}),
            &["two", "three"],
        ),
        (json!({"path": "/var/log/lsa/hole.log"}), &["behind the hole"]),
        (json!({"path": "/var/log/lsa/long.log", "limit": 1}), &["behind the long line"]),
        (json!({"path": "/var/log/lsa/bytes.log"}), &["caf\u{fffd}"]),
        (json!({"path": "/var/log/lsa/empty.log"}), &[]),
    ] {
        let envelope = client.envelope("log_query", arguments.clone()).await;
        assert_eq!(messages(&envelope), expected, "{arguments}: {envelope}");
    }
    for (path, code) in [
        ("/var/log/wtmp", "NOT_TEXT"),
        ("/var/log/lsa", "IS_A_DIRECTORY"),
        ("/var/log/lsa/none", "FILE_NOT_FOUND"),
        ("/etc/passwd", "NOT_A_LOG"),
        ("/var/log/../../etc/passwd", "INVALID_PATH"),
    ] {
        let envelope = client.envelope("log_query", json!({"path": path})).await;
        assert_eq!(envelope["error_code"], code, "{envelope}");
    }
    // A hidden secret can't be found by a search, letter by letter, either.
    machine.sh("echo 'app: login with password=Zq7hunter2 ok' >> /var/log/lsa/secret.log");
    for (pattern, matches) in [("password=Z", 0), ("hunter2", 0), ("login with", 1)] {
        let found = client
            .envelope("log_search", json!({"pattern": pattern, "path": "/var/log/lsa/secret.log"}))
            .await;
        assert_eq!(found["data"]["matches"], matches, "{pattern}: {found}");
    }
    machine.sh("rm /var/log/lsa/secret.log");
    // A private key, written line by line as programs do, with a time before each line and without one.
    machine.sh("cd /var/log/lsa; rm -f /run/lsa-key*; ssh-keygen -q -t ed25519 -N '' -f /run/lsa-key; \
         cp /run/lsa-key key.log; sed 's/^/2026-03-01T10:00:08Z app: /' /run/lsa-key > told.log");
    let key = machine.sh("sed '1d;$d' /run/lsa-key");
    for path in ["/var/log/lsa/key.log", "/var/log/lsa/told.log"] {
        for (tool, more) in [
            ("log_query", json!({})),
            ("log_search", json!({"pattern": "."})),
            ("log_search", json!({"pattern": ".", "fold": false})),
            ("log_search", json!({"pattern": "b3BlbnNzaC1rZXk"})),
        ] {
            let mut arguments = more;
            arguments["path"] = path.into();
            let said = client.envelope(tool, arguments.clone()).await.to_string();
            for line in key.lines() {
                assert!(!said.contains(&line[..20.min(line.len())]), "{tool} {arguments}: {said}");
            }
        }
    }
    machine.sh("rm -f /run/lsa-key* /var/log/lsa/key.log /var/log/lsa/told.log");
    if let Reach::OverSsh(_) = way() {
        // A file with zeros is transferred whole to be searched. On a busy machine, 5 GiB take more than a minute.
        machine.sh(
            "cd /var/log/lsa; rm hole.log; truncate -s 300M hole.log; echo '2026-03-01T10:00:05Z behind' >> hole.log",
        );
    }
    let found = client.envelope("log_search", json!({"pattern": "behind|two", "path": "/var/log/lsa"})).await;
    assert_eq!(found["data"]["matches"], 3, "{found}");
    let sizes = client.envelope("log_disk_usage", json!({})).await;
    assert!(sizes["data"]["files"].to_string().contains("/var/log/lsa/long.log"), "{sizes}");
}

#[tokio::test]
async fn what_the_journal_is_told_is_found_and_summed_up() {
    let test = "what_the_journal_is_told_is_found_and_summed_up";
    let Some(machine) = Changing::by(way(), test, "", CLEAN) else { return };
    let mut client = machine.serve_default().await;
    let begun = machine.sh("date +%s").trim().to_owned();
    machine.sh("for n in 1 2 3; do logger --priority daemon.err --tag lsa-app \"job $n failed\"; done");
    machine.sh("printf '\\001bin\\n' | systemd-cat --identifier lsa-app; journalctl --sync");
    machine.until("journalctl --identifier lsa-app --output cat | grep --line-regexp 'job 3 failed'");
    let since = format!("@{begun}");
    let asked = client.envelope("log_query", json!({"identifier": "lsa-app", "since": since})).await;
    let first = asked["data"]["lines"][0].as_str().expect("a line");
    assert!(first.ends_with(" err x3: job 1 failed"), "{asked}");
    let shown = asked["data"]["lines"].as_array().map_or(0, Vec::len) as u64;
    assert_eq!(asked["data"]["total"].as_u64(), Some(shown + 2), "what is shown once counts: {asked}");
    let each = json!({"identifier": "lsa-app", "since": since, "fold": false});
    let all = messages(&client.envelope("log_query", each.clone()).await);
    let mut few = each;
    few["limit"] = json!(2);
    let newest = client.envelope("log_query", few.clone()).await;
    assert_eq!(messages(&newest), all[all.len() - 2..], "{newest}");
    few["order"] = json!("oldest");
    assert_eq!(messages(&client.envelope("log_query", few).await), all[..2]);
    let cursor = asked["data"]["cursor"].clone();
    machine.sh("logger --tag lsa-app 'and then'");
    // A message to syslog's socket may reach the journal after the sync.
    machine.until("journalctl --identifier lsa-app --output cat | grep --line-regexp 'and then'");
    let next = client.envelope("log_query", json!({"identifier": "lsa-app", "after_cursor": cursor})).await;
    assert_eq!(messages(&next), ["and then"], "{next}");
    let found = client.envelope("log_search", json!({"pattern": r"job \d failed", "since": since})).await;
    assert_eq!(found["data"]["sources"]["journal"], 3, "{found}");
    let summed = client.envelope("log_summary", json!({"since": since})).await;
    assert!(summed["data"]["errors"].as_u64() >= Some(3), "{summed}");
    assert!(summed["data"]["messages"].to_string().contains("job "), "{summed}");
}
