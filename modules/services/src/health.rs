//! A profile's health checks, as what they said makes of them.

use linux_sysadmin_sdk::knowledge::{self, HealthCheck, Profile};
use linux_sysadmin_sdk::prelude::*;

use crate::asked::{Answers, Asked, Questions};
use crate::evidence;

/// How many are well, and what there is to say of the others.
#[derive(Debug, Default, Serialize, PartialEq, Eq)]
pub(crate) struct Health {
    well: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) sick: Vec<Sick>,
    /// They can't tell here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown: Vec<Unknown>,
}

#[derive(Debug, Serialize, PartialEq, Eq)]
pub(crate) struct Sick {
    check: String,
    means: String,
    severity: &'static str,
    /// The line or two that say so.
    evidence: String,
}

#[derive(Debug, Serialize, PartialEq, Eq)]
pub(crate) struct Unknown {
    check: String,
    why: String,
}

/// As a profile's.
pub(crate) fn severity(severity: knowledge::Severity) -> &'static str {
    match severity {
        knowledge::Severity::Warning => "warning",
        knowledge::Severity::Error => "error",
        knowledge::Severity::Critical => "critical",
    }
}

/// What the checks want to know.
pub(crate) fn ask<'a>(profile: &'a Profile, questions: &mut Questions) -> Vec<(&'a HealthCheck, Asked)> {
    let ask = |check: &'a HealthCheck| (check, questions.ask(knowledge::command(&check.argv, check.root)));
    profile.health.iter().map(ask).collect()
}

/// None where there was nothing to check.
pub(crate) fn judge(asked: &[(&HealthCheck, Asked)], answers: &Answers) -> Option<Health> {
    let mut health = Health::default();
    for (check, asked) in asked {
        match verdict(check, answers.of(*asked)) {
            Ok(None) => health.well += 1,
            Ok(Some(sick)) => health.sick.push(sick),
            Err(why) => health.unknown.push(Unknown { check: check.id.clone(), why }),
        }
    }
    (!asked.is_empty()).then_some(health)
}

/// Why it can't tell is an error here: a program that isn't there, or rights that aren't.
fn verdict(check: &HealthCheck, answer: &Result<Output>) -> std::result::Result<Option<Sick>, String> {
    let output = answer.as_ref().map_err(evidence::why)?;
    match check.judge(output).map_err(|problem| evidence::why(&problem))? {
        knowledge::Health::Well => Ok(None),
        knowledge::Health::Unknown => Err(evidence::summary(output)),
        knowledge::Health::Sick if check.root && evidence::is_limited(&check.argv, output) => {
            Err(format!("it seems to need root's rights: {}", evidence::summary(output)))
        }
        knowledge::Health::Sick => Ok(Some(Sick {
            check: check.id.clone(),
            means: check.sick.clone(),
            severity: severity(check.severity),
            evidence: evidence::against(&check.expect, output),
        })),
    }
}
