//! The tools on a machine with ufw 0.36.2, iptables 1.8.9 and nft 1.0.6 (Debian 12), whose rules and files were recorded.
#![allow(clippy::unwrap_used, missing_docs)]

use linux_sysadmin_sdk::Problem;
use linux_sysadmin_sdk::testkit::{FakeTarget, takes_little_context};
use module_firewall_ufw::module;
use serde_json::{Value, json};

const NFT: &str = include_str!("data/nft.json");
const SAVED: &str = include_str!("data/iptables-save.txt");
const SAVED_IPV6: &str = include_str!("data/ip6tables-save.txt");
const RULES: &str = include_str!("data/user.rules");
const RULES_IPV6: &str = include_str!("data/user6.rules");
const NONE: &str = "{\"nftables\": [{\"metainfo\": {\"version\": \"1.0.6\", \"release_name\": \"Lester Gooch #5\", \"json_schema_version\": 1}}]}\n";
const ADDRESSES: &str = r#"[{"ifname":"lo","addr_info":[{"family":"inet","local":"127.0.0.1"},{"family":"inet6","local":"::1"}]},
{"ifname":"eth0","addr_info":[{"family":"inet","local":"192.168.0.1"},{"family":"inet6","local":"2001:db8::1"}]},{"ifname":"eth1","addr_info":[]}]"#;

fn target(nft: &str, ufw_conf: &str) -> FakeTarget {
    let ruled = |text: &'static str| if nft == NFT { text } else { "" };
    FakeTarget::new()
        .answer(&["nft", "-j", "list", "ruleset"], 0, nft, "")
        .answer(&["iptables-save"], 0, ruled(SAVED), "")
        .answer(&["ip6tables-save"], 0, ruled(SAVED_IPV6), "")
        .answer(&["ip", "-j", "address", "show"], 0, ADDRESSES, "")
        .file("/etc/ufw/ufw.conf", ufw_conf)
        .file("/etc/default/ufw", include_str!("data/default-ufw"))
        .file("/etc/ufw/user.rules", RULES)
        .file("/etc/ufw/user6.rules", RULES_IPV6)
}

fn active() -> FakeTarget {
    target(NFT, include_str!("data/ufw.conf"))
}

fn routed(target: FakeTarget, from: &str, near: &str) -> FakeTarget {
    let route = json!([{"dst": from, "dev": "eth0", "prefsrc": near, "flags": [], "cache": []}]).to_string();
    target.answer(&["ip", "-j", "route", "get", from], 0, route, "")
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

#[test]
fn a_tool_takes_little_of_a_models_context() {
    let description = module().description();
    let names: Vec<&str> = description.tools.iter().map(|tool| tool.name.as_str()).collect();
    let all = [
        "fw_status",
        "fw_list_rules",
        "fw_explain",
        "fw_add_rule",
        "fw_remove_rule",
        "fw_enable",
        "fw_disable",
    ];
    assert_eq!(names, all);
    for tool in &description.tools {
        takes_little_context(tool);
    }
}

#[test]
fn the_status_tells_defaults_and_rules_in_short() {
    let (data, notes) = call(active(), "fw_status", json!({})).unwrap();
    assert_eq!(
        json!([
            data["firewall"],
            data["active"],
            data["at_boot"],
            data["incoming"],
            data["outgoing"],
            data["forwarded"]
        ]),
        json!(["ufw", true, true, "deny", "allow", "deny"])
    );
    assert_eq!(data["rules"][1], "allow in 8000:8010/tcp from 192.168.0.0/16");
    assert_eq!(data["rules"][2], "deny in 53/udp from 10.0.0.1 to 10.0.0.2");
    assert!(data.get("published").is_none() && data.get("also_writing_rules").is_none(), "{data}");
    assert_eq!(notes, [""; 0]);
}

#[test]
fn an_inactive_firewall_and_one_whose_rules_are_gone_are_told_apart() {
    let (data, notes) = call(target(NONE, "ENABLED=no\n"), "fw_status", json!({})).unwrap();
    assert_eq!(json!([data["active"], data["at_boot"]]), json!([false, false]));
    assert_eq!(notes, ["ufw is inactive: none of its rules holds"]);
    let (data, notes) = call(target(NONE, "ENABLED=\"yes\"\n"), "fw_status", json!({})).unwrap();
    assert_eq!(json!([data["active"], data["at_boot"]]), json!([false, true]));
    assert!(notes[0].starts_with("ufw is enabled, but the kernel doesn't have its rules"), "{notes:?}");
    let (_, notes) = call(target(NFT, "ENABLED=no\n"), "fw_status", json!({})).unwrap();
    assert_eq!(notes, ["ufw is disabled, but the kernel still has its rules"]);
    let (_, notes) = call(target(NONE, "ENABLED=no\n"), "fw_list_rules", json!({})).unwrap();
    assert_eq!(notes[0], "ufw is inactive: none of its rules holds");
}

#[test]
fn rules_of_both_families_are_one_and_what_the_common_words_lack_is_raw() {
    let (data, notes) = call(active(), "fw_list_rules", json!({})).unwrap();
    let expected = json!([
        {"raw": "limit in proto tcp from any to any port 2222"},
        {"action": "allow", "direction": "in", "port": "8000:8010", "protocol": "tcp", "source": "192.168.0.0/16"},
        {"action": "deny", "direction": "in", "port": "53", "protocol": "udp", "source": "10.0.0.1", "destination": "10.0.0.2"},
        {"raw": "reject in on eth0 proto tcp from any to any port 25"},
        {"action": "allow", "direction": "out", "port": "53", "protocol": "any"},
        {"raw": "allow in from any to any app \"Nginx Full\""},
        {"raw": "allow in proto tcp from any to any port 80,443"},
        {"raw": "route allow in on eth0 out on eth1 from any to 10.0.0.2 port 80"},
        {"raw": "allow in log from any to any port 99"},
        {"raw": "allow in from 10.0.0.3 port 123 to any"},
        {"raw": "allow in proto esp from any to any"},
        {"action": "allow", "direction": "in", "protocol": "any", "source": "2001:db8::/32"},
    ]);
    assert_eq!(data, expected);
    assert_eq!(notes, ["`raw` rules say more than the common words can"]);
}

#[test]
fn comments_may_hold_anything_and_odd_lines_are_passed_over() {
    // ufw writes a comment as the digits of its bytes.
    let comment = "it's \"a\"\n-x ü";
    let digits: String = comment.bytes().map(|byte| format!("{byte:02x}")).collect();
    let text = format!(
        "### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in comment={digits}\n\
         ### tuple ### allow udp 53 0.0.0.0/0 any 0.0.0.0/0\n### tuple ### allow\n### tuple ### a b c d e f g h i j\n\
         ### tuple ### deny any any 0.0.0.0/0 any 192.0.2.1 in comment=zz\n"
    );
    let rules = active().file("/etc/ufw/user.rules", text).file("/etc/ufw/user6.rules", "");
    let (data, _) = call(rules, "fw_list_rules", json!({})).unwrap();
    assert_eq!(
        data,
        json!([
            {"action": "allow", "direction": "in", "port": "22", "protocol": "tcp", "comment": comment, "family": "ipv4"},
            {"action": "allow", "direction": "in", "port": "53", "protocol": "udp", "family": "ipv4"},
            {"action": "deny", "direction": "in", "protocol": "any", "source": "192.0.2.1", "comment": "zz"},
        ])
    );
}

#[test]
fn a_packet_is_explained_by_ufws_own_line() {
    for (from, near, port, protocol, verdict, rule) in [
        (
            "192.168.7.7",
            "192.168.0.1",
            8005,
            "tcp",
            "accepted",
            "-A ufw-user-input -s 192.168.0.0/16 -p tcp -m multiport --dports 8000:8010 -j ACCEPT",
        ),
        ("10.9.9.9", "192.168.0.1", 8005, "tcp", "dropped", "policy drop"),
        ("10.9.9.9", "192.168.0.1", 443, "tcp", "accepted", ""),
        (
            "10.9.9.9",
            "192.168.0.1",
            25,
            "tcp",
            "rejected",
            "-A ufw-user-input -i eth0 -p tcp -m tcp --dport 25 -j REJECT --reject-with tcp-reset",
        ),
        (
            "2001:db8::7",
            "2001:db8::1",
            4711,
            "udp",
            "accepted",
            "-A ufw6-user-input -s 2001:db8::/32 -j ACCEPT",
        ),
        ("2001:db9::7", "2001:db8::1", 4711, "udp", "dropped", "policy drop"),
    ] {
        let arguments = json!({"port": port, "protocol": protocol, "from": from});
        let (data, notes) = call(routed(active(), from, near), "fw_explain", arguments).unwrap();
        assert_eq!(data["verdict"], verdict, "{from} {port}: {data}");
        if !rule.is_empty() {
            assert_eq!(data["by"]["rule"], rule, "{from} {port}: {data}");
        }
        assert_eq!((data["interface"].as_str(), data["to"].as_str()), (Some("eth0"), Some(near)));
        assert_eq!(notes, [""; 0]);
    }
}

#[test]
fn a_limit_is_told_with_both_ends() {
    let arguments = json!({"port": 2222, "from": "10.9.9.9"});
    let (data, _) = call(routed(active(), "10.9.9.9", "192.168.0.1"), "fw_explain", arguments).unwrap();
    assert_eq!(data["verdict"], "unknown");
    let ends = data["ends"].as_array().unwrap();
    let end = |verdict: &str| ends.iter().find(|end| end["verdict"] == verdict).unwrap();
    assert!(end("rejected")["when"][0].as_str().unwrap().contains("--hitcount 6"), "{data}");
    assert!(end("accepted").get("when").is_none(), "{data}");
}

#[test]
fn without_a_source_and_over_another_family_the_difference_is_told() {
    let (data, notes) = call(active(), "fw_explain", json!({"port": 443})).unwrap();
    assert_eq!((data["verdict"].as_str(), notes.len()), (Some("accepted"), 0), "{data} {notes:?}");
    let (data, notes) = call(active(), "fw_explain", json!({"port": 4711, "protocol": "udp"})).unwrap();
    assert_eq!(data["verdict"], "dropped", "{data}");
    assert!(notes[0].starts_with("over IPv6: unknown"), "{notes:?}");
}

#[test]
fn what_cannot_be_asked_is_refused_with_what_was_expected() {
    for (arguments, code, said) in [
        (json!({"port": 0}), "INVALID_PORT", "0 is no port: expected 1 to 65535"),
        (json!({"port": 65536}), "INVALID_PORT", "65536 is no port"),
        (json!({"port": 22, "from": "10.0.0.0/8"}), "INVALID_ADDRESS", "from=\"10.0.0.0/8\" is no address"),
        (json!({"port": 22, "from": "-x"}), "INVALID_ADDRESS", "expected one of IPv4 or IPv6"),
        (json!({"port": 22, "to": ""}), "INVALID_ADDRESS", "to=\"\""),
        (json!({"port": 22, "from": "192.0.2.1", "to": "::1"}), "MIXED_FAMILIES", "different families"),
        (
            json!({"port": 22, "to": "192.0.2.77"}),
            "ADDRESS_NOT_FOUND",
            "none of this machine's addresses: 127.0.0.1",
        ),
        (json!({"port": 22, "interface": "-eth0"}), "INTERFACE_NOT_FOUND", "there are lo, eth0, eth1"),
    ] {
        let target = routed(active(), "192.0.2.1", "192.168.0.1");
        let problem = call(target, "fw_explain", arguments.clone()).unwrap_err();
        assert_eq!(problem.code, code, "{arguments}");
        assert!(problem.message.contains(said), "{}", problem.message);
    }
}

#[test]
fn without_rights_that_is_said() {
    let said = "Operation not permitted (you must be root)\nnetlink: Error: cache initialization failed\n";
    let refused = || {
        FakeTarget::new()
            .answer(&["nft", "-j", "list", "ruleset"], 1, "", said)
            .answer(
                &["iptables-save"],
                4,
                "",
                "iptables-save v1.8.9 (nf_tables): Could not fetch rule set generation id",
            )
            .answer(&["ip6tables-save"], 4, "", "")
            .answer(&["ip", "-j", "address", "show"], 0, ADDRESSES, "")
    };
    for tool in ["fw_status", "fw_list_rules", "fw_explain"] {
        let arguments = if tool == "fw_explain" { json!({"port": 22}) } else { json!({}) };
        assert_eq!(call(refused(), tool, arguments).unwrap_err().code, "PRIVILEGE_REQUIRED", "{tool}");
    }
}

#[test]
fn a_source_without_a_route_is_told() {
    let lost = active().answer(
        &["ip", "-j", "route", "get", "10.9.9.9"],
        2,
        "",
        "RTNETLINK answers: Network is unreachable\n",
    );
    let (data, notes) = call(lost, "fw_explain", json!({"port": 443, "from": "10.9.9.9"})).unwrap();
    assert_eq!(data["verdict"], "accepted");
    assert_eq!(notes, ["this machine has no route to 10.9.9.9, so that no answer gets there"]);
}

#[test]
fn matches_that_only_iptables_knows_are_unknown_without_it() {
    let without = FakeTarget::new()
        .answer(&["nft", "-j", "list", "ruleset"], 0, NFT, "")
        .answer(&["iptables-save"], 1, "", "table `filter' is incompatible, use 'nft' tool.\n")
        .answer(&["ip6tables-save"], 0, SAVED_IPV6, "")
        .answer(&["ip", "-j", "address", "show"], 0, ADDRESSES, "");
    let (data, notes) = call(without, "fw_explain", json!({"port": 9})).unwrap();
    assert_eq!(data["verdict"], "unknown", "{data}");
    assert!(notes[0].starts_with("iptables-save failed"), "{notes:?}");
}
