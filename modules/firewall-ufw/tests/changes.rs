//! Rules that are added and removed, and ufw as a whole, with the files and rules below `data`, which were recorded. Addresses,
//! sockets, and what the files say after a change are written by hand in the formats of ip, ss and ufw 0.36.2.
#![allow(clippy::unwrap_used, missing_docs)]

use linux_sysadmin_sdk::testkit::{FakeTarget, Plans};
use linux_sysadmin_sdk::{Change, Command, DurationCategory, Problem, Risk, Step};
use module_firewall_ufw::module;
use serde_json::{Value, json};

const NFT: &str = include_str!("data/nft.json");
const SAVED: &str = include_str!("data/iptables-save.txt");
const SAVED_IPV6: &str = include_str!("data/ip6tables-save.txt");
const RULES: &str = include_str!("data/user.rules");
const RULES_IPV6: &str = include_str!("data/user6.rules");
const CONF: &str = include_str!("data/ufw.conf");
const DEFAULTS: &str = include_str!("data/default-ufw");
const NONE: &str = r#"{"nftables": []}"#;
const ADDRESSES: &str = r#"[{"ifname":"lo","addr_info":[{"family":"inet","local":"127.0.0.1"},{"family":"inet6","local":"::1"}]},
{"ifname":"eth0","addr_info":[{"family":"inet","local":"192.168.0.1"},{"family":"inet6","local":"2001:db8::1"}]}]"#;
/// sshd listens at a port that one of the rules opens.
const LISTENING: &str = "tcp LISTEN 0      128    *:8005 *:* users:((\"sshd\",pid=872,fd=3))\n";
const SESSION: &str = "0      0      [::ffff:192.168.0.1]:8005    [::ffff:192.168.7.7]:49945 users:((\"sshd\",pid=872,fd=4))\n\
    0      0               192.168.0.1:49945          192.168.0.9:22    users:((\"ssh\",pid=873,fd=3))\n";

fn target(nft: &str, conf: &str) -> FakeTarget {
    let ruled = |text: &'static str| if nft.contains("ufw-user-input") { text } else { "" };
    let mut target = FakeTarget::new()
        .answer(&["nft", "-j", "list", "ruleset"], 0, nft, "")
        .answer(&["iptables-save"], 0, ruled(SAVED), "")
        .answer(&["ip6tables-save"], 0, ruled(SAVED_IPV6), "")
        .answer(&["ip", "-j", "address", "show"], 0, ADDRESSES, "")
        .answer(&["ss", "-Htnp", "state", "established"], 0, SESSION, "")
        .answer(&["ss", "-Hltunp"], 0, LISTENING, "")
        .file("/etc/ufw/ufw.conf", conf)
        .file("/etc/default/ufw", DEFAULTS)
        .file("/etc/ufw/user.rules", RULES)
        .file("/etc/ufw/user6.rules", RULES_IPV6);
    target.distro.extra.push(("ssh_client".to_owned(), "192.168.7.7".to_owned()));
    target
}

fn active() -> FakeTarget {
    target(NFT, CONF)
}

fn inactive() -> FakeTarget {
    target(NONE, "ENABLED=no\n")
}

/// ufw's file with another rule.
fn with_rule(text: &str, tuple: &str, line: &str) -> String {
    text.replacen("### END RULES ###", &format!("### tuple ### {tuple}\n{line}\n\n### END RULES ###"), 1)
}

/// The target after a rule for TCP port 9999 has come.
fn then_added(target: FakeTarget) -> FakeTarget {
    let tuple = |address: &str| format!("allow tcp 9999 {address} any {address} in comment=78");
    target
        .recording("")
        .file(
            "/etc/ufw/user.rules",
            with_rule(RULES, &tuple("0.0.0.0/0"), "-A ufw-user-input -p tcp --dport 9999 -j ACCEPT"),
        )
        .file(
            "/etc/ufw/user6.rules",
            with_rule(RULES_IPV6, &tuple("::/0"), "-A ufw6-user-input -p tcp --dport 9999 -j ACCEPT"),
        )
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

fn ufw(words: &str) -> Command {
    let words = words.split(' ').map(|word| word.replace('_', " "));
    Command::new("ufw").args(words).as_root()
}

fn quick(words: &str) -> Command {
    ufw(words).duration(DurationCategory::Quick)
}

/// The target where plans are shown only.
fn dry(target: FakeTarget) -> FakeTarget {
    let outputs = Vec::new();
    target.outcome(Ok(linux_sysadmin_sdk::bindings::sysadmin::module::confirm::Applied {
        outputs,
        dry_run: true,
    }))
}

/// The recorded rules with these objects more.
fn with_objects(objects: &str) -> String {
    format!("{},{objects}]}}", NFT.trim_end().strip_suffix("]}").unwrap())
}

/// A firewalld that drops one port, in nft's format.
const FIREWALLD: &str = r#"{"table": {"family": "inet", "name": "firewalld", "handle": 90}},
    {"chain": {"family": "inet", "table": "firewalld", "name": "filter_INPUT", "handle": 1, "type": "filter", "hook": "input", "prio": 10, "policy": "accept"}},
    {"rule": {"family": "inet", "table": "firewalld", "chain": "filter_INPUT", "handle": 2, "expr": [
        {"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 9999}}, {"drop": null}]}}"#;

/// A port that a container of podman publishes, in nft's format.
const PODMAN: &str = r#"{"table": {"family": "inet", "name": "netavark", "handle": 91}},
    {"chain": {"family": "inet", "table": "netavark", "name": "NETAVARK-HOSTPORT-DNAT", "handle": 1}},
    {"rule": {"family": "inet", "table": "netavark", "chain": "NETAVARK-HOSTPORT-DNAT", "handle": 2, "expr": [
        {"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 8080}}, {"dnat": {"addr": "10.88.0.2", "port": 80}}]}}"#;

fn only(plans: &Plans) -> Change {
    let plans = plans.borrow();
    assert_eq!(plans.len(), 1);
    plans[0].clone()
}

fn rule(action: &str, port: Value, more: Value) -> Value {
    let mut rule = json!({"action": action, "direction": "in", "port": port});
    rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    rule
}

#[test]
fn a_rule_is_added_by_ufw_itself_and_looked_at_afterwards() {
    let target = then_added(active());
    let plans = target.plans();
    let arguments = rule("allow", json!(9999), json!({"protocol": "tcp", "comment": "x"}));
    let (data, notes) = call(target, "fw_add_rule", arguments).unwrap();
    assert_eq!(data["rule"], "allow in 9999/tcp # x");
    assert_eq!(notes, [""; 0]);
    let words = "in proto tcp from any to any port 9999";
    let step = Step::run(quick(&format!("allow {words} comment x")))
        .undo(quick(&format!("delete allow {words}")))
        .uninterruptible();
    let expected = Change::new("Have ufw allow in 9999/tcp # x").step(step).after_undo(ufw("reload"));
    assert_eq!(only(&plans), expected);
}

#[test]
fn a_rule_that_would_take_the_place_of_another_one_is_refused_with_that_one() {
    let target = active();
    let plans = target.plans();
    let same = rule("deny", json!("8000:8010"), json!({"protocol": "tcp", "source": "192.168.0.0/16"}));
    let problem = call(target, "fw_add_rule", same).unwrap_err();
    assert_eq!(problem.code, "RULE_CONTRADICTS");
    assert!(
        problem.message.contains("`allow in 8000:8010/tcp from 192.168.0.0/16")
            && problem.remediation[0].contains("fw_remove_rule"),
        "{problem:?}"
    );
    assert!(plans.borrow().is_empty());
}

#[test]
fn a_dry_run_tells_what_would_become_of_packets() {
    let arguments = rule("allow", json!("9999"), json!({"source": "10.0.0.0/8"}));
    let (data, _) = call(dry(active()), "fw_add_rule", arguments).unwrap();
    assert_eq!((data["would"].as_str(), data["verdict"].as_str()), (Some("add"), Some("accepted")), "{data}");
    assert_eq!(data["by"]["chain"], "ufw-user-input", "{data}");
}

#[test]
fn a_rule_that_is_there_takes_nothing() {
    for (arguments, said) in [
        (
            rule("allow", json!("8000-8010"), json!({"protocol": "tcp", "source": "192.168.0.0/16"})),
            vec!["the rule is there already: nothing was changed"],
        ),
        (
            rule(
                "deny",
                json!(53),
                json!({"protocol": "udp", "source": "10.0.0.1", "destination": "10.0.0.2/32", "comment": "c"}),
            ),
            vec!["its comment is another one: \"none\"", "the rule is there already: nothing was changed"],
        ),
    ] {
        let target = active();
        let plans = target.plans();
        let (_, notes) = call(target, "fw_add_rule", arguments).unwrap();
        assert_eq!(notes, said);
        assert!(plans.borrow().is_empty());
    }
}

#[test]
fn an_allow_that_another_table_overrules_is_refused_with_the_rule() {
    let other = r#"{"table": {"family": "inet", "name": "other", "handle": 90}},
        {"chain": {"family": "inet", "table": "other", "name": "in", "handle": 1, "type": "filter", "hook": "input", "prio": 10, "policy": "accept"}},
        {"rule": {"family": "inet", "table": "other", "chain": "in", "handle": 2, "expr": [
            {"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 9999}}, {"drop": null}]}}"#;
    let target = target(&with_objects(other), CONF);
    let plans = target.plans();
    let problem =
        call(target, "fw_add_rule", rule("allow", json!(9999), json!({"protocol": "tcp"}))).unwrap_err();
    assert_eq!(problem.code, "RULE_WITHOUT_EFFECT");
    assert!(problem.message.contains("`tcp dport 9999 drop` in inet other in"), "{}", problem.message);
    assert!(plans.borrow().is_empty());
}

#[test]
fn a_rule_behind_one_that_decides_is_told_so() {
    let deny = rule("deny", json!(443), json!({"protocol": "tcp"}));
    let (data, notes) = call(dry(active()), "fw_add_rule", deny).unwrap();
    assert_eq!(data["verdict"], "accepted");
    assert!(notes[0].starts_with("the rule has no effect (443/tcp over IPv4)"), "{notes:?}");
    assert!(notes[0].contains("--dports 80,443"), "{notes:?}");
    let again = rule("allow", json!(443), json!({"protocol": "tcp", "source": "10.0.0.7"}));
    let (_, notes) = call(dry(active()), "fw_add_rule", again).unwrap();
    assert!(notes[0].starts_with("such packets were let in already, by"), "{notes:?}");
}

#[test]
fn a_change_that_cuts_off_this_session_is_critical_and_undoes_itself() {
    let without = |text: &str| {
        let (before, rest) = text.split_once("### tuple ### allow tcp 8000:8010").unwrap();
        let (_, behind) = rest.split_once("\n\n").unwrap();
        format!("{before}{behind}")
    };
    let target = active().recording("").file("/etc/ufw/user.rules", without(RULES));
    let plans = target.plans();
    let arguments = rule("allow", json!("8000:8010"), json!({"protocol": "tcp", "source": "192.168.0.0/16"}));
    call(target, "fw_remove_rule", arguments).unwrap();
    let words = "allow in proto tcp from 192.168.0.0/16 to any port 8000:8010";
    let expected = Change::new("Remove ufw's rule `allow in 8000:8010/tcp from 192.168.0.0/16`")
        .warning(
            "this cuts off this server's own session from 192.168.7.7 at port 8005, logins at port 8005 (sshd)",
        )
        .risk(Risk::Critical)
        .guard(60)
        .step(Step::write("/etc/ufw/user.rules", RULES))
        .step(Step::write("/etc/ufw/user6.rules", RULES_IPV6))
        .step(Step::run(quick(&format!("delete {words}"))).undo(quick(words)).uninterruptible())
        .after_undo(ufw("reload"));
    assert_eq!(only(&plans), expected);
}

#[test]
fn sessions_that_cannot_be_seen_are_taken_for_cut_off() {
    let mut target = then_added(active());
    target.distro.extra = vec![("ssh_client".to_owned(), "198.51.100.9".to_owned())];
    let plans = target.plans();
    call(target, "fw_add_rule", rule("allow", json!(9999), json!({"protocol": "tcp", "comment": "x"})))
        .unwrap();
    let plan = format!("{:?}", only(&plans));
    assert!(
        plan.contains("which sessions this cuts off isn't known") && plan.contains("guard: Some"),
        "{plan}"
    );
}

#[test]
fn ufw_is_switched_on_with_a_guard_and_with_what_it_cuts_off() {
    let without_rules = "*filter\n:ufw-user-input - [0:0]\n:ufw-user-output - [0:0]\n:ufw-user-forward - [0:0]\n\
        :ufw-user-limit - [0:0]\n:ufw-user-limit-accept - [0:0]\n### RULES ###\n-A ufw-user-limit -j REJECT\nCOMMIT\n";
    let without_rules6 = without_rules.replace("ufw-user", "ufw6-user");
    let target = inactive()
        .file("/etc/ufw/user.rules", without_rules)
        .file("/etc/ufw/user6.rules", without_rules6.as_str())
        .answer_after(&["nft", "-j", "list", "ruleset"], 0, NFT, "")
        .answer_after(&["iptables-save"], 0, SAVED, "")
        .answer_after(&["ip6tables-save"], 0, SAVED_IPV6, "")
        .recording("")
        .file("/etc/ufw/ufw.conf", CONF);
    let plans = target.plans();
    let (data, _) = call(target, "fw_enable", json!({})).unwrap();
    assert_eq!(json!([data["firewall"], data["active"], data["at_boot"]]), json!(["ufw", true, true]));
    let said =
        "this cuts off this server's own session from 192.168.7.7 at port 8005, logins at port 8005 (sshd)";
    let expected = Change::new("Make ufw active, now and at each start")
        .warning(said)
        .risk(Risk::Critical)
        .guard(60)
        .step(Step::write("/etc/ufw/ufw.conf", "ENABLED=no\n"))
        .step(Step::write("/etc/ufw/user.rules", without_rules))
        .step(Step::write("/etc/ufw/user6.rules", without_rules6))
        .step(Step::run(ufw("--force enable")).undo(ufw("disable")).uninterruptible());
    assert_eq!(only(&plans), expected);
}

#[test]
fn ufw_with_a_rule_for_the_session_cuts_nothing_off_and_has_its_guard_all_the_same() {
    let target = inactive()
        .answer_after(&["nft", "-j", "list", "ruleset"], 0, NFT, "")
        .answer_after(&["iptables-save"], 0, SAVED, "")
        .answer_after(&["ip6tables-save"], 0, SAVED_IPV6, "")
        .recording("")
        .file("/etc/ufw/ufw.conf", CONF);
    let plans = target.plans();
    call(target, "fw_enable", json!({})).unwrap();
    let plan = format!("{:?}", only(&plans));
    assert!(plan.contains("guard: Some") && !plan.contains("session"), "{plan}");
}

#[test]
fn what_is_as_asked_for_takes_nothing_and_a_success_without_effect_is_an_error() {
    for (target, tool, said) in [
        (active(), "fw_enable", "ufw is active already, also at the next start: nothing was changed"),
        (inactive(), "fw_disable", "ufw is inactive already, also at the next start: nothing was changed"),
    ] {
        let plans = target.plans();
        let (_, notes) = call(target, tool, json!({})).unwrap();
        assert_eq!(notes, [said]);
        assert!(plans.borrow().is_empty());
    }
    assert_eq!(call(active(), "fw_disable", json!({})).unwrap_err().code, "NOT_SWITCHED");
    let add = rule("allow", json!(9999), json!({"protocol": "tcp"}));
    assert_eq!(call(active(), "fw_add_rule", add).unwrap_err().code, "RULE_NOT_APPLIED");
}

#[test]
fn an_inactive_ufw_keeps_the_rule_for_later() {
    let target = then_added(inactive());
    let (data, notes) =
        call(target, "fw_add_rule", rule("allow", json!(9999), json!({"protocol": "tcp", "comment": "x"})))
            .unwrap();
    assert!(data.get("verdict").is_none(), "{data}");
    assert_eq!(notes, ["ufw is inactive: its rules hold from fw_enable on"]);
}

#[test]
fn what_cannot_be_a_rule_is_refused_with_what_was_expected() {
    let ipv6_off = || active().file("/etc/default/ufw", DEFAULTS.replace("IPV6=yes", "IPV6=no"));
    let no_service = |name: &str| active().answer(&["getent", "services", name], 2, "", "");
    for (target, arguments, code, said) in [
        (
            active(),
            rule("allow", json!(0), json!({})),
            "INVALID_PORT",
            "\"0\" is no port: expected 1 to 65535",
        ),
        (active(), rule("allow", json!(65536), json!({})), "INVALID_PORT", "\"65536\" is no port"),
        (active(), rule("allow", json!(-1), json!({})), "INVALID_PORT", "is no port"),
        (active(), rule("allow", json!("+22"), json!({})), "INVALID_PORT", "is no port"),
        (active(), rule("allow", json!(""), json!({})), "INVALID_PORT", "is no port"),
        (active(), rule("allow", json!("80,443"), json!({})), "INVALID_PORT", "\"80,443\" is no port"),
        (active(), rule("allow", json!("-22"), json!({})), "INVALID_PORT", "\"-22\" is no port"),
        (active(), rule("allow", json!("--force"), json!({})), "INVALID_PORT", "is no port"),
        (
            active(),
            rule("allow", json!("9000:8000"), json!({})),
            "INVALID_PORT",
            "reversed: expected 8000:9000",
        ),
        (active(), rule("allow", json!("9000-8000"), json!({})), "INVALID_PORT", "expected 8000:9000"),
        (active(), rule("allow", json!("0:80"), json!({})), "INVALID_PORT", "\"0\" is no port"),
        (active(), rule("allow", json!("80:"), json!({})), "INVALID_PORT", "\"\" is no port"),
        (active(), rule("allow", json!("80:http"), json!({})), "INVALID_PORT", "\"http\" is no port"),
        (active(), rule("allow", json!("1:65536"), json!({})), "INVALID_PORT", "\"65536\" is no port"),
        (active(), rule("allow", json!("8000:8010"), json!({})), "PROTOCOL_NEEDED", "expected tcp or udp"),
        (
            no_service("nosuch"),
            rule("allow", json!("nosuch"), json!({})),
            "UNKNOWN_SERVICE",
            "expected its port's number",
        ),
        (
            no_service("https/udp"),
            rule("allow", json!("https"), json!({"protocol": "udp"})),
            "UNKNOWN_SERVICE",
            "has no https with udp",
        ),
        (
            active(),
            rule("allow", json!(22), json!({"destination": "192.0.2.1/24"})),
            "INVALID_ADDRESS",
            "destination: 192.0.2.1/24 has bits",
        ),
        (active(), rule("allow", json!(22), json!({"source": "::/0"})), "INVALID_ADDRESS", "leave it out"),
        (active(), rule("allow", json!(22), json!({"source": ""})), "INVALID_ADDRESS", "\"\" is no address"),
        (
            active(),
            rule("allow", json!(22), json!({"source": "10.0.0.1/8"})),
            "INVALID_ADDRESS",
            "expected 10.0.0.0/8, or 10.0.0.1 alone",
        ),
        (
            active(),
            rule("allow", json!(22), json!({"source": "2001:db8::1/32"})),
            "INVALID_ADDRESS",
            "expected 2001:db8::/32",
        ),
        (
            active(),
            rule("allow", json!(22), json!({"source": "0.0.0.0/0"})),
            "INVALID_ADDRESS",
            "leave it out",
        ),
        (
            active(),
            rule("allow", json!(22), json!({"source": "::ffff:1.2.3.4"})),
            "INVALID_ADDRESS",
            "stands for 1.2.3.4",
        ),
        (
            active(),
            rule("allow", json!(22), json!({"source": "10.0.0.0/33"})),
            "INVALID_ADDRESS",
            "no network",
        ),
        (
            active(),
            rule("allow", json!(22), json!({"source": "-x"})),
            "INVALID_ADDRESS",
            "\"-x\" is no address",
        ),
        (
            active(),
            rule("allow", json!(22), json!({"source": "10.0.0.1", "destination": "::1"})),
            "MIXED_FAMILIES",
            "10.0.0.1 and ::1",
        ),
        (active(), rule("allow", json!(22), json!({"comment": "a\nb"})), "INVALID_COMMENT", "one line"),
        (active(), rule("allow", json!(22), json!({"comment": "it's"})), "INVALID_COMMENT", "without quotes"),
        (active(), rule("allow", json!(22), json!({"comment": "a\"b"})), "INVALID_COMMENT", "without quotes"),
        (active(), rule("allow", json!(22), json!({"comment": "a\\b"})), "INVALID_COMMENT", "backslashes"),
        (active(), rule("allow", json!(22), json!({"comment": "-x"})), "INVALID_COMMENT", "begin with -"),
        (active(), rule("allow", json!(22), json!({"comment": "a\u{202e}b"})), "INVALID_COMMENT", "one line"),
        (
            active(),
            rule("allow", json!(22), json!({"comment": "x".repeat(121)})),
            "INVALID_COMMENT",
            "at most 120",
        ),
        (
            ipv6_off(),
            rule("allow", json!(22), json!({"source": "2001:db8::/32"})),
            "IPV6_NOT_FILTERED",
            "IPV6=no",
        ),
    ] {
        let problem = call(target, "fw_add_rule", arguments.clone()).unwrap_err();
        assert_eq!(problem.code, code, "{arguments}: {}", problem.message);
        assert!(problem.message.contains(said), "{arguments}: {}", problem.message);
    }
    let missing = rule("allow", json!("8000:8010"), json!({"protocol": "udp"}));
    let problem = call(active(), "fw_remove_rule", missing).unwrap_err();
    assert_eq!(problem.code, "RULE_NOT_FOUND");
    assert_eq!(problem.remediation, ["It has allow in 8000:8010/tcp from 192.168.0.0/16"]);
}

#[test]
fn a_service_is_its_port_and_any_stands_for_everything() {
    let target = active().answer(&["getent", "services", "https"], 0, "https                 443/tcp\n", "");
    let plans = target.plans();
    // The rule isn't in the files afterwards, which are those of before.
    let problem =
        call(target, "fw_add_rule", rule("deny", json!("https"), json!({"source": "any"}))).unwrap_err();
    assert_eq!(problem.code, "RULE_NOT_APPLIED");
    assert!(format!("{:?}", only(&plans)).contains("\"deny\", \"in\", \"proto\", \"tcp\""));
    let target = active();
    let plans = target.plans();
    let _ = call(target, "fw_add_rule", rule("deny", json!("any"), json!({"source": "203.0.113.0/24"})));
    let words = "deny in from 203.0.113.0/24 to any";
    let step = Step::run(quick(words)).undo(quick(&format!("delete {words}"))).uninterruptible();
    assert_eq!(only(&plans).steps(), [step]);
}

#[test]
fn empty_chains_of_a_switched_off_ufw_are_no_active_one() {
    // What ufw leaves of its chains by `ufw disable`.
    let chain = |name: &str, more: &str| {
        format!(r#"{{"chain": {{"family": "ip", "table": "filter", "name": "{name}", "handle": 1{more}}}}}"#)
    };
    let hook = r#", "type": "filter", "hook": "input", "prio": 0, "policy": "accept""#;
    let left = format!(
        r#"{{"nftables": [{{"table": {{"family": "ip", "name": "filter", "handle": 1}}}}, {}, {},
        {{"rule": {{"family": "ip", "table": "filter", "chain": "INPUT", "handle": 9, "expr": [
            {{"counter": {{"packets": 0, "bytes": 0}}}}, {{"jump": {{"target": "ufw-before-input"}}}}]}}}}]}}"#,
        chain("ufw-before-input", ""),
        chain("INPUT", hook)
    );
    let off = || {
        target(&left, "ENABLED=no\n").answer(&["iptables-save"], 0, "", "").answer(
            &["ip6tables-save"],
            0,
            "",
            "",
        )
    };
    let (data, notes) = call(off(), "fw_status", json!({})).unwrap();
    assert_eq!(
        (data["active"].as_bool(), notes[0].as_str()),
        (Some(false), "ufw is inactive: none of its rules holds")
    );
    let (_, notes) = call(off(), "fw_disable", json!({})).unwrap();
    assert!(notes[0].starts_with("ufw is inactive already"), "{notes:?}");
}

#[test]
fn a_rule_for_an_inactive_ufw_beside_an_active_firewalld_is_refused() {
    let other = r#"{"nftables": [{"table": {"family": "inet", "name": "firewalld", "handle": 1}}]}"#;
    let problem =
        call(target(other, "ENABLED=no\n"), "fw_add_rule", rule("allow", json!(80), json!({}))).unwrap_err();
    assert_eq!(problem.code, "OTHER_FIREWALL_ACTIVE");
    assert!(problem.remediation[0].contains("distro.firewall_backend: firewalld"), "{problem:?}");
}

#[test]
fn two_active_firewalls_are_told_and_what_the_other_one_drops_is_refused() {
    let both = || dry(target(&with_objects(FIREWALLD), CONF));
    let told = "firewalld is active as well: what one of both drops doesn't get in";
    let free = rule("allow", json!(9998), json!({"protocol": "tcp"}));
    let (data, notes) = call(both(), "fw_add_rule", free).unwrap();
    assert_eq!((data["verdict"].as_str(), &notes[..]), (Some("accepted"), &[told.to_owned()][..]));
    let dropped = rule("allow", json!(9999), json!({"protocol": "tcp"}));
    let problem = call(both(), "fw_add_rule", dropped).unwrap_err();
    assert_eq!(problem.code, "RULE_WITHOUT_EFFECT");
    assert!(problem.message.contains("`tcp dport 9999 drop` in inet firewalld filter_INPUT"), "{problem:?}");
    let other = format!(r#"{{"nftables": [{FIREWALLD}]}}"#);
    let target = dry(target(&other, "ENABLED=no\n"));
    let plans = target.plans();
    let (_, notes) = call(target, "fw_enable", json!({})).unwrap();
    assert_eq!(notes[0], told);
    assert!(format!("{:?}", only(&plans)).contains(told), "the question tells it as well");
}

#[test]
fn a_host_with_containers_is_told_that_their_ports_pass() {
    let both = || dry(target(&with_objects(PODMAN), CONF));
    let told = "ports that containers publish pass ufw's rules";
    let (_, notes) =
        call(both(), "fw_add_rule", rule("allow", json!(9998), json!({"protocol": "tcp"}))).unwrap();
    assert_eq!(notes, [told]);
    let (data, _) = call(both(), "fw_status", json!({})).unwrap();
    assert_eq!(data["also_writing_rules"], json!(["podman"]));
    assert_eq!(data["published"], json!([{"port": "8080/tcp", "to": "10.88.0.2:80"}]));
    let containers = format!(r#"{{"nftables": [{PODMAN}]}}"#);
    let target = dry(target(&containers, "ENABLED=no\n"));
    let plans = target.plans();
    let (_, notes) = call(target, "fw_enable", json!({})).unwrap();
    assert_eq!(notes[0], told);
    assert!(format!("{:?}", only(&plans)).contains(told), "the question tells it as well");
}

#[test]
fn a_rule_is_removed_whatever_its_comment_says_where_an_undo_can_say_it_again() {
    let end = "any 192.168.0.0/16 in\n";
    for (comment, words) in
        [("a \"b\"", Some("a_\"b\"")), ("it's", None), ("a\\b", None), ("a\nb", None), ("-x", None)]
    {
        let digits: String = comment.bytes().map(|byte| format!("{byte:02x}")).collect();
        let text = RULES.replace(end, &format!("any 192.168.0.0/16 in comment={digits}\n"));
        assert_ne!(text, RULES);
        let target = dry(active().file("/etc/ufw/user.rules", text));
        let plans = target.plans();
        let more = json!({"protocol": "tcp", "source": "192.168.0.0/16", "comment": comment});
        let answer = call(target, "fw_remove_rule", rule("allow", json!("8000:8010"), more));
        match words {
            Some(words) => {
                answer.unwrap();
                let rule = "allow in proto tcp from 192.168.0.0/16 to any port 8000:8010";
                let undo = quick(&format!("{rule} comment {words}"));
                let step = Step::run(quick(&format!("delete {rule}"))).undo(undo).uninterruptible();
                assert_eq!(only(&plans).steps().last(), Some(&step));
            }
            None => {
                assert_eq!(answer.unwrap_err().code, "COMMENT_NOT_PLAIN", "{comment:?}");
                assert!(plans.borrow().is_empty());
            }
        }
    }
}
