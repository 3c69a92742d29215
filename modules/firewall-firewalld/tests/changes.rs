//! Rules of zones that are added and removed, and firewalld as a whole, with the zones and rules below `data`, which were
//! recorded. What they are after a change, addresses, routes and sockets are written by hand in their programs' formats.
#![allow(clippy::unwrap_used, missing_docs)]

use linux_sysadmin_sdk::testkit::{FakeTarget, Plans};
use linux_sysadmin_sdk::{Change, Command, DurationCategory, Problem, Risk, Step};
use module_firewall_firewalld::module;
use serde_json::{Value, json};

const ZONES: &str = include_str!("data/zones.txt");
const NFT: &str = include_str!("data/nft.json");
const ZONE_FILE: &str = "/etc/firewalld/zones/public.xml";
const XML: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<zone>\n</zone>\n";
const UNIT: [&str; 6] =
    ["systemctl", "show", "--property=ActiveState", "--property=UnitFileState", "--", "firewalld.service"];

/// An active ufw, whose rules are left out, written by hand in nft's format.
const UFW: &str = r#"{"nftables": [{"table": {"family": "ip", "name": "filter", "handle": 1}},
    {"chain": {"family": "ip", "table": "filter", "name": "INPUT", "handle": 1, "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}},
    {"chain": {"family": "ip", "table": "filter", "name": "ufw-before-input", "handle": 2}},
    {"rule": {"family": "ip", "table": "filter", "chain": "INPUT", "handle": 3, "expr": [{"jump": {"target": "ufw-before-input"}}]}},
    {"rule": {"family": "ip", "table": "filter", "chain": "ufw-before-input", "handle": 4, "expr": [
        {"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": "lo"}}, {"accept": null}]}}]}"#;

/// The only zone in use, with these ports open. It is written by hand in the format of firewall-cmd 1.3.3.
fn zone_with(ports: &str) -> String {
    format!(
        "public (active)\n  target: default\n  icmp-block-inversion: no\n  interfaces: eth0\n  sources: \n  services: \n\
         \x20 ports: {ports}\n  protocols: \n  forward: yes\n  masquerade: no\n  forward-ports: \n  source-ports: \n\
         \x20 icmp-blocks: \n  rich rules: \n"
    )
}

fn kernel(nft: &str, unit: &str) -> FakeTarget {
    let addresses = r#"[{"ifname":"lo","addr_info":[{"local":"127.0.0.1"}]},{"ifname":"eth0","addr_info":[{"local":"192.168.2.1"}]}]"#;
    let session = "0      0      192.168.2.1:5432    192.168.2.7:49945 users:((\"sshd\",pid=872,fd=4))\n";
    let route = r#"[{"dst":"default","gateway":"192.168.2.254","dev":"eth0","flags":[]}]"#;
    let mut target = FakeTarget::new()
        .answer(&["nft", "-j", "list", "ruleset"], 0, nft, "")
        .answer(&["iptables-save"], 0, "", "")
        .answer(&["ip6tables-save"], 0, "", "")
        .answer(&["ip", "-j", "address", "show"], 0, addresses, "")
        .answer(&["ip", "-j", "route", "show", "default"], 0, route, "")
        .answer(&["ip", "-j", "route", "get", "192.168.2.0"], 0, route, "")
        .answer(&["ip", "-j", "route", "get", "192.0.2.7"], 0, route, "")
        .answer(&["ip", "-j", "route", "get", "192.168.9.7"], 0, route, "")
        .answer(&["ss", "-Htnp", "state", "established"], 0, session, "")
        .answer(
            &["ss", "-Hltunp"],
            0,
            "tcp LISTEN 0 128 0.0.0.0:5432 0.0.0.0:* users:((\"sshd\",pid=1,fd=3))\n",
            "",
        )
        .answer(&UNIT, 0, unit, "")
        .file("/usr/lib/firewalld/services/ssh.xml", include_str!("data/ssh.xml"))
        .file("/usr/lib/firewalld/services/http.xml", include_str!("data/http.xml"))
        .file("/usr/lib/firewalld/services/dhcpv6-client.xml", include_str!("data/dhcpv6-client.xml"))
        .file("/usr/lib/firewalld/zones/public.xml", XML);
    target.distro.extra.push(("ssh_client".to_owned(), "192.168.2.7".to_owned()));
    target
}

fn running(zones: &str) -> FakeTarget {
    kernel(NFT, "ActiveState=active\nUnitFileState=enabled\n")
        .answer(&["firewall-cmd", "--get-default-zone"], 0, "public\n", "")
        .answer(&["firewall-cmd", "--list-all-zones"], 0, zones, "")
        .answer(&["firewall-cmd", "--permanent", "--list-all-zones"], 0, zones, "")
        .answer(&["firewall-cmd", "--list-all-policies"], 0, "", "")
}

fn stopped(zones: &str) -> FakeTarget {
    stopped_beside(r#"{"nftables": []}"#, zones)
}

fn stopped_beside(nft: &str, zones: &str) -> FakeTarget {
    let refused =
        |target: FakeTarget, argv: &[&str]| target.answer(argv, 252, "", "FirewallD is not running\n");
    let target = kernel(nft, "ActiveState=inactive\nUnitFileState=disabled\n");
    let target = refused(target, &["firewall-cmd", "--get-default-zone"]);
    let target = refused(target, &["firewall-cmd", "--list-all-zones"]);
    let target = refused(target, &["firewall-cmd", "--permanent", "--list-all-zones"]);
    refused(target, &["firewall-cmd", "--list-all-policies"])
        .answer(&["firewall-offline-cmd", "--get-default-zone"], 0, "public\n", "")
        .answer(&["firewall-offline-cmd", "--list-all-zones"], 0, zones, "")
}

/// The target after a plan, with other zones.
fn then(target: FakeTarget, zones: &str) -> FakeTarget {
    target.answer_after(&["firewall-cmd", "--list-all-zones"], 0, zones, "").answer_after(
        &["firewall-cmd", "--permanent", "--list-all-zones"],
        0,
        zones,
        "",
    )
}

/// The target after a plan that starts firewalld.
fn then_started(target: FakeTarget, zones: &str) -> FakeTarget {
    let target = target
        .answer_after(&["firewall-cmd", "--get-default-zone"], 0, "public\n", "")
        .answer_after(&["firewall-cmd", "--list-all-policies"], 0, "", "")
        .answer_after(&UNIT, 0, "ActiveState=active\nUnitFileState=enabled\n", "");
    then(target, zones)
}

/// The zone `public` with these rich rules more.
fn with_rich(rules: &[&str]) -> String {
    let (before, rest) = ZONES.split_once("public (active)").unwrap();
    let lines: String = rules.iter().map(|rule| format!("\t{rule}\n")).collect();
    format!(
        "{before}public (active){}",
        rest.replacen("  rich rules: \n", &format!("  rich rules: \n{lines}"), 1)
    )
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

fn only(plans: &Plans) -> Change {
    let plans = plans.borrow();
    assert_eq!(plans.len(), 1);
    plans[0].clone()
}

fn firewall(program: &str, words: &[&str]) -> Command {
    Command::new(program).args(words.iter().copied()).as_root().duration(DurationCategory::Quick)
}

fn steps(verbs: [&str; 2], element: &str) -> [Step; 2] {
    let option = |verb: &str| format!("--{verb}-{element}");
    let [does, undoes] = verbs.map(option);
    [&["--zone=public"][..], &["--permanent", "--zone=public"]].map(|head| {
        let command = |option: &str| firewall("firewall-cmd", &[head, &[option]].concat());
        Step::run(command(&does)).undo(command(&undoes)).uninterruptible()
    })
}

#[test]
fn a_rule_of_any_protocol_takes_a_rich_rule_for_each_and_is_listed_as_one() {
    let rich = [
        "rule port port=\"7000-7010\" protocol=\"tcp\" accept",
        "rule port port=\"7000-7010\" protocol=\"udp\" accept",
    ];
    let after = with_rich(&rich);
    let target = then(running(ZONES), &after);
    let plans = target.plans();
    let arguments = json!({"action": "allow", "direction": "in", "port": "7000:7010", "comment": "lost"});
    let (data, notes) = call(target, "fw_add_rule", arguments).unwrap();
    assert_eq!(data["in"], "public");
    assert_eq!(notes[0], "firewalld keeps no comments: this one is left out");
    assert_eq!(notes[1], "the rule is one of zone public; also in use: drop, trusted");
    let [tcp, udp] = rich.map(|rule| steps(["add", "remove"], &format!("rich-rule={rule}")));
    assert_eq!(only(&plans).steps(), [&tcp[0], &udp[0], &tcp[1], &udp[1]].map(Clone::clone));
    let (data, _) = call(running(&after), "fw_list_rules", json!({})).unwrap();
    let listed =
        json!({"action": "allow", "direction": "in", "port": "7000:7010", "protocol": "any", "in": "public"});
    assert!(data.as_array().unwrap().contains(&listed), "{data:#}");
    let again = json!({"action": "allow", "direction": "in", "port": "7000:7010"});
    let (_, notes) = call(running(&after), "fw_add_rule", again.clone()).unwrap();
    assert_eq!(notes.last().unwrap(), "the rule is there already: nothing was changed");
    let target = then(running(&after), ZONES);
    let plans = target.plans();
    call(target, "fw_remove_rule", again).unwrap();
    // The recorded kernel hasn't got the rule. What its removal cuts off isn't known, so that the zone's file is kept first.
    let [tcp, udp] = rich.map(|rule| steps(["remove", "add"], &format!("rich-rule={rule}")));
    let removal = [&tcp[0], &udp[0], &tcp[1], &udp[1]].map(Clone::clone);
    let expected: Vec<Step> = std::iter::once(Step::write(ZONE_FILE, XML)).chain(removal).collect();
    assert_eq!(only(&plans).steps(), expected);
}

#[test]
fn addresses_name_their_family_and_protocols_may_have_no_port() {
    for (arguments, rich) in [
        (
            json!({"action": "deny", "direction": "in", "port": "any", "source": "192.0.2.7"}),
            "rule family=\"ipv4\" source address=\"192.0.2.7\" drop",
        ),
        (
            json!({"action": "reject", "direction": "in", "port": "53", "protocol": "udp", "source": "2001:db8::/32",
                "destination": "2001:db8::1"}),
            "rule family=\"ipv6\" source address=\"2001:db8::/32\" destination address=\"2001:db8::1\" port port=\"53\" \
             protocol=\"udp\" reject",
        ),
        (
            json!({"action": "deny", "direction": "in", "port": "any", "protocol": "udp"}),
            "rule protocol value=\"udp\" drop",
        ),
    ] {
        let after = with_rich(&[rich]);
        let target = then(running(ZONES), &after);
        let plans = target.plans();
        call(target, "fw_add_rule", arguments.clone())
            .unwrap_or_else(|problem| panic!("{arguments}: {problem:?}"));
        let expected = steps(["add", "remove"], &format!("rich-rule={rich}"));
        let found = only(&plans).steps();
        assert_eq!(found[found.len() - 2..], expected, "{arguments}");
    }
}

#[test]
fn a_port_and_a_service_are_removed_as_what_they_are() {
    let zones = ZONES.to_owned();
    let gone = zones.replace("  ports: 8080/tcp", "  ports: ");
    assert_ne!(gone, zones);
    let target = then(running(&zones), &gone);
    let plans = target.plans();
    let arguments = json!({"action": "allow", "direction": "in", "port": 8080, "protocol": "tcp"});
    call(target, "fw_remove_rule", arguments).unwrap();
    let found = only(&plans).steps();
    assert_eq!(found[found.len() - 2..], steps(["remove", "add"], "port=8080/tcp"));
}

#[test]
fn a_change_that_cuts_off_this_session_is_critical_and_undoes_itself() {
    let rich =
        "rule family=\"ipv4\" source address=\"192.168.2.0/24\" port port=\"5432\" protocol=\"tcp\" accept";
    let gone = ZONES.replace(&format!("\t{rich}\n"), "");
    assert_ne!(gone, ZONES);
    let target = then(running(ZONES), &gone);
    let plans = target.plans();
    let arguments = json!({"action": "allow", "direction": "in", "port": 5432, "protocol": "tcp", "source": "192.168.2.0/24"});
    call(target, "fw_remove_rule", arguments).unwrap();
    let head = Change::new("Remove `allow in 5432/tcp from 192.168.2.0/24` from zone public")
        .warning("this cuts off this server's own session from 192.168.2.7 at port 5432")
        .risk(Risk::Critical)
        .guard(60)
        .step(Step::write(ZONE_FILE, XML));
    let expected =
        steps(["remove", "add"], &format!("rich-rule={rich}")).into_iter().fold(head, Change::step);
    assert_eq!(only(&plans), expected);
}

#[test]
fn what_firewalld_cannot_do_is_refused() {
    for (arguments, code) in [
        (json!({"action": "allow", "direction": "out", "port": 80}), "DIRECTION_NOT_SUPPORTED"),
        (json!({"action": "allow", "direction": "in", "port": "any"}), "RULE_TOO_WIDE"),
    ] {
        assert_eq!(call(running(ZONES), "fw_add_rule", arguments).unwrap_err().code, code);
    }
}

#[test]
fn where_firewalld_does_not_run_the_files_are_changed() {
    let rich = "rule port port=\"81\" protocol=\"tcp\" accept";
    let after = with_rich(&[rich]);
    let target = stopped(ZONES).answer_after(&["firewall-offline-cmd", "--list-all-zones"], 0, after, "");
    let plans = target.plans();
    let arguments = json!({"action": "allow", "direction": "in", "port": 81, "protocol": "tcp"});
    let (_, notes) = call(target, "fw_add_rule", arguments).unwrap();
    assert_eq!(notes.last().unwrap(), "firewalld is inactive: its rules hold from fw_enable on");
    let command = |verb: &str| {
        firewall("firewall-offline-cmd", &["--zone=public", &format!("--{verb}-rich-rule={rich}")])
    };
    assert_eq!(only(&plans).steps(), [Step::run(command("add")).undo(command("remove")).uninterruptible()]);
}

#[test]
fn firewalld_is_started_with_a_guard_and_with_what_it_cuts_off() {
    let target = then_started(stopped(ZONES), ZONES);
    let plans = target.plans();
    let (data, _) = call(target, "fw_enable", json!({})).unwrap();
    assert_eq!(json!([data["active"], data["at_boot"]]), json!([true, true]));
    let systemctl = |verb: &str| Command::new("systemctl").args([verb, "--", "firewalld.service"]).as_root();
    let slow = |verb: &str| systemctl(verb).duration(DurationCategory::Slow);
    // The zone `drop` is in use as well, and which zone the session comes to isn't known yet.
    let expected = Change::new("Start firewalld, now and at each start")
        .warning("this cuts off this server's own session from 192.168.2.7 at port 5432, logins at port 5432 (sshd)")
        .risk(Risk::Critical)
        .guard(60)
        .step(Step::run(systemctl("enable")).undo(systemctl("disable")))
        .step(Step::run(slow("start")).undo(systemctl("stop")).uninterruptible());
    assert_eq!(only(&plans), expected);
}

#[test]
fn firewalld_is_stopped_for_each_start_as_well() {
    let target = running(ZONES);
    let plans = target.plans();
    // It still runs afterwards, which is no success.
    assert_eq!(call(target, "fw_disable", json!({})).unwrap_err().code, "NOT_SWITCHED");
    assert_eq!(only(&plans).steps().len(), 2);
    let (_, notes) = call(stopped(ZONES), "fw_disable", json!({})).unwrap();
    assert_eq!(notes, ["firewalld is inactive already, also at the next start: nothing was changed"]);
}

#[test]
fn a_zone_cuts_off_who_is_logged_in_unless_it_lets_ssh_in() {
    let said =
        "this cuts off this server's own session from 192.168.2.7 at port 5432, logins at port 5432 (sshd)";
    for (ports, is_cut) in [("", true), ("5432/udp", true), ("5432/tcp", false)] {
        let zone = zone_with(ports);
        let target = then_started(stopped(&zone), &zone);
        let plans = target.plans();
        call(target, "fw_enable", json!({})).unwrap();
        let plan = format!("{:?}", only(&plans));
        assert_eq!((plan.contains(said), plan.contains("Critical")), (is_cut, is_cut), "{ports}: {plan}");
        assert!(plan.contains("guard: Some"), "{plan}");
    }
}

#[test]
fn an_allow_behind_a_rule_that_decides_is_refused_with_that_rule() {
    let target = running(ZONES);
    let plans = target.plans();
    let arguments = json!({"action": "allow", "direction": "in", "port": 5432, "protocol": "tcp", "source": "192.168.9.7"});
    let problem = call(target, "fw_add_rule", arguments).unwrap_err();
    assert_eq!(problem.code, "RULE_WITHOUT_EFFECT");
    assert!(problem.message.contains("in inet firewalld filter_IN_public_deny"), "{}", problem.message);
    assert!(plans.borrow().is_empty());
}

#[test]
fn a_rule_for_a_stopped_firewalld_is_refused_beside_an_active_ufw() {
    let rule = json!({"action": "allow", "direction": "in", "port": 81, "protocol": "tcp"});
    let problem = call(stopped_beside(UFW, ZONES), "fw_add_rule", rule).unwrap_err();
    assert_eq!(problem.code, "OTHER_FIREWALL_ACTIVE");
    assert!(problem.remediation[0].contains("distro.firewall_backend: ufw"), "{problem:?}");
}

#[test]
fn a_rule_that_a_zone_has_in_two_forms_goes_as_a_whole() {
    let rich = "rule port port=\"81\" protocol=\"tcp\" accept";
    let zones = zone_with("81/tcp").replace("  rich rules: \n", &format!("  rich rules: \n\t{rich}\n"));
    let target = then(running(&zones), &zone_with(""));
    let plans = target.plans();
    let arguments = json!({"action": "allow", "direction": "in", "port": 81, "protocol": "tcp"});
    call(target, "fw_remove_rule", arguments).unwrap();
    let [rich, port] =
        [format!("rich-rule={rich}"), "port=81/tcp".to_owned()].map(|one| steps(["remove", "add"], &one));
    let removal = [&rich[0], &port[0], &rich[1], &port[1]].map(Clone::clone);
    let expected: Vec<Step> = std::iter::once(Step::write(ZONE_FILE, XML)).chain(removal).collect();
    assert_eq!(only(&plans).steps(), expected);
}
