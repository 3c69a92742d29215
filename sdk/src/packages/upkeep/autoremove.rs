//! `pkg_autoremove`: removes packages that were installed for others which don't need them any more. The manager says which
//! they are, and the plan removes exactly these. It names them, and a name may stand for several packages: one for each
//! architecture, or several versions of a kernel. Where this would remove a package that is needed, nothing is removed.

use serde_json::json;

use super::Upkeep;
use crate::packages::Backend;
use crate::packages::package_change::{Answer, PackageChange};
use crate::packages::types::{Operation, Request, Simulated};
use crate::{Category, Context, NoArgs, Noted, Problem, Result, text};

pub(super) fn autoremove<B: Backend>(
    backend: &B,
    upkeep: &dyn Upkeep,
    _: NoArgs,
    cx: &Context,
) -> Result<Answer> {
    let names = upkeep.unneeded(cx)?;
    if names.is_empty() {
        return Ok(Noted { data: json!({}), notes: vec!["every package is needed".to_owned()] });
    }
    let before = backend.installed(cx)?;
    let request = Request::Remove(once(&names));
    let change = PackageChange { backend, cx, request, before, notes: Vec::new() };
    change.apply_where(|simulated| check_nothing_needed(&names, simulated))
}

fn once(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort();
    names.dedup();
    names
}

/// Refuses a simulation that removes more packages of a name than are unneeded.
fn check_nothing_needed(unneeded: &[String], simulated: &Simulated) -> Result<()> {
    let is_more = |operation: &&Operation| {
        let all = simulated.operations.iter().filter(|other| other.name == operation.name).count();
        all > unneeded.iter().filter(|name| **name == operation.name).count()
    };
    let more: Vec<_> = simulated.operations.iter().filter(is_more).map(Operation::versions).collect();
    if more.is_empty() {
        return Ok(());
    }
    let message = format!(
        "nothing is removed: these names stand for packages that are needed as well, or take them along: {}",
        text::list(&more, 30)
    );
    let problem = Problem::new("PACKAGES_NEEDED", Category::Dependency, message);
    Err(problem.remedy("`pkg_remove` shows for one of the others what goes with it"))
}
