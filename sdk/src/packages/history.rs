//! `pkg_history`: the transactions of the package manager.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::types::{Operation, Transaction};
use super::{Backend, not_found};
use crate::{Context, Listing, Result};

/// The number of operations that are shown of a transaction.
const MOST_OPERATIONS: usize = 10;

/// The number of characters that are shown of a command line.
const MOST_COMMAND: usize = 200;

#[derive(Deserialize, JsonSchema)]
pub(super) struct HistoryArgs {
    /// Only this package, with its versions
    package: Option<String>,
}

/// A transaction in the list of `pkg_history`.
#[derive(Serialize)]
pub(super) struct Past {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// The operations, as `upgrade lab-hello 1.0 -> 2.0`.
    operations: Vec<String>,
    /// The number of operations that aren't shown.
    #[serde(skip_serializing_if = "is_zero")]
    more: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

pub(super) fn history<B: Backend>(backend: &B, args: HistoryArgs, cx: &Context) -> Result<Listing<Past>> {
    let Some(package) = args.package else {
        return Ok(backend
            .history(None, cx)?
            .into_iter()
            .map(|past| past.shown(None))
            .collect::<Vec<_>>()
            .into());
    };
    backend.check_name(&package)?;
    let of_it = |past: &Transaction| past.operations.iter().any(|operation| operation.name == package);
    let mut past = backend.history(Some(&package), cx)?;
    past.retain(of_it);
    let versions = backend.versions(&package, cx)?;
    if past.is_empty() && versions.is_empty() {
        let installed = backend.installed(cx)?.into_iter().any(|known| known.name == package);
        if !installed {
            return Err(not_found(backend, &[package], cx));
        }
    }
    let can_be_had = match versions.as_slice() {
        [] => format!("the repositories have no version of {package}"),
        versions => {
            let versions: Vec<_> = versions.iter().map(|found| found.version.as_str()).collect();
            format!("available versions of {package}: {}", versions.join(", "))
        }
    };
    let items = past.into_iter().map(|past| past.shown(Some(&package))).collect();
    Ok(Listing { items, total: None, notes: vec![can_be_had] })
}

impl Transaction {
    /// The item of the list: only the operations of `package`, where one is named.
    fn shown(self, package: Option<&str>) -> Past {
        let all = self.operations.len();
        let is_meant = |operation: &&Operation| package.is_none_or(|package| operation.name == package);
        let line = |operation: &Operation| format!("{} {}", operation.verb.name(), operation.versions());
        let operations: Vec<_> =
            self.operations.iter().filter(is_meant).take(MOST_OPERATIONS).map(line).collect();
        Past {
            id: self.id,
            at: self.at,
            by: self.by,
            command: self.command.map(|command| match command.char_indices().nth(MOST_COMMAND) {
                Some((end, _)) => format!("{}…", &command[..end]),
                None => command,
            }),
            more: all - operations.len(),
            operations,
            error: self.error,
        }
    }
}
