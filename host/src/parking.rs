//! Calls that wait for an answer which another request brings, or a person at a terminal: parked with their plan as it
//! was shown, so that this very plan is what runs. They end with the server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::call_key::CallKey;
use crate::running::{Asked, Running};
use host_approval::Refused;
use host_audit::{DecidedBy, Person};
use host_base::problem::{Category, Problem};
use host_gate::{Answer, EXPIRES, expired, unavailable};
use host_gate::{ConfirmationMethod, Question};

/// For so long an outcome waits for the call to be made again.
const KEPT: Duration = EXPIRES.saturating_mul(2);

/// The calls that wait.
#[derive(Default)]
pub struct Parking(Mutex<Place>);

#[derive(Default)]
struct Place {
    parked: Vec<Parked>,
    /// The server ends.
    is_closed: bool,
}

struct Parked {
    key: CallKey,
    way: ConfirmationMethod,
    question: Arc<Question>,
    since: SystemTime,
    /// None once it is decided.
    asked: Option<Asked>,
    running: Running,
    /// When it was first seen to have ended, of one that is decided.
    ended: Option<Instant>,
}

/// Of a call that was made again.
pub enum Again {
    /// It has been decided, and is to be waited for.
    Decided(Running),
    /// It hasn't.
    Waits(Arc<Question>),
}

impl Parking {
    /// Keeps a call until its answer comes. Where that isn't possible, the call itself is told why, and given back.
    pub fn park(&self, way: ConfirmationMethod, asked: Asked, running: Running) -> Result<(), Box<Running>> {
        let key = running.key().clone();
        let mut place = self.place();
        if place.is_closed {
            let _ = asked.answer(Err(unavailable("the server ends")));
            return Err(Box::new(running));
        }
        let parked = &mut place.parked;
        if way != ConfirmationMethod::InputRequired {
            // Shown anew, it is made anew: the one before is of no use.
            parked.retain(|one| one.asked.is_none() || one.way != way || one.key != key);
        }
        parked.push(Parked {
            key,
            way,
            question: asked.question.clone(),
            since: SystemTime::now(),
            asked: Some(asked),
            running,
            ended: None,
        });
        Ok(())
    }

    /// The call of this id, which goes on with this answer: once, for the very same call, in the way that it was asked.
    pub fn resume(&self, id: &str, key: &CallKey, answer: Answer) -> Result<Running, Problem> {
        let mut place = self.place();
        let parked = &mut place.parked;
        let at = parked
            .iter()
            .position(|one| one.way == ConfirmationMethod::InputRequired && one.question.id == id);
        let at = at.ok_or_else(unknown)?;
        if parked[at].key != *key {
            let tool = &parked[at].key.tool;
            let message = format!(
                "what was answered was a question about {tool} with other arguments: nothing was changed"
            );
            return Err(Problem::new("CONFIRMATION_MISMATCH", Category::Denied, message)
                .remedy("Send the very same call again with the answer, or a new call without one"));
        }
        goes_on(parked.remove(at), answer)
    }

    /// The same call, said to be confirmed by the client: where it has been shown before.
    pub fn confirmed(&self, key: &CallKey) -> Option<Running> {
        let mut place = self.place();
        let parked = &mut place.parked;
        let at = parked.iter().position(|one| one.way == ConfirmationMethod::TwoStep && one.key == *key)?;
        goes_on(parked.remove(at), Answer::Yes(DecidedBy::ClientAsserted)).ok()
    }

    /// The same call, where a person at a terminal decides.
    pub fn again(&self, key: &CallKey) -> Option<Again> {
        let mut place = self.place();
        let parked = &mut place.parked;
        let at = parked.iter().position(|one| one.way == ConfirmationMethod::Terminal && one.key == *key)?;
        match parked[at].asked {
            Some(_) => Some(Again::Waits(parked[at].question.clone())),
            None => Some(Again::Decided(parked.remove(at).running)),
        }
    }

    /// Ends all of them: nothing that waits runs, and nothing waits from now on.
    pub fn close(&self) {
        let mut place = self.place();
        place.parked.clear();
        place.is_closed = true;
    }

    /// Without those that are over. An outcome is kept from its end on, however long the change took: without it the
    /// same call would be planned and done once more.
    fn place(&self) -> MutexGuard<'_, Place> {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        place.parked.retain_mut(|one| match &one.asked {
            Some(asked) => !asked.is_over(),
            None if !one.running.has_ended() => true,
            None => one.ended.get_or_insert_with(Instant::now).elapsed() < KEPT,
        });
        place
    }
}

impl host_approval::Parked for Parking {
    fn waiting(&self) -> Vec<host_approval::Waiting> {
        let place = self.place();
        let parked = &place.parked;
        let waits =
            parked.iter().filter(|one| one.way == ConfirmationMethod::Terminal && one.asked.is_some());
        waits.map(|one| host_approval::Waiting::of(&one.question, one.since)).collect()
    }

    /// The call goes on by itself, and its outcome is for whoever makes it again.
    fn decide(&self, id: &str, sha256: &str, yes: bool, by: Person) -> Result<(), Refused> {
        let mut place = self.place();
        let parked = &mut place.parked;
        let one =
            parked.iter_mut().find(|one| one.way == ConfirmationMethod::Terminal && one.question.id == id);
        let one = one.ok_or(Refused::Unknown)?;
        if one.question.sha256 != sha256 {
            return Err(Refused::OtherPlan);
        }
        let asked = one.asked.take().ok_or(Refused::Decided)?;
        let by = DecidedBy::Terminal(by);
        asked.answer(Ok(if yes { Answer::Yes(by) } else { Answer::No(by) })).map_err(|_| Refused::Expired)
    }
}

fn goes_on(parked: Parked, answer: Answer) -> Result<Running, Problem> {
    parked.asked.ok_or_else(expired)?.answer(Ok(answer))?;
    Ok(parked.running)
}

fn unknown() -> Problem {
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
    use crate::envelope::Envelope;
    use crate::running::tests::{asked, asking_call, ended, question};
    use crate::running::{About, Room};
    use crate::turns::Turns;
    use host_approval::Parked as _;
    use host_gate::Ask as _;

    fn key(arguments: Value) -> CallKey {
        CallKey::new("tool", arguments.as_object().unwrap(), None, ["localhost"])
    }

    async fn parked(parking: &Parking, id: &'static str, key: CallKey, way: ConfirmationMethod) {
        let mut running = asking_call(id, key, &room());
        let asked = asked(&mut running).await;
        assert!(parking.park(way, asked, running).is_ok());
    }

    fn person() -> Person {
        Person { uid: 0, account: "root".to_owned() }
    }

    fn room() -> Room {
        Room::new(Turns::new(8, 8))
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
        // What one agent was shown isn't another one's to confirm.
        assert_ne!(
            CallKey::new("a", &Map::new(), Some("a1"), []),
            CallKey::new("a", &Map::new(), Some("a2"), [])
        );
    }

    #[tokio::test]
    async fn an_answer_is_for_its_own_call_and_counts_once() {
        let parking = Parking::default();
        parked(&parking, "a", key(json!({"x": 1})), ConfirmationMethod::InputRequired).await;
        let wrong = parking.resume("a", &key(json!({"x": 2})), yes()).err().unwrap();
        assert_eq!(wrong.code, "CONFIRMATION_MISMATCH");
        assert_eq!(
            parking.resume("b", &key(json!({"x": 1})), yes()).err().unwrap().code,
            "CONFIRMATION_UNKNOWN"
        );
        let mut running = parking.resume("a", &key(json!({"x": 1})), yes()).ok().unwrap();
        assert_eq!(ended(&mut running).await.notes, ["Yes(Elicitation)"]);
        let again = parking.resume("a", &key(json!({"x": 1})), yes()).err().unwrap();
        assert_eq!(again.code, "CONFIRMATION_UNKNOWN");
    }

    #[tokio::test]
    async fn a_way_is_not_answered_by_another() {
        let parking = Parking::default();
        let (one, two, three) = (key(json!({"x": 1})), key(json!({"x": 2})), key(json!({"x": 3})));
        parked(&parking, "a", one.clone(), ConfirmationMethod::InputRequired).await;
        parked(&parking, "b", two.clone(), ConfirmationMethod::Terminal).await;
        parked(&parking, "c", three.clone(), ConfirmationMethod::TwoStep).await;
        assert!(parking.confirmed(&one).is_none() && parking.confirmed(&two).is_none());
        assert!(parking.again(&one).is_none() && parking.again(&three).is_none());
        assert!(parking.resume("b", &two, yes()).is_err() && parking.resume("c", &three, yes()).is_err());
        for id in ["a", "c"] {
            assert_eq!(parking.decide(id, &"00".repeat(32), true, person()), Err(Refused::Unknown));
        }
    }

    #[tokio::test]
    async fn a_second_step_counts_once_and_only_for_what_was_shown() {
        let parking = Parking::default();
        let call = key(json!({}));
        assert!(parking.confirmed(&call).is_none());
        parked(&parking, "a", call.clone(), ConfirmationMethod::TwoStep).await;
        parked(&parking, "b", call.clone(), ConfirmationMethod::TwoStep).await;
        let mut running = parking.confirmed(&call).unwrap();
        assert_eq!(ended(&mut running).await.notes, ["Yes(ClientAsserted)"]);
        // The one shown before was replaced.
        assert!(parking.confirmed(&call).is_none());
    }

    #[tokio::test]
    async fn a_decision_at_a_terminal_is_about_what_was_shown_and_the_call_has_its_outcome() {
        let parking = Parking::default();
        let call = key(json!({}));
        parked(&parking, "a", call.clone(), ConfirmationMethod::Terminal).await;
        assert_eq!(parking.waiting().len(), 1);
        assert!(matches!(parking.again(&call), Some(Again::Waits(_))));
        assert_eq!(parking.decide("a", &"11".repeat(32), true, person()), Err(Refused::OtherPlan));
        parking.decide("a", &"00".repeat(32), true, person()).unwrap();
        assert_eq!(parking.decide("a", &"00".repeat(32), true, person()), Err(Refused::Decided));
        assert!(parking.waiting().is_empty());
        let Some(Again::Decided(mut running)) = parking.again(&call) else { panic!("it is decided") };
        assert_eq!(ended(&mut running).await.notes, ["Yes(Terminal(Person { uid: 0, account: \"root\" }))"]);
        assert!(parking.again(&call).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_expired_does_not_wait() {
        let parking = Parking::default();
        let call = key(json!({}));
        parked(&parking, "a", call.clone(), ConfirmationMethod::Terminal).await;
        parked(&parking, "b", call.clone(), ConfirmationMethod::TwoStep).await;
        parked(&parking, "c", call.clone(), ConfirmationMethod::InputRequired).await;
        tokio::time::sleep(EXPIRES + std::time::Duration::from_secs(1)).await;
        assert!(parking.waiting().is_empty() && parking.again(&call).is_none());
        assert!(parking.confirmed(&call).is_none());
        assert_eq!(parking.resume("c", &call, yes()).err().unwrap().code, "CONFIRMATION_UNKNOWN");
    }

    #[tokio::test(start_paused = true)]
    async fn an_outcome_is_kept_from_its_end_on_however_long_the_change_took() {
        for (asked_for, is_kept) in [(KEPT / 2, true), (KEPT + Duration::from_secs(1), false)] {
            let parking = Parking::default();
            let call = key(json!({}));
            let about = About { tool: "tool".into(), host: "localhost".into(), agent_id: None };
            let mut running =
                Running::begin(about, call.clone(), &room(), |desk, _, _cancelled| async move {
                    desk.ask(question("a")).await.unwrap();
                    tokio::time::sleep(3 * KEPT).await;
                    Envelope::success("tool", "localhost", std::time::Instant::now(), None)
                });
            let asked = asked(&mut running).await;
            assert!(parking.park(ConfirmationMethod::Terminal, asked, running).is_ok());
            parking.decide("a", &"00".repeat(32), true, person()).unwrap();
            tokio::time::sleep(3 * KEPT + Duration::from_secs(1)).await;
            assert!(parking.waiting().is_empty());
            tokio::time::sleep(asked_for).await;
            assert_eq!(matches!(parking.again(&call), Some(Again::Decided(_))), is_kept, "{asked_for:?}");
        }
    }

    #[tokio::test]
    async fn nothing_waits_in_a_server_that_ends() {
        let parking = Parking::default();
        let call = key(json!({}));
        parked(&parking, "a", call.clone(), ConfirmationMethod::Terminal).await;
        parking.close();
        assert!(parking.waiting().is_empty());
        let mut running = asking_call("b", call, &room());
        let asked = asked(&mut running).await;
        let mut running = parking.park(ConfirmationMethod::Terminal, asked, running).err().unwrap();
        assert_eq!(ended(&mut running).await.error.unwrap().error_code, "CONFIRMATION_UNAVAILABLE");
    }
}
