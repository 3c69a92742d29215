//! System mode on a real host: what the account's fragments allow is enough for what administrators do every day, and for
//! what needs the rights of one more account.

use std::collections::BTreeSet;

use linux_sysadmin_tests::{Client, Reach, everyday, harmless, warmed};
use serde_json::{Value, json};

const PERSON: &str = "lsa-person";
const ACCOUNT: &str = "linux-sysadmin";
const PROGRAM: &str = "/opt/linux-sysadmin/linux-sysadmin";
const CONFIG: &str = "/var/lib/linux-sysadmin/home/.config/linux-sysadmin/config.yaml";

/// What administrators do less often, of accounts and files that aren't the server's.
fn further() -> Vec<(&'static str, Value, &'static str)> {
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHG2c3WlRHo+yhxEXPzIzNrXIcgGyuFP6dyBfg0HCSYx lsa";
    vec![
        (
            "ssh_authorized_keys",
            json!({"action": "add", "user": "anna", "key": key}),
            "grep --quiet lsa$ ~anna/.ssh/authorized_keys && test $(stat -c %U ~anna/.ssh/authorized_keys) = anna",
        ),
        (
            "ssh_authorized_keys",
            json!({"action": "remove", "user": "anna", "key": key}),
            "! grep --quiet lsa$ ~anna/.ssh/authorized_keys",
        ),
        ("perms_set", json!({"path": "/etc/motd", "mode": "0640"}), "test $(stat -c %a /etc/motd) = 640"),
        (
            "perms_set",
            json!({"path": "/srv/app/data", "owner": "web", "group": "web", "recursive": true}),
            "test $(stat -c %U:%G /srv/app/data) = web:web",
        ),
        (
            "perms_set",
            json!({"path": "/home/anna/.profile", "mode": "0600"}),
            "test $(stat -c %a /home/anna/.profile) = 600",
        ),
        (
            "sudoers_modify",
            json!({"action": "add", "rule": {"user": "anna", "commands": ["/usr/bin/id \"\""]}}),
            "sudo -l -U anna | grep --quiet /usr/bin/id",
        ),
    ]
}

#[tokio::test]
async fn every_change_of_every_day_is_made_by_the_servers_own_account() {
    let test = "every_change_of_every_day_is_made_by_the_servers_own_account";
    if warmed(test, "debian1").is_none() {
        return;
    }
    let Some((machine, rows)) = everyday(|| Reach::Inside("debian1"), test) else { return };
    machine.sh(&format!("useradd --create-home {PERSON}; {PROGRAM} system install --for {PERSON} --yes"));
    machine.sh(&format!("printf 'safety:\n  confirmation_threshold: critical\n' > {CONFIG}"));
    machine.host().warm(ACCOUNT, "/var/lib/linux-sysadmin/home/.cache");
    let serve = ["sudo", "-n", "-u", ACCOUNT, PROGRAM, "serve"];
    let mut client = Client::start_command(machine.host().command_as(PERSON, &serve));
    client.initialize("2025-06-18").await;

    let mut wrong = Vec::new();
    let mut done = BTreeSet::new();
    for (tool, arguments, holds) in further() {
        let envelope = client.envelope(tool, arguments).await;
        if envelope["status"] == "success" {
            machine.sh(holds);
        } else {
            wrong.push(format!("{tool}: {envelope}"));
        }
    }
    for row in rows {
        let envelope = client.envelope(&row.tool, row.arguments).await;
        let code = envelope["error_code"].as_str();
        match (envelope["status"].as_str(), &row.fails) {
            (Some("success"), None) => _ = done.insert(row.tool),
            // Nobody at a terminal says yes here.
            (Some("confirmation_required"), None) if envelope["risk_level"] == "critical" => {}
            (_, Some(fails)) if code == Some(fails) => {}
            _ => wrong.push(format!("{}: {envelope}", row.what)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    eprintln!("{done:?}");

    // And every tool there is.
    let listed = client.request("tools/list", json!({})).await;
    for tool in listed["result"]["tools"].as_array().expect("tools") {
        let tool = tool["name"].as_str().expect("a name");
        let envelope = client.envelope(tool, harmless(tool)).await;
        eprintln!("{tool}: {envelope}");
        assert_ne!(envelope["error_code"], "PRIVILEGE_REQUIRED", "{tool}: {envelope}");
    }
    client.close().await;
    machine.sh(&format!("{PROGRAM} system remove --purge --yes"));
}
