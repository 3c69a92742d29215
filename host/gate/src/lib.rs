//! The only way to change a target. The gate checks a whole plan against the grants, assesses its risk, shows it, asks
//! for a confirmation where needed, and records it. Then it executes the plan in a task of its own, and undoes a plan
//! that fails half-way.
//!
//! The caller may go away at any time. A plan that has begun is finished or undone all the same: the gate owns it, not
//! the request, and the server ends only when no plan is running.
#![forbid(unsafe_code)]

mod account_tables;
mod allowed;
mod command_log;
mod config;
mod confirmation;
mod confirmation_method;
mod diff;
mod execute;
mod execution;
mod expected_target;
mod file_problems;
mod files;
mod given_files;
mod guard;
mod heap;
mod mounts;
mod observed_output;
mod origin;
mod own_programs;
mod path_rights;
mod plan;
mod power;
mod prepare;
mod preview;
mod privilege_check;
mod question;
mod record;
pub mod recover;
mod replaced;
mod replan;
pub mod resource_locks;
mod risk_assessment;
mod signals;
mod target_lock;
mod uncertain;
mod unit_install;
mod unit_reach;
mod units;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use execute::{ExecutionReport, interrupted};
use execution::Execution;
pub use execution::ProgressReporter;
use expected_target::ExpectedTarget;
use guard::{Guard, GuardOutcome};
use host_base::sha256;
use host_policy::Policy;
pub use mounts::Mounts;
pub use observed_output::ObservedOutputs;
pub use own_programs::check_own_program;
pub use plan::{Action, Attributes, Change, Directory, FilePath, Move, PowerChange, Run, Step, Write};
use prepare::{PlanContext, PreparedPlan};
pub use question::{Question, plan_text};
pub use replan::{PlannedChange, Replan};
pub use target_lock::{TargetLock, TargetLockSlot};

pub use command_log::{CommandLog, CommandNumber, LoggedCommand, LookOfCaller};
pub use config::{Confirmation, Safety};
#[cfg(any(test, feature = "test-support"))]
pub use confirmation::NoConfirmer;
pub use confirmation::{
    Answer, CONFIRMATION_REQUIRED, Confirmer, EXPIRES, confirmation_required, declined, expired, not_shown,
    unavailable,
};
pub use confirmation_method::ConfirmationMethod;
use host_audit::{AuditLog, DecidedBy, Durability, Event};
use host_base::Output;
use host_base::Risk;
use host_base::faults;
use host_base::problem::{Category, Problem};
use host_capability::Grants;
use host_knowledge::LazyKnowledge;
use host_target::{Facts, Target};
use host_text::redact::redact_value;
use host_text::visible::make_visible;
pub use origin::{Origin, target_used};

/// Checks, records and executes plans.
pub struct Gate {
    safety: Safety,
    /// The rules. None stands for the rules that come with the program.
    policy: Option<Arc<Policy>>,
    knowledge: LazyKnowledge,
    audit: Arc<AuditLog>,
    target_locks: target_lock::TargetLocks,
    running: TaskTracker,
}

/// The call that a plan comes from, and all that the gate needs to work on it.
pub struct PlanRequest {
    /// The client, the tool, the module and the arguments.
    pub origin: Arc<Origin>,
    /// The risk that the tool's description names.
    pub risk: Risk,
    /// The grants of the module.
    pub grants: Arc<Grants>,
    /// The machine that the plan changes.
    pub target: Arc<Target>,
    /// The facts about the target.
    pub facts: Arc<Facts>,
    /// True for a dry run, which changes nothing.
    pub dry_run: bool,
    /// The lock on the target, held since before the module's first look. A dry run needs none.
    pub target_lock: TargetLockSlot,
    /// The way to ask for a confirmation.
    pub confirmer: Arc<dyn Confirmer>,
    /// Makes the plan anew, by the same call.
    pub replan: Arc<dyn Replan>,
    /// The SHA-256 of each file that the module has read whole in this call. None stands for a file that did not exist.
    pub file_hashes: HashMap<String, Option<String>>,
    /// The outputs of the commands by which the module looked.
    pub observed: Arc<ObservedOutputs>,
    /// The log that the commands are added to.
    pub command_log: Arc<CommandLog>,
    /// The function that is told about each step.
    pub progress: ProgressReporter,
}

/// The outcome of a plan.
pub enum Outcome {
    /// The call was a dry run, and nothing was changed.
    DryRun {
        /// The plan as it is shown.
        preview: Value,
        /// Whether the change itself would need a confirmation.
        needs_confirmation: bool,
        /// The output of the program's own simulation, where it has one.
        outputs: Vec<Output>,
    },
    /// All steps succeeded.
    Done {
        /// The output of each command.
        outputs: Vec<Output>,
        /// Sentences for the caller.
        notes: Vec<String>,
    },
    /// A step failed.
    Failed {
        /// The reason, with the undone steps among its details.
        problem: Problem,
        /// The number of the step that failed.
        step: usize,
        /// The output of each command that ran.
        outputs: Vec<Output>,
        /// The things that were put back.
        undone: Vec<String>,
        /// The things that were not put back, with the reasons.
        not_undone: Vec<String>,
        /// True where it isn't known how far the plan or its undo came.
        uncertain: bool,
    },
}

impl Gate {
    /// A gate with the operator's rules and profiles.
    pub fn new(
        safety: Safety,
        policy: Option<Arc<Policy>>,
        knowledge: LazyKnowledge,
        audit: Arc<AuditLog>,
    ) -> Self {
        let target_locks = target_lock::TargetLocks::of_this_account(audit.directory());
        Self { safety, policy, knowledge, audit, target_locks, running: TaskTracker::new() }
    }

    /// Keeps the files of its locks in this directory, apart from those of the account's servers. It is for a gate whose
    /// targets no other server has.
    #[must_use]
    pub fn with_locks_in(self, directory: PathBuf) -> Self {
        Self { target_locks: target_lock::TargetLocks::within(directory), ..self }
    }

    /// Waits until no other plan changes the target, and locks it. A module has to look at the target under this lock:
    /// what it sees in the middle of another change is no ground for a plan.
    pub async fn lock_target(&self, target: &Target) -> Result<TargetLock, Problem> {
        self.target_locks.acquire(target).await
    }

    /// The rules for commands and files.
    pub fn policy(&self) -> &Policy {
        self.policy.as_deref().unwrap_or_else(|| Policy::builtin())
    }

    /// The profiles of services.
    pub fn knowledge(&self) -> &LazyKnowledge {
        &self.knowledge
    }

    /// The audit log.
    pub fn audit(&self) -> &Arc<AuditLog> {
        &self.audit
    }

    /// Refuses new plans, and waits until no plan is running.
    pub async fn finished(&self) {
        self.running.close();
        self.running.wait().await;
    }

    /// Checks a plan, and executes it where nothing forbids that. A problem means that nothing has been changed. The
    /// plan goes on when the future is dropped; it is cancelled then, and its steps are undone.
    pub async fn apply(&self, request: PlanRequest, change: Change) -> Result<Outcome, Problem> {
        let id = host_base::id::random()?;
        if !request.dry_run && !request.target_lock.is_held() {
            request.target_lock.hold(self.lock_target(&request.target).await?);
        }
        let context = PlanContext {
            grants: &request.grants,
            target: &request.target,
            facts: &request.facts,
            policy: self.policy(),
            knowledge: self.knowledge.get(),
            tool_risk: request.risk,
            file_hashes: &request.file_hashes,
            observed: &request.observed,
        };
        let (plan, left) = tokio::join!(
            Box::pin(context.prepare(&id, change)),
            recover::left_behind(self.audit.directory(), &request.facts)
        );
        let mut plan = plan?;
        plan.warnings.extend(left.iter().cloned());
        let needs_confirmation = plan.asks || plan.risk >= self.safety.confirmation_threshold;
        let waits = needs_confirmation || request.confirmer.holds_plans() && !request.dry_run;
        let (plan, identity, decided_by) = match request.dry_run && self.safety.dry_run_bypass_confirmation {
            false if waits => {
                Box::pin(self.confirmed(&request, &context, &id, plan, needs_confirmation)).await?
            }
            _ => {
                let identity = identity(&request, &plan, None)?;
                (plan, identity, DecidedBy::Policy)
            }
        };
        let preview = shown(&plan);
        if request.dry_run {
            let outputs = simulate(&request, &plan).await?;
            return Ok(Outcome::DryRun { preview, needs_confirmation, outputs });
        }
        // The token is taken before the check for the server's end, so that the end waits for this plan.
        let token = self.running.token();
        if self.running.is_closed() {
            return Err(interrupted());
        }
        let cancelled = CancellationToken::new();
        let _gone = cancelled.clone().drop_guard();
        let begun =
            record::begun(&id, &request, &plan, record::DecidedPlan { preview, identity, decided_by });
        let execution = Execution {
            expected: ExpectedTarget::of(&request),
            target_lock: request.target_lock,
            plan,
            target: request.target,
            grants: request.grants,
            command_log: request.command_log,
            cancelled: cancelled.clone(),
            progress: request.progress,
        };
        let command_log = execution.command_log.clone();
        let task = Task { id, execution, begun, audit: self.audit.clone() };
        let running = tokio::spawn(async move {
            let _token = token;
            let outcome = AssertUnwindSafe(task.run()).catch_unwind().await;
            command_log.ends();
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let outcome = running.await;
        let internal =
            |error: JoinError| Problem::new("INTERNAL_ERROR", Category::Internal, error.to_string());
        let mut outcome = outcome.map_err(internal)??;
        if let Outcome::Done { notes, .. } = &mut outcome {
            notes.extend(left);
        }
        Ok(outcome)
    }
}

/// A plan that is executed. Nothing else owns it.
struct Task {
    id: String,
    execution: Execution,
    begun: host_audit::ChangeBegun,
    audit: Arc<AuditLog>,
}

impl Task {
    async fn run(self) -> Result<Outcome, Problem> {
        let Self { id, execution, begun, audit } = self;
        // From here on, the plan's commands run on this machine or not at all.
        let _pinned = execution.target.pin(execution.expected.identity());
        execution.check_target().await?;
        let change = &execution.plan.change;
        resource_locks::check(&execution.target, &change.locks, &change.affected_services).await?;
        if execution.cancelled.is_cancelled() {
            return Err(interrupted());
        }
        // The change is on record, and on the disk, before its first step.
        faults::pass(format_args!("before-begun"))?;
        replaced::keep(audit.directory(), &id, &execution.plan)
            .await
            .map_err(|error| not_on_record(&host_audit::AuditError::Unwritable(error.to_string())))?;
        append(&audit, Event::ChangeBegun(Box::new(begun)), Durability::Synced)
            .await
            .map_err(|error| not_on_record(&error))?;
        execution.command_log.begins(&id, &execution.cancelled);
        let mut report = ExecutionReport::default();
        let armed = match (faults::pass(format_args!("after-begun")), change.guard) {
            (Err(problem), _) => Err(problem),
            (Ok(()), None) => Ok(None),
            (Ok(()), Some(wait)) => Guard::arm(&execution, &id, wait).await.map(Some),
        };
        match armed {
            Err(problem) => report.failure = Some(problem),
            Ok(guard) => {
                // A panic counts as a failed step, so that it leaves nothing half-done.
                let steps = heap::on_heap(|| execution.steps(guard.as_ref(), &mut report));
                let steps = AssertUnwindSafe(steps).catch_unwind().await;
                if steps.is_err() {
                    let message = "the host failed in the middle of the plan; its log says how";
                    report.failure = Some(Problem::new("INTERNAL_ERROR", Category::Internal, message));
                }
                if let Some(power) = change.power {
                    heap::on_heap(|| execution.follow(power, &mut report)).await;
                }
                heap::on_heap(|| ended(&execution, &mut report, guard)).await;
            }
        }
        let interrupted = execution.cancelled.is_cancelled();
        let mut on_record = put_end_on_record(&audit, &id, &report, interrupted).await;
        if let (Err(error), None) = (&on_record, &report.failure) {
            // A change whose end isn't on record would be taken for a half-done one, and be put back later.
            report.failure = Some(end_not_on_record(error));
            heap::on_heap(|| execution.undo(&mut report)).await;
            on_record = put_end_on_record(&audit, &id, &report, interrupted).await;
        }
        if on_record.is_ok() && report.not_undone.is_empty() && !report.uncertain {
            replaced::forget(audit.directory(), &id);
        }
        Ok(match report.failure.take() {
            None => Outcome::Done { outputs: report.outputs, notes: execution.tidy().await },
            // The copies of undone steps are gone. The copies of other steps may be the only ones, so they stay.
            Some(mut problem) => {
                if let Err(error) = on_record {
                    tracing::error!(change = id, %error, "the end of a change is not on record");
                }
                problem = problem
                    .detail("failed_step", json!(report.done))
                    .detail("undone", json!(report.undone))
                    .detail("not_undone", json!(report.not_undone));
                if report.uncertain {
                    problem = uncertain::told(problem, &execution, &report, &id);
                }
                let ExecutionReport { outputs, done: step, undone, not_undone, uncertain, .. } = report;
                Outcome::Failed { problem, step, outputs, undone, not_undone, uncertain }
            }
        })
    }
}

/// Removes the guard after the last step or after the one that failed, or waits until it has fired. Then a half-done
/// change is undone.
async fn ended(execution: &Execution, report: &mut ExecutionReport, guard: Option<Guard<'_>>) {
    let watched = match (guard, &report.failure) {
        (None, _) => GuardOutcome::Disarmed,
        (Some(guard), None) => guard.watch().await,
        (Some(guard), Some(_)) if report.uncertain => guard.left_to_target().await,
        (Some(guard), Some(_)) => guard.stand_down().await,
    };
    match watched {
        GuardOutcome::Disarmed if report.uncertain => execution.leave(report),
        GuardOutcome::Disarmed if report.failure.is_some() => heap::on_heap(|| execution.undo(report)).await,
        GuardOutcome::Disarmed => {}
        GuardOutcome::Fired(undone, not_undone) => {
            // The target has also undone a step whose end wasn't known.
            report.failure.take_if(|problem| problem.is_connection_failure());
            report.failure.get_or_insert_with(guard::cut);
            (report.undone, report.not_undone, report.uncertain) = (undone, not_undone, false);
        }
        GuardOutcome::Unreached(due) => {
            report.failure = Some(guard::unreached(execution.target.name(), due));
            report.uncertain = true;
            execution.leave(report);
        }
    }
}

/// The plan as a person or a model may see it.
fn shown(plan: &PreparedPlan) -> Value {
    let mut preview = preview::preview(plan);
    redact_value(&mut preview);
    make_visible(&mut preview);
    preview
}

async fn simulate(request: &PlanRequest, plan: &PreparedPlan) -> Result<Vec<Output>, Problem> {
    let Some(allowed) = &plan.dry_run else { return Ok(Vec::new()) };
    let number = request.command_log.push(&allowed.prefix, &allowed.shown);
    // The simulation only looks, so a lost connection has changed nothing.
    let output = request.target.run_all(std::slice::from_ref(&allowed.command)).await.pop();
    let output = output.unwrap_or_else(|| Err(file_problems::no_answer()))?;
    request.command_log.ended(number, output.exit_code);
    Ok(vec![output])
}

fn not_on_record(error: &host_audit::AuditError) -> Problem {
    let message = format!("nothing was changed, because the change can't be recorded: {error}");
    Problem::new("AUDIT_UNAVAILABLE", Category::Resource, message)
        .remedy("Free space, or mend what the message names; linux-sysadmin audit verify looks at all of it")
}

fn end_not_on_record(error: &host_audit::AuditError) -> Problem {
    let message = format!("the change was undone, because its end can't be recorded: {error}");
    Problem::new("AUDIT_UNAVAILABLE", Category::Resource, message)
        .remedy("Free space, or mend what the message names; linux-sysadmin audit verify looks at all of it")
}

async fn put_end_on_record(
    audit: &Arc<AuditLog>,
    id: &str,
    report: &ExecutionReport,
    interrupted: bool,
) -> Result<(), host_audit::AuditError> {
    let unwritable = |problem: Problem| host_audit::AuditError::Unwritable(problem.message);
    faults::pass(format_args!("before-ended")).map_err(unwritable)?;
    append(audit, record::ended(id, report, interrupted), Durability::Synced).await
}

/// Appends an event to the audit log, on a thread that may wait for the disk.
async fn append(
    audit: &Arc<AuditLog>,
    event: Event,
    durability: Durability,
) -> Result<(), host_audit::AuditError> {
    let audit = audit.clone();
    match tokio::task::spawn_blocking(move || audit.append(&event, durability)).await {
        Ok(appended) => appended.map(drop),
        Err(error) => Err(host_audit::AuditError::Unwritable(error.to_string())),
    }
}

/// The SHA-256 of all that identifies a change: the plan, the output of its simulation, the caller and the machine.
fn identity(request: &PlanRequest, plan: &PreparedPlan, simulated: Option<&str>) -> Result<String, Problem> {
    let origin = &request.origin;
    let whole = json!({
        "plan": preview::identity(plan),
        "tool": origin.tool,
        "arguments": origin.arguments_sha256,
        "module": origin.module.as_ref().map(|module| &module.sha256),
        "target": origin.target,
        "simulated": simulated,
    });
    let canonical = host_audit::canonical(&whole);
    let canonical = canonical.map_err(|error| {
        Problem::new("INTERNAL_ERROR", Category::Internal, format!("a plan without a hash: {error:?}"))
    })?;
    Ok(sha256::of(&canonical))
}

#[cfg(any(test, feature = "test-support"))]
impl Gate {
    /// A gate that can record nothing, not even as root, and therefore changes nothing.
    pub fn of_a_test() -> Self {
        let settings = host_audit::Settings { rotate_bytes: 1 << 20, keep: 1 };
        let audit = AuditLog::new("/dev/null/linux-sysadmin".into(), settings);
        // A plan can take the lock on the target, and fails when it is to be recorded.
        let target_locks = target_lock::TargetLocks::new(std::env::temp_dir().join("linux-sysadmin-tests"));
        Self { target_locks, ..Self::new(Safety::default(), None, LazyKnowledge::default(), Arc::new(audit)) }
    }
}

#[cfg(test)]
mod tests;
