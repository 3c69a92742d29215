//! Tests on a real host that rules of its firewall are added, listed and removed, and that the firewall is switched on and off.
//! The host's own programs and files say the same. Each host has a firewall of its own, ufw or firewalld, and nftables, which
//! the configuration chooses.

use linux_sysadmin_tests::{Changing, Client, way};
use serde_json::{Value, json};

const PREPARE: &str = r"
mkdir /run/lsa-firewall
for path in /etc/ufw /etc/firewalld/zones /etc/nftables.conf; do
    test ! -e $path || cp -a --parents $path /run/lsa-firewall
done
";

const CLEAN: &str = r"
command -v ufw > /dev/null && ufw disable
systemctl stop firewalld.service
systemctl disable firewalld.service nftables.service
nft delete table inet linux_sysadmin
rm -f /etc/firewalld/zones/public.xml* /etc/nftables.d/linux-sysadmin.nft
rmdir /etc/nftables.d
test ! -d /run/lsa-firewall || cp -a /run/lsa-firewall/. /
rm -rf /run/lsa-firewall
true
";

/// A firewall that the host has.
struct Firewall {
    name: &'static str,
    /// Prints its rules, as its files and its own program have them.
    rules: &'static str,
}

const UFW: Firewall =
    Firewall { name: "ufw", rules: "cat /etc/ufw/user.rules /etc/ufw/user6.rules; ufw status verbose" };
const FIREWALLD: Firewall = Firewall {
    name: "firewalld",
    rules: "cat /etc/firewalld/zones/public.xml; firewall-cmd --zone=public --list-all; nft list table inet firewalld",
};
const NFTABLES: Firewall = Firewall {
    name: "nftables",
    rules: "cat /etc/nftables.d/linux-sysadmin.nft; nft list table inet linux_sysadmin",
};

/// Makes a change, saying yes where that is asked.
async fn agreed(client: &mut Client, tool: &str, arguments: &Value) -> Value {
    let answer = client.envelope(tool, arguments.clone()).await;
    let mut confirmed = arguments.clone();
    confirmed["confirmed"] = json!(true);
    let answer = match answer["status"] == "confirmation_required" {
        true => client.envelope(tool, confirmed).await,
        false => answer,
    };
    assert_eq!(answer["status"], "success", "{tool} {arguments}: {answer}");
    answer
}

async fn switched(machine: &Changing, client: &mut Client, tool: &str) -> Value {
    machine.asks(client, tool, &json!({}), "critical").await;
    agreed(client, tool, &json!({"confirmed": true})).await
}

/// firewalld is asked on the message bus, and by its own program where the bus doesn't tell. One of them fails at a time.
async fn tells_the_same_by_bus_and_by_program(machine: &Changing, client: &mut Client) {
    let mut told = Vec::new();
    for failing in ["firewall-cmd", "busctl"] {
        machine.sh(&format!("mount --bind /usr/bin/false $(command -v {failing})"));
        for tool in ["fw_status", "fw_list_rules"] {
            let answer = client.envelope(tool, json!({})).await;
            assert_eq!(answer["status"], "success", "{tool} without {failing}: {answer}");
            told.push(answer["data"].clone());
        }
        machine.sh(&format!("umount $(command -v {failing})"));
    }
    assert_eq!(told[..2], told[2..]);
    assert!(told[1].as_array().is_some_and(|rules| rules.len() > 1), "{}", told[1]);
}

async fn come_back_exactly(machine: &Changing, firewall: &Firewall) {
    machine.configure("root", &format!("distro:\n  firewall_backend: {}\n", firewall.name));
    let mut client = machine.serve_default().await;
    let ssh = json!({"action": "allow", "direction": "in", "port": "ssh"});
    let added = agreed(&mut client, "fw_add_rule", &ssh).await;
    assert_eq!(added["data"]["rule"], "allow in 22/tcp", "{added}");

    let on = switched(machine, &mut client, "fw_enable").await;
    assert_eq!(
        (&on["data"]["firewall"], &on["data"]["active"], &on["data"]["at_boot"]),
        (&json!(firewall.name), &json!(true), &json!(true)),
        "{on}"
    );
    machine.holds_already(&mut client, "fw_enable", &json!({})).await;

    // The first rule of its own brings files into the form that the firewall itself writes.
    let first = json!({"action": "allow", "direction": "in", "port": 8442, "protocol": "tcp"});
    agreed(&mut client, "fw_add_rule", &first).await;
    let before = machine.sh(firewall.rules);
    if firewall.name == FIREWALLD.name {
        tells_the_same_by_bus_and_by_program(machine, &mut client).await;
    }
    for (rule, verdict) in [
        (
            json!({"action": "deny", "direction": "in", "port": "8443:8450", "protocol": "tcp", "source": "192.0.2.0/24"}),
            "dropped",
        ),
        (json!({"action": "allow", "direction": "in", "port": 8443}), "accepted"),
        (
            json!({"action": "reject", "direction": "in", "port": 8443, "protocol": "udp", "source": "2001:db8::/32"}),
            "rejected",
        ),
    ] {
        let added = agreed(&mut client, "fw_add_rule", &rule).await;
        assert_eq!(added["data"]["verdict"], verdict, "{added}");
        let said = machine.sh(firewall.rules);
        assert!(said != before && said.contains("8443"), "{said}");
        let mut listed = rule.clone();
        let port = rule["port"].as_str().map_or_else(|| rule["port"].to_string(), str::to_owned);
        listed["port"] = json!(port);
        let protocol = rule["protocol"].as_str().unwrap_or("any");
        listed["protocol"] = json!(protocol);
        let all = client.envelope("fw_list_rules", json!({})).await;
        let has = |known: &Value| {
            listed.as_object().is_some_and(|rule| rule.iter().all(|(key, value)| known[key] == *value))
        };
        assert_eq!(
            all["data"].as_array().map(|all| all.iter().filter(|known| has(known)).count()),
            Some(1),
            "{all}"
        );
        machine.holds_already(&mut client, "fw_add_rule", &rule).await;
        agreed(&mut client, "fw_remove_rule", &listed).await;
        assert_eq!(machine.sh(firewall.rules), before, "{rule}");
    }

    let off = switched(machine, &mut client, "fw_disable").await;
    // Other tables may be loaded at boot, and nftables.service loads them all.
    let stays = firewall.name != "nftables" && off["data"]["at_boot"] == true;
    assert!(!stays, "{off}");
    machine.holds_already(&mut client, "fw_disable", &json!({})).await;
    assert!(!machine.holds("nft list ruleset | grep -q 8442"), "{}", machine.sh("nft list ruleset"));
    machine.nothing_is_left_behind();
}

#[tokio::test]
async fn rules_of_the_hosts_own_firewall_come_back_exactly() {
    let test = "rules_of_the_hosts_own_firewall_come_back_exactly";
    let Some(machine) = Changing::by(way(), test, PREPARE, CLEAN) else { return };
    let firewall = if machine.holds("command -v ufw") { UFW } else { FIREWALLD };
    come_back_exactly(&machine, &firewall).await;
}

#[tokio::test]
async fn rules_of_the_tools_own_table_come_back_exactly_and_leave_other_tables_alone() {
    let test = "rules_of_the_tools_own_table_come_back_exactly_and_leave_other_tables_alone";
    let other = "nft add table inet lsa_other; nft add chain inet lsa_other input '{ type filter hook input priority 5; }'; \
                 nft add rule inet lsa_other input tcp dport 8499 drop\n";
    let clean = format!("nft delete table inet lsa_other\n{CLEAN}");
    let Some(machine) = Changing::by(way(), test, &[PREPARE, other].concat(), &clean) else { return };
    let others = machine.sh("nft list table inet lsa_other");
    come_back_exactly(&machine, &NFTABLES).await;
    assert_eq!(machine.sh("nft list table inet lsa_other"), others);

    // What another table drops, no rule of this one lets in.
    let mut client = machine.serve_default().await;
    switched(&machine, &mut client, "fw_enable").await;
    let rule = json!({"action": "allow", "direction": "in", "port": 8499, "protocol": "tcp"});
    let refused = machine.refuses(&mut client, "fw_add_rule", &rule, "RULE_WITHOUT_EFFECT").await;
    assert!(refused["message"].to_string().contains("inet lsa_other input"), "{refused}");
}
