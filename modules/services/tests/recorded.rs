//! Tests the tools against recordings of booted Debian 12 machines with systemd 252. The first machine has some units of
//! each kind and is in the time zone Europe/Berlin; on the second one, much fails.
//!
//! Each file in `fixtures` holds `$ COMMAND` and what it printed. The files named `systemctl-…` hold what systemctl prints
//! for people, and the tools must agree with it. The first machine counts no memory, and its recordings lack some of the
//! properties that the tools ask for, as with an older systemd.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use linux_sysadmin_sdk::bindings::exports::sysadmin::module::describe;
use linux_sysadmin_sdk::{Privilege, Problem, Risk, testkit::FakeTarget};
use module_services::module;
use serde_json::{Value, json};

const SOME_OF_EVERYTHING: &str = "debian12-systemd252";
const FAILING: &str = "debian12-systemd252-failing";

/// The words of a command line, without variables and quotes.
fn argv(line: &str) -> Vec<String> {
    let words = line.split(' ').filter(|word| *word != "TZ=UTC");
    words.map(|word| word.trim_matches('\'').to_owned()).collect()
}

/// The granted command that asks for at least the recorded properties.
fn as_granted(mut recorded: Vec<String>, grants: &[Vec<String>]) -> Vec<String> {
    let properties = |word: &str| -> Option<BTreeSet<String>> {
        Some(word.strip_prefix("--property=")?.split(',').map(str::to_owned).collect())
    };
    let is_meant = |granted: &String, word: &String| match (properties(granted), properties(word)) {
        (Some(granted), Some(recorded)) => recorded.is_subset(&granted),
        _ => granted == word || granted.starts_with("<unit>"),
    };
    let matching = grants.iter().filter(|grant| {
        grant.len() <= recorded.len()
            && grant.iter().zip(&recorded).all(|(granted, word)| is_meant(granted, word))
    });
    let grant = matching.min_by_key(|grant| grant.concat().len());
    for (word, granted) in recorded.iter_mut().zip(grant.into_iter().flatten()) {
        if granted.starts_with("--property=") {
            word.clone_from(granted);
        }
    }
    recorded
}

/// The recordings: file name, argument vector without variables, stdout.
fn recordings(folder: &str) -> Vec<(String, Vec<String>, String)> {
    let grants: Vec<_> =
        module().description().capabilities.commands.iter().map(|grant| argv(&grant.pattern)).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(folder);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let (command, stdout) = text.strip_prefix("$ ").unwrap().split_once('\n').unwrap();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, as_granted(argv(command), &grants), stdout.to_owned())
        })
        .collect()
}

fn recorded(name: &str) -> String {
    recordings(SOME_OF_EVERYTHING).into_iter().find(|(file, ..)| file == name).unwrap().2
}

/// The first machine, with some answers replaced.
fn target(other: &[(&str, i32, &str, &str)]) -> FakeTarget {
    machine(SOME_OF_EVERYTHING, other)
}

/// The second machine.
fn failing(other: &[(&str, i32, &str, &str)]) -> FakeTarget {
    machine(FAILING, other)
}

fn machine(folder: &str, other: &[(&str, i32, &str, &str)]) -> FakeTarget {
    recordings(folder).iter().fold(FakeTarget::new(), |target, (file, argv, stdout)| {
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        let instead = other.iter().find(|(name, ..)| name == file);
        let (_, code, stdout, stderr) = *instead.unwrap_or(&("", 0, stdout, ""));
        target.answer(&argv, code, stdout, stderr)
    })
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<Value, Problem> {
    target.call(&module(), tool, arguments).map(|(data, _)| data)
}

fn list(tool: &str) -> Vec<Value> {
    call(target(&[]), tool, json!({})).unwrap().as_array().unwrap().clone()
}

fn status(unit: &str) -> Result<Value, Problem> {
    call(target(&[]), "svc_status", json!({ "service": unit }))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn with_type(service: &str) -> String {
    format!("{service}.service")
}

#[test]
fn svc_list_agrees_with_list_units_unit_by_unit() {
    let units: Vec<Value> = serde_json::from_str(&recorded("systemctl-list-units")).unwrap();
    let listed: BTreeMap<String, Value> =
        list("svc_list").into_iter().map(|item| (with_type(text(&item, "service")), item)).collect();
    let mut compared = 0;
    for unit in &units {
        let name = text(unit, "unit");
        if text(unit, "load") == "not-found" {
            assert!(!listed.contains_key(name), "{name}");
            continue;
        }
        let item = &listed[name];
        assert_eq!(text(item, "active_state"), text(unit, "active"), "{name}");
        assert_eq!(text(item, "sub_state"), text(unit, "sub"), "{name}");
        let description = Some(text(unit, "description")).filter(|description| *description != name);
        assert_eq!(item["description"].as_str(), description, "{name}");
        compared += 1;
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn svc_list_agrees_with_list_unit_files_unit_by_unit() {
    let files: Vec<Value> = serde_json::from_str(&recorded("service-files")).unwrap();
    let items = list("svc_list");
    let names: BTreeSet<String> = items.iter().map(|item| with_type(text(item, "service"))).collect();
    assert_eq!(names.len(), items.len(), "each service is listed once");
    let state_of: BTreeMap<String, &str> =
        items.iter().map(|item| (with_type(text(item, "service")), text(item, "enabled"))).collect();
    for file in &files {
        let (name, state) = (text(file, "unit_file"), text(file, "state"));
        if !name.contains("@.") && state != "alias" {
            assert_eq!(state_of[name], state, "{name}");
        } else {
            assert!(!names.contains(name), "{name}");
        }
    }
    let worker = items.iter().find(|item| item["service"] == "app-worker@1").unwrap();
    assert_eq!(worker["enabled"], "enabled", "an instance has a state of its own");
    let limited = items.iter().find(|item| item["service"] == "app-limited").unwrap();
    assert_eq!(limited["aliases"], json!(["app-alias"]));
}

#[test]
fn svc_list_begins_with_what_failed() {
    let items = list("svc_list");
    let first: Vec<&str> = items.iter().take(5).map(|item| text(item, "service")).collect();
    assert_eq!(first, ["app-fails", "app-killed", "app-missing", "app-loops", "app-limited"]);
    assert_eq!(items[0]["description"], r#"Fails = on purpose; "quoted" — ünïcode \ and a\nnewline"#);
}

#[test]
fn a_running_service_agrees_with_systemctl_status() {
    let said = recorded("systemctl-status-nginx");
    let nginx = status("nginx").unwrap();
    let expected = json!({
        "service": "nginx", "description": "A high performance web server and a reverse proxy server",
        "active_state": "active", "sub_state": "running", "enabled": "enabled",
        "load_state": "loaded", "pid": 44, "started_at": "2026-11-20T16:20:16Z", "uptime_hours": 0.37,
        "cpu_seconds": 0.018, "unit_file": "/lib/systemd/system/nginx.service", "needs_daemon_reload": true,
    });
    assert_eq!(nginx, expected);
    for part in [
        "loaded (/lib/systemd/system/nginx.service; enabled;",
        "since Fri 2026-11-20 16:20:16 UTC; 22min ago",
        "Main PID: 44",
    ] {
        assert!(said.contains(part), "{part}");
    }
    assert_eq!(status("nginx.service").unwrap(), nginx);
    let (_, reply) = target(&[]).call(&module(), "svc_status", json!({"service": "nginx"})).unwrap();
    let note = "systemd has loaded older files of it: svc_show service=nginx says which";
    assert!(reply.notes.iter().any(|said| said == note), "{:?}", reply.notes);
}

#[test]
fn what_went_wrong_is_in_the_status() {
    let table = [
        ("app-fails", json!({"active_state": "failed", "result": "exit-code", "exit_code": 3})),
        ("app-killed", json!({"active_state": "failed", "result": "signal", "exit_signal": "SIGSEGV"})),
        (
            "app-missing",
            json!({"active_state": "failed", "result": "exit-code", "exit_code": 203, "exit_code_means": "its program can't be run"}),
        ),
        (
            "app-loops",
            json!({"active_state": "activating", "sub_state": "auto-restart", "restart": "always", "restarts": 2}),
        ),
        (
            "app-bad",
            json!({"load_state": "bad-setting", "load_error": "Unit app-bad.service has a bad unit file setting."}),
        ),
        ("app-masked", json!({"load_state": "masked", "enabled": "masked"})),
        (
            "getty@tty1",
            json!({"active_state": "inactive", "condition_met": false, "aliases": ["autovt@tty1"]}),
        ),
    ];
    for (unit, expected) in table {
        let status = status(unit).unwrap();
        for (member, value) in expected.as_object().unwrap() {
            assert_eq!(&status[member], value, "{unit} {member}");
        }
        let stopped = unit == "app-bad"
            || unit == "app-masked"
            || unit.starts_with("getty")
            || status["stopped_at"].is_string();
        assert!(stopped && status["started_at"].is_null() && status["pid"].is_null(), "{unit}: {status}");
    }
}

#[test]
fn an_alias_an_instance_and_other_types_are_units_too() {
    let table = [
        ("sshd", json!({"service": "ssh", "aliases": ["sshd"], "restart": "on-failure"})),
        (
            "app-alias",
            json!({"service": "app-limited", "user": "nobody", "memory_limit_mb": 64.0, "drop_ins":
                ["/etc/systemd/system/app-limited.service.d/10-env.conf",
                 "/etc/systemd/system/app-limited.service.d/20 with space.conf"]}),
        ),
        ("app-worker@1", json!({"service": "app-worker@1", "description": "Worker 1"})),
        (
            "app-sock.socket",
            json!({"service": "app-sock.socket", "triggers": ["app-sock.service"],
                "listens": ["/run/app.sock (Stream)", "127.0.0.1:7777 (Stream)"]}),
        ),
        ("app-mono.timer", json!({"service": "app-mono.timer", "triggers": ["app-mono.service"]})),
        ("dbus", json!({"triggered_by": ["dbus.socket"], "enabled": "static"})),
    ];
    for (unit, expected) in table {
        let status = status(unit).unwrap();
        for (member, value) in expected.as_object().unwrap() {
            assert_eq!(&status[member], value, "{unit} {member}");
        }
    }
}

#[test]
fn an_unknown_unit_is_not_found_and_close_names_are_suggested() {
    let unknown =
        |other: &[_]| call(failing(other), "svc_status", json!({"service": "chronny"})).unwrap_err();
    let expected = ("UNIT_NOT_FOUND", "there is no unit chronny.service");
    let problem = unknown(&[]);
    assert_eq!((problem.code.as_str(), problem.message.as_str()), expected);
    assert_eq!(problem.remediation[0], "Similar units: chrony, cron");
    let words = "  chrony.service loaded active running chrony, an NTP client/server\n";
    let nothing_found = ("unit-file-chronny.service", 1, "", "");
    let old = unknown(&[("loaded-units", 0, words, ""), nothing_found]);
    assert_eq!(old.remediation[0], "Similar units: chrony");
    let problem = unknown(&[("loaded-units", 1, "", "Failed to list units"), nothing_found]);
    assert_eq!((problem.code.as_str(), problem.message.as_str()), expected);
    assert_eq!(problem.remediation.len(), 1, "a failed suggestion is no failure");
    let problem = status("nosuch").unwrap_err();
    assert_eq!((problem.code.as_str(), problem.remediation.len()), ("UNIT_NOT_FOUND", 1));
}

#[test]
fn a_unit_file_that_can_not_be_read_is_said_to_be_there() {
    let problem = call(failing(&[]), "svc_status", json!({"service": "app-dangling"})).unwrap_err();
    let expected = "systemd has no unit app-dangling.service: its unit file is there but can't be read (state bad; a \
                    dangling symlink?)";
    assert_eq!((problem.code.as_str(), problem.message.as_str()), ("UNIT_NOT_FOUND", expected));
    assert!(!problem.remediation.concat().contains("Similar"), "{:?}", problem.remediation);
    let listed = call(failing(&[]), "svc_list", json!({})).unwrap();
    let found = listed.as_array().unwrap().iter().find(|item| item["service"] == "app-dangling").unwrap();
    assert_eq!(found["enabled"], "bad");
}

#[test]
fn a_list_says_how_the_last_runs_went_where_not_well() {
    let listed = call(failing(&[]), "svc_list", json!({})).unwrap();
    let of = |service: &str| {
        let found = listed.as_array().unwrap().iter().find(|item| item["service"] == service).unwrap();
        let members = ["active_state", "enabled", "result", "exit_code", "restarts"];
        Value::from(members.map(|member| found[member].clone()).to_vec())
    };
    assert_eq!(of("app-fails"), json!(["failed", "static", "exit-code", 3, null]));
    assert_eq!(of("app-loops"), json!(["activating", "enabled", "exit-code", 7, 19]));
    assert_eq!(of("app-restarted"), json!(["active", "static", null, null, 1]));
    assert_eq!(of("app-sysv"), json!(["active", "generated", null, null, null]));
}

#[test]
fn a_status_has_the_same_enabled_as_the_list_the_type_and_since_when_it_is_on_its_way() {
    let of = |service: &str| call(failing(&[]), "svc_status", json!({"service": service})).unwrap();
    let sysv = of("app-sysv");
    assert_eq!(
        (&sysv["enabled"], &sysv["type"], &sysv["generated_from"]),
        (&json!("generated"), &json!("forking"), &json!("/etc/init.d/app-sysv"))
    );
    let slow = of("app-slow");
    assert_eq!((&slow["type"], &slow["active_state"]), (&json!("oneshot"), &json!("activating")));
    assert_eq!(slow["state_since"], "2026-11-20T18:04:37Z");
    assert!(of("app-loops")["state_since"].is_string());
    for settled in ["dbus", "app-fails"] {
        assert!(of(settled)["state_since"].is_null(), "{settled}");
    }
    let listed = call(failing(&[]), "svc_list", json!({})).unwrap();
    for item in listed.as_array().unwrap() {
        if ["app-fails", "app-loops", "app-slow", "app-sysv", "dbus"].contains(&text(item, "service")) {
            assert_eq!(of(text(item, "service"))["enabled"], item["enabled"], "{item}");
        }
    }
}

#[test]
fn a_timer_says_what_is_wrong_with_what_it_activates() {
    let (timers, reply) = failing(&[]).call(&module(), "timer_list", json!({})).unwrap();
    assert!(reply.notes.is_empty(), "{:?}", reply.notes);
    let of = |timer: &str| {
        let found = timers.as_array().unwrap().iter().find(|item| item["timer"] == timer).unwrap();
        let members = ["load_state", "activates", "activates_missing", "last_result"];
        Value::from(members.map(|member| found[member].clone()).to_vec())
    };
    assert_eq!(of("app-orphan.timer"), json!([null, "app-orphan.service", true, null]));
    assert_eq!(of("app-fails.timer"), json!([null, "app-fails.service", null, "exit-code"]));
    assert_eq!(of("app-bad.timer"), json!(["bad-setting", "app-fails.service", null, "exit-code"]));
    assert_eq!(of("logrotate.timer"), json!([null, "logrotate.service", null, null]));
    assert_eq!(of("apt-daily.timer")[0], Value::Null, "enabled says that it is masked");
    for answer in
        [("activated", 1, "", "Failed to get properties:\nTimed out"), ("activated", 0, "Id=a.service\n", "")]
    {
        let (listed, reply) = failing(&[answer]).call(&module(), "timer_list", json!({})).unwrap();
        assert_eq!(listed.as_array().unwrap().len(), timers.as_array().unwrap().len());
        assert_eq!(reply.notes.len(), 1);
        assert!(reply.notes[0].starts_with("how the last runs went is missing: "), "{:?}", reply.notes);
        assert!(!reply.notes[0].contains('\n'), "{:?}", reply.notes);
    }
}

#[test]
fn without_the_unit_files_what_is_loaded_is_listed_and_the_rest_said_to_be_missing() {
    for (code, stdout, stderr) in [(1, "", "Failed to list unit files: Connection timed out"), (0, "[{", "")]
    {
        for (tool, file, only_installed) in
            [("svc_list", "service-files", "debug-shell"), ("timer_list", "timer-files", "app-bad.timer")]
        {
            let answer = (file, code, stdout, stderr);
            let (all, reply) = failing(&[]).call(&module(), tool, json!({})).unwrap();
            assert!(reply.notes.is_empty() && all.to_string().contains(only_installed), "{:?}", reply.notes);
            let (loaded, reply) = failing(&[answer]).call(&module(), tool, json!({})).unwrap();
            assert!(
                loaded.to_string().len() > 1000 && !loaded.to_string().contains(only_installed),
                "{tool}"
            );
            let note = "units that are installed but not loaded are missing: ";
            assert!(reply.notes[0].starts_with(note), "{:?}", reply.notes);
            assert!(reply.notes[0].contains("timed out") || answer.1 == 0, "{:?}", reply.notes);
        }
    }
}

#[test]
fn a_bad_name_is_refused_before_any_command() {
    for name in ["-Hhost", "a\0b", "a\nb", "../x", "", &"a".repeat(300), "*", "a b", "getty@"] {
        let problem = call(FakeTarget::new(), "svc_status", json!({ "service": name })).unwrap_err();
        assert_eq!(problem.code, "INVALID_UNIT_NAME", "{name:?}");
    }
}

#[test]
fn timer_list_agrees_with_list_timers_unit_by_unit() {
    let timers = list("timer_list");
    let said = recorded("systemctl-list-timers");
    let order: Vec<&str> = said
        .lines()
        .map(|line| line.split_whitespace().find(|word| word.ends_with(".timer")).unwrap())
        .collect();
    for (line, name) in said.lines().zip(&order) {
        let timer = timers.iter().find(|timer| text(timer, "timer") == *name).unwrap();
        let times: Vec<String> = line
            .split("UTC")
            .filter_map(|part| {
                Some(part.split_whitespace().rev().take(2).collect::<Vec<_>>()).filter(|w| w.len() == 2)
            })
            .filter(|words| words[0].contains(':') && words[1].contains('-'))
            .map(|words| format!("{}T{}Z", words[1], words[0]))
            .collect();
        let has_next = !line.starts_with('-');
        assert_eq!(timer["next"].as_str(), has_next.then(|| times[0].as_str()), "{name}");
        assert_eq!(timer["last"].as_str(), times.get(usize::from(has_next)).map(String::as_str), "{name}");
        let activates = line.split_whitespace().next_back().filter(|word| word.ends_with(".service"));
        assert_eq!(timer["activates"].as_str(), activates, "{name}");
    }
    let elapsing: Vec<&str> =
        timers.iter().filter(|timer| timer["next"].is_string()).map(|t| text(t, "timer")).collect();
    assert_eq!(elapsing, order[..elapsing.len()], "the next one first");
    let only_installed: Vec<&str> =
        timers.iter().map(|timer| text(timer, "timer")).filter(|name| !order.contains(name)).collect();
    assert_eq!(only_installed, ["app-off.timer"]);
}

#[test]
fn a_timer_says_what_it_runs_and_when() {
    let timers = list("timer_list");
    let expected = [
        json!({"timer": "app-both.timer", "activates": "app-mono.service", "schedule":
            ["OnCalendar=*-*-01 00:00:00", "OnCalendar=Mon..Fri *-*-* 03:00:00 America/New_York", "OnStartupSec=2d"],
            "next": "2026-11-22T16:20:15Z", "next_in_seconds": 171_466, "active_state": "active",
            "sub_state": "waiting", "enabled": "enabled", "persistent": true}),
        json!({"timer": "app-past.timer", "activates": "app-mono.service", "schedule": ["OnCalendar=2001-01-01 00:00:00"],
            "active_state": "active", "sub_state": "elapsed", "enabled": "enabled"}),
        json!({"timer": "app-off.timer", "activates": "app-off.service", "schedule": ["OnCalendar=Mon *-*-* 00:00:00"],
            "active_state": "inactive", "sub_state": "dead", "enabled": "disabled"}),
        json!({"timer": "apt-daily.timer", "schedule": [], "active_state": "failed", "sub_state": "failed",
            "enabled": "masked", "result": "resources"}),
        json!({"timer": "app-minutely.timer", "activates": "app-mono.service", "schedule": ["OnCalendar=*-*-* *:*:00"],
            "next": "2026-11-20T16:43:02Z", "next_in_seconds": 33, "last": "2026-11-20T16:42:01Z",
            "active_state": "active", "sub_state": "waiting", "enabled": "enabled", "random_delay": "5s"}),
    ];
    for timer in expected {
        let found = timers.iter().find(|found| found["timer"] == timer["timer"]).unwrap();
        assert_eq!(*found, timer);
    }
}

#[test]
fn an_older_systemctl_without_json_gives_the_same_timers_to_the_second() {
    let words = |file: &str| -> String {
        let files: Vec<Value> = serde_json::from_str(&recorded(file)).unwrap();
        let words = |file| format!("{:<40} {}\n", text(file, "unit_file"), text(file, "state"));
        files.iter().map(words).collect()
    };
    let table = recorded("systemctl-list-timers");
    let old = target(&[("timer-files", 0, &words("timer-files"), ""), ("elapses", 0, &table, "")]);
    let by_name = |timers: Vec<Value>| -> BTreeMap<String, Value> {
        timers.into_iter().map(|timer| (text(&timer, "timer").to_owned(), timer)).collect()
    };
    let timers = by_name(call(old, "timer_list", json!({})).unwrap().as_array().unwrap().clone());
    let expected = by_name(list("timer_list"));
    assert_eq!(timers.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, timer) in timers {
        let seconds = |timer: &Value| timer["next_in_seconds"].as_i64();
        let apart = seconds(&timer).zip(seconds(&expected[&name])).map_or(0, |(a, b)| (a - b).abs());
        assert!(
            apart <= 1 && timer["next"].is_null() == expected[&name]["next"].is_null(),
            "{name}: {timer}"
        );
        assert_eq!(timer["schedule"], expected[&name]["schedule"]);
    }
    let services =
        call(target(&[("service-files", 0, &words("service-files"), "")]), "svc_list", json!({})).unwrap();
    assert_eq!(services.as_array().unwrap(), &list("svc_list"));
}

#[test]
fn times_in_another_zone_and_a_missing_clock_are_left_out() {
    let local = recorded("status-nginx.service").replace("16:20:16 UTC", "17:20:16 CET");
    let status =
        call(target(&[("status-nginx.service", 0, &local, "")]), "svc_status", json!({"service": "nginx"}))
            .unwrap();
    assert!(
        status["started_at"].is_null() && status["uptime_hours"].is_null() && status["pid"] == 44,
        "{status}"
    );
    let status =
        call(target(&[("clock", 127, "", "date: not found")]), "svc_status", json!({"service": "nginx"}))
            .unwrap();
    assert!(status["uptime_hours"].is_null() && status["started_at"] == "2026-11-20T16:20:16Z", "{status}");
}

#[test]
fn what_is_not_systemctls_output_is_a_problem_and_never_an_answer() {
    let table = [
        ("svc_list", "loaded-services", "<html>busy</html>\n"),
        ("svc_list", "loaded-services", "Version=252\n"),
        ("svc_status", "status-nginx.service", ""),
        ("svc_status", "status-nginx.service", "ActiveState=active\n"),
        ("timer_list", "loaded-timers", "no timers\n"),
    ];
    for (tool, file, stdout) in table {
        let arguments = if tool == "svc_status" { json!({"service": "nginx"}) } else { json!({}) };
        let problem = call(target(&[(file, 0, stdout, "")]), tool, arguments).unwrap_err();
        assert_eq!(problem.code, "UNEXPECTED_OUTPUT", "{tool} {file} {stdout:?}");
    }
}

#[test]
fn without_a_service_manager_every_tool_says_so() {
    let said = "System has not been booted with systemd as init system (PID 1). Can't operate.\n\
                Failed to connect to bus: Host is down\n";
    let names = ["loaded-services", "status-nginx.service", "loaded-timers"];
    for (tool, arguments) in
        [("svc_list", json!({})), ("svc_status", json!({"service": "nginx"})), ("timer_list", json!({}))]
    {
        let problem = call(target(&names.map(|name| (name, 1, "", said))), tool, arguments).unwrap_err();
        assert_eq!(problem.code, "SERVICE_MANAGER_UNREACHABLE", "{tool}");
    }
}

#[test]
fn nothing_at_all_is_an_empty_list() {
    let none = [
        ("loaded-services", 0, "", ""),
        ("service-files", 1, "[]", ""),
        ("timer-files", 1, "[]", ""),
        ("loaded-timers", 0, "", ""),
        ("elapses", 0, "[]", ""),
    ];
    for tool in ["svc_list", "timer_list"] {
        assert_eq!(call(target(&none), tool, json!({})).unwrap(), json!([]));
    }
}

#[test]
fn ten_thousand_units_are_listed_and_suggested_from() {
    let (mut loaded, mut files, mut units) = (String::new(), Vec::new(), Vec::new());
    for number in 0..10_000 {
        let state = if number == 9_999 { "failed" } else { "active" };
        loaded +=
            &format!("Id=u{number}.service\nActiveState={state}\nSubState=running\nLoadState=loaded\n\n");
        files.push(json!({"unit_file": format!("u{number}.service"), "state": "static"}));
        units.push(json!({"unit": format!("chrony{number}.service"), "load": "loaded"}));
    }
    let files = Value::from(files).to_string();
    let huge = [("loaded-services", 0, loaded.as_str(), ""), ("service-files", 0, files.as_str(), "")];
    let services = call(target(&huge), "svc_list", json!({})).unwrap();
    assert_eq!((services.as_array().unwrap().len(), &services[0]["service"]), (10_000, &json!("u9999")));
    let units = Value::from(units).to_string();
    let huge = failing(&[("loaded-units", 0, &units, "")]);
    let problem = call(huge, "svc_status", json!({"service": "chronny"})).unwrap_err();
    assert_eq!(problem.code, "UNIT_NOT_FOUND");
    assert_eq!(problem.remediation[0], "Similar units: chrony0, chrony1, chrony2, chrony3, chrony4");
}

#[test]
fn the_grants_to_look_are_these_and_no_more() {
    let capabilities = module().description().capabilities;
    assert!(capabilities.tools.is_empty());
    let grants: Vec<_> =
        capabilities.commands.iter().filter(|grant| grant.effect == describe::Effect::Read).collect();
    let holes = grants.iter().flat_map(|grant| grant.pattern.matches("<unit>")).count();
    assert_eq!((grants.len(), holes), (28, 11));
    for grant in &grants {
        let verb =
            grant.pattern.trim_start_matches("TZ=UTC ").split(' ').take(2).collect::<Vec<_>>().join(" ");
        let looks = [
            "systemctl show",
            "systemctl list-unit-files",
            "systemctl list-units",
            "systemctl list-timers",
            "systemd-analyze calendar",
            "systemd-analyze verify",
            "date +%s",
            "date +%z",
            "id --groups",
        ];
        // Only root sees this of other accounts.
        let as_root = [
            "journalctl --no-pager",
            "ss -Hltunp",
            "find -H",
            "grep --fixed-strings",
            "tail --lines=<int>",
            "stat '--format=%a|%U|%G|%F|%n'",
        ];
        let expected = match verb.as_str() {
            "systemd-analyze verify" => Privilege::Root,
            verb if as_root.contains(&verb) => Privilege::RootIfAvailable,
            _ => Privilege::Caller,
        };
        assert!(expected != Privilege::Caller || looks.contains(&verb.as_str()), "{}", grant.pattern);
        assert_eq!(grant.privilege, expected, "{}", grant.pattern);
        if expected == Privilege::RootIfAvailable {
            continue;
        }
        assert!(is_operand(&grant.pattern), "{}", grant.pattern);
    }
}

#[test]
fn the_grants_to_change_are_these_and_no_more() {
    let capabilities = module().description().capabilities;
    let changes: Vec<_> =
        capabilities.commands.iter().filter(|grant| grant.effect == describe::Effect::Change).collect();
    let patterns: Vec<&str> = changes.iter().map(|grant| grant.pattern.as_str()).collect();
    let expected = [
        "systemctl start -- <unit>",
        "systemctl stop -- <unit>",
        "systemctl restart -- <unit>",
        "systemctl reload -- <unit>",
        "systemctl enable -- <unit>",
        "systemctl disable -- <unit>",
        "systemctl mask -- <unit>",
        "systemctl mask --runtime -- <unit>",
        "systemctl unmask -- <unit>",
        "systemctl unmask --runtime -- <unit>",
        "systemctl daemon-reload",
    ];
    assert_eq!(patterns, expected);
    for grant in &changes {
        assert_eq!((grant.privilege.clone(), grant.risk), (Privilege::Root, Risk::Moderate));
        assert!(is_operand(&grant.pattern), "{}", grant.pattern);
    }
    let paths: Vec<_> = capabilities.paths.iter().map(|grant| (grant.glob.as_str(), grant.write)).collect();
    let expected = [
        ("/proc", false),
        ("/proc/stat", false),
        ("/proc/*/stat", false),
        ("/proc/*/status", false),
        ("/proc/*/cmdline", false),
        ("/proc/*/cgroup", false),
        ("/etc/passwd", false),
        ("/etc/systemd/system.control/**", false),
        ("/etc/systemd/system/**", false),
        ("/lib/systemd/system/**", false),
        ("/run/systemd/generator.early/**", false),
        ("/run/systemd/generator.late/**", false),
        ("/run/systemd/generator/**", false),
        ("/run/systemd/system.control/**", false),
        ("/run/systemd/system/**", false),
        ("/run/systemd/transient/**", false),
        ("/usr/local/lib/systemd/system/**", false),
        ("/usr/lib/systemd/system/**", false),
        ("/etc/systemd/system/*", true),
        ("/etc/systemd/system/*/50-linux-sysadmin.conf", true),
        ("/proc/meminfo", false),
        ("/proc/*/fd", false),
    ];
    assert_eq!(paths, expected);
}

/// A hole for a caller's text must follow the end of the options.
fn is_operand(pattern: &str) -> bool {
    let operand = [" <", " '*."].iter().find_map(|start| pattern.find(start));
    operand.is_none_or(|at| pattern[..at].ends_with(" --"))
}
