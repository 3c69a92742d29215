//! The tools on a machine with firewalld 1.3.3 and nft 1.0.6, whose zones and rules were recorded.
#![allow(clippy::unwrap_used, missing_docs)]

use linux_sysadmin_sdk::Problem;
use linux_sysadmin_sdk::testkit::FakeTarget;
use module_firewall_firewalld::module;
use serde_json::{Value, json};

const ZONES: &str = include_str!("data/zones.txt");
const PERMANENT: &str = include_str!("data/permanent.txt");
const UNIT: [&str; 6] =
    ["systemctl", "show", "--property=ActiveState", "--property=UnitFileState", "--", "firewalld.service"];

fn kernel() -> FakeTarget {
    let addresses = r#"[{"ifname":"lo","addr_info":[{"local":"127.0.0.1"}]},{"ifname":"eth0","addr_info":[{"local":"192.168.2.1"}]},
        {"ifname":"peer0","addr_info":[]}]"#;
    FakeTarget::new()
        .answer(&["nft", "-j", "list", "ruleset"], 0, include_str!("data/nft.json"), "")
        .answer(&["iptables-save"], 0, "", "")
        .answer(&["ip6tables-save"], 0, "", "")
        .answer(&["ip", "-j", "address", "show"], 0, addresses, "")
        .answer(&UNIT, 0, "ActiveState=active\nUnitFileState=enabled\n", "")
        .file("/usr/lib/firewalld/services/ssh.xml", include_str!("data/ssh.xml"))
        .file("/usr/lib/firewalld/services/http.xml", include_str!("data/http.xml"))
        .file("/usr/lib/firewalld/services/dhcpv6-client.xml", include_str!("data/dhcpv6-client.xml"))
}

fn with_zones(runtime: &str, permanent: &str) -> FakeTarget {
    kernel()
        .answer(&["firewall-cmd", "--get-default-zone"], 0, "public\n", "")
        .answer(&["firewall-cmd", "--list-all-zones"], 0, runtime, "")
        .answer(&["firewall-cmd", "--permanent", "--list-all-zones"], 0, permanent, "")
        .answer(&["firewall-cmd", "--list-all-policies"], 0, include_str!("data/policies.txt"), "")
}

/// What firewalld tells on the message bus: the words of each question, and the answer.
fn bus() -> Vec<(Vec<&'static str>, &'static str)> {
    let ask = "busctl --json=short --auto-start=no call org.fedoraproject.FirewallD1";
    let lines: Vec<&str> = include_str!("data/bus.txt").lines().collect();
    lines.chunks(2).map(|pair| (ask.split(' ').chain(pair[0].split(' ')).collect(), pair[1])).collect()
}

fn with_bus(target: FakeTarget) -> FakeTarget {
    bus().iter().fold(target, |target, (question, answer)| target.answer(question, 0, answer, ""))
}

fn stopped(exit_code: i32) -> FakeTarget {
    let refused =
        |target: FakeTarget, argv: &[&str]| target.answer(argv, exit_code, "", "FirewallD is not running\n");
    let target = refused(kernel(), &["firewall-cmd", "--get-default-zone"]);
    let target = refused(target, &["firewall-cmd", "--list-all-zones"]);
    let target = refused(target, &["firewall-cmd", "--permanent", "--list-all-zones"]);
    refused(target, &["firewall-cmd", "--list-all-policies"])
        .answer(&["firewall-offline-cmd", "--get-default-zone"], 0, "public\n", "")
        .answer(&["firewall-offline-cmd", "--list-all-zones"], 0, PERMANENT, "")
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

#[test]
fn the_status_tells_the_zones_in_use() {
    let (data, _) = call(with_zones(ZONES, PERMANENT), "fw_status", json!({})).unwrap();
    assert_eq!(json!([data["active"], data["at_boot"], data["incoming"]]), json!([true, true, "reject"]));
    assert_eq!(
        data["zones"],
        json!([
            {"name": "drop", "target": "DROP", "interfaces": ["peer0"]},
            {"name": "public", "default": true, "target": "default", "interfaces": ["eth0"]},
            {"name": "trusted", "target": "ACCEPT", "sources": ["10.9.0.0/16"]},
        ])
    );
}

#[test]
fn the_status_asks_for_the_zones_once() {
    let trips_of = |tool: &str| {
        let target = with_zones(ZONES, PERMANENT);
        let trips = target.trips();
        call(target, tool, json!({})).unwrap();
        trips.get()
    };
    // The unit is one more question than the rules take.
    assert_eq!(trips_of("fw_status"), trips_of("fw_list_rules") + 1);
}

#[test]
fn rules_tell_whether_they_run_or_are_kept() {
    let (data, notes) = call(with_zones(ZONES, PERMANENT), "fw_list_rules", json!({})).unwrap();
    let rules = data.as_array().unwrap();
    let tcp = |port: &str, only: Option<&str>| {
        let mut rule =
            json!({"action": "allow", "direction": "in", "port": port, "protocol": "tcp", "in": "public"});
        if let Some(only) = only {
            rule["only"] = json!(only);
        }
        rule
    };
    for expected in [
        tcp("8080", None),
        tcp("9999", Some("runtime")),
        tcp("9998", Some("runtime")),
        json!({"action": "allow", "direction": "in", "port": "22", "protocol": "tcp", "comment": "service ssh", "in": "public",
            "only": "permanent"}),
        json!({"raw": "service dhcpv6-client", "in": "public"}),
        json!({"raw": "protocol gre", "in": "public"}),
        json!({"raw": "source-port 53/udp", "in": "public"}),
        json!({"raw": "icmp-block echo-request", "in": "public"}),
        json!({"raw": "forward-port port=81:proto=tcp:toport=82:toaddr=10.0.0.1", "in": "public"}),
        json!({"action": "allow", "direction": "in", "port": "5432", "protocol": "tcp", "source": "192.168.2.0/24", "in": "public"}),
        json!({"action": "reject", "direction": "in", "port": "5432", "protocol": "tcp", "source": "192.168.9.0/24", "in": "public"}),
        json!({"raw": "rule priority=\"-5\" family=\"ipv4\" source NOT address=\"10.0.0.0/8\" destination address=\"10.1.1.1\" port port=\"1000-2000\" protocol=\"udp\" drop", "in": "public"}),
    ] {
        assert!(rules.contains(&expected), "{expected}\n{data}");
    }
    assert!(notes[0].starts_with("what runs and what is permanent differ in public"), "{notes:?}");
    let (_, notes) = call(with_zones(PERMANENT, PERMANENT), "fw_list_rules", json!({})).unwrap();
    assert!(notes.iter().all(|note| !note.contains("differ")), "{notes:?}");
}

#[test]
fn the_message_bus_and_firewall_cmd_tell_the_same() {
    let route = r#"[{"dst":"192.168.2.9","dev":"eth0","prefsrc":"192.168.2.1"}]"#;
    for (tool, arguments) in [
        ("fw_status", json!({})),
        ("fw_list_rules", json!({})),
        ("fw_explain", json!({"port": 5432, "from": "192.168.2.9"})),
    ] {
        let with =
            |target: FakeTarget| target.answer(&["ip", "-j", "route", "get", "192.168.2.9"], 0, route, "");
        // No firewall-cmd can answer here.
        let (by_bus, _) = call(with(with_bus(kernel())), tool, arguments.clone()).unwrap();
        let (by_program, _) = call(with(with_zones(ZONES, PERMANENT)), tool, arguments).unwrap();
        assert_eq!(by_bus, by_program, "{tool}");
    }
}

#[test]
fn where_the_message_bus_tells_less_firewall_cmd_tells_all() {
    let (expected, _) = call(with_zones(ZONES, PERMANENT), "fw_list_rules", json!({})).unwrap();
    let questions = bus();
    assert_eq!(questions.len(), 14);
    // The last one is what busctl says in versions before 240.
    for (exit_code, said, error) in [
        (1, "", "Call failed: Connection timed out\n"),
        (1, "", "Call failed: Interactive authentication required.\n"),
        (0, "", ""),
        (0, r#"{"type":"as","data":"#, ""),
        (0, r#"{"type":"i","data":[7]}"#, ""),
        (1, "", "busctl: unrecognized option '--json=short'\n"),
    ] {
        for (question, _) in &questions {
            // Of two recordings of a question, the first one counts.
            let target = with_bus(with_zones(ZONES, PERMANENT).answer(question, exit_code, said, error));
            let (data, _) = call(target, "fw_list_rules", json!({})).unwrap();
            assert_eq!(data, expected, "{question:?} {said} {error}");
        }
    }
}

#[test]
fn a_zone_that_was_taken_away_since_the_start_runs_only() {
    let is_public = |question: &[&str]| question.ends_with(&["getZoneByName", "s", "public"]);
    let (question, _) = bus().into_iter().find(|(question, _)| is_public(question)).unwrap();
    let gone = kernel().answer(&question, 1, "", "Call failed: INVALID_ZONE: public\n");
    let (data, _) = call(with_bus(gone), "fw_list_rules", json!({})).unwrap();
    let of_public = data.as_array().unwrap().iter().filter(|rule| rule["in"] == "public");
    assert!(of_public.clone().count() > 10);
    assert!(of_public.clone().all(|rule| rule["only"] == "runtime"), "{data}");
}

#[test]
fn rich_rules_are_unified_where_the_common_words_say_all() {
    let zone = |rule: &str| {
        format!("public (default, active)\n  target: default\n  services: \n  rich rules: \n\t{rule}\n")
    };
    for (rule, expected) in [
        (
            "rule family=\"ipv4\" port port=\"1000-2000\" protocol=\"udp\" drop",
            json!([{"action": "deny", "direction": "in", "port": "1000:2000", "protocol": "udp", "family": "ipv4", "in": "public"}]),
        ),
        (
            "rule family=\"ipv6\" source address=\"2001:db8::/32\" service name=\"http\" accept",
            json!([{"action": "allow", "direction": "in", "port": "80", "protocol": "tcp", "source": "2001:db8::/32",
                "comment": "service http", "in": "public"}]),
        ),
        (
            "rule service name=\"nosuch\" accept",
            json!([{"raw": "rule service name=\"nosuch\" accept", "in": "public"}]),
        ),
        (
            "rule family=\"ipv4\" source address=\"192.0.2.7\" drop",
            json!([{"action": "deny", "direction": "in", "protocol": "any", "source": "192.0.2.7", "in": "public"}]),
        ),
        (
            "rule port port=\"22\" protocol=\"tcp\" accept limit value=\"3/m\"",
            json!([{"raw": "rule port port=\"22\" protocol=\"tcp\" accept limit value=\"3/m\"", "in": "public"}]),
        ),
        (
            "rule port port=\"22\" protocol=\"tcp\" log prefix=\"a \" accept",
            json!([{"raw": "rule port port=\"22\" protocol=\"tcp\" log prefix=\"a \" accept", "in": "public"}]),
        ),
    ] {
        let text = zone(rule);
        let (data, _) = call(with_zones(&text, &text), "fw_list_rules", json!({})).unwrap();
        assert_eq!(data, expected, "{rule}");
    }
}

#[test]
fn an_own_service_replaces_the_distributions() {
    let text = "public (active)\n  target: default\n  services: http\n";
    let own = "<service>\n<!-- <port protocol=\"tcp\" port=\"1\"/> -->\n<port port='8000-8010' protocol='tcp'/><port protocol=\"udp\" port=\"9\"/></service>";
    let target = with_zones(text, text).file("/etc/firewalld/services/http.xml", own);
    let (data, _) = call(target, "fw_list_rules", json!({})).unwrap();
    let ports: Vec<_> = data
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| format!("{}/{}", rule["port"], rule["protocol"]))
        .collect();
    assert_eq!(ports, ["\"8000:8010\"/\"tcp\"", "\"9\"/\"udp\""]);
}

#[test]
fn where_firewalld_does_not_run_the_zones_of_its_next_start_are_told() {
    // The second code is that of a machine whose message bus doesn't run.
    for exit_code in [252, 36] {
        let (data, notes) = call(stopped(exit_code), "fw_status", json!({})).unwrap();
        assert_eq!(
            (data["active"].as_bool(), data["zones"][1]["name"].as_str()),
            (Some(false), Some("public"))
        );
        assert_eq!(notes, ["firewalld doesn't run: the zones are those of its next start"]);
    }
}

#[test]
fn without_rights_that_is_said() {
    let refused = |target: FakeTarget, argv: &[&str]| target.answer(argv, 253, "Authorization failed.\n", "");
    let target = refused(kernel(), &["firewall-cmd", "--get-default-zone"]);
    let target = refused(target, &["firewall-cmd", "--list-all-zones"]);
    let target = refused(target, &["firewall-cmd", "--permanent", "--list-all-zones"]);
    let target = refused(target, &["firewall-cmd", "--list-all-policies"]);
    assert_eq!(call(target, "fw_list_rules", json!({})).unwrap_err().code, "PRIVILEGE_REQUIRED");
}

#[test]
fn a_packet_is_explained_by_the_zone_that_it_comes_to() {
    for (from, interface, port, verdict, chain) in [
        ("192.168.2.9", "eth0", 5432, "accepted", "filter_IN_public_allow"),
        ("192.168.9.9", "eth0", 5432, "rejected", "filter_IN_public_deny"),
        ("192.0.2.9", "eth0", 22, "rejected", "filter_IN_public"),
        ("192.0.2.9", "eth0", 9999, "accepted", "filter_IN_public_allow"),
        ("192.0.2.9", "peer0", 9999, "dropped", "filter_IN_drop"),
        ("10.9.1.1", "eth0", 22, "accepted", "filter_IN_trusted"),
    ] {
        let route = format!("[{{\"dst\":\"{from}\",\"dev\":\"{interface}\",\"prefsrc\":\"192.168.2.1\"}}]");
        let target = kernel().answer(&["ip", "-j", "route", "get", from], 0, route, "");
        let (data, _) = call(target, "fw_explain", json!({"port": port, "from": from})).unwrap();
        assert_eq!(
            (data["verdict"].as_str(), data["by"]["chain"].as_str()),
            (Some(verdict), Some(chain)),
            "{from} {data}"
        );
    }
}
