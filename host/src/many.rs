//! One call on many machines: a call of its own on each, side by side where they only look. Where they change something,
//! every plan is made before any of them runs, one question is about all of them, and then they run one after the other:
//! the first alone, and none after one that failed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::envelope::{Envelope, Many};
use crate::running::{Asked, Next, Running};
use host_aggregate::{Answered, fold};
use host_audit::DecidedBy;
use host_base::problem::{Category, Problem};
use host_gate::Executed;
use host_gate::Question;
use host_gate::{Answer, Ask};
use host_text::redact::excerpt;

/// Once all but a few have answered, those few have so long; or twice as long as it took so far.
const PATIENCE: Duration = Duration::from_secs(10);
/// One of so many is few.
const FEW: usize = 10;

/// A call on one of the machines.
pub struct Part {
    /// The machine's name.
    pub host: String,
    /// The call.
    pub running: Running,
}

/// A part that has come as far as it comes by itself.
enum Stage {
    /// It has its answer.
    Ended(Box<Envelope>),
    /// Its plan waits.
    Waits(Box<(Asked, Running)>),
    /// It was given up.
    Late(Duration),
}

/// What became of a part.
enum Ended {
    Answered(Box<Envelope>),
    Late(Duration),
    /// Another one had failed before its turn.
    NotBegun,
}

/// All parts of a call, by the order of their machines.
pub struct Parts {
    tool: String,
    hosts: Vec<String>,
    begun: Vec<Part>,
    ended: Vec<Option<Ended>>,
    /// Machines that are changed at the same time; none where they are only looked at.
    serial: Option<usize>,
    /// Of the whole.
    executed: Arc<Executed>,
}

impl Parts {
    /// Of this tool, not yet followed.
    pub fn new(tool: String, parts: Vec<Part>, serial: Option<usize>, executed: Arc<Executed>) -> Self {
        let hosts = parts.iter().map(|part| part.host.clone()).collect();
        let ended = parts.iter().map(|_| None).collect();
        Self { tool, hosts, begun: parts, ended, serial, executed }
    }

    /// Has all of them answer, or end as cancelled. `ask` reaches whoever called.
    pub async fn run(&mut self, ask: &dyn Ask, cancelled: &CancellationToken) {
        let parts = std::mem::take(&mut self.begun);
        let mut waiting = Vec::new();
        for (at, stage) in stages(parts, cancelled).await {
            match stage {
                Stage::Ended(envelope) => self.ended[at] = Some(Ended::Answered(envelope)),
                Stage::Late(after) => self.ended[at] = Some(Ended::Late(after)),
                Stage::Waits(waits) => waiting.push((at, waits.0, waits.1)),
            }
        }
        waiting.sort_by_key(|(at, ..)| *at);
        if waiting.is_empty() {
            return;
        }
        if let Some(first) = self.first_failed() {
            let problem = self.not_begun(first);
            return self.leave(waiting, &problem).await;
        }
        if let Some(problem) = twice(&waiting) {
            for (at, asked, running) in waiting {
                let _ = asked.answer(Err(problem.clone()));
                self.ended[at] = Some(Ended::Answered(ended(&mut { running }, cancelled).await));
            }
            return;
        }
        let questions: Vec<_> = waiting.iter().map(|(_, asked, _)| asked.question.clone()).collect();
        let answer = match questions.iter().any(|question| question.needs_person) {
            false => Ok(Answer::Yes(DecidedBy::Policy)),
            true => match Question::of_many(&questions) {
                Ok(question) => {
                    let puts = waiting.iter().map(|(_, asked, _)| asked);
                    let puts =
                        puts.filter(|asked| asked.question.needs_person).map(|asked| asked.put(&question));
                    futures_util::future::join_all(puts).await;
                    tokio::select! {
                        answer = ask.ask(question) => answer,
                        () = cancelled.cancelled() => Err(cancelled_by_caller()),
                    }
                }
                Err(problem) => Err(problem),
            },
        };
        self.executed.decided();
        self.go_on(waiting, answer, cancelled).await;
    }

    /// One after the other: the first alone, then so many at once as the operator says.
    async fn go_on(
        &mut self,
        waiting: Vec<(usize, Asked, Running)>,
        answer: Result<Answer, Problem>,
        cancelled: &CancellationToken,
    ) {
        let mut waiting = waiting.into_iter();
        let mut at_once = 1;
        loop {
            if cancelled.is_cancelled() {
                return self.leave(waiting.collect(), &cancelled_by_caller()).await;
            }
            let batch: Vec<_> = waiting.by_ref().take(at_once).collect();
            if batch.is_empty() {
                return;
            }
            let ends = batch.into_iter().map(|(at, asked, mut running)| {
                let answer = answer.clone();
                async move {
                    // Where it is too late, the call says so.
                    let _ = asked.answer(answer);
                    (at, ended(&mut running, cancelled).await)
                }
            });
            for (at, envelope) in futures_util::future::join_all(ends).await {
                self.ended[at] = Some(Ended::Answered(envelope));
            }
            at_once = self.serial.unwrap_or(1);
            // Whoever said no said it of all.
            if let (Ok(Answer::Yes(_)), Some(first)) = (&answer, self.first_failed()) {
                let problem = self.not_begun(first);
                return self.leave(waiting.collect(), &problem).await;
            }
        }
    }

    /// None of these begins.
    async fn leave(&mut self, waiting: Vec<(usize, Asked, Running)>, why: &Problem) {
        let ends = waiting.into_iter().map(|(at, asked, mut running)| async move {
            let _ = asked.answer(Err(why.clone()));
            ended(&mut running, &CancellationToken::new()).await;
            at
        });
        for at in futures_util::future::join_all(ends).await {
            self.ended[at] = Some(Ended::NotBegun);
        }
    }

    fn first_failed(&self) -> Option<usize> {
        self.ended.iter().position(|ended| match ended {
            Some(Ended::Answered(envelope)) => envelope.is_error(),
            Some(Ended::Late(_)) => true,
            _ => false,
        })
    }

    fn not_begun(&self, failed: usize) -> Problem {
        let message = format!("nothing was begun here: it had failed on {} before", self.hosts[failed]);
        Problem::new("NOT_BEGUN", Category::State, message)
    }

    /// One envelope for all. Folding what they said may take seconds, and no other call is to wait for that.
    pub fn envelope(self, started: std::time::Instant) -> Envelope {
        let shown = format!("{} hosts", self.hosts.len());
        let (mut answers, mut failures, mut previews) = (Vec::new(), Failures::default(), Vec::new());
        let mut needs_confirmation = false;
        let mut many = Many::default();
        let (mut commands, mut first, mut filter) = (Vec::new(), None, None);
        for (host, ended) in self.hosts.into_iter().zip(self.ended) {
            many.hosts.total += 1;
            let envelope = match ended {
                Some(Ended::NotBegun) => {
                    many.not_begun.push(host);
                    continue;
                }
                Some(Ended::Answered(envelope)) => *envelope,
                Some(Ended::Late(after)) => Envelope::failure(&self.tool, &host, started, None, late(after)),
                None => {
                    let problem =
                        Problem::new("INTERNAL_ERROR", Category::Internal, "the host lost this call");
                    Envelope::failure(&self.tool, &host, started, None, problem)
                }
            };
            commands.extend(envelope.command_executed.clone());
            if let Some(error) = &envelope.error {
                many.hosts.failed += 1;
                first.get_or_insert_with(|| (host.clone(), error.clone(), envelope.status));
                failures.add(&host, &envelope);
                continue;
            }
            many.hosts.succeeded += 1;
            many.done.push(host.clone());
            filter = filter.or(envelope.filter);
            needs_confirmation |= envelope.needs_confirmation;
            if let Some(preview) = envelope.preview {
                previews.push(Answered {
                    host: host.clone(),
                    data: preview,
                    summary: None,
                    severity: None,
                    notes: Vec::new(),
                    truncated: false,
                });
            }
            answers.push(Answered {
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
            _ => Some(format!("multiple (on {} hosts)", many.hosts.total)),
        };
        let has_answers = !answers.is_empty();
        many.failures = failures.told();
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
            // It was done on all the others, which the counts say.
            many.done.clear();
        }
        envelope.many = Some(many);
        envelope
    }
}

/// Ways to fail that are told; each is read by whoever asked.
const MOST_FAILURES: usize = 20;
/// Characters of a message or of a step, beside other hosts' messages.
const MESSAGE: usize = 500;
/// Steps of remediation.
const MOST_STEPS: usize = 3;
/// Bytes of what else a failure's own envelope says.
const DETAILS: usize = 2000;

/// In messages, the name of each host that failed so.
const HOST: &str = "{host}";

/// Without the address that stands behind a host's name, which is another one of each.
fn same_of_all(message: &str) -> String {
    let opening = format!("{HOST} (");
    let Some((before, rest)) = message.split_once(&opening) else { return message.to_owned() };
    let Some((address, after)) = rest.split_once(')') else { return message.to_owned() };
    match address.contains([' ', '(']) {
        true => message.to_owned(),
        false => format!("{before}{HOST}{after}"),
    }
}

/// Those that failed, by how, with their hosts.
#[derive(Default)]
struct Failures(BTreeMap<String, (Map<String, Value>, Vec<String>)>);

impl Failures {
    fn add(&mut self, host: &str, envelope: &Envelope) {
        let Some(error) = &envelope.error else { return };
        let message = same_of_all(&error.message.replace(host, HOST));
        let steps: Vec<String> =
            error.remediation.iter().take(MOST_STEPS).map(|step| excerpt(step, MESSAGE)).collect();
        let mut failure = Map::new();
        failure.insert("error_code".to_owned(), error.error_code.clone().into());
        failure.insert("message".to_owned(), excerpt(&message, MESSAGE).into());
        failure.insert("remediation".to_owned(), steps.into());
        let mut room = DETAILS;
        for (name, value) in &error.details {
            // One that is cut would say something else.
            let length = name.len() + value.to_string().len();
            if let Some(left) = room.checked_sub(length) {
                failure.insert(name.clone(), value.clone());
                room = left;
            }
        }
        let key = json!(failure).to_string();
        self.0.entry(key).or_insert_with(|| (failure, Vec::new())).1.push(host.to_owned());
    }

    /// The most common ones, and who failed in yet other ways.
    fn told(self) -> Vec<Value> {
        let mut all: Vec<_> = self.0.into_values().collect();
        all.sort_by_key(|(_, hosts)| Reverse(hosts.len()));
        let further = all.split_off(all.len().min(MOST_FAILURES));
        if !further.is_empty() {
            let count = further.len();
            let codes: BTreeSet<&str> =
                further.iter().filter_map(|(failure, _)| failure.get("error_code")?.as_str()).collect();
            let message =
                format!("{count} further failures are left out: ask one of these hosts alone for its own");
            let failure = Map::from_iter([
                ("error_code".to_owned(), "FURTHER_FAILURES".into()),
                ("message".to_owned(), message.into()),
                ("remediation".to_owned(), json!([])),
                ("error_codes".to_owned(), codes.into_iter().take(MOST_FAILURES).collect()),
            ]);
            all.push((failure, further.into_iter().flat_map(|(_, hosts)| hosts).collect()));
        }
        let told = |(failure, hosts): (Map<String, Value>, Vec<String>)| {
            Value::Object([("hosts".to_owned(), json!(hosts))].into_iter().chain(failure).collect())
        };
        all.into_iter().map(told).collect()
    }
}

fn late(after: Duration) -> Problem {
    let message =
        format!("no answer within {:.0} s, when nearly all others had answered", after.as_secs_f64());
    Problem::new("HOST_SLOW", Category::Timeout, message)
        .remedy("Ask this host alone: it is waited for longer then")
}

/// Each part as far as it comes by itself. Those few that take much longer than all others are given up.
async fn stages(parts: Vec<Part>, cancelled: &CancellationToken) -> Vec<(usize, Stage)> {
    let (began, all) = (Instant::now(), parts.len());
    let going = parts.into_iter().enumerate().map(|(at, mut part)| async move {
        let stage = match next(&mut part.running, cancelled).await {
            Next::Answered(envelope) => Stage::Ended(envelope),
            Next::Asks(asked) => Stage::Waits(Box::new((asked, part.running))),
        };
        (at, stage)
    });
    let mut going: FuturesUnordered<_> = going.collect();
    let (mut stages, mut until) = (Vec::new(), None);
    while stages.len() < all {
        let next = match until {
            Some(until) => tokio::time::timeout_at(until, going.next()).await.ok().flatten(),
            None => going.next().await,
        };
        let Some(stage) = next else { break };
        stages.push(stage);
        if until.is_none() && all - stages.len() <= (all / FEW).max(1) {
            until = Some(Instant::now() + PATIENCE.max(2 * began.elapsed()));
        }
    }
    // Dropped, a call is cancelled.
    drop(going);
    let missing = (0..all).filter(|at| !stages.iter().any(|(known, _)| known == at));
    let late: Vec<_> = missing.map(|at| (at, Stage::Late(began.elapsed()))).collect();
    stages.extend(late);
    stages
}

/// What comes next of a part, which is cancelled with the whole.
async fn next(running: &mut Running, cancelled: &CancellationToken) -> Next {
    loop {
        tokio::select! {
            next = running.next() => return next,
            () = cancelled.cancelled(), if !running.is_cancelled() => running.cancel(),
        }
    }
}

/// Where two names are one machine, which would be changed twice.
fn twice(waiting: &[(usize, Asked, Running)]) -> Option<Problem> {
    let mut known: Vec<&Question> = Vec::new();
    for (_, asked, _) in waiting {
        let question = &asked.question;
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

fn cancelled_by_caller() -> Problem {
    Problem::new("CANCELLED", Category::Other, "the call was cancelled")
}

async fn ended(running: &mut Running, cancelled: &CancellationToken) -> Box<Envelope> {
    loop {
        match next(running, cancelled).await {
            Next::Answered(envelope) => return envelope,
            // A call has one plan, and this one has had its answer.
            Next::Asks(asked) => drop(asked),
        }
    }
}

#[cfg(test)]
mod tests;
