//! Clients of other projects put this server's question to their user, and bring the answer.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use linux_sysadmin_tests::{Plan, Sandbox, Step, binary, skipped};
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, Implementation, ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleClient};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData};
use serde_json::{Value, json};

const APPLY: &str = "planner_apply";

fn plan() -> Plan {
    Plan::of([Step::run(&["touch", "--", "/srv/plan/ran"])]).with("risk", "high")
}

/// The results of a call by one of the clients.
struct Said {
    protocol: String,
    questions: Vec<String>,
    envelope: Value,
}

/// Asserts that the user was asked once, that the plan ran only after a yes, and that both are on record.
fn is_as_answered(sandbox: &Sandbox, said: &Said, accepted: bool, context: &str) {
    let Said { protocol, questions, envelope } = said;
    assert_eq!(questions.len(), 1, "{context}: {questions:?}");
    let question = &questions[0];
    assert!(question.contains("\n1. run touch -- /srv/plan/ran\n"), "{context}: {question}");
    let (status, code, decision) = match accepted {
        true => (json!("success"), json!(null), "allowed"),
        false => (json!("error"), json!("CONFIRMATION_DECLINED"), "refused"),
    };
    assert_eq!((&envelope["status"], &envelope["error_code"]), (&status, &code), "{context}: {envelope}");
    assert_eq!(sandbox.plan_files().len(), usize::from(accepted), "{context}");
    let call = sandbox.events("call").pop().expect("a call");
    assert_eq!(
        (&call["decision"], &call["decided_by"]),
        (&json!(decision), &json!("elicitation")),
        "{context}"
    );
    assert_eq!(call["protocol"], protocol.as_str(), "{context}: {call}");
}

/// A user who always gives the same answer.
#[derive(Clone)]
struct User {
    answer: ElicitationAction,
    questions: Arc<Mutex<Vec<String>>>,
}

impl ClientHandler for User {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::new());
        ClientConfig::new(capabilities, Implementation::new("rmcp", "3"))
            .with_protocol_version(ProtocolVersion::V_2025_06_18)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            return Err(ErrorData::invalid_params("only forms", None));
        };
        self.questions.lock().expect("nobody panicked").push(message);
        Ok(ElicitResult::new(self.answer.clone()))
    }
}

#[tokio::test]
async fn the_reference_client_asks_its_user_in_both_generations() {
    let Some(sandbox) = Sandbox::new("the_reference_client_asks_its_user_in_both_generations") else {
        return;
    };
    let discover = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    for (mode, protocol) in [(discover, "2026-07-28"), (ClientLifecycleMode::Initialize, "2025-06-18")] {
        for answer in [ElicitationAction::Accept, ElicitationAction::Decline, ElicitationAction::Cancel] {
            let user = User { answer: answer.clone(), questions: Arc::default() };
            let command = tokio::process::Command::from(sandbox.command());
            let transport = TokioChildProcess::new(command).expect("the server starts");
            let client = user.clone().serve_with_lifecycle(transport, mode.clone()).await.expect("a session");
            let arguments = plan().apply().as_object().cloned().expect("an object");
            let call = CallToolRequestParams::new(APPLY).with_arguments(arguments);
            let result = client.call_tool(call).await.expect("an answer");
            let said = Said {
                protocol: protocol.to_owned(),
                questions: user.questions.lock().expect("nobody panicked").clone(),
                envelope: result.structured_content.expect("an envelope"),
            };
            let context = format!("{protocol} {answer:?}");
            is_as_answered(&sandbox, &said, answer == ElicitationAction::Accept, &context);
            client.cancel().await.expect("the end");
            sandbox.begin_anew();
        }
    }
}

/// Makes one call by the official client in Python.
fn by_python(sandbox: &Sandbox, python: &Path, mode: &str, action: Option<&str>) -> Said {
    let server = sandbox.command();
    let text = |text: &std::ffi::OsStr| text.to_str().expect("UTF-8").to_owned();
    let env: serde_json::Map<String, Value> =
        server.get_envs().filter_map(|(name, value)| Some((text(name), text(value?).into()))).collect();
    let told = json!({
        "command": text(server.get_program()),
        "args": server.get_args().map(text).collect::<Vec<_>>(),
        "env": env,
        "mode": mode,
        "action": action,
        "tool": APPLY,
        "arguments": plan().apply(),
    });
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients-python/asking.py");
    let mut client = Command::new(python);
    client.arg("-B").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut client = client.spawn().expect("python starts");
    let mut stdin = client.stdin.take().expect("stdin");
    stdin.write_all(told.to_string().as_bytes()).expect("it reads");
    drop(stdin);
    let output = client.wait_with_output().expect("it ends");
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let questions = said["questions"].as_array().expect("a list").iter();
    Said {
        protocol: said["protocol"].as_str().expect("a version").to_owned(),
        questions: questions.map(|question| question.as_str().expect("a text").to_owned()).collect(),
        envelope: said["envelope"].clone(),
    }
}

#[test]
fn the_official_client_in_python_asks_its_user_in_both_generations() {
    let test = "the_official_client_in_python_asks_its_user_in_both_generations";
    let clients = binary().with_file_name("test-clients");
    if let Ok(reason) = std::fs::read_to_string(clients.join("missing.txt")) {
        skipped(test, &reason);
        return;
    }
    let python = clients.join("python/bin/python3");
    assert!(python.is_file(), "`cargo xtask build` installs it, or says why it couldn't");
    let Some(sandbox) = Sandbox::new(test) else { return };
    for (mode, protocol) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        for action in ["accept", "decline", "cancel"] {
            let said = by_python(&sandbox, &python, mode, Some(action));
            assert_eq!(said.protocol, protocol);
            is_as_answered(&sandbox, &said, action == "accept", &format!("{protocol} {action}"));
            sandbox.begin_anew();
        }
        // A client that can't ask its user gets the plan, and no question.
        let said = by_python(&sandbox, &python, mode, None);
        assert_eq!(said.questions, Vec::<String>::new());
        assert_eq!(said.envelope["status"], "confirmation_required", "{}", said.envelope);
        assert_eq!(said.envelope["confirmation"]["way"], "two-step", "{}", said.envelope);
        sandbox.is_untouched(mode);
        sandbox.begin_anew();
    }
}
