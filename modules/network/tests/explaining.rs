//! `net_explain` on setups that were recorded between network namespaces, each with one fault.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::testkit::FakeTarget;
use module_network::module;
use serde_json::{Value, json};

macro_rules! recorded {
    ($name:literal) => {
        setup(include_str!(concat!("data/explain/", $name, ".txt")))
    };
}

/// A machine of a recording, with the files that it had.
fn setup(recording: &str) -> FakeTarget {
    ["nft", "iptables-save", "curl", "dig"]
        .into_iter()
        .fold(FakeTarget::new(), FakeTarget::without_program)
        .transcript(recording)
        .file("/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 web1.corp.example web1\n")
        .file("/etc/nsswitch.conf", "hosts: files dns\n")
        .file("/etc/resolv.conf", "search corp.example\nnameserver 198.51.100.53\n")
}

fn named(mut target: FakeTarget, hostname: &str) -> FakeTarget {
    target.distro.hostname = hostname.to_owned();
    target
}

/// What it says: the step that fails, the summary, and the data.
fn explain(target: FakeTarget, arguments: Value) -> (String, String, Value) {
    let (data, reply) = target.call(&module(), "net_explain", arguments).unwrap();
    let failing = data["fails_at"].as_str().unwrap_or_default().to_owned();
    (failing, reply.summary.unwrap(), data)
}

fn fails(target: FakeTarget, arguments: Value, step: &str, words: &str) -> Value {
    let (failing, summary, data) = explain(target, arguments);
    assert_eq!(failing, step, "{summary}");
    assert!(summary.contains(words), "{summary}");
    let steps = data["steps"].as_array().unwrap();
    assert!(steps[..steps.len() - 1].iter().all(|step| step["ok"] == true), "{data}");
    data
}

#[test]
fn what_is_reached_has_each_step_with_its_evidence() {
    let (failing, summary, data) = explain(recorded!("reached"), json!({"target": "db", "port": 8080}));
    assert_eq!(failing, "");
    assert_eq!(summary, "Nothing stands in the way: 198.51.100.20 accepts connections on port 8080");
    assert_eq!(
        data,
        json!({"reached": true, "address": "198.51.100.20", "steps": [
            {"step": "name", "ok": true, "found": "db is 198.51.100.20"},
            {"step": "route", "ok": true, "found": "to 198.51.100.20 by the gateway 192.0.2.1 on eth0, from 192.0.2.10"},
            {"step": "port", "ok": true, "found": "198.51.100.20 accepts connections on port 8080"}]})
    );
}

#[test]
fn no_route() {
    let data = fails(
        recorded!("no_route"),
        json!({"target": "198.51.100.20", "port": 8080}),
        "route",
        "no route leads there",
    );
    assert!(data["steps"][1]["next"].as_str().unwrap().starts_with("net_routes_show"));
}

#[test]
fn a_route_or_a_rule_that_forbids() {
    fails(
        recorded!("forbidden_port"),
        json!({"target": "198.51.100.20", "port": 25}),
        "route",
        "of the type prohibit",
    );
}

#[test]
fn an_interface_without_a_carrier() {
    fails(
        recorded!("no_carrier"),
        json!({"target": "198.51.100.20", "port": 8080}),
        "route",
        "eth0 has no carrier",
    );
}

#[test]
fn a_wrong_gateway() {
    let arguments = || json!({"target": "198.51.100.20", "port": 8080});
    let data = fails(
        recorded!("wrong_gateway"),
        arguments(),
        "neighbour",
        "the gateway 192.0.2.254 doesn't answer on eth0",
    );
    assert_eq!(data["steps"][2]["evidence"], json!(["the kernel's entry for 192.0.2.254 on eth0 is FAILED"]));
    fails(
        recorded!("gateway_forwards_nothing"),
        arguments(),
        "neighbour",
        "192.0.2.1 is there, and nothing comes back through it",
    );
}

#[test]
fn an_address_that_nobody_has() {
    let arguments = json!({"target": "192.0.2.99", "port": 8080});
    fails(
        recorded!("wrong_address_on_link"),
        arguments,
        "neighbour",
        "no machine on the network of eth0 has 192.0.2.99",
    );
}

#[test]
fn a_dead_resolver() {
    let target =
        recorded!("dead_resolver").file("/etc/resolv.conf", "search corp.example\nnameserver 203.0.113.53\n");
    let data = fails(
        target,
        json!({"target": "db", "port": 8080}),
        "name",
        "the only name server, 203.0.113.53, doesn't answer",
    );
    assert!(
        data["steps"][0]["evidence"][0]
            .as_str()
            .unwrap()
            .starts_with("203.0.113.53 port 53 over TCP: no answer")
    );
    assert!(
        data["steps"][0]["next"].as_str().unwrap().starts_with("net_explain(target=203.0.113.53, port=53)")
    );
}

#[test]
fn a_wrong_search_domain() {
    let target =
        recorded!("wrong_search").file("/etc/resolv.conf", "search corp.exmaple\nnameserver 198.51.100.53\n");
    let words = "the search list is corp.exmaple: db.corp.example is 198.51.100.20";
    fails(named(target, "web1"), json!({"target": "db", "port": 8080}), "name", words);
}

#[test]
fn a_name_that_no_server_knows() {
    let words = "no server knows nosuch, nor that name in one of the search domains (corp.example)";
    fails(named(recorded!("unknown_name"), "web1"), json!({"target": "nosuch"}), "name", words);
    let none = recorded!("unknown_name").file("/etc/nsswitch.conf", "hosts: files\n");
    fails(none, json!({"target": "nosuch"}), "name", "no server is asked");
    let none = recorded!("unknown_name").file("/etc/resolv.conf", "# empty\n");
    fails(none, json!({"target": "nosuch"}), "name", "names no server");
    let none = FakeTarget::new().answer(&["timeout", "8", "getent", "ahosts", "--", "nosuch"], 2, "", "");
    fails(none, json!({"target": "nosuch"}), "name", "can't be read, or leads nowhere");
}

#[test]
fn what_dig_says_of_each_server_is_evidence() {
    let argv = [
        "dig",
        "+noall",
        "+comments",
        "+answer",
        "+stats",
        "+tries=1",
        "+time=2",
        "-t",
        "A",
        "-q",
        "nosuch.corp.example",
        "@198.51.100.53",
    ];
    let said = ";; ->>HEADER<<- opcode: QUERY, status: SERVFAIL, id: 1\n";
    let target = named(recorded!("unknown_name").answer(&argv, 0, said, ""), "web1");
    let data = fails(target, json!({"target": "nosuch"}), "name", "the name servers answer with an error");
    assert_eq!(data["steps"][0]["evidence"], json!(["198.51.100.53 says SERVFAIL to nosuch.corp.example"]));
}

#[test]
fn a_line_in_etc_hosts_is_told() {
    let target = recorded!("reached").file("/etc/hosts", "127.0.0.1 localhost\n198.51.100.20 db\n");
    let (_, _, data) = explain(target, json!({"target": "db", "port": 8080}));
    assert_eq!(data["steps"][0]["evidence"], json!(["by line 2 of /etc/hosts, so that no server was asked"]));
}

/// The ruleset as nft 1.0.6 prints it, after libnftables-json(5); a connection that it drops isn't answered, as here.
fn dropping() -> String {
    json!({"nftables": [
        {"metainfo": {"version": "1.0.6", "release_name": "Lester Gooch #5", "json_schema_version": 1}},
        {"table": {"family": "inet", "name": "filter", "handle": 1}},
        {"chain": {"family": "inet", "table": "filter", "name": "output", "handle": 1, "type": "filter", "hook": "output", "prio": 0, "policy": "accept"}},
        {"rule": {"family": "inet", "table": "filter", "chain": "output", "handle": 4, "expr": [
            {"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 8080}}, {"drop": null}]}}
    ]})
    .to_string()
}

#[test]
fn a_firewall_here() {
    let target = recorded!("firewall_there").answer(&["nft", "--json", "list", "ruleset"], 0, dropping(), "");
    let words =
        "this machine's own firewall stops it: table inet filter chain output handle 4: tcp dport 8080 drop";
    fails(target, json!({"target": "198.51.100.20", "port": 8080}), "firewall", words);
    let save = "*filter\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT -p tcp -m tcp --dport 8080 -j REJECT --reject-with icmp-port-unreachable\nCOMMIT\n";
    let target = recorded!("firewall_there").answer(&["iptables-save"], 0, save, "");
    fails(target, json!({"target": "198.51.100.20", "port": 8080}), "firewall", "--dport 8080 -j REJECT");
}

#[test]
fn a_firewall_there() {
    let arguments = || json!({"target": "198.51.100.20", "port": 8080});
    let data = fails(
        recorded!("firewall_there"),
        arguments(),
        "firewall",
        "answers echo requests and not port 8080: a firewall there",
    );
    assert_eq!(data["steps"][3]["found"], "no rule of this machine stops it");
    // Only root may read the rules of this machine.
    let argv = ["nft", "--json", "list", "ruleset"];
    let said = "Operation not permitted (you must be root)\nnetlink: Error: cache initialization failed\n";
    let data = fails(
        recorded!("firewall_there").answer(&argv, 1, "", said),
        arguments(),
        "firewall",
        "a firewall there",
    );
    assert_eq!(data["steps"][3]["evidence"], json!(["nft: only root can read the rules"]));
    fails(
        recorded!("rejected_on_the_way"),
        arguments(),
        "firewall",
        "a router or a firewall on the way says",
    );
}

#[test]
fn a_service_that_does_not_listen() {
    let words = "198.51.100.20 is reached and refuses port 81: nothing listens there";
    fails(recorded!("not_listening"), json!({"target": "db", "port": 81}), "port", words);
    let words = "nothing listens on TCP port 81 of this machine";
    fails(recorded!("own_port_closed"), json!({"target": "192.0.2.10", "port": 81}), "port", words);
}

#[test]
fn a_service_on_the_loopback_only() {
    let words =
        "the service listens only on the loopback, and not on 192.0.2.10: 127.0.0.1:5432 (python3, PID ";
    let data =
        fails(recorded!("loopback_only"), json!({"target": "192.0.2.10", "port": 5432}), "port", words);
    assert!(data["steps"][3]["next"].as_str().unwrap().starts_with("let it listen on 192.0.2.10"));
}

#[test]
fn without_a_port_an_echo_request_decides() {
    let get = ["ip", "-json", "route", "get", "198.51.100.20"];
    let way = r#"[{"dst":"198.51.100.20","gateway":"192.0.2.1","dev":"eth0","prefsrc":"192.0.2.10","flags":[],"uid":0,"cache":[]}]"#;
    let target = recorded!("firewall_there").answer(&get, 0, way, "");
    let (failing, summary, _) = explain(target, json!({"target": "198.51.100.20"}));
    assert_eq!(
        (failing.as_str(), summary.as_str()),
        ("", "Nothing stands in the way: 198.51.100.20 answers 3 of 3 echo requests")
    );
    let target = recorded!("gateway_forwards_nothing").answer(&get, 0, way, "");
    fails(target, json!({"target": "198.51.100.20"}), "firewall", "doesn't answer echo requests");
}

/// The recording without the connections, as of a machine that has neither nc nor curl.
fn without_nc(recording: &str) -> FakeTarget {
    let blocks = recording.split("\n$ ").filter(|block| !block.starts_with("nc "));
    setup(&blocks.collect::<Vec<_>>().join("\n$ ")).without_program("nc")
}

#[test]
fn without_a_program_that_connects_the_other_steps_are_explained() {
    let there = without_nc(include_str!("data/explain/firewall_there.txt"));
    let (failing, summary, data) = explain(there, json!({"target": "198.51.100.20", "port": 8080}));
    assert_eq!(failing, "");
    assert!(summary.contains("whether port 8080 accepts connections isn't known"), "{summary}");
    assert!(data.get("reached").is_none(), "{data}");
    assert_eq!(
        data["steps"][4]["evidence"][1],
        "no connection was tried, since there is neither nc nor curl"
    );
    let arguments = json!({"target": "192.0.2.10", "port": 5432});
    fails(
        without_nc(include_str!("data/explain/loopback_only.txt")),
        arguments,
        "port",
        "only on the loopback",
    );
    let gateway = without_nc(include_str!("data/explain/wrong_gateway.txt"));
    fails(gateway, json!({"target": "198.51.100.20", "port": 8080}), "neighbour", "192.0.2.254");
}

#[test]
fn what_is_no_target_is_refused() {
    for (arguments, expected) in [
        (json!({"target": "-x"}), "INVALID_NAME"),
        (json!({"target": "http://db:80/"}), "INVALID_NAME"),
        (json!({"target": "db:80"}), "INVALID_NAME"),
        (json!({"target": ""}), "INVALID_NAME"),
        (json!({"target": "db", "port": 70000}), "INVALID_PORT"),
        (json!({}), "INVALID_ARGUMENTS"),
    ] {
        let problem =
            FakeTarget::new().call(&module(), "net_explain", arguments.clone()).map(|_| ()).unwrap_err();
        assert_eq!(problem.code, expected, "{arguments}");
    }
}
