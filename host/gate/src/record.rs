//! The audit events of a change: before its first step with all that is needed to put it back, and at its end.

use serde_json::Value;

use super::PlanRequest;
use super::allowed::AllowedCommand;
use super::execute::ExecutionReport;
use super::plan::Action;
use super::prepare::{PreparedAction, PreparedPlan};
use crate::target_used;
use host_audit::{
    ChangeBegun, ChangeEnded, DecidedBy, Decision, Event, FileChange, FileChangeKind, ModuleUsed, Outcome,
    TargetUsed,
};
use host_base::sha256;
use host_text::redact::redact;

/// The plan that was decided about, and who decided.
pub(super) struct DecidedPlan {
    /// The plan as it is shown.
    pub preview: Value,
    /// The hash that identifies the plan.
    pub identity: String,
    /// The one who allowed the plan.
    pub decided_by: DecidedBy,
}

/// The event of a change that is about to begin.
pub(super) fn begun(
    id: &str,
    request: &PlanRequest,
    plan: &PreparedPlan,
    decided: DecidedPlan,
) -> ChangeBegun {
    let DecidedPlan { preview, identity, decided_by } = decided;
    let origin = &request.origin;
    let steps = plan.change.steps.iter().zip(&plan.steps);
    let files = steps.filter_map(|(step, prepared)| match &prepared.action {
        PreparedAction::Run(_) | PreparedAction::Signal(_) => None,
        PreparedAction::File(site, _) => Some(FileChange {
            path: site.path.clone(),
            staging: site.staging.clone(),
            privilege: step.action.path()?.privilege.clone(),
            existed: site.found.is_some(),
            sha256_before: site.sha256(),
            sha256_after: match &step.action {
                Action::Write(write) => Some(sha256::of(&write.contents)),
                _ => None,
            },
            kind: match &step.action {
                Action::MakeDirectory(_) => FileChangeKind::MakeDirectory,
                Action::Remove(_) => FileChangeKind::Remove,
                Action::Move(_) => FileChangeKind::Move,
                Action::SetAttributes(_) => FileChangeKind::SetAttributes,
                Action::RemoveDirectory(_) => FileChangeKind::RemoveDirectory,
                Action::Write(_) | Action::Run(_) | Action::Signal(_) => FileChangeKind::Write,
            },
            to: site.to.clone(),
            before: match &step.action {
                Action::Write(_) | Action::Remove(_) => None,
                _ => site.attributes(),
            },
            after: match &step.action {
                Action::SetAttributes(attributes) => site.attributes_after(attributes),
                _ => None,
            },
        }),
    });
    let module = origin.module.clone();
    let unknown = || ModuleUsed { name: String::new(), version: String::new(), sha256: String::new() };
    let target = origin.target.clone();
    let target: TargetUsed = target.unwrap_or_else(|| target_used(&request.target, &request.facts, None));
    ChangeBegun {
        id: id.to_owned(),
        trace_id: origin.trace_id.clone(),
        client: origin.client.clone(),
        protocol: origin.protocol.clone(),
        tool: origin.tool.clone(),
        module: module.unwrap_or_else(unknown),
        target,
        arguments: origin.arguments.clone().into(),
        plan: preview.into(),
        plan_sha256: identity,
        risk: plan.risk,
        rules: plan.rules.clone().into(),
        decision: Decision::Allowed,
        decided_by: Some(decided_by),
        files: files.collect(),
        undo: plan.steps.iter().map(|step| lines(&step.undo)).collect(),
        after_undo: lines(&plan.after_undo),
        process: None,
    }
}

fn lines(commands: &[AllowedCommand]) -> Vec<String> {
    commands.iter().map(line).collect()
}

/// The command line for the record. The input isn't kept, since it may be secret; the line says that it is missing, for
/// a person who runs the command by hand.
fn line(command: &AllowedCommand) -> String {
    let line = redact(&command.line()).into_owned();
    match &command.command.stdin {
        None => line,
        Some(stdin) => {
            format!("{line} < ({} bytes that aren't kept, SHA-256 {})", stdin.len(), sha256::of(stdin))
        }
    }
}

/// The event of a change that has ended.
pub(super) fn ended(id: &str, report: &ExecutionReport, interrupted: bool) -> Event {
    let shown = |texts: &[String]| texts.iter().map(|text| redact(text).into_owned()).collect::<Vec<_>>();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Event::ChangeEnded(ChangeEnded {
        id: id.to_owned(),
        outcome: match (&report.failure, report.not_undone.is_empty()) {
            (None, _) => Outcome::Done,
            (Some(_), _) if report.uncertain => Outcome::Uncertain,
            (Some(_), true) => Outcome::Undone,
            (Some(_), false) => Outcome::PartlyUndone,
        },
        interrupted,
        failed_step: report.failure.as_ref().map(|_| count(report.done)),
        error_code: report.failure.as_ref().map(|problem| problem.code.clone()),
        exit_codes: report.outputs.iter().map(|output| output.exit_code).collect::<Vec<_>>().into(),
        steps_done: count(report.done),
        undone: shown(&report.undone).into(),
        not_undone: shown(&report.not_undone).into(),
    })
}
