//! The tools of the sdk with this firewall, against a fake target, which answers with what was recorded.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::testkit::{FakeTarget, transcript};
use module_{{identifier}}::module;
use serde_json::{Value, json};

const ACTIVE: &str = include_str!("transcripts/example/commands.txt");
/// After a rule for port 8080 has been added.
const ADDED: &str = "$ {{program}} rules\n[exit 0]\nallow in tcp 22\nlimit in tcp 25 burst 5\nallow in tcp 8080\n";

fn target() -> FakeTarget {
    let mut target = FakeTarget::new().transcript(ACTIVE);
    target.distro.firewall_backend = "{{program}}".to_owned();
    target
}

/// The target, which answers in another way after a plan has run.
fn changing() -> FakeTarget {
    transcript(ADDED).iter().fold(target(), |target, (argv, output)| {
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        target.answer_after(&argv, output.exit_code, &output.stdout, &output.error_text())
    })
}

fn told(target: FakeTarget, tool: &str, arguments: Value) -> Value {
    let (data, _) = target.call(&module(), tool, arguments).unwrap_or_else(|problem| panic!("{problem:?}"));
    data
}

fn refused(target: FakeTarget, tool: &str, arguments: Value) -> Problem {
    match target.call(&module(), tool, arguments) {
        Err(problem) => problem,
        Ok((data, _)) => panic!("{data}"),
    }
}

#[test]
fn the_state_is_told_with_the_rules_in_short() {
    let data = told(target(), "fw_status", json!({}));
    assert_eq!((&data["firewall"], &data["active"]), (&json!("{{program}}"), &json!(true)));
    assert_eq!(data["at_boot"], json!(true));
    assert_eq!(data["rules"], json!(["allow in 22/tcp", "limit in tcp 25 burst 5"]));
}

#[test]
fn a_state_that_is_not_known_is_an_error() {
    let odd = FakeTarget::new().transcript(&ACTIVE.replace("\nactive\n", "\nperhaps\n"));
    assert_eq!(refused(odd, "fw_status", json!({})).code, "UNEXPECTED_OUTPUT");
}

#[test]
fn rules_are_listed_in_unified_words_or_in_the_firewalls_own() {
    let data = told(target(), "fw_list_rules", json!({}));
    let ssh = json!({"action": "allow", "direction": "in", "port": "22", "protocol": "tcp"});
    assert_eq!(data, json!([ssh, {"raw": "limit in tcp 25 burst 5"}]));
}

#[test]
fn a_rule_is_added_by_one_command_and_looked_at_afterwards() {
    let target = changing();
    let plans = target.plans();
    let rule = json!({"action": "allow", "direction": "in", "port": 8080, "protocol": "tcp"});
    let data = told(target, "fw_add_rule", rule);
    assert_eq!(data["rule"], "allow in 8080/tcp");
    let plan = format!("{:?}", plans.borrow());
    assert!(plan.contains(r#"args: ["add", "allow", "in", "tcp", "8080"]"#), "{plan}");
    // The undo is told as well, and the machine may have to do it by itself.
    assert!(plan.contains(r#"args: ["remove", "allow", "in", "tcp", "8080"]"#), "{plan}");
}

#[test]
fn a_rule_that_the_firewall_cannot_keep_is_refused() {
    let rule = json!({"action": "allow", "direction": "in", "port": 8080, "source": "192.0.2.0/24"});
    assert_eq!(refused(target(), "fw_add_rule", rule).code, "NOT_SUPPORTED");
}
