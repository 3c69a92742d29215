//! Programs of a module's own. An operator has decided about their contents, so the host holds each file against these
//! before it is used.

use std::sync::Arc;

use host_base::problem::{Category, Problem};
use host_base::{Privilege, sha256};
use host_capability::{Access, Grants};
use host_target::{PathCheck, ReadRequest, Target};

/// The size in bytes of the largest program.
const LARGEST: u64 = 1 << 20;

/// Checks that the file at the path has the granted contents, where the module has a program of its own there. Root's own
/// directories lead to it, or the look at it fails.
pub async fn check_own_program(target: &Target, grants: &Grants, path: &str) -> Result<(), Problem> {
    let Some(granted) = grants.own_program_at(path) else { return Ok(()) };
    target.safe_for(path, "root").await?;
    let only: Arc<PathCheck> = {
        let only = path.to_owned();
        Arc::new(move |_, real| if real == only { Ok(()) } else { Err(other(&only)) })
    };
    let access = Access { privilege: Privilege::Caller, verbs: Vec::new() };
    let request = ReadRequest { path: path.to_owned(), offset: 0, max_bytes: LARGEST };
    match target.read_all(vec![request], &access, only).await.pop() {
        Some(Ok(contents)) if sha256::of(&contents) == granted => Ok(()),
        Some(Err(problem)) => Err(problem),
        _ => Err(other(path)),
    }
}

fn other(path: &str) -> Problem {
    let message = format!("{path} isn't the program that the module brings: its contents are others");
    Problem::new("OTHER_PROGRAM", Category::State, message)
        .remedy("A tool of the module that needs the program installs it anew; compare it first if nobody is known to have changed it")
}
