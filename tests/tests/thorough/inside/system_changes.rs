//! System mode on a real host: the account's fragments allow the changes that administrators make every day, and changes that
//! need the rights of one more account.

use linux_sysadmin_tests::{Client, Reach, at_terminal, everyday, expected, warmed};
use serde_json::{Value, json};

const PERSON: &str = "lsa-person";
const ACCOUNT: &str = "linux-sysadmin";
const PROGRAM: &str = "/opt/linux-sysadmin/linux-sysadmin";
const CONFIG: &str = "/var/lib/linux-sysadmin/home/.config/linux-sysadmin/config.yaml";

/// Returns the less frequent changes, of accounts and files that don't belong to the server.
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
            json!({"path": "/srv/lsa-tree", "owner": "web", "group": "web", "recursive": true}),
            "test $(stat -c %U:%G /srv/lsa-tree) = web:web",
        ),
        (
            "perms_set",
            json!({"path": "/home/anna/.profile", "mode": "0600"}),
            "test $(stat -c %a /home/anna/.profile) = 600",
        ),
        (
            "pkg_install",
            json!({"package": "dos2unix"}),
            "dpkg --status dos2unix | grep --quiet 'Version: 1:99'",
        ),
        ("pkg_update", json!({"refresh_only": true}), "true"),
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
    let Some((machine, mut rows)) = everyday(|| Reach::Inside("debian1"), test) else { return };
    machine.sh("mkdir --parents /srv/lsa-tree/below");
    // Nothing is approved while a logger writes to terminals, as Debian's rsyslog does.
    machine.sh("cp -a /etc/rsyslog.conf /etc/rsyslog.conf.lsa; sed -i '/omusrmsg/s/^/#/' /etc/rsyslog.conf");
    machine.sh(&format!("useradd --create-home {PERSON}; {PROGRAM} system install --for {PERSON} --yes"));
    machine.sh(&format!("printf 'safety:\n  confirmation_threshold: critical\n' > {CONFIG}"));
    machine.sh(&format!(
        "sudo -H -u {ACCOUNT} sh -c 'umask 077; mkdir -p ~/.ssh; ssh-keygen -q -t ed25519 -N \"\" -f ~/.ssh/id_ed25519'"
    ));
    // The account looks into the directory; the password in it is root's alone.
    machine.sh("mkdir --parents /etc/linux-sysadmin/backup");
    machine.sh("umask 077; echo of-a-test > /etc/linux-sysadmin/backup/restic-password");
    machine.host().warm(ACCOUNT, "/var/lib/linux-sysadmin/home/.cache");
    let serve = ["sudo", "-n", "-u", ACCOUNT, PROGRAM, "serve"];
    let mut client = Client::start_command(machine.host().command_as(PERSON, &serve));
    client.initialize("2025-06-18").await;

    let mut wrong = Vec::new();
    for (tool, arguments, holds) in further() {
        let mut envelope = client.envelope(tool, arguments.clone()).await;
        if let Some(id) = envelope["confirmation"]["id"].as_str() {
            let approve = format!("{PROGRAM} approve {id}");
            let of_root = |script: &str| machine.host().command(&["sudo", script]);
            let (code, seen) = at_terminal(of_root, &approve, "", "type the name", "localhost\n");
            assert_eq!(code, Some(0), "{seen}");
            envelope = client.envelope(tool, arguments).await;
        }
        if envelope["status"] == "success" {
            machine.sh(holds);
        } else {
            wrong.push(format!("{tool}: {envelope}"));
        }
    }
    // The order keeps a change from spoiling the next one: once there are several keys, a call has to name one, and
    // root changes nothing in a directory that others may write to.
    rows.sort_by_key(|row| match row.tool.as_str() {
        "ssh_key_generate" => usize::MAX,
        "perms_set" => 1000 - row.arguments["path"].as_str().map_or(0, str::len),
        _ => 0,
    });
    for mut row in rows {
        // The packages of the test's repository are empty, and a host can't live without its shell.
        if ["pkg_install", "pkg_update"].contains(&row.tool.as_str()) {
            row.arguments["dry_run"] = json!(true);
        }
        let envelope = client.envelope(&row.tool, row.arguments).await;
        let code = envelope["error_code"].as_str();
        match (envelope["status"].as_str(), &row.fails) {
            (Some("success"), None) => {}
            // No person at a terminal says yes here.
            (Some("confirmation_required"), None) if envelope["risk_level"] == "critical" => {}
            (_, Some(fails)) if code == Some(fails) => {}
            _ => wrong.push(format!("{}: {envelope}", row.what)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));

    // Now every tool is called, also those that nothing above has called.
    let listed = client.request("tools/list", json!({})).await;
    for listed in listed["result"]["tools"].as_array().expect("tools") {
        let tool = listed["name"].as_str().expect("a name");
        let envelope = client.envelope(tool, expected(tool).harmless.clone()).await;
        if envelope["error_category"] == "privilege" || envelope["error_code"] == "PERMISSION_DENIED" {
            wrong.push(format!("{tool}: {envelope}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    client.close().await;
    machine.sh(&format!("{PROGRAM} system remove --purge --yes; mv /etc/rsyslog.conf.lsa /etc/rsyslog.conf"));
}
