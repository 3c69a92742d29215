//! Remediation steps for problems that have none of their own. Modules say which of their tools help with which errors.
//! `remediation.yaml` has further steps by the problem's code, or else by its category, and by the target's family of
//! distributions.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use host_base::account;
use host_base::problem::{Category, Problem};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    codes: BTreeMap<String, Steps>,
    categories: BTreeMap<Category, Steps>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Steps {
    Everywhere(Vec<String>),
    ByFamily(BTreeMap<Family, Vec<String>>),
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Family {
    Debian,
    Rhel,
    Default,
}

impl Steps {
    fn of(&self, family: &str) -> &[String] {
        let all = match self {
            Self::Everywhere(steps) => return steps,
            Self::ByFamily(all) => all,
        };
        let own = match family {
            "debian" => all.get(&Family::Debian),
            "rhel" => all.get(&Family::Rhel),
            _ => None,
        };
        own.or_else(|| all.get(&Family::Default)).map_or(&[], Vec::as_slice)
    }
}

/// A table that can't be read counts as empty.
static TABLE: LazyLock<Table> =
    LazyLock::new(|| serde_yaml::from_str(include_str!("remediation.yaml")).unwrap_or_default());

/// The names that fill the holes of the steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemediationContext<'a> {
    /// The target's family of distributions; empty where it is not known.
    pub family: &'a str,
    /// `{host}`: the target's name.
    pub host: &'a str,
    /// `{module}`: the module whose tool was called.
    pub module: Option<&'a str>,
    /// `{user}`: the account that the target is reached as.
    pub user: Option<&'a str>,
}

impl RemediationContext<'_> {
    /// The step with its holes filled; `None` where it names something that is not known.
    fn fill(&self, step: &str) -> Option<String> {
        let mut filled = String::new();
        let mut rest = step;
        while let Some((before, behind)) = rest.split_once('{') {
            let (hole, after) = behind.split_once('}')?;
            filled.push_str(before);
            filled.push_str(match hole {
                "host" => self.host,
                "module" => self.module?,
                // The target chose this name, and somebody may copy the command line.
                "user" => self.user.filter(|name| account::is_name(name))?,
                _ => return None,
            });
            rest = after;
        }
        Some(filled + rest)
    }
}

/// Adds remediation steps to a problem that has none of its own. `calls` gives the steps that name the tools which help with
/// errors of this code. Where there are some, nobody has to type a command on the target.
pub fn attach(
    mut problem: Problem,
    context: &RemediationContext,
    calls: impl FnOnce(&str) -> Vec<String>,
) -> Problem {
    if problem.remediation.is_empty() {
        let calls = calls(&problem.code);
        let steps = TABLE.codes.get(&problem.code).or_else(|| TABLE.categories.get(&problem.category));
        let steps = steps.map_or(&[][..], |steps| steps.of(context.family));
        let steps = steps.iter().filter(|step| calls.is_empty() || !is_typed_on_target(step));
        let steps: Vec<String> = steps.filter_map(|step| context.fill(step)).collect();
        problem.remediation = [calls, steps].concat();
    }
    problem
}

/// Whether a step has a command for the target. The program's own commands are for the machine that the server runs on.
fn is_typed_on_target(step: &str) -> bool {
    step.split('`')
        .skip(1)
        .step_by(2)
        .any(|typed| !typed.starts_with("linux-sysadmin ") && typed.contains(' '))
}

/// All steps of the table, without filled holes.
#[cfg(test)]
pub fn all_steps() -> Vec<String> {
    let all = TABLE.codes.values().chain(TABLE.categories.values());
    all.flat_map(|steps| match steps {
        Steps::Everywhere(steps) => steps.clone(),
        Steps::ByFamily(families) => families.values().flatten().cloned().collect(),
    })
    .collect()
}

#[cfg(test)]
mod tests;
