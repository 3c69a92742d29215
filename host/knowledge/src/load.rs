//! Loads profiles: those that come with this program, and the operator's own, which replace those with the same id. A file
//! with an error is left out as a whole, and a warning names the line and field of each error.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

use super::Settings;
use super::check::{self, AllowedCommands};
use super::profile::Profile;
use super::profile_error::ProfileError;
use super::{LoadedProfile, locate};
use host_base::trusted_file;
use host_policy::Policy;
use host_text::visible::excerpt;

/// The built-in profiles as JSON, one per line. `build.rs` makes them from `knowledge/*.yaml`.
const BUILTIN: &str = include_str!(concat!(env!("OUT_DIR"), "/profiles.jsonl"));
/// The JSON Schema of profiles.
const SCHEMA: &str = include_str!("../../../knowledge/schema.json");
/// The only version of the schema.
const SCHEMA_VERSION: u64 = 1;
/// The greatest number of files that are read from one directory.
const MAX_FILES: usize = 1000;
/// The greatest number of errors of one file that a warning names.
const MAX_ERRORS: usize = 20;
/// The greatest length of a quotation in an error.
const MAX_QUOTED: usize = 300;

/// The built-in profiles. Tests make the same checks on them as on other profiles.
pub fn builtin() -> Vec<LoadedProfile> {
    BUILTIN
        .lines()
        .map(|line| match serde_json::from_str::<Profile>(line) {
            Ok(profile) => LoadedProfile::new(profile, line, None),
            // This can't happen in a program that was built from tested profiles.
            Err(error) => panic!("a built-in profile: {error}"),
        })
        .collect()
}

/// Loads and checks profiles.
pub struct Loader<'a> {
    policy: &'a Policy,
    allowed: AllowedCommands,
    /// The profiles that passed the checks so far.
    pub known: Vec<LoadedProfile>,
    /// The warnings about the others.
    pub warnings: Vec<String>,
}

impl<'a> Loader<'a> {
    /// Starts with the built-in profiles.
    pub fn new(config: &Settings, policy: &'a Policy) -> Self {
        let known = builtin();
        let (allowed, warnings) = AllowedCommands::new(&known, &config.commands);
        Self { policy, allowed, known, warnings }
    }

    /// Adds a file's profile, which replaces the one with the same id. Returns what is wrong with a file that can't be
    /// added.
    pub fn add(&mut self, path: &Path) -> Result<(), String> {
        let read = trusted_file::read(path, may_be_trusted).map_err(|error| error.to_string());
        let added = read.map_err(|reason| vec![(None, String::new(), reason)]).and_then(|text| {
            let (profile, json) = parse(&text)?;
            let mut errors = check::check_profile(&profile);
            errors.extend(self.allowed.refuses(&profile, self.policy));
            let others: Vec<_> = self.known.iter().filter(|other| other.profile.id != profile.id).collect();
            errors.extend(check::check_beside_others(&profile, &others));
            match errors.is_empty() {
                true => Ok(LoadedProfile::new(profile, json, Some(path.to_owned()))),
                false => Err(errors.into_iter().map(|error| placed(&text, &error)).collect()),
            }
        });
        let added = added.map_err(|errors| warning(path, errors))?;
        match self.known.iter_mut().find(|other| other.profile.id == added.profile.id) {
            Some(other) => *other = added,
            None => self.known.push(added),
        }
        Ok(())
    }
}

/// Loads all profiles, and returns the warnings about those that were left out.
pub fn load(config: &Settings, own: Option<&Path>, policy: &Policy) -> (Vec<LoadedProfile>, Vec<String>) {
    let mut loader = Loader::new(config, policy);
    let mut directories = Vec::new();
    for path in &config.additional_paths {
        match host_base::directories::expand_home(path) {
            Ok(path) => directories.push((path, false)),
            Err(reason) => loader.warnings.push(format!("knowledge.additional_paths: {reason}")),
        }
    }
    // The last profile with an id wins, so the operator's own directory comes last.
    directories.extend(own.map(|own| (own.to_owned(), true)));
    for (directory, may_be_missing) in directories {
        for path in files_in(&directory, may_be_missing, &mut loader.warnings) {
            if let Err(warning) = loader.add(&path) {
                loader.warnings.push(warning);
            }
        }
    }
    let Loader { mut known, mut warnings, .. } = loader;
    for id in &config.disabled_profiles {
        if !known.iter().any(|known| known.profile.id == *id) {
            warnings.push(format!("knowledge.disabled_profiles: there is no profile {}", excerpt(id, 64)));
        }
    }
    known.retain(|known| !config.disabled_profiles.contains(&known.profile.id));
    known.sort_by(|a, b| a.profile.id.cmp(&b.profile.id));
    (known, warnings)
}

/// Lists the profiles' files in a directory, sorted by name, so that the order is the same every time.
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
    let mut files: Vec<_> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_profile).take(MAX_FILES + 1).collect();
    if files.len() > MAX_FILES {
        warnings
            .push(format!("{} has more than {MAX_FILES} profiles: some are left out", directory.display()));
        files.truncate(MAX_FILES);
    }
    files.sort();
    files
}

/// Refuses a file that others than this account or root can write to, because profiles become commands and paths.
fn may_be_trusted(metadata: &std::fs::Metadata) -> std::io::Result<()> {
    let is_owners = [0, rustix::process::geteuid().as_raw()].contains(&metadata.uid());
    match is_owners && metadata.mode() & 0o022 == 0 {
        true => Ok(()),
        false => Err(std::io::Error::other("others than its owner, this account or root, can write to it")),
    }
}

/// An error with its line and its field.
type PlacedError = (Option<usize>, String, String);

/// Parses a profile, and returns it also as JSON.
fn parse(text: &str) -> Result<(Profile, String), Vec<PlacedError>> {
    let value: Value = serde_yaml::from_str(text).map_err(|error| {
        // The parser's message names the place as well, which the warning already does.
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
        return Err(vec![placed(text, &ProfileError::new(&["schema_version"], reason))]);
    }
    let errors: Vec<_> = schema().iter_errors(&value).map(|error| placed(text, &of_schema(&error))).collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let json = value.to_string();
    let profile =
        serde_json::from_str(&json).map_err(|error| vec![(None, String::new(), error.to_string())])?;
    Ok((profile, json))
}

fn of_schema(error: &jsonschema::ValidationError) -> ProfileError {
    let at = error.instance_path().as_str().split('/').skip(1);
    let at = at.map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    ProfileError { at, reason: excerpt(&error.to_string(), MAX_QUOTED) }
}

fn schema() -> &'static Validator {
    static SCHEMA_OF_PROFILES: LazyLock<Validator> = LazyLock::new(|| {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap_or(Value::Bool(false));
        match jsonschema::draft202012::new(&schema) {
            Ok(validator) => validator,
            // This can't happen: a test compiles the same schema.
            Err(error) => panic!("the schema of profiles: {error}"),
        }
    });
    &SCHEMA_OF_PROFILES
}

fn placed(text: &str, error: &ProfileError) -> PlacedError {
    let field = error.at.iter().enumerate().map(|(number, part)| match part.parse::<usize>() {
        Ok(index) => format!("[{index}]"),
        Err(_) if number == 0 => part.clone(),
        Err(_) => format!(".{part}"),
    });
    (locate::line_of(text, &error.at), field.collect(), error.reason.clone())
}

/// The warning about a file, with its errors.
fn warning(path: &Path, errors: Vec<PlacedError>) -> String {
    let count = errors.len();
    let shown = errors.into_iter().take(MAX_ERRORS).map(|(line, field, reason)| {
        let line = line.map(|line| format!("line {line}"));
        let place = [line, (!field.is_empty()).then_some(field)].into_iter().flatten().collect::<Vec<_>>();
        if place.is_empty() { reason } else { format!("{}: {reason}", place.join(", ")) }
    });
    let mut shown: Vec<_> = shown.collect();
    if count > MAX_ERRORS {
        shown.push(format!("and {} more", count - MAX_ERRORS));
    }
    format!("the profile {} is left out: {}", path.display(), shown.join("; "))
}

/// Maps the name of each unit to the index of its profile. Templates stand under their own names.
pub fn by_unit(known: &[LoadedProfile]) -> HashMap<String, usize> {
    let units = known.iter().enumerate().flat_map(|(number, known)| {
        let units = known.profile.units.iter();
        units.flat_map(move |unit| {
            std::iter::once(&unit.name).chain(&unit.aliases).map(move |name| (name.clone(), number))
        })
    });
    units.collect()
}
