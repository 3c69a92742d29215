//! Calls for the tests of this folder.

use std::time::Instant;

use super::call_handle::{CallEvent, CallHandle, CallInfo};
use super::call_key::CallKey;
use super::call_pool::CallPool;
use super::confirmation_channel::OpenQuestion;
use crate::answers::envelope::Envelope;
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_gate::{Confirmer as _, Question};

/// A question with this id, in which nothing else matters.
pub fn question(id: &str) -> Question {
    Question {
        id: id.to_owned(),
        sha256: "00".repeat(32),
        tool: "tool".into(),
        module: "module 1".into(),
        target: "localhost".into(),
        machine: (None, None),
        client: String::new(),
        summary: "Do it".into(),
        risk: Risk::High,
        needs_person: true,
        never_by_client_alone: false,
        dry_run: false,
        preview: serde_json::json!({"command": "do it"}),
        text: "May this be done?".into(),
    }
}

/// The description of a call of `tool` on this host.
pub fn info(host: &str) -> CallInfo {
    CallInfo { tool: "tool".into(), host: host.into(), agent_id: None }
}

/// A call that asks once, and notes the answer in its envelope.
pub fn asking_call(id: &'static str, key: CallKey, pool: &CallPool) -> CallHandle {
    CallHandle::start(info("localhost"), key, pool, move |channel, _, cancelled| async move {
        channel.acquire_slot().await.unwrap();
        let answer = tokio::select! {
            answer = channel.ask(question(id)) => answer,
            () = cancelled.cancelled() => Err(Problem::new("CANCELLED", Category::Other, "")),
        };
        match answer {
            Ok(answer) => {
                let mut envelope = Envelope::success("tool", "localhost", Instant::now(), None);
                envelope.notes.push(format!("{answer:?}"));
                envelope
            }
            Err(problem) => Envelope::failure("tool", "localhost", Instant::now(), None, problem),
        }
    })
}

pub async fn next_question(call: &mut CallHandle) -> OpenQuestion {
    match call.next_event().await {
        CallEvent::Asks(question) => question,
        CallEvent::Ended(envelope) => panic!("{envelope:?}"),
    }
}

pub async fn wait_for_end(call: &mut CallHandle) -> Envelope {
    match call.next_event().await {
        CallEvent::Ended(envelope) => *envelope,
        CallEvent::Asks(question) => panic!("{question:?}"),
    }
}
