//! The checks that every module gets, whatever it does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::hostile;
use super::report::Report;
use super::stage::{Stage, Workshop};
use super::transcripts::RecordedFolder;
use super::{STANDARD, Trial, expectation, grants};
use crate::arguments::schema::declares;
use host_base::Risk;
use host_components::Tool;
use host_components::host_arguments::DRY_RUN;
use host_policy::{Policy, refused_grants};
use host_target::recorded::{Asked, Playback, Recording};

/// The outputs that no author records, each with what the check says.
const PLAYBACKS: [(Playback, &str); 3] = [
    (Playback::Empty, "bears commands that print nothing"),
    (Playback::Failing, "bears commands that fail"),
    (Playback::Huge, "bears more output than the host keeps"),
];

/// Checks what needs no recorded machine: the description, and the module's place beside the others.
pub async fn check_description(report: &mut Report, workshop: &Workshop) {
    let examined = &workshop.examined;
    let reasons = match workshop.examine_again().await {
        Ok(again) if again.description().sha256 == examined.description().sha256 => Vec::new(),
        Ok(_) => vec!["it describes itself differently when it is loaded again".to_owned()],
        Err(refused) => vec![refused.to_string()],
    };
    report.add(STANDARD, None, "the description is stable", reasons);
    let own =
        |conflict: &&host_components::Conflict| !matches!(conflict, host_components::Conflict::Name { .. });
    let conflicts = examined.conflicts.iter().filter(own).map(ToString::to_string).collect();
    report.add(STANDARD, None, "it fits beside the modules that come with the program", conflicts);
}

/// Checks that the policy lets the grants run for the use that they are for.
pub fn check_policy(report: &mut Report, workshop: &Workshop, policy: &Policy) {
    let refused = refused_grants(policy, &workshop.examined.description().requests);
    for grant in &refused {
        let says = format!("the policy lets `{}` run", grant.pattern);
        match grant.is_always {
            true => report.add(STANDARD, None, says, vec![grant.reason.clone()]),
            false => report.skip(
                STANDARD,
                None,
                says,
                &format!("it refuses `{}`: {}", grant.example, grant.reason),
            ),
        }
    }
    if refused.is_empty() {
        report.add(STANDARD, None, "the policy lets every grant run", Vec::new());
    }
}

/// Checks that each recorded command was asked for. One that isn't was recorded for another version of the module.
pub fn check_recordings(report: &mut Report, machine: &RecordedFolder, trials: &[Trial<'_>]) {
    let ran =
        trials.iter().filter(|trial| trial.machine == machine.name).flat_map(|trial| &trial.answer.asked.ran);
    let ran: BTreeSet<&[String]> = ran.map(|ran| ran.argv.as_slice()).collect();
    let mut unasked: Vec<String> = Vec::new();
    for recorded in &machine.recording().commands {
        let line = expectation::line(&recorded.argv);
        if !ran.contains(recorded.argv.as_slice()) && !unasked.contains(&line) {
            unasked.push(line);
        }
    }
    let reasons = unasked.iter().map(|line| format!("no call runs `{line}`")).collect();
    report.add(STANDARD, Some(&machine.name), "every recorded command is run", reasons);
}

/// Checks each tool on the recorded machines, and then the use of the grants.
pub async fn check_tools(
    report: &mut Report,
    workshop: &Workshop,
    stages: &BTreeMap<&str, Stage>,
    machines: &[RecordedFolder],
    trials: &[Trial<'_>],
) {
    let description = workshop.examined.description();
    let mut asked: Vec<Asked> = trials.iter().map(|trial| trial.answer.asked.clone()).collect();
    for tool in &description.tools {
        let succeeded = |trial: &&Trial| trial.call.tool == tool.name && trial.answer.error().is_none();
        let calls: Vec<&Trial> = trials.iter().filter(succeeded).collect();
        let reasons = match calls.is_empty() {
            true => vec!["no recorded call of it succeeds: add one that does".to_owned()],
            false => Vec::new(),
        };
        report.add(STANDARD, None, format!("{} is tried", tool.name), reasons);
        let mut bases: Vec<Base> = calls.iter().map(|trial| Base::of(tool, trial, stages)).collect();
        if bases.is_empty() {
            bases.extend(Base::without_arguments(tool, stages, machines));
        }
        let Some(first) = bases.first() else {
            report.skip(
                STANDARD,
                None,
                format!("{} bears what it isn't used to", tool.name),
                "no call is recorded",
            );
            continue;
        };
        if takes_dry_run(tool) {
            let mut reasons = Vec::new();
            for base in &bases {
                reasons.extend(base.dry_run_faults(tool, &mut asked).await);
            }
            report.add(STANDARD, None, format!("{} changes nothing in a dry run", tool.name), reasons);
        }
        let has_aliases = !tool.aliases.tool.is_empty() || !tool.aliases.arguments.is_empty();
        if has_aliases && !calls.is_empty() {
            let reasons = first.alias_faults(tool).await;
            report.add(STANDARD, None, format!("{} answers to its older names", tool.name), reasons);
        }
        let mut reasons = Vec::new();
        for call in hostile::calls(&tool.input_schema, &first.arguments) {
            let answer = first.call(tool, call.arguments.clone(), Playback::AsRecorded).await;
            reasons.extend(call.fault(&answer));
        }
        report.add(STANDARD, None, format!("{} refuses hostile arguments", tool.name), reasons);
        for (playback, says) in PLAYBACKS {
            let mut reasons = Vec::new();
            for base in &bases {
                let answer = base.call(tool, base.arguments.clone(), playback).await;
                reasons.extend(hostile::fault(&answer).map(|fault| format!("{}: {fault}", base.name)));
            }
            report.add(STANDARD, None, format!("{} {says}", tool.name), reasons);
        }
    }
    for grant in grants::used(&description.requests, &asked) {
        report.add(STANDARD, None, format!("the grant {} is used", grant.request), grant.reasons);
    }
}

/// Whether `dry_run` is the host's own argument of the tool.
fn takes_dry_run(tool: &Tool) -> bool {
    tool.risk > Risk::ReadOnly && !declares(&tool.input_schema, DRY_RUN)
}

/// A call that others are made of. It is a dry run where the tool changes something.
struct Base<'a> {
    name: String,
    stage: &'a Stage,
    recording: Recording,
    arguments: Map<String, Value>,
}

impl<'a> Base<'a> {
    fn of(tool: &Tool, trial: &Trial<'_>, stages: &'a BTreeMap<&str, Stage>) -> Self {
        Self {
            name: format!("{} on {}", trial.call.name(), trial.machine),
            stage: &stages[trial.machine],
            recording: trial.recording.clone(),
            arguments: dry(tool, trial.call.arguments.clone()),
        }
    }

    /// The call of a tool without any argument, where the tool needs none.
    fn without_arguments(
        tool: &Tool,
        stages: &'a BTreeMap<&str, Stage>,
        machines: &[RecordedFolder],
    ) -> Option<Self> {
        let needed = tool.input_schema.get("required").and_then(Value::as_array);
        if needed.is_some_and(|needed| !needed.is_empty()) {
            return None;
        }
        let machine = machines.iter().find(|machine| stages.contains_key(machine.name.as_str()))?;
        Some(Self {
            name: format!("{} on {}", tool.name, machine.name),
            stage: &stages[machine.name.as_str()],
            recording: machine.recording().clone(),
            arguments: dry(tool, Map::new()),
        })
    }

    async fn call(
        &self,
        tool: &Tool,
        arguments: Map<String, Value>,
        playback: Playback,
    ) -> super::stage::TriedAnswer {
        self.stage.call(&tool.name, arguments, self.recording.clone(), playback).await
    }

    /// The aliases by which the call fails.
    async fn alias_faults(&self, tool: &Tool) -> Vec<String> {
        let by_tool = tool.aliases.tool.iter();
        let mut tried: Vec<(String, &str, Map<String, Value>)> =
            by_tool.map(|alias| (alias.clone(), alias.as_str(), self.arguments.clone())).collect();
        for (alias, name) in &tool.aliases.arguments {
            let mut arguments = self.arguments.clone();
            if let Some(value) = arguments.remove(name) {
                arguments.insert(alias.clone(), value);
                tried.push((format!("{alias} for {name}"), tool.name.as_str(), arguments));
            }
        }
        let mut faults = Vec::new();
        for (alias, called, arguments) in tried {
            let answer =
                self.stage.call(called, arguments, self.recording.clone(), Playback::AsRecorded).await;
            if answer.error().is_some() {
                faults.push(format!("{alias}: {}", answer.message()));
            }
        }
        faults
    }

    /// What a dry run did wrong.
    async fn dry_run_faults(&self, tool: &Tool, asked: &mut Vec<Asked>) -> Option<String> {
        let answer = self.call(tool, self.arguments.clone(), Playback::AsRecorded).await;
        asked.push(answer.asked.clone());
        let changed = answer.asked.ran.iter().find(|ran| ran.changes);
        match (changed, answer.error()) {
            (Some(ran), _) => Some(format!("{}: it ran `{}`", self.name, expectation::line(&ran.argv))),
            (None, Some(_)) => Some(format!("{}: {}", self.name, answer.message())),
            (None, None) => None,
        }
    }
}

fn dry(tool: &Tool, mut arguments: Map<String, Value>) -> Map<String, Value> {
    if takes_dry_run(tool) {
        arguments.insert(DRY_RUN.to_owned(), Value::Bool(true));
    }
    arguments
}
