//! Where profiles come from: those that come with this program, and the operator's own, which take the place of those with
//! their id. A file that isn't right is left out as a whole, and said to be, with each fault's line and field.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

use super::Settings;
use super::check::{self, Allowed};
use super::fault::Fault;
use super::profile::Profile;
use super::{Known, locate};
use host_base::small_file;
use host_policy::Policy;
use host_text::visible::excerpt;

/// A profile in JSON each, as build.rs made them of `knowledge/*.yaml`.
const BUILTIN: &str = include_str!(concat!(env!("OUT_DIR"), "/profiles.jsonl"));
/// The format.
const SCHEMA: &str = include_str!("../../../knowledge/schema.json");
/// The one version of it that there is.
const SCHEMA_VERSION: u64 = 1;
/// Files of one directory; more are left out.
const MOST_FILES: usize = 1000;
/// Faults of one file that are said.
const MOST_FAULTS: usize = 20;
/// Of what a fault quotes.
const QUOTED: usize = 300;

/// Those that come with this program. Tests hold them against everything that others are held against.
pub fn builtin() -> Vec<Known> {
    BUILTIN
        .lines()
        .map(|line| match serde_json::from_str::<Profile>(line) {
            Ok(profile) => Known::new(profile, line, None),
            // Can't be in a program that was built from tested profiles.
            Err(error) => panic!("a built-in profile: {error}"),
        })
        .collect()
}

/// What files are held against.
pub struct Desk<'a> {
    policy: &'a Policy,
    allowed: Allowed,
    /// Those that hold so far.
    pub known: Vec<Known>,
    /// What is to be said of those that don't.
    pub warnings: Vec<String>,
}

impl<'a> Desk<'a> {
    /// With those that come with this program.
    pub fn new(config: &Settings, policy: &'a Policy) -> Self {
        let known = builtin();
        let (allowed, warnings) = Allowed::new(&known, &config.commands);
        Self { policy, allowed, known, warnings }
    }

    /// A file's profile takes the place of the one with its id; what is wrong with it, where it can't.
    pub fn add(&mut self, path: &Path) -> Result<(), String> {
        let read = small_file::read(path, may_be_trusted).map_err(|error| error.to_string());
        let added = read.map_err(|reason| vec![(None, String::new(), reason)]).and_then(|text| {
            let (profile, json) = parse(&text)?;
            let mut faults = check::one(&profile);
            faults.extend(self.allowed.refuses(&profile, self.policy));
            let others: Vec<_> = self.known.iter().filter(|other| other.profile.id != profile.id).collect();
            faults.extend(check::beside(&profile, &others));
            match faults.is_empty() {
                true => Ok(Known::new(profile, json, Some(path.to_owned()))),
                false => Err(faults.into_iter().map(|fault| placed(&text, &fault)).collect()),
            }
        });
        let added = added.map_err(|faults| told(path, faults))?;
        match self.known.iter_mut().find(|other| other.profile.id == added.profile.id) {
            Some(other) => *other = added,
            None => self.known.push(added),
        }
        Ok(())
    }
}

/// All that hold, and what is to be said of those that don't.
pub fn load(config: &Settings, own: Option<&Path>, policy: &Policy) -> (Vec<Known>, Vec<String>) {
    let mut desk = Desk::new(config, policy);
    let mut directories = Vec::new();
    for path in &config.additional_paths {
        match small_file::absolute(path) {
            Ok(path) => directories.push((path, false)),
            Err(reason) => desk.warnings.push(format!("knowledge.additional_paths: {reason}")),
        }
    }
    // The last one wins, so one's own come last.
    directories.extend(own.map(|own| (own.to_owned(), true)));
    for (directory, may_be_missing) in directories {
        for path in files_in(&directory, may_be_missing, &mut desk.warnings) {
            if let Err(warning) = desk.add(&path) {
                desk.warnings.push(warning);
            }
        }
    }
    let Desk { mut known, mut warnings, .. } = desk;
    for id in &config.disabled_profiles {
        if !known.iter().any(|known| known.profile.id == *id) {
            warnings.push(format!("knowledge.disabled_profiles: there is no profile {}", excerpt(id, 64)));
        }
    }
    known.retain(|known| !config.disabled_profiles.contains(&known.profile.id));
    known.sort_by(|a, b| a.profile.id.cmp(&b.profile.id));
    (known, warnings)
}

/// By name, so that the order is the same every time.
fn files_in(directory: &Path, may_be_missing: bool, warnings: &mut Vec<String>) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if may_be_missing && error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            warnings.push(format!("profiles of {} can't be read: {error}", directory.display()));
            return Vec::new();
        }
    };
    let is_profile = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
            && !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    };
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(is_profile)
        .take(MOST_FILES + 1)
        .collect();
    if files.len() > MOST_FILES {
        warnings
            .push(format!("{} has more than {MOST_FILES} profiles: some are left out", directory.display()));
        files.truncate(MOST_FILES);
    }
    files.sort();
    files
}

/// What becomes commands and paths is this account's own, or root's.
fn may_be_trusted(metadata: &std::fs::Metadata) -> std::io::Result<()> {
    let is_owners = [0, rustix::process::geteuid().as_raw()].contains(&metadata.uid());
    match is_owners && metadata.mode() & 0o022 == 0 {
        true => Ok(()),
        false => Err(std::io::Error::other("others than its owner, this account or root, can write to it")),
    }
}

/// Line, field and reason.
type Placed = (Option<usize>, String, String);

/// The profile, and itself as JSON.
fn parse(text: &str) -> Result<(Profile, String), Vec<Placed>> {
    let value: Value = serde_yaml::from_str(text).map_err(|error| {
        // The parser names the place as well; it is said once.
        let reason = error.to_string();
        let reason = reason.split(" at line ").next().unwrap_or(&reason).to_owned();
        vec![(error.location().map(|place| place.line()), String::new(), reason)]
    })?;
    if let Some(version) = value.get("schema_version").and_then(Value::as_u64)
        && version > SCHEMA_VERSION
    {
        let reason = format!(
            "expected {SCHEMA_VERSION}, found {version}: it is written for a later version of linux-sysadmin"
        );
        return Err(vec![placed(text, &Fault::new(&["schema_version"], reason))]);
    }
    let faults: Vec<_> = schema().iter_errors(&value).map(|error| placed(text, &of_schema(&error))).collect();
    if !faults.is_empty() {
        return Err(faults);
    }
    let json = value.to_string();
    let profile =
        serde_json::from_str(&json).map_err(|error| vec![(None, String::new(), error.to_string())])?;
    Ok((profile, json))
}

fn of_schema(error: &jsonschema::ValidationError) -> Fault {
    let at = error.instance_path().as_str().split('/').skip(1);
    let at = at.map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    Fault { at, reason: excerpt(&error.to_string(), QUOTED) }
}

fn schema() -> &'static Validator {
    static SCHEMA_OF_PROFILES: LazyLock<Validator> = LazyLock::new(|| {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap_or(Value::Bool(false));
        match jsonschema::draft202012::new(&schema) {
            Ok(validator) => validator,
            // As with the profiles: a test reads the same text.
            Err(error) => panic!("the schema of profiles: {error}"),
        }
    });
    &SCHEMA_OF_PROFILES
}

fn placed(text: &str, fault: &Fault) -> Placed {
    let field = fault.at.iter().enumerate().map(|(number, part)| match part.parse::<usize>() {
        Ok(index) => format!("[{index}]"),
        Err(_) if number == 0 => part.clone(),
        Err(_) => format!(".{part}"),
    });
    (locate::line_of(text, &fault.at), field.collect(), fault.reason.clone())
}

/// One warning, with each fault.
fn told(path: &Path, faults: Vec<Placed>) -> String {
    let count = faults.len();
    let shown = faults.into_iter().take(MOST_FAULTS).map(|(line, field, reason)| {
        let line = line.map(|line| format!("line {line}"));
        let place = [line, (!field.is_empty()).then_some(field)].into_iter().flatten().collect::<Vec<_>>();
        if place.is_empty() { reason } else { format!("{}: {reason}", place.join(", ")) }
    });
    let mut shown: Vec<_> = shown.collect();
    if count > MOST_FAULTS {
        shown.push(format!("and {} more", count - MOST_FAULTS));
    }
    format!("the profile {} is left out: {}", path.display(), shown.join("; "))
}

/// Which profile means a unit, by its whole name; templates by their own names.
pub fn by_unit(known: &[Known]) -> HashMap<String, usize> {
    let units = known.iter().enumerate().flat_map(|(number, known)| {
        let units = known.profile.units.iter();
        units.flat_map(move |unit| {
            std::iter::once(&unit.name).chain(&unit.aliases).map(move |name| (name.clone(), number))
        })
    });
    units.collect()
}
