//! Tests the tools that use profiles against recordings of a booted Debian 12 with systemd 252, nginx 1.22.1 and iproute2
//! 6.1.0. In the first recording nginx runs, its configuration on disk is broken, and a library has been replaced. In the
//! second one, nginx then failed to start. The profile is `knowledge/nginx.yaml`. In the third one, a unit without a profile
//! failed twice.
//!
//! Each file in the fixtures holds `$ COMMAND`, the exit code, stdout and stderr.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use linux_sysadmin_sdk::Problem;
use linux_sysadmin_sdk::bindings::exports::sysadmin::module::tools::Reply;
use linux_sysadmin_sdk::bindings::sysadmin::module::confirm::Applied;
use linux_sysadmin_sdk::knowledge::*;
use linux_sysadmin_sdk::testkit::{self, FakeTarget, profile};
use module_services::module;
use serde_json::{Value, json};

const BROKEN: &str = "debian12-nginx-broken";
const FAILED: &str = "debian12-nginx-failed";
const OWN: &str = "debian12-own-failed";

/// The path to which a text is written before the checker reads it.
const CANDIDATE: &str = "/etc/nginx/.candidate.linux-sysadmin";

/// Splits a line at blanks outside of single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            other => words.last_mut().unwrap().push(other),
        }
    }
    words
}

fn recorded(folder: &str) -> FakeTarget {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(folder);
    fs::read_dir(folder).unwrap().fold(FakeTarget::new(), |target, entry| {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let (command, rest) = text.strip_prefix("$ ").unwrap().split_once("\n# exit ").unwrap();
        let (code, rest) = rest.split_once("\n# stdout\n").unwrap();
        let (stdout, stderr) = rest.split_once("# stderr\n").unwrap_or((rest, ""));
        let argv = words(command);
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        target.answer(&argv, code.parse().unwrap(), stdout, stderr)
    })
}

fn text(value: &Value, key: &str) -> String {
    optional(value, key).unwrap_or_default()
}

fn optional(value: &Value, key: &str) -> Option<String> {
    value[key].as_str().map(str::to_owned)
}

fn yes(value: &Value, key: &str) -> bool {
    value[key] == true
}

fn argv(value: &Value) -> Vec<String> {
    value["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

fn exit(value: &Value, key: &str) -> Option<i32> {
    value[key].as_i64().and_then(|code| code.try_into().ok())
}

/// Keeps the entries that apply to Debian.
fn each<T>(value: &Value, key: &str, of: impl Fn(&Value) -> T) -> Vec<T> {
    let holds = |one: &&Value| {
        let families = one["family"].as_array();
        families.is_none_or(|families| families.contains(&json!("debian")))
    };
    value[key].as_array().into_iter().flatten().filter(holds).map(of).collect()
}

fn severity(value: &Value) -> Severity {
    match text(value, "severity").as_str() {
        "warning" => Severity::Warning,
        "error" => Severity::Error,
        _ => Severity::Critical,
    }
}

fn expectation(value: &Value) -> Expectation {
    Expectation {
        exit: exit(value, "expect_exit"),
        contains: optional(value, "expect_contains"),
        matches: optional(value, "expect_matches"),
        lacks: optional(value, "expect_lacks"),
    }
}

fn finding(value: &Value) -> Finding {
    Finding {
        exit: exit(value, "if_exit"),
        exit_not: exit(value, "if_exit_not"),
        contains: optional(value, "if_contains"),
        matches: optional(value, "if_matches"),
        lacks: optional(value, "if_lacks"),
        cause: optional(value, "cause"),
        means: text(value, "means"),
    }
}

/// The profile, with the parts that these tools use.
fn known(id: &str) -> Profile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../knowledge/{id}.yaml"));
    let yaml: Value = serde_yaml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let port = |one: &Value| -> u16 { one["port"].as_u64().unwrap().try_into().unwrap() };
    Profile {
        name: text(&yaml, "name"),
        units: each(&yaml, "units", |one| Unit {
            name: text(one, "name"),
            aliases: Vec::new(),
            main: yes(one, "main"),
            reload: yes(one, "reload"),
            optional: yes(one, "optional"),
            what: None,
        }),
        processes: each(&yaml, "processes", |one| text(one, "name")),
        config: each(&yaml, "config", |one| ConfigFile {
            path: text(one, "path"),
            what: text(one, "what"),
            main: yes(one, "main"),
            optional: yes(one, "optional"),
            generated: yes(one, "generated"),
            apply: match text(one, "apply").as_str() {
                "reload" => Some(ApplyBy::Reload),
                "restart" => Some(ApplyBy::Restart),
                _ => None,
            },
        }),
        validators: each(&yaml, "validate", |one| Validator {
            argv: argv(one),
            root: yes(one, "root"),
            what: text(one, "what"),
            covers: Vec::new(),
            expect: expectation(one),
            error: optional(one, "error"),
            candidate: one["candidate"].as_array().map(|words| Candidate {
                path: CANDIDATE.into(),
                argv: words.iter().map(|word| word.as_str().unwrap().replace("{}", CANDIDATE)).collect(),
            }),
        }),
        log_patterns: each(&yaml, "log_patterns", |one| LogPattern {
            matches: text(one, "matches"),
            severity: severity(one),
            means: text(one, "means"),
            symptom: optional(one, "symptom"),
        }),
        ports: each(&yaml, "ports", |one| Port {
            first: port(one),
            last: port(one),
            protocol: if one["protocol"] == "udp" { Protocol::Udp } else { Protocol::Tcp },
            scope: Scope::Public,
            optional: yes(one, "optional"),
            what: text(one, "what"),
            set_by: optional(one, "set_by"),
        }),
        health: each(&yaml, "health", |one| HealthCheck {
            id: text(one, "id"),
            what: text(one, "what"),
            argv: argv(one),
            root: yes(one, "root"),
            expect: expectation(one),
            unknown_matches: optional(one, "unknown_matches"),
            sick: text(one, "sick"),
            severity: severity(one),
        }),
        symptoms: each(&yaml, "troubleshooting", |one| Symptom {
            id: text(one, "id"),
            symptom: text(one, "symptom"),
            checks: each(one, "checks", |check| Diagnosis {
                argv: argv(check),
                root: yes(check, "root"),
                findings: each(check, "results", finding),
            }),
            causes: each(one, "causes", |cause| Cause {
                id: text(cause, "id"),
                cause: text(cause, "cause"),
                fix: text(cause, "fix"),
            }),
        }),
        ..profile(id)
    }
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Reply), Problem> {
    target.call(&module(), tool, arguments)
}

fn nginx(folder: &str, tool: &str) -> (Value, Reply) {
    call(recorded(folder).profile(known("nginx")), tool, json!({"service": "nginx"})).unwrap()
}

const LINE: &str = "unknown directive \"sever_name\" in /etc/nginx/sites-enabled/default:46";

#[test]
fn the_status_of_what_runs_says_what_will_break_and_what_it_runs_on() {
    let (data, reply) = nginx(BROKEN, "svc_status");
    assert!(reply.notes.is_empty(), "{:?}", reply.notes);
    let expected = json!({
        "well": 3,
        "sick": [{
            "check": "configuration",
            "means": "The next reload is refused, and the next start fails",
            "severity": "error",
            "evidence": format!("2026/11/22 12:30:30 [emerg] 248#248: {LINE}\n\
                                 nginx: configuration file /etc/nginx/nginx.conf test failed"),
        }],
    });
    assert_eq!((&data["profile"], &data["health"]), (&json!("nginx"), &expected));
    let changed = "/etc/nginx/sites-available/default was changed at 2026-11-22T12:30:30Z";
    assert_eq!(data["needs_reload"], json!([changed]));
    let replaced = "it runs on /usr/lib/x86_64-linux-gnu/libssl.so.3, which was replaced";
    assert_eq!(data["needs_restart"], json!([replaced]));
    for none in ["recent_errors", "ports", "dependants", "flapping"] {
        assert!(data[none].is_null(), "{none}: {data}");
    }
}

#[test]
fn the_status_of_what_failed_says_why() {
    let (data, _) = nginx(FAILED, "svc_status");
    let errors = data["recent_errors"].as_array().unwrap();
    assert_eq!(errors.len(), 1, "that it failed is said already: {data}");
    assert!(data["last_output"].is_null(), "its lines are in the answer already: {data}");
    assert!(errors[0]["message"].as_str().unwrap().ends_with(LINE), "{data}");
    assert_eq!((&errors[0]["severity"], &errors[0]["symptom"]), (&json!("critical"), &json!("doesnt-start")));
    let sick: Vec<&Value> =
        data["health"]["sick"].as_array().unwrap().iter().map(|one| &one["check"]).collect();
    assert_eq!(sick, ["running", "configuration", "listening"]);
    assert_eq!(data["health"]["unknown"][0]["check"], "answers");
    assert!(data["needs_restart"].is_null() && data["needs_reload"].is_null(), "{data}");
}

#[test]
fn the_status_of_a_failed_unit_without_a_profile_has_the_last_lines_that_it_wrote() {
    let (data, reply) = call(recorded(OWN), "svc_status", json!({"service": "lsa-notify"})).unwrap();
    let said = "shop-backup: /run/lock/shop-backup.lock: another backup runs as process 4190000";
    assert_eq!(data["last_output"], json!(["checking the lock", said]), "{data}");
    assert!(data["recent_errors"].is_null() && reply.notes.is_empty(), "{data} {:?}", reply.notes);
}

#[test]
fn what_fits_the_evidence_is_the_cause() {
    let (data, reply) = nginx(FAILED, "svc_troubleshoot");
    assert_eq!(data["checked"], json!(["doesnt-start"]));
    let causes = data["causes"].as_array().unwrap();
    assert_eq!(causes.len(), 1, "{data}");
    assert_eq!(causes[0]["cause"], "A mistake in the configuration");
    assert_eq!(causes[0]["evidence"][0]["command"], "nginx -t");
    assert!(causes[0]["evidence"][0]["line"].as_str().unwrap().ends_with(LINE), "{data}");
    assert!(data["symptoms"]["bad-gateway"].is_string() && data["unchecked"].is_null(), "{data}");
    let summary = "nginx has failed: most speaks for this cause: A mistake in the configuration";
    assert_eq!((reply.summary.as_deref(), reply.severity.as_deref()), (Some(summary), Some("critical")));
}

#[test]
fn of_what_runs_a_cause_is_only_what_it_might_be() {
    let (data, reply) = nginx(BROKEN, "svc_troubleshoot");
    // The start has succeeded since, and so its log was not read.
    let commands: Vec<&Value> =
        data["causes"].as_array().unwrap().iter().map(|cause| &cause["evidence"][0]["command"]).collect();
    assert_eq!(commands, ["nginx -t", "nginx -t"], "{data}");
    let summary = reply.summary.unwrap();
    assert!(summary.contains("(should it be that \"nginx doesn't start\")"), "{summary}");
    assert_eq!(reply.severity.as_deref(), Some("warning"));
}

#[test]
fn of_a_service_that_is_a_template_an_instance_has_to_be_named() {
    let show = "systemctl show --property=Id,Names,";
    let commands = module().description().capabilities.commands;
    let status = commands.iter().find(|grant| grant.pattern.contains(show)).unwrap();
    let line = status.pattern.trim_start_matches("TZ=UTC ").replace("<unit>", "wireguard.service");
    let argv = words(&line);
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    let absent = "Id=wireguard.service\nLoadState=not-found\nActiveState=inactive\nSubState=dead\n";
    let target = FakeTarget::new().answer(&argv, 0, absent, "").profile(known("wireguard"));
    let problem = call(target, "svc_status", json!({"service": "wireguard"})).unwrap_err();
    assert_eq!(problem.code, "UNIT_NOT_FOUND");
    assert!(problem.remediation.contains(&"Name an instance, as in wg-quick@INSTANCE".to_owned()));
}

#[test]
fn a_program_that_is_not_there_leaves_a_check_open() {
    let symptom = json!({"service": "nginx", "symptom": "bad-gateway"});
    let (data, reply) = call(recorded(BROKEN).profile(known("nginx")), "svc_troubleshoot", symptom).unwrap();
    assert_eq!(data["unchecked"].as_array().unwrap().len(), 1, "{data}");
    assert_eq!(data["unsupported"].as_array().unwrap().len(), 5, "{data}");
    assert!(data["causes"].is_null() && data["symptoms"].is_null());
    let summary =
        "nginx is active: nothing was found that speaks for a known cause; 1 of the commands told nothing";
    assert_eq!((reply.summary.as_deref(), reply.severity.as_deref()), (Some(summary), Some("info")));
    let nowhere = FakeTarget::new().profile(known("nginx"));
    let (data, reply) = call(nowhere, "svc_config_validate", json!({"service": "nginx"})).unwrap();
    assert!(data["valid"].is_null() && data["checks"][0]["unknown"].is_string(), "{data}");
    assert_eq!(reply.severity.as_deref(), Some("warning"));
}

#[test]
fn a_mistake_is_told_with_file_and_line() {
    let (data, reply) = nginx(BROKEN, "svc_config_validate");
    let mistake = json!({
        "file": "/etc/nginx/sites-enabled/default", "line": 46, "message": "unknown directive \"sever_name\"",
    });
    assert_eq!((&data["valid"], &data["checks"][0]["errors"]), (&json!(false), &json!([mistake])));
    let summary = "The configuration of nginx on disk is refused: /etc/nginx/sites-enabled/default:46: unknown \
                   directive \"sever_name\"";
    assert_eq!((reply.summary.as_deref(), reply.severity.as_deref()), (Some(summary), Some("high")));
    let said = "nginx: the configuration file /etc/nginx/nginx.conf syntax is ok\n\
                nginx: configuration file /etc/nginx/nginx.conf test is successful\n";
    let well = FakeTarget::new().profile(known("nginx")).answer(&["nginx", "-t"], 0, "", said);
    let arguments = json!({"service": "nginx", "path": "/etc/nginx/sites-enabled/default"});
    let (data, reply) = call(well, "svc_config_validate", arguments).unwrap();
    assert_eq!((&data["valid"], reply.severity.as_deref()), (&json!(true), Some("info")));
    assert!(data["checks"][0]["errors"].is_null());
}

#[test]
fn a_checker_that_may_not_read_says_nothing_about_the_configuration() {
    let said = "nginx: [alert] could not open error log file: open() \"/var/log/nginx/error.log\" failed (13: Permission \
                denied)\nnginx: configuration file /etc/nginx/nginx.conf test failed\n";
    let target = FakeTarget::new().profile(known("nginx")).answer(&["nginx", "-t"], 1, "", said);
    let (data, _) = call(target, "svc_config_validate", json!({"service": "nginx"})).unwrap();
    assert!(data["valid"].is_null(), "{data}");
    assert!(data["checks"][0]["unknown"].as_str().unwrap().starts_with("it seems to need root's rights"));
}

/// A plan and its outcome. The checker's output is that of `nginx -t` of nginx 1.22.1, with another file's name.
fn text_checked(dry_run: bool, exit_code: i32, stderr: &str) -> (Value, Reply, String) {
    let output = |exit_code, stderr: &str| testkit::output(exit_code, "", stderr);
    let outputs = if dry_run { Vec::new() } else { vec![output(exit_code, stderr), output(0, "")] };
    let target = FakeTarget::new().profile(known("nginx")).outcome(Ok(Applied { outputs, dry_run }));
    let plans = target.plans();
    let arguments = json!({"service": "nginx", "contents": "events {}\n"});
    let (data, reply) = call(target, "svc_config_check", arguments).unwrap();
    let [plan] = &plans.borrow()[..] else { panic!("one plan") };
    (data, reply, format!("{plan:?}"))
}

#[test]
fn a_text_is_checked_beside_the_configuration_and_removed() {
    let said = "nginx: the configuration file /etc/nginx/.candidate.linux-sysadmin syntax is ok\n\
                nginx: configuration file /etc/nginx/.candidate.linux-sysadmin test is successful\n";
    let (data, reply, plan) = text_checked(false, 0, said);
    assert_eq!((&data["valid"], reply.severity.as_deref()), (&json!(true), Some("info")), "{data}");
    assert_eq!(reply.summary.as_deref(), Some("The text for nginx can be used"));
    // The file is written for root alone, read, and removed.
    let step = |text: &str| plan.find(text).unwrap_or_else(|| panic!("{text}: {plan}"));
    let at = format!("path: {CANDIDATE:?}, privilege: Privilege::Root");
    let write = step(&at);
    assert!(write < step("mode: Some(384)"));
    let contents: &[u8] = b"events {}\n";
    step(&format!("contents: {contents:?}"));
    let check = step(&format!("program: \"nginx\", args: [\"-t\", \"-c\", {CANDIDATE:?}]"));
    let remove = step(&format!("program: \"rm\", args: [\"--\", {CANDIDATE:?}]"));
    assert!(write < check && check < remove);
    step("root's rights");
}

#[test]
fn what_is_wrong_with_a_text_is_told_with_its_line() {
    let said = "nginx: [emerg] unknown directive \"sever\" in /etc/nginx/.candidate.linux-sysadmin:7\n\
                nginx: configuration file /etc/nginx/.candidate.linux-sysadmin test failed\n";
    let (data, reply, _) = text_checked(false, 1, said);
    let mistake = json!({"line": 7, "message": "unknown directive \"sever\""});
    assert_eq!((&data["valid"], &data["checks"][0]["errors"]), (&json!(false), &json!([mistake])));
    let summary = "The text for nginx is refused: line 7: unknown directive \"sever\"";
    assert_eq!(reply.summary.as_deref(), Some(summary));
    // The checker ran as root, and so a file that it may not read is an error like any other.
    let said = "nginx: [emerg] cannot load certificate \"/srv/x.pem\": (13: Permission denied)\n";
    assert_eq!(text_checked(false, 1, said).0["valid"], false);
    // An included file keeps its own name.
    let said = "nginx: [emerg] unknown directive \"x\" in /etc/nginx/mime.types:2\n";
    let (data, _, _) = text_checked(false, 1, said);
    assert_eq!(data["checks"][0]["errors"][0]["file"], "/etc/nginx/mime.types");
}

#[test]
fn a_dry_run_says_nothing_about_a_text() {
    let (data, _, _) = text_checked(true, 0, "");
    assert_eq!(data, json!({"profile": "nginx", "would": "check", "checks": []}));
}

#[test]
fn what_is_not_known_is_said_with_what_is() {
    let known = || Profile { validators: Vec::new(), ..known("nginx") };
    let table = [
        (
            "svc_troubleshoot",
            json!({"service": "mine", "symptom": "slow"}),
            "NO_PROFILE",
            "svc_troubleshoot service=mine",
        ),
        ("svc_config_validate", json!({"service": "mine"}), "NO_PROFILE", "Known here: nginx"),
        (
            "svc_troubleshoot",
            json!({"service": "nginx", "symptom": "slow"}),
            "UNKNOWN_SYMPTOM",
            "bad-gateway (Clients get 502 or 504)",
        ),
        ("svc_config_validate", json!({"service": "nginx"}), "NO_CHECKER", "svc_status service=nginx"),
        ("svc_config_check", json!({"service": "mine", "contents": ""}), "NO_PROFILE", "Known here: nginx"),
        (
            "svc_config_check",
            json!({"service": "nginx", "contents": ""}),
            "NO_CHECKER",
            "svc_config_validate service=nginx",
        ),
        ("svc_troubleshoot", json!({"service": "-x"}), "INVALID_UNIT_NAME", "as systemctl shows it"),
        ("svc_config_validate", json!({"service": "getty@"}), "INVALID_UNIT_NAME", "Name an instance"),
        ("svc_dependency_impact", json!({"service": "a b"}), "INVALID_UNIT_NAME", "as systemctl shows it"),
        ("svc_port_audit", json!({}), "NOT_RECORDED", ""),
    ];
    for (tool, arguments, code, remedy) in table {
        let problem = call(FakeTarget::new().profile(known()), tool, arguments.clone()).unwrap_err();
        assert_eq!(problem.code, code, "{tool} {arguments}");
        assert!(problem.remediation.concat().contains(remedy), "{:?}", problem.remediation);
    }
    let arguments = json!({"service": "nginx", "path": "/etc/passwd"});
    let target = FakeTarget::new().profile(self::known("nginx"));
    let problem = call(target, "svc_config_validate", arguments).unwrap_err();
    assert_eq!(problem.code, "NOT_ITS_CONFIGURATION");
    assert!(problem.remediation[0].contains("/etc/nginx/nginx.conf"));
}

#[test]
fn ports_that_nobody_can_tell_of_are_no_finding_and_what_is_no_answer_is_none() {
    let of =
        |ss: &str| call(FakeTarget::new().answer(&["ss", "-Hltunp"], 0, ss, ""), "svc_port_audit", json!({}));
    assert_eq!(of("").unwrap().0, json!({"services": 0, "sockets": 0}));
    assert_eq!(of("Verbindung abgelehnt\n").unwrap_err().code, "UNEXPECTED_OUTPUT");
    let (data, reply) = call(recorded(BROKEN).profile(known("nginx")), "svc_port_audit", json!({})).unwrap();
    assert_eq!((&data["services"], &data["sockets"]), (&json!(1), &json!(8)));
    let ports: Vec<&Value> = data["undeclared"].as_array().unwrap().iter().map(|one| &one["port"]).collect();
    assert_eq!(ports, ["22/tcp", "53/udp", "53/tcp"]);
    assert_eq!(reply.severity.as_deref(), Some("info"));
}

#[test]
fn what_hangs_on_a_service_is_followed_from_one_to_the_next() {
    let granted = |start: &str| {
        let commands = module().description().capabilities.commands;
        commands.into_iter().map(|grant| grant.pattern).find(|pattern| pattern.starts_with(start)).unwrap()
    };
    let state = granted(
        "systemctl show --property=Id,LoadState,LoadError,ActiveState,SubState,UnitFileState,Type,CanStart",
    );
    let answers = [
        (
            state.replace("<unit>...", "db.service"),
            "Id=db.service\nLoadState=loaded\nActiveState=active\nSubState=running\nRequiredBy=app.service\n",
        ),
        (
            state.replace("<unit>...", "app.service"),
            "Id=app.service\nLoadState=loaded\nActiveState=active\nSubState=running\n",
        ),
        (
            granted("systemctl show --property=Id,Requires,").replace("<unit>", "db.service"),
            "Id=db.service\nRequires=mnt.mount sysinit.target system.slice\nRequisite=\nBindsTo=\nWantedBy=multi-user.target backup.service\n",
        ),
        (
            granted("systemctl show --property=Id,ActiveState ")
                .replace("<unit>...", "backup.service mnt.mount"),
            "Id=backup.service\nActiveState=active\n\nId=mnt.mount\nActiveState=inactive\n",
        ),
    ];
    let dependant = |id: &str| Dependant {
        role: format!("of-{id}"),
        why: String::new(),
        if_down: format!("{id} stops"),
        profiles: vec![id.into()],
    };
    let unit = Unit {
        name: "db.service".into(),
        aliases: Vec::new(),
        main: true,
        reload: false,
        optional: false,
        what: None,
    };
    let need = |role: &str, optional, filled_by: &[&str]| Need {
        role: role.into(),
        why: String::new(),
        if_down: format!("no {role}"),
        optional,
        typical: Vec::new(),
        filled_by: filled_by.iter().map(|id| (*id).into()).collect(),
    };
    let outsider = Dependant { profiles: Vec::new(), ..dependant("clients") };
    let db = Profile {
        units: vec![unit],
        provides: vec!["database".into()],
        dependants: vec![dependant("web"), outsider],
        needs: vec![need("time", true, &["chrony"]), need("storage", false, &[]), need("mail", true, &[])],
        ..profile("db")
    };
    // Services that depend on each other are followed once.
    let web = Profile { dependants: vec![dependant("proxy"), dependant("db")], ..profile("web") };
    let other = Profile { provides: vec!["database".into()], ..profile("other") };
    let target = answers.iter().fold(FakeTarget::new(), |target, (line, stdout)| {
        let argv = words(line);
        target.answer(&argv.iter().map(String::as_str).collect::<Vec<_>>(), 0, stdout, "")
    });
    let target = target.profile(db).profile(web).profile(profile("proxy")).profile(other);
    let (data, reply) = call(target, "svc_dependency_impact", json!({"service": "db"})).unwrap();
    let expected = json!({
        "service": "db", "profile": "db", "active_state": "active",
        "stops": ["app"],
        "degrades": [
            {"who": ["web"], "role": "of-web", "if_down": "web stops"},
            {"who": ["proxy"], "role": "of-proxy", "if_down": "proxy stops", "through": "web"},
        ],
        "outside": [{"who": "of-clients", "if_down": "clients stops"}],
        "wanted_by": ["backup"],
        "stand_ins": [{"role": "database", "services": ["other"]}],
        "needs": [
            {"unit": "mnt.mount", "is_met": false},
            {"role": "time", "is_met": true, "by": ["chrony"], "optional": true},
            {"role": "storage", "is_met": false, "if_down": "no storage"},
        ],
    });
    assert_eq!(data, expected);
    let summary = "db.service: 1 unit stops with it, 2 services depend on it; what it needs and isn't there: mnt.mount, \
                   storage";
    assert_eq!((reply.summary.as_deref(), reply.severity.as_deref()), (Some(summary), Some("high")));
}
