//! The tool that runs commands which no other tool covers. The host decides on each command line: one that is known to look,
//! and whose words tell all that it reads, runs at once. A person is asked about every other one, and some are refused.
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

/// The answer of the tool.
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
    let notes = typed_tools::notes(&pipelines);
    // The host decides first: what the policy forbids is refused as that, also where the program isn't there.
    let looked = match pipelines.as_slice() {
        [only] => Some(cx.run_pipeline(only.clone())),
        _ => None,
    };
    let outputs = match looked {
        Some(Err(problem)) if ![NEEDS_PLAN, programs::NOT_FOUND].contains(&problem.code.as_str()) => {
            return Err(problem);
        }
        Some(Ok(outputs)) => Some(outputs),
        Some(Err(_)) | None => {
            programs::all_there(&pipelines, cx)?;
            planned(&pipelines, &notes, cx)?
        }
    };
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
                "Runs commands without a shell. What only looks runs at once; others ask a person",
                command_run,
            )
            .argument_alias("command", "argv")
            .argument_alias("cmd", "argv")
            .argument_alias("cwd", "directory")
            .argument_alias("working_directory", "directory")
            .argument_alias("sudo", "as_root")
            .risk(Risk::Moderate)
            .duration(DurationCategory::LongRunning)
            .first(),
        )
}

linux_sysadmin_sdk::export!(module);
