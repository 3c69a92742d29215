//! Chooses the units that run: those of every change, all of them, or those of CI.

use super::Options;
use super::units::{Tier, Unit};
use crate::cmd;
use crate::workspace;
use anyhow::Result;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The number of slices of the units that CI doesn't run at every change. CI runs one slice, in at most five minutes.
const SLICES: usize = 16;
/// The number of commits that CI looks at to find the folders that were touched.
const LAST: usize = 3;

/// The units that are run.
pub(super) enum Selection {
    Every,
    /// The tests whose names were asked for, each story in one way.
    Filtered,
    All,
    /// The slice's number, and the words of each folder that the last commits touched.
    Ci {
        slice: usize,
        touched: Vec<Vec<String>>,
    },
}

impl Selection {
    pub(super) fn of(options: &Options) -> Self {
        match options {
            Options { all: true, .. } => Self::All,
            Options { ci: true, .. } => Self::of_ci(),
            Options { filters, .. } if !filters.is_empty() => Self::Filtered,
            _ => Self::Every,
        }
    }

    fn of_ci() -> Self {
        let git = |arguments: &[&str]| {
            cmd::output(Command::new("git").current_dir(workspace::root()).args(arguments))
                .unwrap_or_default()
        };
        let is_whole = git(&["rev-parse", "--is-shallow-repository"]).trim() == "false";
        let commits: Option<usize> =
            git(&["rev-list", "--count", "HEAD"]).trim().parse().ok().filter(|_| is_whole);
        let Some(commits) = commits else {
            println!("xtask: this clone has no history: slice 0 is run, and no folder counts as touched");
            return Self::Ci { slice: 0, touched: Vec::new() };
        };
        let begin = format!("HEAD~{}", LAST.min(commits.saturating_sub(1)));
        let touched = touched(&git(&["diff", "--name-only", &begin, "HEAD"]));
        Self::Ci { slice: commits % SLICES, touched }
    }

    /// The name of this run in the closing line.
    pub(super) fn name(&self) -> Option<String> {
        match self {
            Self::Ci { slice, .. } => Some(format!("slice-{slice}-of-{SLICES}")),
            _ => None,
        }
    }

    /// The chosen ones of all units.
    pub(super) fn choose(&self, units: Vec<Unit>) -> Result<Vec<Unit>> {
        let (every, mut rest): (Vec<_>, Vec<_>) =
            units.into_iter().partition(|unit| unit.tier == Tier::Every);
        rest.sort_by(|a, b| a.label.cmp(&b.label));
        let rest: Vec<_> = match self {
            Self::Every => Vec::new(),
            Self::All => rest,
            Self::Filtered => rest.into_iter().filter(|unit| unit.tier == Tier::Thorough).collect(),
            Self::Ci { slice, touched } => {
                let is_touched = |unit: &Unit| touched.iter().any(|words| is_about(&unit.words(), words));
                let chosen = rest
                    .into_iter()
                    .enumerate()
                    .filter(|(number, unit)| number % SLICES == *slice || is_touched(unit));
                let chosen: Vec<_> = chosen.map(|(_, unit)| unit).collect();
                let labels: Vec<_> = chosen.iter().map(|unit| unit.label.as_str()).collect();
                println!(
                    "xtask: besides what runs at every change, slice {slice} of {SLICES} and what was touched: {}",
                    labels.join(", ")
                );
                chosen
            }
        };
        Ok(every.into_iter().chain(rest).collect())
    }
}

/// Whether all words of a folder are among the words of a unit.
fn is_about(unit: &[&str], folder: &[String]) -> bool {
    folder.iter().all(|word| unit.contains(&word.as_str()))
}

/// The words of the folders that changed files are about: a module, a folder of the sdk or of the host, a crate of the host,
/// or a file of tests.
fn touched(files: &str) -> Vec<Vec<String>> {
    let mut folders = BTreeSet::new();
    for file in files.lines() {
        let parts: Vec<&str> = file.split('/').collect();
        let name = match parts[..] {
            ["modules", module, ..] => module,
            ["sdk" | "host", "src", folder, _, ..] | ["host", folder, "src", ..] => folder,
            ["tests", "tests", .., file] => {
                Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or(file)
            }
            ["knowledge", ..] => "knowledge",
            _ => continue,
        };
        let words = name.split(['-', '_']).map(str::to_owned).collect::<Vec<_>>();
        // The file `main` or `mod` of a folder is about no story of its own.
        if words != ["main"] && words != ["mod"] {
            folders.insert(words);
        }
    }
    folders.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::units::{Needs, Program};

    fn unit(number: usize, tier: Tier) -> Unit {
        let program = Program::Cargo { arguments: vec!["test"], environment: Vec::new() };
        Unit { label: format!("hosts::debian::unit{number}"), program, needs: Needs::Debian, tier }
    }

    #[test]
    fn every_unit_is_in_one_slice_and_those_of_every_change_in_all() {
        let units: Vec<_> =
            (0..40).map(|number| unit(number, if number < 3 { Tier::Every } else { Tier::Matrix })).collect();
        let mut seen = Vec::new();
        for slice in 0..SLICES {
            let chosen = Selection::Ci { slice, touched: Vec::new() }.choose(units.clone()).expect("chosen");
            let (every, rest): (Vec<_>, Vec<_>) =
                chosen.into_iter().partition(|unit| unit.tier == Tier::Every);
            assert_eq!(every.len(), 3);
            seen.extend(rest.into_iter().map(|unit| unit.label));
        }
        seen.sort();
        let mut all: Vec<_> = units[3..].iter().map(|unit| unit.label.clone()).collect();
        all.sort();
        assert_eq!(seen, all);
    }

    #[test]
    fn what_a_commit_touched_is_known_by_its_words() {
        let cases = [
            ("modules/cron/src/lib.rs", "hosts::everywhere::changing_cron over-ssh-rhel", true),
            ("modules/packages-apt/Cargo.toml", "hosts::debian::packages_apt inside-debian", true),
            ("modules/packages-apt/Cargo.toml", "hosts::rhel::packages_dnf inside-rhel", false),
            ("sdk/src/packages/mod.rs", "hosts::rhel::packages_dnf inside-rhel", true),
            ("tests/tests/thorough/inside/plans_killed.rs", "thorough::inside::plans_killed", true),
            ("tests/tests/hosts/main.rs", "hosts::rhel::packages_dnf inside-rhel", false),
            ("host/packages/src/lib.rs", "hosts::rhel::packages_dnf inside-rhel", true),
            ("host/src/lib.rs", "hosts::rhel::packages_dnf inside-rhel", false),
            ("README.md", "hosts::rhel::packages_dnf inside-rhel", false),
        ];
        for (file, label, expected) in cases {
            let unit = Unit { label: label.to_owned(), ..unit(0, Tier::Matrix) };
            let is_touched = touched(file).iter().any(|words| is_about(&unit.words(), words));
            assert_eq!(is_touched, expected, "{file} {label}");
        }
    }
}
