//! Tests the tools against outputs of `journalctl` of systemd 252 (252.39-1~deb12u2), recorded on booted machines: Debian 12
//! and one with the layout of Fedora.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::knowledge::{Log, LogFormat, LogPattern, LogSource, Profile, Severity, Unit};
use linux_sysadmin_sdk::testkit::{self, FakeTarget};
use linux_sysadmin_sdk::{Metadata, Problem};
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
        let times: Vec<_> = lines.iter().map(|line| &line.as_str().unwrap()[..20]).collect();
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
            "total": 7,
            "lines": [
                "2026-11-22T11:34:54Z binary: \u{1}\u{2}bin \u{fffd}",
                "2026-11-22T11:34:54Z probe err x2: caf\\303\\251 failed 1",
                "2026-11-22T11:34:55Z sshd x3: Connection closed by authenticating user nobody 127.0.0.1 port 49418 [preauth]",
                "2026-11-22T11:34:55Z two warning: two\nmessages"
            ],
            "cursor": "s=6e31b10859fa471c905cebe812433e63;i=b2;b=80198dc26e08466f8e66b1dee54d3f8f;m=da95cae8b;t=660dbddcbdd94;x=5f86f80e62e784c4"
        })
    );
}

#[test]
fn every_condition_reaches_journalctl() {
    let options = [
        "--reverse",
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
    let backwards: Vec<_> = last(RHEL, 3).lines().rev().map(|line| format!("{line}\n")).collect();
    let target = FakeTarget::new().answer(&journalctl(&options), 0, backwards.concat(), "");
    let asked = json!({
        "limit": 2, "since": "@1795340000", "until": "@1795350000", "priority": "warning", "boot": "-1",
        "units": ["nginx.service", "postgresql@.service"], "identifier": "sudo", "fields": ["_UID=0"],
    });
    let (data, _) = query(target, asked).unwrap();
    let (newest, _) = query(
        FakeTarget::new().answer(&journalctl(&["--lines=3"]), 0, last(RHEL, 3), ""),
        json!({"limit": 2}),
    )
    .unwrap();
    assert_eq!((&data["lines"], &data["truncated"]), (&newest["lines"], &json!(true)));
}

#[test]
fn behind_a_cursor_it_goes_on_with_the_next_lines() {
    let cursor = "s=1;i=2";
    let target = FakeTarget::new().answer(&journalctl(&["--after-cursor=s=1;i=2"]), 0, last(RHEL, 5), "");
    let (data, _) = query(target, json!({"after_cursor": cursor, "limit": 2})).unwrap();
    let lines = data["lines"].as_array().unwrap().iter();
    let messages: Vec<_> = lines.map(|line| line.as_str().unwrap().split_once(": ").unwrap().1).collect();
    let expected = [
        "pam_unix(cron:session): session closed for user root",
        "Starting systemd-tmpfiles-clean.service - Cleanup of Temporary Directories...",
    ];
    assert_eq!(messages, expected);
    assert!(data["cursor"].as_str().unwrap().contains("i=7d;"), "{}", data["cursor"]);
    assert_eq!(data["truncated"], true);
    // The cursor stays the same where there is no new entry.
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
        (json!({"units": ["--file=/etc/shadow"]}), "INVALID_UNIT"),
        (json!({"units": ["a b"]}), "INVALID_UNIT"),
        (json!({"identifier": "--vacuum-size=1"}), "INVALID_IDENTIFIER"),
        (json!({"identifier": "a\nb"}), "INVALID_IDENTIFIER"),
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

/// The logs of nginx's profile.
fn nginx() -> Profile {
    let log = |source: LogSource, format: LogFormat| Log {
        source,
        format,
        line: None,
        time: None,
        root: false,
        optional: false,
        what: None,
    };
    let error = Log {
        line: Some(r"^(?P<time>[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9:]{8}) \[(?P<level>[a-z]+)\] [0-9]+#[0-9]+: (?P<message>.*)$".into()),
        time: Some("%Y/%m/%d %H:%M:%S".into()),
        ..log(LogSource::Path("/var/log/nginx/error.log".into()), LogFormat::Other)
    };
    Profile {
        units: vec![Unit {
            name: "nginx.service".into(),
            aliases: Vec::new(),
            main: true,
            reload: true,
            optional: false,
            what: None,
        }],
        processes: vec!["nginx".into()],
        logs: vec![
            error,
            log(LogSource::Path("/var/log/nginx/access.log".into()), LogFormat::Common),
            log(LogSource::Path("/var/log/nginx/none.log".into()), LogFormat::Common),
            log(LogSource::Journal("nginx.service".into()), LogFormat::Journal),
        ],
        log_patterns: vec![LogPattern {
            matches: r"connect\(\) failed \(111: Connection refused\) while connecting to upstream".into(),
            severity: Severity::Error,
            means: "Nothing listens where requests are passed on to".into(),
            symptom: Some("bad-gateway".into()),
        }],
        ..testkit::profile("nginx")
    }
}

const ERROR_LOG: &str = "\
2026/11/22 11:17:01 [error] 812#812: *1 connect() failed (111: Connection refused) while connecting to upstream
2026/11/22 11:17:02 [error] 812#812: *2 connect() failed (111: Connection refused) while connecting to upstream
2026/11/22 11:17:04 [notice] 1#1: signal 15 (SIGTERM) received, exiting
";
const ACCESS_LOG: &str = "\
192.0.2.7 - - [22/Nov/2026:11:17:03 +0000] \"GET / HTTP/1.1\" 502 157 \"-\" \"curl/7.88.1\"
192.0.2.7 - - [22/Nov/2026:12:17:05 +0100] \"GET / HTTP/1.1\" 200 615 \"-\" \"curl/7.88.1\"
";

fn at(unix: i64, size: usize) -> Metadata {
    Metadata {
        size: size as u64,
        mode: 0o640,
        owner: "root".into(),
        group: "adm".into(),
        modified_unix: unix,
        is_dir: false,
        is_symlink: false,
    }
}

fn with_nginx() -> FakeTarget {
    let started = r#"{"__REALTIME_TIMESTAMP":"1795346219100000","__CURSOR":"c","PRIORITY":"6","SYSLOG_IDENTIFIER":"systemd","UNIT":"nginx.service","_SYSTEMD_UNIT":"init.scope","MESSAGE":"Started nginx.service - A high performance web server and a reverse proxy server."}"#;
    FakeTarget::new()
        .profile(nginx())
        .answer(&["date", "+%s"], 0, "1795346300\n", "")
        .answer(&journalctl(&["--lines=101", "--unit=nginx.service"]), 0, started, "")
        .metadata("/var/log/nginx/error.log", at(1_795_346_224, ERROR_LOG.len()))
        .metadata("/var/log/nginx/access.log", at(1_795_346_225, ACCESS_LOG.len()))
        .file("/var/log/nginx/error.log", ERROR_LOG)
        .file("/var/log/nginx/access.log", ACCESS_LOG)
}

#[test]
fn all_that_a_service_wrote_is_in_one_order_of_time_and_what_isnt_there_is_named() {
    let (data, reply) = with_nginx().call(&module(), "svc_logs", json!({"service": "nginx"})).unwrap();
    assert_eq!(
        data,
        json!({
            "total": 6,
            "lines": [
                "2026-11-22T11:16:59Z systemd: Started nginx.service - A high performance web server and a reverse proxy server.",
                "2026-11-22T11:17:01Z..11:17:02Z error.log err x2: *1 connect() failed (111: Connection refused) while connecting to upstream",
                "2026-11-22T11:17:03Z access.log err: 192.0.2.7 - - \"GET / HTTP/1.1\" 502 157 \"-\" \"curl/7.88.1\"",
                "2026-11-22T11:17:04Z error.log notice: signal 15 (SIGTERM) received, exiting",
                "2026-11-22T11:17:05Z access.log: 192.0.2.7 - - \"GET / HTTP/1.1\" 200 615 \"-\" \"curl/7.88.1\""
            ],
            "sources": ["journal: nginx.service", "/var/log/nginx/error.log", "/var/log/nginx/access.log"],
            "missing": ["/var/log/nginx/none.log"]
        })
    );
    assert!(reply.notes.is_empty());
}

const FIND: [&str; 7] = ["find", "/var/log", "-xdev", "-type", "f", "-printf", "%s %b %T@ %p\\0"];

fn found() -> String {
    let file =
        |size: usize, unix: i64, path: &str| format!("{size} {} {unix}.5 {path}\0", size.div_ceil(512));
    [
        file(ERROR_LOG.len(), 1_795_346_224, "/var/log/nginx/error.log"),
        file(ACCESS_LOG.len(), 1_795_346_225, "/var/log/nginx/access.log"),
        file(8_388_608, 1_795_346_225, "/var/log/journal/b6/system.journal"),
        file(1536, 1_795_346_225, "/var/log/wtmp"),
    ]
    .concat()
}

#[test]
fn every_match_is_counted_and_what_is_repeated_is_shown_once() {
    let search = journalctl(&["--case-sensitive=true", "--grep=\\QConnection refused\\E"]);
    let target = with_nginx()
        .answer(&search, 0, "", "")
        .answer(
            &journalctl(&[
                "--reverse",
                "--lines=1",
                "--since=@4294967296",
                "--case-sensitive=true",
                "--grep=\\Qx\\E",
            ]),
            1,
            "",
            "",
        )
        .answer(&journalctl(&["--lines=1"]), 0, last(RHEL, 1), "")
        .answer(&FIND, 0, found(), "");
    let (data, _) = target.call(&module(), "log_search", json!({"pattern": "Connection refused"})).unwrap();
    assert_eq!(
        data,
        json!({
            "matches": 2,
            "lines": [
                "2026-11-22T11:17:01Z..11:17:02Z error.log err x2: *2 connect() failed (111: Connection refused) while \
                 connecting to upstream"
            ],
            "sources": {"/var/log/nginx/error.log": 2},
            "files": 2
        })
    );
}

#[test]
fn a_line_is_shown_with_those_around_it() {
    let asked =
        json!({"pattern": "SIGTERM", "fixed": true, "path": "/var/log/nginx/error.log", "context": 1});
    let (data, _) = with_nginx().call(&module(), "log_search", asked).unwrap();
    assert_eq!(
        data["lines"],
        json!([{
            "line": "2026-11-22T11:17:04Z error.log notice: signal 15 (SIGTERM) received, exiting",
            "before": ["*2 connect() failed (111: Connection refused) while connecting to upstream"]
        }])
    );
}

#[test]
fn only_what_is_shown_is_searched() {
    let target = || with_nginx().secret("connect()");
    let search = |pattern: &str, context: u8| {
        let asked = json!({"pattern": pattern, "path": "/var/log/nginx/error.log", "context": context});
        target().call(&module(), "log_search", asked).unwrap().0["matches"].clone()
    };
    for context in [0, 1] {
        // Otherwise, a caller could find out the secret letter by letter.
        for part in ["connect\\(", "c.*ct\\(", "connect\\(\\) failed"] {
            assert_eq!(search(part, context), 0, "{part}");
        }
        assert_eq!(search("Connection refused", context), 2);
    }
}

#[test]
fn what_cant_be_searched_for_says_why() {
    for (arguments, code) in [
        (json!({"pattern": ""}), "EMPTY_PATTERN"),
        (json!({"pattern": "(?<=a)b"}), "INVALID_EXPRESSION"),
        (json!({"pattern": "a", "context": 11}), "INVALID_CONTEXT"),
        (json!({"pattern": "a", "path": "/var/log/x", "service": "x"}), "INVALID_ARGUMENTS"),
        (json!({"pattern": "a", "path": "/etc/passwd"}), "NOT_A_LOG"),
        (json!({"pattern": "a", "path": "/var/log/../x"}), "INVALID_PATH"),
        (json!({"pattern": "a", "service": "../x"}), "INVALID_SERVICE"),
    ] {
        let problem = with_nginx().call(&module(), "log_search", arguments.clone()).err().unwrap();
        assert_eq!(problem.code, code, "{arguments}");
    }
}

fn entry(second: i64, priority: u8, identifier: &str, unit: &str, message: &str) -> String {
    let entry = json!({
        "__REALTIME_TIMESTAMP": (second * 1_000_000).to_string(), "__CURSOR": "c", "PRIORITY": priority.to_string(),
        "SYSLOG_IDENTIFIER": identifier, "_SYSTEMD_UNIT": unit, "UNIT": unit, "MESSAGE": message,
    });
    entry.to_string() + "\n"
}

/// The words for which the journal is searched besides errors and warnings: of the kernel, of systemd, of profiles, and of
/// levels.
const WORDS: &str = concat!(
    r"--grep=\QKilled process\E|\QScheduled restart job\E|\Qalert\E|",
    r"\Qconnect() failed (111: Connection refused) while connecting to upstream\E|",
    r"\Qcrit\E|\Qemerg\E|\Qeror\E|\Qerr\E|\Qfailure\E|\Qfatal\E|\Qpanic\E|\Qsevere\E|\Qwarn\E|\Qwrn\E"
);

#[test]
fn a_summary_says_what_is_wrong_since_when_and_what_that_means() {
    let urgent = [
        entry(1_795_310_000, 3, "app", "app.service", "job 1 failed"),
        entry(1_795_346_000, 3, "app", "app.service", "job 2 failed"),
        entry(1_795_346_001, 2, "kernel", "", "Out of memory: Killed process 812 (mysqld) total-vm:1kB"),
    ]
    .concat();
    let restart = "app.service: Scheduled restart job, restart counter is at";
    let rest: String = (1..4)
        .map(|count| {
            entry(1_795_346_000 + count, 6, "systemd", "app.service", &format!("{restart} {count}."))
        })
        .collect();
    let since = "--since=@1795259900";
    let target = with_nginx()
        .answer(&journalctl(&[since, "--priority=4"]), 0, urgent, "")
        .answer(&journalctl(&[since, "--case-sensitive=false", WORDS]), 0, rest, "")
        .answer(&FIND, 0, found(), "");
    let (data, reply) = target.call(&module(), "log_summary", json!({})).unwrap();
    assert_eq!(
        data,
        json!({
            "since": "2026-11-21T11:18:20Z",
            "errors": 6,
            "warnings": 0,
            "units": [
                {"unit": "app", "errors": 2, "first": "2026-11-22T01:13:20Z", "last": "2026-11-22T11:13:20Z"},
                {"unit": "nginx/error.log", "errors": 2, "first": "2026-11-22T11:17:01Z", "last": "2026-11-22T11:17:02Z"},
                {"unit": "kernel", "errors": 1, "first": "2026-11-22T11:13:21Z", "last": "2026-11-22T11:13:21Z"},
                {"unit": "nginx/access.log", "errors": 1, "first": "2026-11-22T11:17:03Z", "last": "2026-11-22T11:17:03Z"}
            ],
            "per_hour": {"2026-11-22T01": [1, 0], "2026-11-22T11": [5, 0]},
            "known": [{
                "profile": "nginx", "severity": "error", "means": "Nothing listens where requests are passed on to",
                "symptom": "bad-gateway", "count": 2, "last": "2026-11-22T11:17:02Z",
                "message": "*2 connect() failed (111: Connection refused) while connecting to upstream"
            }],
            "messages": data["messages"],
            "flapping": [{
                "unit": "app", "restarts": 3, "first": "2026-11-22T11:13:21Z", "last": "2026-11-22T11:13:23Z"
            }],
            "oom_kills": [{"time": "2026-11-22T11:13:21Z", "process": "mysqld (812)"}],
            "sources": {"journal": 6, "files": 2}
        })
    );
    let messages = data["messages"].as_array().unwrap();
    let of_app = messages.iter().find(|message| message["unit"] == "app").unwrap();
    assert_eq!((&of_app["count"], of_app.get("new")), (&json!(2), None));
    assert_eq!(messages.iter().filter(|message| message["new"] == true).count(), 3);
    assert_eq!(reply.severity.as_deref(), Some("high"));
    assert!(reply.summary.unwrap().contains("the kernel killed mysqld (812) for want of memory"));
}

#[test]
fn where_a_list_is_cut_all_are_counted() {
    let urgent: String = (0..20)
        .map(|n| {
            let name = char::from(b'a' + n);
            entry(
                1_795_346_000,
                3,
                &format!("app-{name}"),
                &format!("app-{name}.service"),
                &format!("{name} is gone"),
            )
        })
        .collect();
    let since = "--since=@1795259900";
    let target = with_nginx()
        .answer(&journalctl(&[since, "--priority=4"]), 0, urgent, "")
        .answer(&journalctl(&[since, "--case-sensitive=false", WORDS]), 0, "", "")
        .answer(&FIND, 0, "", "");
    let (data, _) = target.call(&module(), "log_summary", json!({})).unwrap();
    for list in ["units", "messages"] {
        let shown = data[list].as_array().unwrap().len();
        assert_eq!((shown, &data[format!("{list}_total")]), (12, &json!(20)), "{data}");
    }
    let many: String =
        (0..15).map(|n| format!("209715200 409600 1795346225.5 /var/log/{n}/app.log\x00")).collect();
    let (data, _) =
        with_nginx().answer(&FIND, 0, many, "").call(&module(), "log_disk_usage", json!({})).unwrap();
    for list in ["files", "directories"] {
        let shown = data[list].as_array().unwrap().len();
        assert_eq!((shown, &data[format!("{list}_total")]), (10, &json!(15)), "{data}");
    }
}

#[test]
fn what_logs_take_says_how_full_the_disk_is_and_what_is_still_open() {
    let df = "  1B-blocks       Used     Avail Mounted on\n4294967296 4080218931 214748365 /\n";
    let lsof =
        "p35\ncrsyslogd\nf7\ns209715200\nn/var/log/syslog.1 (deleted)\np36\ncx\nf1\ns10\nn/tmp/x (deleted)\n";
    let taken = "Archived and active journals take up 8.0M in the file system.\n";
    let journald = [
        entry(
            1,
            6,
            "systemd-journald",
            "",
            "Runtime Journal (/run/log/journal/b6) is 8.0M, max 483.0M, 475.0M free.",
        ),
        entry(
            2,
            6,
            "systemd-journald",
            "",
            "System Journal (/var/log/journal/b6) is 8.0M, max 64.0M, 56.0M free.",
        ),
    ]
    .concat();
    let large = "209715200 409600 1795346225.5 /var/log/app.log\x00".to_owned() + &found();
    let most = journalctl(&[
        "--lines=21",
        "--case-sensitive=true",
        "--grep=\\Q Journal (\\E",
        "--identifier=systemd-journald",
    ]);
    let target = with_nginx()
        .answer(&FIND, 0, large, "")
        .answer(&["df", "--block-size=1", "--output=size,used,avail,target", "--", "/var/log"], 0, df, "")
        .answer(&["journalctl", "--disk-usage", "--no-pager"], 0, taken, "")
        .answer(&["lsof", "-nP", "-w", "+L1", "-F", "pcsn"], 0, lsof, "")
        .answer(&most, 0, journald, "");
    let (data, reply) = target.call(&module(), "log_disk_usage", json!({})).unwrap();
    assert_eq!(
        data,
        json!({
            "filesystem": {"mount": "/", "size_mib": 4096.0, "free_mib": 204.8, "used_pct": 95.0},
            "total_mib": 208.0,
            "journal": {"mib": 8.0, "max_mib": 64.0},
            "directories": [
                {"path": "/var/log", "mib": 200.0, "files": 2},
                {"path": "/var/log/journal", "mib": 8.0, "files": 1}
            ],
            "files": [{"path": "/var/log/app.log", "mib": 200.0, "modified": "2026-11-22T11:17:05Z"}],
            "unrotated": ["/var/log/app.log"],
            "deleted_open": [{"path": "/var/log/syslog.1", "mib": 200.0, "process": "rsyslogd", "pid": 35}]
        })
    );
    assert_eq!(reply.severity.as_deref(), Some("critical"));
}
