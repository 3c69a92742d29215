//! Calls that wait for a confirmation. Another request brings it, or a person at a terminal.
//!
//! A call waits with its plan as it was shown, and that very plan is what runs. All of them end with the server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::call_handle::CallHandle;
use super::call_key::CallKey;
use super::confirmation_channel::OpenQuestion;
use futures_util::future::BoxFuture;
use host_approval::{Beginning, Refused};
use host_audit::{DecidedBy, Person};
use host_base::problem::{Category, Problem};
use host_gate::{Answer, EXPIRES, expired, unavailable};
use host_gate::{ConfirmationMethod, Question};

/// The time for which the outcome of a decided call is kept for whoever makes the same call again.
const OUTCOME_KEPT: Duration = EXPIRES.saturating_mul(2);

/// All calls of a server that wait for a confirmation.
#[derive(Default)]
pub struct PendingCalls(Mutex<State>);

#[derive(Default)]
struct State {
    calls: Vec<PendingCall>,
    /// True once the server ends.
    is_closed: bool,
}

struct PendingCall {
    key: CallKey,
    method: ConfirmationMethod,
    question: Arc<Question>,
    since: SystemTime,
    /// The question that waits for its answer; `None` once a person has decided.
    open: Option<OpenQuestion>,
    call: CallHandle,
    /// The time at which a decided call was first seen to have ended.
    ended: Option<Instant>,
}

/// A call that is made again while it is pending or decided.
pub enum RepeatedCall {
    /// A person has decided, and the call runs or has ended.
    Decided(CallHandle),
    /// The call still waits for a decision.
    Waits(Arc<Question>),
}

impl PendingCalls {
    /// Keeps a call until its answer comes. Where the server ends, the call gets that as its answer and is given back.
    pub fn add(
        &self,
        method: ConfirmationMethod,
        open: OpenQuestion,
        call: CallHandle,
    ) -> Result<(), Box<CallHandle>> {
        let key = call.key().clone();
        let mut state = self.state();
        if state.is_closed {
            let _ = open.answer(Err(unavailable("the server ends")));
            return Err(Box::new(call));
        }
        let calls = &mut state.calls;
        if method != ConfirmationMethod::InputRequired {
            // The new question replaces the earlier one of the same call, which nobody will answer.
            calls.retain(|one| one.open.is_none() || one.method != method || one.key != key);
        }
        calls.push(PendingCall {
            key,
            method,
            question: open.question.clone(),
            since: SystemTime::now(),
            open: Some(open),
            call,
            ended: None,
        });
        Ok(())
    }

    /// Answers the call of this id, which goes on. The answer counts once, for the very same call, and only where the
    /// call was asked by an input-required result.
    pub fn resume(&self, id: &str, key: &CallKey, answer: Answer) -> Result<CallHandle, Problem> {
        let mut state = self.state();
        let calls = &mut state.calls;
        let at = calls
            .iter()
            .position(|one| one.method == ConfirmationMethod::InputRequired && one.question.id == id);
        let at = at.ok_or_else(unknown_confirmation)?;
        if calls[at].key != *key {
            let tool = &calls[at].key.tool;
            let message =
                format!("the answer is to a question about {tool} with other arguments: nothing was changed");
            return Err(Problem::new("CONFIRMATION_MISMATCH", Category::Denied, message)
                .remedy("Send the very same call again with the answer, or a new call without one"));
        }
        answer_call(calls.remove(at), answer)
    }

    /// Gives the call that was shown before, where the client now says that this same call is confirmed.
    pub fn take_confirmed(&self, key: &CallKey) -> Option<CallHandle> {
        let mut state = self.state();
        let calls = &mut state.calls;
        let at = calls.iter().position(|one| one.method == ConfirmationMethod::TwoStep && one.key == *key)?;
        answer_call(calls.remove(at), Answer::Yes(DecidedBy::ClientAsserted)).ok()
    }

    /// Finds the same call where a person at a terminal decides about it.
    pub fn find_repeated(&self, key: &CallKey) -> Option<RepeatedCall> {
        let mut state = self.state();
        let calls = &mut state.calls;
        let at =
            calls.iter().position(|one| one.method == ConfirmationMethod::Terminal && one.key == *key)?;
        match calls[at].open {
            Some(_) => Some(RepeatedCall::Waits(calls[at].question.clone())),
            None => Some(RepeatedCall::Decided(calls.remove(at).call)),
        }
    }

    /// Ends all calls that wait, and refuses further ones.
    pub fn close(&self) {
        let mut state = self.state();
        state.calls.clear();
        state.is_closed = true;
    }

    /// The state without the calls that are over. An outcome is kept from the end of its call on, however long the
    /// change took: without it the same call would be planned and made once more.
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.calls.retain_mut(|one| match &one.open {
            Some(open) => !open.is_over(),
            None if !one.call.has_ended() => true,
            None => one.ended.get_or_insert_with(Instant::now).elapsed() < OUTCOME_KEPT,
        });
        state
    }
}

impl host_approval::WaitingCalls for PendingCalls {
    fn waiting(&self) -> Vec<host_approval::WaitingCall> {
        let state = self.state();
        let waits =
            state.calls.iter().filter(|one| one.method == ConfirmationMethod::Terminal && one.open.is_some());
        waits.map(|one| host_approval::WaitingCall::of(&one.question, one.since)).collect()
    }

    /// Answers the call, which goes on by itself. Whoever makes the same call again gets its outcome.
    fn decide(
        &self,
        id: &str,
        sha256: &str,
        yes: bool,
        by: Person,
    ) -> Result<BoxFuture<'static, Beginning>, Refused> {
        let mut state = self.state();
        let calls = &mut state.calls;
        let one =
            calls.iter_mut().find(|one| one.method == ConfirmationMethod::Terminal && one.question.id == id);
        let one = one.ok_or(Refused::Unknown)?;
        if one.question.sha256 != sha256 {
            return Err(Refused::OtherPlan);
        }
        let open = one.open.take().ok_or(Refused::Decided)?;
        let by = DecidedBy::Terminal(by);
        open.answer(Ok(if yes { Answer::Yes(by) } else { Answer::No(by) })).map_err(|_| Refused::Expired)?;
        let command_log = one.call.command_log().clone();
        Ok(Box::pin(async move {
            match command_log.beginning().await {
                Ok(()) => Beginning::Running,
                Err(why) => Beginning::Nothing(why),
            }
        }))
    }
}

fn answer_call(pending: PendingCall, answer: Answer) -> Result<CallHandle, Problem> {
    pending.open.ok_or_else(expired)?.answer(Ok(answer))?;
    Ok(pending.call)
}

fn unknown_confirmation() -> Problem {
    let message = "no call waits for this answer: it has been answered before, it has expired, or the server that asked \
                   has ended; nothing was changed";
    Problem::new("CONFIRMATION_UNKNOWN", Category::State, message)
        .remedy("Call again without an answer: the question is asked anew")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::{Map, Value};

    use super::*;
    use crate::answers::envelope::Envelope;
    use crate::calls::call_pool::CallPool;
    use crate::calls::confirmation_channel::ConfirmationChannel;
    use crate::calls::scheduler::Scheduler;
    use crate::calls::test_calls::{asking_call, info, next_question, question, wait_for_end};
    use host_approval::WaitingCalls as _;
    use host_gate::Confirmer as _;

    fn key(arguments: Value) -> CallKey {
        CallKey::new("tool", arguments.as_object().unwrap(), None, ["localhost"])
    }

    async fn add(pending: &PendingCalls, id: &'static str, key: CallKey, method: ConfirmationMethod) {
        let mut call = asking_call(id, key, &pool());
        let question = next_question(&mut call).await;
        assert!(pending.add(method, question, call).is_ok());
    }

    fn person() -> Person {
        Person { uid: 0, account: "root".to_owned() }
    }

    fn pool() -> CallPool {
        CallPool::new(Scheduler::new(8, 8))
    }

    fn yes() -> Answer {
        Answer::Yes(DecidedBy::Elicitation)
    }

    #[test]
    fn calls_are_the_same_whatever_the_order_and_what_is_null() {
        assert_eq!(key(json!({"a": 1, "b": [2]})), key(json!({"b": [2], "a": 1, "c": null})));
        let elsewhere = CallKey::new("tool", json!({"a": 1, "b": [2]}).as_object().unwrap(), None, ["web1"]);
        assert_ne!(key(json!({"a": 1, "b": [2]})), elsewhere);
        for other in [json!({"a": 2, "b": [2]}), json!({"a": 1}), json!({"a": 1, "b": [2], "host": "other"})]
        {
            assert_ne!(key(json!({"a": 1, "b": [2]})), key(other));
        }
        assert_ne!(CallKey::new("a", &Map::new(), None, []), CallKey::new("b", &Map::new(), None, []));
        // One agent must not confirm what another one was shown.
        assert_ne!(
            CallKey::new("a", &Map::new(), Some("a1"), []),
            CallKey::new("a", &Map::new(), Some("a2"), [])
        );
    }

    #[tokio::test]
    async fn an_answer_is_for_its_own_call_and_counts_once() {
        let pending = PendingCalls::default();
        add(&pending, "a", key(json!({"x": 1})), ConfirmationMethod::InputRequired).await;
        let wrong = pending.resume("a", &key(json!({"x": 2})), yes()).err().unwrap();
        assert_eq!(wrong.code, "CONFIRMATION_MISMATCH");
        assert_eq!(
            pending.resume("b", &key(json!({"x": 1})), yes()).err().unwrap().code,
            "CONFIRMATION_UNKNOWN"
        );
        let mut handle = pending.resume("a", &key(json!({"x": 1})), yes()).ok().unwrap();
        assert_eq!(wait_for_end(&mut handle).await.notes, ["Yes(Elicitation)"]);
        let again = pending.resume("a", &key(json!({"x": 1})), yes()).err().unwrap();
        assert_eq!(again.code, "CONFIRMATION_UNKNOWN");
    }

    #[tokio::test]
    async fn one_method_does_not_answer_for_another() {
        let pending = PendingCalls::default();
        let (one, two, three) = (key(json!({"x": 1})), key(json!({"x": 2})), key(json!({"x": 3})));
        add(&pending, "a", one.clone(), ConfirmationMethod::InputRequired).await;
        add(&pending, "b", two.clone(), ConfirmationMethod::Terminal).await;
        add(&pending, "c", three.clone(), ConfirmationMethod::TwoStep).await;
        assert!(pending.take_confirmed(&one).is_none() && pending.take_confirmed(&two).is_none());
        assert!(pending.find_repeated(&one).is_none() && pending.find_repeated(&three).is_none());
        assert!(pending.resume("b", &two, yes()).is_err() && pending.resume("c", &three, yes()).is_err());
        for id in ["a", "c"] {
            assert_eq!(pending.decide(id, &"00".repeat(32), true, person()).err(), Some(Refused::Unknown));
        }
    }

    #[tokio::test]
    async fn a_second_step_counts_once_and_only_for_what_was_shown() {
        let pending = PendingCalls::default();
        let call = key(json!({}));
        assert!(pending.take_confirmed(&call).is_none());
        add(&pending, "a", call.clone(), ConfirmationMethod::TwoStep).await;
        add(&pending, "b", call.clone(), ConfirmationMethod::TwoStep).await;
        let mut handle = pending.take_confirmed(&call).unwrap();
        assert_eq!(wait_for_end(&mut handle).await.notes, ["Yes(ClientAsserted)"]);
        // The second question has replaced the first one.
        assert!(pending.take_confirmed(&call).is_none());
    }

    #[tokio::test]
    async fn a_decision_at_a_terminal_is_about_what_was_shown_and_the_call_has_its_outcome() {
        let pending = PendingCalls::default();
        let call = key(json!({}));
        add(&pending, "a", call.clone(), ConfirmationMethod::Terminal).await;
        assert_eq!(pending.waiting().len(), 1);
        assert!(matches!(pending.find_repeated(&call), Some(RepeatedCall::Waits(_))));
        let decide = |sha256: &str| pending.decide("a", &sha256.repeat(32), true, person());
        assert_eq!(decide("11").err(), Some(Refused::OtherPlan));
        let beginning = decide("00").unwrap();
        assert_eq!(decide("00").err(), Some(Refused::Decided));
        assert!(pending.waiting().is_empty());
        let Some(RepeatedCall::Decided(mut handle)) = pending.find_repeated(&call) else {
            panic!("it is decided")
        };
        assert_eq!(
            wait_for_end(&mut handle).await.notes,
            ["Yes(Terminal(Person { uid: 0, account: \"root\" }))"]
        );
        assert_eq!(beginning.await, Beginning::Running);
        assert!(pending.find_repeated(&call).is_none());
    }

    #[tokio::test]
    async fn whoever_decides_learns_that_nothing_came_of_it() {
        let pending = PendingCalls::default();
        let run = |channel: Arc<ConfirmationChannel>, _, _| async move {
            channel.ask(question("a")).await.unwrap();
            let stale = Problem::new("PLAN_STALE", Category::State, "it has changed since");
            Envelope::failure("tool", "localhost", std::time::Instant::now(), None, stale)
        };
        let mut handle = CallHandle::start(info("localhost"), key(json!({})), &pool(), run);
        let question = next_question(&mut handle).await;
        assert!(pending.add(ConfirmationMethod::Terminal, question, handle).is_ok());
        let beginning = pending.decide("a", &"00".repeat(32), true, person()).unwrap();
        assert_eq!(beginning.await, Beginning::Nothing("it has changed since".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_expired_does_not_wait() {
        let pending = PendingCalls::default();
        let call = key(json!({}));
        add(&pending, "a", call.clone(), ConfirmationMethod::Terminal).await;
        add(&pending, "b", call.clone(), ConfirmationMethod::TwoStep).await;
        add(&pending, "c", call.clone(), ConfirmationMethod::InputRequired).await;
        tokio::time::sleep(EXPIRES + std::time::Duration::from_secs(1)).await;
        assert!(pending.waiting().is_empty() && pending.find_repeated(&call).is_none());
        assert!(pending.take_confirmed(&call).is_none());
        assert_eq!(pending.resume("c", &call, yes()).err().unwrap().code, "CONFIRMATION_UNKNOWN");
    }

    #[tokio::test(start_paused = true)]
    async fn an_outcome_is_kept_from_its_end_on_however_long_the_change_took() {
        for (waited, is_kept) in [(OUTCOME_KEPT / 2, true), (OUTCOME_KEPT + Duration::from_secs(1), false)] {
            let pending = PendingCalls::default();
            let call = key(json!({}));
            let run = |channel: Arc<ConfirmationChannel>, _, _| async move {
                channel.ask(question("a")).await.unwrap();
                tokio::time::sleep(3 * OUTCOME_KEPT).await;
                Envelope::success("tool", "localhost", std::time::Instant::now(), None)
            };
            let mut handle = CallHandle::start(info("localhost"), call.clone(), &pool(), run);
            let question = next_question(&mut handle).await;
            assert!(pending.add(ConfirmationMethod::Terminal, question, handle).is_ok());
            drop(pending.decide("a", &"00".repeat(32), true, person()).unwrap());
            tokio::time::sleep(3 * OUTCOME_KEPT + Duration::from_secs(1)).await;
            assert!(pending.waiting().is_empty());
            tokio::time::sleep(waited).await;
            assert_eq!(
                matches!(pending.find_repeated(&call), Some(RepeatedCall::Decided(_))),
                is_kept,
                "{waited:?}"
            );
        }
    }

    #[tokio::test]
    async fn nothing_waits_in_a_server_that_ends() {
        let pending = PendingCalls::default();
        let call = key(json!({}));
        add(&pending, "a", call.clone(), ConfirmationMethod::Terminal).await;
        pending.close();
        assert!(pending.waiting().is_empty());
        let mut handle = asking_call("b", call, &pool());
        let question = next_question(&mut handle).await;
        let mut handle = pending.add(ConfirmationMethod::Terminal, question, handle).err().unwrap();
        assert_eq!(wait_for_end(&mut handle).await.error.unwrap().error_code, "CONFIRMATION_UNAVAILABLE");
    }
}
