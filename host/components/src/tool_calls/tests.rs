use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Barrier;
use wasmtime::Store;

use super::tool_calls::{Host, ToolCall};
use super::*;
use crate::config::Limits;
use crate::engine::LazyEngine;
use crate::limits::ExceededLimit;
use crate::log::tests::Written;
use crate::{CallContext, instance};
use host_base::{Risk, Within};
use host_capability::Grants;

/// A caller whose calls all have the same answer. It keeps what was called.
struct Answering<F> {
    called: Mutex<Vec<(String, String)>>,
    answer: F,
}

impl<F, A> Answering<F>
where
    F: Fn(Arc<CallBudget>) -> A + Send + Sync,
    A: Future<Output = Result<String, Problem>> + Send + 'static,
{
    fn new(answer: F) -> Arc<Self> {
        Arc::new(Self { called: Mutex::default(), answer })
    }

    fn called(&self) -> Vec<(String, String)> {
        self.called.lock().unwrap().clone()
    }
}

impl<F, A> ToolCaller for Answering<F>
where
    F: Fn(Arc<CallBudget>) -> A + Send + Sync,
    A: Future<Output = Result<String, Problem>> + Send + 'static,
{
    fn call(
        &self,
        tool: String,
        arguments: String,
        budget: Arc<CallBudget>,
    ) -> BoxFuture<'_, Result<String, Problem>> {
        self.called.lock().unwrap().push((tool, arguments));
        Box::pin((self.answer)(budget))
    }
}

/// A call of a tool with this risk, by a module that may call `one` and `two`.
fn store(risk: Risk, tool_caller: Option<Arc<dyn ToolCaller>>) -> Store<State> {
    let mut grants = Grants::new("triage");
    ["one", "two"].iter().for_each(|tool| grants.tool(tool).unwrap());
    let (tool, grants) = ("triage_all".into(), Arc::new(grants));
    let context = CallContext { tool, risk, grants, tool_caller, ..CallContext::of_a_test() };
    let engine = LazyEngine::new(Limits { host_calls: Within::new(100), ..Limits::default() });
    let time = Duration::from_secs(1);
    instance::for_call(engine.get().unwrap(), (time, time), &"triage".into(), context).unwrap()
}

fn asked(tool: &str) -> ToolCall {
    ToolCall { tool: tool.to_owned(), arguments: format!(r#"{{"of": "{tool}"}}"#) }
}

/// The envelopes, and for each problem its code.
fn told(results: Vec<GuestResult<String>>) -> Vec<String> {
    results.into_iter().map(|result| result.unwrap_or_else(|problem| problem.code)).collect()
}

#[tokio::test]
async fn each_call_needs_its_own_grant_and_a_denied_one_leaves_the_others_alone() {
    let caller = Answering::new(|_| async { Ok("{}".to_owned()) });
    let mut store = store(Risk::ReadOnly, Some(caller.clone()));
    let (written, _guard) = Written::begin();
    let calls = ["one", "three", "two", "one "].map(asked).to_vec();
    let results = store.data_mut().call_all(calls).await.unwrap();
    let denied = results[1].as_ref().unwrap_err();
    assert!(denied.message.contains("module triage may not call three:"), "{}", denied.message);
    assert_eq!(told(results), ["{}", "CAPABILITY_DENIED", "{}", "CAPABILITY_DENIED"]);
    let expected = ["one", "two"].map(|tool| (tool.to_owned(), format!(r#"{{"of": "{tool}"}}"#)));
    assert_eq!(caller.called(), expected);
    drop(store);
    assert_eq!(written.lines().len(), 2, "what was denied is logged: {:?}", written.lines());
}

#[tokio::test]
async fn all_calls_run_at_once_and_a_failed_one_has_its_own_problem() {
    let barrier = Arc::new(Barrier::new(3));
    let caller = Answering::new(move |_| {
        let barrier = barrier.clone();
        async move {
            match barrier.wait().await.is_leader() {
                true => Err(Problem::new("TARGET_NOT_SERVED", Category::State, "not here")),
                false => Ok("{}".to_owned()),
            }
        }
    });
    let mut store = store(Risk::ReadOnly, Some(caller));
    let calls = ["one", "two", "one"].map(asked).to_vec();
    let mut told = told(store.data_mut().call_all(calls).await.unwrap());
    told.sort();
    assert_eq!(told, ["TARGET_NOT_SERVED", "{}", "{}"]);
}

#[tokio::test]
async fn one_call_makes_so_many_calls_of_tools_over_all_and_no_part_of_too_many() {
    let caller = Answering::new(|_| async { Ok("{}".to_owned()) });
    let mut store = store(Risk::ReadOnly, Some(caller.clone()));
    for (calls, answer, called) in [
        (MAX_TOOL_CALLS + 1, "TOO_MANY_TOOL_CALLS", 0),
        (MAX_TOOL_CALLS - 1, "{}", MAX_TOOL_CALLS - 1),
        (2, "TOO_MANY_TOOL_CALLS", MAX_TOOL_CALLS - 1),
        (1, "{}", MAX_TOOL_CALLS),
        (1, "TOO_MANY_TOOL_CALLS", MAX_TOOL_CALLS),
    ] {
        let results = store.data_mut().call_all(vec![asked("one"); calls]).await.unwrap();
        assert_eq!(told(results), vec![answer; calls]);
        assert_eq!(caller.called().len(), called);
    }
}

#[tokio::test]
async fn a_guest_that_asks_for_far_too_many_calls_is_stopped() {
    let mut store = store(Risk::ReadOnly, None);
    let stopped = store.data_mut().call_all(vec![asked("one"); MOST_PROBLEMS + 1]).await.unwrap_err();
    assert_eq!(stopped.downcast_ref::<Problem>().unwrap().code, "NESTED_TOOL_CALL");
}

#[tokio::test]
async fn a_tool_that_changes_something_calls_no_tools() {
    for risk in [Risk::Low, Risk::Moderate, Risk::High, Risk::Critical] {
        let caller = Answering::new(|_| async { Ok("{}".to_owned()) });
        let mut store = store(risk, Some(caller.clone()));
        let results = store.data_mut().call_all(vec![asked("one"); 2]).await.unwrap();
        assert_eq!(told(results), ["NOT_READ_ONLY"; 2]);
        assert!(caller.called().is_empty(), "{risk:?}");
    }
}

#[tokio::test]
async fn a_tool_that_a_module_called_calls_no_further_ones() {
    let mut store = store(Risk::ReadOnly, None);
    let results = store.data_mut().call_all(vec![asked("one")]).await.unwrap();
    assert_eq!(told(results), ["NESTED_TOOL_CALL"]);
}

#[tokio::test]
async fn calls_into_the_host_count_together_with_those_of_the_called_tools() {
    let caller = Answering::new(|budget: Arc<CallBudget>| async move {
        for _ in 0..60 {
            budget.count_host_call();
        }
        Ok("{}".to_owned())
    });
    let mut store = store(Risk::ReadOnly, Some(caller));
    store.data_mut().call_all(vec![asked("one")]).await.unwrap();
    assert!(store.data_mut().call().is_ok());
    store.data_mut().call_all(vec![asked("one")]).await.unwrap();
    let error = store.data_mut().call().map(|_| ()).unwrap_err();
    assert_eq!(error.downcast_ref::<ExceededLimit>(), Some(&ExceededLimit::HostCalls(100)));
}

#[tokio::test]
async fn results_are_bounded_together() {
    let caller = Answering::new(|_| async { Ok("x".repeat(RESULT_BYTES / 2)) });
    let mut store = store(Risk::ReadOnly, Some(caller));
    let results = store.data_mut().call_all(vec![asked("one"); 3]).await.unwrap();
    let lengths: Vec<_> = results.iter().map(|result| result.as_ref().map_or(0, String::len)).collect();
    assert_eq!(lengths, [RESULT_BYTES / 2, RESULT_BYTES / 2, 0]);
    assert_eq!(results[2].as_ref().unwrap_err().code, "REPLY_TOO_LARGE");
}

#[tokio::test]
async fn the_end_of_a_call_ends_the_calls_within_it() {
    let alive = Arc::new(());
    let held = Arc::downgrade(&alive);
    let caller = Answering::new(move |_| {
        let held = held.upgrade();
        async move {
            let _held = held;
            std::future::pending().await
        }
    });
    let mut store = store(Risk::ReadOnly, Some(caller));
    let mut calling = Box::pin(store.data_mut().call_all(vec![asked("one"); 2]));
    assert!(calling.as_mut().now_or_never().is_none());
    assert_eq!(Arc::strong_count(&alive), 3);
    drop(calling);
    assert_eq!(Arc::strong_count(&alive), 1);
}
