//! The tools against a fake target, which answers with what was recorded on a real machine.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::testkit::{self, FakeTarget};
use module_{{identifier}}::module;
use serde_json::json;

/// Outputs of commands, and files as `tail -n +1 -- FILE FILE` prints several.
const COMMANDS: &str = include_str!("transcripts/example/commands.txt");
const FILES: &str = include_str!("transcripts/example/proc.files");

fn target() -> FakeTarget {
    FakeTarget::new().transcript(COMMANDS).recording(FILES)
}

#[test]
fn the_kernel_is_told_with_its_time() {
    let (data, _) = target().call(&module(), "{{identifier}}_kernel", json!({})).unwrap();
    assert_eq!(data, json!({"release": "6.12.48+deb13-amd64", "up_seconds": 86422}));
}

#[test]
fn a_file_in_another_form_is_an_error_and_no_number() {
    let odd = target().file("/proc/uptime", "soon\n");
    let problem = odd.call(&module(), "{{identifier}}_kernel", json!({})).unwrap_err();
    assert_eq!(problem.code, "UNEXPECTED_OUTPUT");
}

#[test]
fn a_unit_is_restarted_by_one_plan() {
    let target = target();
    let plans = target.plans();
    let (data, _) = target.call(&module(), "{{identifier}}_restart", json!({"service": "nginx"})).unwrap();
    assert_eq!(data, json!({"restarted": true}));
    let restart = Command::new("systemctl").args(["restart", "--", "nginx"]).as_root();
    let expected = Change::new("Restart nginx").step(Step::run(restart).uninterruptible()).affects("nginx");
    assert_eq!(*plans.borrow(), [expected]);
}

/// Every client has the descriptions of all tools in its context.
#[test]
fn each_tool_takes_little_of_a_models_context() {
    module().description().tools.iter().for_each(testkit::takes_little_context);
}
