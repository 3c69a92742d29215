//! Jobs: calls that go on by themselves after their client has stopped waiting. A client asks for their progress and
//! their result. All of them end with the server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::call_handle::{CallEvent, CallHandle, CallInfo, ProgressText};
use host_base::problem::{Category, Problem};
use host_gate::CommandLog;
use host_gate::unavailable;
use host_text::visible::excerpt;

/// The number of jobs that may run at the same time. One more call doesn't become a job: its client waits for it.
const MAX_RUNNING: usize = 64;
/// The number of ended jobs whose results are kept.
const MAX_ENDED: usize = 64;
/// The longest time that one call waits for a job. Clients give up after a minute.
const LONGEST_WAIT: Duration = Duration::from_secs(45);

/// All jobs of a server.
#[derive(Default)]
pub struct Jobs {
    state: Mutex<State>,
    tasks: TaskTracker,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Arc<Job>>,
    /// True once the server ends.
    is_closed: bool,
}

/// A call that goes on by itself.
pub struct Job {
    /// Sixteen hexadecimal digits.
    pub id: String,
    info: CallInfo,
    started: (Instant, SystemTime),
    progress: ProgressText,
    command_log: Arc<CommandLog>,
    /// A note that the result has besides its own.
    note: Option<String>,
    cancel: CancellationToken,
    result: watch::Sender<Option<Arc<JobResult>>>,
}

/// The result of a job that has ended.
pub struct JobResult {
    /// The call's envelope as JSON.
    pub envelope: Map<String, Value>,
    /// Whether the envelope is an error.
    pub is_error: bool,
    was_cancelled: bool,
    duration: Duration,
}

impl Jobs {
    /// Makes the call a job, whose result will have the note. Gives the call back where there are too many jobs, or the
    /// server ends.
    pub fn adopt(
        self: &Arc<Self>,
        call: CallHandle,
        note: Option<String>,
    ) -> Result<Arc<Job>, Box<CallHandle>> {
        let Ok(id) = host_base::id::random() else { return Err(Box::new(call)) };
        let mut state = self.state();
        let is_running = |job: &&Arc<Job>| !job.has_ended();
        if state.is_closed || state.jobs.iter().filter(is_running).count() >= MAX_RUNNING {
            return Err(Box::new(call));
        }
        let job = Arc::new(Job {
            id,
            info: call.info().clone(),
            started: call.started(),
            progress: call.progress(),
            command_log: call.command_log().clone(),
            note,
            cancel: CancellationToken::new(),
            result: watch::Sender::new(None),
        });
        state.jobs.push_front(job.clone());
        let mut ended = state.jobs.iter().filter(|job| job.has_ended()).count();
        while ended > MAX_ENDED
            && let Some(oldest) = state.jobs.iter().rposition(|job| job.has_ended())
        {
            state.jobs.remove(oldest);
            ended -= 1;
        }
        self.tasks.spawn(job.clone().follow(call));
        Ok(job)
    }

    /// The job of this id.
    fn get(&self, id: &str) -> Result<Arc<Job>, Problem> {
        let found = self.state().jobs.iter().find(|job| job.id == id).cloned();
        found.ok_or_else(|| not_found(id))
    }

    /// Cancels all jobs, and waits until they have ended.
    pub async fn close(&self) {
        let jobs = {
            let mut state = self.state();
            state.is_closed = true;
            state.jobs.clone()
        };
        jobs.iter().for_each(|job| job.cancel.cancel());
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    /// Waits for the end of the call, and keeps its result.
    async fn follow(self: Arc<Self>, mut call: CallHandle) {
        let mut envelope = loop {
            let event = tokio::select! {
                event = call.next_event() => event,
                () = self.cancel.cancelled(), if !call.is_cancelled() => {
                    call.cancel();
                    continue;
                }
            };
            match event {
                CallEvent::Ended(envelope) => break *envelope,
                // A call becomes a job only while it needs no confirmation. One that asks afterwards changes nothing.
                CallEvent::Asks(question) => {
                    let _ = question.answer(Err(unavailable("the caller doesn't wait any more")));
                }
            }
        };
        envelope.add_note(self.note.clone());
        let (is_error, was_cancelled) = (envelope.is_error(), call.is_cancelled());
        let duration = self.started.0.elapsed();
        let result = JobResult { envelope: envelope.into_json(), is_error, was_cancelled, duration };
        self.result.send_replace(Some(Arc::new(result)));
    }

    /// Whether this agent may ask for the job. Another agent may not, where both the job and the caller name theirs.
    fn is_visible_to(&self, agent_id: Option<&str>) -> bool {
        match (self.info.agent_id.as_deref(), agent_id) {
            (Some(own), Some(wanted)) => own == wanted,
            _ => true,
        }
    }

    fn has_ended(&self) -> bool {
        self.result.borrow().is_some()
    }

    /// The result, once the job has ended.
    pub fn result(&self) -> Option<Arc<JobResult>> {
        self.result.borrow().clone()
    }

    /// Whether the job was cancelled, and did not succeed all the same.
    pub fn was_cancelled(&self) -> bool {
        self.result().is_some_and(|result| result.was_cancelled && result.is_error)
    }

    /// Cancels the call.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// The time at which the call started.
    pub fn started(&self) -> SystemTime {
        self.started.1
    }

    /// The latest progress message.
    pub fn latest_progress(&self) -> String {
        self.progress.latest()
    }

    async fn wait(&self, most: Duration) {
        let mut result = self.result.subscribe();
        let _ = tokio::time::timeout(most.min(LONGEST_WAIT), result.wait_for(Option::is_some)).await;
    }

    /// The job as it stands in a list.
    fn to_json(&self) -> Value {
        let result = self.result();
        let status = match &result {
            None => "running",
            Some(result) if result.was_cancelled && result.is_error => "cancelled",
            Some(result) if result.is_error => "failed",
            Some(_) => "done",
        };
        let seconds = result.map_or_else(|| self.started.0.elapsed(), |result| result.duration).as_secs();
        let started_unix = self.started.1.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut job = json!({
            "id": self.id,
            "tool": self.info.tool,
            "host": self.info.host,
            "status": status,
            "started_unix": started_unix,
            "seconds": seconds,
        });
        let latest = self.latest_progress();
        if status == "running" && !latest.is_empty() {
            job["progress"] = latest.into();
        }
        if let Some(agent_id) = &self.info.agent_id {
            job["agent_id"] = agent_id.as_str().into();
        }
        job
    }

    /// The job with the output of its commands from this line on, and its result.
    fn to_json_with_output(&self, line: u64) -> Value {
        let mut job = self.to_json();
        let result = self.result();
        let output = self.command_log.output.lines_from(line, result.is_some());
        job["output"] = output.text.into();
        job["offset"] = output.first.into();
        job["next_offset"] = output.next.into();
        job["lost"] = output.lost.into();
        if let Some(result) = result {
            job["result"] = Value::Object(result.envelope.clone());
        }
        job
    }
}

/// The jobs that one caller may ask for.
pub struct VisibleJobs {
    jobs: Arc<Jobs>,
    agent_id: Option<String>,
    dry_run: bool,
}

impl VisibleJobs {
    /// The jobs that this agent may ask for. A dry run cancels none of them.
    pub fn new(jobs: &Arc<Jobs>, agent_id: Option<String>, dry_run: bool) -> Self {
        Self { jobs: jobs.clone(), agent_id, dry_run }
    }

    /// The job of this id.
    pub fn get(&self, id: &str) -> Result<Arc<Job>, Problem> {
        let job = self.jobs.get(id)?;
        if job.is_visible_to(self.agent_id.as_deref()) { Ok(job) } else { Err(not_found(id)) }
    }
}

impl host_components::JobService for VisibleJobs {
    fn list(&self, agent_id: Option<&str>) -> String {
        let agent_id = self.agent_id.as_deref().or(agent_id);
        let jobs = self.jobs.state().jobs.clone();
        let visible = jobs.iter().filter(|job| job.is_visible_to(agent_id));
        Value::Array(visible.map(|job| job.to_json()).collect()).to_string()
    }

    fn output(&self, id: String, offset: u64, wait_seconds: u32) -> BoxFuture<'_, Result<String, Problem>> {
        Box::pin(async move {
            let job = self.get(&id)?;
            job.wait(Duration::from_secs(wait_seconds.into())).await;
            Ok(job.to_json_with_output(offset).to_string())
        })
    }

    fn cancel(&self, id: String, wait_seconds: u32) -> BoxFuture<'_, Result<String, Problem>> {
        Box::pin(async move {
            let job = self.get(&id)?;
            if !self.dry_run {
                job.cancel();
                job.wait(Duration::from_secs(wait_seconds.into())).await;
            }
            Ok(job.to_json_with_output(u64::MAX).to_string())
        })
    }
}

fn not_found(id: &str) -> Problem {
    let message = format!("there is no job {}; they end with the server", excerpt(id, 40));
    Problem::new("JOB_NOT_FOUND", Category::NotFound, message)
}
