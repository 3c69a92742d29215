//! The parts of a profile that can be checked on a machine, as `knowledge/README.md` documents them, and the test's own
//! settings for a profile (`tests/data/knowledge_real.yaml`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use regex::RegexBuilder;
use serde::Deserialize;

/// The family of the stocked host.
const FAMILY: &str = "debian";

/// A profile's entries for this family.
#[derive(Deserialize)]
pub struct Profile {
    pub id: String,
    pub units: Vec<Unit>,
    pub packages: Vec<Package>,
    #[serde(default)]
    pub processes: Vec<Process>,
    pub config: Vec<Place>,
    #[serde(default)]
    pub validate: Vec<Check>,
    #[serde(default)]
    pub data: Vec<Place>,
    pub logs: Vec<Log>,
    pub ports: Vec<Port>,
    pub health: Vec<Check>,
    #[serde(default)]
    pub backup: Vec<Backup>,
    pub troubleshooting: Vec<Trouble>,
}

#[derive(Deserialize)]
pub struct Unit {
    pub name: String,
    family: Option<Vec<String>>,
    #[serde(default)]
    pub main: bool,
    #[serde(default)]
    pub aliases: Vec<String>,
    #[serde(default)]
    pub reload: bool,
    #[serde(default)]
    pub optional: bool,
}

#[derive(Deserialize)]
pub struct Package {
    pub name: String,
    family: Option<Vec<String>>,
    #[serde(default)]
    pub optional: bool,
    pub origin: Option<String>,
}

#[derive(Deserialize)]
pub struct Process {
    pub name: String,
    family: Option<Vec<String>>,
    pub user: Option<String>,
}

#[derive(Deserialize)]
pub struct Place {
    pub path: String,
    family: Option<Vec<String>>,
    #[serde(default)]
    pub main: bool,
    #[serde(default)]
    pub optional: bool,
}

/// A check of health, troubleshooting or validation.
#[derive(Deserialize)]
pub struct Check {
    #[serde(default)]
    pub id: String,
    pub argv: Vec<String>,
    pub candidate: Option<Vec<String>>,
    family: Option<Vec<String>>,
    #[serde(default)]
    pub needs: Vec<String>,
    expect_exit: Option<i32>,
    expect_contains: Option<String>,
    expect_matches: Option<String>,
    expect_lacks: Option<String>,
    unknown_matches: Option<String>,
}

#[derive(Deserialize)]
pub struct Log {
    pub journal: Option<String>,
    pub path: Option<String>,
    pub identifier: Option<String>,
    family: Option<Vec<String>>,
    #[serde(default)]
    pub optional: bool,
    pub line: Option<String>,
}

#[derive(Deserialize)]
pub struct Port {
    pub port: u16,
    pub to: Option<u16>,
    pub protocol: String,
    pub scope: String,
    family: Option<Vec<String>>,
    #[serde(default)]
    pub optional: bool,
}

#[derive(Deserialize)]
pub struct Backup {
    pub path: Option<String>,
    pub argv: Option<Vec<String>>,
    family: Option<Vec<String>>,
    #[serde(default)]
    pub optional: bool,
}

#[derive(Deserialize)]
pub struct Trouble {
    pub id: String,
    pub checks: Vec<Check>,
}

/// The exit code of a command, and its standard output followed by its standard error.
pub struct Said {
    pub exit: Option<i32>,
    pub output: String,
}

/// The result of a check of the service.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    Met,
    /// The check can't tell here.
    Unknown,
    Unmet,
}

/// The test's settings for a profile.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Setting {
    /// Files that are put on the host before the service is started, and removed afterwards. Without them the package starts
    /// nothing, or the service has nothing to do.
    pub files: BTreeMap<String, String>,
    /// Commands that run before the service is started.
    pub before: Vec<Vec<String>>,
    pub after: Vec<Vec<String>>,
    /// Units that hold what the service needs, as a port.
    pub stop: Vec<String>,
    /// The units that are started. The default is the profile's main unit.
    pub start: Option<Vec<String>>,
    /// Commands that run once after the start, as to fill a log or a database.
    pub run: Vec<Vec<String>>,
    /// The reason why the service isn't stopped.
    pub never_stopped: Option<String>,
    /// The parts that can't be checked on such a host.
    pub cannot: Vec<Cannot>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cannot {
    /// The name of the part in the table.
    pub item: String,
    /// A part of the message.
    pub says: String,
    /// The reason why this is no fault of the profile.
    pub why: String,
}

impl Profile {
    /// All profiles.
    pub fn all() -> Vec<Self> {
        let knowledge = Path::new(env!("CARGO_MANIFEST_DIR")).join("../knowledge");
        let mut files: Vec<_> =
            fs::read_dir(knowledge).expect("knowledge/").flatten().map(|file| file.path()).collect();
        files.retain(|file| file.extension().is_some_and(|ending| ending == "yaml"));
        files.sort();
        let read = |file: &std::path::PathBuf| {
            let text = fs::read_to_string(file).expect("a profile");
            let mut profile: Self =
                serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            profile.keep_own();
            profile
        };
        files.iter().map(read).collect()
    }

    /// The unit of the service itself.
    pub fn main(&self) -> Option<&Unit> {
        self.units.iter().find(|unit| unit.main)
    }

    /// Leaves out entries of other families.
    fn keep_own(&mut self) {
        fn own(family: &Option<Vec<String>>) -> bool {
            family.as_ref().is_none_or(|families| families.iter().any(|one| one == FAMILY))
        }
        self.units.retain(|one| own(&one.family));
        self.packages.retain(|one| own(&one.family));
        self.processes.retain(|one| own(&one.family));
        self.config.retain(|one| own(&one.family));
        self.validate.retain(|one| own(&one.family));
        self.data.retain(|one| own(&one.family));
        self.logs.retain(|one| own(&one.family));
        self.ports.retain(|one| own(&one.family));
        self.health.retain(|one| own(&one.family));
        self.backup.retain(|one| own(&one.family));
        for trouble in &mut self.troubleshooting {
            trouble.checks.retain(|one| own(&one.family));
        }
    }
}

impl Unit {
    /// Whether the unit is a template.
    pub fn is_template(&self) -> bool {
        self.name.contains("@.")
    }
}

impl Check {
    /// The result of the check where its command gave this output.
    pub fn verdict(&self, said: &Said) -> Verdict {
        let matches = |pattern: &String| is_match(pattern, &said.output);
        let met = self.expect_exit.is_none_or(|exit| said.exit == Some(exit))
            && self.expect_contains.as_ref().is_none_or(|text| said.output.contains(text))
            && self.expect_matches.as_ref().is_none_or(matches)
            && self.expect_lacks.as_ref().is_none_or(|pattern| !matches(pattern));
        match self.unknown_matches.as_ref().is_some_and(matches) {
            true => Verdict::Unknown,
            false if met => Verdict::Met,
            false => Verdict::Unmet,
        }
    }
}

/// Whether a text has a match, as all expressions of a profile are read: `^` and `$` are the ends of a line.
pub fn is_match(pattern: &str, text: &str) -> bool {
    RegexBuilder::new(pattern).multi_line(true).build().expect("an expression").is_match(text)
}

/// The test's settings, by the ids of the profiles.
pub fn settings() -> BTreeMap<String, Setting> {
    let settings: BTreeMap<String, Setting> =
        serde_yaml::from_str(include_str!("../../../../data/knowledge_real.yaml")).expect("settings");
    for (id, setting) in &settings {
        for cannot in &setting.cannot {
            assert!(cannot.why.split_whitespace().count() >= 3, "{id}: {}: why?", cannot.item);
            assert!(!cannot.says.is_empty(), "{id}: {}: what is the message?", cannot.item);
        }
    }
    settings
}
