//! Jobs, as the tasks extension of MCP (SEP-2663) has them: for clients that know it.

use std::time::SystemTime;

use jiff::Timestamp;
use rmcp::ErrorData;
use rmcp::model::{CreateTaskResult, DetailedTask, GetTaskResult, Task, TaskPayload, TaskStatus};
use serde_json::Value;

use super::handler::tool_result;
use crate::jobs::{Job, JobsOf};

/// Between two questions of a client.
const POLL_MS: u64 = 2_000;

/// A call that goes on.
pub(super) fn created(job: &Job) -> CreateTaskResult {
    CreateTaskResult::new(task(job))
}

/// How far it is.
pub(super) fn get(jobs: &JobsOf, id: &str) -> Result<GetTaskResult, ErrorData> {
    let job = jobs.of(id).map_err(|problem| ErrorData::invalid_params(problem.message, None))?;
    let payload = match job.ended() {
        None => TaskPayload::Working,
        Some(_) if job.was_cancelled() => TaskPayload::Cancelled,
        Some(ended) => {
            let result = serde_json::to_value(tool_result(ended.envelope.clone(), ended.is_error));
            match result {
                Ok(Value::Object(result)) => TaskPayload::Completed { result },
                _ => return Err(ErrorData::internal_error("a result that is no object", None)),
            }
        }
    };
    Ok(GetTaskResult::new(DetailedTask::new(task(&job), payload)))
}

/// Ends it.
pub(super) fn cancel(jobs: &JobsOf, id: &str) -> Result<(), ErrorData> {
    let job = jobs.of(id).map_err(|problem| ErrorData::invalid_params(problem.message, None))?;
    job.cancel();
    Ok(())
}

fn task(job: &Job) -> Task {
    let at = |time: SystemTime| Timestamp::try_from(time).map(|time| time.to_string()).unwrap_or_default();
    let task = Task::new(&job.id, TaskStatus::Working, at(job.started()), at(SystemTime::now()));
    let task = task.with_poll_interval_ms(POLL_MS);
    match job.latest() {
        latest if latest.is_empty() => task,
        latest => task.with_status_message(latest),
    }
}
