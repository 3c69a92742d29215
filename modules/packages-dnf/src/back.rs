//! Where a package goes back to when nobody says which version: the latest transaction that it took part in is undone.
//!
//! What that means is asked of dnf each time, since its undo isn't always what one expects: of a transaction that later
//! ones have built upon it leaves out what it can't do, and succeeds.

use linux_sysadmin_sdk::Category;
use linux_sysadmin_sdk::packages::Request;
use linux_sysadmin_sdk::prelude::*;

use crate::{history, repository, simulation};

pub fn back(name: &str, current: &str, cx: &Context) -> Result<Request> {
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
        // Only the versions themselves are missing: which others there are is what helps.
        Err(problem) if problem.code == "VERSION_NOT_AVAILABLE" => {
            let why = format!("transaction {id} can't be undone, {}", problem.message);
            refused("VERSION_NOT_AVAILABLE", Category::NotFound, why)
        }
        Err(problem) => Err(problem),
    }
}
