//! What is known of services: profiles, those that come with this program and the operator's own; which of them a target
//! has, who there depends on whom, and what makes a change graver.
#![forbid(unsafe_code)]

mod candidate;
mod check;
mod config;
mod escalation;
mod fault;
mod glob;
mod grants;
mod load;
mod locate;
mod profile;
mod resolution;

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub use candidate::Candidate;
pub use config::Settings;
pub use escalation::{Done, graver};
pub use profile::*;
pub use resolution::{Resolved, Status};

use host_capability::{Grants, Requests};
use host_policy::Policy;

/// Below the configuration's directory.
const OWN: &str = "knowledge";

/// A profile that holds.
#[derive(Debug)]
pub struct Known {
    /// The profile as it was loaded.
    pub profile: Profile,
    /// The same as JSON, as it was written.
    pub text: Cow<'static, str>,
    /// The operator's file; none of those that come with this program.
    pub path: Option<PathBuf>,
    granted: Granted,
}

/// What a profile grants, by the family of machines, once it was asked for: patterns take long to read.
type Granted = Mutex<HashMap<String, Arc<Grants>>>;

/// All profiles that hold. Read once: what becomes of the files while a server runs changes nothing, since a model with a
/// shell could change them.
#[derive(Debug, Default)]
pub struct Knowledge {
    known: Vec<Known>,
    by_unit: HashMap<String, usize>,
    warnings: Vec<String>,
}

impl Knowledge {
    /// As the configuration says, with the profiles of the operator's own directory.
    pub fn load(config: &Settings, own: Option<&Path>, policy: &Policy) -> Self {
        let (known, warnings) = load::load(config, own, policy);
        for warning in &warnings {
            tracing::warn!(warning, "knowledge");
        }
        let by_unit = load::by_unit(&known);
        Self { known, by_unit, warnings }
    }

    /// By id.
    pub fn all(&self) -> &[Known] {
        &self.known
    }

    /// What is to be said of profiles that were left out.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// By its id, or by the name of a unit with or without its suffix.
    pub fn find(&self, name: &str, family: &str) -> Option<&Known> {
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

    /// The same on any family.
    pub fn find_anywhere(&self, name: &str) -> Option<&Known> {
        let whole = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
        let has_unit = |known: &&Known| known.profile.units.iter().any(|unit| unit.is(&whole));
        self.known.iter().find(|known| known.profile.id == name).or_else(|| self.known.iter().find(has_unit))
    }

    /// Files that show that a service is configured, on machines of any family.
    pub fn marks(&self) -> Vec<String> {
        let config = self.known.iter().flat_map(|known| &known.profile.config);
        let mut marks: Vec<_> =
            config.filter(|one| one.main.0 && !one.path.contains('*')).map(|one| one.path.clone()).collect();
        marks.sort();
        marks.dedup();
        marks
    }
}

impl Known {
    fn new(profile: Profile, text: impl Into<Cow<'static, str>>, path: Option<PathBuf>) -> Self {
        Self { profile, text: text.into(), path, granted: Granted::default() }
    }

    /// What it allows a module on machines of this family.
    pub fn grants(&self, family: &str) -> Arc<Grants> {
        let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(grants) = granted.get(family) {
            return grants.clone();
        }
        // It was checked when it was loaded; what can't be granted all the same isn't.
        let grants = Arc::new(grants::of(&self.profile, family).unwrap_or_else(|error| {
            tracing::error!(profile = self.profile.id, %error, "nothing is granted");
            Grants::new(&self.profile.id)
        }));
        granted.insert(family.to_owned(), grants.clone());
        grants
    }

    /// The same, for sudo to allow.
    pub fn requests(&self, family: &str) -> Requests {
        grants::requests(&self.profile, family)
    }

    /// As it is written.
    pub fn yaml(&self) -> String {
        let value: serde_json::Value = serde_json::from_str(&self.text).unwrap_or_default();
        serde_yaml::to_string(&value).unwrap_or_default()
    }
}

impl Unit {
    /// Whether a unit's whole name means this one.
    pub fn is(&self, name: &str) -> bool {
        std::iter::once(&self.name).chain(&self.aliases).any(|own| own == name || is_instance(own, name))
    }
}

/// `wg-quick@wg0.service` of `wg-quick@.service`.
fn is_instance(template: &str, name: &str) -> bool {
    template.split_once("@.").is_some_and(|(prefix, suffix)| {
        let rest = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('@'));
        let instance = rest.and_then(|rest| rest.strip_suffix(suffix)?.strip_suffix('.'));
        instance.is_some_and(|instance| !instance.is_empty())
    })
}

/// All of it, had at the first question: a server that only lists its tools needs none of it.
#[derive(Clone, Default)]
pub struct Lazy {
    config: Settings,
    /// The operator's own profiles.
    own: Option<PathBuf>,
    policy: Option<Arc<Policy>>,
    knowledge: Arc<OnceLock<Knowledge>>,
}

impl Lazy {
    /// As the configuration says, which lies at this path.
    pub fn new(config: &Settings, path: &Path, policy: Option<Arc<Policy>>) -> Self {
        let own = path.parent().map(|directory| directory.join(OWN));
        Self { config: config.clone(), own, policy, knowledge: Arc::default() }
    }

    /// Whether each of these files could be a profile as well, and what is wrong with it.
    pub fn check(&self, files: Vec<PathBuf>) -> Vec<(PathBuf, Result<(), String>)> {
        let mut desk = load::Desk::new(&self.config, self.policy());
        let check = |path: PathBuf| {
            let added = desk.add(&path);
            (path, added)
        };
        files.into_iter().map(check).collect()
    }

    fn policy(&self) -> &Policy {
        self.policy.as_deref().unwrap_or_else(|| Policy::builtin())
    }

    /// It. Reads files where it is the first question.
    pub fn get(&self) -> &Knowledge {
        self.knowledge.get_or_init(|| Knowledge::load(&self.config, self.own.as_deref(), self.policy()))
    }
}

#[cfg(test)]
mod tests;
