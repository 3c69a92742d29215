//! Tests on a real host the preview of a plan, its question, the order of its steps, and its record.

use linux_sysadmin_tests::{Expected, Machine, Plan, Step, line, way};
use serde_json::{Value, json};

/// A plan with two steps of different kinds, both of which change the host.
fn two_steps() -> Plan {
    Plan::of([Step::run(&["touch", "--", "/srv/plan/ran"]), Step::write("/srv/planner/new", "one\ntwo\n")])
}

#[tokio::test]
async fn a_dry_run_changes_nothing_and_shows_every_step() {
    let Some(machine) = Machine::by(way(), "a_dry_run_changes_nothing_and_shows_every_step") else { return };
    machine.sh("echo old > /srv/planner/existing; echo gone > /srv/planner/removed");
    let mut client = machine.serve().await;
    let before = machine.snapshot();
    let plan = Plan::new("Change everything")
        .step(Step::run(&["touch", "--", "/srv/plan/a file"]).undo(&["rm", "--", "/srv/plan/a file"]))
        .step(
            Step::write("/srv/planner/new", "new\n")
                .with("mode", 0o600)
                .with("owner", json!(["admin", "adm"]))
                .with("validate", line(&["test", "-s", "{}"])),
        )
        .step(Step::write("/srv/planner/existing", "changed\n"))
        .step(Step::remove("/srv/planner/removed"))
        .step(Step::make_directory("/srv/plan/made", 0o750))
        .with("warnings", json!(["It may hurt"]))
        .with("affected_services", json!(["cron.service"]))
        .with("dry_run", line(&["echo", "simulated"]));
    let envelope = client.envelope("planner_apply", plan.dry_run()).await;
    machine.is_still(&before, "a dry run");
    machine.nothing_is_left_behind();
    assert_eq!((&envelope["status"], &envelope["dry_run"]), (&json!("success"), &json!(true)), "{envelope}");

    let applied = &envelope["data"]["applied"];
    assert_eq!(applied["dry_run"], true, "the module is told, too: {envelope}");
    assert_eq!(applied["outputs"].as_array().map(Vec::len), Some(1), "{envelope}");
    assert_eq!(applied["outputs"][0]["stdout"], "simulated\n", "{envelope}");

    let preview = &envelope["preview"];
    assert_eq!(preview["description"], "Change everything", "{preview}");
    assert_eq!(preview["warnings"], json!(["It may hurt"]), "{preview}");
    assert_eq!(preview["affected_services"], json!(["cron.service"]), "{preview}");
    assert!(preview.get("command").is_none(), "{preview}");
    let steps = preview["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 5, "{preview}");
    assert_eq!(steps[0]["run"], "touch -- '/srv/plan/a file'", "{preview}");
    assert!(steps[0]["undo"].to_string().contains("rm -- '/srv/plan/a file'"), "{preview}");
    assert_eq!(steps[1]["write"], "/srv/planner/new", "{preview}");
    assert!(steps[1]["diff"].as_str().expect("a diff").contains("\n+new\n"), "{preview}");
    for word in ["admin", "adm", "600"] {
        assert!(steps[1].to_string().contains(word), "{word}: {preview}");
    }
    assert!(steps[1]["validate"].to_string().contains("test -s"), "{preview}");
    let sum = "7aa7a5359173d05b63cfd682e3c38487f3cb4f7f1d60659fe59fab1505977d4c";
    assert_eq!(steps[1]["sha256"], sum, "of the contents: {preview}");
    assert_eq!(steps[2]["write"], "/srv/planner/existing", "{preview}");
    assert!(steps[2]["diff"].as_str().expect("a diff").contains("\n-old\n+changed\n"), "{preview}");
    assert_eq!(steps[3]["remove"], "/srv/planner/removed", "{preview}");
    assert!(steps[3]["diff"].as_str().expect("a diff").contains("\n-gone"), "{preview}");
    assert_eq!(steps[4]["make_directory"], "/srv/plan/made", "{preview}");
    assert!(steps[4]["mode"].to_string().contains("750"), "{preview}");
}

#[tokio::test]
async fn one_command_alone_is_shown_as_the_very_line_that_runs() {
    let Some(machine) = Machine::by(way(), "one_command_alone_is_shown_as_the_very_line_that_runs") else {
        return;
    };
    let mut client = machine.serve().await;
    let plan = Plan::of([Step::run(&["touch", "--", "/srv/plan/it's $(id) *"])]);
    let shown = client.envelope("planner_apply", plan.dry_run()).await;
    let line = shown["preview"]["command"].as_str().unwrap_or_else(|| panic!("{shown}")).to_owned();
    assert_eq!(line, r"touch -- '/srv/plan/it'\''s $(id) *'");
    assert!(shown["preview"].get("steps").is_none(), "{shown}");
    assert!(!machine.has("/srv/plan/it*"));

    let ran = client.apply(&plan).await;
    assert_eq!(ran["command_executed"], line.as_str(), "{ran}");
    // No shell has read the line, and a shell would read the same words.
    assert_eq!(machine.sh("ls -A /srv/plan"), "it's $(id) *\n");
    machine.sh(&format!("rm -- /srv/plan/*; {line}"));
    assert_eq!(machine.sh("ls -A /srv/plan"), "it's $(id) *\n");
}

#[tokio::test]
async fn the_plan_that_was_shown_is_the_plan_that_runs_and_is_on_record() {
    let test = "the_plan_that_was_shown_is_the_plan_that_runs_and_is_on_record";
    let Some(machine) = Machine::by(way(), test) else { return };
    let mut client = machine.serve().await;
    let before = machine.snapshot();
    let shown = client.envelope("planner_apply", two_steps().dry_run()).await;
    client.done(&two_steps()).await;
    let begun = machine.recorded("root", "change-begun");
    assert_eq!(begun["plan"]["steps"], shown["preview"]["steps"], "{begun}");
    assert_eq!(machine.read("/srv/planner/new"), "one\ntwo\n");
    assert_eq!(machine.sh("stat -c '%a %U:%G %s' /srv/planner/new"), "644 root:root 8\n");
    let expected = [
        Expected { name: "/srv/planner/new", why: "a step" },
        Expected { name: "/srv/plan/ran", why: "a step" },
    ];
    machine.is_still_but(&before, &expected, "nothing else changed");
    machine.nothing_is_left_behind();

    // The dry run is a call without a change. The other call has a beginning, an end and an answer.
    let events: Vec<Value> = machine.audit("root");
    let events: Vec<_> = events.iter().map(|event| event["event"].as_str().expect("a name")).collect();
    assert_eq!(events, ["call", "change-begun", "change-ended", "call"]);
    let ended = machine.recorded("root", "change-ended");
    assert_eq!((&ended["id"], &ended["outcome"]), (&begun["id"], &json!("done")), "{ended}");
    assert_eq!(ended["interrupted"], false, "{ended}");
    let call = machine.recorded("root", "call");
    assert_eq!((&call["tool"], &call["status"]), (&json!("planner_apply"), &json!("success")), "{call}");
    assert_eq!(call["change"], begun["id"], "{call}");
    machine.audit_is_valid("root", "root");
}

#[tokio::test]
async fn steps_run_in_their_order_and_every_command_has_an_output() {
    let Some(machine) = Machine::by(way(), "steps_run_in_their_order_and_every_command_has_an_output") else {
        return;
    };
    let mut client = machine.serve().await;
    let number = |number: usize| {
        Step::run(&["tee", "--append", "--", "/srv/plan/order"]).with("stdin", format!("{number}\n"))
    };
    let plan = Plan::of((0..10).map(number))
        .step(Step::write("/srv/planner/new", "between"))
        .step(Step::run(&["id", "--user"]).with("privilege", "caller"));
    let outputs = client.done(&plan).await;
    let said: Vec<_> = outputs.iter().map(|output| output["stdout"].as_str().expect("text")).collect();
    let numbers = ["0\n", "1\n", "2\n", "3\n", "4\n", "5\n", "6\n", "7\n", "8\n", "9\n"];
    assert_eq!(said, [&numbers[..], &["0\n"]].concat());
    assert_eq!(machine.read("/srv/plan/order"), numbers.concat());
}

#[tokio::test]
async fn only_the_exit_codes_that_the_step_names_are_success() {
    let Some(machine) = Machine::by(way(), "only_the_exit_codes_that_the_step_names_are_success") else {
        return;
    };
    let mut client = machine.serve().await;
    for (argv, success, works) in [
        (&["false"][..], json!([]), false),
        (&["false"], json!([0]), false),
        (&["false"], json!([1]), true),
        (&["false"], json!([0, 1]), true),
        (&["true"], json!([]), true),
        (&["true"], json!([1]), false),
        (&["true"], json!([0, 7]), true),
    ] {
        let envelope = client.apply(&Plan::of([Step::run(argv).with("success", success.clone())])).await;
        let expected = if works { "success" } else { "error" };
        assert_eq!(envelope["status"], expected, "{argv:?} {success}: {envelope}");
        assert_eq!(envelope.get("failed_step"), (!works).then_some(&json!(0)), "{envelope}");
    }
}

#[tokio::test]
async fn a_grave_plan_waits_for_a_yes_and_nothing_has_run() {
    let Some(machine) = Machine::by(way(), "a_grave_plan_waits_for_a_yes_and_nothing_has_run") else {
        return;
    };
    machine.configure("root", "{}\n");
    let mut client = machine.serve().await;
    let before = machine.snapshot();
    let of_grant = Plan::of([Step::run(&["systemctl", "stop", "--", "systemd-networkd.service"])]);
    for (plan, risk) in [
        (two_steps().with("risk", "high"), "high"),
        (two_steps().with("risk", "critical"), "critical"),
        // Two grants match, though the plan says that it is harmless.
        (of_grant.clone(), "critical"),
        (of_grant.with("risk", "low"), "critical"),
    ] {
        let envelope = client.apply(&plan).await;
        machine.is_still(&before, risk);
        assert_eq!(envelope["status"], "confirmation_required", "{envelope}");
        assert_eq!(envelope["error_code"], "CONFIRMATION_REQUIRED", "{envelope}");
        assert_eq!(envelope["risk_level"], risk, "{envelope}");
        assert_eq!(envelope["dry_run_available"], true, "{envelope}");
        let preview = &envelope["preview"];
        assert!(preview.get("steps").is_some() != preview.get("command").is_some(), "{preview}");
        assert!(preview["escalation_reason"].is_string(), "{preview}");
        // A dry run needs no yes, and shows the same.
        let shown = client.envelope("planner_apply", plan.dry_run()).await;
        assert_eq!(shown["status"], "success", "{shown}");
        for member in ["steps", "command", "description", "warnings", "affected_services"] {
            assert_eq!(shown["preview"][member], preview[member], "{member}: {shown}");
        }
    }
    assert!(machine.audit("root").iter().all(|event| event["event"] == "call"), "no change has begun");
    // Below the threshold no call asks, also where the plan states a lower risk.
    let touch = Step::run(&["touch", "--", "/srv/plan/ran"]);
    client.done(&Plan::of([touch]).with("risk", "read-only")).await;
}

#[tokio::test]
async fn the_threshold_is_the_operators() {
    let Some(machine) = Machine::by(way(), "the_threshold_is_the_operators") else { return };
    for (threshold, risk, asked) in [
        ("low", "moderate", true),
        ("moderate", "moderate", true),
        ("high", "moderate", false),
        ("critical", "high", false),
        ("critical", "critical", true),
    ] {
        machine.configure("root", &format!("safety:\n  confirmation_threshold: {threshold}\n"));
        let mut client = machine.serve().await;
        let plan = Plan::of([Step::run(&["true"])]).with("risk", risk);
        let envelope = client.apply(&plan).await;
        let expected = if asked { "confirmation_required" } else { "success" };
        assert_eq!(envelope["status"], expected, "{threshold} {risk}: {envelope}");
        assert_eq!(client.close().await.0.code(), Some(0));
    }
}

#[tokio::test]
async fn a_tool_that_only_looks_cannot_change_anything() {
    let Some(machine) = Machine::by(way(), "a_tool_that_only_looks_cannot_change_anything") else { return };
    let mut client = machine.serve().await;
    let before = machine.snapshot();
    for arguments in [two_steps().apply(), json!({"plan": two_steps().json(), "swallow": true})] {
        let envelope = client.envelope("planner_apply_readonly", arguments).await;
        assert_eq!(envelope["status"], "error", "{envelope}");
        assert_eq!(envelope["error_code"], "READ_ONLY_TOOL", "{envelope}");
    }
    machine.is_still(&before, "a read-only tool");
}

#[tokio::test]
async fn a_call_applies_one_plan_and_no_second() {
    let Some(machine) = Machine::by(way(), "a_call_applies_one_plan_and_no_second") else { return };
    let mut client = machine.serve().await;
    let second = Plan::of([Step::run(&["touch", "--", "/srv/plan/second"])]);
    let arguments = json!({"first": two_steps().json(), "second": second.json()});
    let envelope = client.envelope("planner_twice", arguments).await;
    assert_eq!(envelope["status"], "error", "{envelope}");
    assert_eq!(envelope["error_code"], "SECOND_PLAN", "{envelope}");
    assert!(machine.has("/srv/plan/ran") && machine.has("/srv/planner/new"), "the first one ran");
    assert!(!machine.has("/srv/plan/second"), "the second one didn't");
    let begun = machine.audit("root").iter().filter(|event| event["event"] == "change-begun").count();
    assert_eq!(begun, 1);
}

#[tokio::test]
async fn a_module_cannot_call_a_broken_plan_a_success() {
    let Some(machine) = Machine::by(way(), "a_module_cannot_call_a_broken_plan_a_success") else { return };
    let mut client = machine.serve().await;
    let before = machine.snapshot();
    let plan = two_steps().step(Step::run(&["false"]));
    let mut arguments = plan.apply();
    arguments["swallow"] = json!(true);
    let envelope = client.envelope("planner_apply", arguments).await;
    assert_eq!(envelope["status"], "error", "{envelope}");
    assert_eq!(envelope["failed_step"], 2, "{envelope}");
    assert!(envelope["error_code"].as_str().is_some_and(|code| !code.is_empty()), "{envelope}");
    machine.is_still_but(
        &before,
        &[Expected { name: "/srv/plan/ran", why: "a command that says no undo" }],
        "a plan that broke",
    );
}

#[tokio::test]
async fn what_somebody_holds_is_not_touched_and_the_holder_is_named() {
    let test = "what_somebody_holds_is_not_touched_and_the_holder_is_named";
    let Some(machine) = Machine::by(way(), test) else { return };
    let mut root = machine.serve().await;
    // This account doesn't see which files root's processes have open.
    let mut admin = machine.serve_as("admin", "admin").await;
    machine.sh("touch /srv/plan/held /run/planner/held");
    for (lock, path, how) in [
        (json!({"file": "/run/planner/held"}), "/run/planner/held", "fcntl.flock(held, fcntl.LOCK_EX)"),
        // On an overlay, as on btrfs, /proc/locks and stat name different devices for the same file.
        (json!({"file": "/srv/plan/held"}), "/srv/plan/held", "fcntl.flock(held, fcntl.LOCK_EX)"),
        (json!({"file": "/srv/plan/held"}), "/srv/plan/held", "fcntl.lockf(held, fcntl.LOCK_EX)"),
        (json!("package-database"), "/var/lib/dpkg/lock-frontend", "fcntl.lockf(held, fcntl.LOCK_EX)"),
    ] {
        let plan = two_steps().lock(lock);
        let script = format!(
            "import fcntl, os, sys\nheld = open('{path}', 'a')\n{how}\n\
             print(os.getpid(), flush=True)\nsys.stdin.read()"
        );
        let (holder, pid) = machine.helper(&script);
        for client in [&mut root, &mut admin] {
            let before = machine.snapshot();
            let envelope = client.apply(&plan).await;
            machine.is_still(&before, how);
            assert_eq!(envelope["status"], "blocked", "{envelope}");
            assert_eq!(envelope["error_code"], "RESOURCE_LOCKED", "{envelope}");
            let lock_info = &envelope["lock_info"];
            assert_eq!(lock_info["held_by_pid"].to_string(), pid, "{envelope}");
            assert_eq!(lock_info["held_by_process"], "python3", "{envelope}");
            assert_eq!(lock_info["held_by_user"], "root", "{envelope}");
        }
        holder.end();
        root.done(&plan).await;
        machine.sh("rm -f /srv/plan/ran /srv/planner/new");
    }
    machine.audit_is_valid("root", "root");
}

#[tokio::test]
async fn an_account_with_sudo_does_what_root_does() {
    let Some(machine) = Machine::by(way(), "an_account_with_sudo_does_what_root_does") else { return };
    let mut client = machine.serve_as("admin", "admin").await;
    let shown = client.envelope("planner_apply", two_steps().dry_run()).await;
    let run = shown["preview"]["steps"][0]["run"].as_str().unwrap_or_else(|| panic!("{shown}"));
    assert!(run.starts_with("sudo -n ") && run.ends_with("touch -- /srv/plan/ran"), "{run}");
    let before = machine.snapshot();
    let broken = two_steps().step(Step::run(&["false"]));
    let envelope = client.apply(&broken).await;
    assert_eq!(envelope["failed_step"], 2, "{envelope}");
    let ran = Expected { name: "/srv/plan/ran", why: "a command that says no undo" };
    machine.is_still_but(&before, &[ran], "a plan that broke");
    client.done(&two_steps().step(Step::run(&["id", "--user"]).with("privilege", "caller"))).await;
    assert_eq!(machine.sh("stat -c %U:%G /srv/plan/ran /srv/planner/new"), "root:root\nroot:root\n");
    machine.nothing_is_left_behind();
    machine.audit_is_valid("admin", "admin");
}
