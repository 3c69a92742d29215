//! What a plan is executed with: by its steps, by its undo, and by the guard that lies on the target meanwhile.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::executed::Executed;
use super::meant::Meant;
use super::plan::Action;
use super::prepare::{Doing, Plan};
use super::turn::Held;
use host_base::problem::Problem;
use host_capability::Grants;
use host_target::Target;

/// Told what runs.
pub type Telling = Arc<dyn Fn(Option<f32>, &str) + Send + Sync>;

/// What a plan is executed with.
pub struct Execution {
    /// What runs.
    pub plan: Plan,
    /// Where.
    pub target: Arc<Target>,
    /// What the module may do.
    pub grants: Arc<Grants>,
    /// The machine that it is for.
    pub meant: Meant,
    /// The target is this plan's alone until it is over.
    pub turn: Held,
    /// Where commands are noted.
    pub executed: Arc<Executed>,
    /// Nobody waits for the answer any more: what can be stopped is, and what was done is undone.
    pub cancelled: CancellationToken,
    /// Told what runs.
    pub telling: Telling,
}

impl Execution {
    /// A problem where the target isn't the one that is meant any more, or isn't this plan's alone: a connection that was
    /// lost may have come back to either.
    pub async fn still(&self) -> Result<(), Problem> {
        self.meant.answers(&self.target).await?;
        self.turn.keep(&self.target).await
    }

    /// A step in a few words.
    pub fn title(&self, number: usize) -> String {
        match (&self.plan.steps[number].doing, &self.plan.change.steps[number].action) {
            (Doing::Run(command), _) => command.line(),
            (Doing::File(site, _), Action::Remove(_)) => format!("remove {}", site.path),
            (Doing::File(site, _), Action::MakeDirectory(_)) => format!("make directory {}", site.path),
            (Doing::File(site, _), _) => format!("write {}", site.path),
        }
    }
}
