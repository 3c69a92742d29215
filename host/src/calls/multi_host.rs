//! One request on many hosts. It becomes one call for each host, and one envelope.
//!
//! Calls that only look run side by side. Where they change something, every plan is made before any of them runs, and
//! one question is about all of them. The first host is changed alone, and no host is changed after one that failed.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::call_handle::{CallEvent, CallHandle};
use super::confirmation_channel::OpenQuestion;
use crate::answers::envelope::{Envelope, MultiHostInfo};
use host_aggregate::{Failures, HostAnswer, HostFailure, fold};
use host_audit::DecidedBy;
use host_base::problem::{Category, Problem};
use host_gate::CommandLog;
use host_gate::Question;
use host_gate::{Answer, Confirmer};

/// The shortest time that the last few hosts have, once all others have answered. They have at least twice as long as it
/// took so far.
const STRAGGLER_TIMEOUT: Duration = Duration::from_secs(10);
/// One in so many hosts may be a straggler.
const STRAGGLER_FRACTION: usize = 10;

/// The call on one of the hosts.
pub struct HostCall {
    /// The host's name.
    pub host: String,
    /// The call.
    pub call: CallHandle,
}

/// The state of the call on one host, when it has ended or needs a confirmation.
enum HostProgress {
    /// The call has ended.
    Ended(Box<Envelope>),
    /// The call has a plan, which waits for a confirmation.
    Waits(OpenQuestion, Box<CallHandle>),
    /// The host was too slow, and its call was given up after this time.
    TooSlow(Duration),
}

/// The end of the call on one host.
enum HostOutcome {
    Answered(Box<Envelope>),
    TooSlow(Duration),
    /// A change had failed on another host before.
    NotBegun,
}

/// A call whose plan waits for the confirmation, with its position among the hosts.
struct WaitingCall {
    at: usize,
    question: OpenQuestion,
    call: Box<CallHandle>,
}

/// One request on many hosts, in the order in which the hosts were named.
pub struct MultiHostCall {
    tool: String,
    hosts: Vec<String>,
    calls: Vec<HostCall>,
    outcomes: Vec<Option<HostOutcome>>,
    /// The number of hosts that are changed at the same time; `None` where the tool only looks.
    serial: Option<usize>,
    /// The log of the request itself. It says whether a confirmation may still be needed.
    command_log: Arc<CommandLog>,
}

impl MultiHostCall {
    /// Puts the calls of one request together.
    pub fn new(
        tool: String,
        calls: Vec<HostCall>,
        serial: Option<usize>,
        command_log: Arc<CommandLog>,
    ) -> Self {
        let hosts = calls.iter().map(|call| call.host.clone()).collect();
        command_log.consists_of(calls.iter().map(|one| one.call.command_log().clone()).collect());
        let outcomes = calls.iter().map(|_| None).collect();
        Self { tool, hosts, calls, outcomes, serial, command_log }
    }

    /// Runs all calls to their end, or until they are cancelled. `ask` reaches the caller.
    pub async fn run(&mut self, ask: &dyn Confirmer, cancelled: &CancellationToken) {
        let calls = std::mem::take(&mut self.calls);
        let mut waiting = Vec::new();
        for (at, progress) in run_until_confirmation(calls, cancelled).await {
            match progress {
                HostProgress::Ended(envelope) => self.outcomes[at] = Some(HostOutcome::Answered(envelope)),
                HostProgress::TooSlow(after) => self.outcomes[at] = Some(HostOutcome::TooSlow(after)),
                HostProgress::Waits(question, call) => waiting.push(WaitingCall { at, question, call }),
            }
        }
        waiting.sort_by_key(|one| one.at);
        if waiting.is_empty() {
            return;
        }
        if let Some(first) = self.first_failed() {
            let problem = self.not_begun(first);
            return self.skip(waiting, &problem).await;
        }
        if let Some(problem) = same_machine(&waiting) {
            for WaitingCall { at, question, mut call } in waiting {
                let _ = question.answer(Err(problem.clone()));
                self.outcomes[at] = Some(HostOutcome::Answered(wait_for_end(&mut call, cancelled).await));
            }
            return;
        }
        let questions: Vec<_> = waiting.iter().map(|one| one.question.question.clone()).collect();
        let answer = match questions.iter().any(|question| question.needs_person) {
            false => Ok(Answer::Yes(DecidedBy::Policy)),
            true => match Question::of_many(&questions) {
                Ok(question) => {
                    let open = waiting.iter().map(|one| &one.question);
                    let recorded = open
                        .filter(|open| open.question.needs_person)
                        .map(|open| open.record_as_part_of(&question));
                    futures_util::future::join_all(recorded).await;
                    tokio::select! {
                        answer = ask.ask(question) => answer,
                        () = cancelled.cancelled() => Err(super::cancelled()),
                    }
                }
                Err(problem) => Err(problem),
            },
        };
        self.command_log.mark_decided();
        self.run_confirmed(waiting, answer, cancelled).await;
    }

    /// Gives the answer to the first host alone, then to `serial` hosts at a time.
    async fn run_confirmed(
        &mut self,
        waiting: Vec<WaitingCall>,
        answer: Result<Answer, Problem>,
        cancelled: &CancellationToken,
    ) {
        let mut waiting = waiting.into_iter();
        let mut at_once = 1;
        loop {
            if cancelled.is_cancelled() {
                return self.skip(waiting.collect(), &super::cancelled()).await;
            }
            let batch: Vec<_> = waiting.by_ref().take(at_once).collect();
            if batch.is_empty() {
                return;
            }
            let ends = batch.into_iter().map(|WaitingCall { at, question, mut call }| {
                let (answer, whole, own) = (answer.clone(), &self.command_log, call.command_log().clone());
                async move {
                    // Where the answer is too late, the call's own envelope says so.
                    let _ = question.answer(answer);
                    let begins = async {
                        whole.set_beginning(own.beginning().await);
                        std::future::pending().await
                    };
                    tokio::select! {
                        envelope = wait_for_end(&mut call, cancelled) => (at, envelope),
                        // The first host tells whoever confirmed whether the change has begun.
                        never = begins => never,
                    }
                }
            });
            for (at, envelope) in futures_util::future::join_all(ends).await {
                self.outcomes[at] = Some(HostOutcome::Answered(envelope));
            }
            at_once = self.serial.unwrap_or(1);
            // A no is for all hosts, so each call gets it and says so.
            if let (Ok(Answer::Yes(_)), Some(first)) = (&answer, self.first_failed()) {
                let problem = self.not_begun(first);
                return self.skip(waiting.collect(), &problem).await;
            }
        }
    }

    /// Ends these calls before they change anything.
    async fn skip(&mut self, waiting: Vec<WaitingCall>, why: &Problem) {
        let ends = waiting.into_iter().map(|WaitingCall { at, question, mut call }| async move {
            let _ = question.answer(Err(why.clone()));
            wait_for_end(&mut call, &CancellationToken::new()).await;
            at
        });
        for at in futures_util::future::join_all(ends).await {
            self.outcomes[at] = Some(HostOutcome::NotBegun);
        }
    }

    fn first_failed(&self) -> Option<usize> {
        self.outcomes.iter().position(|outcome| match outcome {
            Some(HostOutcome::Answered(envelope)) => envelope.is_error(),
            Some(HostOutcome::TooSlow(_)) => true,
            _ => false,
        })
    }

    fn not_begun(&self, failed: usize) -> Problem {
        let message = format!("nothing was begun here: it had failed on {} before", self.hosts[failed]);
        Problem::new("NOT_BEGUN", Category::State, message)
    }

    /// Folds all answers into one envelope. That may take seconds, so it must not run where other calls wait for it.
    pub fn envelope(self, started: std::time::Instant) -> Envelope {
        let shown = format!("{} hosts", self.hosts.len());
        let (mut answers, mut failures, mut previews) = (Vec::new(), Failures::default(), Vec::new());
        let mut needs_confirmation = false;
        let mut info = MultiHostInfo::default();
        let (mut commands, mut first, mut filter) = (Vec::new(), None, None);
        for (host, outcome) in self.hosts.into_iter().zip(self.outcomes) {
            info.hosts.total += 1;
            let envelope = match outcome {
                Some(HostOutcome::NotBegun) => {
                    info.not_begun.push(host);
                    continue;
                }
                Some(HostOutcome::Answered(envelope)) => *envelope,
                Some(HostOutcome::TooSlow(after)) => {
                    Envelope::failure(&self.tool, &host, started, None, too_slow(after))
                }
                None => {
                    let problem =
                        Problem::new("INTERNAL_ERROR", Category::Internal, "the host lost this call");
                    Envelope::failure(&self.tool, &host, started, None, problem)
                }
            };
            commands.extend(envelope.command_executed.clone());
            if let Some(error) = &envelope.error {
                info.hosts.failed += 1;
                first.get_or_insert_with(|| (host.clone(), error.clone(), envelope.status));
                let failure = HostFailure {
                    error_code: &error.error_code,
                    message: &error.message,
                    remediation: &error.remediation,
                    details: &error.details,
                };
                failures.add(&host, failure);
                continue;
            }
            info.hosts.succeeded += 1;
            info.done.push(host.clone());
            filter = filter.or(envelope.filter);
            needs_confirmation |= envelope.needs_confirmation;
            if let Some(preview) = envelope.preview {
                previews.push(HostAnswer {
                    host: host.clone(),
                    data: preview,
                    summary: None,
                    severity: None,
                    notes: Vec::new(),
                    truncated: false,
                });
            }
            answers.push(HostAnswer {
                host,
                data: envelope.data.unwrap_or(Value::Null),
                summary: envelope.summary,
                severity: envelope.severity,
                notes: envelope.notes,
                truncated: envelope.truncated.unwrap_or_default(),
            });
        }
        commands.dedup();
        let command = match commands.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            _ => Some(format!("multiple (on {} hosts)", info.hosts.total)),
        };
        let has_answers = !answers.is_empty();
        info.failures = failures.into_json();
        let mut envelope = Envelope::success(&self.tool, &shown, started, command);
        if has_answers {
            let folded = fold(answers);
            envelope.truncated = folded.truncated.then_some(true);
            envelope.data = Some(folded.data);
            envelope.summary = folded.summary;
            envelope.severity = folded.severity;
            envelope.notes = folded.notes;
        }
        if !previews.is_empty() {
            envelope.dry_run = true;
            let folded = fold(previews);
            envelope.preview = Some(folded.data);
            envelope.needs_confirmation = needs_confirmation;
            if folded.truncated {
                envelope.truncated = Some(true);
                envelope.notes.extend(folded.notes);
            }
        }
        envelope.filter = filter;
        if let Some((host, mut error, status)) = first
            && (!has_answers || self.serial.is_some())
        {
            error.message = format!("{host}: {}", error.message);
            envelope.status = status;
            envelope.error = Some(error);
        } else {
            // Every host but those in `failures` was changed, and the counts say how many.
            info.done.clear();
        }
        envelope.multi_host = Some(info);
        envelope
    }
}

fn too_slow(after: Duration) -> Problem {
    let message =
        format!("no answer within {:.0} s, when nearly all others had answered", after.as_secs_f64());
    Problem::new("HOST_SLOW", Category::Timeout, message)
        .remedy("Ask this host alone: it is waited for longer then")
}

/// Runs each call to its end or to its question. A few calls that take much longer than all others are given up.
async fn run_until_confirmation(
    calls: Vec<HostCall>,
    cancelled: &CancellationToken,
) -> Vec<(usize, HostProgress)> {
    let (started, all) = (Instant::now(), calls.len());
    let running = calls.into_iter().enumerate().map(|(at, HostCall { mut call, .. })| async move {
        let progress = match next_event(&mut call, cancelled).await {
            CallEvent::Ended(envelope) => HostProgress::Ended(envelope),
            CallEvent::Asks(question) => HostProgress::Waits(question, Box::new(call)),
        };
        (at, progress)
    });
    let mut running: FuturesUnordered<_> = running.collect();
    let (mut reached, mut deadline) = (Vec::new(), None);
    while reached.len() < all {
        let next = match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, running.next()).await.ok().flatten(),
            None => running.next().await,
        };
        let Some(progress) = next else { break };
        reached.push(progress);
        if deadline.is_none() && all - reached.len() <= (all / STRAGGLER_FRACTION).max(1) {
            deadline = Some(Instant::now() + STRAGGLER_TIMEOUT.max(2 * started.elapsed()));
        }
    }
    // Dropping a call cancels it.
    drop(running);
    let missing = (0..all).filter(|at| !reached.iter().any(|(known, _)| known == at));
    let too_slow: Vec<_> = missing.map(|at| (at, HostProgress::TooSlow(started.elapsed()))).collect();
    reached.extend(too_slow);
    reached
}

/// Waits for the next event of one host's call, which is cancelled with the request.
async fn next_event(call: &mut CallHandle, cancelled: &CancellationToken) -> CallEvent {
    loop {
        tokio::select! {
            event = call.next_event() => return event,
            () = cancelled.cancelled(), if !call.is_cancelled() => call.cancel(),
        }
    }
}

/// An error where two names are the same machine, which would be changed twice.
fn same_machine(waiting: &[WaitingCall]) -> Option<Problem> {
    let mut known: Vec<&Question> = Vec::new();
    for one in waiting {
        let question = &one.question.question;
        if let Some(same) = known.iter().find(|known| known.is_of_same_machine(question)) {
            let message =
                format!("{} and {} are one machine: nothing was changed", same.target, question.target);
            return Some(
                Problem::new("SAME_MACHINE", Category::Validation, message)
                    .remedy("Name it once in one call"),
            );
        }
        known.push(question);
    }
    None
}

async fn wait_for_end(call: &mut CallHandle, cancelled: &CancellationToken) -> Box<Envelope> {
    loop {
        match next_event(call, cancelled).await {
            CallEvent::Ended(envelope) => return envelope,
            // A call has one plan, and the question about it was answered before.
            CallEvent::Asks(question) => drop(question),
        }
    }
}

#[cfg(test)]
mod tests;
