//! Finds out which services a target has, and which of them depend on each other. It goes by the units that systemd knows
//! and by the configuration files that exist.

use std::collections::BTreeMap;
use std::ops::Bound;

use serde_json::{Value, json};

use super::profile::{Profile, Unit, holds_on};
use super::{Knowledge, LoadedProfile};
use host_target::{Services, UnitState};

/// The status of a service on a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The service runs. Without units of its own: it is configured.
    Active,
    /// The service's unit has failed.
    Failed,
    /// The service is there and doesn't run.
    Inactive,
    /// The target has no trace of the service.
    Absent,
    /// The target doesn't tell.
    Unknown,
}

impl Status {
    /// The word for it in answers.
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

/// The services of a target, among those that have a profile.
pub struct TargetServices<'a> {
    knowledge: &'a Knowledge,
    family: &'a str,
    /// The status of each profile of [`Knowledge::all`], and whether its configuration exists.
    found: Vec<(Status, Option<bool>)>,
}

impl<'a> TargetServices<'a> {
    /// Determines the status of each service from what was found on the target.
    pub fn new(knowledge: &'a Knowledge, family: &'a str, seen: &Services) -> Self {
        let found = knowledge.all().iter().map(|known| detect(&known.profile, family, seen)).collect();
        Self { knowledge, family, found }
    }

    /// The services that the target has, with their status.
    pub fn detected(&self) -> impl Iterator<Item = (&'a LoadedProfile, Status)> {
        let all = self.knowledge.all().iter().zip(&self.found);
        all.map(|(known, (status, _))| (known, *status))
            .filter(|(_, status)| !matches!(status, Status::Absent | Status::Unknown))
    }

    /// The status of the profile with this id, and whether its configuration exists.
    pub fn status_of(&self, id: &str) -> (Status, Option<bool>) {
        let number = self.knowledge.all().iter().position(|known| known.profile.id == id);
        number.and_then(|number| self.found.get(number)).copied().unwrap_or((Status::Absent, None))
    }

    fn active(&self) -> impl Iterator<Item = &'a Profile> {
        let all = self.knowledge.all().iter().zip(&self.found);
        all.filter(|(_, (status, _))| *status == Status::Active).map(|(known, _)| &known.profile)
    }

    /// The active services that fill a role for the service that needs it: the typical ones, or where none of them is
    /// active, any.
    pub fn fillers(&self, of: &Profile, role: &str, typical: &[String]) -> Vec<&'a str> {
        let others = || self.active().filter(|other| other.id != of.id);
        let usual: Vec<_> =
            others().filter(|other| typical.contains(&other.id)).map(|other| other.id.as_str()).collect();
        if !usual.is_empty() {
            return usual;
        }
        others().filter(|other| fills(other, role)).map(|other| other.id.as_str()).collect()
    }

    /// The active services that need a role which this service fills, each with that need.
    pub fn dependants(&self, of: &Profile) -> Vec<(&'a Profile, &'a super::profile::Requires)> {
        let others = self.active().filter(|other| other.id != of.id);
        others
            .flat_map(|other| other.requires.iter().map(move |need| (other, need)))
            // This cheap test comes first: most needs concern other roles, and finding who fills a role takes long.
            .filter(|(_, need)| need.typical.contains(&of.id) || fills(of, &need.role))
            .filter(|(other, need)| self.fillers(other, &need.role, &need.typical).contains(&of.id.as_str()))
            .collect()
    }

    /// The active services that fill this role, without the given one.
    pub fn of_role(&self, besides: &Profile, role: &str) -> Vec<&'a str> {
        self.active()
            .filter(|other| other.id != besides.id)
            .filter(|other| fills(other, role))
            .map(|other| other.id.as_str())
            .collect()
    }

    /// The family of the target's distribution.
    pub fn family(&self) -> &'a str {
        self.family
    }

    /// The part of the session information: each service that the target has, with its roles, and the roles that
    /// nothing fills.
    pub fn to_json(&self) -> (Vec<Value>, Vec<Value>) {
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

/// The units of a machine that a unit of a profile stands for. Machines have hundreds of units and every profile asks,
/// so the names are looked up by their beginning.
fn matching_units<'u>(
    unit: &Unit,
    units: &'u BTreeMap<String, UnitState>,
) -> Vec<(&'u String, &'u UnitState)> {
    let own = std::iter::once(&unit.name).chain(&unit.aliases);
    let near = own.flat_map(|own| {
        let begins = own.split_once("@.").map_or(own.as_str(), |(begins, _)| begins);
        let from = units.range::<str, _>((Bound::Included(begins), Bound::Unbounded));
        from.take_while(move |(name, _)| name.starts_with(begins))
    });
    near.filter(|(name, _)| unit.is(name)).collect()
}

fn detect(profile: &Profile, family: &str, seen: &Services) -> (Status, Option<bool>) {
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
        for (name, state) in matching_units(unit, units) {
            known.entry(name).or_insert((unit, state));
        }
    }
    for (name, (unit, state)) in known {
        if !state.is_loaded() {
            continue;
        }
        is_loaded = true;
        // A socket starts the service at the first connection.
        let counts = unit.main.0 || is_one || name.ends_with(".socket");
        is_active |= counts && state.is_active();
        has_failed |= (unit.main.0 || is_one) && state.has_failed();
    }
    let status = match (is_active, has_failed, is_loaded || is_configured) {
        (true, false, _) => Status::Active,
        // One failed instance of several is enough.
        (_, true, _) => Status::Failed,
        (false, false, true) => Status::Inactive,
        (false, false, false) => Status::Absent,
    };
    (status, config)
}
