//! The limits that calls share: their slots, and the number of questions that may wait.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::scheduler::Scheduler;
use host_base::output_buffer::OutputBuffer;
use host_gate::EXPIRES;

/// The number of questions that may wait for an answer at the same time. Each of them keeps its call in memory.
pub(super) const MAX_QUESTIONS: usize = 32;

/// The number of calls of one multi-host request that may have or want a slot at the same time. The queue for slots is
/// shared with all other requests.
const MAX_HOST_CALLS: usize = 64;

/// The limits that a group of calls shares.
pub struct CallPool {
    pub(super) scheduler: Scheduler,
    pub(super) questions: Arc<Semaphore>,
    pub(super) tasks: TaskTracker,
    /// The time that a question waits for its answer; `None` for as long as the call runs.
    pub(super) question_timeout: Option<Duration>,
    /// Limits how many calls of one multi-host request have or want a slot at once. `None` for all other calls. The
    /// request asks for confirmation once, for all of its calls.
    pub(super) host_calls: Option<Arc<Semaphore>>,
    /// The output of the request whose calls these are. `None` where each call is a request of its own.
    pub(super) output: Option<Arc<OutputBuffer>>,
}

impl CallPool {
    /// Makes a pool whose calls run in the slots of this scheduler.
    pub fn new(scheduler: Scheduler) -> Self {
        Self {
            scheduler,
            questions: Arc::new(Semaphore::new(MAX_QUESTIONS)),
            tasks: TaskTracker::new(),
            question_timeout: Some(EXPIRES),
            host_calls: None,
            output: None,
        }
    }

    /// Makes a pool that has slots of its own and shares everything else with this one.
    pub fn with_scheduler(&self, scheduler: Scheduler) -> Self {
        Self {
            scheduler,
            questions: self.questions.clone(),
            tasks: self.tasks.clone(),
            question_timeout: self.question_timeout,
            host_calls: None,
            output: None,
        }
    }

    /// Makes a pool for the calls of one multi-host request, on this number of hosts. The request answers their questions
    /// itself, so none of them expires. Their output becomes the output of the request.
    pub fn for_hosts(&self, hosts: usize, output: Arc<OutputBuffer>) -> Self {
        Self {
            scheduler: self.scheduler.clone(),
            questions: Arc::new(Semaphore::new(hosts)),
            tasks: self.tasks.clone(),
            question_timeout: None,
            host_calls: Some(Arc::new(Semaphore::new(MAX_HOST_CALLS))),
            output: Some(output),
        }
    }

    /// Returns when all calls have ended.
    pub async fn wait_until_empty(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}
