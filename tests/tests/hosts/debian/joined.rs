//! Each tool that joins the knowledge of a service with the state of a real host finds the fault that the
//! test makes, and names it.

use linux_sysadmin_tests::{Changing, Client, way};
use serde_json::{Value, json};

/// Repairs the host after any test.
const MEND: &str = "
systemctl stop lsa-port lsa-flap
rm -f /etc/systemd/system/lsa-*.service /etc/nginx/conf.d/lsa.conf
while mountpoint --quiet /var/log; do umount --lazy /var/log; done
systemctl daemon-reload
systemctl reset-failed nginx unbound lsa-flap lsa-own
systemctl restart nginx; systemctl start unbound
";

fn host(test: &str) -> Option<Changing> {
    Changing::by(way(), test, "true", MEND)
}

async fn serve(machine: &Changing) -> Client {
    machine.serve_shipped("root", "root").await
}

#[track_caller]
fn says(answer: &Value, expected: &[&str]) {
    assert_eq!(answer["status"], "success", "{answer}");
    let said = answer["data"].to_string();
    for expected in expected {
        assert!(said.contains(expected), "{expected}: {answer}");
    }
}

/// The cause with the most evidence.
fn first_cause(answer: &Value) -> String {
    answer["data"]["causes"][0]["cause"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_broken_configuration_is_found_with_its_line_before_a_restart_finds_it() {
    let Some(machine) = host("a_broken_configuration_is_found_with_its_line_before_a_restart_finds_it")
    else {
        return;
    };
    let mut client = serve(&machine).await;
    let nginx = json!({"service": "nginx"});
    let well = client.envelope("svc_config_validate", nginx.clone()).await;
    assert_eq!(well["data"]["valid"], true, "{well}");
    machine.sh("echo 'sever_name x;' > /etc/nginx/conf.d/lsa.conf");
    let broken = client.envelope("svc_config_validate", nginx.clone()).await;
    assert_eq!(broken["data"]["valid"], false, "{broken}");
    let mistake = &broken["data"]["checks"][0]["errors"][0];
    assert_eq!(
        (&mistake["file"], &mistake["line"]),
        (&json!("/etc/nginx/conf.d/lsa.conf"), &json!(1)),
        "{broken}"
    );
    assert!(mistake["message"].to_string().contains("sever_name"), "{broken}");
    // The service still runs with the configuration that it has read before.
    let status = client.envelope("svc_status", nginx.clone()).await;
    assert_eq!(status["data"]["active_state"], "active", "{status}");
    says(&status, &["sever_name", "configuration"]);
    machine.holds("systemctl restart nginx");
    let trouble = client.envelope("svc_troubleshoot", nginx).await;
    says(&trouble, &["sever_name", "/etc/nginx/conf.d/lsa.conf"]);
    assert!(first_cause(&trouble).to_lowercase().contains("configuration"), "{trouble}");
}

#[tokio::test]
async fn a_text_that_is_to_be_a_configuration_is_checked_once_somebody_said_yes_and_leaves_nothing() {
    let test = "a_text_that_is_to_be_a_configuration_is_checked_once_somebody_said_yes_and_leaves_nothing";
    let Some(machine) = host(test) else { return };
    let mut client = serve(&machine).await;
    let before = machine.sh("ls -lA --time-style=full-iso /etc/nginx");
    let contents = machine.sh("cat /etc/nginx/nginx.conf");
    for (contents, valid) in [(contents.clone(), true), (contents.replace("events {", "evens {"), false)] {
        let mut arguments = json!({"service": "nginx", "contents": contents});
        let asked = client.envelope("svc_config_check", arguments.clone()).await;
        assert_eq!(asked["status"], "confirmation_required", "{asked}");
        assert!(asked["preview"].to_string().contains("nginx -t -c /etc/nginx/.candidate"), "{asked}");
        assert_eq!(machine.sh("ls -lA --time-style=full-iso /etc/nginx"), before);
        arguments["confirmed"] = true.into();
        let checked = client.envelope("svc_config_check", arguments).await;
        assert_eq!(checked["status"], "success", "{checked}");
        assert_eq!(checked["data"]["valid"], valid, "{checked}");
        if !valid {
            let mistake = &checked["data"]["checks"][0]["errors"][0];
            assert!(mistake["message"].to_string().contains("evens"), "{checked}");
            assert!(mistake["line"].is_u64() && mistake.get("file").is_none(), "{checked}");
        }
        assert!(!machine.holds("ls -A /etc/nginx | grep linux-sysadmin"), "{checked}");
    }
    // Nothing is checked for an account without root's rights.
    machine.sh("useradd lsa-plain");
    let mut plain = machine.serve_shipped("lsa-plain", "lsa-plain").await;
    let arguments = json!({"service": "nginx", "contents": "x", "confirmed": true});
    let refused = plain.envelope("svc_config_check", arguments).await;
    assert_eq!(refused["error_category"], "privilege", "{refused}");
    assert!(!machine.holds("ls -A /etc/nginx | grep linux-sysadmin"), "{refused}");
}

#[tokio::test]
async fn a_port_that_another_program_has_taken_is_found_with_that_program() {
    let Some(machine) = host("a_port_that_another_program_has_taken_is_found_with_that_program") else {
        return;
    };
    machine.sh("cat > /etc/systemd/system/lsa-port.service <<'UNIT'
[Service]
ExecStart=/usr/bin/python3 -m http.server 80
UNIT
systemctl daemon-reload; systemctl stop nginx; systemctl start lsa-port");
    machine.until("ss -Hltn 'sport = :80' | grep -q :80");
    assert!(!machine.holds("systemctl start nginx"));
    let mut client = serve(&machine).await;
    let trouble = client.envelope("svc_troubleshoot", json!({"service": "nginx"})).await;
    says(&trouble, &["98: "]);
    assert!(first_cause(&trouble).contains("listens on the port"), "{trouble}");
    let audit = client.envelope("svc_port_audit", json!({})).await;
    let conflicts = audit["data"]["conflicts"].as_array().expect("conflicts");
    let of_nginx = conflicts.iter().find(|one| one["service"] == "nginx").unwrap_or(&Value::Null);
    assert!(of_nginx["held_by"].to_string().contains("python3"), "{audit}");
    let status = client.envelope("svc_status", json!({"service": "nginx"})).await;
    assert_eq!(status["data"]["active_state"], "failed", "{status}");
    says(&status, &["python3"]);
}

/// The profile of a service that needs a resolver, as Pi-hole does.
const DEPENDANT: &str = "\
schema_version: 1
id: holelike
name: Hole-like
summary: Answers names for a network, and asks a resolver beside it.
category: dns
units: [{name: cron.service, main: true}]
packages: []
config: []
logs: []
ports: []
provides: [{role: dns}]
requires: [{role: dns-upstream, why: It forwards to it, if_down: Names fail for the network, typical: [unbound]}]
health:
  - {id: running, what: It runs, argv: [systemctl, is-active, cron.service], expect_exit: 0, sick: It is down}
troubleshooting:
  - id: down
    symptom: It is down
    checks:
      - {argv: [systemctl, is-active, cron.service], results: [{if_exit_not: 0, cause: ended, means: It has ended}]}
    causes: [{id: ended, cause: It was stopped, fix: Start it}]
sources: [\"the tests themselves\"]
";

#[tokio::test]
async fn who_depends_on_a_resolver_is_told_before_it_stops_and_found_once_it_has() {
    let Some(machine) = host("who_depends_on_a_resolver_is_told_before_it_stops_and_found_once_it_has")
    else {
        return;
    };
    // The profile replaces cron's own, since two profiles can't have the same unit.
    machine.configure("root", "knowledge:\n  disabled_profiles: []\n");
    let directory = machine.home("root").join(".config/linux-sysadmin/knowledge");
    let text = DEPENDANT.replace("id: holelike", "id: cron");
    match machine.lab() {
        Some(_) => {
            std::fs::create_dir_all(&directory).expect("a directory");
            std::fs::write(directory.join("cron.yaml"), text).expect("written");
        }
        None => {
            machine.sh(&format!("install -d {}", directory.display()));
            machine.host().put(&format!("{}/cron.yaml", directory.display()), text.as_bytes());
        }
    }
    let mut client = serve(&machine).await;
    let asked = machine.asks(&mut client, "svc_stop", &json!({"service": "unbound"}), "critical").await;
    let warnings = asked["preview"]["warnings"].to_string();
    assert!(warnings.contains("Names fail for the network"), "{asked}");
    let impact = client.envelope("svc_dependency_impact", json!({"service": "unbound"})).await;
    says(&impact, &["cron", "dns-upstream", "Names fail for the network"]);
    machine.sh("systemctl stop unbound");
    let status = client.envelope("svc_status", json!({"service": "unbound"})).await;
    assert_eq!(status["data"]["active_state"], "inactive", "{status}");
    says(&status, &["Names fail for the network"]);
    let info = client.envelope("sysadmin_session_info", json!({"refresh": true})).await;
    let unresolved = info["data"]["unresolved_roles"].to_string();
    assert!(unresolved.contains("dns-upstream"), "{info}");
}

#[tokio::test]
async fn a_disk_full_of_logs_is_found_with_the_log_that_fills_it() {
    let Some(machine) = host("a_disk_full_of_logs_is_found_with_the_log_that_fills_it") else { return };
    // Files that are open stay below the mount.
    machine.sh("mount -t tmpfs -o size=8m,mode=755 lsa /var/log
        head -c 9000000 /dev/zero | tr '\\0' 'x' | fold -w 100 > /var/log/noisy.log; true");
    let mut client = serve(&machine).await;
    let usage = client.envelope("log_disk_usage", json!({})).await;
    says(&usage, &["/var/log/noisy.log"]);
    assert!(matches!(usage["severity"].as_str(), Some("high" | "critical")), "{usage}");
}

#[tokio::test]
async fn a_service_that_dies_again_and_again_is_told_of() {
    let Some(machine) = host("a_service_that_dies_again_and_again_is_told_of") else { return };
    machine.sh("cat > /etc/systemd/system/lsa-flap.service <<'UNIT'
[Unit]
StartLimitIntervalSec=0
[Service]
ExecStart=/bin/sh -c 'echo lsa-flap has no database >&2; exit 3'
Restart=always
RestartSec=200ms
UNIT
systemctl daemon-reload; systemctl start lsa-flap");
    machine.until("test $(systemctl show --property=NRestarts --value lsa-flap) -gt 5");
    let mut client = serve(&machine).await;
    let status = client.envelope("svc_status", json!({"service": "lsa-flap"})).await;
    assert_eq!(status["data"]["flapping"], true, "{status}");
    let logs = client.envelope("svc_logs", json!({"service": "lsa-flap"})).await;
    says(&logs, &["lsa-flap has no database"]);
    let found = client.envelope("log_search", json!({"pattern": "lsa-flap has no [a-z]+"})).await;
    says(&found, &["lsa-flap has no database"]);
    let summary = client.envelope("log_summary", json!({"since": "1h"})).await;
    says(&summary, &["lsa-flap"]);
}

#[tokio::test]
async fn a_unit_that_fails_is_told_of_with_what_it_wrote() {
    let Some(machine) = host("a_unit_that_fails_is_told_of_with_what_it_wrote") else { return };
    machine.sh("cat > /etc/systemd/system/lsa-own.service <<'UNIT'
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'echo lsa-own: another one runs >&2; exit 4'
UNIT
systemctl daemon-reload");
    let mut client = serve(&machine).await;
    let started = client.envelope("svc_start", json!({"service": "lsa-own"})).await;
    let why = "systemctl start lsa-own.service failed (exit-code, exit code 4): lsa-own: another one runs";
    assert_eq!((&started["error_code"], &started["message"]), (&json!("SERVICE_START_FAILED"), &json!(why)));
    let status = client.envelope("svc_status", json!({"service": "lsa-own"})).await;
    assert_eq!(status["data"]["last_output"], json!(["lsa-own: another one runs"]), "{status}");
}

#[tokio::test]
async fn a_patched_configuration_stays_only_where_the_services_own_checker_takes_it() {
    let test = "a_patched_configuration_stays_only_where_the_services_own_checker_takes_it";
    let Some(machine) = host(test) else { return };
    let mut client = machine.serve_all_but_critical().await;
    let (path, line) = ("/etc/nginx/conf.d/lsa.conf", "log_format lsa '$host';");
    machine.sh(&format!("cat > {path} <<'END'\n{line}\nEND"));
    let patch = |new: &str| json!({"path": path, "diff": format!("@@ -1 +1 @@\n-{line}\n+{new}\n")});
    let refused = client.envelope("file_patch", patch("log_fromat lsa '$uri';")).await;
    assert_eq!(refused["error_code"], "CONFIGURATION_REFUSED", "{refused}");
    assert!(refused["message"].to_string().contains("log_fromat"), "{refused}");
    assert_eq!(machine.sh(&format!("cat {path}")), format!("{line}\n"));
    let patched = client.envelope("file_patch", patch("log_format lsa '$uri';")).await;
    assert_eq!(patched["status"], "success", "{patched}");
    let service = &patched["data"]["services"][0];
    assert_eq!((&service["profile"], &service["valid"]), (&json!("nginx"), &json!(true)), "{patched}");
    assert_eq!(service["next"], json!(["svc_reload service=nginx"]), "{patched}");
    assert!(!machine.holds("ls -A /etc/nginx /etc/nginx/conf.d | grep linux-sysadmin"), "{patched}");
}
