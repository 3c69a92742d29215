//! Which services a target has, and who there depends on whom: by the units that systemd knows and the configuration that
//! was seen.

use std::collections::BTreeMap;
use std::ops::Bound;

use serde_json::{Value, json};

use super::profile::{Profile, Unit, holds_on};
use super::{Knowledge, Known};
use host_target::{Services, UnitState};

/// Of a service on a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It runs; without units of its own: it is configured.
    Active,
    /// Its unit has failed.
    Failed,
    /// It is there and doesn't run.
    Inactive,
    /// Nothing of it was seen.
    Absent,
    /// The target doesn't tell.
    Unknown,
}

impl Status {
    /// In answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Failed => "failed",
            Self::Inactive => "inactive",
            Self::Absent => "absent",
            Self::Unknown => "unknown",
        }
    }
}

/// What a target has of all that is known.
pub struct Resolved<'a> {
    knowledge: &'a Knowledge,
    family: &'a str,
    /// As in [`Knowledge::all`].
    found: Vec<(Status, Option<bool>)>,
}

impl<'a> Resolved<'a> {
    /// By what was seen.
    pub fn new(knowledge: &'a Knowledge, family: &'a str, seen: &Services) -> Self {
        let found = knowledge.all().iter().map(|known| found(&known.profile, family, seen)).collect();
        Self { knowledge, family, found }
    }

    /// Those that are there, with their status.
    pub fn detected(&self) -> impl Iterator<Item = (&'a Known, Status)> {
        let all = self.knowledge.all().iter().zip(&self.found);
        all.map(|(known, (status, _))| (known, *status))
            .filter(|(_, status)| !matches!(status, Status::Absent | Status::Unknown))
    }

    /// Of one profile: its status, and whether its configuration was seen.
    pub fn of(&self, id: &str) -> (Status, Option<bool>) {
        let number = self.knowledge.all().iter().position(|known| known.profile.id == id);
        number.and_then(|number| self.found.get(number)).copied().unwrap_or((Status::Absent, None))
    }

    fn active(&self) -> impl Iterator<Item = &'a Profile> {
        let all = self.knowledge.all().iter().zip(&self.found);
        all.filter(|(_, (status, _))| *status == Status::Active).map(|(known, _)| &known.profile)
    }

    /// The active services that fill a role for one that needs it: those that usually do, or else any.
    pub fn fillers(&self, of: &Profile, role: &str, typical: &[String]) -> Vec<&'a str> {
        let others = || self.active().filter(|other| other.id != of.id);
        let usual: Vec<_> =
            others().filter(|other| typical.contains(&other.id)).map(|other| other.id.as_str()).collect();
        if !usual.is_empty() {
            return usual;
        }
        others().filter(|other| fills(other, role)).map(|other| other.id.as_str()).collect()
    }

    /// Active services that need a role which this one fills: theirs, the role, what for and what happens.
    pub fn dependants(&self, of: &Profile) -> Vec<(&'a Profile, &'a super::profile::Requires)> {
        let others = self.active().filter(|other| other.id != of.id);
        others
            .flat_map(|other| other.requires.iter().map(move |need| (other, need)))
            // Most needs are of roles that it has nothing to do with, and who fills those takes long to say.
            .filter(|(_, need)| need.typical.contains(&of.id) || fills(of, &need.role))
            .filter(|(other, need)| self.fillers(other, &need.role, &need.typical).contains(&of.id.as_str()))
            .collect()
    }

    /// Active services of this role, besides one.
    pub fn of_role(&self, besides: &Profile, role: &str) -> Vec<&'a str> {
        self.active()
            .filter(|other| other.id != besides.id)
            .filter(|other| fills(other, role))
            .map(|other| other.id.as_str())
            .collect()
    }

    /// The machine's family.
    pub fn family(&self) -> &'a str {
        self.family
    }

    /// For a session: each that is there with its roles, and what nobody fills.
    pub fn shown(&self) -> (Vec<Value>, Vec<Value>) {
        let (mut profiles, mut unresolved) = (Vec::new(), Vec::new());
        for (known, status) in self.detected() {
            let profile = &known.profile;
            let mut roles = serde_json::Map::new();
            if status == Status::Active {
                for need in &profile.requires {
                    let fillers = self.fillers(profile, &need.role, &need.typical);
                    match fillers.is_empty() {
                        false => drop(roles.insert(need.role.clone(), json!(fillers))),
                        true if need.optional.0 => {}
                        true => unresolved.push(json!({
                            "profile": profile.id, "role": need.role, "if_down": need.if_down,
                            "typical": need.typical,
                        })),
                    }
                }
            }
            let mut shown = json!({"id": profile.id, "name": profile.name, "status": status.name(), "roles_resolved": roles});
            if let Some(path) = &known.path {
                shown["file"] = path.display().to_string().into();
            }
            profiles.push(shown);
        }
        (profiles, unresolved)
    }
}

fn fills(profile: &Profile, role: &str) -> bool {
    profile.provides.iter().any(|provided| provided.role == role)
}

/// Those of a machine's units that one of a profile means. There are hundreds, and all profiles ask: so they are looked up.
fn meant<'u>(unit: &Unit, units: &'u BTreeMap<String, UnitState>) -> Vec<(&'u String, &'u UnitState)> {
    let own = std::iter::once(&unit.name).chain(&unit.aliases);
    let near = own.flat_map(|own| {
        let begins = own.split_once("@.").map_or(own.as_str(), |(begins, _)| begins);
        let from = units.range::<str, _>((Bound::Included(begins), Bound::Unbounded));
        from.take_while(move |(name, _)| name.starts_with(begins))
    });
    near.filter(|(name, _)| unit.is(name)).collect()
}

fn found(profile: &Profile, family: &str, seen: &Services) -> (Status, Option<bool>) {
    let config: Vec<_> = profile
        .config
        .iter()
        .filter(|one| one.main.0 && holds_on(&one.family, family) && !one.path.contains('*'))
        .map(|one| seen.is_there(&one.path))
        .collect();
    let config = match config.contains(&Some(true)) {
        true => Some(true),
        false if config.is_empty() || config.contains(&None) => None,
        false => Some(false),
    };
    let is_configured = config == Some(true);
    let mut own = profile.units.iter().filter(|unit| holds_on(&unit.family, family)).peekable();
    if own.peek().is_none() {
        return (if is_configured { Status::Active } else { Status::Absent }, config);
    }
    let Some(units) = &seen.units else {
        return (if is_configured { Status::Unknown } else { Status::Absent }, config);
    };
    let own: Vec<_> = own.collect();
    let is_one = own.len() == 1;
    let (mut is_loaded, mut has_failed, mut is_active) = (false, false, false);
    let mut known = BTreeMap::new();
    for unit in own {
        for (name, state) in meant(unit, units) {
            known.entry(name).or_insert((unit, state));
        }
    }
    for (name, (unit, state)) in known {
        if !state.is_loaded() {
            continue;
        }
        is_loaded = true;
        // A socket starts the service when somebody comes.
        let counts = unit.main.0 || is_one || name.ends_with(".socket");
        is_active |= counts && state.is_active();
        has_failed |= (unit.main.0 || is_one) && state.has_failed();
    }
    let status = match (is_active, has_failed, is_loaded || is_configured) {
        (true, false, _) => Status::Active,
        // Of several instances one is enough.
        (_, true, _) => Status::Failed,
        (false, false, true) => Status::Inactive,
        (false, false, false) => Status::Absent,
    };
    (status, config)
}
