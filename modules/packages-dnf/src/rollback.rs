//! The request that takes a package back where the caller names no version: undo the latest transaction with the package.
//!
//! dnf simulates the undo each time, because it doesn't always do what one expects. Where later transactions depend on
//! the undone one, dnf leaves out the operations that it can't do, and succeeds.

use linux_sysadmin_sdk::Category;
use linux_sysadmin_sdk::packages::Request;
use linux_sysadmin_sdk::prelude::*;

use crate::{history, repository, simulation};

pub fn rollback_request(name: &str, current: &str, cx: &Context) -> Result<Request> {
    let past = history::history(Some(name), cx)?;
    let operations = |past: &linux_sysadmin_sdk::packages::Transaction| {
        past.operations.iter().find(|operation| operation.name == name).cloned()
    };
    let latest = past.iter().filter(|past| past.error.is_none()).find_map(|past| {
        let operation = operations(past)?;
        Some((past.id.clone()?, operation))
    });
    let can_be_had = || {
        let versions: Vec<_> = match repository::versions(name, cx) {
            Ok(versions) => {
                versions.into_iter().map(|found| found.version).filter(|found| found != current).collect()
            }
            Err(_) => Vec::new(),
        };
        match versions.as_slice() {
            [] => "no other version can be had from the repositories".to_owned(),
            versions => format!("other versions that can be had: {}", versions.join(", ")),
        }
    };
    let refused = |code: &str, category: Category, why: String| {
        let problem = Problem::new(code, category, format!("{why}; {}", can_be_had()));
        Err(problem.remedy("Name the version to go back to: `pkg_rollback` with version"))
    };
    let Some((id, operation)) = latest else {
        let why = format!("dnf's history doesn't say what {name} was before {current}");
        return refused("NO_TRANSACTION", Category::State, why);
    };
    if operation.to != current {
        let why = format!(
            "{name} {current} isn't what dnf's latest transaction with it, {id}, has left: {}",
            operation.versions()
        );
        return refused("NO_TRANSACTION", Category::State, why);
    }
    let request = Request::Undo(id.clone());
    match simulation::simulate(&request, cx) {
        Ok(simulated) if simulated.operations.iter().any(|undone| undone.name == name) => Ok(request),
        Ok(_) => {
            let why = format!("undoing transaction {id} wouldn't change {name}");
            refused("CANNOT_BE_UNDONE", Category::State, why)
        }
        // The transaction can't be undone because its versions are missing. The available versions help the caller.
        Err(problem) if problem.code == "VERSION_NOT_AVAILABLE" => {
            let why = format!("transaction {id} can't be undone, {}", problem.message);
            refused("VERSION_NOT_AVAILABLE", Category::NotFound, why)
        }
        Err(problem) => Err(problem),
    }
}
