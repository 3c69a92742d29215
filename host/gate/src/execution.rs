//! The data that a plan's steps, its undo and its guard share while the plan is executed.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::command_log::CommandLog;
use super::expected_target::ExpectedTarget;
use super::plan::Action;
use super::prepare::{PreparedAction, PreparedPlan};
use super::signals;
use super::target_lock::TargetLockSlot;
use host_base::problem::Problem;
use host_capability::Grants;
use host_target::Target;

/// A function that is called with the fraction that is done, where it is known, and a sentence about the current step.
pub type ProgressReporter = Arc<dyn Fn(Option<f32>, &str) + Send + Sync>;

/// The data that a plan is executed with.
pub struct Execution {
    /// The plan.
    pub plan: PreparedPlan,
    /// The machine that the plan changes.
    pub target: Arc<Target>,
    /// The grants of the module.
    pub grants: Arc<Grants>,
    /// The machine and account that the plan was made for.
    pub expected: ExpectedTarget,
    /// The lock that keeps other plans from the target until this one has ended.
    pub target_lock: TargetLockSlot,
    /// The log that the commands are added to.
    pub command_log: Arc<CommandLog>,
    /// Set when nobody waits for the answer any more. The plan stops where it can, and is undone.
    pub cancelled: CancellationToken,
    /// The function that is told about each step.
    pub progress: ProgressReporter,
}

impl Execution {
    /// Checks that the target is still the expected one and still locked. A connection that was lost and made again may
    /// lead to another machine, and the lock may be lost with it.
    pub async fn check_target(&self) -> Result<(), Problem> {
        self.expected.check(&self.target).await?;
        self.target_lock.renew(&self.target).await
    }

    /// A short title of a step.
    pub fn title(&self, number: usize) -> String {
        match (&self.plan.steps[number].action, &self.plan.change.steps[number].action) {
            (PreparedAction::Run(command), _) => command.line(),
            (PreparedAction::File(site, _), Action::Remove(_)) => format!("remove {}", site.path),
            (PreparedAction::File(site, _), Action::MakeDirectory(_)) => {
                format!("make directory {}", site.path)
            }
            (PreparedAction::File(site, _), Action::Move(moved)) => {
                format!("move {} to {}", site.path, site.to.as_ref().unwrap_or(&moved.to))
            }
            (PreparedAction::File(site, _), Action::SetAttributes(_)) => {
                format!("set attributes of {}", site.path)
            }
            (PreparedAction::File(site, _), Action::RemoveDirectory(_)) => {
                format!("remove directory {}", site.path)
            }
            (PreparedAction::File(site, _), Action::Write(_) | Action::Run(_) | Action::Signal(_)) => {
                format!("write {}", site.path)
            }
            (PreparedAction::Signal(_), Action::Signal(signal)) => signals::title(signal),
            (PreparedAction::Signal(signal), _) => signal.sentence.clone(),
        }
    }
}
