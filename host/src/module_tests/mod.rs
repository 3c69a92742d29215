//! Tests of a module by its real component, in this host: its grants, the policy, schemas, aliases, limits and the gate are
//! those of a server. Only the target is none: it consists of recordings of real machines.
//!
//! [`transcripts`] reads the recordings, [`stage`] is the host around them. [`standard`] has the checks that every module
//! gets, and [`domains`] those of modules for one subject.

mod domains;
mod expectation;
mod grants;
mod hostile;
pub mod report;
mod stage;
mod standard;
pub mod transcripts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::config::Config;
use host_components::ModuleInstaller;
use host_policy::Policy;
use host_target::recorded::{Playback, Recording};
use report::Report;
use stage::{Stage, TriedAnswer, Workshop};
use transcripts::{RecordedFolder, TriedCall};

/// The suite of the checks that every module gets.
const STANDARD: &str = "standard";
/// The suite of the recorded calls.
const CALLS: &str = "calls";

/// The reason why nothing is tried where nothing is recorded.
const NOTHING_RECORDED: &str = "there are no transcripts: --transcripts names a folder of them, and `linux-sysadmin modules record` makes one";

/// A recorded call that was tried.
struct Trial<'a> {
    /// The name of the machine.
    machine: &'a str,
    call: &'a TriedCall,
    recording: Recording,
    answer: TriedAnswer,
}

/// Tests a component on the machines of a folder of transcripts. `accounts` is the account's own modules, which stay as they
/// are.
pub async fn run(
    file: &Path,
    transcripts: Option<&Path>,
    host_modules: Option<PathBuf>,
    operators: &Config,
    accounts: &ModuleInstaller,
) -> anyhow::Result<Report> {
    // Transcripts that can't be read are told before the component is compiled, which may take long.
    let machines = transcripts.map(transcripts::read).transpose()?.unwrap_or_default();
    let policy = Policy::load(&operators.policy)?;
    let mut report = Report::default();
    let workshop = match Workshop::new(file, host_modules, operators).await? {
        Ok(workshop) => workshop,
        Err(refused) => {
            report.add(STANDARD, None, "the component loads", vec![refused.to_string()]);
            return Ok(report);
        }
    };
    report.add(STANDARD, None, "the component loads", Vec::new());
    standard::check_policy(&mut report, &workshop, policy.as_deref().unwrap_or_else(|| Policy::builtin()));
    let tested = check(&mut report, &workshop, &machines).await;
    workshop.close(accounts);
    tested.map(|()| report)
}

async fn check(report: &mut Report, workshop: &Workshop, machines: &[RecordedFolder]) -> anyhow::Result<()> {
    standard::check_description(report, workshop).await;
    if machines.is_empty() {
        report.skip(STANDARD, None, "its tools are tried", NOTHING_RECORDED);
        return Ok(());
    }
    let description = workshop.examined.description();
    let mut stages: BTreeMap<&str, Stage> = BTreeMap::new();
    for machine in machines {
        let stage = workshop.stage(machine)?;
        let unused = description.refuses(&machine.facts);
        let unused = match unused {
            Some(reason) => Some(reason),
            None => stage.unused(&description.name).await,
        };
        let serves = unused.is_none();
        report.add(
            STANDARD,
            Some(&machine.name),
            "the module serves the machine",
            unused.into_iter().collect(),
        );
        match serves {
            true => drop(stages.insert(&machine.name, stage)),
            false => stage.close().await,
        }
    }
    let mut trials = Vec::new();
    for machine in machines {
        let Some(stage) = stages.get(machine.name.as_str()) else { continue };
        for (call, recording) in machine.calls() {
            let answer =
                stage.call(&call.tool, call.arguments.clone(), recording.clone(), Playback::AsRecorded).await;
            report.add(CALLS, Some(&machine.name), call.name(), expectation::differences(call, &answer));
            trials.push(Trial { machine: &machine.name, call, recording, answer });
        }
        standard::check_recordings(report, machine, &trials);
    }
    if !stages.is_empty() {
        standard::check_tools(report, workshop, &stages, machines, &trials).await;
        domains::check(report, description, &trials)?;
    }
    for stage in stages.into_values() {
        stage.close().await;
    }
    Ok(())
}
