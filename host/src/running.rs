//! A call under way. It may stop to have somebody asked, and goes on when there is an answer, whoever brings it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::call_key::CallKey;
use crate::envelope::Envelope;
use crate::turns::{Busy, Turn, Turns};
use host_base::problem::{Category, Problem};
use host_components::Progress;
use host_gate::Executed;
use host_gate::Question;
use host_gate::{Answer, Ask, EXPIRES, expired, unavailable};
use host_text::visible::excerpt;

/// Questions that wait for an answer at the same time: each keeps its call, with all that this holds.
const QUESTIONS: usize = 32;

/// Parts of one call that want a slot at the same time: the queue is everybody's.
const AT_ONCE: usize = 64;

/// What all calls share.
pub struct Room {
    slots: Turns,
    questions: Arc<Semaphore>,
    calls: TaskTracker,
    /// How long a question waits.
    patience: Option<Duration>,
    /// Of calls that are parts of another one, which puts their plans to somebody, all at once, whether a person has to be
    /// asked or not: how many of them may have or want a slot.
    parts: Option<Arc<Semaphore>>,
}

impl Room {
    /// With so many slots for calls that are worked on.
    pub fn new(slots: Turns) -> Self {
        Self {
            slots,
            questions: Arc::new(Semaphore::new(QUESTIONS)),
            calls: TaskTracker::new(),
            patience: Some(EXPIRES),
            parts: None,
        }
    }

    /// For calls that have slots of their own, and all else with the others.
    pub fn beside(&self, slots: Turns) -> Self {
        Self {
            slots,
            questions: self.questions.clone(),
            calls: self.calls.clone(),
            patience: self.patience,
            parts: None,
        }
    }

    /// For calls that are parts of another one, which answers all their questions as it gets to them.
    pub fn of_parts(&self, parts: usize) -> Self {
        Self {
            slots: self.slots.clone(),
            questions: Arc::new(Semaphore::new(parts)),
            calls: self.calls.clone(),
            patience: None,
            parts: Some(Arc::new(Semaphore::new(AT_ONCE))),
        }
    }

    /// Returns when no call is under way.
    pub async fn is_empty(&self) {
        self.calls.close();
        self.calls.wait().await;
    }
}

/// What a call is, in a few words.
#[derive(Clone, Debug)]
pub struct About {
    /// Its tool.
    pub tool: String,
    /// Where it works.
    pub host: String,
    /// Which of several agents asks, by its own word.
    pub agent_id: Option<String>,
}

/// A call under way. Dropped, it is cancelled.
pub struct Running {
    key: CallKey,
    says_confirmed: bool,
    about: About,
    started: (Instant, SystemTime),
    executed: Arc<Executed>,
    task: JoinHandle<Envelope>,
    questions: mpsc::Receiver<Asked>,
    said: Said,
    cancelled: CancellationToken,
    _cancelled_when_dropped: DropGuard,
}

/// What comes next of a call.
pub enum Next {
    /// The end of it.
    Answered(Box<Envelope>),
    /// Somebody is to be asked. It waits.
    Asks(Asked),
}

/// A question that waits for its answer.
#[derive(Debug)]
pub struct Asked {
    /// What is asked.
    pub question: Arc<Question>,
    answer: oneshot::Sender<Result<Answer, Problem>>,
    put: Arc<Put>,
}

impl Asked {
    /// It is put to somebody as a part of this one, which is on record when this returns.
    pub async fn put(&self, question: &Question) {
        self.put.put(question).await;
    }

    /// Goes on, where the question hasn't expired meanwhile: so many answers as there may be, one counts.
    pub fn answer(self, answer: Result<Answer, Problem>) -> Result<(), Problem> {
        self.answer.send(answer).map_err(|_| expired())
    }

    /// Whether anybody still waits.
    pub fn is_over(&self) -> bool {
        self.answer.is_closed()
    }
}

/// What a call says of how far it is, the latest.
#[derive(Clone, Default)]
pub struct Said(Arc<Mutex<String>>);

impl Said {
    /// Nothing, where it hasn't said anything yet.
    pub fn latest(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn sink(&self) -> Progress {
        let said = self.0.clone();
        Arc::new(move |fraction, message| {
            let mut text = excerpt(message, 200);
            if let Some(fraction) = fraction.filter(|fraction| fraction.is_finite()) {
                text = format!("{text} ({:.0}%)", fraction.clamp(0.0, 1.0) * 100.0);
            }
            *said.lock().unwrap_or_else(PoisonError::into_inner) = text;
        })
    }
}

impl Running {
    /// Begins the call: with its desk, what it says goes through, and what ends it.
    pub fn begin<F>(
        about: About,
        key: CallKey,
        room: &Room,
        call: impl FnOnce(Arc<Desk>, Progress, CancellationToken) -> F,
    ) -> Self
    where
        F: Future<Output = Envelope> + Send + 'static,
    {
        let (sender, questions) = mpsc::channel(1);
        let executed = Arc::new(Executed::default());
        let desk = Desk {
            slots: room.slots.clone(),
            all_questions: room.questions.clone(),
            patience: room.patience,
            parts: room.parts.clone(),
            target: about.host.clone(),
            slot: Mutex::default(),
            questions: sender,
            executed: executed.clone(),
            put: Arc::default(),
            answer: OnceLock::new(),
        };
        let (said, cancelled) = (Said::default(), CancellationToken::new());
        // The future is boxed: it is large, and a new task is moved several times before it runs.
        let task = room.calls.spawn(Box::pin(call(Arc::new(desk), said.sink(), cancelled.clone())));
        let _cancelled_when_dropped = cancelled.clone().drop_guard();
        Self {
            key,
            says_confirmed: false,
            about,
            started: (Instant::now(), SystemTime::now()),
            executed,
            task,
            questions,
            said,
            cancelled,
            _cancelled_when_dropped,
        }
    }

    /// Waits for it. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Next {
        tokio::select! {
            biased;
            Some(asked) = self.questions.recv() => Next::Asks(asked),
            ended = &mut self.task => Next::Answered(Box::new(ended.unwrap_or_else(|error| {
                tracing::error!(tool = self.about.tool, %error, "a call failed");
                let problem = Problem::new("INTERNAL_ERROR", Category::Internal, "the host failed; its log says how");
                Envelope::failure(&self.about.tool, &self.about.host, self.started.0, None, problem)
            }))),
        }
    }

    /// What it is.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// When it was begun.
    pub fn started(&self) -> (Instant, SystemTime) {
        self.started
    }

    /// What it runs.
    pub fn executed(&self) -> &Arc<Executed> {
        &self.executed
    }

    /// Whether its envelope is there.
    pub fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Ends it: it says so in its envelope.
    pub fn cancel(&self) {
        self.cancelled.cancel();
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// How far it is.
    pub fn said(&self) -> Said {
        self.said.clone()
    }

    /// The same, begun by a request that says it is confirmed.
    pub fn said_to_be_confirmed(self, says_confirmed: bool) -> Self {
        Self { says_confirmed, ..self }
    }

    /// Whether the request says so that began it.
    pub fn says_confirmed(&self) -> bool {
        self.says_confirmed
    }

    /// Which call it is.
    pub fn key(&self) -> &CallKey {
        &self.key
    }
}

/// A call's own place among all calls, which it leaves while somebody is asked.
pub struct Desk {
    slots: Turns,
    target: String,
    slot: Mutex<Option<Slot>>,
    all_questions: Arc<Semaphore>,
    patience: Option<Duration>,
    parts: Option<Arc<Semaphore>>,
    questions: mpsc::Sender<Asked>,
    executed: Arc<Executed>,
    put: Arc<Put>,
    answer: OnceLock<Answer>,
}

/// A call's place among those that are worked on.
struct Slot {
    _turn: Option<Turn>,
    _part: Option<OwnedSemaphorePermit>,
}

/// Whether a question was put to somebody.
#[derive(Debug, Default)]
struct Put {
    /// SHA-256 of the question.
    question: OnceLock<String>,
    /// To whoever puts the call's questions on record, if anybody does.
    recorder: OnceLock<mpsc::Sender<OnRecord>>,
}

/// The call that waits for its question to be on record goes on once this is dropped.
pub type OnRecord = oneshot::Sender<()>;

impl Put {
    /// Returns once it is on record, or the call is gone.
    async fn put(&self, question: &Question) {
        let _ = self.question.set(question.sha256.clone());
        let Some(recorder) = self.recorder.get() else { return };
        let (on_record, is_on_record) = oneshot::channel();
        if recorder.send(on_record).await.is_ok() {
            let _ = is_on_record.await;
        }
    }
}

impl Desk {
    /// Waits until this call may be worked on.
    pub async fn take(&self) -> Result<(), Busy> {
        let _part = self.part().await;
        let turn = self.slots.take(&self.target).await?;
        self.has(Slot { _turn: Some(turn), _part });
        Ok(())
    }

    /// The same after a question: however many wait, who was asked doesn't hear after the answer that there is no place.
    async fn take_again(&self) {
        let _part = self.part().await;
        let _turn = self.slots.take_again(&self.target).await;
        self.has(Slot { _turn, _part });
    }

    async fn part(&self) -> Option<OwnedSemaphorePermit> {
        self.parts.clone()?.acquire_owned().await.ok()
    }

    fn has(&self, slot: Slot) {
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(slot);
    }

    /// Whether there was one to leave.
    fn leave(&self) -> bool {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    /// Where the call's commands are noted.
    pub fn executed(&self) -> &Arc<Executed> {
        &self.executed
    }

    /// SHA-256 of what somebody was asked, if anybody was.
    pub fn question(&self) -> Option<&str> {
        self.put.question.get().map(String::as_str)
    }

    /// Tells of each question of this call before anybody sees it, which waits until it is on record. For the one who keeps
    /// the record.
    pub fn questions_put(&self) -> mpsc::Receiver<OnRecord> {
        let (sender, receiver) = mpsc::channel(1);
        let _ = self.put.recorder.set(sender);
        receiver
    }

    /// What was answered, if anything was.
    pub fn answer(&self) -> Option<&Answer> {
        self.answer.get()
    }
}

impl Ask for Desk {
    fn holds_plans(&self) -> bool {
        self.parts.is_some()
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Answer, Problem>> {
        Box::pin(async move {
            let _waits = self.all_questions.try_acquire().map_err(|_| too_many())?;
            let (answer, answered) = oneshot::channel();
            let asked = Asked { question: Arc::new(question), answer, put: self.put.clone() };
            // A part's is put to somebody with all the others, if it comes to that.
            if !self.holds_plans() {
                asked.put(&asked.question).await;
            }
            let had_slot = self.leave();
            self.questions.send(asked).await.map_err(|_| unavailable("whoever called is gone"))?;
            let answered = async {
                match self.patience {
                    Some(patience) => tokio::time::timeout(patience, answered).await,
                    None => Ok(answered.await),
                }
            };
            let answer = match answered.await {
                Err(_) => Err(expired()),
                Ok(Err(_)) => Err(unavailable("the question was dropped")),
                Ok(Ok(answer)) => answer,
            };
            if let Ok(answer) = &answer {
                let _ = self.answer.set(answer.clone());
            }
            // Whatever the answer, the module goes on.
            if had_slot {
                self.take_again().await;
            }
            answer
        })
    }
}

fn too_many() -> Problem {
    let message = format!("{QUESTIONS} calls wait to be confirmed, and no more may: nothing was changed");
    Problem::new("TOO_MANY_WAITING", Category::Resource, message)
        .remedy("Have those decided first, or let them expire")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use host_base::Risk;

    /// A question about nothing.
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

    /// A call that asks, and says in its envelope's note what it was answered.
    pub fn asking_call(id: &'static str, key: CallKey, room: &Room) -> Running {
        let about = About { tool: "tool".into(), host: "localhost".into(), agent_id: None };
        Running::begin(about, key, room, move |desk, _, cancelled| async move {
            desk.take().await.unwrap();
            let answer = tokio::select! {
                answer = desk.ask(question(id)) => answer,
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

    pub async fn asked(running: &mut Running) -> Asked {
        match running.next().await {
            Next::Asks(asked) => asked,
            Next::Answered(envelope) => panic!("{envelope:?}"),
        }
    }

    pub async fn ended(running: &mut Running) -> Envelope {
        match running.next().await {
            Next::Answered(envelope) => *envelope,
            Next::Asks(asked) => panic!("{asked:?}"),
        }
    }

    fn key() -> CallKey {
        CallKey::new("tool", &serde_json::Map::new(), None, [])
    }

    fn code(envelope: &Envelope) -> &str {
        envelope.error.as_ref().map_or("", |error| &error.error_code)
    }

    #[tokio::test]
    async fn a_call_that_asks_holds_no_place_among_the_calls() {
        let room = Room::new(Turns::new(1, 0));
        let mut first = asking_call("a", key(), &room);
        let first_asked = asked(&mut first).await;
        let mut second = asking_call("b", key(), &room);
        let second_asked = asked(&mut second).await;
        first_asked.answer(Ok(Answer::Yes(host_audit::DecidedBy::Elicitation))).unwrap();
        assert_eq!(ended(&mut first).await.notes, ["Yes(Elicitation)"]);
        second_asked.answer(Ok(Answer::No(host_audit::DecidedBy::Elicitation))).unwrap();
        assert_eq!(ended(&mut second).await.notes, ["No(Elicitation)"]);
    }

    #[tokio::test]
    async fn nobody_sees_a_question_before_it_is_on_record() {
        let room = Room::new(Turns::new(1, 0));
        let about = About { tool: "tool".into(), host: "localhost".into(), agent_id: None };
        let (go_on, on_record) = oneshot::channel::<()>();
        let mut running = Running::begin(about, key(), &room, move |desk, _, _| async move {
            let mut puts = desk.questions_put();
            let recording = async {
                let put = puts.recv().await;
                on_record.await.unwrap();
                drop(put);
                std::future::pending().await
            };
            tokio::select! {
                answer = desk.ask(question("a")) => assert_eq!(answer.unwrap_err().code, "CONFIRMATION_UNAVAILABLE"),
                () = recording => {}
            }
            Envelope::success("tool", "localhost", Instant::now(), None)
        });
        for _ in 0..10 {
            tokio::task::yield_now().await;
            assert!(running.questions.is_empty());
        }
        go_on.send(()).unwrap();
        drop(asked(&mut running).await);
        ended(&mut running).await;
    }

    #[tokio::test]
    async fn a_question_of_a_call_that_nobody_records_any_more_does_not_wait() {
        let room = Room::new(Turns::new(1, 0));
        let about = About { tool: "tool".into(), host: "localhost".into(), agent_id: None };
        let mut running = Running::begin(about, key(), &room, |desk, _, _| async move {
            drop(desk.questions_put());
            let _ = desk.ask(question("a")).await;
            Envelope::success("tool", "localhost", Instant::now(), None)
        });
        drop(asked(&mut running).await);
        ended(&mut running).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_nobody_answers_expires_and_no_late_answer_counts() {
        let room = Room::new(Turns::new(1, 0));
        let mut running = asking_call("a", key(), &room);
        let asked = asked(&mut running).await;
        let envelope = ended(&mut running).await;
        assert_eq!(code(&envelope), "CONFIRMATION_EXPIRED");
        let late = asked.answer(Ok(Answer::Yes(host_audit::DecidedBy::Elicitation)));
        assert_eq!(late.unwrap_err().code, "CONFIRMATION_EXPIRED");
    }

    #[tokio::test]
    async fn a_question_that_is_dropped_is_no_yes() {
        let room = Room::new(Turns::new(1, 0));
        let mut running = asking_call("a", key(), &room);
        drop(asked(&mut running).await);
        assert_eq!(code(&ended(&mut running).await), "CONFIRMATION_UNAVAILABLE");
    }

    #[tokio::test]
    async fn few_wait_and_one_more_is_told_so() {
        let room = Room::new(Turns::new(1, 0));
        let mut waiting = Vec::new();
        for _ in 0..QUESTIONS {
            let mut running = asking_call("a", key(), &room);
            waiting.push((asked(&mut running).await, running));
        }
        assert_eq!(code(&ended(&mut asking_call("b", key(), &room)).await), "TOO_MANY_WAITING");
        let (first, mut running) = waiting.pop().unwrap();
        first.answer(Ok(Answer::No(host_audit::DecidedBy::Elicitation))).unwrap();
        ended(&mut running).await;
        asked(&mut asking_call("c", key(), &room)).await;
    }

    #[tokio::test]
    async fn an_answer_is_heard_however_many_wait_for_their_turn() {
        let room = Room::new(Turns::new(1, 0));
        let mut running = asking_call("a", key(), &room);
        let asked = asked(&mut running).await;
        let held = room.slots.take("localhost").await.unwrap();
        asked.answer(Ok(Answer::Yes(host_audit::DecidedBy::Elicitation))).unwrap();
        let (envelope, ()) = tokio::join!(ended(&mut running), async {
            tokio::task::yield_now().await;
            drop(held);
        });
        assert_eq!(envelope.notes, ["Yes(Elicitation)"]);
    }

    #[tokio::test]
    async fn a_call_that_asks_can_be_cancelled() {
        let room = Room::new(Turns::new(1, 0));
        let mut running = asking_call("a", key(), &room);
        let _asked = asked(&mut running).await;
        running.cancel();
        assert_eq!(code(&ended(&mut running).await), "CANCELLED");
    }
}
