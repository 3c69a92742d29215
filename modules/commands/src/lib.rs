//! Commands that no other tool covers. The host's policy decides on each command line: one that is known to look runs at
//! once, a person is asked about every other one, and some are refused.
#![forbid(unsafe_code)]

mod output;
mod programs;
mod request;
mod typed_tools;

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::{AnyProgramGrant, DurationCategory, Pipeline};

use output::{CommandOutput, shown};
use request::Request;

/// The host's code of a command that may run only as a step of a plan.
const NEEDS_PLAN: &str = "NEEDS_PLAN";

/// The answer.
#[derive(Serialize)]
struct Ran {
    /// One output for each command, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    commands: Vec<CommandOutput>,
    /// True where nothing ran, because it was a dry run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    would_run: bool,
}

fn command_run(request: Request, cx: &Context) -> Result<Noted<Ran>> {
    let pipelines = request.pipelines()?;
    programs::all_there(&pipelines, cx)?;
    let notes = typed_tools::notes(&pipelines);
    let outputs = match pipelines.as_slice() {
        [only] => match cx.run_pipeline(only.clone()) {
            Err(problem) if problem.code == NEEDS_PLAN => planned(&pipelines, &notes, cx),
            looked => looked.map(Some),
        },
        _ => planned(&pipelines, &notes, cx),
    };
    let outputs = outputs?;
    let would_run = outputs.is_none();
    let commands = shown(&pipelines, outputs.unwrap_or_default());
    Ok(Noted { data: Ran { commands, would_run }, notes })
}

/// Hands the commands to the host as one plan, with the notes as warnings, which are read before the answer. The result is none
/// after a dry run.
fn planned(pipelines: &[Pipeline], notes: &[String], cx: &Context) -> Result<Option<Vec<Output>>> {
    let lines: Vec<String> = pipelines.iter().map(request::line).collect();
    let change = Change::new(format!("Run {}", lines.join(", then ")));
    let mut change = notes.iter().cloned().fold(change, Change::warning);
    for pipeline in pipelines {
        // What follows a command that failed wasn't meant to run after that.
        let step = Step::run_pipeline(pipeline.clone());
        change = change.step(if pipelines.len() > 1 { step.success(&[0]) } else { step });
    }
    let applied = cx.apply(change)?;
    Ok((!applied.dry_run).then_some(applied.outputs))
}

/// The module.
pub fn module() -> Module {
    let reason = "to run what no other tool covers";
    Module::new("commands", env!("CARGO_PKG_VERSION"), "commands", "Any command, where no other tool fits")
        .license(env!("CARGO_PKG_LICENSE"))
        .any_program(AnyProgramGrant::new(reason).as_root())
        .any_program(AnyProgramGrant::new(reason).as_user("*"))
        .paths(programs::DIRECTORIES.map(|directory| {
            PathGrant::read(
                &format!("{directory}/**"),
                "whether a program is there, and names like a misspelt one",
            )
        }))
        .tool(
            Tool::new(
                "command_run",
                "Runs commands without a shell. One that only looks runs at once; others ask a person",
                command_run,
            )
            .risk(Risk::Moderate)
            .duration(DurationCategory::LongRunning),
        )
}

linux_sysadmin_sdk::export!(module);
