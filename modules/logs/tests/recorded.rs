//! The tools against what `journalctl` of systemd 252 (252.39-1~deb12u2) printed on booted machines, Debian 12 and one
//! that is laid out as Fedora.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::{Problem, testkit::FakeTarget};
use module_logs::module;
use serde_json::{Value, json};

const DEBIAN: &str = include_str!("fixtures/debian12-systemd252.json");
const RHEL: &str = include_str!("fixtures/rhel-like-systemd252.json");

const JOURNALCTL: [&str; 5] = [
    "journalctl",
    "--no-pager",
    "--all",
    "--output=json",
    "--output-fields=MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,_SYSTEMD_UNIT,UNIT,_COMM",
];

fn journalctl<'a>(options: &[&'a str]) -> Vec<&'a str> {
    JOURNALCTL.iter().chain(options).copied().collect()
}

fn query(target: FakeTarget, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), "log_query", arguments).map(|(data, reply)| (data, reply.notes))
}

#[test]
fn the_newest_entries_are_shown_with_time_source_and_level_and_the_cursor_behind_them() {
    for (recorded, cursor) in [
        (
            DEBIAN,
            "s=6e31b10859fa471c905cebe812433e63;i=b2;b=80198dc26e08466f8e66b1dee54d3f8f;m=da95cae8b;t=660dbddcbdd94;x=5f86f80e62e784c4",
        ),
        (
            RHEL,
            "s=447ab4d13bec4c52a3338b358ea58b7f;i=80;b=99d5ac3ae65345eea87c90e0bab6c37b;m=d8688f180;t=660dbbaf8208a;x=7ce4700a542c3369",
        ),
    ] {
        let target = FakeTarget::new().answer(&journalctl(&["--lines=101"]), 0, recorded, "");
        let (data, notes) = query(target, json!({"fold": false})).unwrap();
        let lines = data["lines"].as_array().unwrap();
        assert_eq!(lines.len(), recorded.lines().count().min(100));
        assert_eq!(data["cursor"], cursor);
        assert_eq!(data.get("truncated").is_some(), recorded.lines().count() > 100);
        assert!(notes.is_empty());
        let times: Vec<_> = lines.iter().map(|line| line["time"].as_str().unwrap()).collect();
        assert!(times.is_sorted());
    }
}

/// The last entries of a recording.
fn last(recorded: &str, count: usize) -> String {
    let lines: Vec<_> = recorded.lines().collect();
    lines[lines.len() - count..].join("\n") + "\n"
}

#[test]
fn bytes_and_several_values_are_text_and_what_is_repeated_is_said_once() {
    let target = FakeTarget::new().answer(&journalctl(&["--lines=8"]), 0, last(DEBIAN, 7), "");
    let (data, _) = query(target, json!({"limit": 7})).unwrap();
    assert_eq!(
        data,
        json!({
            "lines": [
                {"time": "2026-11-22T11:34:54Z", "source": "binary", "message": "\u{1}\u{2}bin \u{fffd}"},
                {
                    "time": "2026-11-22T11:34:54Z", "source": "probe", "level": "err",
                    "message": "caf\\303\\251 failed 1", "count": 2
                },
                {
                    "time": "2026-11-22T11:34:55Z", "source": "sshd", "count": 3,
                    "message": "Connection closed by authenticating user nobody 127.0.0.1 port 49418 [preauth]"
                },
                {"time": "2026-11-22T11:34:55Z", "source": "two", "level": "warning", "message": "two\nmessages"}
            ],
            "cursor": "s=6e31b10859fa471c905cebe812433e63;i=b2;b=80198dc26e08466f8e66b1dee54d3f8f;m=da95cae8b;t=660dbddcbdd94;x=5f86f80e62e784c4"
        })
    );
}

#[test]
fn every_condition_reaches_journalctl() {
    let options = [
        "--lines=3",
        "--since=@1795340000",
        "--until=@1795350001",
        "--priority=4",
        "--boot=-1",
        "--unit=nginx.service",
        "--unit=postgresql@*.service",
        "--identifier=sudo",
        "--",
        "_UID=0",
    ];
    let target = FakeTarget::new().answer(&journalctl(&options), 0, last(RHEL, 3), "");
    let asked = json!({
        "limit": 2, "since": "@1795340000", "until": "@1795350000", "priority": "warning", "boot": "-1",
        "units": ["nginx.service", "postgresql@.service"], "identifier": "sudo", "fields": ["_UID=0"],
    });
    let (data, _) = query(target, asked).unwrap();
    assert_eq!((data["lines"].as_array().unwrap().len(), &data["truncated"]), (2, &json!(true)));
}

#[test]
fn behind_a_cursor_it_goes_on_with_the_next_lines() {
    let cursor = "s=1;i=2";
    let target = FakeTarget::new().answer(&journalctl(&["--after-cursor=s=1;i=2"]), 0, last(RHEL, 5), "");
    let (data, _) = query(target, json!({"after_cursor": cursor, "limit": 2})).unwrap();
    let messages: Vec<_> = data["lines"].as_array().unwrap().iter().map(|line| &line["message"]).collect();
    let expected = [
        "pam_unix(cron:session): session closed for user root",
        "Starting systemd-tmpfiles-clean.service - Cleanup of Temporary Directories...",
    ];
    assert_eq!(messages, expected);
    assert!(data["cursor"].as_str().unwrap().contains("i=7d;"), "{}", data["cursor"]);
    assert_eq!(data["truncated"], true);
    // Where nothing is new, the cursor stays.
    let none = FakeTarget::new()
        .answer(&journalctl(&["--after-cursor=s=1;i=2"]), 0, "", "")
        .answer(&journalctl(&["--lines=1", "--after-cursor=s=1;i=2"]), 0, "", "")
        .answer(&journalctl(&["--lines=1"]), 0, last(RHEL, 1), "");
    let (data, notes) = query(none, json!({"after_cursor": cursor})).unwrap();
    assert_eq!((data, notes.len()), (json!({"lines": [], "cursor": cursor}), 0));
}

#[test]
fn a_missing_journal_and_one_that_nobody_may_read_say_so() {
    let none = FakeTarget::new().answer(&journalctl(&["--lines=101"]), 0, "", "").answer(
        &journalctl(&["--lines=1"]),
        0,
        "",
        "",
    );
    let (data, notes) = query(none, json!({})).unwrap();
    assert_eq!((data, notes), (json!({"lines": []}), vec!["journal: there is no journal".to_owned()]));
    let said = "No journal files were opened due to insufficient permissions.\n";
    let refused = FakeTarget::new().answer(&journalctl(&["--lines=101"]), 1, "", said);
    let (_, notes) = query(refused, json!({})).unwrap();
    assert_eq!(notes, ["journal: No journal files were opened due to insufficient permissions."]);
}

#[test]
fn bad_input_says_what_was_expected() {
    let boot = "Data from the specified boot (-1) is not available: No such boot ID in journal\n";
    let cursor = "Failed to seek to cursor: Invalid argument\n";
    for (arguments, code) in [
        (json!({"since": "@2", "until": "@1"}), "INVALID_RANGE"),
        (json!({"since": "1. März"}), "INVALID_TIME"),
        (json!({"priority": "bad"}), "UNKNOWN_PRIORITY"),
        (json!({"fields": ["/usr/bin/x"]}), "INVALID_FIELD"),
        (json!({"fields": ["+"]}), "INVALID_FIELD"),
        (json!({"boot": "-1 --file=/x"}), "INVALID_BOOT"),
        (json!({"boot": "-1"}), "BOOT_NOT_FOUND"),
        (json!({"after_cursor": "x"}), "INVALID_CURSOR"),
        (json!({"limit": 0}), "INVALID_LIMIT"),
        (json!({"limit": 2001}), "INVALID_LIMIT"),
        (json!({"path": "/var/log/syslog", "units": ["x"]}), "INVALID_ARGUMENTS"),
    ] {
        let target = FakeTarget::new()
            .answer(&journalctl(&["--lines=101", "--boot=-1"]), 1, "", boot)
            .answer(&journalctl(&["--after-cursor=x"]), 1, "", cursor)
            .answer(&journalctl(&["--lines=1", "--after-cursor=x"]), 1, "", cursor);
        assert_eq!(query(target, arguments.clone()).unwrap_err().code, code, "{arguments}");
    }
}
