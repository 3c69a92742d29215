//! `net_explain` names the fault that keeps a real host from reaching another machine, which is a network namespace here: eight
//! faults, one after the other.

use linux_sysadmin_tests::{Changing, way};
use serde_json::{Value, json};

/// The other machine is 198.19.7.1, and listens on port 8080. unbound knows db.corp.lsa, and that there is nothing else in
/// its domains.
const PREPARE: &str = r#"
set -e
ip netns add lsa-far
ip link add lsa0 type veth peer name lsa1 netns lsa-far
ip address add 198.19.7.2/24 dev lsa0
ip link set lsa0 up
ip -n lsa-far address add 198.19.7.1/24 dev lsa1
ip -n lsa-far link set lsa1 up
systemd-run --quiet --unit=lsa-far ip netns exec lsa-far python3 -m http.server --bind 198.19.7.1 8080
systemd-run --quiet --unit=lsa-near python3 -m http.server --bind 127.0.0.1 8090
cp -a /etc/resolv.conf /run/lsa-resolv.conf
cp -a /etc/hosts /run/lsa-hosts
printf 'server:\n local-zone: "lsa." static\n local-zone: "las." static\n local-zone: "db." static\n local-data: "db.corp.lsa. A 198.19.7.1"\n' \
    > /etc/unbound/unbound.conf.d/lsa.conf
systemctl restart unbound
"#;

const READY: &str =
    "ip netns exec lsa-far ss -Htln | grep -q ':8080 ' && ss -Htln | grep -q '127.0.0.1:8090 '";

/// Takes away one fault.
const MEND: &str = "
ip route flush 203.0.113.0/24
nft delete table inet lsa 2>/dev/null
ip netns exec lsa-far nft flush ruleset 2>/dev/null
test ! -e /run/lsa-resolv.conf || cp -a /run/lsa-resolv.conf /etc/resolv.conf
test ! -e /run/lsa-hosts || cp -a /run/lsa-hosts /etc/hosts
";

const CLEAN: &str = "
systemctl stop lsa-far lsa-near
systemctl reset-failed lsa-far lsa-near
ip link delete lsa0
ip netns delete lsa-far
rm -f /run/lsa-resolv.conf /run/lsa-hosts
test ! -e /etc/unbound/unbound.conf.d/lsa.conf || { rm -f /etc/unbound/unbound.conf.d/lsa.conf; systemctl restart unbound; }
";

const DROP: &str = "add table inet lsa; add chain inet lsa c { type filter hook HOOK priority 0; }; add rule inet lsa c tcp dport 8080 drop";

/// The script that makes a fault, the call, the step at which it fails, and words of the answer.
fn faults() -> Vec<(String, Value, &'static str, &'static str)> {
    let far = |port: u16| json!({"target": "198.19.7.1", "port": port});
    let outside = || json!({"target": "203.0.113.9", "port": 8080});
    let by_name = || json!({"target": "db", "port": 8080});
    let resolv = |text: &str| format!("printf '{text}' > /etc/resolv.conf");
    let full_name = "printf '127.0.1.1 %s.corp.lsa %s\\n' $(hostname) $(hostname) > /etc/hosts";
    vec![
        ("true".to_owned(), outside(), "route", "no route leads there"),
        (
            "ip route add 203.0.113.0/24 via 198.19.7.99".to_owned(),
            outside(),
            "neighbour",
            "the gateway 198.19.7.99 doesn't answer on lsa0",
        ),
        (
            resolv(r"nameserver 198.19.7.98\noptions timeout:1 attempts:1\n"),
            json!({"target": "db.corp.lsa", "port": 8080}),
            "name",
            "the only name server, 198.19.7.98, doesn't answer",
        ),
        (
            format!("{full_name}; {}", resolv(r"nameserver 127.0.0.1\nsearch corp.las\n")),
            by_name(),
            "name",
            "the search list is corp.las: db.corp.lsa is 198.19.7.1",
        ),
        (
            format!("nft '{}'", DROP.replace("HOOK", "output")),
            far(8080),
            "firewall",
            "this machine's own firewall",
        ),
        (
            format!("ip netns exec lsa-far nft '{}'", DROP.replace("HOOK", "input")),
            far(8080),
            "firewall",
            "a firewall there",
        ),
        ("true".to_owned(), far(81), "port", "refuses port 81"),
        (
            "true".to_owned(),
            json!({"target": "198.19.7.2", "port": 8090}),
            "port",
            "only on the loopback, and not on 198.19.7.2: 127.0.0.1:8090",
        ),
    ]
}

#[tokio::test]
async fn each_of_eight_faults_is_named_and_none_where_there_is_none() {
    let test = "each_of_eight_faults_is_named_and_none_where_there_is_none";
    let Some(machine) = Changing::by(way(), test, PREPARE, &[MEND, CLEAN].concat()) else { return };
    machine.until(READY);
    let mut client = machine.serve_shipped("root", "root").await;
    for (plant, arguments, step, words) in faults() {
        machine.sh(&plant);
        let answer = client.envelope("net_explain", arguments.clone()).await;
        let told =
            (&answer["status"], &answer["data"]["fails_at"], answer["summary"].as_str().unwrap_or_default());
        assert_eq!((told.0, told.1), (&json!("success"), &json!(step)), "{plant}: {answer}");
        assert!(told.2.contains(words), "{plant}: {answer}");
        machine.sh(&format!("{MEND}true"));
    }
    machine.sh("printf 'nameserver 127.0.0.1\\nsearch corp.lsa\\n' > /etc/resolv.conf");
    let answer = client.envelope("net_explain", json!({"target": "db", "port": 8080})).await;
    assert_eq!(answer["data"]["reached"], true, "{answer}");
}
