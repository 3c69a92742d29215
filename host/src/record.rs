//! A call as it is put on record, once it has its answer.

use crate::envelope::{Envelope, Status};
use host_audit::{Call, CallStatus, CommandUsed, DecidedBy, Decision, Event};
use host_base::Risk;
use host_gate::Executed;
use host_gate::Origin;

/// A call with its answer.
pub struct Answered<'a> {
    /// Who asked for what.
    pub origin: &'a Origin,
    /// The tool's own, where the tool is known.
    pub risk: Option<Risk>,
    /// Whether it might.
    pub decision: Decision,
    /// Who said so.
    pub decided_by: Option<DecidedBy>,
    /// SHA-256 of what somebody was asked.
    pub question: Option<&'a str>,
    /// The change that it made.
    pub change: Option<String>,
    /// What was answered.
    pub envelope: &'a Envelope,
    /// What ran.
    pub executed: &'a Executed,
}

/// The record of a call.
pub fn call(answered: Answered<'_>) -> Event {
    let Answered { origin, risk, decision, decided_by, question, change, envelope, executed } = answered;
    let commands: Vec<CommandUsed> = executed
        .lines()
        .into_iter()
        .map(|line| CommandUsed { command: line.text, exit_code: line.exit_code })
        .collect();
    Event::Call(Box::new(Call {
        trace_id: origin.trace_id.clone(),
        client: origin.client.clone(),
        protocol: origin.protocol.clone(),
        tool: origin.tool.clone(),
        called_as: origin.called_as.clone(),
        module: origin.module.clone(),
        target: origin.target.clone(),
        arguments: origin.arguments.clone().into(),
        risk,
        decision,
        decided_by,
        question: question.map(str::to_owned),
        change,
        status: match envelope.status {
            Status::Success | Status::Running => CallStatus::Success,
            Status::Error => CallStatus::Error,
            Status::Blocked => CallStatus::Blocked,
            Status::ConfirmationRequired => CallStatus::ConfirmationRequired,
        },
        error_code: envelope.error.as_ref().map(|error| error.error_code.clone()),
        duration_ms: envelope.duration_ms,
        commands: commands.into(),
    }))
}
