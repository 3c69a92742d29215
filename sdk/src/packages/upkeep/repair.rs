//! `pkg_repair`: finds out what is broken in the package database, and mends it by the manager's own commands.

use serde_json::{Value, json};

use super::Upkeep;
use crate::packages::Backend;
use crate::packages::outcome::difference;
use crate::packages::package_change::{Answer, explained};
use crate::packages::report::{by_verb, changes_text, dry_run_answer, past_participle};
use crate::packages::risk::assess;
use crate::packages::types::{Operation, Request, Verb};
use crate::{Category, Change, Context, Lock, NoArgs, Noted, Problem, Result, text};

pub(super) fn repair<B: Backend>(
    backend: &B,
    upkeep: &dyn Upkeep,
    _: NoArgs,
    cx: &Context,
) -> Result<Answer> {
    let found = upkeep.diagnose(cx)?;
    if found.findings.is_empty() {
        return Ok(Noted { data: json!({"nothing_to_repair": true}), notes: found.notes });
    }
    if found.steps.is_empty() {
        let broken = found.findings.join("; ");
        return Err(found
            .problem
            .unwrap_or_else(|| Problem::new("PACKAGES_INTERRUPTED", Category::State, broken)));
    }
    // A database that is damaged can't be read, and is repaired all the same.
    let before = backend.installed(cx).unwrap_or_default();
    let simulated = &found.simulated;
    let assessment = assess(&Request::UpdateAll, simulated, &before, &cx.distro().kernel);
    let mut change = found
        .steps
        .into_iter()
        .fold(Change::new(format!("Repair: {}", found.findings.join("; "))), Change::step)
        .lock(Lock::PackageDatabase);
    change = assessment.risk.into_iter().fold(change, Change::risk);
    change = assessment.warnings.into_iter().fold(change, Change::warning);
    change = found.dry_run.into_iter().fold(change, Change::dry_run);
    match cx.apply(change) {
        Ok(applied) if applied.dry_run => {
            let mut data = dry_run_answer(&Request::UpdateAll, simulated);
            data["found"] = json!(found.findings);
            Ok(Noted { data, notes: found.notes })
        }
        Ok(_) => {
            let after = backend.installed(cx)?;
            let left = upkeep.diagnose(cx)?.findings;
            let done = difference(&before, &after, simulated);
            if !left.is_empty() {
                let message = format!(
                    "the repair has run, but this is left: {}{}",
                    left.join("; "),
                    changes_text(&done)
                );
                return Err(Problem::new("TRANSACTION_INCOMPLETE", Category::Other, message));
            }
            let is_meant =
                |gone: &&Operation| simulated.operations.iter().any(|meant| meant.name == gone.name);
            let lost = done.iter().filter(|done| done.is_removal() && !is_meant(done));
            let lost: Vec<_> = lost.map(Operation::versions).collect();
            if !lost.is_empty() {
                let lost = format!(
                    "the repair has run, but the package database has lost these: {}",
                    text::list(&lost, 30)
                );
                let message = [&[lost], &found.notes[..]].concat().join("; ");
                return Err(Problem::new("TRANSACTION_INCOMPLETE", Category::Other, message));
            }
            // A package that was only unpacked keeps its version: its state is what has changed.
            let mut data = by_verb(&done, |verb| match verb {
                Verb::Reinstall => "configured",
                verb => past_participle(verb),
            });
            data.insert("repaired".to_owned(), json!(found.findings));
            Ok(Noted { data: Value::Object(data), notes: found.notes })
        }
        Err(failure) => {
            let uncertain = failure.uncertain;
            let mut problem = explained(backend, failure, cx);
            if !uncertain && let Ok(after) = backend.installed(cx) {
                problem.message += &changes_text(&difference(&before, &after, simulated));
            }
            Err(problem)
        }
    }
}
