//! A plan with a part that no grant covers is refused on a real host as a whole, before its first step.

use linux_sysadmin_tests::{Machine, Plan, Step, line, way};
use serde_json::{Value, json};

/// A plan with a granted step that would change the host. It stands before the parts that aren't granted.
fn first() -> Plan {
    Plan::of([Step::run(&["touch", "--", "/srv/plan/ran"]).undo(&["rm", "--", "/srv/plan/ran"])])
}

fn with_env(argv: &[&str], name: &str, value: &str) -> Value {
    let mut line = line(argv);
    line["env"] = json!({name: value});
    line
}

#[tokio::test]
async fn a_plan_with_one_part_that_is_not_granted_does_not_begin() {
    let Some(machine) = Machine::by(way(), "a_plan_with_one_part_that_is_not_granted_does_not_begin") else {
        return;
    };
    machine
        .sh("echo old > /srv/planner/existing; ln -s /etc /srv/plan/out; ln -s /etc/shadow /srv/plan/shadow;
         touch /run/planner/readable");
    let mut client = machine.serve().await;
    let before = machine.snapshot();
    let run = |argv: &[&str]| first().step(Step::run(argv));
    let write = |path: &str| first().step(Step::write(path, "x"));
    let validated =
        |argv: &[&str]| first().step(Step::write("/srv/planner/existing", "x").with("validate", line(argv)));
    let step = |step: Step| first().step(step);
    let user = |name: &str| json!({"user": name});
    let plans = [
        // Steps that aren't granted.
        ("another program", run(&["uname"])),
        ("another program by its path", run(&["/usr/bin/touch", "--", "/srv/plan/x"])),
        ("another place", run(&["touch", "--", "/etc/x"])),
        ("through `..`", run(&["touch", "--", "/srv/plan/../x"])),
        ("a relative path", run(&["touch", "--", "x"])),
        ("an option more", run(&["touch", "--no-create", "--", "/srv/plan/x"])),
        ("an argument more", run(&["touch", "--", "/srv/plan/x", "/srv/plan/y"])),
        ("an option as a value", run(&["systemctl", "start", "--", "--now"])),
        ("another verb", run(&["systemctl", "mask", "--", "cron.service"])),
        ("where the path leads", run(&["touch", "--", "/srv/plan/out/x"])),
        ("where the link leads", run(&["touch", "--", "/srv/plan/shadow"])),
        ("stdin", step(Step::run(&["touch", "--", "/srv/plan/x"]).with("stdin", "x"))),
        ("a variable", step(Step::run(&["true"]).with("env", json!({"LD_PRELOAD": "/srv/plan/x.so"})))),
        ("a user", step(Step::run(&["true"]).with("privilege", user("admin")))),
        ("root's rights for a caller's", run(&["id", "--user"])),
        (
            "rights that nobody can be sure of",
            step(Step::run(&["true"]).with("privilege", "root-if-available")),
        ),
        // Undos that aren't granted.
        ("an undo", step(Step::run(&["true"]).undo(&["uname"]))),
        ("an undo of a file", step(Step::write("/srv/planner/new", "x").undo(&["uname"]))),
        ("an undo elsewhere", step(Step::run(&["true"]).undo(&["rm", "--", "/srv/planner/existing"]))),
        ("an undo's variable", step(Step::run(&["true"]).undo_by(with_env(&["true"], "PATH", "/srv/plan")))),
        ("after the undo", first().after_undo(&["uname"])),
        // Validations that aren't granted.
        ("a validation by what changes", validated(&["tee", "--", "{}"])),
        ("a validation that isn't granted", validated(&["grep", "x", "{}"])),
        (
            "a validation of what isn't granted",
            step(Step::write("/srv/plan/x", "x").with("validate", line(&["visudo", "-cf", "{}"]))),
        ),
        ("a dry run by what looks", first().with("dry_run", line(&["true"]))),
        ("a dry run by what changes", first().with("dry_run", line(&["touch", "--", "/srv/plan/x"]))),
        ("a dry run that isn't granted", first().with("dry_run", line(&["uname"]))),
        // Locks that aren't granted.
        ("a lock outside", first().lock(json!({"file": "/etc/hostname"}))),
        ("a lock through `..`", first().lock(json!({"file": "/srv/plan/../../etc/hostname"}))),
        ("where the lock leads", first().lock(json!({"file": "/srv/plan/out/hostname"}))),
        ("a lock of a secret", first().lock(json!({"file": "/etc/shadow"}))),
        ("a lock of a secret behind a link", first().lock(json!({"file": "/srv/plan/shadow"}))),
        // Files that aren't granted.
        ("a file outside", write("/etc/hostname")),
        ("a file through `..`", write("/srv/planner/../hostname")),
        ("a file below", write("/srv/planner/below/x")),
        ("a relative file", write("etc/planner/x")),
        ("the directory itself", write("/srv/planner")),
        ("a file that is only read", write("/run/planner/readable")),
        ("where the directory leads", write("/srv/plan/out/hostname")),
        ("a secret", write("/etc/shadow")),
        (
            "a file by another account",
            step(Step::write("/srv/planner/x", "x").with("privilege", user("admin"))),
        ),
        (
            "a file by whoever",
            step(Step::write("/srv/planner/x", "x").with("privilege", "root-if-available")),
        ),
        ("a removal outside", step(Step::remove("/etc/hostname"))),
        ("a removal through `..`", step(Step::remove("/srv/plan/../../etc/hostname"))),
        ("a removal of what is only read", step(Step::remove("/run/planner/readable"))),
        ("a directory outside", step(Step::make_directory("/etc/made", 0o755))),
        ("a directory through `..`", step(Step::make_directory("/srv/plan/../made", 0o755))),
    ];
    for (what, plan) in &plans {
        for arguments in [plan.apply(), plan.dry_run()] {
            let envelope = client.envelope("planner_apply", arguments).await;
            assert_eq!(envelope["status"], "error", "{what}: {envelope}");
            assert_eq!(envelope["error_code"], "CAPABILITY_DENIED", "{what}: {envelope}");
            assert!(!machine.has("/srv/plan/ran"), "{what}: the first step ran");
        }
    }
    machine.is_still(&before, "plans that were refused");
    machine.nothing_is_left_behind();
    assert!(machine.audit("root").iter().all(|event| event["event"] == "call"), "no change has begun");
    // The granted parts work, so the others were the reason.
    client.done(&first().step(Step::write("/srv/planner/existing", "x"))).await;
}

#[tokio::test]
async fn a_validation_names_the_staged_copy_once_and_as_a_whole_argument() {
    let test = "a_validation_names_the_staged_copy_once_and_as_a_whole_argument";
    let Some(machine) = Machine::by(way(), test) else { return };
    let mut client = machine.serve().await;
    let before = machine.snapshot();
    for argv in [
        &["test", "-s", "/srv/planner/new"][..],
        &["test", "{}", "{}"],
        &["test", "-s", "/srv/planner/{}"],
        &["test", "-s", "{}.new"],
        &["{}"],
    ] {
        let write = Step::write("/srv/planner/new", "x").with("validate", line(argv));
        let envelope = client.apply(&first().step(write)).await;
        assert_eq!(envelope["error_code"], "INVALID_VALIDATION", "{argv:?}: {envelope}");
    }
    machine.is_still(&before, "plans that were refused");
}

#[tokio::test]
async fn a_plan_that_makes_no_sense_is_refused_before_its_first_step() {
    let Some(machine) = Machine::by(way(), "a_plan_that_makes_no_sense_is_refused_before_its_first_step")
    else {
        return;
    };
    let mut client = machine.serve().await;
    let before = machine.snapshot();
    for (what, plan) in [
        ("no step", Plan::new("Nothing")),
        ("a mode that is none", first().step(Step::write("/srv/planner/x", "x").with("mode", 0o200_000))),
        ("an owner that is none", first().step(owned("no-such-account", "root"))),
        ("a group that is none", first().step(owned("root", "no-such-group"))),
        ("an option as an owner", first().step(owned("--reference=/etc/shadow", "root"))),
        ("a number as an owner", first().step(owned("0", "0"))),
    ] {
        let envelope = client.apply(&plan).await;
        assert_eq!(envelope["status"], "error", "{what}: {envelope}");
        machine.is_still(&before, what);
    }
}

fn owned(owner: &str, group: &str) -> Step {
    Step::write("/srv/planner/x", "x").with("owner", json!([owner, group]))
}
