//! The channel by which a call asks for confirmation, and through which it gets its slot to run in.
//!
//! A call gives its slot back while a person decides, and takes a new one when the answer is there. A question is on
//! record before anybody sees it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::call_pool::{CallPool, MAX_QUESTIONS};
use super::scheduler::{Scheduler, SchedulerFull, Slot};
use host_base::problem::{Category, Problem};
use host_gate::{Answer, CommandLog, Confirmer, Question, expired, unavailable};

/// A question that waits for its answer.
#[derive(Debug)]
pub struct OpenQuestion {
    /// The question.
    pub question: Arc<Question>,
    answer: oneshot::Sender<Result<Answer, Problem>>,
    record: Arc<QuestionRecord>,
}

impl OpenQuestion {
    /// Records that the call is asked about as a part of `question`. Returns when that is on record.
    pub async fn record_as_part_of(&self, question: &Question) {
        self.record.record(question).await;
    }

    /// Answers the question, and the call goes on. An error where the question has expired.
    pub fn answer(self, answer: Result<Answer, Problem>) -> Result<(), Problem> {
        self.answer.send(answer).map_err(|_| expired())
    }

    /// Whether the call no longer waits for the answer.
    pub fn is_over(&self) -> bool {
        self.answer.is_closed()
    }
}

/// The end of a call that asks. The call itself holds it.
pub struct ConfirmationChannel {
    scheduler: Scheduler,
    target: String,
    slot: Mutex<Option<HeldSlot>>,
    all_questions: Arc<Semaphore>,
    question_timeout: Option<Duration>,
    host_calls: Option<Arc<Semaphore>>,
    questions: mpsc::Sender<OpenQuestion>,
    command_log: Arc<CommandLog>,
    record: Arc<QuestionRecord>,
    answer: OnceLock<Answer>,
}

/// The permits that a call holds while it runs.
struct HeldSlot {
    _slot: Slot,
    _host_call: Option<OwnedSemaphorePermit>,
}

/// Whether a call's question was shown to anybody, and who records that.
#[derive(Debug, Default)]
struct QuestionRecord {
    /// SHA-256 of the question that was shown.
    question: OnceLock<String>,
    /// Reaches whoever records the call's questions, if anybody does.
    recorder: OnceLock<mpsc::Sender<RecordedSignal>>,
}

/// Dropping it says that the question is on record. The call waits for that.
pub type RecordedSignal = oneshot::Sender<()>;

impl QuestionRecord {
    /// Returns when the question is on record, or nobody records the call any more.
    async fn record(&self, question: &Question) {
        let _ = self.question.set(question.sha256.clone());
        let Some(recorder) = self.recorder.get() else { return };
        let (signal, recorded) = oneshot::channel();
        if recorder.send(signal).await.is_ok() {
            let _ = recorded.await;
        }
    }
}

impl ConfirmationChannel {
    /// Makes the channel of one call on this target, and the end that gets its questions.
    pub(super) fn new(pool: &CallPool, target: &str) -> (Self, mpsc::Receiver<OpenQuestion>) {
        let (sender, questions) = mpsc::channel(1);
        let output = pool.output.as_ref().map_or_else(Default::default, |output| output.for_host(target));
        let channel = Self {
            scheduler: pool.scheduler.clone(),
            target: target.to_owned(),
            slot: Mutex::default(),
            all_questions: pool.questions.clone(),
            question_timeout: pool.question_timeout,
            host_calls: pool.host_calls.clone(),
            questions: sender,
            command_log: Arc::new(CommandLog::with_output(output)),
            record: Arc::default(),
            answer: OnceLock::new(),
        };
        (channel, questions)
    }

    /// Waits until the call may run.
    pub async fn acquire_slot(&self) -> Result<(), SchedulerFull> {
        let _host_call = self.acquire_host_call().await;
        let slot = self.scheduler.acquire(&self.target).await?;
        self.set_slot(HeldSlot { _slot: slot, _host_call });
        Ok(())
    }

    /// Waits until the call may run again after a question. It never fails because too many calls wait: its confirmation
    /// would be lost.
    async fn reacquire_slot(&self) {
        let _host_call = self.acquire_host_call().await;
        if let Some(_slot) = self.scheduler.reacquire(&self.target).await {
            self.set_slot(HeldSlot { _slot, _host_call });
        }
    }

    async fn acquire_host_call(&self) -> Option<OwnedSemaphorePermit> {
        self.host_calls.clone()?.acquire_owned().await.ok()
    }

    fn set_slot(&self, slot: HeldSlot) {
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(slot);
    }

    /// Gives the slot back. Says whether there was one.
    fn release_slot(&self) -> bool {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    /// The log of the call's commands.
    pub fn command_log(&self) -> &Arc<CommandLog> {
        &self.command_log
    }

    /// SHA-256 of the question that was shown to somebody, if one was.
    pub fn question_sha256(&self) -> Option<&str> {
        self.record.question.get().map(String::as_str)
    }

    /// Gives whoever records the call a receiver of its questions. Each question is sent before anybody sees it, and waits
    /// until the signal is dropped.
    pub fn questions_to_record(&self) -> mpsc::Receiver<RecordedSignal> {
        let (sender, receiver) = mpsc::channel(1);
        let _ = self.record.recorder.set(sender);
        receiver
    }

    /// The answer, if there was one.
    pub fn answer(&self) -> Option<&Answer> {
        self.answer.get()
    }
}

impl Confirmer for ConfirmationChannel {
    fn holds_plans(&self) -> bool {
        self.host_calls.is_some()
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Answer, Problem>> {
        Box::pin(async move {
            let _permit = self.all_questions.try_acquire().map_err(|_| too_many())?;
            let (answer, answered) = oneshot::channel();
            let open = OpenQuestion { question: Arc::new(question), answer, record: self.record.clone() };
            // The question of one host among many is recorded with the request's own question, if that is asked at all.
            if !self.holds_plans() {
                open.record_as_part_of(&open.question).await;
            }
            let had_slot = self.release_slot();
            self.questions.send(open).await.map_err(|_| unavailable("the caller is gone"))?;
            let answered = async {
                match self.question_timeout {
                    Some(timeout) => tokio::time::timeout(timeout, answered).await,
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
            // The module goes on after a no as well, to say what it did not do.
            if had_slot {
                self.reacquire_slot().await;
            }
            answer
        })
    }
}

fn too_many() -> Problem {
    let message = format!("{MAX_QUESTIONS} calls wait to be confirmed, and no more may: nothing was changed");
    Problem::new("TOO_MANY_WAITING", Category::Resource, message)
        .remedy("Have those decided first, or let them expire")
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::answers::envelope::Envelope;
    use crate::calls::call_handle::CallHandle;
    use crate::calls::call_key::CallKey;
    use crate::calls::test_calls::{asking_call, info, next_question, question, wait_for_end};

    fn key() -> CallKey {
        CallKey::new("tool", &serde_json::Map::new(), None, [])
    }

    fn pool() -> CallPool {
        CallPool::new(Scheduler::new(1, 0))
    }

    fn code(envelope: &Envelope) -> &str {
        envelope.error.as_ref().map_or("", |error| &error.error_code)
    }

    #[tokio::test]
    async fn a_call_that_asks_holds_no_slot() {
        let pool = pool();
        let mut first = asking_call("a", key(), &pool);
        let first_question = next_question(&mut first).await;
        let mut second = asking_call("b", key(), &pool);
        let second_question = next_question(&mut second).await;
        first_question.answer(Ok(Answer::Yes(host_audit::DecidedBy::Elicitation))).unwrap();
        assert_eq!(wait_for_end(&mut first).await.notes, ["Yes(Elicitation)"]);
        second_question.answer(Ok(Answer::No(host_audit::DecidedBy::Elicitation))).unwrap();
        assert_eq!(wait_for_end(&mut second).await.notes, ["No(Elicitation)"]);
    }

    #[tokio::test]
    async fn nobody_sees_a_question_before_it_is_on_record() {
        let (go_on, on_record) = oneshot::channel::<()>();
        let mut call = CallHandle::start(
            info("localhost"),
            key(),
            &pool(),
            move |channel, _, _| async move {
                let mut questions = channel.questions_to_record();
                let recording = async {
                    let signal = questions.recv().await;
                    on_record.await.unwrap();
                    drop(signal);
                    std::future::pending().await
                };
                tokio::select! {
                    answer = channel.ask(question("a")) => assert_eq!(answer.unwrap_err().code, "CONFIRMATION_UNAVAILABLE"),
                    () = recording => {}
                }
                Envelope::success("tool", "localhost", Instant::now(), None)
            },
        );
        for _ in 0..10 {
            tokio::task::yield_now().await;
            assert!(call.has_no_question());
        }
        go_on.send(()).unwrap();
        drop(next_question(&mut call).await);
        wait_for_end(&mut call).await;
    }

    #[tokio::test]
    async fn a_question_of_a_call_that_nobody_records_any_more_does_not_wait() {
        let mut call = CallHandle::start(info("localhost"), key(), &pool(), |channel, _, _| async move {
            drop(channel.questions_to_record());
            let _ = channel.ask(question("a")).await;
            Envelope::success("tool", "localhost", Instant::now(), None)
        });
        drop(next_question(&mut call).await);
        wait_for_end(&mut call).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_nobody_answers_expires_and_no_late_answer_counts() {
        let mut call = asking_call("a", key(), &pool());
        let question = next_question(&mut call).await;
        assert_eq!(code(&wait_for_end(&mut call).await), "CONFIRMATION_EXPIRED");
        let late = question.answer(Ok(Answer::Yes(host_audit::DecidedBy::Elicitation)));
        assert_eq!(late.unwrap_err().code, "CONFIRMATION_EXPIRED");
    }

    #[tokio::test]
    async fn a_question_that_is_dropped_is_no_yes() {
        let mut call = asking_call("a", key(), &pool());
        drop(next_question(&mut call).await);
        assert_eq!(code(&wait_for_end(&mut call).await), "CONFIRMATION_UNAVAILABLE");
    }

    #[tokio::test]
    async fn only_so_many_questions_wait_and_one_more_is_an_error() {
        let pool = pool();
        let mut waiting = Vec::new();
        for _ in 0..MAX_QUESTIONS {
            let mut call = asking_call("a", key(), &pool);
            waiting.push((next_question(&mut call).await, call));
        }
        assert_eq!(code(&wait_for_end(&mut asking_call("b", key(), &pool)).await), "TOO_MANY_WAITING");
        let (first, mut call) = waiting.pop().unwrap();
        first.answer(Ok(Answer::No(host_audit::DecidedBy::Elicitation))).unwrap();
        wait_for_end(&mut call).await;
        next_question(&mut asking_call("c", key(), &pool)).await;
    }

    #[tokio::test]
    async fn an_answer_counts_however_many_calls_wait_for_a_slot() {
        let pool = pool();
        let mut call = asking_call("a", key(), &pool);
        let question = next_question(&mut call).await;
        let slot = pool.scheduler.acquire("localhost").await.unwrap();
        question.answer(Ok(Answer::Yes(host_audit::DecidedBy::Elicitation))).unwrap();
        let (envelope, ()) = tokio::join!(wait_for_end(&mut call), async {
            tokio::task::yield_now().await;
            drop(slot);
        });
        assert_eq!(envelope.notes, ["Yes(Elicitation)"]);
    }

    #[tokio::test]
    async fn a_call_that_asks_can_be_cancelled() {
        let mut call = asking_call("a", key(), &pool());
        let _question = next_question(&mut call).await;
        call.cancel();
        assert_eq!(code(&wait_for_end(&mut call).await), "CANCELLED");
    }
}
