//! Advice for a change whose effect isn't known. After a lost connection the change is neither repeated nor undone,
//! since it may still be running. After another process ended a command the change is undone, which may not undo
//! everything. The problem says where to look, and how to end the change.

use serde_json::json;

use super::allowed::AllowedCommand;
use super::execute::ExecutionReport;
use super::execution::Execution;
use super::prepare::PreparedAction;
use host_base::problem::{COMMAND_KILLED, Problem};
use host_text::redact::redact;

/// Adds advice to the problem of a plan whose effect isn't known.
pub(super) fn told(
    mut problem: Problem,
    execution: &Execution,
    report: &ExecutionReport,
    id: &str,
) -> Problem {
    let name = execution.target.name();
    if problem.is_uncertain() || problem.code == COMMAND_KILLED {
        let plan = &execution.plan;
        if let Some(question) = &plan.dry_run {
            let line = shown(question);
            problem =
                problem.remedy(format!("Look first: on {name}, `{line}` says what is left to be done of it"));
        }
        let look = match plan.steps.get(report.done).map(|step| &step.action) {
            Some(PreparedAction::Run(command)) => format!(
                "Look first whether `{}` is still running on {name}, and whether it has done its work",
                shown(command)
            ),
            Some(PreparedAction::File(site, _)) => {
                let places = site.places(&plan.change.steps[report.done].action).join(", and in ");
                format!("Look first what is on {name} in {places}")
            }
            Some(PreparedAction::Signal(_)) => format!(
                "Look first which of these processes are still on {name}, and whether one is stopped (state T): {}",
                execution.title(report.done)
            ),
            None => format!("Look first what the state of {name} is"),
        };
        problem = problem.remedy(look);
    }
    let recover = format!(
        "`linux-sysadmin audit recover {id}` then puts the files back that the change has touched on {name}, and lists \
         the commands of its undo; what is as it should be needs nothing"
    );
    problem.remedy(recover).detail("uncertain", json!(true))
}

fn shown(command: &AllowedCommand) -> String {
    redact(&command.line()).into_owned()
}
