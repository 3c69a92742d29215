//! The other names of arguments that the host understands for every tool, besides the aliases that a tool declares itself.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The synonyms by the argument's own name. A table that can't be read counts as empty.
static TABLE: LazyLock<BTreeMap<String, Vec<String>>> =
    LazyLock::new(|| serde_yaml::from_str(include_str!("synonyms.yaml")).unwrap_or_default());

/// The arguments that a name which the tool doesn't know may stand for.
pub(super) fn meanings<'a>(said: &str, arguments: &[&'a str]) -> Vec<&'a str> {
    let is_it = |name: &&str| TABLE.get(*name).is_some_and(|all| all.iter().any(|known| known == said));
    arguments.iter().copied().filter(is_it).collect()
}

/// The arguments that unknown names stand for, by the name. A name that could be two of the tool's arguments stands for
/// none.
pub(super) fn of_unknown<'a>(
    unknown: impl Iterator<Item = &'a String>,
    arguments: &[&str],
) -> BTreeMap<String, String> {
    unknown
        .filter_map(|said| match meanings(said, arguments)[..] {
            [meant] => Some((said.clone(), meant.to_owned())),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_components::host_arguments::{CONFIRMED, DRY_RUN};

    #[test]
    fn a_synonym_stands_for_the_only_argument_that_it_can_be() {
        for (known, said, meant) in [
            (&["user", "rename"][..], "username", Some("user")),
            (&["service"], "unit", Some("service")),
            (&["path", "limit"], "lines", Some("limit")),
            (&["path"], "filename", Some("path")),
            (&["sort"], "sort_by", Some("sort")),
            // It could be either of two.
            (&["service", "units"], "unit", None),
            (&["pattern", "query"], "search", None),
            (&["rename"], "username", None),
            (&["host"], "target_host", Some("host")),
            (&["target", "host"], "target_host", None),
            (&["user"], "User", None),
        ] {
            let found = of_unknown([said.to_owned()].iter(), known);
            assert_eq!(found.get(said).map(String::as_str), meant, "{said} of {known:?}");
        }
    }

    #[test]
    fn no_synonym_says_that_a_call_is_confirmed_or_a_dry_run() {
        let table: BTreeMap<String, Vec<String>> =
            serde_yaml::from_str(include_str!("synonyms.yaml")).unwrap();
        for name in [CONFIRMED, DRY_RUN] {
            assert!(!table.contains_key(name), "{name}");
            assert!(!table.values().flatten().any(|said| said == name), "{name}");
        }
        for (name, all) in table {
            assert!(!all.contains(&name), "{name} is no synonym of itself");
            let mut sorted = all.clone();
            sorted.sort();
            sorted.dedup();
            assert_eq!(sorted, all, "the synonyms of {name} are sorted, each once");
        }
    }
}
