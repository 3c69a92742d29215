//! Knowledge of services: the profiles that come with this program and the operator's own, which of these services a target
//! has, which of them depend on each other, and which changes have a higher risk.
#![forbid(unsafe_code)]

mod candidate;
mod check;
mod config;
mod glob;
mod grants;
mod load;
mod locate;
mod profile;
mod profile_error;
mod raised_risk;
mod target_services;

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub use candidate::Candidate;
pub use config::Settings;
pub use profile::*;
pub use raised_risk::{StepAction, raised_risks};
pub use target_services::{Status, TargetServices};

use host_capability::{Grants, Requests};
use host_policy::Policy;

/// The directory of the operator's own profiles, below that of the configuration.
const OWN: &str = "knowledge";

/// A profile that passed all checks.
#[derive(Debug)]
pub struct LoadedProfile {
    /// The profile as it was loaded.
    pub profile: Profile,
    /// The profile as JSON.
    pub text: Cow<'static, str>,
    /// The operator's file; none for a profile that comes with this program.
    pub path: Option<PathBuf>,
    granted: Granted,
}

/// The grants of a profile by family. They are made at the first question for a family, because parsing patterns takes
/// long.
type Granted = Mutex<HashMap<String, Arc<Grants>>>;

/// All profiles that passed the checks. They are read once. Later changes to the files have no effect while the server
/// runs, because a model with a shell could make them.
#[derive(Debug, Default)]
pub struct Knowledge {
    known: Vec<LoadedProfile>,
    by_unit: HashMap<String, usize>,
    warnings: Vec<String>,
}

impl Knowledge {
    /// Loads the built-in profiles, those that the configuration names, and those of the operator's own directory.
    pub fn load(config: &Settings, own: Option<&Path>, policy: &Policy) -> Self {
        let (known, warnings) = load::load(config, own, policy);
        for warning in &warnings {
            tracing::warn!(warning, "knowledge");
        }
        let by_unit = load::by_unit(&known);
        Self { known, by_unit, warnings }
    }

    /// All profiles, sorted by id.
    pub fn all(&self) -> &[LoadedProfile] {
        &self.known
    }

    /// The warnings about profiles that were left out.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Finds the profile for an id, or for the name of a unit with or without its suffix, on machines of this family.
    pub fn find(&self, name: &str, family: &str) -> Option<&LoadedProfile> {
        if let Ok(number) = self.known.binary_search_by(|known| known.profile.id.as_str().cmp(name)) {
            return self.known.get(number);
        }
        let whole = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
        let known = self.known.get(*self.by_unit.get(&whole).or_else(|| {
            let (template, rest) = whole.split_once('@')?;
            let (_, suffix) = rest.rsplit_once('.')?;
            self.by_unit.get(&format!("{template}@.{suffix}"))
        })?)?;
        let is_here =
            known.profile.units.iter().any(|unit| holds_on(&unit.family, family) && unit.is(&whole));
        is_here.then_some(known)
    }

    /// Like [`find`](Self::find), for machines of any family.
    pub fn find_anywhere(&self, name: &str) -> Option<&LoadedProfile> {
        let whole = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
        let has_unit = |known: &&LoadedProfile| known.profile.units.iter().any(|unit| unit.is(&whole));
        self.known.iter().find(|known| known.profile.id == name).or_else(|| self.known.iter().find(has_unit))
    }

    /// The files that show that a service is configured, on machines of any family.
    pub fn configuration_marks(&self) -> Vec<String> {
        let config = self.known.iter().flat_map(|known| &known.profile.config);
        let mut configuration_marks: Vec<_> =
            config.filter(|one| one.main.0 && !one.path.contains('*')).map(|one| one.path.clone()).collect();
        configuration_marks.sort();
        configuration_marks.dedup();
        configuration_marks
    }
}

impl LoadedProfile {
    fn new(profile: Profile, text: impl Into<Cow<'static, str>>, path: Option<PathBuf>) -> Self {
        Self { profile, text: text.into(), path, granted: Granted::default() }
    }

    /// The grants that the profile gives a module on machines of this family.
    pub fn grants(&self, family: &str) -> Arc<Grants> {
        let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(grants) = granted.get(family) {
            return grants.clone();
        }
        // The profile was checked when it was loaded. Where it can't be granted in spite of that, nothing is granted.
        let grants = Arc::new(grants::of(&self.profile, family).unwrap_or_else(|error| {
            tracing::error!(profile = self.profile.id, %error, "the profile can't be turned into grants, so it grants nothing");
            Grants::new(&self.profile.id)
        }));
        granted.insert(family.to_owned(), grants.clone());
        grants
    }

    /// The same as requests, for what sudo has to allow.
    pub fn requests(&self, family: &str) -> Requests {
        grants::requests(&self.profile, family)
    }

    /// The profile as YAML.
    pub fn yaml(&self) -> String {
        let value: serde_json::Value = serde_json::from_str(&self.text).unwrap_or_default();
        serde_yaml::to_string(&value).unwrap_or_default()
    }
}

impl Unit {
    /// Whether the whole name of a unit is a name of this unit, or of one of its instances.
    pub fn is(&self, name: &str) -> bool {
        std::iter::once(&self.name).chain(&self.aliases).any(|own| own == name || is_instance(own, name))
    }
}

/// Whether a unit is an instance of a template, as `wg-quick@wg0.service` is one of `wg-quick@.service`.
fn is_instance(template: &str, name: &str) -> bool {
    template.split_once("@.").is_some_and(|(prefix, suffix)| {
        let rest = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('@'));
        let instance = rest.and_then(|rest| rest.strip_suffix(suffix)?.strip_suffix('.'));
        instance.is_some_and(|instance| !instance.is_empty())
    })
}

/// The knowledge, which is loaded at the first question. A server that only lists its tools never loads it.
#[derive(Clone, Default)]
pub struct LazyKnowledge {
    config: Settings,
    /// The directory of the operator's own profiles.
    own: Option<PathBuf>,
    policy: Option<Arc<Policy>>,
    knowledge: Arc<OnceLock<Knowledge>>,
}

impl LazyKnowledge {
    /// Prepares the knowledge for a configuration, which lies at this path.
    pub fn new(config: &Settings, path: &Path, policy: Option<Arc<Policy>>) -> Self {
        let own = path.parent().map(|directory| directory.join(OWN));
        Self { config: config.clone(), own, policy, knowledge: Arc::default() }
    }

    /// Checks for each of these files whether it could be added as a profile, and what is wrong with it.
    pub fn check(&self, files: Vec<PathBuf>) -> Vec<(PathBuf, Result<(), String>)> {
        let mut loader = load::Loader::new(&self.config, self.policy());
        let check = |path: PathBuf| {
            let added = loader.add(&path);
            (path, added)
        };
        files.into_iter().map(check).collect()
    }

    fn policy(&self) -> &Policy {
        self.policy.as_deref().unwrap_or_else(|| Policy::builtin())
    }

    /// Returns the knowledge. The first call reads the files.
    pub fn get(&self) -> &Knowledge {
        self.knowledge.get_or_init(|| Knowledge::load(&self.config, self.own.as_deref(), self.policy()))
    }
}

#[cfg(test)]
mod tests;
