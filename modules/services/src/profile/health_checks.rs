//! The health checks of a profile, and the verdict on their outputs.

use linux_sysadmin_sdk::knowledge::{self, HealthCheck, Profile, evidence_lines};
use linux_sysadmin_sdk::prelude::*;

use super::command_batch::{CommandBatch, CommandIndex, Outputs};
use super::recent_errors::without_numbers;

/// The number of checks that found the service well, and the verdicts of the others.
#[derive(Debug, Default, Serialize, PartialEq, Eq)]
pub(crate) struct Health {
    well: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) sick: Vec<Sick>,
    /// Checks that can't tell on this machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown: Vec<Unknown>,
}

#[derive(Debug, Serialize, PartialEq, Eq)]
pub(crate) struct Sick {
    check: String,
    means: String,
    severity: &'static str,
    /// The lines of the output that say so.
    evidence: String,
}

impl Health {
    /// Whether the evidence of a check has a line that differs from this one in numbers at most.
    pub(crate) fn says(&self, line: &str) -> bool {
        let line = without_numbers(line);
        self.sick.iter().flat_map(|sick| sick.evidence.lines()).any(|own| without_numbers(own) == line)
    }
}

#[derive(Debug, Serialize, PartialEq, Eq)]
pub(crate) struct Unknown {
    check: String,
    why: String,
}

/// Adds the commands of a profile's checks to a batch.
pub(crate) fn add<'a>(
    profile: &'a Profile,
    batch: &mut CommandBatch,
) -> Vec<(&'a HealthCheck, CommandIndex)> {
    let add = |check: &'a HealthCheck| (check, batch.add(knowledge::command(&check.argv, check.root)));
    profile.health.iter().map(add).collect()
}

/// The verdict on all checks. None where there are no checks.
pub(crate) fn judge(checks: &[(&HealthCheck, CommandIndex)], outputs: &Outputs) -> Option<Health> {
    let mut health = Health::default();
    for (check, command) in checks {
        match verdict(check, outputs.of(*command)) {
            Ok(None) => health.well += 1,
            Ok(Some(sick)) => health.sick.push(sick),
            Err(why) => health.unknown.push(Unknown { check: check.id.clone(), why }),
        }
    }
    (!checks.is_empty()).then_some(health)
}

/// The verdict of one check. The error says why it can't tell, such as a missing program or missing rights.
fn verdict(check: &HealthCheck, answer: &Result<Output>) -> std::result::Result<Option<Sick>, String> {
    let output = answer.as_ref().map_err(evidence_lines::why)?;
    match check.judge(output).map_err(|problem| evidence_lines::why(&problem))? {
        knowledge::Health::Well => Ok(None),
        knowledge::Health::Unknown => Err(evidence_lines::summary(output)),
        knowledge::Health::Sick if check.root && evidence_lines::is_limited(&check.argv, output) => {
            Err(format!("it seems to need root's rights: {}", evidence_lines::summary(output)))
        }
        knowledge::Health::Sick => Ok(Some(Sick {
            check: check.id.clone(),
            means: check.sick.clone(),
            severity: check.severity.name(),
            evidence: evidence_lines::against(&check.argv, &check.expect, output),
        })),
    }
}
