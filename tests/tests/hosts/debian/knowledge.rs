//! Knowledge of services, on a host that has some: which ones it has, how grave a change to one of them is, and profiles of
//! an operator.

use linux_sysadmin_tests::{Changing, NO_UNITS, UNITS, way};
use serde_json::{Value, json};

fn changing(test: &str) -> Option<Changing> {
    Changing::by(way(), test, UNITS, NO_UNITS)
}

fn detected<'a>(info: &'a Value, id: &str) -> &'a Value {
    let profiles = info["data"]["detected_profiles"].as_array().expect("profiles");
    profiles.iter().find(|profile| profile["id"] == id).unwrap_or(&Value::Null)
}

/// A profile of a unit of the tests, with a risk of its own.
const PROFILE: &str = "\
schema_version: 1
id: lsa
name: Lab service
summary: Serves nobody but tests.
category: system
units: [{name: lsa-works.service, main: true}]
packages: []
config: [{path: /etc/systemd/system/lsa-works.service, main: true, what: Its unit}]
logs: [{journal: lsa-works.service, format: journal}]
ports: []
provides: [{role: app}]
requires: [{role: database, why: It keeps data, if_down: It forgets}]
health:
  - {id: running, what: It runs, argv: [systemctl, is-active, lsa-works.service], expect_exit: 0, sick: It is down}
risk:
  - {when: {verb: [restart], unit: [lsa-works.service]}, level: high, reason: Every test waits for it}
troubleshooting:
  - id: down
    symptom: It is down
    checks:
      - {argv: [systemctl, is-active, lsa-works.service], results: [{if_exit_not: 0, cause: ended, means: It has ended}]}
    causes: [{id: ended, cause: It was stopped, fix: Start it}]
sources: [\"the tests themselves\"]
";

/// Writes a profile of the operator.
fn put(machine: &Changing, home: &str, name: &str, text: &str) {
    let directory = machine.home(home).join(".config/linux-sysadmin/knowledge");
    let path = directory.join(name);
    match machine.lab() {
        Some(_) => {
            std::fs::create_dir_all(&directory).expect("a directory");
            std::fs::write(path, text).expect("written");
        }
        None => {
            machine.sh(&format!("install -d {}", directory.display()));
            machine.host().put(path.to_str().expect("UTF-8"), text.as_bytes());
        }
    }
}

#[tokio::test]
async fn the_services_of_a_host_are_known_and_so_is_who_fills_the_roles_that_they_need() {
    let Some(machine) =
        changing("the_services_of_a_host_are_known_and_so_is_who_fills_the_roles_that_they_need")
    else {
        return;
    };
    let mut client = machine.serve_shipped("admin", "admin").await;
    let info = client.envelope("sysadmin_session_info", json!({})).await;
    for id in ["nginx", "sshd", "unbound", "fail2ban", "ufw"] {
        assert_eq!(detected(&info, id)["status"], "active", "{id}: {info}");
    }
    let of_fail2ban = &detected(&info, "fail2ban")["roles_resolved"];
    assert_eq!(of_fail2ban["firewall"], json!(["ufw"]), "{info}");
    assert_eq!(detected(&info, "apache"), &Value::Null, "{info}");
    // The answer shows the state at the time of the call.
    machine.sh("systemctl stop nginx");
    let again = client.envelope("sysadmin_session_info", json!({"refresh": true})).await;
    machine.sh("systemctl start nginx");
    assert_eq!(detected(&again, "nginx")["status"], "inactive", "{again}");
}

#[tokio::test]
async fn whoever_restarts_the_resolver_is_asked_since_its_profile_says_so() {
    let Some(machine) = changing("whoever_restarts_the_resolver_is_asked_since_its_profile_says_so") else {
        return;
    };
    let mut client = machine.serve_default().await;
    let pid = || machine.sh("systemctl show --property=MainPID --value unbound");
    let before = pid();
    for name in ["unbound", "unbound.service"] {
        let asked = machine.asks(&mut client, "svc_restart", &json!({"service": name}), "high").await;
        let why = asked["preview"]["escalation_reason"].to_string();
        assert!(why.contains("profile unbound") && why.contains("Names don't resolve"), "{asked}");
    }
    machine.asks(&mut client, "svc_stop", &json!({"service": "unbound"}), "critical").await;
    assert_eq!(pid(), before, "nobody has touched it");
    // A change that the profile doesn't mention has the same risk as before.
    let done = client.envelope("svc_reload", json!({"service": "unbound"})).await;
    assert_eq!(done["status"], "success", "{done}");
}

#[tokio::test]
async fn a_profile_of_ones_own_makes_its_service_known_and_its_changes_grave() {
    let Some(machine) = changing("a_profile_of_ones_own_makes_its_service_known_and_its_changes_grave")
    else {
        return;
    };
    machine.sh("systemctl start lsa-works");
    machine.configure("root", "knowledge:\n  disabled_profiles: [nginx]\n");
    put(&machine, "root", "lsa.yaml", PROFILE);
    put(
        &machine,
        "root",
        "smuggles.yaml",
        &PROFILE.replace("id: lsa\n", "id: smuggles\n").replace(
            "argv: [systemctl, is-active, lsa-works.service], expect_exit: 0",
            "argv: [touch, /srv/smuggled], expect_exit: 0",
        ),
    );
    put(&machine, "root", "malformed.yaml", "id: [x\n");
    let mut client = machine.serve_default().await;
    let info = client.envelope("sysadmin_session_info", json!({})).await;
    assert_eq!(detected(&info, "lsa")["status"], "active", "{info}");
    assert_eq!(detected(&info, "nginx"), &Value::Null, "it is disabled: {info}");
    let unresolved = info["data"]["unresolved_roles"].as_array().expect("roles");
    assert!(unresolved.iter().any(|one| one["profile"] == "lsa" && one["role"] == "database"), "{info}");
    let warnings = info["data"]["profile_warnings"].to_string();
    for expected in [
        "smuggles.yaml is left out: line 14, health[0].argv: `touch /srv/smuggled`",
        "malformed.yaml is left out: line",
    ] {
        assert!(warnings.contains(expected), "{expected}: {warnings}");
    }
    let asked = machine.asks(&mut client, "svc_restart", &json!({"service": "lsa-works"}), "high").await;
    assert!(asked["preview"]["escalation_reason"].to_string().contains("Every test waits for it"), "{asked}");
    let done = client.envelope("svc_stop", json!({"service": "lsa-works"})).await;
    assert_eq!(done["status"], "success", "{done}");
}

#[tokio::test]
async fn profiles_are_resources_of_both_generations_of_the_protocol() {
    let Some(machine) = changing("profiles_are_resources_of_both_generations_of_the_protocol") else {
        return;
    };
    for version in ["2025-06-18", "2026-07-28"] {
        let mut client = machine.serve_default().await;
        let opened = client.initialize(version).await;
        let capabilities = &opened["result"]["capabilities"];
        assert!(capabilities["resources"].is_object() && capabilities["completions"].is_object(), "{opened}");
        let listed = client.request("resources/list", json!({})).await;
        let uris: Vec<_> = listed["result"]["resources"]
            .as_array()
            .expect("resources")
            .iter()
            .map(|one| &one["uri"])
            .collect();
        assert!(uris.len() >= 50 && uris.contains(&&json!("linux-sysadmin://knowledge/nginx")), "{uris:?}");
        let read = client.request("resources/read", json!({"uri": "linux-sysadmin://knowledge/nginx"})).await;
        let contents = &read["result"]["contents"][0];
        assert_eq!(contents["mimeType"], "application/yaml", "{read}");
        assert!(contents["text"].as_str().is_some_and(|text| text.contains("nginx.service")), "{read}");
        let template = json!({"type": "ref/resource", "uri": "linux-sysadmin://knowledge/{id}"});
        let argument = json!({"name": "id", "value": "ngi"});
        let completed =
            client.request("completion/complete", json!({"ref": template, "argument": argument})).await;
        assert_eq!(completed["result"]["completion"]["values"], json!(["nginx"]), "{completed}");
        let missing = client.request("resources/read", json!({"uri": "linux-sysadmin://knowledge/no"})).await;
        assert!(
            missing["error"]["message"].as_str().is_some_and(|said| said.contains("expected")),
            "{missing}"
        );
    }
}
