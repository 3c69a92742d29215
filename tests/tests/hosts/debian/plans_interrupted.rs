//! Tests on a real host a plan that is cancelled, whose client goes away, or that meets another plan. In its middle it
//! waits for a pipe that the test opens.

use linux_sysadmin_tests::{Client, Machine, Plan, Step, way};
use serde_json::{Value, json};

const NEW: &str = "/srv/planner/new";

/// A command that waits until the test reads from the pipe, and writes "through" to it. Its undo does nothing.
fn gate(pipe: &str) -> Step {
    let tee = Step::run(&["tee", "--", pipe]).with("stdin", "through").with("duration", "slow");
    tee.undo(&["true"])
}

/// A plan with a step that can be undone, an uninterruptible step, and a step that must not run.
fn held_up() -> Plan {
    Plan::of([
        Step::write(NEW, "new\n"),
        gate("/srv/plan/gate").uninterruptible(),
        Step::run(&["touch", "--", "/srv/plan/late"]),
    ])
}

async fn is_in_the_middle(machine: &Machine, client: &mut Client, id: i64) {
    client.until_runs(machine, id, "tee -- /srv/plan/gate").await;
    assert!(machine.has(NEW), "the step before has been done");
}

/// Reads from the pipe. A step that was killed writes nothing.
fn let_through(machine: &Machine, pipe: &str) {
    assert_eq!(machine.sh(&format!("timeout 60 cat {pipe}")), "through");
    machine.until_ended(&format!("tee -- {pipe}"));
}

fn pipes(machine: &Machine) {
    machine.sh("rm -f /srv/plan/gate /srv/plan/second; mkfifo /srv/plan/gate /srv/plan/second");
}

/// The record of the end of the only change.
fn ended(machine: &Machine) -> Value {
    let ended = machine.recorded("root", "change-ended");
    assert_eq!(ended["interrupted"], true, "{ended}");
    assert_eq!(ended["outcome"], "undone", "{ended}");
    ended
}

#[tokio::test]
async fn a_cancelled_plan_finishes_the_step_that_must_not_be_interrupted_and_undoes_the_others() {
    let test = "a_cancelled_plan_finishes_the_step_that_must_not_be_interrupted_and_undoes_the_others";
    let Some(machine) = Machine::by(way(), test) else { return };
    let mut client = machine.serve().await;
    pipes(&machine);
    let before = machine.snapshot();
    let id = client.begin(held_up().apply()).await;
    is_in_the_middle(&machine, &mut client, id).await;
    client.cancel(id).await;
    let_through(&machine, "/srv/plan/gate");
    let ended = ended(&machine);
    assert_eq!(ended["steps_done"], 2, "{ended}");
    machine.is_still(&before, "a cancelled plan");
    machine.nothing_is_left_behind();
    // The server lives, and no lock is held.
    client.done(&Plan::of([Step::run(&["touch", "--", "/srv/plan/late"])])).await;
    machine.audit_is_valid("root", "root");
}

#[tokio::test]
async fn a_cancelled_plan_ends_the_step_that_may_be_interrupted_and_undoes_the_others() {
    let test = "a_cancelled_plan_ends_the_step_that_may_be_interrupted_and_undoes_the_others";
    let Some(machine) = Machine::by(way(), test) else { return };
    let mut client = machine.serve().await;
    pipes(&machine);
    let before = machine.snapshot();
    let undone = &["touch", "--", "/srv/plan/undone"];
    let plan = Plan::of([Step::write(NEW, "new\n"), gate("/srv/plan/gate").undo(undone)]);
    let id = client.begin(plan.apply()).await;
    is_in_the_middle(&machine, &mut client, id).await;
    client.cancel(id).await;
    machine.until_ended("tee -- /srv/plan/gate");
    let ended = ended(&machine);
    assert_eq!(ended["steps_done"], 1, "{ended}");
    machine.is_still(&before, "a cancelled plan");
    client.done(&Plan::of([Step::run(&["touch", "--", "/srv/plan/late"])])).await;
    machine.audit_is_valid("root", "root");
}

#[tokio::test]
async fn a_plan_that_is_cancelled_before_its_first_step_never_begins() {
    let Some(machine) = Machine::by(way(), "a_plan_that_is_cancelled_before_its_first_step_never_begins")
    else {
        return;
    };
    let mut client = machine.serve().await;
    let before = machine.snapshot();
    let plan = Plan::of([Step::write(NEW, "new\n")]);
    let id = client.begin(json!({"plan": plan.json(), "pause_file": "/run/planner/go"})).await;
    client.until_paused(id).await;
    client.cancel(id).await;
    machine.sh("touch /run/planner/go");
    // This call is answered after everything that the cancelled call may still do.
    client.done(&Plan::of([Step::run(&["true"])])).await;
    machine.is_still(&before, "a plan that was cancelled in time");
    let begun = machine.audit("root").iter().filter(|event| event["event"] == "change-begun").count();
    assert_eq!(begun, 1, "the second one");
}

#[tokio::test]
async fn a_server_whose_client_leaves_or_that_is_asked_to_end_ends_when_the_plan_is_undone() {
    let test = "a_server_whose_client_leaves_or_that_is_asked_to_end_ends_when_the_plan_is_undone";
    let Some(machine) = Machine::by(way(), test) else { return };
    for how in ["end of input", "TERM", "INT", "HUP"] {
        let mut client = machine.serve().await;
        pipes(&machine);
        let before = machine.snapshot();
        // The end may be noticed during the first wait or during the second, which may be interrupted. The plan ends there.
        let plan = held_up().step(gate("/srv/plan/second"));
        let plan = Plan::new(how).with("steps", {
            let mut steps = plan.json()["steps"].clone();
            steps.as_array_mut().expect("steps").remove(2);
            steps
        });
        let id = client.begin(plan.apply()).await;
        is_in_the_middle(&machine, &mut client, id).await;
        match how {
            "end of input" => client.close_input(),
            signal => machine.signal("root", signal),
        }
        let_through(&machine, "/srv/plan/gate");
        assert_eq!(client.ended().await.0.code(), Some(0), "{how}");
        // The server has ended, so everything else has ended too.
        machine.is_still(&before, how);
        assert!(
            !machine.holds("pgrep --full --exact '([^ ]*/)?tee -- /srv/plan/.*'"),
            "{how}: a process is left"
        );
        machine.nothing_is_left_behind();
        let ended = machine.audit("root").into_iter().rfind(|event| event["event"] == "change-ended");
        let ended = ended.expect("the end is on record");
        assert_eq!(
            (&ended["interrupted"], &ended["outcome"]),
            (&json!(true), &json!("undone")),
            "{how}: {ended}"
        );
        machine.audit_is_valid("root", "root");
    }
}

#[tokio::test]
async fn a_plan_of_another_call_waits_for_its_turn() {
    let Some(machine) = Machine::by(way(), "a_plan_of_another_call_waits_for_its_turn") else { return };
    let mut client = machine.serve().await;
    pipes(&machine);
    let first = Plan::of([Step::write(NEW, "first\n"), gate("/srv/plan/gate").uninterruptible()]);
    let second = Plan::of([Step::write(NEW, "second\n"), Step::run(&["touch", "--", "/srv/plan/late"])]);
    let first = client.begin(first.apply()).await;
    is_in_the_middle(&machine, &mut client, first).await;
    let second = client.begin(second.apply()).await;
    // Calls that look go on meanwhile: the later call is answered earlier.
    let looked = client.envelope("planner_apply", Plan::of([Step::run(&["true"])]).dry_run()).await;
    assert_eq!(looked["status"], "success", "{looked}");
    assert!(!machine.has("/srv/plan/late"));
    let_through(&machine, "/srv/plan/gate");
    for id in [first, second] {
        let envelope = client.outcome(id).await;
        assert_eq!(envelope["status"], "success", "{envelope}");
    }
    assert_eq!(machine.read(NEW), "second\n");
}

/// Runs several of these plans through each server at once. All must succeed, and leave the host as it is. Each home has its
/// own record, and an account can have several homes.
async fn run_at_once(machine: &Machine, servers: &[(&str, &str)], plan: &Plan) {
    const EACH: usize = 8;
    let mut clients = Vec::new();
    for (account, home) in servers {
        clients.push(machine.serve_as(account, home).await);
    }
    let mut asked = Vec::new();
    for _ in 0..EACH {
        for (number, client) in clients.iter_mut().enumerate() {
            asked.push((number, client.begin(plan.apply()).await));
        }
    }
    for (number, id) in asked {
        let envelope = clients[number].outcome(id).await;
        assert_eq!(envelope["status"], "success", "{:?}: {envelope}", servers[number]);
    }
    machine.nothing_is_left_behind();
    for (account, home) in servers {
        machine.audit_is_valid(account, home);
        let ended = machine.audit(home).into_iter().filter(|event| event["event"] == "change-ended");
        let of_this_home = servers.iter().filter(|(_, other)| other == home).count();
        assert_eq!(ended.filter(|event| event["outcome"] == "done").count(), of_this_home * EACH, "{home}");
    }
}

/// A plan that takes something of which there is only one. It fails where another plan has it.
fn token(machine: &Machine) -> Plan {
    machine.sh("touch /srv/plan/token");
    let take = Step::run(&["rm", "--", "/srv/plan/token"]).undo(&["true"]);
    Plan::of([take, Step::run(&["id", "--user"]).with("privilege", "caller"), {
        Step::run(&["touch", "--", "/srv/plan/token"])
    }])
}

#[tokio::test]
async fn plans_of_an_accounts_servers_run_one_after_the_other_and_are_on_one_record() {
    let test = "plans_of_an_accounts_servers_run_one_after_the_other_and_are_on_one_record";
    let Some(machine) = Machine::by(way(), test) else { return };
    let plan = token(&machine);
    run_at_once(&machine, &[("root", "root"), ("root", "root"), ("root", "root")], &plan).await;
}

#[tokio::test]
async fn plans_of_several_homes_of_an_account_run_one_after_the_other() {
    let test = "plans_of_several_homes_of_an_account_run_one_after_the_other";
    let Some(machine) = Machine::by(way(), test) else { return };
    let plan = token(&machine);
    run_at_once(&machine, &[("root", "root"), ("root", "other")], &plan).await;
}

#[tokio::test]
async fn a_plan_is_held_against_what_the_one_before_it_left() {
    let Some(machine) = Machine::by(way(), "a_plan_is_held_against_what_the_one_before_it_left") else {
        return;
    };
    let before = machine.snapshot();
    // The directory exists only while a plan is in its middle. A plan that waits before it looks never sees it.
    let inside = "/srv/plan/inside";
    let plan = Plan::of([
        Step::make_directory(inside, 0o700),
        Step::run(&["touch", "--", "/srv/plan/inside/x"]),
        Step::run(&["rm", "--", "/srv/plan/inside/x"]),
        Step::run(&["rmdir", "--", inside]),
    ]);
    run_at_once(&machine, &[("root", "root"), ("root", "root"), ("root", "root")], &plan).await;
    machine.is_still(&before, "plans that put back what they do");
}
