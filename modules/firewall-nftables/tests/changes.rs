//! The tools' own table: its file, what the kernel has of it, and both families of distributions. The files below `data` are
//! nft's; addresses and sockets are written by hand in the formats of ip and ss.
#![allow(clippy::unwrap_used, missing_docs)]

use linux_sysadmin_sdk::testkit::{FakeTarget, Plans};
use linux_sysadmin_sdk::{Change, Command, Problem, Risk, Step};
use module_firewall_nftables::module;
use serde_json::{Value, json};

const NONE: &str = r#"{"nftables": []}"#;
const FILE: &str = include_str!("data/own-table.nft");
const KERNEL: &str = include_str!("data/own-table.json");
const CONF: &str = include_str!("data/nftables.conf");
const PATH: &str = "/etc/nftables.d/linux-sysadmin.nft";
const INCLUDE: &str = "include \"/etc/nftables.d/linux-sysadmin.nft\"\n";
const UNIT: [&str; 6] =
    ["systemctl", "show", "--property=ActiveState", "--property=UnitFileState", "--", "nftables.service"];
const ADDRESSES: &str = r#"[{"ifname":"lo","addr_info":[{"local":"127.0.0.1"}]},{"ifname":"eth0","addr_info":[{"local":"192.168.0.1"}]}]"#;

/// An active ufw, whose rules are left out, written by hand in nft's format.
const UFW: &str = r#"{"nftables": [{"table": {"family": "ip", "name": "filter", "handle": 1}},
    {"chain": {"family": "ip", "table": "filter", "name": "INPUT", "handle": 1, "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}},
    {"chain": {"family": "ip", "table": "filter", "name": "ufw-before-input", "handle": 2}},
    {"rule": {"family": "ip", "table": "filter", "chain": "INPUT", "handle": 3, "expr": [{"jump": {"target": "ufw-before-input"}}]}},
    {"rule": {"family": "ip", "table": "filter", "chain": "ufw-before-input", "handle": 4, "expr": [
        {"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": "lo"}}, {"accept": null}]}}]}"#;

fn target(nft: &str, unit: &str) -> FakeTarget {
    FakeTarget::new()
        .answer(&["nft", "-j", "list", "ruleset"], 0, nft, "")
        .answer(&["iptables-save"], 0, "", "")
        .answer(&["ip6tables-save"], 0, "", "")
        .answer(&["ip", "-j", "address", "show"], 0, ADDRESSES, "")
        .answer(&["ss", "-Htnp", "state", "established"], 0, "", "")
        .answer(&["ss", "-Hltunp"], 0, "tcp LISTEN 0 128 *:22 *:* users:((\"sshd\",pid=1,fd=3))\n", "")
        .answer(&UNIT, 0, format!("ActiveState=active\nUnitFileState={unit}\n"), "")
        .file("/etc/nftables.conf", CONF)
}

/// A machine that has the table, now and at each start.
fn active() -> FakeTarget {
    target(KERNEL, "enabled").file("/etc/nftables.conf", format!("{CONF}{INCLUDE}")).file(PATH, FILE)
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

fn only(plans: &Plans) -> Change {
    let plans = plans.borrow();
    assert_eq!(plans.len(), 1);
    plans[0].clone()
}

fn load() -> Command {
    Command::new("nft").args(["-f", PATH]).as_root()
}

fn delete() -> Command {
    Command::new("nft").args(["delete", "table", "inet", "linux_sysadmin"]).as_root()
}

fn systemctl(verb: &str) -> Command {
    Command::new("systemctl").args([verb, "--", "nftables.service"]).as_root()
}

/// The kernel's output and the file without the rule whose words hold this.
fn without(words: &str, source: &str) -> (String, String) {
    let mut kernel: Value = serde_json::from_str(KERNEL).unwrap();
    let all = kernel["nftables"].as_array_mut().unwrap();
    let before = all.len();
    all.retain(|one| !one.to_string().contains(source));
    assert_eq!(all.len() + 1, before);
    let lines: Vec<&str> = FILE.lines().collect();
    let at = lines.iter().position(|line| line.contains(words)).unwrap();
    let kept: Vec<&str> = lines[..at - 1].iter().chain(&lines[at + 1..]).copied().collect();
    (kernel.to_string(), kept.join("\n") + "\n")
}

#[test]
fn rules_of_every_kind_are_listed_as_they_were_added() {
    let (data, _) = call(active(), "fw_list_rules", json!({})).unwrap();
    let rules = data.as_array().unwrap();
    for line in FILE.lines().filter_map(|line| line.trim_start().strip_prefix("# {")) {
        let mut expected: Value = serde_json::from_str(&format!("{{{line}")).unwrap();
        expected["in"] = json!(format!("inet linux_sysadmin {}put", expected["direction"].as_str().unwrap()));
        let is_it = |rule: &&Value| {
            let mut rule = (*rule).clone();
            rule.as_object_mut().unwrap().remove("handle");
            rule == expected
        };
        assert_eq!(rules.iter().filter(is_it).count(), 1, "{expected}\n{data:#}");
    }
}

#[test]
fn a_rule_is_removed_and_added_by_a_new_file_that_is_loaded() {
    let (kernel, file) = without("ip saddr 192.0.2.7 reject", "192.0.2.7");
    let arguments = json!({"action": "reject", "direction": "in", "port": "any", "source": "192.0.2.7"});
    let after = |target: FakeTarget, kernel: &str, file: &str| {
        target.answer_after(&["nft", "-j", "list", "ruleset"], 0, kernel, "").recording("").file(PATH, file)
    };
    let written = |file: &str, summary: &str| {
        Change::new(summary)
            .step(Step::write(PATH, file).mode(0o644))
            .step(Step::run(load()).uninterruptible())
            .after_undo(load())
    };
    let removal = after(active(), &kernel, &file);
    let plans = removal.plans();
    let (data, _) = call(removal, "fw_remove_rule", arguments.clone()).unwrap();
    assert_eq!(
        (data["in"].as_str(), data["verdict"].as_str()),
        (Some("inet linux_sysadmin input"), Some("dropped"))
    );
    let words = "`reject in any from 192.0.2.7`";
    assert_eq!(only(&plans), written(&file, &format!("Remove {words} from the table inet linux_sysadmin")));

    // A rule comes behind the others.
    let (kernel, file) = without("ip saddr 192.0.2.8 meta", "192.0.2.8");
    let arguments = json!({"action": "allow", "direction": "in", "port": "any", "protocol": "tcp", "source": "192.0.2.8"});
    let added =
        target(&kernel, "enabled").file("/etc/nftables.conf", format!("{CONF}{INCLUDE}")).file(PATH, file);
    let added = after(added, KERNEL, FILE);
    let plans = added.plans();
    let (data, _) = call(added, "fw_add_rule", arguments).unwrap();
    assert_eq!(data["verdict"], "accepted", "{data}");
    assert_eq!(
        only(&plans),
        written(FILE, "Add `allow in any/tcp from 192.0.2.8` to the table inet linux_sysadmin")
    );
}

#[test]
fn a_rule_for_packets_that_leave_is_one_of_the_other_chain() {
    let (kernel, file) = without("ip daddr 192.0.2.9", "192.0.2.9");
    let before =
        target(&kernel, "enabled").file("/etc/nftables.conf", format!("{CONF}{INCLUDE}")).file(PATH, file);
    let added =
        before.answer_after(&["nft", "-j", "list", "ruleset"], 0, KERNEL, "").recording("").file(PATH, FILE);
    let plans = added.plans();
    let arguments = json!({"action": "deny", "direction": "out", "port": 443, "protocol": "tcp", "destination": "192.0.2.9"});
    let (data, _) = call(added, "fw_add_rule", arguments).unwrap();
    assert_eq!(data["in"], "inet linux_sysadmin output");
    assert_eq!(only(&plans).steps()[0], Step::write(PATH, FILE).mode(0o644));
}

#[test]
fn a_table_that_somebody_else_has_changed_is_left_alone() {
    let rule = json!({"action": "allow", "direction": "in", "port": 80});
    let (_, file) = without("ip saddr 192.0.2.7 reject", "192.0.2.7");
    for (tool, arguments) in [("fw_add_rule", rule), ("fw_disable", json!({})), ("fw_enable", json!({}))] {
        let target = active().file(PATH, file.as_str());
        let plans = target.plans();
        let problem = call(target, tool, arguments).unwrap_err();
        assert_eq!(problem.code, "TABLE_DIFFERS", "{tool}");
        assert!(plans.borrow().is_empty());
    }
}

#[test]
fn a_file_that_somebody_has_edited_is_left_alone() {
    let rule = json!({"action": "reject", "direction": "in", "port": "any", "source": "192.0.2.7"});
    let edits = [
        FILE.replace("\t\tip saddr 192.0.2.7 reject", "\t\tip saddr 192.0.2.7 drop"),
        FILE.replace("\t}\n\tchain output", "\t\ttcp dport 9 accept\n\t}\n\tchain output"),
        FILE.replace("policy drop", "policy accept"),
        format!("{FILE}# ours\n"),
    ];
    let add = ("fw_add_rule", json!({"action": "allow", "direction": "in", "port": 80}));
    let remove = ("fw_remove_rule", rule);
    let [enable, disable] = ["fw_enable", "fw_disable"].map(|tool| (tool, json!({})));
    for file in &edits {
        assert_ne!(file, FILE);
        for (target, calls) in [
            (active as fn() -> FakeTarget, vec![&add, &remove, &enable, &disable]),
            (inactive as fn() -> FakeTarget, vec![&add, &remove, &enable]),
        ] {
            for (tool, arguments) in calls {
                let target = target().file(PATH, file.as_str());
                let plans = target.plans();
                let problem = call(target, tool, arguments.clone()).unwrap_err();
                assert_eq!(problem.code, "FILE_EDITED", "{tool}");
                assert!(problem.remediation[0].contains("/etc/nftables.conf"), "{problem:?}");
                assert!(plans.borrow().is_empty());
            }
        }
    }
    // What takes nothing from the file is no reason to refuse.
    let (_, notes) = call(inactive().file(PATH, edits[0].as_str()), "fw_disable", json!({})).unwrap();
    assert!(notes[0].contains("nothing was changed"), "{notes:?}");
    let (data, _) = call(inactive().file(PATH, edits[1].as_str()), "fw_list_rules", json!({})).unwrap();
    assert_eq!(data.as_array().unwrap().len(), 7);
}

#[test]
fn rules_of_other_tables_are_not_removed() {
    let other = r#"{"nftables": [{"table": {"family": "inet", "name": "filter", "handle": 1}},
        {"chain": {"family": "inet", "table": "filter", "name": "input", "handle": 1, "type": "filter", "hook": "input", "prio": 0,
            "policy": "accept"}},
        {"rule": {"family": "inet", "table": "filter", "chain": "input", "handle": 2, "expr": [
            {"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 80}}, {"drop": null}]}}]}"#;
    let arguments = json!({"action": "deny", "direction": "in", "port": 80, "protocol": "tcp"});
    let problem = call(target(other, "enabled"), "fw_remove_rule", arguments).unwrap_err();
    assert_eq!(problem.code, "NOT_OWN_RULE");
}

#[test]
fn the_table_is_loaded_and_included_and_guarded() {
    let target = target(NONE, "disabled").answer_after(&["nft", "-j", "list", "ruleset"], 0, KERNEL, "");
    let plans = target.plans();
    let (_, notes) = call(target, "fw_enable", json!({})).unwrap();
    let said = "from the next start on, nftables.service loads all of /etc/nftables.conf";
    assert_eq!(notes[0], said);
    let change = only(&plans);
    let steps = change.steps();
    let [directory, file, config, unit, loaded] = &steps[..] else { panic!("{steps:?}") };
    assert_eq!(*directory, Step::make_directory("/etc/nftables.d", 0o755));
    assert!(format!("{file:?}").contains(PATH));
    assert_eq!(*config, Step::write("/etc/nftables.conf", format!("{CONF}{INCLUDE}")));
    assert_eq!(*unit, Step::run(systemctl("enable")).undo(systemctl("disable")));
    assert_eq!(*loaded, Step::run(load()).undo(delete()).uninterruptible());
    let head = Change::new(
        "Load the table inet linux_sysadmin, now and at each start: it drops what no rule allows",
    )
    .warning(said)
    .warning("this cuts off logins at port 22 (sshd)")
    .risk(Risk::Critical)
    .guard(60);
    assert_eq!(change, steps.into_iter().fold(head, Change::step));
}

#[test]
fn the_table_is_taken_away_and_its_rules_stay() {
    let target = active()
        .answer_after(&["nft", "-j", "list", "ruleset"], 0, NONE, "")
        .recording("")
        .file("/etc/nftables.conf", CONF);
    let plans = target.plans();
    call(target, "fw_disable", json!({})).unwrap();
    let expected =
        Change::new("Take the table inet linux_sysadmin away, now and at each start; its file stays")
            .step(Step::write("/etc/nftables.conf", CONF))
            .step(Step::run(delete()).undo(load()).uninterruptible());
    assert_eq!(only(&plans), expected);

    let kept = inactive;
    let (data, notes) = call(kept(), "fw_list_rules", json!({})).unwrap();
    assert_eq!(data.as_array().unwrap().len(), 7);
    assert_eq!(
        (data[0]["only"].as_str(), data[0]["comment"].as_str()),
        (Some("permanent"), Some("a #{} $x ü")),
        "{data}"
    );
    assert_eq!(notes, ["`permanent` rules are kept, and hold from fw_enable on"]);
    let (_, notes) = call(kept(), "fw_disable", json!({})).unwrap();
    assert_eq!(notes, ["nftables is inactive already, also at the next start: nothing was changed"]);
    let known = json!({"action": "allow", "direction": "in", "port": 53});
    let (_, notes) = call(kept(), "fw_add_rule", known).unwrap();
    assert_eq!(notes, ["the rule is there already: nothing was changed"]);
}

fn inactive() -> FakeTarget {
    target(NONE, "enabled").file(PATH, FILE)
}

#[test]
fn red_hats_file_is_another_one() {
    let path = "/etc/nftables/linux-sysadmin.nft";
    let target = target(NONE, "enabled")
        .file("/etc/sysconfig/nftables.conf", "# x\n#include \"/etc/nftables/main.nft\"")
        .file("/etc/nftables/main.nft", "")
        .answer_after(&["nft", "-j", "list", "ruleset"], 0, KERNEL, "");
    let plans = target.plans();
    call(target, "fw_enable", json!({})).unwrap();
    let steps = only(&plans).steps();
    assert!(format!("{:?}", steps[0]).contains(path));
    let included = format!("# x\n#include \"/etc/nftables/main.nft\"\ninclude \"{path}\"\n");
    assert_eq!(steps[1], Step::write("/etc/sysconfig/nftables.conf", included));
    assert_eq!(steps.len(), 3);
}

#[test]
fn without_the_services_file_that_is_said() {
    let bare = FakeTarget::new()
        .answer(&["nft", "-j", "list", "ruleset"], 0, NONE, "")
        .answer(&["iptables-save"], 0, "", "")
        .answer(&["ip6tables-save"], 0, "", "");
    let problem =
        call(bare, "fw_add_rule", json!({"action": "allow", "direction": "in", "port": 80})).unwrap_err();
    assert_eq!(problem.code, "NO_NFTABLES_CONF");
}

#[test]
fn an_allow_behind_a_rule_that_decides_is_refused_with_that_rule() {
    for (arguments, rule) in [
        (
            json!({"action": "allow", "direction": "in", "port": 80, "source": "192.0.2.7"}),
            "ip saddr 192.0.2.7 reject",
        ),
        (
            json!({"action": "allow", "direction": "in", "port": 8005, "protocol": "udp", "source": "10.1.0.0/16",
                "destination": "192.168.0.1"}),
            "ip saddr 10.0.0.0/8 ip daddr 192.168.0.1 udp dport 8000-8010 drop",
        ),
    ] {
        let target = active();
        let plans = target.plans();
        let problem = call(target, "fw_add_rule", arguments).unwrap_err();
        assert_eq!(problem.code, "RULE_WITHOUT_EFFECT");
        let said = format!("`{rule}` in inet linux_sysadmin input stands in its way");
        assert!(problem.message.contains(&said), "{}", problem.message);
        assert!(plans.borrow().is_empty());
    }
}

#[test]
fn a_rule_that_stands_there_twice_goes_as_a_whole() {
    let (gone, file) = without("ip saddr 192.0.2.7 reject", "192.0.2.7");
    let lines: Vec<&str> = FILE.lines().collect();
    let at = lines.iter().position(|line| line.contains("ip saddr 192.0.2.7 reject")).unwrap();
    let twice = [&lines[..=at], &lines[at - 1..]].concat().join("\n") + "\n";
    let mut kernel: Value = serde_json::from_str(KERNEL).unwrap();
    let all = kernel["nftables"].as_array_mut().unwrap();
    let at = all.iter().position(|one| one.to_string().contains("192.0.2.7")).unwrap();
    all.insert(at, all[at].clone());
    let target = target(&kernel.to_string(), "enabled")
        .file("/etc/nftables.conf", format!("{CONF}{INCLUDE}"))
        .file(PATH, twice)
        .answer_after(&["nft", "-j", "list", "ruleset"], 0, gone, "")
        .recording("")
        .file(PATH, file.as_str());
    let plans = target.plans();
    let rule = json!({"action": "reject", "direction": "in", "port": "any", "source": "192.0.2.7"});
    call(target, "fw_remove_rule", rule).unwrap();
    assert_eq!(only(&plans).steps()[0], Step::write(PATH, file).mode(0o644));
}

#[test]
fn a_table_with_a_rule_for_ssh_cuts_nothing_off_and_has_its_guard_all_the_same() {
    let target = target(NONE, "enabled").file(PATH, FILE).answer_after(
        &["nft", "-j", "list", "ruleset"],
        0,
        KERNEL,
        "",
    );
    let plans = target.plans();
    call(target, "fw_enable", json!({})).unwrap();
    let plan = format!("{:?}", only(&plans));
    assert!(plan.contains("guard: Some") && !plan.contains("cuts off"), "{plan}");
}

#[test]
fn a_rule_for_a_table_that_is_not_loaded_is_refused_beside_an_active_ufw() {
    let rule = json!({"action": "allow", "direction": "in", "port": 80});
    let problem = call(target(UFW, "enabled"), "fw_add_rule", rule).unwrap_err();
    assert_eq!(problem.code, "OTHER_FIREWALL_ACTIVE");
    assert!(problem.remediation[0].contains("distro.firewall_backend: ufw"), "{problem:?}");
}

#[test]
fn a_firewall_is_switched_at_critical_risk_whatever_its_rules_are() {
    let description = module().description();
    let critical = description.tools.iter().filter(|tool| tool.risk == Risk::Critical);
    let names: Vec<&str> = critical.map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["fw_enable", "fw_disable"]);
}
