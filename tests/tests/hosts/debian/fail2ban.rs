//! A jail of fail2ban is made on a real host, bans what its log has, lets it in again, and goes. fail2ban's own program says
//! the same.

use linux_sysadmin_tests::{Changing, Client, way};
use serde_json::{Value, json};

const LOCAL: &str = "/etc/fail2ban/jail.local";

/// A log in which somebody has just tried to get in.
const PREPARE: &str = r#"
cp -a /etc/fail2ban/jail.local /run/lsa-jail.local
for n in 1 2 3 4 5; do
    echo "$(date '+%b %e %T') host sshd[99]: Failed password for root from 203.0.113.7 port 50$n ssh2"
done > /var/log/lsa.log
systemctl start fail2ban
"#;

const CLEAN: &str = r"
test ! -e /run/lsa-jail.local || mv /run/lsa-jail.local /etc/fail2ban/jail.local
rm -f /var/log/lsa.log
fail2ban-client reload
";

async fn agreed(client: &mut Client, arguments: &Value) -> Value {
    let asked = client.envelope("sec_fail2ban_configure", arguments.clone()).await;
    assert_eq!(asked["status"], "confirmation_required", "{asked}");
    let mut confirmed = arguments.clone();
    confirmed["confirmed"] = json!(true);
    client.envelope("sec_fail2ban_configure", confirmed).await
}

#[tokio::test]
async fn a_jail_is_made_and_changed_and_goes_and_one_without_its_log_changes_nothing() {
    let test = "a_jail_is_made_and_changed_and_goes_and_one_without_its_log_changes_nothing";
    let Some(machine) = Changing::by(way(), test, PREPARE, CLEAN) else { return };
    let mut client = machine.serve_default().await;
    let before = machine.read(LOCAL);
    let jails = client.envelope("sec_fail2ban_status", json!({})).await;
    assert!(jails["data"].to_string().contains("\"jail\":\"sshd\""), "{jails}");

    let config = json!({"filter": "sshd", "logpath": "/var/log/lsa.log", "backend": "polling", "maxretry": 3,
                        "bantime": "1h", "port": 2299});
    let create = json!({"jail": "lsa", "action": "create", "config": config});
    machine.shows(&mut client, "sec_fail2ban_configure", &create).await;
    let created = agreed(&mut client, &create).await;
    assert_eq!(
        (&created["status"], &created["data"]["running"]),
        (&json!("success"), &json!(true)),
        "{created}"
    );
    machine.until("fail2ban-client status lsa | grep --quiet 'Banned IP list:.*203.0.113.7'");
    let status = client.envelope("sec_fail2ban_status", json!({"jail": "lsa"})).await;
    let jail = &status["data"][0];
    assert_eq!((&jail["addresses"], &jail["banned"]), (&json!(["203.0.113.7"]), &json!(1)), "{status}");
    let said = machine.sh("fail2ban-client status lsa");
    for (label, member) in [
        ("Currently failed:", "failed"),
        ("Total failed:", "failed_total"),
        ("Currently banned:", "banned"),
        ("Total banned:", "banned_total"),
    ] {
        let number = said.lines().find_map(|line| line.split_once(label)?.1.trim().parse::<u64>().ok());
        assert_eq!(jail[member].as_u64(), number, "{label} {said} {status}");
    }
    assert_eq!(
        (&jail["config"]["bantime"], &jail["config"]["maxretry"]),
        (&json!("1h"), &json!(3)),
        "{status}"
    );

    let missing = json!({"jail": "lsa", "action": "modify", "config": {"logpath": "/var/log/lsa-none.log"}});
    let written = machine.read(LOCAL);
    let refused = agreed(&mut client, &missing).await;
    assert_eq!(refused["error_code"], "JAIL_REFUSED", "{refused}");
    assert!(refused["message"].to_string().contains("Have not found any log file for lsa jail"), "{refused}");
    assert_eq!(machine.read(LOCAL), written);
    machine
        .holds_already(&mut client, "sec_fail2ban_configure", &json!({"jail": "lsa", "action": "enable"}))
        .await;

    let unban = json!({"jail": "lsa", "action": "unban", "address": "203.0.113.7"});
    assert_eq!(agreed(&mut client, &unban).await["status"], "success");
    assert!(!machine.holds("fail2ban-client status lsa | grep --quiet 203.0.113.7"));

    let deleted = agreed(&mut client, &json!({"jail": "lsa", "action": "delete"})).await;
    assert_eq!(
        (&deleted["status"], &deleted["data"]["running"]),
        (&json!("success"), &json!(false)),
        "{deleted}"
    );
    assert_eq!(machine.read(LOCAL).trim_end(), before.trim_end());
    assert!(machine.holds("fail2ban-client -t"));
}
