//! The tools on a machine with nftables alone, with rule sets of nft 1.0.6 and iptables 1.8.9.
#![allow(clippy::unwrap_used, missing_docs)]

use linux_sysadmin_sdk::firewall::{Packet, Protocol, Ruleset, rule_in_words};
use linux_sysadmin_sdk::testkit::FakeTarget;
use module_firewall_nftables::module;
use serde_json::{Value, json};

/// Rules of every kind.
const ALL: &str = include_str!("data/nft.json");
const IPTABLES: &str = include_str!("data/iptables.json");
const SAVED: &str = include_str!("data/iptables-save.txt");
const SAVED_IPV6: &str = include_str!("data/ip6tables-save.txt");
const UNIT: [&str; 6] =
    ["systemctl", "show", "--property=ActiveState", "--property=UnitFileState", "--", "nftables.service"];

fn target(nft: &str, ipv4: &str, ipv6: &str, unit_state: &str) -> FakeTarget {
    FakeTarget::new()
        .answer(&["nft", "-j", "list", "ruleset"], 0, nft, "")
        .answer(&["iptables-save"], 0, ipv4, "")
        .answer(&["ip6tables-save"], 0, ipv6, "")
        .answer(
            &["ip", "-j", "address", "show"],
            0,
            r#"[{"ifname":"lo","addr_info":[{"local":"127.0.0.1"}]}]"#,
            "",
        )
        .answer(&UNIT, 0, format!("ActiveState=active\nUnitFileState={unit_state}\n"), "")
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> (Value, Vec<String>) {
    let (data, reply) = target.call(&module(), tool, arguments).unwrap();
    (data, reply.notes)
}

#[test]
fn the_status_tells_what_becomes_of_other_packets_and_whether_it_lasts() {
    let (data, notes) = call(target(ALL, "", "", "enabled"), "fw_status", json!({}));
    assert_eq!(json!([data["active"], data["at_boot"], data["incoming"]]), json!([true, true, "deny"]));
    assert_eq!(notes, [""; 0]);
    let (_, notes) = call(target(ALL, "", "", "disabled"), "fw_status", json!({}));
    assert!(notes[0].starts_with("nftables.service isn't enabled"), "{notes:?}");
    let (data, notes) = call(target("{\"nftables\": []}", "", "", "enabled"), "fw_status", json!({}));
    assert_eq!(
        (data["active"].as_bool(), notes[0].as_str()),
        (Some(false), "no table filters packets to this machine")
    );
}

#[test]
fn rules_are_unified_where_the_common_words_say_all() {
    let (data, _) = call(target(ALL, "", "", "enabled"), "fw_list_rules", json!({}));
    let rules = data.as_array().unwrap();
    let place = "inet filter input";
    for expected in [
        json!({"raw": "iif lo accept", "in": place, "handle": 17}),
        json!({"raw": "ct state established,related accept", "in": place, "handle": 23}),
        json!({"raw": "tcp flags & (fin|syn|rst|ack) == syn accept", "in": place, "handle": 27}),
        json!({"raw": "tcp dport vmap @vm", "in": place, "handle": 42}),
        json!({"raw": "tcp dport vmap { 1-10 : drop, 11 : jump web }", "in": place, "handle": 44}),
        json!({"raw": "tcp dport 22 limit rate over 3/minute drop", "in": place, "handle": 45}),
        json!({"raw": "ip saddr != 10.0.0.0/8 tcp dport != 1-1024 accept comment \"it's quoted\"", "in": place, "handle": 67}),
        json!({"action": "allow", "direction": "in", "protocol": "any", "source": "fe80::/10", "in": place, "handle": 66}),
        json!({"action": "reject", "direction": "in", "port": "65535", "protocol": "tcp", "in": place, "handle": 84}),
        json!({"action": "allow", "direction": "in", "port": "5353", "protocol": "udp", "destination": "224.0.0.251",
            "in": place, "handle": 65}),
        json!({"raw": "tcp dport 8080 redirect to :80", "in": "ip nat pre", "handle": 3}),
    ] {
        assert!(rules.contains(&expected), "{expected}\n{data:#}");
    }
}

#[test]
fn rules_of_iptables_are_shown_in_its_own_words() {
    let (data, _) = call(target(IPTABLES, SAVED, SAVED_IPV6, "enabled"), "fw_list_rules", json!({}));
    let expected = json!({"raw": "-A INPUT -p tcp -m tcp --dport 22 -m conntrack --ctstate NEW -m comment --comment \"a b\" -j ACCEPT",
        "in": "ip filter INPUT", "handle": 2});
    assert_eq!(data[0], expected);
}

#[test]
fn every_kind_of_rule_has_words_and_is_followed() {
    let ruleset = Ruleset::parse(ALL).unwrap();
    let rules = ruleset.tables().iter().flat_map(|table| &table.chains).flat_map(|chain| &chain.rules);
    let mut count = 0;
    for words in rules.map(rule_in_words) {
        count += 1;
        let is_json = words.contains("{\"")
            && !["socket", "numgen", "quota", "tcp option"].iter().any(|kind| words.contains(kind));
        assert!(!is_json, "{words}");
    }
    assert!(count > 70, "{count}");
    for port in [1, 22, 53, 80, 443, 8080, 65535] {
        for protocol in [Protocol::Tcp, Protocol::Udp, Protocol::Icmp] {
            for is_v6 in [false, true] {
                assert!(!ruleset.evaluate(&Packet::to_port(protocol, port, is_v6)).ends.is_empty());
            }
        }
    }
}

#[test]
fn docker_is_told_and_its_rules_are_left_out() {
    let docker = r#"{"nftables": [
        {"table": {"family": "ip", "name": "nat", "handle": 1}},
        {"chain": {"family": "ip", "table": "nat", "name": "DOCKER", "handle": 1}},
        {"rule": {"family": "ip", "table": "nat", "chain": "DOCKER", "handle": 2, "expr": [
            {"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 8080}},
            {"dnat": {"addr": "172.17.0.2", "port": 80}}]}}]}"#;
    let (data, notes) = call(target(docker, "", "", "enabled"), "fw_list_rules", json!({}));
    assert_eq!(data, json!([]));
    assert_eq!(
        notes,
        [
            "the rules of docker aren't listed",
            "docker writes rules of its own: published ports pass these rules (fw_status lists them)"
        ]
    );
    let (data, notes) = call(target(docker, "", "", "enabled"), "fw_status", json!({}));
    assert_eq!(data["published"], json!([{"port": "8080/tcp", "to": "172.17.0.2:80"}]));
    assert!(
        notes.iter().any(|note| note.starts_with("the published ports pass the rules of nftables")),
        "{notes:?}"
    );
}

#[test]
fn sets_that_are_too_large_are_read_without_their_elements() {
    let large = format!("{}{}", ALL.trim_end(), " ".repeat(1 << 20));
    let terse = r#"{"nftables": [{"table": {"family": "inet", "name": "t", "handle": 1}},
        {"set": {"family": "inet", "name": "bad", "table": "t", "type": "ipv4_addr", "handle": 2, "flags": ["interval"]}},
        {"chain": {"family": "inet", "table": "t", "name": "in", "handle": 3, "type": "filter", "hook": "input", "prio": 0,
            "policy": "accept"}},
        {"rule": {"family": "inet", "table": "t", "chain": "in", "handle": 4, "expr": [
            {"match": {"op": "==", "left": {"payload": {"protocol": "ip", "field": "saddr"}}, "right": "@bad"}},
            {"drop": null}]}}]}"#;
    let target =
        target(&large, "", "", "enabled").answer(&["nft", "-j", "-t", "list", "ruleset"], 0, terse, "");
    let (data, notes) = call(target, "fw_explain", json!({"port": 22}));
    assert_eq!(data["verdict"], "unknown");
    assert_eq!(data["ends"][0]["when"], json!(["ip saddr @bad"]));
    assert_eq!(notes[0], "the sets are too large to be read: matches on them are unknown");
}

#[test]
fn rules_of_the_older_iptables_are_read_where_they_are() {
    let warned = "# Warning: iptables-legacy tables present, use iptables-legacy-save to see them\n";
    let legacy = "# Generated by iptables-save v1.8.9 on Fri Nov 27 13:58:12 2026\n*filter\n:INPUT DROP [0:0]\nCOMMIT\n";
    let with = |exit_code: i32| {
        FakeTarget::new()
            .answer(&["nft", "-j", "list", "ruleset"], 0, "{\"nftables\": []}", "")
            .answer(&["iptables-save"], 0, "", warned)
            .answer(&["ip6tables-save"], 0, "", "")
            .answer(&["ip", "-j", "address", "show"], 0, "[]", "")
            .answer(&["iptables-legacy-save"], exit_code, legacy, "")
            .answer(&["ip6tables-legacy-save"], 0, "", "")
    };
    let (data, _) = call(with(0), "fw_explain", json!({"port": 22}));
    assert_eq!(data["verdict"], "dropped");
    let (_, notes) = call(with(1), "fw_explain", json!({"port": 22}));
    assert!(notes[0].contains("they may drop more"), "{notes:?}");
}

#[test]
fn rules_are_kept_in_one_line_and_data_stays_data() {
    let comment = "x\" drop; \u{1b}[31m\n-j ACCEPT";
    let odd = json!({"nftables": [
        {"table": {"family": "inet", "name": "a b\n", "handle": 1}},
        {"chain": {"family": "inet", "table": "a b\n", "name": "-c", "handle": 1, "type": "filter", "hook": "input", "prio": 0,
            "policy": "accept"}},
        {"rule": {"family": "inet", "table": "a b\n", "chain": "-c", "handle": 2, "comment": comment,
            "expr": [{"log": {"prefix": "p"}}, {"accept": null}]}},
    ]});
    let (data, _) = call(target(&odd.to_string(), "", "", "enabled"), "fw_list_rules", json!({}));
    assert_eq!(data[0]["raw"], json!(format!("log accept comment {comment:?}")));
}
