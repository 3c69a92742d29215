//! The client can't decide where a person at a terminal decides. It calls, waits, and calls again for the result.

use std::process::{Command, Output, Stdio};

use linux_sysadmin_tests::{Client, Plan, Sandbox, Step, Way, at_terminal, binary, guest};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

const APPLY: &str = "planner_apply";
const YES: &str = "of high risk, type yes:";

/// A plan that adds a line each time it runs.
fn counted() -> Plan {
    counted_in("count")
}

fn counted_in(name: &str) -> Plan {
    let path = format!("/srv/plan/{name}");
    let append = Step::run(&["tee", "--append", "--", &path]).with("stdin", "once\n");
    Plan::of([append]).with("risk", "high")
}

/// A sandbox where a person at a terminal decides.
fn machine(test: &str) -> Option<Sandbox> {
    let sandbox = Sandbox::new(test)?;
    sandbox.configure("safety:\n  confirmation: terminal\n");
    Some(sandbox)
}

/// Makes a call, which must wait for a person to decide; gives the call's id.
async fn waits(client: &mut Client, arguments: Value) -> String {
    let envelope = client.envelope(APPLY, arguments).await;
    assert_eq!(envelope["status"], "confirmation_required", "{envelope}");
    assert_eq!(envelope["confirmation"]["way"], "terminal", "{envelope}");
    envelope["confirmation"]["id"].as_str().expect("an id").to_owned()
}

/// Runs `linux-sysadmin` beside the server, without a terminal.
fn run(sandbox: &Sandbox, client: &Client, args: &[&str]) -> (Option<i32>, String) {
    let mut command = sandbox.beside(client, "setsid");
    let output = command.arg("--wait").arg(binary()).args(args).stdin(Stdio::null()).output();
    let Output { status, stdout, stderr } = output.expect("setsid(1)");
    (status.code(), String::from_utf8([stdout, stderr].concat()).expect("UTF-8"))
}

/// Types this at the question; gives the exit code and everything that was shown.
fn types(start: impl FnOnce(&str) -> Command, id: &str, prompt: &str, answer: &str) -> (Option<i32>, String) {
    at_terminal(start, &format!("$BIN approve {id}"), "", prompt, &format!("{answer}\n"))
}

fn approve(sandbox: &Sandbox, client: &Client, id: &str) -> String {
    let (code, seen) = types(|program| sandbox.beside(client, program), id, YES, "yes");
    assert_eq!(code, Some(0), "{seen}");
    seen
}

/// Approves a call that can't be done any more.
fn approve_in_vain(sandbox: &Sandbox, client: &Client, id: &str) {
    let (code, seen) = types(|program| sandbox.beside(client, program), id, YES, "yes");
    assert_eq!(code, Some(1), "{seen}");
    assert!(seen.contains("approved, but nothing was done: "), "{seen}");
}

fn deny(sandbox: &Sandbox, client: &Client, id: &str) {
    let (code, said) = run(sandbox, client, &["deny", id]);
    assert_eq!(code, Some(0), "{said}");
}

/// Asserts that the record says who has decided.
fn decided(sandbox: &Sandbox, decision: &str) {
    let call = sandbox.events("call").pop().expect("a call");
    assert_eq!(call["decision"], decision, "{call}");
    assert_eq!(call["decided_by"], json!({"terminal": {"uid": 0, "account": "root"}}), "{call}");
}

#[track_caller]
fn is_error(envelope: &Value, code: &str) {
    let said = (&envelope["status"], &envelope["error_code"]);
    assert_eq!(said, (&json!("error"), &json!(code)), "{envelope}");
}

fn count(sandbox: &Sandbox, name: &str) -> usize {
    sandbox.read(&format!("/srv/plan/{name}")).map_or(0, |lines| lines.lines().count())
}

#[tokio::test]
async fn what_a_person_approves_runs_once_and_the_same_call_has_its_outcome() {
    let test = "what_a_person_approves_runs_once_and_the_same_call_has_its_outcome";
    let Some(sandbox) = machine(test) else { return };
    for way in Way::ALL {
        let mut client = sandbox.serve(way).await;
        let shown = client.envelope(APPLY, counted().dry_run()).await["preview"].clone();
        let id = waits(&mut client, counted().apply()).await;
        // A second call gets the same question.
        assert_eq!(waits(&mut client, counted().apply()).await, id);
        let (code, said) = run(&sandbox, &client, &["pending", &id, "--json"]);
        assert_eq!(code, Some(0), "{said}");
        let pending: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(pending["preview"], shown, "{pending}");
        sandbox.is_untouched("nobody has decided");

        let seen = approve(&sandbox, &client, &id);
        assert!(seen.contains("tee --append -- /srv/plan/count"), "{seen}");
        assert!(seen.contains(pending["sha256"].as_str().expect("a hash")), "{seen}");
        let envelope = client.envelope(APPLY, counted().apply()).await;
        assert_eq!(envelope["status"], "success", "{envelope}");
        assert_eq!(count(&sandbox, "count"), 1);
        decided(&sandbox, "allowed");
        let begun = sandbox.events("change-begun").pop().expect("a change");
        assert_eq!((&begun["plan"], &begun["id"]), (&shown, &json!(id)), "{begun}");
        assert_eq!(begun["plan_sha256"], pending["sha256"], "{begun}");
        assert_eq!(begun["decided_by"], json!({"terminal": {"uid": 0, "account": "root"}}), "{begun}");

        // An approval holds for one call.
        let next = waits(&mut client, counted().apply()).await;
        assert_ne!(next, id);
        let (code, said) = run(&sandbox, &client, &["deny", &id]);
        assert_eq!(code, Some(1), "{said}");
        assert_eq!(count(&sandbox, "count"), 1);
        assert_eq!(client.close().await.0.code(), Some(0));
        sandbox.begin_anew();
    }
}

#[tokio::test]
async fn who_says_no_to_a_call_of_ones_own_has_its_answer_and_nothing_else() {
    let test = "who_says_no_to_a_call_of_ones_own_has_its_answer_and_nothing_else";
    let Some(sandbox) = Sandbox::new(test) else { return };
    let client = sandbox.serve(Way::TwoStep).await;
    let (modules, arguments) = (guest("planner"), counted().apply());
    let line = format!("$BIN call {APPLY} --modules {} --json --args '{arguments}'", modules.display());
    let (code, seen) = at_terminal(|program| sandbox.beside(&client, program), &line, "", YES, "no\n");
    let (_, behind) = seen.split_once(YES).unwrap_or_else(|| panic!("{seen}"));
    let (typed, answer) = behind.split_once('{').unwrap_or_else(|| panic!("{seen}"));
    assert_eq!((code, typed.trim()), (Some(1), "no"), "{seen}");
    assert!(answer.contains("CONFIRMATION_DECLINED"), "{seen}");
    sandbox.is_untouched("the answer was no");
}

#[tokio::test]
async fn what_a_person_denies_never_runs() {
    let Some(sandbox) = machine("what_a_person_denies_never_runs") else { return };
    let mut client = sandbox.serve(Way::TwoStep).await;
    let id = waits(&mut client, counted().apply()).await;
    deny(&sandbox, &client, &id);
    is_error(&client.envelope(APPLY, counted().apply()).await, "CONFIRMATION_DECLINED");
    decided(&sandbox, "refused");
    sandbox.is_untouched("denied");
    // A wrong answer decides nothing.
    let id = waits(&mut client, counted().apply()).await;
    let (code, seen) = types(|program| sandbox.beside(&client, program), &id, YES, "y");
    assert_eq!(code, Some(1), "{seen}");
    assert_eq!(waits(&mut client, counted().apply()).await, id);
    let (code, said) = run(&sandbox, &client, &["approve", &id]);
    assert_eq!(code, Some(2), "{said}");
    sandbox.is_untouched("not approved");
}

#[tokio::test]
async fn a_critical_plan_is_approved_by_its_targets_name() {
    let Some(sandbox) = machine("a_critical_plan_is_approved_by_its_targets_name") else { return };
    let mut client = sandbox.serve(Way::InputRequired).await;
    let critical = counted().with("risk", "critical");
    let id = waits(&mut client, critical.apply()).await;
    let prompt = "type the name of its target, localhost:";
    for (answer, code) in [("yes", 1), ("localhost", 0)] {
        assert_eq!(count(&sandbox, "count"), 0, "before {answer}");
        let (said, seen) = types(|program| sandbox.beside(&client, program), &id, prompt, answer);
        assert_eq!(said, Some(code), "{seen}");
    }
    assert_eq!(client.envelope(APPLY, critical.apply()).await["status"], "success");
    assert_eq!(count(&sandbox, "count"), 1);
}

#[tokio::test]
async fn a_client_can_neither_decide_nor_undo_what_a_person_decided() {
    let Some(sandbox) = machine("a_client_can_neither_decide_nor_undo_what_a_person_decided") else { return };
    let mut client = sandbox.serve(Way::InputRequired).await;
    let fifo = sandbox.path("/srv/plan/fifo");
    mknodat(CWD, fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("made");
    // The plan runs until its fifo is read.
    let held_up = counted_in("fifo");
    let mut confirmed = held_up.apply();
    confirmed["confirmed"] = json!(true);
    let mut answered = json!({"name": APPLY, "arguments": held_up.apply()});
    answered["inputResponses"] = json!({"confirm": {"action": "accept", "content": {}}});

    let id = waits(&mut client, held_up.apply()).await;
    let mut says = async |client: &mut Client, context: &str| {
        let envelope = client.envelope(APPLY, confirmed.clone()).await;
        is_error(&envelope, "INVALID_ARGUMENTS");
        for state in [id.as_str(), "", "rs1.x.y"] {
            answered["requestState"] = state.into();
            let answer = client.request("tools/call", answered.clone()).await;
            let envelope = &answer["result"]["structuredContent"];
            assert_eq!(envelope["error_code"], "CONFIRMATION_UNKNOWN", "{context}: {answer}");
        }
    };
    says(&mut client, "while it waits").await;
    assert_eq!(waits(&mut client, held_up.apply()).await, id);
    assert_eq!(sandbox.events("change-begun"), Vec::<Value>::new());

    approve(&sandbox, &client, &id);
    sandbox.recorded("change-begun", json!({"id": id})).await;
    says(&mut client, "while it runs").await;
    let call = client.begin(held_up.apply()).await;
    assert_eq!(sandbox.drain("/srv/plan/fifo", "once\n".len()).await, "once\n");
    assert_eq!(client.envelope_of(call).await["status"], "success");
    let ended = sandbox.recorded("change-ended", json!({"id": id})).await;
    assert_eq!((&ended["outcome"], &ended["interrupted"]), (&json!("done"), &json!(false)), "{ended}");
}

#[tokio::test]
async fn a_decision_is_about_its_own_call() {
    let Some(sandbox) = machine("a_decision_is_about_its_own_call") else { return };
    let mut client = sandbox.serve(Way::TwoStep).await;
    let id = waits(&mut client, counted().apply()).await;
    let other = waits(&mut client, counted_in("other").apply()).await;
    assert_ne!(id, other);
    approve(&sandbox, &client, &other);
    assert_eq!(waits(&mut client, counted().apply()).await, id);
    assert_eq!(client.envelope(APPLY, counted_in("other").apply()).await["status"], "success");
    assert_eq!(sandbox.plan_files(), ["other"]);
    deny(&sandbox, &client, &id);
    is_error(&client.envelope(APPLY, counted().apply()).await, "CONFIRMATION_DECLINED");
    assert_eq!(sandbox.plan_files(), ["other"]);
}

#[tokio::test]
async fn of_two_who_approve_one_does() {
    let Some(sandbox) = machine("of_two_who_approve_one_does") else { return };
    let mut client = sandbox.serve(Way::TwoStep).await;
    for round in 1..=3 {
        let id = waits(&mut client, counted().apply()).await;
        let mut codes: Vec<_> = std::thread::scope(|scope| {
            let person =
                || scope.spawn(|| types(|program| sandbox.beside(&client, program), &id, YES, "yes").0);
            [person(), person()].map(|person| person.join().expect("no panic")).into()
        });
        codes.sort();
        assert_eq!(codes, [Some(0), Some(1)]);
        assert_eq!(client.envelope(APPLY, counted().apply()).await["status"], "success");
        assert_eq!(count(&sandbox, "count"), round);
    }
}

#[tokio::test]
async fn what_has_changed_since_it_was_shown_is_not_done_however_it_was_approved() {
    let test = "what_has_changed_since_it_was_shown_is_not_done_however_it_was_approved";
    let Some(sandbox) = machine(test) else { return };
    let mut client = sandbox.serve(Way::TwoStep).await;
    sandbox.write("/srv/plan/file", "before\n");
    let write = Plan::of([Step::write("/srv/plan/file", "ours\n")]).with("risk", "high");
    let id = waits(&mut client, write.apply()).await;
    sandbox.write("/srv/plan/file", "theirs\n");
    approve_in_vain(&sandbox, &client, &id);
    is_error(&client.envelope(APPLY, write.apply()).await, "PLAN_STALE");
    assert_eq!(sandbox.read("/srv/plan/file").as_deref(), Some("theirs\n"));
    decided(&sandbox, "refused");

    let id = waits(&mut client, counted().apply()).await;
    sandbox.becomes("fedcba9876543210fedcba9876543210");
    approve_in_vain(&sandbox, &client, &id);
    is_error(&client.envelope(APPLY, counted().apply()).await, "PLAN_STALE");
    assert_eq!(count(&sandbox, "count"), 0);
}

#[tokio::test]
async fn a_server_that_ends_leaves_nothing_to_approve() {
    let Some(sandbox) = machine("a_server_that_ends_leaves_nothing_to_approve") else { return };
    let mut first = sandbox.serve(Way::TwoStep).await;
    let id = waits(&mut first, counted().apply()).await;
    assert_eq!(first.close().await.0.code(), Some(0));
    sandbox.is_untouched("the server has ended");
    let mut second = sandbox.serve(Way::TwoStep).await;
    let (code, said) = run(&sandbox, &second, &["deny", &id]);
    assert_eq!(code, Some(1), "{said}");
    let (code, said) = run(&sandbox, &second, &["pending"]);
    assert!(code == Some(0) && said.contains("nothing waits"), "{said}");
    // Another server asks a question of its own.
    assert_ne!(waits(&mut second, counted().apply()).await, id);
    sandbox.is_untouched("asked anew");
}
