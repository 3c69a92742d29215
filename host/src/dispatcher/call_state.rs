//! The state of one call in the pipeline, from which its envelope and its audit record are made.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::tool_calls::CallingModule;
use super::{ClientTools, LoadedModules};
use crate::answers::envelope::{Envelope, Status};
use crate::answers::remediation::{self, RemediationContext};
use crate::answers::reply::AnswerData;
use crate::calls::confirmation_channel::ConfirmationChannel;
use crate::retry::RetryLog;
use host_audit::{CallStatus, CommandUsed, DecidedBy, Decision, Event, ModuleUsed, TargetUsed};
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_components::{Module, Reply, Tool};
use host_gate::CommandLog;
use host_gate::Origin;
use host_gate::Outcome;

/// The state of a call while it runs.
pub struct CallState {
    /// The caller, the tool and the arguments.
    pub origin: Origin,
    /// The commands that the call has run.
    pub command_log: Arc<CommandLog>,
    /// The outcome of the call's plan, once the gate has executed or refused it.
    pub plan: Arc<OnceLock<Result<Outcome, Problem>>>,
    /// The module that answers the call, once it is chosen.
    pub routed: OnceLock<RoutedCall>,
    /// The channel by which the call asks for confirmation.
    pub channel: Arc<ConfirmationChannel>,
    /// The attempts to look that failed.
    pub retries: RetryLog,
    /// Whether the client's connection is a session.
    pub has_session: bool,
    /// The agent that calls, as it names itself, where several agents share a connection.
    pub agent_id: Option<String>,
    /// The module that makes the call within a call of its own. None where a client makes it.
    pub calling: Option<CallingModule>,
    /// The client's list of tools, where it has one.
    pub client_tools: Option<Arc<ClientTools>>,
}

/// The part of a call's state that is known once its module is chosen.
pub struct RoutedCall {
    /// The call's origin, with the module and the target.
    pub origin: Arc<Origin>,
    risk: Risk,
    dry_run: bool,
    /// The target's family of distributions.
    family: String,
    /// The tool's duration category.
    duration: &'static str,
    /// The modules that the call began with.
    modules: Arc<LoadedModules>,
}

impl RoutedCall {
    /// Routes a call to this module's tool on this target.
    pub fn new(
        origin: &Origin,
        (modules, module): (&Arc<LoadedModules>, &Module),
        tool: &Tool,
        target: TargetUsed,
        family: &str,
        dry_run: bool,
    ) -> Self {
        let origin =
            Arc::new(Origin { module: Some(module_used(module)), target: Some(target), ..origin.clone() });
        Self {
            origin,
            risk: tool.risk,
            dry_run,
            family: family.to_owned(),
            duration: tool.duration_category(),
            modules: modules.clone(),
        }
    }

    /// The names that fill the remediation steps of this call.
    fn remediation_context(&self) -> RemediationContext<'_> {
        let (module, target) = (self.origin.module.as_ref(), self.origin.target.as_ref());
        RemediationContext {
            family: &self.family,
            host: target.map_or("", |target| &target.name),
            module: module.map(|module| module.name.as_str()),
            user: target.map(|target| target.account.as_str()),
        }
    }
}

/// The identity of a module for the audit log.
pub fn module_used(module: &Module) -> ModuleUsed {
    let description = &module.description;
    let (name, version) = (description.name.clone(), description.version.clone());
    ModuleUsed { name, version, sha256: module.sha256.clone() }
}

impl CallState {
    /// Makes the envelope. A plan that broke is an error, whatever the module answers.
    pub fn envelope(
        &self,
        tool: &str,
        target: &str,
        started: Instant,
        answer: Result<(AnswerData, Reply), Problem>,
    ) -> Envelope {
        let plan = self.plan.get().and_then(|plan| plan.as_ref().ok());
        let answer = match (answer, plan) {
            (Ok(_), Some(Outcome::Failed { problem, .. })) => Err(problem.clone()),
            (Err(mut problem), Some(Outcome::Failed { problem: broke, .. })) => {
                problem
                    .details
                    .extend(broke.details.iter().map(|(name, value)| (name.clone(), value.clone())));
                Err(problem)
            }
            (answer, _) => answer,
        };
        let mut envelope = match answer {
            Err(mut problem) => {
                if let Some(routed) = self.routed.get() {
                    if problem.category == Category::Timeout {
                        problem = problem.detail("duration_category", routed.duration.into());
                    }
                    let calls = |code: &str| routed.modules.helping_calls(code);
                    problem = remediation::attach(problem, &routed.remediation_context(), calls);
                }
                Envelope::failure(tool, target, started, self.command_log.shown(), problem)
            }
            Ok((answer, reply)) => {
                let mut envelope = Envelope::success(tool, target, started, self.command_log.shown());
                answer.fill(&mut envelope, reply);
                envelope.dry_run = self.routed.get().is_some_and(|routed| routed.dry_run);
                match plan {
                    Some(Outcome::DryRun { preview, needs_confirmation, .. }) => {
                        envelope.preview = Some(preview.clone());
                        envelope.needs_confirmation = *needs_confirmation;
                    }
                    Some(Outcome::Done { notes, .. }) => envelope.notes.extend(notes.iter().cloned()),
                    _ => {}
                }
                envelope
            }
        };
        envelope.add_retries(self.retries.summary());
        envelope
    }

    /// Makes the audit record of the call with this envelope.
    pub fn audit_event(&self, envelope: &Envelope) -> Event {
        let routed = self.routed.get();
        let (change, mut decision) = match (self.plan.get(), self.command_log.change(), routed) {
            (Some(Ok(Outcome::DryRun { .. })), _, _) => (None, Decision::DryRun),
            (Some(Err(_)), _, _) => (None, Decision::Refused),
            // A cancelled call has a change, but doesn't learn how its plan ends.
            (_, Some(id), _) => (Some(id.to_owned()), Decision::Allowed),
            (None, None, Some(routed)) if routed.risk == Risk::ReadOnly => (None, Decision::Looked),
            _ => (None, Decision::None),
        };
        let question = self.channel.question_sha256();
        let decided_by = match self.channel.answer() {
            Some(host_gate::Answer::Yes(by) | host_gate::Answer::No(by)) => Some(by.clone()),
            None if question.is_some() => {
                decision = Decision::Asked;
                None
            }
            None => matches!(decision, Decision::Allowed | Decision::Refused).then_some(DecidedBy::Policy),
        };
        let commands: Vec<CommandUsed> = self
            .command_log
            .lines()
            .into_iter()
            .map(|line| CommandUsed { command: line.text, exit_code: line.exit_code })
            .collect();
        let origin: &Origin = routed.map_or(&self.origin, |routed| &routed.origin);
        Event::Call(Box::new(host_audit::Call {
            trace_id: origin.trace_id.clone(),
            client: origin.client.clone(),
            protocol: origin.protocol.clone(),
            tool: origin.tool.clone(),
            called_as: origin.called_as.clone(),
            called_by: origin.called_by.clone(),
            module: origin.module.clone(),
            target: origin.target.clone(),
            arguments: origin.arguments.clone().into(),
            risk: routed.map(|routed| routed.risk),
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
}
