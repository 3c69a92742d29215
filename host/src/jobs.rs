//! Calls that go on though whoever made them doesn't wait any more: kept with their outcome, in order to be asked for,
//! and ended with the server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::running::{About, Next, Running, Said};
use host_base::problem::{Category, Problem};
use host_gate::Executed;
use host_gate::unavailable;
use host_text::visible::excerpt;

/// Jobs that run at the same time; a call that would be one more is waited for.
const RUNNING: usize = 64;
/// Those that have ended and are kept.
const KEPT: usize = 64;
/// Of one question, which is a call of its own: clients give up after a minute.
const LONGEST_WAIT: Duration = Duration::from_secs(45);

/// All of them.
#[derive(Default)]
pub struct Jobs {
    state: Mutex<State>,
    followed: TaskTracker,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Arc<Job>>,
    /// The server ends.
    is_closed: bool,
}

/// One of them.
pub struct Job {
    /// Sixteen hexadecimal digits.
    pub id: String,
    about: About,
    /// When the call was made, and when that was by the clock.
    started: (Instant, SystemTime),
    said: Said,
    executed: Arc<Executed>,
    /// What its answer is to say besides.
    note: Option<String>,
    cancel: CancellationToken,
    ended: watch::Sender<Option<Arc<Ended>>>,
}

/// The end of one.
pub struct Ended {
    /// The envelope.
    pub envelope: Map<String, Value>,
    /// Whether that is an error.
    pub is_error: bool,
    was_cancelled: bool,
    after: Duration,
}

impl Jobs {
    /// From now on the call goes on by itself, and its answer says the note besides. Given back, where that can't be.
    pub fn adopt(self: &Arc<Self>, running: Running, note: Option<String>) -> Result<Arc<Job>, Box<Running>> {
        let Ok(id) = host_base::id::random() else { return Err(Box::new(running)) };
        let mut state = self.state();
        let is_running = |job: &&Arc<Job>| !job.has_ended();
        if state.is_closed || state.jobs.iter().filter(is_running).count() >= RUNNING {
            return Err(Box::new(running));
        }
        let job = Arc::new(Job {
            id,
            about: running.about().clone(),
            started: running.started(),
            said: running.said(),
            executed: running.executed().clone(),
            note,
            cancel: CancellationToken::new(),
            ended: watch::Sender::new(None),
        });
        state.jobs.push_front(job.clone());
        let mut ended = state.jobs.iter().filter(|job| job.has_ended()).count();
        while ended > KEPT
            && let Some(oldest) = state.jobs.iter().rposition(|job| job.has_ended())
        {
            state.jobs.remove(oldest);
            ended -= 1;
        }
        self.followed.spawn(job.clone().follow(running));
        Ok(job)
    }

    /// The one of this id.
    pub fn of(&self, id: &str) -> Result<Arc<Job>, Problem> {
        let found = self.state().jobs.iter().find(|job| job.id == id).cloned();
        found.ok_or_else(|| not_found(id))
    }

    /// Ends all of them, and waits for that.
    pub async fn close(&self) {
        let jobs = {
            let mut state = self.state();
            state.is_closed = true;
            state.jobs.clone()
        };
        jobs.iter().for_each(|job| job.cancel.cancel());
        self.followed.close();
        self.followed.wait().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    async fn follow(self: Arc<Self>, mut running: Running) {
        let mut envelope = loop {
            let next = tokio::select! {
                next = running.next() => next,
                () = self.cancel.cancelled(), if !running.is_cancelled() => {
                    running.cancel();
                    continue;
                }
            };
            match next {
                Next::Answered(envelope) => break *envelope,
                // Only what needs nobody's word becomes a job.
                Next::Asks(asked) => {
                    let _ = asked.answer(Err(unavailable("whoever called doesn't wait any more")));
                }
            }
        };
        envelope.noted(self.note.clone());
        let (is_error, was_cancelled) = (envelope.is_error(), running.is_cancelled());
        let ended = Ended {
            envelope: envelope.into_json(),
            is_error,
            was_cancelled,
            after: self.started.0.elapsed(),
        };
        self.ended.send_replace(Some(Arc::new(ended)));
    }

    /// Whether an agent may ask for it: its own, and whose agent or whose caller hasn't said who it is.
    fn is_of(&self, agent_id: Option<&str>) -> bool {
        match (self.about.agent_id.as_deref(), agent_id) {
            (Some(own), Some(wanted)) => own == wanted,
            _ => true,
        }
    }

    fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// How it ended, once it has.
    pub fn ended(&self) -> Option<Arc<Ended>> {
        self.ended.borrow().clone()
    }

    /// Whether it was cancelled, and is no success either.
    pub fn was_cancelled(&self) -> bool {
        self.ended().is_some_and(|ended| ended.was_cancelled && ended.is_error)
    }

    /// Ends it, as a cancelled call ends.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// When it was begun, by the clock.
    pub fn started(&self) -> SystemTime {
        self.started.1
    }

    /// What it is at, in its own words.
    pub fn latest(&self) -> String {
        self.said.latest()
    }

    async fn wait(&self, most: Duration) {
        let mut ended = self.ended.subscribe();
        let _ = tokio::time::timeout(most.min(LONGEST_WAIT), ended.wait_for(Option::is_some)).await;
    }

    /// As in a list.
    fn told(&self) -> Value {
        let ended = self.ended();
        let status = match &ended {
            None => "running",
            Some(ended) if ended.was_cancelled && ended.is_error => "cancelled",
            Some(ended) if ended.is_error => "failed",
            Some(_) => "done",
        };
        let seconds = ended.map_or_else(|| self.started.0.elapsed(), |ended| ended.after).as_secs();
        let started_unix = self.started.1.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut told = json!({
            "id": self.id,
            "tool": self.about.tool,
            "host": self.about.host,
            "status": status,
            "started_unix": started_unix,
            "seconds": seconds,
        });
        let latest = self.latest();
        if status == "running" && !latest.is_empty() {
            told["progress"] = latest.into();
        }
        if let Some(agent_id) = &self.about.agent_id {
            told["agent_id"] = agent_id.as_str().into();
        }
        told
    }

    /// The same with what its commands said from this line on, and its outcome.
    fn told_from(&self, line: u64) -> Value {
        let mut told = self.told();
        let ended = self.ended();
        let piece = self.executed.heard.from(line, ended.is_some());
        told["output"] = piece.text.into();
        told["offset"] = piece.first.into();
        told["next_offset"] = piece.next.into();
        told["lost"] = piece.lost.into();
        if let Some(ended) = ended {
            told["result"] = Value::Object(ended.envelope.clone());
        }
        told
    }
}

/// As one call may ask for them: those of another agent aren't its own, where both say who they are.
pub struct JobsOf {
    jobs: Arc<Jobs>,
    agent_id: Option<String>,
    dry_run: bool,
}

impl JobsOf {
    /// Of a call by this agent, which in a dry run ends nothing.
    pub fn new(jobs: &Arc<Jobs>, agent_id: Option<String>, dry_run: bool) -> Self {
        Self { jobs: jobs.clone(), agent_id, dry_run }
    }

    /// The one of this id.
    pub fn of(&self, id: &str) -> Result<Arc<Job>, Problem> {
        let job = self.jobs.of(id)?;
        if job.is_of(self.agent_id.as_deref()) { Ok(job) } else { Err(not_found(id)) }
    }
}

impl host_components::Jobs for JobsOf {
    fn list(&self, agent_id: Option<&str>) -> String {
        let wanted = self.agent_id.as_deref().or(agent_id);
        let jobs = self.jobs.state().jobs.clone();
        Value::Array(jobs.iter().filter(|job| job.is_of(wanted)).map(|job| job.told()).collect()).to_string()
    }

    fn output(&self, id: String, offset: u64, wait_seconds: u32) -> BoxFuture<'_, Result<String, Problem>> {
        Box::pin(async move {
            let job = self.of(&id)?;
            job.wait(Duration::from_secs(wait_seconds.into())).await;
            Ok(job.told_from(offset).to_string())
        })
    }

    fn cancel(&self, id: String, wait_seconds: u32) -> BoxFuture<'_, Result<String, Problem>> {
        Box::pin(async move {
            let job = self.of(&id)?;
            if !self.dry_run {
                job.cancel();
                job.wait(Duration::from_secs(wait_seconds.into())).await;
            }
            Ok(job.told_from(u64::MAX).to_string())
        })
    }
}

fn not_found(id: &str) -> Problem {
    let message = format!("there is no job {}; they end with the server", excerpt(id, 40));
    Problem::new("JOB_NOT_FOUND", Category::NotFound, message)
}
