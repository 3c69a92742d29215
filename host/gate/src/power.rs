//! Follows a target that a plan restarts or turns off. The connection is lost then, which says nothing about the outcome;
//! after a restart, another boot id does.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::execute::ExecutionReport;
use super::execution::Execution;
use super::plan::PowerChange;
use host_base::Output;
use host_base::problem::{Category, Problem};

/// The time between two attempts to reach the target.
const AGAIN: Duration = Duration::from_millis(500);
/// The time that one attempt may take. A machine that is going down may accept a connection, and never answer.
const ATTEMPT: Duration = Duration::from_secs(15);

impl Execution {
    /// Follows the target after the last step, until it is back or off. The machine that the server itself runs on ends
    /// the server, so it isn't followed.
    pub async fn follow(&self, power: PowerChange, report: &mut ExecutionReport) {
        let last = report.done + 1 == self.plan.steps.len();
        if last && report.failure.as_ref().is_some_and(Problem::is_uncertain) {
            // The machine may have gone down before it could report the end of the command.
            report.failure = None;
            report.uncertain = false;
            report.done += 1;
            report.outputs.push(Output::default());
        }
        let (PowerChange::Restart(wait), true, None) = (power, self.target.is_remote(), &report.failure)
        else {
            return;
        };
        (self.progress)(None, &format!("waiting until {} is back", self.target.name()));
        if let Err(problem) = self.is_back(wait).await {
            report.failure = Some(problem);
            report.uncertain = true;
        }
    }

    /// Waits until the same machine answers after another boot.
    async fn is_back(&self, wait: Duration) -> Result<(), Problem> {
        let before = self.expected.facts().boot_id.as_ref();
        let until = Instant::now() + wait;
        let mut answered = false;
        while Instant::now() < until {
            // The connection in use leads to the boot that ends.
            self.target.drop_connection().await;
            let facts = timeout(ATTEMPT, self.target.facts()).await;
            if let Ok(Ok(facts)) = facts {
                answered = true;
                // Where one of the two isn't known, nothing says that the machine has restarted.
                if let (Some(now), Some(before)) = (&facts.boot_id, before)
                    && now != before
                {
                    return self.check_target().await;
                }
            } else {
                answered = false;
            }
            if self.cancelled.is_cancelled() {
                break;
            }
            sleep(AGAIN).await;
        }
        let (name, seconds) = (self.target.name(), wait.as_secs());
        let message = match (self.cancelled.is_cancelled(), answered) {
            (true, _) => format!("{name} was told to restart, and the call was cancelled before it was back"),
            (_, true) => {
                format!("{name} was told to restart, and still runs the same boot after {seconds} s")
            }
            (_, false) => format!("{name} was told to restart, and doesn't answer after {seconds} s"),
        };
        let look = match answered {
            true => {
                "Look for what keeps it from going down: `systemctl list-jobs` and `systemd-inhibit --list`"
            }
            false => "Look at its console; a later call reaches it once it is back",
        };
        Err(Problem::new("HOST_NOT_BACK", Category::Network, message).remedy(look))
    }
}
