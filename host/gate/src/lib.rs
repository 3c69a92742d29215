//! The one way to change a target: a plan as a whole is held against the grants, weighed, shown, put on record, and then
//! executed in a task of its own, which undoes a half-done one.
//!
//! Who asks for a plan may go away at any time. What has begun is finished or undone all the same: the gate owns it, not
//! the request, and the server ends only when no plan is running.
#![forbid(unsafe_code)]

mod again;
mod allowed;
mod asking;
mod config;
mod diff;
mod execute;
mod executed;
mod execution;
mod file_problems;
mod files;
mod guard;
pub mod locks;
mod looked;
mod meant;
mod method;
mod origin;
mod plan;
mod prepare;
mod preview;
mod question;
mod record;
pub mod recover;
mod replaced;
mod standing;
mod turn;
mod uncertain;
mod units;
mod weigh;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use again::{Again, Planned};
use execute::{Ran, interrupted};
use execution::Execution;
pub use execution::Telling;
use guard::{Guard, Watched};
use host_base::sha256;
use host_policy::Policy;
pub use looked::Looked;
use meant::Meant;
pub use plan::{Action, Change, Directory, FilePath, Run, Step, Write};
use prepare::{Against, Plan};
pub use question::Question;
pub use turn::{Held, Turn};

#[cfg(any(test, feature = "test-support"))]
pub use asking::Nobody;
pub use asking::{
    Answer, Ask, CONFIRMATION_REQUIRED, EXPIRES, confirmation_required, declined, expired, not_shown,
    unavailable,
};
pub use config::{Confirmation, Safety};
pub use executed::{Executed, Line, Number};
use host_audit::{Audit, DecidedBy, Durability, Event};
use host_base::Output;
use host_base::Risk;
use host_base::faults;
use host_base::problem::{Category, Problem};
use host_capability::Grants;
use host_knowledge::Lazy;
use host_target::{Facts, Target};
use host_text::redact::redact_value;
use host_text::visible::make_visible;
pub use method::ConfirmationMethod;
pub use origin::{Origin, target_used};

/// What stands between a plan and a target.
pub struct Gate {
    safety: Safety,
    /// None: those that come with this program.
    policy: Option<Arc<Policy>>,
    knowledge: Lazy,
    audit: Arc<Audit>,
    turns: turn::Turns,
    running: TaskTracker,
}

/// Who asks for a plan, and with what.
pub struct Asking {
    /// Whoever called which tool of which module with which arguments.
    pub origin: Arc<Origin>,
    /// The tool's own risk.
    pub risk: Risk,
    /// What the module may do.
    pub grants: Arc<Grants>,
    /// Where.
    pub target: Arc<Target>,
    /// What is known of it.
    pub facts: Arc<Facts>,
    /// Only what would be.
    pub dry_run: bool,
    /// Since before the module's first look. A dry run needs none.
    pub turn: Held,
    /// Who can put a question to somebody.
    pub ask: Arc<dyn Ask>,
    /// The call that has made the plan, and can make it anew.
    pub again: Arc<dyn Again>,
    /// SHA-256 of each file that the module has read whole in this call; none where it wasn't there.
    pub seen: HashMap<String, Option<String>>,
    /// What commands said when the module looked.
    pub looked: Arc<Looked>,
    /// Where commands are noted.
    pub executed: Arc<Executed>,
    /// Told what runs.
    pub telling: Telling,
}

/// What became of a plan.
pub enum Outcome {
    /// Nothing was changed.
    DryRun {
        /// The plan as it is shown.
        preview: Value,
        /// Whether the change itself would be asked about.
        needs_confirmation: bool,
        /// Of the native dry run, where there is one.
        outputs: Vec<Output>,
    },
    /// All steps succeeded.
    Done {
        /// One for each command.
        outputs: Vec<Output>,
        /// What the caller should know.
        notes: Vec<String>,
    },
    /// A step failed.
    Broke {
        /// Why, with what was undone among its details.
        problem: Problem,
        /// The step that failed.
        step: usize,
        /// One for each command that ran.
        outputs: Vec<Output>,
        /// What was put back.
        undone: Vec<String>,
        /// What was not.
        not_undone: Vec<String>,
        /// The connection went, and nobody knows how far everything came.
        uncertain: bool,
    },
}

impl Gate {
    /// With the operator's rules and profiles.
    pub fn new(safety: Safety, policy: Option<Arc<Policy>>, knowledge: Lazy, audit: Arc<Audit>) -> Self {
        let turns = turn::Turns::of_this_account(audit.directory());
        Self { safety, policy, knowledge, audit, turns, running: TaskTracker::new() }
    }

    /// Waits until nobody else changes the target. What a plan is made of has to be looked at within its turn: what
    /// another one has in the middle is nothing to go by.
    pub async fn turn(&self, target: &Target) -> Result<Turn, Problem> {
        self.turns.take(target).await
    }

    /// What the rules say of commands and files.
    pub fn policy(&self) -> &Policy {
        self.policy.as_deref().unwrap_or_else(|| Policy::builtin())
    }

    /// What is known of services.
    pub fn knowledge(&self) -> &Lazy {
        &self.knowledge
    }

    /// Where everything is on record.
    pub fn audit(&self) -> &Arc<Audit> {
        &self.audit
    }

    /// Returns when no plan is running, and takes no more.
    pub async fn finished(&self) {
        self.running.close();
        self.running.wait().await;
    }

    /// Holds a plan against everything, and executes it where nothing is against it. A problem is a refusal: nothing has
    /// been changed. Dropping the future doesn't drop the plan: what was done is undone.
    pub async fn apply(&self, asking: Asking, change: Change) -> Result<Outcome, Problem> {
        let id = host_base::id::random()?;
        if !asking.dry_run && !asking.turn.is_held() {
            asking.turn.hold(self.turn(&asking.target).await?);
        }
        let against = Against {
            grants: &asking.grants,
            target: &asking.target,
            facts: &asking.facts,
            policy: self.policy(),
            knowledge: self.knowledge.get(),
            tool_risk: asking.risk,
            seen: &asking.seen,
            looked: &asking.looked,
        };
        let (plan, left) = tokio::join!(
            against.prepare(&id, change),
            recover::left_behind(self.audit.directory(), &asking.facts)
        );
        let mut plan = plan?;
        plan.warnings.extend(left.iter().cloned());
        let needs_confirmation = plan.asks || plan.risk >= self.safety.confirmation_threshold;
        let waits = needs_confirmation || asking.ask.holds_plans() && !asking.dry_run;
        let (plan, identity, decided_by) = match asking.dry_run && self.safety.dry_run_bypass_confirmation {
            false if waits => self.confirmed(&asking, &against, &id, plan, needs_confirmation).await?,
            _ => {
                let identity = identity(&asking, &plan, None)?;
                (plan, identity, DecidedBy::Policy)
            }
        };
        let preview = shown(&plan);
        if asking.dry_run {
            let outputs = simulate(&asking, &plan).await?;
            return Ok(Outcome::DryRun { preview, needs_confirmation, outputs });
        }
        // Taken before it is looked whether the end has begun: whoever waits for the end waits for this.
        let token = self.running.token();
        if self.running.is_closed() {
            return Err(interrupted());
        }
        let cancelled = CancellationToken::new();
        let _gone = cancelled.clone().drop_guard();
        let begun = record::begun(&id, &asking, &plan, record::Decided { preview, identity, decided_by });
        let execution = Execution {
            meant: Meant::of(&asking),
            turn: asking.turn,
            plan,
            target: asking.target,
            grants: asking.grants,
            executed: asking.executed,
            cancelled: cancelled.clone(),
            telling: asking.telling,
        };
        let executed = execution.executed.clone();
        let task = Task { id, execution, begun, audit: self.audit.clone() };
        let running = tokio::spawn(async move {
            let _token = token;
            let outcome = AssertUnwindSafe(task.run()).catch_unwind().await;
            executed.ends();
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

/// A plan on its way, owned by nobody else.
struct Task {
    id: String,
    execution: Execution,
    begun: host_audit::ChangeBegun,
    audit: Arc<Audit>,
}

impl Task {
    async fn run(self) -> Result<Outcome, Problem> {
        let Self { id, execution, begun, audit } = self;
        // Whatever the plan runs from here on, it runs on this machine or not at all.
        let _pinned = execution.target.pin(execution.meant.identity());
        execution.still().await?;
        let change = &execution.plan.change;
        locks::check(&execution.target, &change.locks, &change.affected_services).await?;
        if execution.cancelled.is_cancelled() {
            return Err(interrupted());
        }
        // On record, and on the disk, before anything happens.
        faults::pass(format_args!("before-begun"))?;
        replaced::keep(audit.directory(), &id, &execution.plan)
            .await
            .map_err(|error| not_on_record(&host_audit::AuditError::Unwritable(error.to_string())))?;
        append(&audit, Event::ChangeBegun(Box::new(begun)), Durability::Synced)
            .await
            .map_err(|error| not_on_record(&error))?;
        execution.executed.begins(&id, &execution.cancelled);
        let mut ran = Ran::default();
        let armed = match (faults::pass(format_args!("after-begun")), change.guard) {
            (Err(problem), _) => Err(problem),
            (Ok(()), None) => Ok(None),
            (Ok(()), Some(wait)) => Guard::arm(&execution, &id, wait).await.map(Some),
        };
        match armed {
            Err(problem) => ran.broke = Some(problem),
            Ok(guard) => {
                // A defect of ours is a step that failed, and leaves nothing half-done either.
                let steps = AssertUnwindSafe(execution.steps(guard.as_ref(), &mut ran)).catch_unwind().await;
                if steps.is_err() {
                    let message = "the host failed in the middle of the plan; its log says how";
                    ran.broke = Some(Problem::new("INTERNAL_ERROR", Category::Internal, message));
                }
                ended(&execution, &mut ran, guard).await;
            }
        }
        let interrupted = execution.cancelled.is_cancelled();
        let mut on_record = put_end_on_record(&audit, &id, &ran, interrupted).await;
        if let (Err(error), None) = (&on_record, &ran.broke) {
            // Found without its end, it would be taken for half-done, and put back later.
            ran.broke = Some(end_not_on_record(error));
            execution.undo(&mut ran).await;
            on_record = put_end_on_record(&audit, &id, &ran, interrupted).await;
        }
        if on_record.is_ok() && ran.not_undone.is_empty() && !ran.uncertain {
            replaced::forget(audit.directory(), &id);
        }
        Ok(match ran.broke.take() {
            None => Outcome::Done { outputs: ran.outputs, notes: execution.tidy().await },
            // What was undone has no copies any more, and of what wasn't they may be all that is left.
            Some(mut problem) => {
                if let Err(error) = on_record {
                    tracing::error!(change = id, %error, "the end of a change is not on record");
                }
                problem = problem
                    .detail("failed_step", json!(ran.done))
                    .detail("undone", json!(ran.undone))
                    .detail("not_undone", json!(ran.not_undone));
                if ran.uncertain {
                    problem = uncertain::told(problem, &execution, &ran, &id);
                }
                let Ran { outputs, done: step, undone, not_undone, uncertain, .. } = ran;
                Outcome::Broke { problem, step, outputs, undone, not_undone, uncertain }
            }
        })
    }
}

/// After the last step, or after the one that failed: the guard is taken away or has fired, and what is half-done is
/// undone.
async fn ended(execution: &Execution, ran: &mut Ran, guard: Option<Guard<'_>>) {
    let watched = match (guard, &ran.broke) {
        (None, _) => Watched::Disarmed,
        (Some(guard), None) => guard.watch().await,
        (Some(guard), Some(_)) if ran.uncertain => guard.left_to_target().await,
        (Some(guard), Some(_)) => guard.stand_down().await,
    };
    match watched {
        Watched::Disarmed if ran.uncertain => execution.leave(ran),
        Watched::Disarmed if ran.broke.is_some() => execution.undo(ran).await,
        Watched::Disarmed => {}
        Watched::Fired(undone, not_undone) => {
            // What nobody knew of is undone as well.
            ran.broke.take_if(|problem| problem.is_of_the_line());
            ran.broke.get_or_insert_with(guard::cut);
            (ran.undone, ran.not_undone, ran.uncertain) = (undone, not_undone, false);
        }
        Watched::Unreached(due) => {
            ran.broke = Some(guard::unreached(execution.target.name(), due));
            ran.uncertain = true;
            execution.leave(ran);
        }
    }
}

/// What a person or a model may see of a plan.
fn shown(plan: &Plan) -> Value {
    let mut preview = preview::preview(plan);
    redact_value(&mut preview);
    make_visible(&mut preview);
    preview
}

async fn simulate(asking: &Asking, plan: &Plan) -> Result<Vec<Output>, Problem> {
    let Some(allowed) = &plan.dry_run else { return Ok(Vec::new()) };
    let number = asking.executed.push(&allowed.prefix, &allowed.shown);
    // It only looks: one that was lost has changed nothing.
    let output = asking.target.run_all(std::slice::from_ref(&allowed.command)).await.pop();
    let output = output.unwrap_or_else(|| Err(file_problems::no_answer()))?;
    asking.executed.ended(number, output.exit_code);
    Ok(vec![output])
}

fn not_on_record(error: &host_audit::AuditError) -> Problem {
    let message = format!("nothing is changed that isn't on record, and it can't be put there: {error}");
    Problem::new("AUDIT_UNAVAILABLE", Category::Resource, message)
        .remedy("Free space, or mend what the message names; linux-sysadmin audit verify looks at all of it")
}

fn end_not_on_record(error: &host_audit::AuditError) -> Problem {
    let message = format!("that the change was made can't be put on record, so it was undone: {error}");
    Problem::new("AUDIT_UNAVAILABLE", Category::Resource, message)
        .remedy("Free space, or mend what the message names; linux-sysadmin audit verify looks at all of it")
}

async fn put_end_on_record(
    audit: &Arc<Audit>,
    id: &str,
    ran: &Ran,
    interrupted: bool,
) -> Result<(), host_audit::AuditError> {
    let unwritable = |problem: Problem| host_audit::AuditError::Unwritable(problem.message);
    faults::pass(format_args!("before-ended")).map_err(unwritable)?;
    append(audit, record::ended(id, ran, interrupted), Durability::Synced).await
}

/// Waits for the disk, so not where others are to be answered.
async fn append(
    audit: &Arc<Audit>,
    event: Event,
    durability: Durability,
) -> Result<(), host_audit::AuditError> {
    let audit = audit.clone();
    match tokio::task::spawn_blocking(move || audit.append(&event, durability)).await {
        Ok(appended) => appended.map(drop),
        Err(error) => Err(host_audit::AuditError::Unwritable(error.to_string())),
    }
}

/// SHA-256 of everything that makes this change what it is: the plan, what the program itself says of it, who asked for
/// it, and the very machine.
fn identity(asking: &Asking, plan: &Plan, simulated: Option<&str>) -> Result<String, Problem> {
    let origin = &asking.origin;
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
    /// Nothing can be put on record, not even by root, so nothing is changed.
    pub fn of_a_test() -> Self {
        let settings = host_audit::Settings { rotate_bytes: 1 << 20, keep: 1 };
        let audit = Audit::new("/dev/null/linux-sysadmin".into(), settings);
        // One may take its turn all the same, and come as far as the record.
        let turns = turn::Turns::new(std::env::temp_dir().join("linux-sysadmin-tests"));
        Self { turns, ..Self::new(Safety::default(), None, Lazy::default(), Arc::new(audit)) }
    }
}

#[cfg(test)]
mod tests;
