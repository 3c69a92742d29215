//! One call as it is answered and put on record, whoever waits for it.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::answer::Answer;
use crate::envelope::Envelope;
use crate::record;
use crate::remediation::{self, About};
use crate::retry::Tries;
use crate::running::Desk;
use host_audit::{DecidedBy, Decision, Event, ModuleUsed, TargetUsed};
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_components::{Module, Reply, Tool};
use host_gate::Executed;
use host_gate::Origin;
use host_gate::Outcome;

/// One call, as it is put on record.
pub struct Call {
    /// Who asks for what.
    pub origin: Origin,
    /// What ran.
    pub executed: Arc<Executed>,
    /// What became of its plan, once it has one.
    pub plan: Arc<OnceLock<Result<Outcome, Problem>>>,
    /// Where a module answers it.
    pub routed: OnceLock<Routed>,
    /// Where it may have somebody asked.
    pub desk: Arc<Desk>,
    /// How often it was looked.
    pub tries: Tries,
    /// Whether its client's connection is a session.
    pub has_session: bool,
    /// Which of several that share a connection asks, by its own word.
    pub agent_id: Option<String>,
}

/// What is known once a module answers the call.
pub struct Routed {
    /// With the module and the target.
    pub origin: Arc<Origin>,
    risk: Risk,
    dry_run: bool,
    /// Of the target.
    family: String,
    /// The tool's duration category.
    duration: &'static str,
}

impl Routed {
    /// What advice is about.
    fn about(&self) -> About<'_> {
        let (module, target) = (self.origin.module.as_ref(), self.origin.target.as_ref());
        About {
            family: &self.family,
            host: target.map_or("", |target| &target.name),
            module: module.map(|module| module.name.as_str()),
            user: target.map(|target| target.account.as_str()),
        }
    }
}

impl Routed {
    /// To this module's tool.
    pub fn new(
        origin: &Origin,
        module: &Module,
        tool: &Tool,
        target: TargetUsed,
        family: &str,
        dry_run: bool,
    ) -> Self {
        let description = &module.description;
        let (name, version) = (description.name.clone(), description.version.clone());
        let module = ModuleUsed { name, version, sha256: module.sha256.clone() };
        let origin = Arc::new(Origin { module: Some(module), target: Some(target), ..origin.clone() });
        Self {
            origin,
            risk: tool.risk,
            dry_run,
            family: family.to_owned(),
            duration: tool.duration_category(),
        }
    }
}

impl Call {
    /// The answer, with what became of the plan: whatever the module makes of it, a plan that broke is no success.
    pub fn envelope(
        &self,
        tool: &str,
        target: &str,
        started: Instant,
        answer: Result<(Answer, Reply), Problem>,
    ) -> Envelope {
        let plan = self.plan.get().and_then(|plan| plan.as_ref().ok());
        let answer = match (answer, plan) {
            (Ok(_), Some(Outcome::Broke { problem, .. })) => Err(problem.clone()),
            (Err(mut problem), Some(Outcome::Broke { problem: broke, .. })) => {
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
                    problem = remediation::attach(problem, &routed.about());
                }
                Envelope::failure(tool, target, started, self.executed.shown(), problem)
            }
            Ok((answer, reply)) => {
                let mut envelope = Envelope::success(tool, target, started, self.executed.shown());
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
        envelope.tried(self.tries.so_far());
        envelope
    }

    /// Its record.
    pub fn event(&self, envelope: &Envelope) -> Event {
        let routed = self.routed.get();
        let (change, mut decision) = match (self.plan.get(), self.executed.change(), routed) {
            (Some(Ok(Outcome::DryRun { .. })), _, _) => (None, Decision::DryRun),
            (Some(Err(_)), _, _) => (None, Decision::Refused),
            // One that was cancelled isn't told what becomes of its plan.
            (_, Some(id), _) => (Some(id.to_owned()), Decision::Allowed),
            (None, None, Some(routed)) if routed.risk == Risk::ReadOnly => (None, Decision::Looked),
            _ => (None, Decision::None),
        };
        let decided_by = match self.desk.answer() {
            Some(host_gate::Answer::Yes(by) | host_gate::Answer::No(by)) => Some(by.clone()),
            None if self.desk.question().is_some() => {
                decision = Decision::Asked;
                None
            }
            None => matches!(decision, Decision::Allowed | Decision::Refused).then_some(DecidedBy::Policy),
        };
        record::call(record::Answered {
            origin: routed.map_or(&self.origin, |routed| &routed.origin),
            risk: routed.map(|routed| routed.risk),
            decision,
            decided_by,
            question: self.desk.question(),
            change,
            envelope,
            executed: &self.executed,
        })
    }
}
