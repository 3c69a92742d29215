//! Units are what is scheduled: tests of one binary that have the same needs, in a process of their own.
//!
//! The place of an end-to-end test says what it needs: the binary's name and the module around the test. All other tests
//! need no host.

use super::binaries::{self, Binary};
use crate::build::Profile;
use crate::compiler::Environment;
use crate::workspace;
use anyhow::{Result, bail};
use std::collections::BTreeMap;
use std::process::Command;

/// The package with the end-to-end tests.
const END_TO_END: &str = "linux-sysadmin-tests";

/// The hosts that a unit has to itself while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Needs {
    Nothing,
    Debian,
    Rhel,
    Lab,
    Fleet,
    Stocked,
    Arch,
}

/// The runs of the tests that a unit is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tier {
    /// The unit runs at every change.
    Every,
    /// The unit tells stories in one of their ways. At every change they are told in another way.
    Matrix,
    /// The unit runs in one of the slices.
    Thorough,
}

/// Tests that one process runs.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    /// The unit's name in the output.
    pub(super) label: String,
    pub(super) program: Program,
    pub(super) needs: Needs,
    pub(super) tier: Tier,
}

/// The program that a unit runs.
#[derive(Debug, Clone)]
pub(super) enum Program {
    Tests {
        binary: Binary,
        names: Vec<String>,
        /// Whether these are all tests of the binary.
        is_all: bool,
        /// The value of `LINUX_SYSADMIN_TEST_WAY`.
        way: Option<&'static str>,
    },
    /// cargo with these arguments. It counts as one test unless it prints a count.
    Cargo { arguments: Vec<&'static str>, environment: Environment },
}

/// A way in which a story can be told, and the hosts that it needs.
type Way = (&'static str, Needs);

const WAYS: [Way; 4] = [
    ("inside-debian", Needs::Debian),
    ("over-ssh-debian", Needs::Debian),
    ("inside-rhel", Needs::Rhel),
    ("over-ssh-rhel", Needs::Rhel),
];

/// The needs of the end-to-end tests in one module.
enum Place {
    /// Each module has one process.
    Alone(Needs, Tier),
    /// Each module has one process for each way. At every change, the stories are spread evenly over the ways.
    Ways(&'static [Way]),
    /// Each module has one process for each way, and none at every change.
    ThoroughWays(&'static [Way]),
}

fn place(target: &str, test: &str) -> Option<Place> {
    let around = test.split("::").next().unwrap_or_default();
    Some(match (target, around) {
        ("contract", _) => Place::Alone(Needs::Nothing, Tier::Every),
        ("lab", "thorough") => Place::Alone(Needs::Lab, Tier::Thorough),
        ("lab", _) => Place::Alone(Needs::Lab, Tier::Every),
        ("hosts", "inside" | "over_ssh") => Place::Alone(Needs::Debian, Tier::Every),
        ("hosts", "debian") => Place::Ways(&WAYS[..2]),
        ("hosts", "rhel") => Place::Ways(&WAYS[2..]),
        ("hosts", "everywhere") => Place::Ways(&WAYS),
        ("thorough", "everywhere") => Place::ThoroughWays(&WAYS),
        ("thorough", "alone") => Place::Alone(Needs::Nothing, Tier::Thorough),
        ("thorough", "inside") => Place::Alone(Needs::Debian, Tier::Thorough),
        ("thorough", "fleet") => Place::Alone(Needs::Fleet, Tier::Thorough),
        ("thorough", "stocked") => Place::Alone(Needs::Stocked, Tier::Thorough),
        ("thorough", "arch") => Place::Alone(Needs::Arch, Tier::Thorough),
        _ => return None,
    })
}

/// The units of all tests whose names contain one of the filters, if there are filters.
pub(super) fn of(
    binaries: &[Binary],
    filters: &[String],
    profile: Profile,
    environment: &Environment,
) -> Result<Vec<Unit>> {
    let mut units = Vec::new();
    for binary in binaries {
        let all = binary.tests()?;
        let chosen =
            |name: &&String| filters.is_empty() || filters.iter().any(|filter| name.contains(filter));
        let names: Vec<String> = all.iter().filter(chosen).cloned().collect();
        if names.is_empty() {
            continue;
        }
        if binary.package == END_TO_END && binary.target != END_TO_END.replace('-', "_") {
            units.extend(end_to_end(binary, &names)?);
        } else {
            let is_all = names.len() == all.len();
            units.push(Unit {
                label: format!("{} {}", binary.package, binary.target),
                program: Program::Tests { binary: binary.clone(), names, is_all, way: None },
                needs: Needs::Nothing,
                tier: Tier::Every,
            });
        }
    }
    if filters.is_empty() {
        units.extend(of_cargo(profile, environment));
    }
    Ok(units)
}

/// The units that cargo itself runs. `environment` is that in which the tests were built.
fn of_cargo(profile: Profile, environment: &Environment) -> Vec<Unit> {
    let unit = |label: &str, tier, arguments: Vec<&'static str>, environment: &Environment| Unit {
        label: label.to_owned(),
        program: Program::Cargo { arguments, environment: environment.clone() },
        needs: Needs::Nothing,
        tier,
    };
    // The sdk's documentation has examples for authors of modules. No other crate has any.
    let documentation = [&["test", "--doc"], binaries::crates(profile)].concat();
    let mut units = vec![unit("documentation", Tier::Every, documentation, environment)];
    let own = Environment::new();
    // The example is a workspace of its own, as an author's is, and compiles the sdk for itself.
    let example = ["test", "--locked", "--manifest-path", "sdk/examples/packages-pacman/Cargo.toml"];
    units.push(unit("sdk examples packages-pacman", Tier::Thorough, example.to_vec(), &own));
    // The fuzz targets are a workspace of their own, which takes as long to compile as everything else. The name has them
    // checked whenever the crate that they fuzz is touched.
    if crate::cmd::find_program("c++").is_some() {
        let clippy = ["clippy", "--manifest-path", crate::lint::FUZZ, "--bins", "--", "-D", "warnings"];
        units.push(unit("lints of fuzz for host-capability", Tier::Thorough, clippy.to_vec(), &own));
    }
    units
}

/// The units of an end-to-end binary: one for each module and way.
fn end_to_end(binary: &Binary, names: &[String]) -> Result<Vec<Unit>> {
    type Key = (String, Option<&'static str>, Needs, bool);
    let mut units: BTreeMap<Key, (Tier, Vec<String>)> = BTreeMap::new();
    let mut stories = 0;
    for name in names {
        let module = name.rsplit_once("::").map_or("", |(module, _)| module);
        let module = module.split("::").take(2).collect::<Vec<_>>().join("::");
        let mut add = |way, needs, tier: Tier| {
            let key = (module.clone(), way, needs, tier == Tier::Every);
            units.entry(key).or_insert_with(|| (tier, Vec::new())).1.push(name.clone());
        };
        match place(&binary.target, name) {
            None => bail!("{}: the place of `{name}` doesn't say which hosts it needs", binary.target),
            Some(Place::Alone(needs, tier)) => add(None, needs, tier),
            Some(Place::Ways(ways)) => {
                // The stories go to the ways in turn, so that each way, and with it each host, has as many.
                for (number, (way, needs)) in ways.iter().enumerate() {
                    let is_told = stories % ways.len() == number;
                    add(Some(*way), *needs, if is_told { Tier::Every } else { Tier::Matrix });
                }
                stories += 1;
            }
            Some(Place::ThoroughWays(ways)) => {
                ways.iter().for_each(|(way, needs)| add(Some(*way), *needs, Tier::Thorough));
            }
        }
    }
    let unit = |((module, way, needs, _), (tier, names)): (Key, (Tier, Vec<String>))| Unit {
        label: format!("{}::{module}{}", binary.target, way.map(|way| format!(" {way}")).unwrap_or_default()),
        program: Program::Tests { binary: binary.clone(), names, is_all: false, way },
        needs,
        tier,
    };
    Ok(units.into_iter().map(unit).collect())
}

impl Unit {
    /// The number of tests that the unit must report, where it is known.
    pub(super) fn expected(&self) -> Option<u64> {
        match &self.program {
            Program::Tests { names, .. } => Some(names.len() as u64),
            Program::Cargo { .. } => None,
        }
    }

    /// The command that runs the unit.
    pub(super) fn command(&self) -> Command {
        match &self.program {
            Program::Cargo { arguments, environment } => {
                let mut cargo = workspace::cargo();
                cargo.args(arguments).envs(environment.iter().cloned());
                cargo
            }
            Program::Tests { binary, names, is_all, way } => {
                let mut command = Command::new(&binary.file);
                command.current_dir(&binary.folder);
                if !is_all {
                    command.arg("--exact").args(names);
                }
                if let Some(way) = way {
                    command.env("LINUX_SYSADMIN_TEST_WAY", way);
                }
                command
            }
        }
    }

    /// The words of the unit's name, which say whether it is about a folder.
    pub(super) fn words(&self) -> Vec<&str> {
        self.label.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn binary(target: &str) -> Binary {
        let (file, folder) = (PathBuf::from("/x"), PathBuf::from("/"));
        Binary { package: END_TO_END.into(), target: target.into(), file, folder }
    }

    fn units(target: &str, names: &[&str]) -> Vec<Unit> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        end_to_end(&binary(target), &names).expect("units")
    }

    fn names(unit: &Unit) -> &[String] {
        match &unit.program {
            Program::Tests { names, .. } => names,
            Program::Cargo { .. } => &[],
        }
    }

    #[test]
    fn every_story_is_told_once_at_every_change_and_in_each_of_its_ways_in_all() {
        let stories: Vec<_> = (0..8).map(|number| format!("everywhere::cron::story{number}")).collect();
        let stories: Vec<&str> = stories.iter().map(String::as_str).collect();
        let units = units("hosts", &stories);
        let mut every: Vec<_> =
            units.iter().filter(|unit| unit.tier == Tier::Every).flat_map(names).cloned().collect();
        every.sort();
        assert_eq!(every, stories);
        let told: usize = units.iter().map(|unit| names(unit).len()).sum();
        assert_eq!(told, 8 * WAYS.len());
        for unit in units.iter().filter(|unit| unit.tier == Tier::Every) {
            assert_eq!(names(unit).len(), 2, "spread evenly: {}", unit.label);
        }
    }

    #[test]
    fn a_thorough_story_is_told_in_each_way_and_not_at_every_change() {
        let units = units("thorough", &["everywhere::edits::a", "everywhere::edits::b"]);
        assert_eq!(units.len(), WAYS.len());
        assert!(units.iter().all(|unit| unit.tier == Tier::Thorough && names(unit).len() == 2));
        let needs: Vec<_> = units.iter().map(|unit| unit.needs).collect();
        assert!(needs.contains(&Needs::Debian) && needs.contains(&Needs::Rhel));
    }

    #[test]
    fn a_labs_thorough_tests_do_not_run_at_every_change() {
        let units = units("lab", &["thorough::answers::a", "talking::b"]);
        let tiers: Vec<_> = units.iter().map(|unit| (unit.label.as_str(), unit.tier)).collect();
        assert_eq!(tiers, [("lab::talking", Tier::Every), ("lab::thorough::answers", Tier::Thorough)]);
    }

    #[test]
    fn a_module_is_a_unit_of_its_own_and_its_submodules_belong_to_it() {
        let units = units("hosts", &["inside::audit::a", "inside::audit::deep::b", "inside::system::c"]);
        let labels: Vec<_> = units.iter().map(|unit| unit.label.as_str()).collect();
        assert_eq!(labels, ["hosts::inside::audit", "hosts::inside::system"]);
        assert_eq!(names(&units[0]), ["inside::audit::a", "inside::audit::deep::b"]);
    }

    #[test]
    fn a_test_where_nothing_says_what_it_needs_is_refused() {
        for (target, name) in [("hosts", "elsewhere::x"), ("new", "x")] {
            assert!(end_to_end(&binary(target), &[name.to_owned()]).is_err(), "{target} {name}");
        }
    }
}
