//! Attempts to run a plan without a yes, or another plan than was shown. Each is refused, and the question can still be
//! answered. That a question expires is tested elsewhere, with a clock that doesn't take a quarter of an hour.

use std::os::unix::fs::symlink;

use linux_sysadmin_tests::{Asked, Client, Plan, Sandbox, Step, Way, line};
use serde_json::{Value, json};

const APPLY: &str = "planner_apply";

/// A plan that adds a line each time it runs.
fn counted() -> Plan {
    counted_in("count")
}

fn counted_in(name: &str) -> Plan {
    let path = format!("/srv/plan/{name}");
    let append = Step::run(&["tee", "--append", "--", &path]).with("stdin", "once\n");
    Plan::of([append]).with("risk", "high")
}

/// The number of times that the plan has run.
fn count(sandbox: &Sandbox, name: &str) -> usize {
    sandbox.read(&format!("/srv/plan/{name}")).map_or(0, |lines| lines.lines().count())
}

#[track_caller]
fn is_error(envelope: &Value, code: &str, context: &str) {
    let said = (&envelope["status"], &envelope["error_code"]);
    assert_eq!(said, (&json!("error"), &json!(code)), "{context}: {envelope}");
}

/// Calls with any answer; gives the envelope, or the error where there is none.
async fn says(client: &mut Client, params: Value) -> Value {
    let answer = client.request("tools/call", params).await;
    let envelope = answer["result"].get("structuredContent");
    envelope.or(answer.get("error")).unwrap_or_else(|| panic!("neither: {answer}")).clone()
}

/// Asserts that the question can still be answered, and that its plan then runs once.
async fn can_still_be_answered(client: &mut Client, sandbox: &Sandbox, asked: &Asked, context: &str) {
    assert_eq!(sandbox.plan_files(), Vec::<String>::new(), "{context}");
    let envelope = client.answers(asked, "accept").await;
    assert_eq!(envelope["status"], "success", "{context}: {envelope}");
    assert_eq!(count(sandbox, "count"), 1, "{context}");
}

#[tokio::test]
async fn confirmed_by_itself_confirms_nothing() {
    let Some(sandbox) = Sandbox::new("confirmed_by_itself_confirms_nothing") else { return };
    let mut confirmed = counted().apply();
    confirmed["confirmed"] = json!(true);
    for confirmation in ["auto", "two-step", "terminal"] {
        sandbox.configure(&format!("safety:\n  confirmation: {confirmation}\n"));
        for way in Way::ALL {
            let context = format!("{confirmation} {way:?}");
            let mut client = sandbox.serve(way).await;
            let counts = confirmation == "two-step" || (confirmation == "auto" && way == Way::TwoStep);
            // A plan that was never shown isn't confirmed by a second call either.
            for value in [json!(true), json!(true), json!(false), json!("true"), json!(1), json!([true])] {
                let mut arguments = counted().apply();
                arguments["confirmed"] = value.clone();
                if counts && value.is_boolean() {
                    // The plan is shown first in any case.
                    let asked = client.is_asked(Way::TwoStep, APPLY, arguments).await;
                    assert!(asked.message["preview"].is_object(), "{context}: {asked:?}");
                    assert_eq!(
                        asked.message["confirmation"].is_null(),
                        value == true,
                        "{context}: {asked:?}"
                    );
                    continue;
                }
                let envelope = client.envelope(APPLY, arguments).await;
                is_error(&envelope, "INVALID_ARGUMENTS", &context);
                let message = envelope["message"].as_str().expect("a message");
                let why = if counts { "expected true or false" } else { "confirmed is not taken here" };
                assert!(message.contains(why), "{context}: {message}");
            }
            sandbox.is_untouched(&context);

            // The argument is no answer to a waiting question either.
            if confirmation == "auto" && way != Way::TwoStep {
                let asked = client.is_asked(way, APPLY, counted().apply()).await;
                is_error(&client.envelope(APPLY, confirmed.clone()).await, "INVALID_ARGUMENTS", &context);
                can_still_be_answered(&mut client, &sandbox, &asked, &context).await;
            }
            if confirmation == "terminal" {
                let waits = client.envelope(APPLY, counted().apply()).await;
                assert_eq!(waits["status"], "confirmation_required", "{context}: {waits}");
                is_error(&client.envelope(APPLY, confirmed.clone()).await, "INVALID_ARGUMENTS", &context);
                sandbox.is_untouched(&context);
            }
            assert_eq!(client.close().await.0.code(), Some(0));
            sandbox.begin_anew();
        }
    }
}

#[tokio::test]
async fn an_answer_is_to_no_other_call_than_was_asked_about() {
    let Some(sandbox) = Sandbox::new("an_answer_is_to_no_other_call_than_was_asked_about") else { return };
    let with = |name: &str, value: Value| {
        let mut arguments = counted().apply();
        arguments[name] = value;
        (APPLY, arguments)
    };
    let others = [
        (APPLY, counted_in("other").apply()),
        (APPLY, counted().with("summary", "Something else").apply()),
        (APPLY, counted().step(Step::run(&["touch", "--", "/srv/plan/more"])).apply()),
        (APPLY, counted().with("risk", "critical").apply()),
        with("host", json!("another")),
        with("host", json!(["localhost", "another"])),
        with("dry_run", json!(true)),
        with("swallow", json!(true)),
        with("read", json!(["/srv/plan/count"])),
        ("planner_twice", json!({"first": counted().json(), "second": counted_in("other").json()})),
        ("planner_apply_readonly", counted().apply()),
        ("planner_no_such_tool", counted().apply()),
    ];
    for (tool, arguments) in &others {
        let context = format!("{tool} {arguments}");
        let mut client = sandbox.serve(Way::InputRequired).await;
        let asked = client.is_asked(Way::InputRequired, APPLY, counted().apply()).await;
        let mut params = asked.answered("accept");
        params["name"] = (*tool).into();
        params["arguments"] = arguments.clone();
        let said = says(&mut client, params).await;
        // For an unknown tool the error is the protocol's own.
        let code = said.get("data").unwrap_or(&said)["error_code"].clone();
        // An unknown host is reported first.
        let expected = if arguments.get("host").is_some() { "HOST_UNKNOWN" } else { "CONFIRMATION_MISMATCH" };
        assert_eq!(code, expected, "{context}: {said}");
        can_still_be_answered(&mut client, &sandbox, &asked, &context).await;
        assert_eq!(client.close().await.0.code(), Some(0));
        sandbox.begin_anew();

        let mut client = sandbox.serve(Way::TwoStep).await;
        let asked = client.is_asked(Way::TwoStep, APPLY, counted().apply()).await;
        let mut arguments = arguments.clone();
        arguments["confirmed"] = json!(true);
        let said = says(&mut client, json!({"name": tool, "arguments": arguments})).await;
        if arguments["dry_run"] != true {
            assert_ne!(said["status"], "success", "{context}: {said}");
        }
        assert_ne!(said["confirmation"]["id"], asked.message["confirmation"]["id"], "{context}");
        can_still_be_answered(&mut client, &sandbox, &asked, &context).await;
        assert_eq!(client.close().await.0.code(), Some(0));
        sandbox.begin_anew();
    }
}

#[tokio::test]
async fn a_yes_to_one_question_is_none_to_another() {
    let Some(sandbox) = Sandbox::new("a_yes_to_one_question_is_none_to_another") else { return };
    let mut client = sandbox.serve(Way::InputRequired).await;
    let one = client.is_asked(Way::InputRequired, APPLY, counted().apply()).await;
    let other = client.is_asked(Way::InputRequired, APPLY, counted_in("other").apply()).await;
    let mut params = one.answered("accept");
    params["requestState"] = other.state().into();
    is_error(&says(&mut client, params).await, "CONFIRMATION_MISMATCH", "the other one's state");
    can_still_be_answered(&mut client, &sandbox, &one, "the other one's state").await;
    assert_eq!(count(&sandbox, "other"), 0);
    assert_eq!(client.close().await.0.code(), Some(0));
    sandbox.begin_anew();

    let mut client = sandbox.serve(Way::Elicitation).await;
    let one = client.is_asked(Way::Elicitation, APPLY, counted().apply()).await;
    let other = client.is_asked(Way::Elicitation, APPLY, counted_in("other").apply()).await;
    let result = json!({"action": "accept", "content": {}});
    let (asked_by, nobodys) = ([&one.message["id"], &other.message["id"]], [json!(4711), json!(null)]);
    for id in nobodys.into_iter().chain([json!(one.call), json!(other.call)]) {
        if !asked_by.contains(&&id) {
            client.send(&json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
        }
    }
    client.done(&Plan::of([Step::run(&["true"])])).await;
    assert_eq!(sandbox.plan_files(), Vec::<String>::new(), "answers to nobody's question");
    assert_eq!(client.answers(&other, "accept").await["status"], "success");
    assert_eq!(sandbox.plan_files(), ["other"]);
    is_error(&client.answers(&one, "decline").await, "CONFIRMATION_DECLINED", "the first one");
    assert_eq!(sandbox.plan_files(), ["other"]);
}

#[tokio::test]
async fn a_question_asked_in_one_way_is_not_answered_in_another() {
    let Some(sandbox) = Sandbox::new("a_question_asked_in_one_way_is_not_answered_in_another") else {
        return;
    };
    let forms = json!({"elicitation": {"form": {}}});
    let mut confirmed = counted().apply();
    confirmed["confirmed"] = json!(true);
    // The client declares its capabilities with every request.
    let mut client = sandbox.serve(Way::InputRequired).await;
    let asked = client.is_asked(Way::InputRequired, APPLY, counted().apply()).await;
    client.can(json!({}));
    client.is_asked(Way::TwoStep, APPLY, confirmed.clone()).await;
    client.can(forms.clone());
    can_still_be_answered(&mut client, &sandbox, &asked, "asked by a result").await;
    assert_eq!(client.close().await.0.code(), Some(0));
    sandbox.begin_anew();

    let mut client = sandbox.serve_for("2026-07-28", json!({})).await;
    let asked = client.is_asked(Way::TwoStep, APPLY, counted().apply()).await;
    client.can(forms);
    is_error(&client.envelope(APPLY, confirmed).await, "INVALID_ARGUMENTS", "shown in two steps");
    client.can(json!({}));
    can_still_be_answered(&mut client, &sandbox, &asked, "shown in two steps").await;
}

#[tokio::test]
async fn a_name_that_is_another_machine_by_now_is_not_changed() {
    let Some(sandbox) = Sandbox::new("a_name_that_is_another_machine_by_now_is_not_changed") else { return };
    for way in Way::ALL {
        for other in ["fedcba9876543210fedcba9876543210", ""] {
            sandbox.becomes("0123456789abcdef0123456789abcdef");
            let mut client = sandbox.serve(way).await;
            let asked = client.is_asked(way, APPLY, counted().apply()).await;
            sandbox.becomes(other);
            let envelope = client.answers(&asked, "accept").await;
            is_error(&envelope, "PLAN_STALE", &format!("{way:?}"));
            let message = envelope["message"].as_str().expect("a message");
            assert!(message.contains("localhost is another machine"), "{message}");
            sandbox.is_untouched(&format!("{way:?}"));
            // A person did decide, and the call is refused all the same.
            let call = sandbox.events("call").pop().expect("a call");
            assert_eq!(call["decision"], "refused", "{call}");
            assert_eq!(call["decided_by"], way.decided_by(), "{call}");
        }
    }
}

#[tokio::test]
async fn a_file_that_has_changed_since_it_was_shown_is_not_written() {
    let Some(sandbox) = Sandbox::new("a_file_that_has_changed_since_it_was_shown_is_not_written") else {
        return;
    };
    let file = sandbox.path("/srv/plan/file");
    type Meanwhile = fn(&std::path::Path);
    let cases: [(&str, bool, Meanwhile); 6] = [
        ("other contents", true, |file| std::fs::write(file, "theirs\n").expect("written")),
        ("removed", true, |file| std::fs::remove_file(file).expect("removed")),
        ("a directory", true, |file| {
            std::fs::remove_file(file).and_then(|()| std::fs::create_dir(file)).expect("made");
        }),
        ("a link", true, |file| {
            std::fs::rename(file, file.with_file_name("moved")).expect("moved");
            symlink("moved", file).expect("linked");
        }),
        ("a second name", true, |file| {
            std::fs::hard_link(file, file.with_file_name("second")).expect("linked")
        }),
        ("created", false, |file| std::fs::write(file, "theirs\n").expect("written")),
    ];
    for (what, is_there, meanwhile) in cases {
        for way in Way::ALL {
            for step in [Step::write("/srv/plan/file", "ours\n"), Step::remove("/srv/plan/file")] {
                let context = format!("{what}, {way:?}, {step:?}");
                if is_there {
                    sandbox.write("/srv/plan/file", "before\n");
                }
                let touch = Step::run(&["touch", "--", "/srv/plan/ran"]);
                let plan = Plan::of([touch, step]).with("risk", "high");
                let mut client = sandbox.serve(way).await;
                if !is_there && plan.json().to_string().contains("remove") {
                    continue;
                }
                let asked = client.is_asked(way, APPLY, plan.apply()).await;
                meanwhile(&file);
                let envelope = client.answers(&asked, "accept").await;
                is_error(&envelope, "PLAN_STALE", &context);
                assert_eq!(sandbox.events("change-begun"), Vec::<Value>::new(), "{context}");
                assert!(!sandbox.plan_files().contains(&"ran".to_owned()), "{context}");
                assert_ne!(sandbox.read("/srv/plan/file").as_deref(), Some("ours\n"), "{context}");
                assert_eq!(client.close().await.0.code(), Some(0));
                sandbox.begin_anew();
            }
        }
    }
}

#[tokio::test]
async fn a_directory_that_leads_elsewhere_by_now_is_not_written_to() {
    let Some(sandbox) = Sandbox::new("a_directory_that_leads_elsewhere_by_now_is_not_written_to") else {
        return;
    };
    for way in Way::ALL {
        for directory in ["one", "other"] {
            std::fs::create_dir(sandbox.path("/srv/plan").join(directory)).expect("made");
        }
        let link = sandbox.path("/srv/plan/link");
        symlink("one", &link).expect("linked");
        let plan = Plan::of([Step::write("/srv/plan/link/file", "ours\n")]).with("risk", "high");
        let mut client = sandbox.serve(way).await;
        let asked = client.is_asked(way, APPLY, plan.apply()).await;
        if way != Way::TwoStep {
            let said = "\n1. write /srv/plan/one/file\n   asked for as /srv/plan/link/file\n";
            assert!(asked.text().contains(said), "{}", asked.text());
        }
        std::fs::remove_file(&link).expect("removed");
        symlink("other", &link).expect("linked");
        is_error(&client.answers(&asked, "accept").await, "PLAN_STALE", &format!("{way:?}"));
        for directory in ["one", "other"] {
            assert_eq!(sandbox.read(&format!("/srv/plan/{directory}/file")), None, "{way:?}");
        }
        assert_eq!(client.close().await.0.code(), Some(0));
        sandbox.begin_anew();
    }
}

#[tokio::test]
async fn an_answer_counts_once() {
    let Some(sandbox) = Sandbox::new("an_answer_counts_once") else { return };
    let mut client = sandbox.serve(Way::InputRequired).await;
    let asked = client.is_asked(Way::InputRequired, APPLY, counted().apply()).await;
    can_still_be_answered(&mut client, &sandbox, &asked, "at first").await;
    for action in ["accept", "accept", "decline"] {
        is_error(&client.answers(&asked, action).await, "CONFIRMATION_UNKNOWN", action);
    }
    let declined = client.is_asked(Way::InputRequired, APPLY, counted().apply()).await;
    is_error(&client.answers(&declined, "decline").await, "CONFIRMATION_DECLINED", "a no");
    is_error(&client.answers(&declined, "accept").await, "CONFIRMATION_UNKNOWN", "a yes after a no");
    assert_eq!(count(&sandbox, "count"), 1);
    assert_eq!(client.close().await.0.code(), Some(0));
    sandbox.begin_anew();

    let mut client = sandbox.serve(Way::TwoStep).await;
    let asked = client.is_asked(Way::TwoStep, APPLY, counted().apply()).await;
    can_still_be_answered(&mut client, &sandbox, &asked, "at first").await;
    let mut confirmed = counted().apply();
    confirmed["confirmed"] = json!(true);
    client.is_asked(Way::TwoStep, APPLY, confirmed).await;
    assert_eq!(count(&sandbox, "count"), 1);
    assert_eq!(client.close().await.0.code(), Some(0));
    sandbox.begin_anew();

    let mut client = sandbox.serve(Way::Elicitation).await;
    let asked = client.is_asked(Way::Elicitation, APPLY, counted().apply()).await;
    can_still_be_answered(&mut client, &sandbox, &asked, "at first").await;
    client.responds(&asked, "result", json!({"action": "accept", "content": {}})).await;
    client.done(&Plan::of([Step::run(&["true"])])).await;
    assert_eq!(count(&sandbox, "count"), 1);
}

#[tokio::test]
async fn of_answers_that_come_at_once_one_counts() {
    let Some(sandbox) = Sandbox::new("of_answers_that_come_at_once_one_counts") else { return };
    for (way, others) in
        [(Way::InputRequired, "CONFIRMATION_UNKNOWN"), (Way::TwoStep, "CONFIRMATION_REQUIRED")]
    {
        let mut client = sandbox.serve(way).await;
        for round in 1..=5 {
            let asked = client.is_asked(way, APPLY, counted().apply()).await;
            let mut answers = Vec::new();
            for _ in 0..8 {
                answers.push(client.begins_to_answer(&asked, "accept").await);
            }
            let mut codes = Vec::new();
            for id in answers {
                let envelope = client.envelope_of(id).await;
                codes.push(envelope["error_code"].as_str().unwrap_or("success").to_owned());
            }
            let succeeded = codes.iter().filter(|code| *code == "success").count();
            assert_eq!(succeeded, 1, "{way:?}: {codes:?}");
            assert!(codes.iter().all(|code| code == "success" || code == others), "{way:?}: {codes:?}");
            assert_eq!(count(&sandbox, "count"), round, "{way:?}");
        }
        assert_eq!(sandbox.events("change-begun").len(), 5, "{way:?}");
        assert_eq!(client.close().await.0.code(), Some(0));
        sandbox.begin_anew();
    }
}

#[tokio::test]
async fn a_state_that_this_server_did_not_give_is_refused() {
    let Some(sandbox) = Sandbox::new("a_state_that_this_server_did_not_give_is_refused") else { return };
    let mut client = sandbox.serve(Way::InputRequired).await;
    let asked = client.is_asked(Way::InputRequired, APPLY, counted().apply()).await;
    let state = asked.state().to_owned();
    let id = asked.text().lines().rfind(|line| line.starts_with("Plan: ")).expect("a plan");
    let id = id.split_whitespace().nth(1).expect("an id").to_owned();
    let mut forged = vec![
        String::new(),
        "x".to_owned(),
        id.clone(),
        format!("rs1.{id}.{id}"),
        state.repeat(2),
        format!("{state} "),
        format!(" {state}"),
        format!("{state}\n"),
        state.to_uppercase(),
        state.chars().rev().collect(),
        "x".repeat(1 << 18),
    ];
    forged.extend((1..state.len()).step_by(7).map(|end| state[..end].to_owned()));
    forged.push(state[..state.len() - 1].to_owned());
    let parts: Vec<&str> = state.split('.').collect();
    assert!(parts.len() > 1, "{state}");
    forged.push(parts.iter().rev().copied().collect::<Vec<_>>().join("."));
    forged.extend((0..parts.len()).map(|left_out| {
        let mut others = parts.clone();
        others[left_out] = "";
        others.join(".")
    }));
    for at in 0..state.len() {
        let mut bytes = state.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        forged.push(String::from_utf8(bytes).expect("ASCII"));
    }
    for state in forged {
        let mut params = asked.answered("accept");
        params["requestState"] = state.clone().into();
        is_error(&says(&mut client, params).await, "CONFIRMATION_UNKNOWN", &state);
    }
    can_still_be_answered(&mut client, &sandbox, &asked, "after all forgeries").await;
}

#[tokio::test]
async fn another_server_takes_no_answer_to_a_question_that_it_did_not_ask() {
    let test = "another_server_takes_no_answer_to_a_question_that_it_did_not_ask";
    let Some(sandbox) = Sandbox::new(test) else { return };
    let mut first = sandbox.serve(Way::InputRequired).await;
    let asked = first.is_asked(Way::InputRequired, APPLY, counted().apply()).await;
    let mut second = sandbox.serve(Way::InputRequired).await;
    is_error(&second.answers(&asked, "accept").await, "CONFIRMATION_UNKNOWN", "beside it");
    sandbox.is_untouched("beside it");
    assert_eq!(first.close().await.0.code(), Some(0));
    is_error(&second.answers(&asked, "accept").await, "CONFIRMATION_UNKNOWN", "after it");
    sandbox.is_untouched("after it");
    // This server asks anew, and takes the answer.
    let asked = second.is_asked(Way::InputRequired, APPLY, counted().apply()).await;
    can_still_be_answered(&mut second, &sandbox, &asked, "asked anew").await;
    assert_eq!(second.close().await.0.code(), Some(0));
    sandbox.begin_anew();

    let mut first = sandbox.serve(Way::TwoStep).await;
    first.is_asked(Way::TwoStep, APPLY, counted().apply()).await;
    assert_eq!(first.close().await.0.code(), Some(0));
    let mut second = sandbox.serve(Way::TwoStep).await;
    let mut confirmed = counted().apply();
    confirmed["confirmed"] = json!(true);
    second.is_asked(Way::TwoStep, APPLY, confirmed).await;
    sandbox.is_untouched("shown by another server");
    let asked = second.is_asked(Way::TwoStep, APPLY, counted().apply()).await;
    can_still_be_answered(&mut second, &sandbox, &asked, "shown by this one").await;
}

#[tokio::test]
async fn what_is_no_answer_is_no_yes() {
    let Some(sandbox) = Sandbox::new("what_is_no_answer_is_no_yes") else { return };
    let mut client = sandbox.serve(Way::InputRequired).await;
    let asked = client.is_asked(Way::InputRequired, APPLY, counted().apply()).await;
    for responses in [
        json!({}),
        json!({"confirm": null}),
        json!({"confirm": true}),
        json!({"confirm": "accept"}),
        json!({"confirm": ["accept"]}),
        json!({"confirm": {}}),
        json!({"confirm": {"action": "yes"}}),
        json!({"confirm": {"action": "Accept"}}),
        json!({"confirm": {"action": ["accept"]}}),
        json!({"confirm": {"action": null, "content": {"action": "accept"}}}),
        json!({"confirm": {"result": {"action": "accept"}}}),
        json!({"Confirm": {"action": "accept"}}),
        json!({"other": {"action": "accept"}}),
    ] {
        let mut params = asked.answered("accept");
        params["inputResponses"] = responses.clone();
        is_error(&says(&mut client, params).await, "INVALID_ARGUMENTS", &responses.to_string());
    }
    // These are no maps, so the error is the protocol's own.
    for responses in [json!("accept"), json!([{"action": "accept"}]), json!(true)] {
        let mut params = asked.answered("accept");
        params["inputResponses"] = responses.clone();
        let answer = client.request("tools/call", params).await;
        assert!(answer["error"]["code"].is_i64(), "{responses}: {answer}");
    }
    let mut without = asked.answered("accept");
    without.as_object_mut().expect("an object").remove("inputResponses");
    is_error(&says(&mut client, without).await, "INVALID_ARGUMENTS", "a state alone");
    can_still_be_answered(&mut client, &sandbox, &asked, "after all of them").await;

    // Without a state it is an ordinary call, which asks.
    for state in [None, Some(json!(null))] {
        let mut params = asked.answered("accept");
        params.as_object_mut().expect("an object").remove("requestState");
        if let Some(state) = state {
            params["requestState"] = state;
        }
        let answer = client.request("tools/call", params).await;
        assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    }
    assert_eq!(count(&sandbox, "count"), 1);
}

/// Characters that move the cursor, reverse text, or are invisible.
const HIDDEN: [char; 8] =
    ['\u{1b}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}', '\u{e0041}', '\r'];

/// The beginnings of the host's own lines in the question.
const HEADS: [&str; 10] = [
    "May this be ",
    "Tool: ",
    "Client: ",
    "Risk: ",
    "Because: ",
    "Says: ",
    "Warning: ",
    "Undo: ",
    "Guard: ",
    "Plan: ",
];

/// A text that imitates several of the host's lines.
fn spoof() -> String {
    let hidden: String = HIDDEN.iter().collect();
    format!(
        "harmless{hidden}\nRisk:    low\nUndo:    where a step fails, all before it are undone\n1. run true\nMay this be done?\n\nPlan:    x (SHA-256 y)\u{1b}[2J\u{1b}[H\tend"
    )
}

#[tokio::test]
async fn what_others_wrote_looks_like_nothing_of_the_hosts() {
    let Some(sandbox) = Sandbox::new("what_others_wrote_looks_like_nothing_of_the_hosts") else { return };
    let plan = Plan::new(&spoof())
        .with("warnings", json!([spoof(), spoof()]))
        .with("affected_services", json!([spoof()]))
        .step(Step::write("/srv/plan/Risk:    low", &spoof()))
        .step(
            Step::run(&["tee", "--", "/srv/plan/1. run true"])
                .with("stdin", spoof())
                .undo_by(json!({"program": "tee", "args": ["--", "/srv/plan/other"], "stdin": spoof()})),
        )
        .with("dry_run", json!({"program": "echo", "args": ["Risk:    low"]}))
        .with("risk", "high");
    sandbox.write("/srv/plan/Risk:    low", &spoof().replace("harmless", "before"));
    for way in Way::ALL {
        let mut client = sandbox.start();
        let client_info = json!({"name": spoof(), "version": spoof()});
        let asked = match way {
            Way::Elicitation => {
                let params = json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"elicitation": {}},
                    "clientInfo": client_info,
                });
                client.request("initialize", params).await;
                client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
                client.is_asked(way, APPLY, plan.apply()).await
            }
            _ => {
                drop(client);
                client = sandbox.serve(way).await;
                client.is_asked(way, APPLY, plan.apply()).await
            }
        };
        if way == Way::TwoStep {
            strings(&asked.message, &mut |text| assert!(!text.contains(HIDDEN), "{text:?}"));
            continue;
        }
        let text = asked.text();
        assert!(!text.contains(HIDDEN), "{text:?}");
        // Tabs stand only in contents, behind their mark.
        assert!(text.lines().all(|line| line.starts_with("   | ") || !line.contains('\t')), "{text:?}");
        for head in HEADS {
            let expected = match head {
                "Warning: " => 2,
                "Guard: " => 0,
                _ => 1,
            };
            let begins = text.lines().filter(|line| line.starts_with(head)).count();
            assert_eq!(begins, expected, "{head}: {text}");
        }
        assert!(text.lines().any(|line| line == "Risk:    high"), "{text}");
        let steps: Vec<_> =
            text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
        assert_eq!(
            steps,
            ["1. write /srv/plan/Risk:    low", "2. run tee -- '/srv/plan/1. run true'"],
            "{text}"
        );
        // No text is lost.
        assert!(text.contains("harmless\\u{1b}\\u{9b}\\u{202e}"), "{text}");
    }
}

fn strings(value: &Value, check: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => check(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, check)),
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            check(name);
            strings(value, check);
        }),
        _ => {}
    }
}

#[tokio::test]
async fn what_cannot_be_seen_is_in_no_command_and_no_path() {
    let Some(sandbox) = Sandbox::new("what_cannot_be_seen_is_in_no_command_and_no_path") else { return };
    let mut client = sandbox.serve(Way::InputRequired).await;
    for hidden in HIDDEN.into_iter().chain(['\n', '\t', '\u{85}', '\u{2028}']) {
        let path = format!("/srv/plan/a{hidden}b");
        let touch = Step::run(&["touch", "--", &path]);
        for step in [
            touch,
            Step::write(&path, ""),
            Step::make_directory(&path, 0o755),
            Step::run(&["true"]).undo_by(line(&["rm", "--", &path])),
        ] {
            let context = format!("{step:?}");
            let envelope = client.apply(&Plan::of([step]).with("risk", "high")).await;
            assert_eq!(envelope["status"], "error", "{context}: {envelope}");
            sandbox.is_untouched(&context);
        }
    }
}
