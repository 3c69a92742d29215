//! A grave call asks in the way that its client supports, and waits. Only a yes runs the plan, and exactly the plan.

use linux_sysadmin_tests::{Asked, Client, Plan, Sandbox, Step, Way};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const APPLY: &str = "planner_apply";

/// A plan with two steps of different kinds.
fn plan() -> Plan {
    Plan::new("Make two things")
        .step(Step::write("/srv/plan/new", "one\ntwo\n"))
        .step(Step::run(&["touch", "--", "/srv/plan/ran"]).undo(&["rm", "--", "/srv/plan/ran"]))
}

fn grave() -> Plan {
    plan().with("risk", "high")
}

fn is_error(envelope: &Value, code: &str) {
    let said = (&envelope["status"], &envelope["error_code"]);
    assert_eq!(said, (&json!("error"), &json!(code)), "{envelope}");
}

/// The plan's id and hash, as the question shows them.
fn plan_of(text: &str) -> (String, String) {
    let line = text.lines().rfind(|line| line.starts_with("Plan: ")).unwrap_or_else(|| panic!("{text}"));
    let words: Vec<_> = line.trim_end_matches(')').split_whitespace().collect();
    assert_eq!((words.len(), words[2]), (4, "(SHA-256"), "{line}");
    (words[1].to_owned(), words[3].to_owned())
}

#[tokio::test]
async fn a_yes_runs_the_very_plan_that_was_asked_about_and_is_on_record() {
    let Some(sandbox) = Sandbox::new("a_yes_runs_the_very_plan_that_was_asked_about_and_is_on_record") else {
        return;
    };
    for way in Way::ALL {
        sandbox.begin_anew();
        let mut client = sandbox.serve(way).await;
        let shown = client.envelope(APPLY, grave().dry_run()).await["preview"].clone();
        let asked = client.is_asked(way, APPLY, grave().apply()).await;
        sandbox.is_untouched("nobody has answered");
        let waits = json!({"decision": "asked", "decided_by": null, "change": null, "risk": "moderate",
                           "status": "confirmation_required", "error_code": "CONFIRMATION_REQUIRED"});

        let envelope = client.answers(&asked, "accept").await;
        assert_eq!(envelope["status"], "success", "{way:?}: {envelope}");
        assert_eq!(sandbox.plan_files(), ["new", "ran"]);
        assert_eq!(sandbox.read("/srv/plan/new").as_deref(), Some("one\ntwo\n"));

        let question = sandbox.recorded("call", waits).await;
        let begun = sandbox.events("change-begun").pop().expect("a change");
        assert_eq!(begun["plan"], shown, "{way:?}: the plan that was shown is the plan that ran");
        assert_eq!((&begun["risk"], &begun["decision"]), (&json!("high"), &json!("allowed")), "{begun}");
        assert_eq!(begun["decided_by"], way.decided_by(), "{begun}");
        match way {
            Way::TwoStep => {
                assert_eq!(asked.message["preview"], shown, "{asked:?}");
                assert_eq!(asked.message["confirmation"]["id"], begun["id"], "{asked:?}");
                assert_eq!(asked.message["confirmation"]["way"], "two-step", "{asked:?}");
                assert_eq!(asked.message["risk_level"], "high", "{asked:?}");
            }
            _ => {
                let (id, sha256) = plan_of(asked.text());
                assert_eq!((&begun["id"], &begun["plan_sha256"]), (&json!(id), &json!(sha256)), "{begun}");
            }
        }
        let call = sandbox.events("call").pop().expect("a call");
        assert_eq!((&call["decision"], &call["status"]), (&json!("allowed"), &json!("success")), "{call}");
        assert_eq!(
            (&call["decided_by"], &call["change"]),
            (&json!(way.decided_by()), &begun["id"]),
            "{call}"
        );
        assert_eq!(call["trace_id"], question["trace_id"], "they are one call");
        assert_eq!(client.close().await.0.code(), Some(0));
        sandbox.audit_is_valid();
    }
}

#[tokio::test]
async fn a_no_runs_nothing_and_is_on_record() {
    let Some(sandbox) = Sandbox::new("a_no_runs_nothing_and_is_on_record") else { return };
    for way in [Way::InputRequired, Way::Elicitation] {
        let mut client = sandbox.serve(way).await;
        for action in ["decline", "cancel"] {
            let asked = client.is_asked(way, APPLY, grave().apply()).await;
            let envelope = client.answers(&asked, action).await;
            is_error(&envelope, "CONFIRMATION_DECLINED");
            sandbox.is_untouched(action);
            let call = sandbox.events("call").pop().expect("a call");
            assert_eq!((&call["decision"], &call["change"]), (&json!("refused"), &json!(null)), "{call}");
            assert_eq!(call["decided_by"], "elicitation", "{call}");
        }
        // The call asks anew, and this time the answer is yes.
        let asked =
            client.is_asked(way, APPLY, Plan::of([Step::run(&["true"])]).with("risk", "high").apply());
        let asked = asked.await;
        assert_eq!(client.answers(&asked, "accept").await["status"], "success");
        assert_eq!(client.close().await.0.code(), Some(0));
        sandbox.begin_anew();
    }
}

#[tokio::test]
async fn in_two_steps_what_is_not_confirmed_never_runs() {
    let Some(sandbox) = Sandbox::new("in_two_steps_what_is_not_confirmed_never_runs") else { return };
    let mut client = sandbox.serve(Way::TwoStep).await;
    let calm = Plan::of([Step::run(&["true"])]);
    for (plan, needs) in [(grave(), json!(true)), (calm, Value::Null)] {
        let tried = client.envelope(APPLY, plan.dry_run()).await;
        assert_eq!((&tried["status"], &tried["needs_confirmation"]), (&json!("success"), &needs), "{tried}");
    }
    for confirmed in [json!(null), json!(false)] {
        let mut arguments = grave().apply();
        for _ in 0..2 {
            let asked = client.is_asked(Way::TwoStep, APPLY, arguments.clone()).await;
            assert_eq!(asked.message["dry_run_available"], true, "{asked:?}");
            let remedy = asked.message["remediation"].to_string();
            assert!(remedy.contains("confirmed: true"), "{remedy}");
            arguments["confirmed"] = confirmed.clone();
        }
    }
    sandbox.is_untouched("nobody said yes");
}

#[tokio::test]
async fn a_call_is_the_same_in_whichever_spelling_it_is_confirmed() {
    let test = "a_call_is_the_same_in_whichever_spelling_it_is_confirmed";
    let Some(sandbox) = Sandbox::new(test) else { return };
    let mut client = sandbox.serve(Way::TwoStep).await;
    let real = (APPLY, grave().apply());
    let older = ("planner_execute", json!({"change": real.1["plan"]}));
    let note = "understood: planner_execute as planner_apply; change as plan";
    for (first, second) in [(&older, &real), (&real, &older), (&older, &older)] {
        let notes = |call: &(&str, Value)| if call.0 == APPLY { Value::Null } else { json!([note]) };
        let asked = client.is_asked(Way::TwoStep, first.0, first.1.clone()).await;
        assert_eq!((&asked.message["tool"], &asked.message["notes"]), (&json!(APPLY), &notes(first)));
        sandbox.is_untouched("nobody said yes");
        let mut confirmed = second.1.clone();
        confirmed["confirmed"] = true.into();
        let envelope = client.envelope(second.0, confirmed).await;
        assert_eq!(
            (&envelope["status"], &envelope["tool"]),
            (&json!("success"), &json!(APPLY)),
            "{envelope}"
        );
        assert_eq!(envelope["notes"], notes(second), "{envelope}");
        assert_eq!(sandbox.plan_files(), ["new", "ran"]);
        let begun = sandbox.events("change-begun").pop().expect("a change");
        assert_eq!(begun["tool"], APPLY, "{begun}");
        assert!(
            begun["arguments"]["plan"].is_object() && begun["arguments"].get("change").is_none(),
            "{begun}"
        );
        // The change and its records are removed for the next pair.
        assert_eq!(client.close().await.0.code(), Some(0));
        sandbox.begin_anew();
        client = sandbox.serve(Way::TwoStep).await;
    }
}

#[tokio::test]
async fn the_question_says_what_would_run_where_why_and_what_is_undone() {
    let test = "the_question_says_what_would_run_where_why_and_what_is_undone";
    let Some(sandbox) = Sandbox::new(test) else { return };
    sandbox.write("/srv/plan/changed", "kept\nold\n");
    let plan = Plan::new("Change everything")
        .step(Step::run(&["touch", "--", "/srv/plan/it's $(id) *"]).undo(&[
            "rm",
            "--",
            "/srv/plan/it's $(id) *",
        ]))
        .step(Step::write("/srv/plan/changed", "kept\nnew\n").with("mode", 0o640))
        .step(Step::run(&["tee", "--", "/srv/plan/read"]).with("stdin", "from stdin\n"))
        .step(Step::make_directory("/srv/plan/made", 0o750))
        .after_undo(&["true"])
        .with("warnings", json!(["It may hurt"]))
        .with("affected_services", json!(["cron.service"]))
        .with("risk", "critical");
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("/proc");
    let sha256 = |contents: &str| {
        use sha2::{Digest, Sha256};
        hex::encode(Sha256::digest(contents))
    };
    for way in [Way::InputRequired, Way::Elicitation] {
        let mut client = sandbox.serve(way).await;
        let asked = client.is_asked(way, APPLY, plan.apply()).await;
        let (id, hash) = plan_of(asked.text());
        let expected = format!(
            r"May this be done on localhost ({hostname}), as root?

Tool:    planner_apply, of module planner 0.1.0
Client:  test 1
Risk:    critical
Because: critical rather than the tool's own: the module says so of this plan; writes /srv/plan/changed {theirs}; makes /srv/plan/made {theirs}
Says:    Change everything
Warning: It may hurt
Stops or restarts: cron.service

1. run touch -- '/srv/plan/it'\''s $(id) *'
   undo: rm -- '/srv/plan/it'\''s $(id) *'
2. write /srv/plan/changed
   mode 0640
   SHA-256 {changed}
   | --- a/srv/plan/changed
   | +++ b/srv/plan/changed
   | @@ -1,2 +1,2 @@
   |  kept
   | -old
   | +new
3. run tee -- /srv/plan/read
   reading (SHA-256 {read})
   | --- /dev/null
   | +++ b/stdin
   | @@ -0,0 +1 @@
   | +from stdin
4. make directory /srv/plan/made
   mode 0750
After an undo:
   run true

Undo:    none of step 3; where a step fails, the others before it are undone
Plan:    {id} (SHA-256 {hash})
",
            hostname = hostname.trim(),
            theirs = "with root's rights, and root's programs may run or go by what is there",
            changed = sha256("kept\nnew\n"),
            read = sha256("from stdin\n"),
        );
        assert_eq!(asked.text(), expected, "{way:?}");
        let request = match way {
            Way::InputRequired => &asked.message["inputRequests"]["confirm"],
            _ => &asked.message,
        };
        assert_eq!(request["method"], "elicitation/create", "{request}");
        // The question takes yes or no, and has nothing to fill in.
        let schema = &request["params"]["requestedSchema"];
        assert_eq!((&schema["type"], &schema["properties"]), (&json!("object"), &json!({})), "{request}");
    }
}

#[tokio::test]
async fn confirmed_is_in_the_schemas_of_changing_tools_in_two_steps_and_only_there() {
    let test = "confirmed_is_in_the_schemas_of_changing_tools_in_two_steps_and_only_there";
    let Some(sandbox) = Sandbox::new(test) else { return };
    let (nothing, forms) = (json!({}), json!({"elicitation": {"form": {}}}));
    for (confirmation, version, capabilities, two_step) in [
        ("auto", "2024-11-05", nothing.clone(), true),
        ("auto", "2025-06-18", nothing.clone(), true),
        ("auto", "2026-07-28", nothing.clone(), true),
        ("auto", "2025-06-18", json!({"elicitation": {}}), false),
        ("auto", "2025-06-18", forms.clone(), false),
        ("auto", "2025-06-18", json!({"elicitation": {"url": {}}}), true),
        ("auto", "2026-07-28", json!({"elicitation": {}}), false),
        ("auto", "2026-07-28", forms.clone(), false),
        ("auto", "2026-07-28", json!({"elicitation": {"url": {}}}), true),
        ("two-step", "2025-06-18", forms.clone(), true),
        ("two-step", "2026-07-28", forms.clone(), true),
        ("terminal", "2025-06-18", nothing, false),
        ("terminal", "2026-07-28", forms, false),
    ] {
        let context = format!("{confirmation} {version} {capabilities}");
        sandbox.configure(&format!("safety:\n  confirmation: {confirmation}\n"));
        let mut client = sandbox.serve_for(version, capabilities).await;
        let listed = client.request("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
        assert_eq!(tools.len(), 3, "{listed}");
        for tool in tools {
            let changes = tool["annotations"]["readOnlyHint"] == false;
            let schema = &tool["inputSchema"];
            let confirmed = schema["properties"].get("confirmed");
            assert_eq!(
                confirmed,
                (changes && two_step)
                    .then_some(&json!({"type": "boolean", "description": "A person said yes"})),
                "{context}: {tool}"
            );
            assert!(!schema["required"].to_string().contains("confirmed"), "{context}: {tool}");
        }
        assert_eq!(client.close().await.0.code(), Some(0));
    }
}

#[tokio::test]
async fn the_operators_way_holds_whatever_the_client_can() {
    let Some(sandbox) = Sandbox::new("the_operators_way_holds_whatever_the_client_can") else { return };
    sandbox.configure("safety:\n  confirmation: two-step\n");
    for way in [Way::InputRequired, Way::Elicitation] {
        let mut client = sandbox.serve(way).await;
        let asked = client.is_asked(Way::TwoStep, APPLY, grave().apply()).await;
        assert_eq!(asked.message["confirmation"]["way"], "two-step", "{asked:?}");
    }
    sandbox.configure("safety:\n  confirmation: terminal\n");
    for way in Way::ALL {
        let mut client = sandbox.serve(way).await;
        // The same call made again still waits.
        let first = client.envelope(APPLY, grave().apply()).await;
        let second = client.envelope(APPLY, grave().apply()).await;
        for envelope in [&first, &second] {
            assert_eq!(envelope["status"], "confirmation_required", "{way:?}: {envelope}");
            assert_eq!(envelope["confirmation"]["way"], "terminal", "{way:?}: {envelope}");
            let id = envelope["confirmation"]["id"].as_str().expect("an id");
            let remedy = envelope["remediation"].to_string();
            assert!(remedy.contains(&format!("linux-sysadmin approve {id}")), "{envelope}");
        }
        assert_eq!(first["confirmation"]["id"], second["confirmation"]["id"], "{way:?}");
    }
    sandbox.is_untouched("nobody said yes");
}

#[tokio::test]
async fn only_what_reaches_the_threshold_is_asked_about() {
    let Some(sandbox) = Sandbox::new("only_what_reaches_the_threshold_is_asked_about") else { return };
    for (threshold, risk, is_asked) in [
        ("moderate", "moderate", true),
        ("high", "moderate", false),
        ("high", "high", true),
        ("critical", "high", false),
        ("critical", "critical", true),
    ] {
        sandbox.configure(&format!("safety:\n  confirmation_threshold: {threshold}\n"));
        for way in Way::ALL {
            let mut client = sandbox.serve(way).await;
            let plan = Plan::of([Step::run(&["true"])]).with("risk", risk);
            if is_asked {
                client.is_asked(way, APPLY, plan.apply()).await;
            } else {
                client.done(&plan).await;
            }
        }
    }
}

#[tokio::test]
async fn a_dry_run_is_asked_about_where_the_operator_says_so() {
    let Some(sandbox) = Sandbox::new("a_dry_run_is_asked_about_where_the_operator_says_so") else { return };
    sandbox.configure("safety:\n  dry_run_bypass_confirmation: false\n");
    for way in Way::ALL {
        let mut client = sandbox.serve(way).await;
        // Below the threshold a call never asks.
        let touch = Plan::of([Step::run(&["touch", "--", "/srv/plan/ran"])]);
        let shown = client.envelope(APPLY, touch.dry_run()).await;
        assert_eq!((&shown["status"], &shown["dry_run"]), (&json!("success"), &json!(true)), "{shown}");

        let asked = client.is_asked(way, APPLY, grave().dry_run()).await;
        match way {
            Way::TwoStep => {
                let message = asked.message["message"].as_str().expect("a message");
                assert!(message.starts_with("A dry run of this change "), "{message}");
            }
            _ => assert!(asked.text().starts_with("May this be simulated on localhost "), "{}", asked.text()),
        }
        let envelope = client.answers(&asked, "accept").await;
        assert_eq!((&envelope["status"], &envelope["dry_run"]), (&json!("success"), &json!(true)), "{way:?}");
        let steps = &envelope["preview"]["steps"];
        assert_eq!(steps.as_array().map(Vec::len), Some(2), "{envelope}");
        assert_eq!(
            (&steps[0]["write"], &steps[1]["run"]),
            (&json!("/srv/plan/new"), &json!("touch -- /srv/plan/ran")),
            "{envelope}"
        );
        assert!(steps[0]["diff"].to_string().contains("+one"), "{envelope}");
        let call = sandbox.events("call").pop().expect("a call");
        assert_eq!((&call["decision"], &call["change"]), (&json!("dry-run"), &json!(null)), "{call}");
        assert_eq!(call["decided_by"], way.decided_by(), "{call}");

        // Only the simulation was allowed.
        client.is_asked(way, APPLY, grave().apply()).await;
    }
    sandbox.is_untouched("a dry run");
}

#[tokio::test]
async fn what_the_program_itself_says_of_a_plan_is_in_the_question() {
    let Some(sandbox) = Sandbox::new("what_the_program_itself_says_of_a_plan_is_in_the_question") else {
        return;
    };
    let plan = grave().with("dry_run", json!({"program": "echo", "args": ["two things would be made"]}));
    for way in Way::ALL {
        let mut client = sandbox.serve(way).await;
        let asked = client.is_asked(way, APPLY, plan.apply()).await;
        let said = "two things would be made\n";
        match way {
            Way::TwoStep => {
                let output = asked.message["preview"]["dry_run_output"].as_str().unwrap_or_default();
                assert!(output.starts_with(said), "{asked:?}");
                let command = &asked.message["preview"]["dry_run_command"];
                assert_eq!(command, "echo 'two things would be made'");
            }
            _ => {
                let line = "echo 'two things would be made'";
                let simulated = format!("\nThe program's own simulation, {line}, says:\n   | {said}");
                assert!(asked.text().contains(&simulated), "{}", asked.text());
            }
        }
    }
}

#[tokio::test]
async fn while_a_call_waits_others_look_and_change() {
    let Some(sandbox) = Sandbox::new("while_a_call_waits_others_look_and_change") else { return };
    sandbox.configure("modules:\n  limits:\n    calls_at_once: 1\n    calls_waiting: 0\n");
    for way in Way::ALL {
        let mut client = sandbox.serve(way).await;
        let asked = client.is_asked(way, APPLY, grave().apply()).await;
        client.done(&Plan::of([Step::run(&["touch", "--", "/srv/plan/other"])])).await;
        let shown = client.envelope(APPLY, plan().dry_run()).await;
        assert_eq!(shown["status"], "success", "{shown}");
        assert_eq!(client.answers(&asked, "accept").await["status"], "success", "{way:?}");
        assert_eq!(sandbox.plan_files(), ["new", "other", "ran"], "{way:?}");
        assert_eq!(client.close().await.0.code(), Some(0));
        sandbox.begin_anew();
    }
}

#[tokio::test]
async fn a_client_hears_of_a_call_that_waits() {
    let Some(sandbox) = Sandbox::new("a_client_hears_of_a_call_that_waits") else { return };
    let mut client = sandbox.serve(Way::Elicitation).await;
    let call = client.begin(grave().apply()).await;
    let mut heard = Vec::new();
    client.receive_where(|message| message["method"] == "elicitation/create").await;
    for _ in 0..2 {
        let progress = client.receive_where(|message| message["method"] == "notifications/progress").await;
        assert_eq!(progress["params"]["progressToken"], "plan 1", "{progress}");
        heard.push(progress["params"]["progress"].as_f64().expect("a number"));
    }
    assert!(heard[0] < heard[1], "{heard:?}");
    client.cancel(call).await;
}

#[tokio::test]
async fn a_client_that_cannot_answer_after_all_is_no_yes() {
    let Some(sandbox) = Sandbox::new("a_client_that_cannot_answer_after_all_is_no_yes") else { return };
    let mut client = sandbox.serve(Way::Elicitation).await;
    for (kind, what) in [
        ("error", json!({"code": -32601, "message": "Method not found"})),
        ("error", json!({"code": -32603, "message": "\u{1b}[2Jthe user\nRisk:    low"})),
        ("result", json!({})),
        ("result", json!({"action": "yes"})),
        ("result", json!({"action": true})),
        ("result", json!("accept")),
        ("result", json!({"tools": []})),
    ] {
        let asked = client.is_asked(Way::Elicitation, APPLY, grave().apply()).await;
        client.responds(&asked, kind, what.clone()).await;
        let envelope = client.envelope_of(asked.call).await;
        is_error(&envelope, "CONFIRMATION_UNAVAILABLE");
        let message = envelope["message"].as_str().expect("a message");
        assert!(!message.contains('\u{1b}'), "{message}");
        sandbox.is_untouched(&what.to_string());
        let call = sandbox.events("call").pop().expect("a call");
        assert_eq!((&call["decision"], &call["decided_by"]), (&json!("asked"), &json!(null)), "{call}");
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_while_it_waits_never_runs() {
    let Some(sandbox) = Sandbox::new("a_call_that_is_cancelled_while_it_waits_never_runs") else { return };
    let mut client = sandbox.serve(Way::Elicitation).await;
    let asked = client.is_asked(Way::Elicitation, APPLY, grave().apply()).await;
    client.cancel(asked.call).await;
    let call = sandbox.recorded("call", json!({"error_code": "CANCELLED"})).await;
    assert_eq!((&call["decision"], &call["decided_by"]), (&json!("asked"), &json!(null)), "{call}");
    // No call waits for this answer any more.
    client.responds(&asked, "result", json!({"action": "accept", "content": {}})).await;
    client.done(&Plan::of([Step::run(&["true"])])).await;
    assert_eq!(sandbox.plan_files(), Vec::<String>::new());
    assert_eq!(client.close().await.0.code(), Some(0));
    assert_eq!(sandbox.events("change-begun").len(), 1, "the other one");
}

/// Asserts that none of the waiting calls has run, and that the end of each is on record.
async fn ended_with_nothing_done(sandbox: &Sandbox, client: Client, waited: usize, context: &str) {
    let (status, stderr) = client.ended().await;
    assert_eq!(status.code(), Some(0), "{context}: {stderr}");
    sandbox.is_untouched(context);
    let calls = sandbox.events("call");
    let ended = calls.iter().filter(|call| call["status"] == "error" && call["decision"] == "asked").count();
    assert_eq!(ended, waited, "{context}: {calls:?}");
}

#[tokio::test]
async fn a_server_that_ends_takes_what_waits_with_it() {
    let Some(sandbox) = Sandbox::new("a_server_that_ends_takes_what_waits_with_it") else { return };
    for way in Way::ALL {
        for by_signal in [false, true] {
            let context = format!("{way:?}, by signal: {by_signal}");
            let mut client = sandbox.serve(way).await;
            for number in 0..3 {
                let plan = grave().with("summary", format!("Number {number}"));
                client.is_asked(way, APPLY, plan.apply()).await;
            }
            if by_signal {
                let pid = Pid::from_raw(client.pid() as i32).expect("a process");
                kill_process(pid, Signal::TERM).expect("it is ours");
            } else {
                client.close_input();
            }
            ended_with_nothing_done(&sandbox, client, 3, &context).await;
            sandbox.begin_anew();
        }
    }
}

#[tokio::test]
async fn few_calls_wait_and_one_more_is_told_so() {
    let Some(sandbox) = Sandbox::new("few_calls_wait_and_one_more_is_told_so") else { return };
    let numbered = |number: usize| {
        let name = format!("/srv/plan/{number}");
        Plan::of([Step::run(&["touch", "--", &name])]).with("risk", "high").apply()
    };
    for way in [Way::InputRequired, Way::TwoStep] {
        let mut client = sandbox.serve(way).await;
        let mut waiting: Vec<Asked> = Vec::new();
        for number in 0..32 {
            waiting.push(client.is_asked(way, APPLY, numbered(number)).await);
        }
        is_error(&client.envelope(APPLY, numbered(32)).await, "TOO_MANY_WAITING");
        assert_eq!(sandbox.plan_files(), Vec::<String>::new(), "{way:?}");
        // An answered call makes room for another, and all others still wait.
        let first = waiting.remove(0);
        assert_eq!(client.answers(&first, "accept").await["status"], "success");
        waiting.push(client.is_asked(way, APPLY, numbered(32)).await);
        is_error(&client.envelope(APPLY, numbered(33)).await, "TOO_MANY_WAITING");
        for asked in &waiting {
            assert_eq!(client.answers(asked, "accept").await["status"], "success", "{way:?}");
        }
        assert_eq!(sandbox.plan_files().len(), 33, "{way:?}");
        assert_eq!(client.close().await.0.code(), Some(0));
        sandbox.begin_anew();
    }
}
