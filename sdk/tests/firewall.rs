//! The evaluation of rule sets, against what the kernel did with packets: see `data/README.md`.
#![allow(clippy::unwrap_used, missing_docs)]

use std::net::IpAddr;

use linux_sysadmin_sdk::firewall::{Answer, Packet, Protocol, Ruleset, Verdict};
use serde_json::{Value, json};

/// Rule sets with packets, and which of these came through. One rule set a line.
const RECORDED: &str = include_str!("data/packets.jsonl");

fn packet(recorded: &Value) -> Packet {
    let text = |key: &str| recorded[key].as_str().unwrap();
    let number = |key: &str| recorded[key].as_u64().unwrap() as u16;
    let protocol = if text("proto") == "tcp" { Protocol::Tcp } else { Protocol::Udp };
    let own =
        ["127.0.0.1", "10.1.0.1", "10.2.0.1", "::1", "fd01::1", "fd02::1"].map(|one| one.parse().unwrap());
    Packet {
        source: text("src").parse().ok(),
        destination: text("dst").parse().ok(),
        source_port: Some(number("sport")),
        interface: Some(text("iif").to_owned()),
        is_on_route: Some(true),
        own: own.to_vec(),
        ..Packet::to_port(protocol, number("dport"), recorded["v6"].as_bool().unwrap())
    }
}

#[test]
fn packets_come_through_as_the_evaluation_says() {
    let mut wrong = Vec::new();
    let (mut passed, mut stopped) = (0, 0);
    for (index, line) in RECORDED.lines().enumerate() {
        let recorded: Value = serde_json::from_str(line).unwrap();
        let ruleset = Ruleset::parse(&recorded["nft"].to_string()).unwrap();
        let ruleset = ruleset
            .with_saved("ip", recorded["save4"].as_str().unwrap())
            .with_saved("ip6", recorded["save6"].as_str().unwrap());
        for one in recorded["packets"].as_array().unwrap() {
            let has_passed = one["seen"].as_bool().unwrap();
            let answer = ruleset.evaluate(&packet(one));
            let said = match answer.verdict {
                Verdict::Accepted => Some(true),
                Verdict::Dropped | Verdict::Rejected => Some(false),
                Verdict::Unknown => None,
            };
            if said != Some(has_passed) {
                wrong.push(format!("rule set {index}: {one}\n  {answer:?}"));
            }
            if has_passed { passed += 1 } else { stopped += 1 }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        passed + stopped,
        wrong[..wrong.len().min(5)].join("\n")
    );
    assert!(passed > 100 && stopped > 100, "{passed} {stopped}");
}

/// A rule set with one table `inet t` and a chain at the hook `input`.
fn input(rules: Value) -> Value {
    let mut objects = vec![
        json!({"table": {"family": "inet", "name": "t", "handle": 1}}),
        json!({"chain": {"family": "inet", "table": "t", "name": "in", "handle": 1, "type": "filter", "hook": "input",
            "prio": 0, "policy": "drop"}}),
    ];
    for (handle, expr) in rules.as_array().unwrap().iter().enumerate() {
        objects.push(json!({"rule": {"family": "inet", "table": "t", "chain": "in", "handle": handle + 2, "expr": expr}}));
    }
    json!({"nftables": objects})
}

fn with(mut ruleset: Value, objects: Value) -> Value {
    ruleset["nftables"].as_array_mut().unwrap().extend(objects.as_array().unwrap().iter().cloned());
    ruleset
}

fn is(left: Value, right: Value) -> Value {
    json!({"match": {"op": "==", "left": left, "right": right}})
}

fn saddr(right: &str) -> Value {
    is(json!({"payload": {"protocol": "ip", "field": "saddr"}}), json!(right))
}

fn dport(right: Value) -> Value {
    is(json!({"payload": {"protocol": "tcp", "field": "dport"}}), right)
}

fn evaluated(ruleset: &Value, packet: &Packet) -> Answer {
    Ruleset::parse(&ruleset.to_string()).unwrap().evaluate(packet)
}

fn ssh() -> Packet {
    Packet::to_port(Protocol::Tcp, 22, false)
}

fn rules_of(answer: &Answer) -> Vec<(Verdict, String, Vec<String>)> {
    let by = |end: &linux_sysadmin_sdk::firewall::End| {
        end.by.as_ref().map_or_else(String::new, |by| by.rule.clone())
    };
    answer.ends.iter().map(|end| (end.verdict, by(end), end.when.clone())).collect()
}

#[test]
fn an_accept_in_one_table_does_not_override_a_drop_of_another() {
    let base = input(json!([[dport(json!(22)), {"accept": null}]]));
    let answer = evaluated(&base, &ssh());
    assert_eq!(rules_of(&answer), [(Verdict::Accepted, "tcp dport 22 accept".to_owned(), vec![])]);
    for (priority, family) in [(-10, "ip"), (10, "ip"), (10, "inet")] {
        let both = with(
            base.clone(),
            json!([
                {"table": {"family": family, "name": "other", "handle": 2}},
                {"chain": {"family": family, "table": "other", "name": "c", "handle": 1, "type": "filter", "hook": "input",
                    "prio": priority, "policy": "accept"}},
                {"rule": {"family": family, "table": "other", "chain": "c", "handle": 7,
                    "expr": [dport(json!(22)), {"counter": {"packets": 1, "bytes": 2}}, {"drop": null}]}},
            ]),
        );
        let answer = evaluated(&both, &ssh());
        assert_eq!(answer.verdict, Verdict::Dropped, "{priority}");
        let by = answer.ends[0].by.clone().unwrap();
        assert_eq!(
            (by.table, by.chain, by.handle, by.rule),
            (format!("{family} other"), "c".to_owned(), Some(7), "tcp dport 22 drop".to_owned())
        );
        let v6 = evaluated(&both, &Packet::to_port(Protocol::Tcp, 22, true));
        let expected = if family == "ip" { Verdict::Accepted } else { Verdict::Dropped };
        assert_eq!(v6.verdict, expected, "{family}");
    }
}

#[test]
fn without_a_chain_in_the_way_everything_gets_in() {
    let answer = evaluated(&json!({"nftables": []}), &ssh());
    assert_eq!((answer.verdict, answer.ends.len()), (Verdict::Accepted, 1));
    assert_eq!(answer.ends[0].by, None);
}

#[test]
fn a_policy_decides_what_no_rule_does() {
    let answer = evaluated(&input(json!([[dport(json!(80)), {"accept": null}]])), &ssh());
    assert_eq!(rules_of(&answer), [(Verdict::Dropped, "policy drop".to_owned(), vec![])]);
}

#[test]
fn what_depends_is_named_with_both_ends() {
    let limited = input(json!([
        [dport(json!(22)), {"limit": {"rate": 3, "burst": 5, "per": "minute"}}, {"accept": null}],
    ]));
    let answer = evaluated(&limited, &ssh());
    assert_eq!(answer.verdict, Verdict::Unknown);
    assert_eq!(
        rules_of(&answer),
        [
            (Verdict::Dropped, "policy drop".to_owned(), vec![]),
            (
                Verdict::Accepted,
                "tcp dport 22 limit rate 3/minute accept".to_owned(),
                vec!["limit rate 3/minute".to_owned()]
            ),
        ]
    );
    // Where both ways end alike, it doesn't matter.
    let both = input(json!([
        [{"limit": {"rate": 3, "burst": 5, "per": "minute"}}, {"log": {"prefix": "x"}}],
        [{"limit": {"rate": 3, "burst": 5, "per": "minute"}}, {"accept": null}],
        [dport(json!(22)), {"accept": null}],
    ]));
    assert_eq!(evaluated(&both, &ssh()).verdict, Verdict::Accepted);
}

#[test]
fn an_open_source_meets_rules_for_some_sources_in_part() {
    let some = input(json!([[saddr("10.0.0.5"), dport(json!(22)), {"accept": null}]]));
    let answer = evaluated(&some, &ssh());
    assert_eq!(answer.verdict, Verdict::Unknown);
    assert!(answer.ends.iter().any(|end| end.when == ["ip saddr 10.0.0.5"]), "{answer:?}");
    let from = |address: &str| Packet { source: address.parse::<IpAddr>().ok(), ..ssh() };
    assert_eq!(evaluated(&some, &from("10.0.0.5")).verdict, Verdict::Accepted);
    assert_eq!(evaluated(&some, &from("10.0.0.6")).verdict, Verdict::Dropped);
    // No machine's packet comes from there.
    for address in ["224.0.0.1", "127.0.0.1", "255.255.255.255"] {
        assert_eq!(
            evaluated(&input(json!([[saddr(address), {"accept": null}]])), &ssh()).verdict,
            Verdict::Dropped
        );
    }
    let lo = input(json!([[is(json!({"meta": {"key": "iif"}}), json!("lo")), {"accept": null}]]));
    assert_eq!(evaluated(&lo, &ssh()).verdict, Verdict::Dropped);
}

#[test]
fn a_published_port_is_sent_on_and_never_comes_to_input() {
    let docker = with(
        input(json!([])),
        json!([
            {"table": {"family": "ip", "name": "nat", "handle": 2}},
            {"chain": {"family": "ip", "table": "nat", "name": "DOCKER", "handle": 1}},
            {"chain": {"family": "ip", "table": "nat", "name": "PREROUTING", "handle": 2, "type": "nat",
                "hook": "prerouting", "prio": -100, "policy": "accept"}},
            {"rule": {"family": "ip", "table": "nat", "chain": "PREROUTING", "handle": 3,
                "expr": [is(json!({"fib": {"result": "type", "flags": ["daddr"]}}), json!("local")),
                    {"jump": {"target": "DOCKER"}}]}},
            {"rule": {"family": "ip", "table": "nat", "chain": "DOCKER", "handle": 4,
                "expr": [dport(json!(8080)), {"dnat": {"addr": "172.17.0.2", "port": 80}}]}},
        ]),
    );
    let ruleset = Ruleset::parse(&docker.to_string()).unwrap();
    let answer = ruleset.evaluate(&Packet { port: 8080, ..ssh() });
    assert_eq!(answer.verdict, Verdict::Accepted);
    assert_eq!(answer.ends[0].sent_to.as_deref(), Some("172.17.0.2:80"));
    assert_eq!(ruleset.evaluate(&ssh()).verdict, Verdict::Dropped);
    assert!(ruleset.has_containers());
    let published = ruleset.published();
    assert_eq!((published[0].port.as_str(), published[0].to.as_str()), ("8080/tcp", "172.17.0.2:80"));
    // The machine's own connections aren't sent on at the hook `prerouting`.
    let from_itself = Packet { port: 8080, interface: Some("lo".to_owned()), ..ssh() };
    assert_eq!(ruleset.evaluate(&from_itself).verdict, Verdict::Dropped);
    // Where the new destination is this machine, `input` decides.
    let own = Packet { port: 8080, own: vec!["172.17.0.2".parse().unwrap()], ..ssh() };
    assert_eq!(ruleset.evaluate(&own).verdict, Verdict::Dropped);
}

#[test]
fn a_dormant_table_does_nothing_and_a_doubtful_one_is_told() {
    let dormant = |flags: Value| {
        let mut ruleset = input(json!([]));
        ruleset["nftables"][0]["table"]["flags"] = flags;
        evaluated(&ruleset, &ssh())
    };
    assert_eq!(dormant(json!("dormant")).verdict, Verdict::Accepted);
    assert_eq!(dormant(json!(["dormant"])).verdict, Verdict::Accepted);
    assert_eq!(dormant(json!(["owner"])).verdict, Verdict::Dropped);
    // nft 1.0.6 prints the table's name for any flag.
    let answer = dormant(json!("t"));
    assert_eq!(answer.verdict, Verdict::Unknown);
    assert!(answer.ends.iter().any(|end| end.when == ["table inet t isn't dormant"]), "{answer:?}");
}

#[test]
fn odd_rule_sets_give_unknown_and_never_an_end_of_the_program() {
    for text in ["", "{}", "[]", "{\"nftables\": 1}", "Fehler: Vorgang nicht zulässig"] {
        assert_eq!(Ruleset::parse(text).unwrap_err().code, "UNEXPECTED_OUTPUT", "{text}");
    }
    for (part, verdict) in [
        (json!(null), Verdict::Unknown),
        (json!("counter"), Verdict::Unknown),
        (json!({"future": {"x": [1]}}), Verdict::Unknown),
        (json!({"match": null}), Verdict::Unknown),
        (
            json!({"match": {"op": "==", "left": {"payload": {"protocol": "ip", "field": "saddr"}}, "right": "@gone"}}),
            Verdict::Unknown,
        ),
        (
            json!({"match": {"op": "~", "left": {"meta": {"key": "l4proto"}}, "right": "tcp"}}),
            Verdict::Unknown,
        ),
        (
            json!({"match": {"op": "==", "left": {"payload": {"protocol": "ip", "field": "saddr"}},
            "right": {"prefix": {"addr": "10.0.0.0", "len": 99}}}}),
            Verdict::Unknown,
        ),
        (json!({"xt": null}), Verdict::Unknown),
        (
            json!({"vmap": {"key": {"meta": {"key": "l4proto"}}, "data": {"set": [[1], 2, ["tcp", {"accept": null}]]}}}),
            Verdict::Accepted,
        ),
        (json!({"jump": {"target": "nowhere"}}), Verdict::Accepted),
    ] {
        let answer = evaluated(&input(json!([[part, {"accept": null}], [{"accept": null}]])), &ssh());
        // Both ways are accepted, unless something else decides.
        let ends_alike = answer.verdict == Verdict::Accepted;
        assert!(ends_alike || verdict == Verdict::Unknown, "{part}: {answer:?}");
        let answer = evaluated(&input(json!([[part, {"accept": null}]])), &ssh());
        let is_jump = part.get("jump").is_some();
        assert_eq!(answer.verdict, if is_jump { Verdict::Dropped } else { verdict }, "{part}");
    }
    // Chains that call each other in a circle can't be in the kernel.
    let circle = with(
        input(json!([[{"jump": {"target": "a"}}]])),
        json!([
            {"chain": {"family": "inet", "table": "t", "name": "a", "handle": 9}},
            {"rule": {"family": "inet", "table": "t", "chain": "a", "handle": 10, "expr": [{"jump": {"target": "a"}}]}},
        ]),
    );
    assert_eq!(evaluated(&circle, &ssh()).verdict, Verdict::Unknown);
}

#[test]
fn a_hundred_thousand_rules_and_elements_are_followed() {
    let many: Vec<Value> = (0..50_000u32)
        .map(|number| json!([saddr(&std::net::Ipv4Addr::from(0x0a00_0000 + number).to_string()), {"drop": null}]))
        .collect();
    let from = |address: &str| Packet { source: address.parse().ok(), ..ssh() };
    let ruleset = input(json!(many));
    assert_eq!(
        evaluated(&ruleset, &from("10.0.195.79")).ends[0].by.as_ref().unwrap().rule,
        "ip saddr 10.0.195.79 drop"
    );
    assert_eq!(evaluated(&ruleset, &from("10.0.195.80")).ends[0].by.as_ref().unwrap().rule, "policy drop");
}

/// As iptables-save 1.8.9 writes them.
#[test]
fn rules_of_iptables_legacy_are_tables_of_their_own() {
    let saved = "# Generated by iptables-save v1.8.9 on Fri Nov 27 13:58:12 2026\n*filter\n:INPUT DROP [0:0]\n:FORWARD ACCEPT [0:0]\n\
        :OUTPUT ACCEPT [0:0]\n:own - [0:0]\n-A INPUT -p tcp -m tcp --dport 22 -m comment --comment \"a \\\"b\\\" -j DROP\" -j own\n\
        -A INPUT -p tcp -m multiport --dports 80,1000:2000 -j ACCEPT\n\
        -A own -s 10.0.0.0/8 -j ACCEPT\n-A own -m iprange --src-range 192.0.2.1-192.0.2.9 -j REJECT --reject-with icmp-port-unreachable\nCOMMIT\n";
    let ruleset = Ruleset::parse("{\"nftables\": []}").unwrap().with_saved("ip", saved);
    for (source, port, verdict, rule) in [
        ("10.1.2.3", 22, Verdict::Accepted, "-A own -s 10.0.0.0/8 -j ACCEPT"),
        (
            "192.0.2.9",
            22,
            Verdict::Rejected,
            "-A own -m iprange --src-range 192.0.2.1-192.0.2.9 -j REJECT --reject-with icmp-port-unreachable",
        ),
        ("192.0.2.10", 22, Verdict::Dropped, "policy drop"),
        (
            "192.0.2.10",
            1500,
            Verdict::Accepted,
            "-A INPUT -p tcp -m multiport --dports 80,1000:2000 -j ACCEPT",
        ),
    ] {
        let packet = Packet { source: source.parse().ok(), port, ..ssh() };
        let answer = ruleset.evaluate(&packet);
        assert_eq!(answer.verdict, verdict, "{source} {port}");
        assert_eq!(answer.ends[0].by.as_ref().unwrap().rule, rule);
    }
    assert_eq!(ruleset.evaluate(&Packet::to_port(Protocol::Tcp, 22, true)).verdict, Verdict::Accepted);
}
