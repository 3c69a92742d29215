//! Tests on a real host what the tools for values of the kernel say and do. sysctl and systemd-analyze say the same.

use std::collections::BTreeMap;

use linux_sysadmin_tests::{Changing, way};
use serde_json::{Value, json};

/// The values of a container's network are its own, so that a test may change them.
const CLEAN: &str = r"
rm -f /etc/sysctl.d/90-linux-sysadmin.conf /etc/sysctl.d/1*-lsa.conf /etc/sysctl.d/95-lsa.conf
sysctl --quiet -w net.ipv4.tcp_keepalive_time=7200 net.ipv4.tcp_keepalive_intvl=75 net.ipv4.ip_forward=0
";

const PREPARE: &str = r"
echo 'net.ipv4.tcp_keepalive_intvl = 70' > /etc/sysctl.d/10-lsa.conf
printf '; first\nnet/ipv4/tcp_keepalive_intvl = 60\n-net.ipv4.tcp_keepalive_probes = 9\n' > /etc/sysctl.d/11-lsa.conf
echo 'net.ipv4.ip_forward = 0' > /etc/sysctl.d/95-lsa.conf
";

const OURS: &str = "/etc/sysctl.d/90-linux-sysadmin.conf";

/// The last value of each key in the order in which systemd reads the files.
fn persistent(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    let values = lines.filter_map(|line| line.split_once('='));
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let key = |key: &str| key.trim().trim_start_matches('-').replace('/', ".");
    values.map(|(name, value)| (key(name), words(value))).collect()
}

#[tokio::test]
async fn values_are_those_that_other_programs_say() {
    let Some(machine) = Changing::by(way(), "values_are_those_that_other_programs_say", PREPARE, CLEAN)
    else {
        return;
    };
    let mut client = machine.serve_default().await;
    let keys = ["kernel", "net.core", "net.ipv4.tcp_*", "net.ipv4.ip_forward", "fs.protected_*", "vm"];
    let envelope = client.envelope("sysctl_get", json!({"keys": keys, "limit": 10_000})).await;
    let items = envelope["data"].as_array().unwrap_or_else(|| panic!("{envelope}"));
    let set = persistent(&machine.sh("systemd-analyze cat-config sysctl.d"));
    let mut compared = 0;
    for item in items.iter().filter(|item| item["value"].is_string()) {
        let key = item["key"].as_str().unwrap_or_default();
        // These are other ones at each look.
        let counts = ["kernel.ns_last_pid", "kernel.pty.nr"];
        if key.starts_with("kernel.random.") || key.ends_with("_nr") || counts.contains(&key) {
            continue;
        }
        let said = machine.sh(&format!("sysctl -n '{key}' 2>/dev/null | tr -s '\\t\\n' '  '"));
        assert_eq!(item["value"], said.split_whitespace().collect::<Vec<_>>().join(" "), "{item}");
        assert_eq!(item["persistent"].as_str(), set.get(key).map(String::as_str), "{item}");
        compared += 1;
    }
    assert!(compared >= 100, "{envelope}");
    let found = items.iter().find(|item| item["key"] == "net.ipv4.tcp_keepalive_intvl");
    let expected = json!({
        "key": "net.ipv4.tcp_keepalive_intvl", "value": "75", "persistent": "60", "set_by": "/etc/sysctl.d/11-lsa.conf:2",
        "differs": true, "loses": ["/etc/sysctl.d/10-lsa.conf:1 = 70"],
    });
    assert_eq!(found, Some(&expected));
    let secrets = items.iter().filter(|item| item["key"].as_str().is_some_and(|key| key.ends_with("_key")));
    for secret in secrets {
        assert_eq!(secret["value"], Value::Null, "{secret}");
    }
}

#[tokio::test]
async fn a_value_is_set_now_and_for_the_next_start() {
    let Some(machine) = Changing::by(way(), "a_value_is_set_now_and_for_the_next_start", PREPARE, CLEAN)
    else {
        return;
    };
    let mut client = machine.serve_default().await;
    let arguments =
        json!({"set": {"net.ipv4.tcp_keepalive_time": 600, "net/ipv4/tcp_keepalive_intvl": "30"}});
    let preview = machine.shows(&mut client, "sysctl_set", &arguments).await;
    machine.does(&mut client, "sysctl_set", &arguments, &preview).await;
    let running = machine.sh("sysctl -n net.ipv4.tcp_keepalive_time net.ipv4.tcp_keepalive_intvl");
    assert_eq!(running, "600\n30\n");
    let set = persistent(&machine.sh("systemd-analyze cat-config sysctl.d"));
    assert_eq!(set["net.ipv4.tcp_keepalive_time"], "600");
    assert_eq!(set["net.ipv4.tcp_keepalive_intvl"], "30");
    machine.holds_already(&mut client, "sysctl_set", &arguments).await;
    machine.sh("sysctl --quiet -w net.ipv4.tcp_keepalive_time=7200 && systemctl restart systemd-sysctl");
    assert_eq!(machine.sh("sysctl -n net.ipv4.tcp_keepalive_time"), "600\n");
    let arguments = json!({"remove": ["net.ipv4.tcp_keepalive_intvl"]});
    let preview = machine.shows(&mut client, "sysctl_set", &arguments).await;
    machine.does(&mut client, "sysctl_set", &arguments, &preview).await;
    assert_eq!(machine.sh("sysctl -n net.ipv4.tcp_keepalive_intvl"), "60\n");
    assert!(!machine.sh(&format!("cat {OURS}")).contains("intvl"));
}

#[tokio::test]
async fn what_would_not_hold_is_refused_and_what_protects_asks() {
    let Some(machine) =
        Changing::by(way(), "what_would_not_hold_is_refused_and_what_protects_asks", PREPARE, CLEAN)
    else {
        return;
    };
    let mut client = machine.serve_default().await;
    for (arguments, code) in [
        (json!({"set": {"net.ipv4.ip_forward": 1}}), "SYSCTL_OVERRIDDEN"),
        (json!({"set": {"net.ipv4.tcp_keepalive_tim": 1}}), "SYSCTL_NOT_FOUND"),
        (json!({"set": {"vm.swappiness": 1}}), "SYSCTL_READ_ONLY"),
        (json!({"set": {"net/../../../etc/passwd": 1}}), "INVALID_KEY"),
        (json!({"set": {}}), "INVALID_ARGUMENTS"),
    ] {
        machine.refuses(&mut client, "sysctl_set", &arguments, code).await;
    }
    let arguments = json!({"set": {"net.ipv4.conf.all.accept_redirects": 1}});
    machine.asks(&mut client, "sysctl_set", &arguments, "high").await;
    // The kernel refuses the second value, and the first one is taken back.
    let arguments = json!({"set": {"net.ipv4.tcp_keepalive_intvl": 30, "net.ipv4.tcp_retries1": 300}});
    let answer = client.envelope("sysctl_set", arguments).await;
    assert_ne!(answer["status"], "success", "{answer}");
    assert_eq!(machine.sh("sysctl -n net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_retries1"), "75\n3\n");
    assert_eq!(machine.sh(&format!("test -e {OURS} || echo none")), "none\n");
}
