//! The tools of the sdk with this package manager, against a fake target, which answers with what was recorded.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::testkit::{FakeTarget, transcript};
use module_{{identifier}}::module;
use serde_json::{Value, json};

const BEFORE: &str = include_str!("transcripts/example/commands.txt");
/// After the installation of greet-more.
const AFTER: &str = "$ {{program}} list\n[exit 0]\nbase 1.0\ngreet 1.0\ngreet-more 2.0\n";

fn target() -> FakeTarget {
    let mut target = FakeTarget::new().transcript(BEFORE);
    target.distro.package_manager = "{{program}}".to_owned();
    target
}

/// The target, which answers in another way after a plan has run.
fn changing() -> FakeTarget {
    transcript(AFTER).iter().fold(target(), |target, (argv, output)| {
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
fn what_is_installed_is_listed_with_its_versions() {
    let data = told(target(), "pkg_list_installed", json!({}));
    let names: Vec<_> = data.as_array().unwrap().iter().map(|package| &package["name"]).collect();
    assert_eq!(names, ["base", "greet"]);
    assert_eq!(data[1]["version"], "1.0");
}

#[test]
fn a_list_in_another_form_is_an_error_and_not_a_shorter_list() {
    let odd = FakeTarget::new().answer(&["{{program}}", "list"], 0, "base 1.0\nbase\n", "");
    assert_eq!(refused(odd, "pkg_list_installed", json!({})).code, "UNEXPECTED_OUTPUT");
}

#[test]
fn the_repositories_are_searched_and_a_package_is_described() {
    let data = told(target(), "pkg_search", json!({"query": "hello"}));
    let names: Vec<_> = data.as_array().unwrap().iter().map(|found| &found["name"]).collect();
    assert_eq!(names, ["greet", "greet-more"]);
    let data = told(target(), "pkg_info", json!({"package": "greet"}));
    assert_eq!((&data["installed"], &data["candidate"]), (&json!("1.0"), &json!("2.0")));
}

#[test]
fn updates_and_the_past_are_told() {
    let data = told(target(), "pkg_check_updates", json!({}));
    assert!(data.to_string().contains("greet"), "{data}");
    let data = told(target(), "pkg_history", json!({}));
    assert!(data.to_string().contains("2026-01-31T10:00:00Z"), "{data}");
}

#[test]
fn a_package_is_installed_by_one_command_and_looked_at_afterwards() {
    let target = changing();
    let plans = target.plans();
    let data = told(target, "pkg_install", json!({"package": "greet-more"}));
    assert!(data.to_string().contains("greet-more"), "{data}");
    let plans = plans.borrow();
    let plan = format!("{plans:?}");
    assert!(plans.len() == 1 && plan.contains(r#"args: ["install", "--", "greet-more"]"#), "{plan}");
}

#[test]
fn what_the_manager_refuses_is_a_problem_with_a_code() {
    let problem = refused(target(), "pkg_remove", json!({"package": "base"}));
    assert_eq!(problem.code, "DEPENDENCY_CONFLICT");
    let problem = refused(target(), "pkg_install", json!({"package": "gret"}));
    assert_eq!(problem.code, "PACKAGE_NOT_FOUND");
    assert!(problem.message.contains("greet"), "{problem:?}");
}
