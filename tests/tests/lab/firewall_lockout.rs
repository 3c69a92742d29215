//! A change of a firewall that cuts off the server's own way over SSH is undone by the machine itself: the rule that let SSH in
//! is removed for real, no new connection gets through, and after a minute everything is as before.

use linux_sysadmin_tests::{Client, Lab, Way};
use serde_json::{Value, json};

const WAY: Way = Way::TwoStep;

/// Has the server wait for what the machine does within its minute.
const PATIENT: &str = "jobs: {after_seconds: 0}\n";

const PREPARE: &str = r"
set -e
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

/// Prints what has to be as before, byte for byte.
const STATE: &str = r"
for file in /etc/ufw/user.rules /etc/ufw/user6.rules /etc/ufw/ufw.conf /etc/firewalld/zones/public.xml \
    /etc/nftables.conf /etc/nftables.d/linux-sysadmin.nft; do
    test ! -e $file || cat $file
done
iptables-save 2> /dev/null | grep '^-A' | sort
nft list table inet linux_sysadmin 2> /dev/null
nft list chain inet firewalld filter_IN_public_allow 2> /dev/null | sort
true
";

/// The lab with hosts whose firewalls are as they were once this is dropped.
struct Firewalls(Lab);

impl Firewalls {
    const NAMES: [&str; 2] = ["debian1", "rhel1"];

    fn new(test: &str) -> Option<Self> {
        let firewalls = Self(Lab::new(test)?);
        firewalls.clean();
        for name in Self::NAMES {
            firewalls.0.host(name).run(&["sh", "-c", PREPARE]);
        }
        Some(firewalls)
    }

    fn clean(&self) {
        for name in Self::NAMES {
            self.0.host(name).holds(CLEAN);
        }
    }
}

impl Drop for Firewalls {
    fn drop(&mut self) {
        self.clean();
    }
}

async fn confirmed(client: &mut Client, tool: &str, arguments: &Value, risk: Option<&str>) -> Value {
    let asked = client.envelope(tool, arguments.clone()).await;
    if let Some(risk) = risk {
        assert_eq!(
            (&asked["status"], &asked["risk_level"]),
            (&json!("confirmation_required"), &json!(risk)),
            "{asked}"
        );
        assert!(tool == "fw_enable" || asked.to_string().contains("this server's own session"), "{asked}");
    }
    if asked["status"] != "confirmation_required" {
        return asked;
    }
    let mut confirmed = arguments.clone();
    confirmed["confirmed"] = json!(true);
    client.envelope(tool, confirmed).await
}

/// Switches the firewall on with a rule for SSH, which takes nobody's way, and then removes that rule.
async fn is_undone_by_the_machine(lab: &Lab, name: &str) {
    let (version, capabilities) = WAY.client();
    let mut client = lab.serve(&["--host", name]);
    client.can(capabilities);
    client.initialize(version).await;
    let ssh = json!({"action": "allow", "direction": "in", "port": 22, "protocol": "tcp"});
    let added = confirmed(&mut client, "fw_add_rule", &ssh, None).await;
    assert_eq!(added["status"], "success", "{name}: {added}");
    let on = confirmed(&mut client, "fw_enable", &json!({}), Some("critical")).await;
    assert_eq!((&on["status"], &on["data"]["active"]), (&json!("success"), &json!(true)), "{name}: {on}");

    let host = lab.host(name);
    let before = host.run(&["sh", "-c", STATE]);
    let cut = confirmed(&mut client, "fw_remove_rule", &ssh, Some("critical")).await;
    assert_eq!(
        (&cut["status"], &cut["error_code"]),
        (&json!("error"), &json!("CONNECTION_CUT")),
        "{name}: {cut}"
    );
    assert!(cut["undone"].as_array().is_some_and(|undone| !undone.is_empty()), "{name}: {cut}");
    assert_eq!(host.run(&["sh", "-c", STATE]), before, "{name}");
    let status = client.envelope("fw_explain", json!({"port": 22})).await;
    assert_eq!(status["data"]["verdict"], "accepted", "{name}: {status}");
}

#[tokio::test]
async fn ufw_and_firewalld_are_as_before_once_a_rule_has_cut_the_way() {
    let Some(firewalls) = Firewalls::new("ufw_and_firewalld_are_as_before_once_a_rule_has_cut_the_way")
    else {
        return;
    };
    let lab = &firewalls.0;
    lab.settle_for(PATIENT);
    tokio::join!(is_undone_by_the_machine(lab, "debian1"), is_undone_by_the_machine(lab, "rhel1"));
}

#[tokio::test]
async fn the_tools_own_table_is_as_before_once_a_rule_has_cut_the_way() {
    let Some(firewalls) = Firewalls::new("the_tools_own_table_is_as_before_once_a_rule_has_cut_the_way")
    else {
        return;
    };
    firewalls.0.settle_for(&format!("{PATIENT}distro:\n  firewall_backend: nftables\n"));
    is_undone_by_the_machine(&firewalls.0, "debian1").await;
}
