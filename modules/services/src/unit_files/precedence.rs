//! Which settings of a unit's files later ones override. systemd reads the unit file first and then its drop-ins in the order
//! of `DropInPaths`, as one text.

use std::collections::BTreeMap;

use super::syntax::{self, Assignment};
use crate::systemd::properties;

/// The settings that add to each other.
const LISTS: &str = include_str!("list_settings.txt");

/// The settings that name other units and that systemd only adds to: an empty assignment takes none back.
const DEPENDENCIES: [&str; 20] = [
    "After",
    "Before",
    "BindsTo",
    "Conflicts",
    "JoinsNamespaceOf",
    "OnFailure",
    "OnSuccess",
    "PartOf",
    "PropagatesReloadTo",
    "PropagatesStopTo",
    "ReloadPropagatedFrom",
    "Requires",
    "RequiresMountsFor",
    "Requisite",
    "Service",
    "Sockets",
    "StopPropagatedFrom",
    "Upholds",
    "Wants",
    "WantsMountsFor",
];

/// For each text, the numbers of the lines whose assignment has no effect, with the place of the later assignment that
/// overrides it, as `override.conf:3`.
pub(crate) fn overridden(files: &[(&str, &str)]) -> Vec<BTreeMap<usize, String>> {
    let mut found = vec![BTreeMap::new(); files.len()];
    let mut effective: Vec<(usize, Assignment)> = Vec::new();
    for (index, (path, text)) in files.iter().enumerate() {
        for later in syntax::assignments(text) {
            if DEPENDENCIES.contains(&later.key.as_str()) {
                continue;
            }
            let place = || format!("{}:{}", path.rsplit('/').next().unwrap_or(path), later.line);
            effective.retain(|(of, earlier)| {
                let stays = !overrides(&later, earlier);
                if !stays && let Some(lines) = found.get_mut(*of) {
                    lines.insert(earlier.line, place());
                }
                stays
            });
            let only_resets = later.value.is_empty() && together(&later.key).is_some();
            if !only_resets {
                effective.push((index, later));
            }
        }
    }
    found
}

/// Says whether the later assignment leaves the earlier one without effect.
fn overrides(later: &Assignment, earlier: &Assignment) -> bool {
    if later.section != earlier.section {
        return false;
    }
    match together(&later.key) {
        None => later.key == earlier.key,
        Some(line) if later.value.is_empty() => together(&earlier.key) == Some(line),
        Some(_) if later.key == "Environment" && earlier.key == "Environment" => {
            let (new, old) = (variables(&later.value), variables(&earlier.value));
            !old.is_empty() && old.iter().all(|name| new.contains(name))
        }
        Some(_) => false,
    }
}

/// The settings that an empty assignment of this one takes back. None for a setting that has one value.
fn together(key: &str) -> Option<&'static str> {
    let is_of = |word: &str| word.strip_suffix('*').map_or(word == key, |start| key.starts_with(start));
    LISTS.lines().filter(|line| !line.starts_with('#')).find(|line| line.split(' ').any(is_of))
}

/// The names of the variables that a value of `Environment=` sets.
fn variables(value: &str) -> Vec<String> {
    let words = properties::words(&value.replace('\'', "\"")).into_iter();
    words.filter_map(|word| word.split_once('=').map(|(name, _)| name.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The overridden lines, as `file:line by place`.
    fn said(files: &[(&str, &str)]) -> Vec<String> {
        let found = overridden(files).into_iter().zip(files);
        found
            .flat_map(|(lines, (path, _))| {
                lines.into_iter().map(move |(line, by)| format!("{path}:{line} by {by}"))
            })
            .collect()
    }

    #[test]
    fn the_last_value_counts_and_a_list_ends_at_an_empty_assignment() {
        let unit = "[Unit]\nAfter=a.target\n[Service]\nExecStart=/bin/a\nNice=1\nEnvironment=A=1 B=2\nEnvironment=C=3\n";
        let table: [(&str, &[&str]); 10] = [
            ("[Service]\nNice=2\n", &["u:5 by d.conf:2"]),
            ("[Service]\nNice=\n", &["u:5 by d.conf:2"]),
            ("[Unit]\nNice=2\n", &[]),
            ("[Service]\nExecStart=/bin/b\n", &[]),
            ("[Service]\nExecStart=\nExecStart=/bin/b\n", &["u:4 by d.conf:2"]),
            ("[Unit]\nAfter=\n", &[]),
            ("[Service]\nEnvironment=C=4\n", &["u:7 by d.conf:2"]),
            ("[Service]\nEnvironment=\"A=5 6\"\n", &[]),
            ("[Service]\nEnvironment='B=x' A=\n", &["u:6 by d.conf:2"]),
            ("[Service]\nEnvironment=\n", &["u:6 by d.conf:2", "u:7 by d.conf:2"]),
        ];
        for (drop_in, expected) in table {
            assert_eq!(said(&[("u", unit), ("/x/d.conf", drop_in)]), expected, "{drop_in}");
        }
    }

    #[test]
    fn settings_that_systemd_takes_back_together_are() {
        let table: [(&str, &str, &[&str]); 4] = [
            (
                "[Timer]\nOnCalendar=daily\nOnBootSec=5\nPersistent=yes\n",
                "[Timer]\nOnBootSec=\n",
                &["u:2", "u:3"],
            ),
            ("[Unit]\nConditionHost=a\nAssertHost=b\n", "[Unit]\nConditionPathExists=\n", &["u:2"]),
            ("[Socket]\nListenStream=1\nListenDatagram=2\n", "[Socket]\nListenStream=\n", &["u:2", "u:3"]),
            ("[Unit]\nOnFailureJobMode=fail\n", "[Unit]\nOnFailureJobMode=replace\n", &["u:2"]),
        ];
        for (unit, drop_in, expected) in table {
            let found = said(&[("u", unit), ("d", drop_in)]);
            let lines: Vec<&str> = found.iter().filter_map(|line| line.split(' ').next()).collect();
            assert_eq!(lines, expected, "{unit}");
        }
    }

    #[test]
    fn a_file_overrides_itself_and_continued_lines_are_one() {
        let text = "# first\n[Service]\nNice=1\\\n# between\n 2\nNice=3\n";
        assert_eq!(said(&[("u", text)]), ["u:3 by u:6"]);
        assert!(said(&[("u", ""), ("d", "Nice=1\nNice=2\n")]).is_empty(), "outside of sections");
    }
}
