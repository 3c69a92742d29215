//! The tools for jobs: calls that go on after the client has stopped waiting. The answers are the host's, without members
//! that the contract doesn't name.
#![forbid(unsafe_code)]

use linux_sysadmin_sdk::{Category, DurationCategory, prelude::*};
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

#[cfg(target_family = "wasm")]
use linux_sysadmin_sdk::system::jobs as host;

/// A stand-in for the host in native builds, where there are no jobs.
#[cfg(not(target_family = "wasm"))]
mod host;

#[derive(Deserialize, JsonSchema)]
struct ListArgs {
    /// Jobs of this agent only
    agent_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct OutputArgs {
    /// job_id of the job
    id: String,
    /// The last answer's next_offset
    #[serde(default)]
    offset: u64,
    /// Wait for its end
    #[serde(default)]
    #[schemars(range(max = 45))]
    wait_seconds: u32,
}

#[derive(Deserialize, JsonSchema)]
struct CancelArgs {
    /// job_id of the job
    id: String,
    /// Wait for its end
    #[serde(default = "default_wait")]
    #[schemars(range(max = 45))]
    wait_seconds: u32,
}

/// The seconds to wait for the end of a cancelled job.
fn default_wait() -> u32 {
    10
}

/// A job, as the host lists it.
#[derive(Debug, Deserialize, Serialize)]
struct Job {
    id: String,
    tool: String,
    /// The host or the number of hosts on which it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    /// The state: `running`, `done`, `failed` or `cancelled`.
    status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_unix: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seconds: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    progress: Option<String>,
}

/// A job with its output and, once it has ended, its answer.
#[derive(Debug, Deserialize, Serialize)]
struct JobOutput {
    #[serde(flatten)]
    job: Job,
    #[serde(default)]
    output: String,
    /// The number of the first line of `output`.
    #[serde(default)]
    offset: u64,
    #[serde(default)]
    next_offset: u64,
    /// The number of lines that the host no longer has.
    #[serde(default, skip_serializing_if = "is_zero")]
    lost: u64,
    /// The job's answer, an envelope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn job_list(args: ListArgs, _: &Context) -> Result<Listing<Job>> {
    let jobs: Vec<Job> = parse(&host::list(args.agent_id.as_deref()))?;
    Ok(jobs.into())
}

fn job_output(args: OutputArgs, _: &Context) -> Result<Single<JobOutput>> {
    let answer = host::output(&args.id, args.offset, args.wait_seconds).map_err(with_remedy)?;
    Ok(Single(parse(&answer)?))
}

fn job_cancel(args: CancelArgs, _: &Context) -> Result<Single<JobOutput>> {
    let answer = host::cancel(&args.id, args.wait_seconds).map_err(with_remedy)?;
    Ok(Single(parse(&answer)?))
}

fn with_remedy(problem: Problem) -> Problem {
    if problem.code == "JOB_NOT_FOUND" { problem.remedy("Call job_list") } else { problem }
}

/// Reads an answer of the host, without the members that a later host adds.
fn parse<T: DeserializeOwned>(answer: &str) -> Result<T> {
    serde_json::from_str(answer).map_err(|error| {
        Problem::new("INVALID_ANSWER", Category::Internal, format!("what the host says of jobs: {error}"))
    })
}

/// The module, with its tools.
pub fn module() -> Module {
    let waits =
        |tool: Tool| tool.argument_alias("job_id", "id").duration(DurationCategory::Slow).on_controller();
    Module::new("jobs", env!("CARGO_PKG_VERSION"), "jobs", "Calls that go on by themselves")
        .license(env!("CARGO_PKG_LICENSE"))
        .tool(
            Tool::new("job_list", "Calls that go on by themselves, the latest first", job_list)
                .on_controller(),
        )
        .tool(waits(Tool::new(
            "job_output",
            "What a job has said, and its answer once it is there",
            job_output,
        )))
        .tool(waits(Tool::new("job_cancel", "End a job", job_cancel).risk(Risk::Low)))
}

linux_sysadmin_sdk::export!(module);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use linux_sysadmin_sdk::{Place, testkit::FakeTarget, testkit::takes_little_context};
    use serde_json::json;

    use super::*;

    fn call(tool: &str, arguments: Value) -> Result<Value> {
        FakeTarget::new().call(&module(), tool, arguments).map(|(data, _)| data)
    }

    #[test]
    fn what_the_contract_names_is_handed_through_and_nothing_else() {
        assert_eq!(
            call("job_list", json!({"agent_id": "a1"})).unwrap(),
            json!([{
                "id": "list a1", "tool": "pkg_upgrade", "host": "2 hosts", "status": "running",
                "started_unix": 1_795_191_721, "seconds": 4.2, "agent_id": "a1", "progress": "half of it",
            }])
        );
        assert_eq!(
            call("job_output", json!({"id": "7", "offset": 4, "wait_seconds": 2})).unwrap(),
            json!({
                "id": "output 7 4 2", "tool": "pkg_upgrade", "status": "done", "output": "text", "offset": 4,
                "next_offset": 8, "result": {"status": "success"},
            })
        );
        let cancelled = call("job_cancel", json!({"id": "7"})).unwrap();
        assert_eq!(cancelled["id"], "cancel 7 10", "ten seconds unless said otherwise");
        assert_eq!(call("job_output", json!({"id": "7"})).unwrap()["id"], "output 7 0 0");
    }

    #[test]
    fn the_hosts_problem_is_the_tools() {
        let problem = call("job_output", json!({"id": "unknown"})).unwrap_err();
        assert_eq!(problem.code, "JOB_NOT_FOUND");
        assert_eq!(call("job_cancel", json!({"id": "unknown"})).unwrap_err().code, "JOB_NOT_FOUND");
        assert_eq!(call("job_cancel", json!({"id": "odd"})).unwrap_err().code, "INVALID_ANSWER");
    }

    #[test]
    fn jobs_are_the_controllers_and_take_nothing_of_a_target() {
        let description = module().description();
        for tool in &description.tools {
            assert_eq!(tool.place, Place::Controller, "{}", tool.name);
            takes_little_context(tool);
        }
        assert!(description.capabilities.commands.is_empty() && description.capabilities.paths.is_empty());
    }
}
