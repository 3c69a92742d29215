//! Jobs as tasks of MCP's tasks extension (SEP-2663), for clients that support it.

use std::time::SystemTime;

use jiff::Timestamp;
use rmcp::ErrorData;
use rmcp::model::{CreateTaskResult, DetailedTask, GetTaskResult, Task, TaskPayload, TaskStatus};
use serde_json::Value;

use super::handler::tool_result;
use crate::calls::jobs::{Job, VisibleJobs};

/// The interval in milliseconds at which a client should ask for a task.
const POLL_MS: u64 = 2_000;

/// The answer to a call that has become a job.
pub(super) fn created(job: &Job) -> CreateTaskResult {
    CreateTaskResult::new(task(job))
}

/// The state of a job, and its result once it has ended.
pub(super) fn get(jobs: &VisibleJobs, id: &str) -> Result<GetTaskResult, ErrorData> {
    let job = jobs.get(id).map_err(|problem| ErrorData::invalid_params(problem.message, None))?;
    let payload = match job.result() {
        None => TaskPayload::Working,
        Some(_) if job.was_cancelled() => TaskPayload::Cancelled,
        Some(result) => match serde_json::to_value(tool_result(result.envelope.clone(), result.is_error)) {
            Ok(Value::Object(result)) => TaskPayload::Completed { result },
            _ => return Err(ErrorData::internal_error("a result that is no object", None)),
        },
    };
    Ok(GetTaskResult::new(DetailedTask::new(task(&job), payload)))
}

/// Cancels a job.
pub(super) fn cancel(jobs: &VisibleJobs, id: &str) -> Result<(), ErrorData> {
    let job = jobs.get(id).map_err(|problem| ErrorData::invalid_params(problem.message, None))?;
    job.cancel();
    Ok(())
}

fn task(job: &Job) -> Task {
    let at = |time: SystemTime| Timestamp::try_from(time).map(|time| time.to_string()).unwrap_or_default();
    let task = Task::new(&job.id, TaskStatus::Working, at(job.started()), at(SystemTime::now()));
    let task = task.with_poll_interval_ms(POLL_MS);
    match job.latest_progress() {
        latest if latest.is_empty() => task,
        latest => task.with_status_message(latest),
    }
}
