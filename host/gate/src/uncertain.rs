//! A change of which nobody knows what became. Where the connection went it is neither repeated nor undone, since it may
//! still be running; where somebody else ended a command it is undone, and that may not be all. Whoever asked for it is
//! told where to look, and how to end it then.

use serde_json::json;

use super::allowed::Allowed;
use super::execute::{KILLED, Ran};
use super::execution::Execution;
use super::prepare::Doing;
use host_base::problem::Problem;
use host_text::redact::redact;

/// The problem of a plan after which not everything is known, with what there is to do.
pub(super) fn told(mut problem: Problem, execution: &Execution, ran: &Ran, id: &str) -> Problem {
    let name = execution.target.name();
    if problem.is_uncertain() || problem.code == KILLED {
        let plan = &execution.plan;
        if let Some(question) = &plan.dry_run {
            let line = shown(question);
            problem =
                problem.remedy(format!("Look first: on {name}, `{line}` says what is left to be done of it"));
        }
        let look = match plan.steps.get(ran.done).map(|step| &step.doing) {
            Some(Doing::Run(command)) => format!(
                "Look first whether `{}` is still running on {name}, and whether it has done its work",
                shown(command)
            ),
            Some(Doing::File(site, _)) => {
                format!("Look first what is on {name} in {}, and in {}", site.path, site.staging)
            }
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

fn shown(command: &Allowed) -> String {
    redact(&command.line()).into_owned()
}
