//! A change as it is put on record: before its first step with all that it takes to put it back, and at its end.

use serde_json::Value;

use super::Asking;
use super::allowed::Allowed;
use super::execute::Ran;
use super::plan::Action;
use super::prepare::{Doing, Plan};
use crate::target_used;
use host_audit::{
    ChangeBegun, ChangeEnded, DecidedBy, Decision, Event, FileChange, FileChangeKind, ModuleUsed, Outcome,
    TargetUsed,
};
use host_base::sha256;
use host_text::redact::redact;

/// What was decided about, and by whom.
pub(super) struct Decided {
    /// The plan as it is shown.
    pub preview: Value,
    /// Its hash.
    pub identity: String,
    /// Who said yes.
    pub decided_by: DecidedBy,
}

/// The change, about to begin.
pub(super) fn begun(id: &str, asking: &Asking, plan: &Plan, decided: Decided) -> ChangeBegun {
    let Decided { preview, identity, decided_by } = decided;
    let origin = &asking.origin;
    let steps = plan.change.steps.iter().zip(&plan.steps);
    let files = steps.filter_map(|(step, prepared)| match &prepared.doing {
        Doing::Run(_) => None,
        Doing::File(site, _) => Some(FileChange {
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
                _ => FileChangeKind::Write,
            },
        }),
    });
    let module = origin.module.clone();
    let unknown = || ModuleUsed { name: String::new(), version: String::new(), sha256: String::new() };
    let target = origin.target.clone();
    let target: TargetUsed = target.unwrap_or_else(|| target_used(&asking.target, &asking.facts, None));
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

fn lines(commands: &[Allowed]) -> Vec<String> {
    commands.iter().map(line).collect()
}

/// What a command reads may be secret, and isn't kept: whoever runs it by hand has to know that it is missing.
fn line(command: &Allowed) -> String {
    let line = redact(&command.line()).into_owned();
    match &command.command.stdin {
        None => line,
        Some(stdin) => {
            format!("{line} < ({} bytes that aren't kept, SHA-256 {})", stdin.len(), sha256::of(stdin))
        }
    }
}

/// The change, ended one way or the other.
pub(super) fn ended(id: &str, ran: &Ran, interrupted: bool) -> Event {
    let shown = |texts: &[String]| texts.iter().map(|text| redact(text).into_owned()).collect::<Vec<_>>();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Event::ChangeEnded(ChangeEnded {
        id: id.to_owned(),
        outcome: match (&ran.broke, ran.not_undone.is_empty()) {
            (None, _) => Outcome::Done,
            (Some(_), _) if ran.uncertain => Outcome::Uncertain,
            (Some(_), true) => Outcome::Undone,
            (Some(_), false) => Outcome::PartlyUndone,
        },
        interrupted,
        failed_step: ran.broke.as_ref().map(|_| count(ran.done)),
        error_code: ran.broke.as_ref().map(|problem| problem.code.clone()),
        exit_codes: ran.outputs.iter().map(|output| output.exit_code).collect::<Vec<_>>().into(),
        steps_done: count(ran.done),
        undone: shown(&ran.undone).into(),
        not_undone: shown(&ran.not_undone).into(),
    })
}
