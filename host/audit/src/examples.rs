//! Example records, which the tests of several crates use.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use serde_json::{Value, json};

use super::*;

fn target() -> TargetUsed {
    TargetUsed {
        name: "web1".to_owned(),
        account: "admin".to_owned(),
        uid: Some(1000),
        machine_id: None,
        hostname: Some("web1.example".to_owned()),
        host_key: Some("SHA256:first".to_owned()),
    }
}

fn module() -> ModuleUsed {
    ModuleUsed { name: "systemd".to_owned(), version: "0.1.0".to_owned(), sha256: "a".repeat(64) }
}

/// Makes the record of a call with this argument.
pub fn call(argument: impl Into<Value>) -> Event {
    Event::Call(Box::new(Call {
        trace_id: "t1".to_owned(),
        client: "claude-code 2.1".to_owned(),
        protocol: "2025-11-25".to_owned(),
        tool: "service_status".to_owned(),
        called_as: None,
        called_by: None,
        module: Some(module()),
        target: Some(target()),
        arguments: json!({"n": argument.into()}).into(),
        risk: Some(host_base::Risk::ReadOnly),
        decision: Decision::Looked,
        decided_by: None,
        question: None,
        change: None,
        status: CallStatus::Success,
        error_code: None,
        duration_ms: 12,
        commands: vec![CommandUsed { command: "systemctl show nginx".to_owned(), exit_code: Some(0) }].into(),
    }))
}

/// Makes the beginning of a change.
pub fn begun(id: &str) -> ChangeBegun {
    ChangeBegun {
        id: id.to_owned(),
        trace_id: "t2".to_owned(),
        client: "claude-code 2.1".to_owned(),
        protocol: "2025-11-25".to_owned(),
        tool: "service_restart".to_owned(),
        module: module(),
        target: target(),
        arguments: json!({"service": "nginx"}).into(),
        plan: json!({"description": "Restart the nginx service"}).into(),
        plan_sha256: "b".repeat(64),
        risk: host_base::Risk::Moderate,
        rules: vec!["restart".to_owned()].into(),
        decision: Decision::Allowed,
        decided_by: Some(DecidedBy::Policy),
        files: vec![FileChange {
            path: "/etc/nginx/nginx.conf".to_owned(),
            staging: "/var/lib/linux-sysadmin/c1".to_owned(),
            privilege: host_base::Privilege::Root,
            existed: true,
            sha256_before: Some("c".repeat(64)),
            sha256_after: Some("d".repeat(64)),
            kind: FileChangeKind::Write,
            to: None,
            before: None,
            after: None,
        }],
        undo: vec![vec!["systemctl start nginx".to_owned()]],
        after_undo: vec!["systemctl daemon-reload".to_owned()],
        process: None,
    }
}

/// Makes the end of a change.
pub fn ended(id: &str, outcome: Outcome) -> Event {
    Event::ChangeEnded(ChangeEnded {
        id: id.to_owned(),
        outcome,
        interrupted: false,
        failed_step: (outcome != Outcome::Done).then_some(1),
        error_code: (outcome != Outcome::Done).then(|| "STEP_FAILED".to_owned()),
        exit_codes: vec![0, 1].into(),
        steps_done: 1,
        undone: vec!["/etc/nginx/nginx.conf".to_owned()].into(),
        not_undone: Vec::new().into(),
    })
}

/// Makes a log in this directory that sends nothing to the journal.
pub fn audit(directory: &Path, settings: Settings) -> AuditLog {
    AuditLog::new(directory.to_owned(), settings).with_journal("/nonexistent/journal".into())
}

/// Makes such a log with this number of calls in it.
pub fn with_calls(directory: &Path, calls: u32, settings: Settings) -> AuditLog {
    let audit = audit(directory, settings);
    for number in 1..=calls {
        audit.append(&call(number), Durability::Lazy).unwrap();
    }
    audit
}
