//! A stand-in for the host in tests. Each answer has the call as its id, and a member that the contract doesn't name.

use linux_sysadmin_sdk::{Problem, Result};

pub(crate) fn list(agent_id: Option<&str>) -> String {
    let agent = agent_id.unwrap_or_default();
    format!(
        r#"[{{"id": "list {agent}", "tool": "pkg_upgrade", "host": "2 hosts", "status": "running",
            "started_unix": 1795191721, "seconds": 4.2, "agent_id": "{agent}", "progress": "half of it",
            "new": 1}}]"#
    )
}

pub(crate) fn output(id: &str, offset: u64, wait_seconds: u32) -> Result<String> {
    answer(id, format!("output {id} {offset} {wait_seconds}"), offset)
}

pub(crate) fn cancel(id: &str, wait_seconds: u32) -> Result<String> {
    answer(id, format!("cancel {id} {wait_seconds}"), 0)
}

fn answer(id: &str, call: String, offset: u64) -> Result<String> {
    match id {
        "unknown" => Err(Problem::not_found("JOB_NOT_FOUND", "there is no such job")),
        "odd" => Ok("[]".to_owned()),
        _ => Ok(format!(
            r#"{{"id": "{call}", "tool": "pkg_upgrade", "status": "done", "output": "text", "offset": {offset},
                "next_offset": {}, "lost": 0, "result": {{"status": "success"}}, "new": 1}}"#,
            offset + 4
        )),
    }
}
