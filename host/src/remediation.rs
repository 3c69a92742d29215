//! What to do about a problem that doesn't say so itself: steps by its code, else by its category, as they are on the
//! target's family of distributions. They are data, in `remediation.yaml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

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

/// A table that can't be read would be none.
static TABLE: LazyLock<Table> =
    LazyLock::new(|| serde_yaml::from_str(include_str!("remediation.yaml")).unwrap_or_default());

/// What the steps may name.
#[derive(Clone, Copy, Debug, Default)]
pub struct About<'a> {
    /// The target's family of distributions; empty where it isn't known.
    pub family: &'a str,
    /// `{host}`: the target's name.
    pub host: &'a str,
    /// `{module}`: whose tool was called.
    pub module: Option<&'a str>,
    /// `{user}`: the account that the target is reached as.
    pub user: Option<&'a str>,
}

impl About<'_> {
    /// The step with its holes filled; none where it names what isn't known.
    fn fill(&self, step: &str) -> Option<String> {
        let mut filled = String::new();
        let mut rest = step;
        while let Some((before, behind)) = rest.split_once('{') {
            let (hole, after) = behind.split_once('}')?;
            filled.push_str(before);
            filled.push_str(match hole {
                "host" => self.host,
                "module" => self.module?,
                // The target's own word, in a command line that somebody may copy.
                "user" => self.user.filter(|name| is_account(name))?,
                _ => return None,
            });
            rest = after;
        }
        Some(filled + rest)
    }
}

/// As useradd(8) has it, and nothing that a shell would read otherwise.
fn is_account(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=32).contains(&name.len()) && name.bytes().all(fits) && !name.starts_with('-')
}

/// The problem, with steps where it has none of its own.
pub fn attach(mut problem: Problem, about: &About) -> Problem {
    if problem.remediation.is_empty() {
        let steps = TABLE.codes.get(&problem.code).or_else(|| TABLE.categories.get(&problem.category));
        let steps = steps.map_or(&[][..], |steps| steps.of(about.family));
        problem.remediation = steps.iter().filter_map(|step| about.fill(step)).collect();
    }
    problem
}

/// Every step as it stands in the table.
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
