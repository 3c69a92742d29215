//! The tool as the host calls it.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::testkit::{FakeTarget, takes_little_context};
use linux_sysadmin_sdk::{Pipeline, Privilege, Problem, Step};
use module_commands::module;
use serde_json::{Value, json};

/// A target with these programs.
fn target(programs: &[&str]) -> FakeTarget {
    let there = |target: FakeTarget, name: &&str| target.file(&format!("/usr/bin/{name}"), "");
    programs.iter().fold(FakeTarget::new().file("/usr/local/bin/x", ""), there)
}

fn answer(target: FakeTarget, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), "command_run", arguments).map(|(data, reply)| (data, reply.notes))
}

#[test]
fn a_tool_takes_little_of_a_models_context() {
    for tool in &module().description().tools {
        takes_little_context(tool);
    }
}

#[test]
fn a_command_that_looks_is_answered_with_its_output() {
    let looked = target(&["uname"]).answer(&["uname", "-s"], 0, "Linux\n", "");
    let (data, notes) = answer(looked, json!({"argv": ["uname", "-s"]})).unwrap();
    assert_eq!(data, json!({"commands": [{"exit_code": 0, "stdout": "Linux\n"}]}));
    assert!(notes.is_empty());
}

#[test]
fn a_pipeline_reports_every_exit_code_and_the_last_output() {
    let looked = target(&["grep", "wc"])
        .answer(&["grep", "x", "/etc/none"], 2, "", "grep: /etc/none: No such file or directory\n")
        .answer(&["wc", "-l"], 0, "0\n", "");
    let pipeline = json!({"pipeline": [["grep", "x", "/etc/none"], ["wc", "-l"]]});
    let (data, _) = answer(looked, pipeline).unwrap();
    assert_eq!(
        data["commands"],
        json!([
            {
                "program": "grep", "exit_code": 2,
                "stderr": "grep: /etc/none: No such file or directory\n",
            },
            {"program": "wc", "exit_code": 0, "stdout": "0\n"},
        ])
    );
}

#[test]
fn a_command_that_may_change_something_is_a_plan() {
    // The fake target refuses a command that has no recording, as the host refuses one that isn't known to look.
    for (arguments, pipelines, success) in [
        (
            json!({"argv": ["touch", "/srv/x"], "as_root": true, "directory": "/srv", "timeout_seconds": 5}),
            vec![vec![vec!["env", "--chdir=/srv", "touch", "/srv/x"]]],
            false,
        ),
        (
            json!({"steps": [["touch", "/srv/x"], ["touch", "/srv/y"]], "as_root": true}),
            vec![vec![vec!["touch", "/srv/x"]], vec![vec!["touch", "/srv/y"]]],
            true,
        ),
    ] {
        let there = target(&["touch", "env"]).needs_plan();
        let plans = there.plans();
        answer(there, arguments.clone()).unwrap();
        let made = plans.borrow();
        let expected: Vec<Step> = pipelines
            .iter()
            .map(|pipeline| {
                let step = Step::run_pipeline(piped(pipeline, &arguments));
                if success { step.success(&[0]) } else { step }
            })
            .collect();
        assert_eq!(made.len(), 1);
        assert_eq!(made[0].steps(), expected, "{arguments}");
    }
}

fn piped(pipeline: &[Vec<&str>], arguments: &Value) -> Pipeline {
    let command = |argv: &Vec<&str>| {
        let command = linux_sysadmin_sdk::Command::new(argv[0]).args(argv[1..].iter().copied());
        let command = command.duration(linux_sysadmin_sdk::DurationCategory::LongRunning);
        let command = command.privilege(Privilege::Root);
        linux_sysadmin_sdk::Command { keep: linux_sysadmin_sdk::Keep::Tail, ..command }
    };
    let seconds = arguments["timeout_seconds"].as_u64().unwrap_or(60);
    Pipeline { commands: pipeline.iter().map(command).collect(), seconds: u32::try_from(seconds).ok() }
}

#[test]
fn what_cannot_be_run_is_refused_with_what_was_expected() {
    for (arguments, code, words) in [
        (json!({}), "INVALID_COMMAND", "exactly one of argv"),
        (json!({"argv": ["a"], "steps": [["a"], ["b"]]}), "INVALID_COMMAND", "exactly one of argv"),
        (json!({"argv": [""]}), "INVALID_COMMAND", "without a program"),
        (json!({"argv": ["uname", "a\u{0}b"]}), "INVALID_COMMAND", "word 1 holds a NUL byte"),
        (json!({"argv": ["uname", "x".repeat(100_000)]}), "INVALID_COMMAND", "stdin"),
        (json!({"argv": ["uname"], "directory": "srv"}), "INVALID_COMMAND", "absolute"),
        (json!({"argv": ["uname"], "as_root": true, "user": "ada"}), "INVALID_COMMAND", "either"),
        (json!({"steps": [["uname"], ["uname"]], "stdin": "x"}), "INVALID_COMMAND", "not to steps"),
        (json!({"argv": ["unmae"], "directory": "/srv"}), "PROGRAM_NOT_FOUND", "no program unmae"),
        (json!({"steps": [["uname"], ["unmae"]], "directory": "/srv"}), "PROGRAM_NOT_FOUND", "unmae"),
    ] {
        let problem = answer(target(&["uname", "env"]).needs_plan(), arguments.clone()).unwrap_err();
        assert_eq!(problem.code, code, "{arguments}");
        assert!(problem.message.contains(words), "{arguments}: {}", problem.message);
    }
}

#[test]
fn a_missing_program_is_told_with_similar_names() {
    for arguments in [json!({"argv": ["unmae"]}), json!({"steps": [["ls"], ["unmae"]]})] {
        let problem = answer(target(&["uname", "ls"]).needs_plan(), arguments.clone()).unwrap_err();
        assert!(problem.message.contains("no program unmae"), "{arguments}: {}", problem.message);
        assert_eq!(problem.remediation, ["Programs with a similar name: uname"], "{arguments}");
    }
}

#[test]
fn a_tool_that_does_the_same_is_named_once() {
    let there = target(&["systemctl", "chmod"]).needs_plan();
    let steps = json!({"steps": [["systemctl", "restart", "x"], ["systemctl", "restart", "y"], ["chmod", "0644", "/srv/x"]]});
    let (_, notes) = answer(there, steps).unwrap();
    assert_eq!(notes.len(), 2);
    assert!(notes[0].starts_with("svc_restart does this as well: it ") && notes[1].starts_with("perms_set"));
}
