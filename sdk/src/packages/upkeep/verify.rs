//! `pkg_verify`: compares files with what their packages brought. Damage is told apart from configuration, which
//! administrators change, and from attributes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Comparison, Difference, Upkeep};
use crate::packages::Backend;
use crate::packages::name::Names;
use crate::{Category, Context, Noted, Problem, Result};

/// The most files in each list of an answer.
const MOST: usize = 100;

#[derive(Deserialize, JsonSchema)]
pub(super) struct VerifyArgs {
    /// Default: all
    package: Option<Names>,
}

#[derive(Serialize)]
pub(super) struct Verified {
    /// The number of files that have other contents than the package's, or are gone.
    damaged_count: usize,
    /// The number of configuration files that were changed.
    config_changed_count: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    damaged: Vec<Difference>,
    /// Files whose contents are the package's, with other rights or owners.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attributes_changed: Vec<Difference>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    config_changed: Vec<Difference>,
    /// The number of files of documentation and translations that are gone. Small images and dpkg's `path-exclude` leave
    /// them out.
    #[serde(skip_serializing_if = "is_none")]
    missing_documentation_count: usize,
    /// Files whose contents couldn't be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// Directories of documentation and translations, without which every program works.
const DOCUMENTATION: [&str; 4] =
    ["/usr/share/doc/", "/usr/share/info/", "/usr/share/locale/", "/usr/share/man/"];

pub(super) fn verify<B: Backend>(
    backend: &B,
    upkeep: &dyn Upkeep,
    args: VerifyArgs,
    cx: &Context,
) -> Result<Noted<Verified>> {
    let names = args.package.map(|names| names.checked(backend)).transpose()?.unwrap_or_default();
    let Comparison { absent, differences } = upkeep.verify(&names, cx)?;
    if !absent.is_empty() {
        let message = format!("these packages aren't installed: {}", absent.join(", "));
        return Err(Problem::new("PACKAGE_NOT_INSTALLED", Category::State, message));
    }
    Ok(sorted(differences?))
}

fn sorted(differences: Vec<Difference>) -> Noted<Verified> {
    let is_damage = |found: &Difference| {
        found
            .differs
            .iter()
            .any(|what| ["missing", "digest", "size", "type", "link", "device"].contains(what))
    };
    let is_documentation = |found: &Difference| {
        found.differs == ["missing"]
            && DOCUMENTATION.iter().any(|directory| found.path.starts_with(directory))
    };
    let mut notes = Vec::new();
    let (documentation, differences): (Vec<_>, Vec<_>) = differences.into_iter().partition(is_documentation);
    let (unreadable, rest): (Vec<_>, Vec<_>) =
        differences.into_iter().partition(|found| found.unreadable && !is_damage(found));
    let (config_changed, rest): (Vec<_>, Vec<_>) = rest.into_iter().partition(|found| found.config);
    let (damaged, attributes_changed): (Vec<_>, Vec<_>) = rest.into_iter().partition(is_damage);
    if !unreadable.is_empty() {
        notes.push("files that only root may read weren't compared".to_owned());
    }
    let counts = [damaged.len(), config_changed.len()];
    let mut first = |mut list: Vec<Difference>, what: &str| {
        if list.len() > MOST {
            notes.push(format!("the first {MOST} of {} {what} are listed", list.len()));
            list.truncate(MOST);
        }
        list
    };
    let data = Verified {
        damaged_count: counts[0],
        config_changed_count: counts[1],
        damaged: first(damaged, "damaged files"),
        attributes_changed: first(attributes_changed, "files with changed attributes"),
        config_changed: first(config_changed, "changed configuration files"),
        missing_documentation_count: documentation.len(),
        unreadable: first(unreadable, "unread files").into_iter().map(|found| found.path).collect(),
    };
    Noted { data, notes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(path: &str) -> Difference {
        Difference { path: path.to_owned(), differs: vec!["missing"], ..Difference::default() }
    }

    #[test]
    fn documentation_that_was_left_out_is_counted_and_no_damage() {
        let found = sorted(vec![missing("/usr/share/doc/x/README"), missing("/usr/share/dict/words")]).data;
        assert_eq!((found.damaged_count, found.missing_documentation_count), (1, 1));
        assert_eq!(found.damaged[0].path, "/usr/share/dict/words");
    }

    #[test]
    fn a_long_list_is_cut_and_its_length_is_told() {
        let all = (0..MOST + 1).map(|at| missing(&format!("/bin/{at}"))).collect();
        let found = sorted(all);
        assert_eq!((found.data.damaged_count, found.data.damaged.len()), (MOST + 1, MOST));
        assert_eq!(found.notes, [format!("the first {MOST} of {} damaged files are listed", MOST + 1)]);
    }
}
